/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/cni.h"

#include <string.h>

#include "lib/base/errors.h"

#define VERSION         "1.0.0"
#define MAX_WORDS_BYTES 400

void
ch_cni_result_clear(ChCniResult *result)
{
    g_clear_pointer(&result->text, g_free);
}

/* --- configurations --------------------------------------------------------------------------- */

static ChJson *
new_config(const char *name, const char *type, const char *previous)
{
    ChJson *config = ch_json_new_object();
    ChJson *result = previous != NULL ? ch_json_parse(previous, -1, NULL) : NULL;

    ch_json_set_string(config, "cniVersion", VERSION);
    ch_json_set_string(config, "name", name);
    ch_json_set_string(config, "type", type);
    if (result != NULL)
        ch_json_set(config, "prevResult", result);
    return config;
}

static bool
is_ipv6(const char *subnet)
{
    return strchr(subnet, ':') != NULL;
}

/* One range a subnet, and a default route of its family. */
static ChJson *
new_ipam(const ChCniNetwork *network)
{
    ChJson *ipam = ch_json_new_object();
    ChJson *ranges = ch_json_new_array();
    ChJson *routes = ch_json_new_array();

    for (gsize i = 0; network->subnets[i] != NULL; i++) {
        ChJson *range = ch_json_new_array();
        ChJson *subnet = ch_json_new_object();
        ChJson *route = ch_json_new_object();

        ch_json_set_string(subnet, "subnet", network->subnets[i]);
        ch_json_append(range, subnet);
        ch_json_append(ranges, range);
        ch_json_set_string(route, "dst", is_ipv6(network->subnets[i]) ? "::/0" : "0.0.0.0/0");
        ch_json_append(routes, route);
    }
    ch_json_set_string(ipam, "type", "host-local");
    ch_json_set_string(ipam, "dataDir", network->lease_dir);
    ch_json_set(ipam, "ranges", ranges);
    ch_json_set(ipam, "routes", routes);
    return ipam;
}

char *
ch_cni_loopback_config(void)
{
    g_autoptr(ChJson) config = new_config("lo", "loopback", NULL);

    return ch_json_print(config, NULL);
}

/* Without ipMasq: its rules are found again only as long as the pod's namespace is there. Ours are
 * for the whole subnet. */
char *
ch_cni_bridge_config(const ChCniNetwork *network, const char *previous)
{
    g_autoptr(ChJson) config = new_config(network->bridge, "bridge", previous);

    ch_json_set_string(config, "bridge", network->bridge);
    ch_json_set_bool(config, "isGateway", true);
    ch_json_set_bool(config, "ipMasq", false);
    if (network->mtu != 0)
        ch_json_set_int(config, "mtu", network->mtu);
    ch_json_set(config, "ipam", new_ipam(network));
    return ch_json_print(config, NULL);
}

