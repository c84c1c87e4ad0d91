/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-json.h"

#include <libvirt/libvirt.h>

#include "local/launcher/metadata.h"
#include "local/launcher/test-golden.h"

#define UID "1111bbbb-0000-4000-8000-000000000001"

static xmlDoc *
read_xml(const char *file)
{
    g_autofree char *text = golden_read(file);
    g_autoptr(GError) error = NULL;
    xmlDoc *doc = ch_xml_parse(text, &error);

    g_assert_no_error(error);
    return doc;
}

/* The document is what a real v1.9.0 launcher answered for that domain. */
static void
test_equals_a_real_launchers_answer(void)
{
    const char *shared = g_getenv("CH_SHARED");
    g_autofree char *path =
        g_build_filename(shared == NULL ? "" : shared, "golden/launcher/GetDomain.json", NULL);
    g_autofree char *golden = NULL;
    g_autoptr(xmlDoc) doc = read_xml("domain-live.xml");
    g_autoptr(ChMetadata) metadata = ch_metadata_new(NULL, NULL);

    if (!g_file_get_contents(path, &golden, NULL, NULL)) {
        g_test_skip("the golden answer is not here: set CH_SHARED");
        return;
    }
    ch_metadata_set_uid(metadata, UID);
    ch_metadata_init_grace_period(metadata, 5);
    g_autoptr(ChJson) kept = ch_metadata_to_json(metadata);
    const ChDomainView view = {
        .name = "vm1",
        .namespace_ = "default",
        .xml = xmlDocGetRootElement(doc),
        .metadata = kept,
        .state = ch_domain_state(VIR_DOMAIN_RUNNING, VIR_DOMAIN_RUNNING_BOOTED),
    };
    g_autoptr(ChJson) json = ch_domain_json_build(&view);
    g_autofree char *text = ch_json_print(json, NULL);
    g_assert_cmpstr(text, ==, g_strchomp(golden));
}

static void
test_undefined_domain_has_an_empty_spec(void)
{
    g_autoptr(ChMetadata) metadata = ch_metadata_new(NULL, NULL);

    ch_metadata_set_uid(metadata, UID);
    g_autoptr(ChJson) kept = ch_metadata_to_json(metadata);
    const ChDomainView view = {
        .name = "vm1",
        .namespace_ = "default",
        .uid = UID,
        .deletion_us = G_GINT64_CONSTANT(1795996780) * G_USEC_PER_SEC,
        .metadata = kept,
        .state = ch_domain_state_non_existent,
    };
    g_autoptr(ChJson) json = ch_domain_json_build(&view);

    g_assert_cmpstr(ch_json_string_at(json, "ObjectMeta", "uid"), ==, UID);
    g_assert_cmpstr(
        ch_json_string_at(json, "ObjectMeta", "deletionTimestamp"), ==, "2026-11-29T23:59:40Z");
    g_assert_cmpstr(ch_json_string_at(json, "Status", "Status"), ==, "NoState");
    g_assert_cmpstr(ch_json_string_at(json, "Status", "Reason"), ==, "NonExistent");
    g_assert_cmpstr(ch_json_string_at(json, "Spec", "Metadata", "KubeVirt", "UID"), ==, UID);
    g_assert_cmpstr(ch_json_string_at(json, "Spec", "Name"), ==, "");
    g_assert_null(ch_json_at(json, "Spec", "Devices", "Disks"));
}

static void
test_agent_data_overlays_the_status(void)
{
    g_autoptr(ChMetadata) metadata = ch_metadata_new(NULL, NULL);
    g_autoptr(ChJson) kept = ch_metadata_to_json(metadata);
    g_autoptr(ChJson) interfaces = ch_json_parse("[{\"Mac\":\"m\",\"Ip\":\"i\"}]", -1, NULL);
    g_autoptr(ChJson) os_info = ch_json_parse("{\"Name\":\"Debian GNU/Linux\"}", -1, NULL);
    const ChDomainView view = {
        .name = "vm1",
        .namespace_ = "default",
        .metadata = kept,
        .state = ch_domain_state(VIR_DOMAIN_RUNNING, 1),
        .interfaces = interfaces,
        .os_info = os_info,
        .freeze_status = "frozen",
    };
    g_autoptr(ChJson) json = ch_domain_json_build(&view);

    g_assert_cmpstr(ch_json_as_string(ch_json_at(
                        ch_json_item(ch_json_at(json, "Status", "Interfaces"), 0), "Mac")),
                    ==,
                    "m");
    g_assert_cmpstr(ch_json_string_at(json, "Status", "OSInfo", "Name"), ==, "Debian GNU/Linux");
    g_assert_cmpstr(ch_json_string_at(json, "Status", "FSFreezeStatus", "Status"), ==, "frozen");
}

static const struct StateCase {
    const char *path;
    int state, reason;
    const char *status, *why;
} state_cases[] = {
    {"/domain-json/state/running", VIR_DOMAIN_RUNNING, 5, "Running", "Unknown"},
    {"/domain-json/state/starting-up", VIR_DOMAIN_PAUSED, 11, "Paused", "StartingUp"},
    {"/domain-json/state/paused-by-user", VIR_DOMAIN_PAUSED, 1, "Paused", "User"},
    {"/domain-json/state/shutting-down", VIR_DOMAIN_SHUTDOWN, 0, "ShuttingDown", "Unknown"},
    {"/domain-json/state/shut-down", VIR_DOMAIN_SHUTOFF, 1, "Shutoff", "Shutdown"},
    {"/domain-json/state/destroyed", VIR_DOMAIN_SHUTOFF, 2, "Shutoff", "Destroyed"},
    {"/domain-json/state/crashed", VIR_DOMAIN_CRASHED, 1, "Crashed", "Panicked"},
    {"/domain-json/state/unknown-reason", VIR_DOMAIN_SHUTOFF, 99, "Shutoff", ""},
    {"/domain-json/state/unknown-state", 42, 0, "", ""},
    {"/domain-json/state/negative", -1, -1, "", ""},
};

static void
test_state(gconstpointer data)
{
    const struct StateCase *c = data;
    const ChDomainState state = ch_domain_state(c->state, c->reason);

    g_assert_cmpstr(state.status, ==, c->status);
    g_assert_cmpstr(state.reason, ==, c->why);
}

int
main(int argc, char **argv)
{
    ch_xml_init();
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/domain-json/equals-a-real-launchers-answer",
                    test_equals_a_real_launchers_answer);
    g_test_add_func("/domain-json/undefined-domain-has-an-empty-spec",
                    test_undefined_domain_has_an_empty_spec);
    g_test_add_func("/domain-json/agent-data-overlays-the-status",
                    test_agent_data_overlays_the_status);
    for (gsize i = 0; i < G_N_ELEMENTS(state_cases); i++)
        g_test_add_data_func(state_cases[i].path, &state_cases[i], test_state);
    return g_test_run();
}
