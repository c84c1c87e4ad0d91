/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/multus.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

static const char vmi_text[] =
    "{\"metadata\":{\"name\":\"vm\",\"namespace\":\"lab\"},\"spec\":{\"domain\":{\"devices\":"
    "{\"interfaces\":[{\"name\":\"default\",\"masquerade\":{}},"
    "{\"name\":\"blue\",\"bridge\":{},\"macAddress\":\"02:00:00:00:00:01\"},"
    "{\"name\":\"red\",\"bridge\":{}},{\"name\":\"gone\",\"bridge\":{},\"state\":\"absent\"}]}},"
    "\"networks\":[{\"name\":\"default\",\"pod\":{}},"
    "{\"name\":\"blue\",\"multus\":{\"networkName\":\"net-b\"}},"
    "{\"name\":\"red\",\"multus\":{\"networkName\":\"other/net-r\"}},"
    "{\"name\":\"gone\",\"multus\":{\"networkName\":\"net-b\"}},"
    "{\"name\":\"unused\",\"multus\":{\"networkName\":\"net-b\"}}]}}";

static void
test_attachments(void)
{
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChJson) attachments = ch_multus_attachments(vmi);
    g_autofree char *text = ch_multus_networks_text(attachments);
    g_autoptr(ChJson) none = ch_json_new_array();

    assert_json(
        attachments,
        "[{\"network\":\"blue\",\"definition\":\"lab/net-b\",\"link\":\"pod16477688c0e\","
        "\"mac\":\"02:00:00:00:00:01\"},"
        "{\"network\":\"red\",\"definition\":\"other/net-r\",\"link\":\"podb1f51a511f1\"}]");
    g_assert_cmpstr(
        text,
        ==,
        "[{\"name\":\"net-b\",\"namespace\":\"lab\",\"mac\":\"02:00:00:00:00:01\","
        "\"interface\":\"pod16477688c0e\"},"
        "{\"name\":\"net-r\",\"namespace\":\"other\",\"interface\":\"podb1f51a511f1\"}]");
    g_assert_null(ch_multus_networks_text(none));
}

static void
test_what_has_no_name(void)
{
    g_autoptr(ChJson) vmi = parse_json(
        "{'metadata':{'namespace':'lab'},'spec':{'networks':[{'multus':{'networkName':'net'}},"
        "{'name':'red','multus':{'networkName':'net'}}],"
        "'domain':{'devices':{'interfaces':[{'bridge':{}},{'name':'red','macAddress':''}]}}}}");
    g_autoptr(ChJson) attachments = ch_multus_attachments(vmi);

    assert_json(attachments, "[{'network':'red','definition':'lab/net','link':'podb1f51a511f1'}]");
}

static void
test_names(void)
{
    static const char *const wrong[] = {"", "/", "a/", "/a", "a/b/c", "A", "../x", "a b", NULL};

    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        char *space = NULL;
        char *name = NULL;

        g_assert_false(ch_multus_parse_name(wrong[i], "lab", &space, &name));
        g_assert_null(space);
        g_assert_null(name);
    }
}

static ChJson *
definition(const char *config)
{
    ChJson *json = parse_json("{\"metadata\":{\"name\":\"net-b\"},\"spec\":{}}");

    ch_json_set_string(ch_json_at(json, "spec"), "config", config);
    return json;
}

static const struct ConfigCase {
    const char *config;
    const char *plugins;
} configs[] = {
    {"{\"cniVersion\":\"1.0.0\",\"type\":\"bridge\",\"bridge\":\"lab0\"}",
     "[{\"cniVersion\":\"1.0.0\",\"type\":\"bridge\",\"bridge\":\"lab0\",\"name\":\"net-b\"}]"},
    {"{\"type\":\"macvlan\",\"name\":\"mine\",\"ipam\":{}}",
     "[{\"type\":\"macvlan\",\"name\":\"mine\",\"ipam\":{},\"cniVersion\":\"0.3.1\"}]"},
    {"{\"cniVersion\":\"0.4.0\",\"plugins\":[{\"type\":\"bridge\",\"ipam\":{\"type\":\"host-"
     "local\","
     "\"dataDir\":\"/etc\",\"subnet\":\"10.9.0.0/24\"}},{\"type\":\"tuning\"}]}",
     "[{\"type\":\"bridge\",\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"/s/leases\","
     "\"subnet\":\"10.9.0.0/24\"},\"cniVersion\":\"0.4.0\",\"name\":\"net-b\"},"
     "{\"type\":\"tuning\",\"cniVersion\":\"0.4.0\",\"name\":\"net-b\"}]"},
    {"", NULL},
    {"no json", NULL},
    {"[]", NULL},
    {"{}", NULL},
    {"{\"type\":\"\"}", NULL},
    {"{\"type\":\"../sh\"}", NULL},
    {"{\"type\":\"a/b\"}", NULL},
    {"{\"type\":7}", NULL},
    {"{\"type\":\"bridge\",\"name\":\"../../etc\"}", NULL},
    {"{\"type\":\"bridge\",\"ipMasq\":true}", NULL},
    {"{\"type\":\"bridge\",\"ipam\":{\"type\":\"../x\"}}", NULL},
    {"{\"plugins\":[]}", NULL},
    {"{\"plugins\":[7]}", NULL},
    {"{\"plugins\":{\"type\":\"bridge\"}}", NULL},
    {"{\"plugins\":[{\"type\":\"a\"},{\"type\":\"a\"},{\"type\":\"a\"},{\"type\":\"a\"},"
     "{\"type\":\"a\"},{\"type\":\"a\"},{\"type\":\"a\"},{\"type\":\"a\"},{\"type\":\"a\"}]}",
     NULL},
};

