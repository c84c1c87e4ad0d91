/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/guest-info.h"

#include <string.h>

#define MAX_COMMANDS 1024

/* The member "return" of a reply; *out_reply keeps it alive. */
static const ChJson *
parse_reply(const char *reply, ChJson **out_reply)
{
    *out_reply = ch_json_parse(reply, -1, NULL);
    return ch_json_at(*out_reply, "return");
}

static void
copy_string(ChJson *to, const char *to_key, const ChJson *from, const char *from_key)
{
    const char *text = ch_json_string_at(from, from_key);

    if (text != NULL && *text != '\0')
        ch_json_set_string(to, to_key, text);
}

static void
copy_int(ChJson *to, const char *to_key, const ChJson *from, const char *from_key)
{
    int64_t value = 0;

    (void)ch_json_int_at(from, &value, from_key); /* absent: 0 */
    ch_json_set_int(to, to_key, value);
}

ChJson *
ch_guest_info_parse_agent(const char *reply)
{
    g_autoptr(ChJson) document = NULL;
    const ChJson *info = parse_reply(reply, &document);
    const ChJson *list = ch_json_at(info, "supported_commands");

    if (ch_json_string_at(info, "version") == NULL)
        return NULL;
    ChJson *agent = ch_json_new_object();
    ChJson *commands = ch_json_new_array();
    ch_json_set_string(agent, "version", ch_json_string_at(info, "version"));
    for (gsize i = 0; i < MIN(ch_json_length(list), MAX_COMMANDS); i++) {
        const ChJson *item = ch_json_item(list, i);
        ChJson *command = ch_json_new_object();

        copy_string(command, "name", item, "name");
        if (ch_json_bool_at(item, false, "enabled"))
            ch_json_set_bool(command, "enabled", true);
        ch_json_append(commands, command);
    }
    ch_json_set(agent, "commands", commands);
    return agent;
}

static ChJson *
convert_fs_disks(const ChJson *list)
{
    ChJson *disks = ch_json_new_array();

    for (gsize i = 0; i < MIN(ch_json_length(list), CH_PARAMS_MAX_COUNT); i++) {
        const ChJson *item = ch_json_item(list, i);
        const char *bus = ch_json_string_at(item, "bus-type");
        ChJson *disk = ch_json_new_object();

        copy_string(disk, "serial", item, "serial");
        ch_json_set_string(disk, "busType", bus == NULL ? "" : bus);
        ch_json_append(disks, disk);
    }
    return disks;
}

ChJson *
ch_guest_info_parse_filesystems(const char *reply)
{
    g_autoptr(ChJson) document = NULL;
    const ChJson *list = parse_reply(reply, &document);

    if (!ch_json_is_array(list))
        return NULL;
    ChJson *filesystems = ch_json_new_array();
    for (gsize i = 0; i < MIN(ch_json_length(list), CH_PARAMS_MAX_COUNT); i++) {
        static const char *const texts[][2] = {
            {"diskName", "name"}, {"mountPoint", "mountpoint"}, {"fileSystemType", "type"}};
        const ChJson *item = ch_json_item(list, i);
        ChJson *fs = ch_json_new_object();

        for (gsize k = 0; k < G_N_ELEMENTS(texts); k++) {
            const char *text = ch_json_string_at(item, texts[k][1]);

            ch_json_set_string(fs, texts[k][0], text == NULL ? "" : text);
        }
        copy_int(fs, "usedBytes", item, "used-bytes");
        copy_int(fs, "totalBytes", item, "total-bytes");
        if (ch_json_length(ch_json_at(item, "disk")) > 0)
            ch_json_set(fs, "disk", convert_fs_disks(ch_json_at(item, "disk")));
        ch_json_append(filesystems, fs);
    }
    return filesystems;
}

ChJson *
ch_guest_info_parse_freeze(const char *reply)
{
    g_autoptr(ChJson) document = NULL;
    const char *status = ch_json_as_string(parse_reply(reply, &document));

    if (g_strcmp0(status, "thawed") != 0 && g_strcmp0(status, "frozen") != 0)
        return NULL;
    return ch_json_new_string(status);
}

/* One interface; its first IPv4 address is *the* address, else its first. */
static ChJson *
read_interface(const ChParams *params, const char *prefix, const char *name)
{
    g_autofree char *mac = ch_params_dup_string(params, prefix, "hwaddr");
    const guint n_addresses = ch_params_count(params, prefix, "addr.count");
    g_autofree char *best = NULL;
    bool has_ipv4 = false;
    ChJson *interface = ch_json_new_object();
    ChJson *addresses = ch_json_new_array();

    for (guint i = 0; i < n_addresses; i++) {
        g_autofree char *at = g_strdup_printf("%saddr.%u.", prefix, i);
        g_autofree char *type = ch_params_dup_string(params, at, "type");
        g_autofree char *address = ch_params_dup_string(params, at, "addr");
        const bool is_ipv4 = g_strcmp0(type, "ipv4") == 0;

        if (address == NULL)
            continue;
        ch_json_append(addresses, ch_json_new_string(address));
        if (best == NULL || (is_ipv4 && !has_ipv4)) {
            g_free(best);
            best = g_strdup(address);
        }
        has_ipv4 = has_ipv4 || is_ipv4;
    }
    ch_json_set_string(interface, "Mac", mac == NULL ? "" : mac);
    ch_json_set_string(interface, "Ip", best == NULL ? "" : best);
    ch_json_set(interface, "IPs", addresses);
    ch_json_set_string(interface, "InterfaceName", name);
    return interface;
}