char *
ch_cni_portmap_config(const ChCniNetwork *network,
                      const ChHostPort *ports,
                      gsize n_ports,
                      const char *previous)
{
    g_autoptr(ChJson) config = new_config(network->bridge, "portmap", previous);
    ChJson *mappings = ch_json_new_array();

    for (gsize i = 0; i < n_ports; i++) {
        ChJson *mapping = ch_json_new_object();

        ch_json_set_int(mapping, "hostPort", ports[i].host);
        ch_json_set_int(mapping, "containerPort", ports[i].guest);
        ch_json_set_string(mapping, "protocol", ports[i].protocol);
        ch_json_append(mappings, mapping);
    }
    ch_json_set_bool(ch_json_ensure_object(config, "capabilities"), "portMappings", true);
    ch_json_set(ch_json_ensure_object(config, "runtimeConfig"), "portMappings", mappings);
    return ch_json_print(config, NULL);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* "10.213.0.5/20" */
static bool
parse_address(const char *text, ChIp *out_ip)
{
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    g_autofree char *address = slash != NULL ? g_strndup(text, (gsize)(slash - text)) : NULL;
    guint64 prefix = 0;

    return address != NULL && ch_ip_parse(address, out_ip) &&
           g_ascii_string_to_unsigned(slash + 1, 10, 0, 8 * ch_ip_n_bytes(out_ip), &prefix, NULL) &&
           ch_ip_is_global_unicast(out_ip);
}

/* Keeps the first of each family, IPv4 first. */
static bool
take_addresses(const ChJson *ips, ChCniResult *result, GError **error)
{
    ChIp found[2] = {{0}};

    if (ch_json_length(ips) > CH_CNI_MAX_ADDRESSES)
        return ch_fail(error, CH_ERROR_LIMIT, "its result has too many addresses");
    for (gsize i = 0; i < ch_json_length(ips); i++) {
        ChIp ip = {0};

        if (!parse_address(ch_json_string_at(ch_json_item(ips, i), "address"), &ip))
            return ch_fail(error, CH_ERROR_INVALID, "its result has an address that is none");
        if (found[ip.family == AF_INET6].family == 0)
            found[ip.family == AF_INET6] = ip;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(found); i++) {
        if (found[i].family != 0)
            (void)ch_ip_print(&found[i], result->ips[result->n_ips++]);
    }
    return result->n_ips > 0 || ch_fail(error, CH_ERROR_INVALID, "its result has no address");
}

bool
ch_cni_result_parse(const char *text, ChCniResult *out_result, GError **error)
{
    g_autoptr(ChJson) json = NULL;
    ChCniResult result = {0};
    gsize length = 0;

    if (strlen(text) > CH_CNI_MAX_RESULT_BYTES)
        return ch_fail(error, CH_ERROR_LIMIT, "its result is too large");
    json = ch_json_parse(text, -1, NULL);
    if (!ch_json_is_object(json) || !ch_json_is_array(ch_json_at(json, "ips")))
        return ch_fail(error, CH_ERROR_INVALID, "it answered with something that is no result");
    if (!take_addresses(ch_json_at(json, "ips"), &result, error))
        return false;
    result.text = ch_json_print(json, &length);
    if (length > CH_CNI_MAX_RESULT_BYTES) { /* it is kept in the pod's record, which has a limit */
        ch_cni_result_clear(&result);
        return ch_fail(error, CH_ERROR_LIMIT, "its result is too large");
    }
    *out_result = result;
    return true;
}

/* One line of bounded length, without what terminals obey: controls of both kinds, and what turns
 * the direction of writing. */
static char *
tidy_words(const char *text)
{
    g_autofree char *cut = g_strndup(text, MAX_WORDS_BYTES);
    g_autofree char *valid = g_utf8_make_valid(cut, -1);
    GString *words = g_string_new(NULL);

    for (const char *c = valid; *c != '\0'; c = g_utf8_next_char(c)) {
        const gunichar letter = g_utf8_get_char(c);
        const bool is_shown = g_unichar_isprint(letter) && !g_unichar_isspace(letter);

        g_string_append_unichar(words, is_shown ? letter : ' ');
    }
    return g_strstrip(g_string_free(words, FALSE));
}

static char *
last_line(const char *text)
{
    g_autofree char *copy = g_strchomp(g_strdup(text));
    const char *line = strrchr(copy, '\n');

    return tidy_words(line != NULL ? line + 1 : copy);
}

char *
ch_cni_failure_text(const char *plugin, int status, const char *out, const char *err)
{
    g_autoptr(ChJson) json =
        strlen(out) <= CH_CNI_MAX_RESULT_BYTES ? ch_json_parse(out, -1, NULL) : NULL;
    const char *message = ch_json_string_at(json, "msg");
    const char *details = ch_json_string_at(json, "details");
    g_autofree char *said = message != NULL && details != NULL && *details != '\0'
                                ? g_strconcat(message, ": ", details, NULL)
                                : g_strdup(message);
    g_autofree char *words = said != NULL ? tidy_words(said) : last_line(err);

    return g_strdup_printf("the CNI plugin '%s' failed: %s%s",
                           plugin,
                           *words != '\0' ? words : "it said nothing",
                           status > 128 ? " (it was killed by a signal)" : "");
}
