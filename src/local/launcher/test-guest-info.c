/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/guest-info.h"

#include "local/launcher/guest-store.h"

static void
assert_json(ChJson *json, const char *expected)
{
    g_autofree char *text = json == NULL ? g_strdup("(null)") : ch_json_print(json, NULL);

    g_assert_cmpstr(text, ==, expected);
    ch_json_unref(json);
}

static void
test_agent_reply(void)
{
    assert_json(ch_guest_info_parse_agent(
                    "{\"return\": {\"version\": \"7.2.0\", \"supported_commands\": "
                    "[{\"enabled\": true, \"name\": \"guest-ping\", \"success-response\": true},"
                    "{\"enabled\": false, \"name\": \"guest-exec\"}]}}"),
                "{\"version\":\"7.2.0\",\"commands\":[{\"name\":\"guest-ping\",\"enabled\":true},"
                "{\"name\":\"guest-exec\"}]}");
    g_assert_null(ch_guest_info_parse_agent("{\"return\": {}}"));
    g_assert_null(ch_guest_info_parse_agent("{\"error\": {}}"));
    g_assert_null(ch_guest_info_parse_agent("garbage"));
}

static void
test_filesystem_reply(void)
{
    assert_json(
        ch_guest_info_parse_filesystems(
            "{\"return\":[{\"name\":\"vda1\",\"mountpoint\":\"/\",\"type\":\"ext4\","
            "\"used-bytes\":10,\"total-bytes\":20,\"disk\":[{\"serial\":\"s\",\"bus-type\":"
            "\"virtio\",\"bus\":0}]},{\"name\":\"sr0\",\"mountpoint\":\"/mnt\",\"type\":"
            "\"iso9660\",\"disk\":[]}]}"),
        "[{\"diskName\":\"vda1\",\"mountPoint\":\"/\",\"fileSystemType\":\"ext4\","
        "\"usedBytes\":10,\"totalBytes\":20,\"disk\":[{\"serial\":\"s\",\"busType\":\"virtio\"}]},"
        "{\"diskName\":\"sr0\",\"mountPoint\":\"/mnt\",\"fileSystemType\":\"iso9660\","
        "\"usedBytes\":0,\"totalBytes\":0}]");
    g_assert_null(ch_guest_info_parse_filesystems("{\"return\":{}}"));
}

static void
test_freeze_reply(void)
{
    assert_json(ch_guest_info_parse_freeze("{\"return\":\"frozen\"}"), "\"frozen\"");
    g_assert_null(ch_guest_info_parse_freeze("{\"return\":\"melted\"}"));
    g_assert_null(ch_guest_info_parse_freeze("{\"return\":7}"));
}

static void
add_string(ChParams *params, int *max, const char *name, const char *value)
{
    g_assert_cmpint(
        virTypedParamsAddString(&params->items, &params->n_items, max, name, value), ==, 0);
}

static void
test_interfaces(void)
{
    ChParams params = {0};
    int max = 0;

    virTypedParamsAddUInt(&params.items, &params.n_items, &max, "if.count", 3);
    add_string(&params, &max, "if.0.name", "lo");
    add_string(&params, &max, "if.1.name", "eth0");
    add_string(&params, &max, "if.1.hwaddr", "02:00:00:00:00:01");
    virTypedParamsAddUInt(&params.items, &params.n_items, &max, "if.1.addr.count", 2);
    add_string(&params, &max, "if.1.addr.0.type", "ipv6");
    add_string(&params, &max, "if.1.addr.0.addr", "fe80::1");
    add_string(&params, &max, "if.1.addr.1.type", "ipv4");
    add_string(&params, &max, "if.1.addr.1.addr", "10.0.2.2");
    add_string(&params, &max, "if.2.name", "eth1\xff");
    assert_json(ch_guest_info_read_interfaces(&params),
                "[{\"Mac\":\"02:00:00:00:00:01\",\"Ip\":\"10.0.2.2\",\"IPs\":[\"fe80::1\","
                "\"10.0.2.2\"],\"InterfaceName\":\"eth0\"},{\"Mac\":\"\",\"Ip\":\"\",\"IPs\":[],"
                "\"InterfaceName\":\"eth1\xef\xbf\xbd\"}]");
    virTypedParamsFree(params.items, params.n_items);
}