ChJson *
ch_guest_info_read_interfaces(const ChParams *params)
{
    const guint n_interfaces = ch_params_count(params, "if.", "count");
    ChJson *interfaces = NULL;

    for (guint i = 0; i < n_interfaces; i++) {
        g_autofree char *prefix = g_strdup_printf("if.%u.", i);
        g_autofree char *name = ch_params_dup_string(params, prefix, "name");

        if (name == NULL || g_str_equal(name, "lo"))
            continue;
        if (interfaces == NULL)
            interfaces = ch_json_new_array();
        ch_json_append(interfaces, read_interface(params, prefix, name));
    }
    return interfaces;
}

/* libvirt's name, the Domain document's, GetGuestInfo's */
static const char *const os_names[][3] = {
    {"name", "Name", "name"},
    {"kernel-release", "KernelRelease", "kernelRelease"},
    {"version", "Version", "version"},
    {"pretty-name", "PrettyName", "prettyName"},
    {"version-id", "VersionId", "versionId"},
    {"kernel-version", "KernelVersion", "kernelVersion"},
    {"machine", "Machine", "machine"},
    {"id", "Id", "id"},
};

ChJson *
ch_guest_info_read_os(const ChParams *params)
{
    g_autoptr(ChJson) os_info = ch_json_new_object();
    bool is_known = false;

    for (gsize i = 0; i < G_N_ELEMENTS(os_names); i++) {
        g_autofree char *text = ch_params_dup_string(params, "os.", os_names[i][0]);

        is_known = is_known || text != NULL;
        ch_json_set_string(os_info, os_names[i][1], text == NULL ? "" : text);
    }
    return is_known ? g_steal_pointer(&os_info) : NULL;
}

ChJson *
ch_guest_info_rename_os(const ChJson *os_info)
{
    ChJson *renamed = ch_json_new_object();

    for (gsize i = 0; i < G_N_ELEMENTS(os_names); i++)
        copy_string(renamed, os_names[i][2], os_info, os_names[i][1]);
    return renamed;
}

ChJson *
ch_guest_info_read_hostname(const ChParams *params)
{
    g_autofree char *text = ch_params_dup_string(params, "", "hostname");

    return text == NULL ? NULL : ch_json_new_string(text);
}

ChJson *
ch_guest_info_read_timezone(const ChParams *params)
{
    g_autofree char *name = ch_params_dup_string(params, "timezone.", "name");
    int offset = 0;

    if (virTypedParamsGetInt(params->items, params->n_items, "timezone.offset", &offset) != 1 &&
        name == NULL)
        return NULL;
    g_autofree char *text = g_strdup_printf("%s, %d", name == NULL ? "" : name, offset);
    return ch_json_new_string(text);
}

/* Seconds with up to three decimals, as Go prints such a float. */
static ChJson *
build_seconds(guint64 ms)
{
    g_autofree char *text =
        g_strdup_printf("%" G_GUINT64_FORMAT ".%03u", ms / 1000, (guint)(ms % 1000));

    for (char *end = text + strlen(text) - 1; *end == '0' || *end == '.'; end--) {
        const bool is_point = *end == '.';

        *end = '\0';
        if (is_point)
            break;
    }
    return ch_json_parse(text, -1, NULL);
}

ChJson *
ch_guest_info_read_users(const ChParams *params)
{
    const guint n_users = ch_params_count(params, "user.", "count");
    ChJson *users = ch_json_new_array();

    for (guint i = 0; i < n_users; i++) {
        g_autofree char *prefix = g_strdup_printf("user.%u.", i);
        g_autofree char *name = ch_params_dup_string(params, prefix, "name");
        g_autofree char *domain = ch_params_dup_string(params, prefix, "domain");
        guint64 login_ms = 0;
        ChJson *user = ch_json_new_object();

        ch_json_set_string(user, "userName", name == NULL ? "" : name);
        if (domain != NULL && *domain != '\0')
            ch_json_set_string(user, "domain", domain);
        if (ch_params_get_unsigned(params, prefix, "login-time", &login_ms) && login_ms != 0)
            ch_json_set(user, "loginTime", build_seconds(login_ms));
        ch_json_append(users, user);
    }
    return users;
}