static void
test_definitions(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(configs); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) attachment = parse_json("{\"definition\":\"lab/net-b\"}");
        g_autoptr(ChJson) json = definition(configs[i].config);
        const bool is_fine = ch_multus_set_plugins(attachment, json, "/s/leases", &error);

        g_test_message("%s", configs[i].config);
        g_assert_cmpint(is_fine, ==, configs[i].plugins != NULL);
        if (is_fine) {
            assert_json(ch_json_at(attachment, "plugins"), configs[i].plugins);
            continue;
        }
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
        g_assert_true(g_str_has_prefix(error->message, "NetworkAttachmentDefinition lab/net-b: "));
        g_assert_false(ch_json_has(attachment, "plugins"));
    }
}

static void
test_config_too_large(void)
{
    g_autoptr(ChJson) attachment = parse_json("{\"definition\":\"lab/net-b\"}");
    g_autofree char *spaces = g_strnfill(CH_MULTUS_MAX_CONFIG_BYTES, ' ');
    g_autofree char *text = g_strconcat("{\"type\":\"bridge\"", spaces, "}", NULL);
    g_autoptr(ChJson) json = definition(text);

    g_assert_false(ch_multus_set_plugins(attachment, json, "/s/leases", NULL));
}

static void
test_previous_result_is_told(void)
{
    g_autoptr(ChJson) attachment = parse_json("{\"plugins\":[{\"type\":\"a\"},{\"type\":\"b\"}]}");
    g_autoptr(ChJson) previous = parse_json("{\"ips\":[]}");
    g_autofree char *first = ch_multus_config(attachment, 0, NULL);
    g_autofree char *second = ch_multus_config(attachment, 1, previous);

    g_assert_cmpstr(first, ==, "{\"type\":\"a\"}");
    g_assert_cmpstr(second, ==, "{\"type\":\"b\",\"prevResult\":{\"ips\":[]}}");
}

static void
test_status_annotation(void)
{
    g_autoptr(ChJson) result =
        parse_json("{\"interfaces\":[{\"name\":\"chandler0\",\"mac\":\"m0\"},"
                   "{\"name\":\"eth0\",\"mac\":\"m1\",\"sandbox\":\"/proc/1/ns/net\"}],"
                   "\"ips\":[{\"address\":\"10.213.0.2/20\"},{\"address\":\"fd00::2/64\"}]}");
    g_autoptr(ChJson) attachments = parse_json(
        "[{\"network\":\"blue\",\"definition\":\"lab/net-b\",\"link\":\"pod16477688c0e\","
        "\"result\":{\"interfaces\":[{\"name\":\"pod16477688c0e\",\"mac\":\"host\"},"
        "{\"name\":\"pod16477688c0e\",\"mac\":\"m2\",\"sandbox\":\"/n\"}]}}]");
    g_autofree char *both =
        ch_multus_status_text(&(ChMultusPodNetwork){"chandler0", result}, attachments);
    g_autofree char *one = ch_multus_status_text(&(ChMultusPodNetwork){NULL, NULL}, attachments);

    g_assert_cmpstr(one,
                    ==,
                    "[{\"name\":\"lab/net-b\",\"interface\":\"pod16477688c0e\",\"mac\":\"m2\","
                    "\"dns\":{}}]");
    g_assert_true(g_str_has_prefix(both,
                                   "[{\"name\":\"chandler0\",\"interface\":\"eth0\",\"ips\":["
                                   "\"10.213.0.2\",\"fd00::2\"],\"mac\":\"m1\",\"default\":true,"
                                   "\"dns\":{}},"));
    g_assert_true(g_str_has_suffix(both, one + 1));
}

static void
test_interfaces_of_the_vmi(void)
{
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChJson) attachments = ch_multus_attachments(vmi);
    g_autoptr(ChJson) none = ch_json_new_array();

    ch_multus_set_interfaces(vmi, none);
    g_assert_false(ch_json_has(vmi, "status"));
    ch_multus_set_interfaces(vmi, attachments);
    assert_json(ch_json_at(vmi, "status", "interfaces"),
                "[{\"name\":\"default\",\"podInterfaceName\":\"eth0\"},"
                "{\"name\":\"blue\",\"podInterfaceName\":\"pod16477688c0e\",\"infoSource\":"
                "\"multus-status\"},"
                "{\"name\":\"red\",\"podInterfaceName\":\"podb1f51a511f1\","
                "\"infoSource\":\"multus-status\"}]");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/multus/attachments", test_attachments);
    g_test_add_func("/multus/what-has-no-name", test_what_has_no_name);
    g_test_add_func("/multus/names", test_names);
    g_test_add_func("/multus/definitions", test_definitions);
    g_test_add_func("/multus/config-too-large", test_config_too_large);
    g_test_add_func("/multus/previous-result-is-told", test_previous_result_is_told);
    g_test_add_func("/multus/status-annotation", test_status_annotation);
    g_test_add_func("/multus/interfaces-of-the-vmi", test_interfaces_of_the_vmi);
    return g_test_run();
}