static void
test_users(void)
{
    ChParams params = {0};
    int max = 0;

    virTypedParamsAddUInt(&params.items, &params.n_items, &max, "user.count", 2);
    add_string(&params, &max, "user.0.name", "root");
    virTypedParamsAddULLong(
        &params.items, &params.n_items, &max, "user.0.login-time", 1700000000120);
    add_string(&params, &max, "user.1.name", "guest");
    virTypedParamsAddULLong(&params.items, &params.n_items, &max, "user.1.login-time", 100000);
    assert_json(ch_guest_info_read_users(&params),
                "[{\"userName\":\"root\",\"loginTime\":1700000000.12},"
                "{\"userName\":\"guest\",\"loginTime\":100}]");
    virTypedParamsFree(params.items, params.n_items);
}

static void
test_nothing_known_is_the_empty_form(void)
{
    g_autoptr(ChGuestStore) store = ch_guest_store_new();
    g_autofree char *info = ch_guest_store_print_info(store);
    g_autofree char *users = ch_guest_store_print_list(store, CH_GUEST_USERS);

    g_assert_cmpstr(info, ==, "{\"os\":{},\"timezone\":\", 0\",\"fsInfo\":{\"disks\":null}}");
    g_assert_cmpstr(users, ==, "[]");
}

static void
test_only_changes_of_shown_parts_count(void)
{
    g_autoptr(ChGuestStore) store = ch_guest_store_new();

    g_assert_true(ch_guest_store_put(store, CH_GUEST_FREEZE, ch_json_new_string("thawed")));
    g_assert_false(ch_guest_store_put(store, CH_GUEST_FREEZE, ch_json_new_string("thawed")));
    g_assert_true(ch_guest_store_put(store, CH_GUEST_FREEZE, ch_json_new_string("frozen")));
    g_assert_false(ch_guest_store_put(store, CH_GUEST_HOSTNAME, ch_json_new_string("tiny")));
    g_assert_false(ch_guest_store_put(store, CH_GUEST_FREEZE, NULL));
    g_autoptr(ChJson) freeze = ch_guest_store_dup(store, CH_GUEST_FREEZE);
    g_assert_cmpstr(ch_json_as_string(freeze), ==, "frozen");
}

static void
test_what_is_too_long_is_not_kept(void)
{
    g_autoptr(ChGuestStore) store = ch_guest_store_new();
    g_autofree char *text = g_strnfill(300 << 10, 'x');

    g_assert_true(ch_guest_store_put(store, CH_GUEST_OS, ch_json_new_string("short")));
    g_assert_false(ch_guest_store_put(store, CH_GUEST_OS, ch_json_new_string(text)));
    g_autoptr(ChJson) kept = ch_guest_store_dup(store, CH_GUEST_OS);
    g_assert_cmpstr(ch_json_as_string(kept), ==, "short");
}

static void
test_guest_info_lists_ten_at_most(void)
{
    g_autoptr(ChGuestStore) store = ch_guest_store_new();
    ChJson *users = ch_json_new_array();

    for (guint i = 0; i < 12; i++)
        ch_json_append(users, ch_json_new_object());
    ch_guest_store_put(store, CH_GUEST_USERS, users);
    g_autofree char *text = ch_guest_store_print_info(store);
    g_autofree char *all = ch_guest_store_print_list(store, CH_GUEST_USERS);
    g_autoptr(ChJson) info = ch_json_parse(text, -1, NULL);
    g_autoptr(ChJson) list = ch_json_parse(all, -1, NULL);
    g_assert_cmpuint(ch_json_length(ch_json_at(info, "userList")), ==, 10);
    g_assert_cmpuint(ch_json_length(list), ==, 12);
}

int
main(int argc, char **argv)
{
    virInitialize();
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest-info/agent-reply", test_agent_reply);
    g_test_add_func("/guest-info/filesystem-reply", test_filesystem_reply);
    g_test_add_func("/guest-info/freeze-reply", test_freeze_reply);
    g_test_add_func("/guest-info/interfaces", test_interfaces);
    g_test_add_func("/guest-info/users", test_users);
    g_test_add_func("/guest-info/nothing-known-is-the-empty-form",
                    test_nothing_known_is_the_empty_form);
    g_test_add_func("/guest-info/only-changes-of-shown-parts-count",
                    test_only_changes_of_shown_parts_count);
    g_test_add_func("/guest-info/what-is-too-long-is-not-kept", test_what_is_too_long_is_not_kept);
    g_test_add_func("/guest-info/lists-ten-at-most", test_guest_info_lists_ten_at_most);
    return g_test_run();
}
