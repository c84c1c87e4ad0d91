/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/test-support.h"

#define AGENT(state, more)                                                                         \
    "{'Spec':{'Devices':{'Channels':[{'Target':{'Name':'org.qemu.guest_agent.0','State':'" state   \
    "'}}]}},'Status':{'Status':'Running'" more "}}"

static ChStatusResult *
run(const char *status, const char *domain_text, const char *info_text)
{
    g_autofree char *vmi_text = g_strdup_printf("{'status':{'phase':'Running',%s}}", status);
    g_autofree char *info_quoted = double_quoted(info_text);
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChDomain) domain = parse_domain(domain_text);
    g_autoptr(ChGuestInfo) info = ch_guest_info_parse(info_quoted, -1, NULL);

    return ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .guest_info = ch_status_wants_guest_info(domain) ? info : NULL,
            .now_us = TEST_NOW_US,
        },
        &test_node);
}

/* spec:02-14.2#1 spec:01#39 */
static void
test_connected_and_empty(void)
{
    g_autoptr(ChStatusResult) result = run("'x':1", AGENT("connected", ""), "{}");

    assert_json(condition_of(result, "AgentConnected"),
                "{'type':'AgentConnected','status':'True','lastTransitionTime':null,"
                "'lastProbeTime':'2026-11-29T00:00:00Z'}");
    assert_json(condition_of(result, "AgentVersionNotSupported"),
                "{'type':'AgentVersionNotSupported','status':'True','lastTransitionTime':null,"
                "'lastProbeTime':'2026-11-29T00:00:00Z',"
                "'reason':'Guest agent version \\u0027\\u0027 is not supported'}");
}

#define PROBED "'lastProbeTime':'2026-01-01T00:00:00Z','lastTransitionTime':null"
#define BOTH                                                                                       \
    "'conditions':[{'type':'AgentConnected','status':'True'," PROBED "},"                          \
    "{'type':'AgentVersionNotSupported','status':'True','reason':'old'," PROBED "},"               \
    "{'type':'LiveMigratable','status':'True'}]"

/* spec:02-14.2#2: neither time nor reason follow. */
static void
test_still_unsupported(void)
{
    g_autoptr(ChStatusResult) result = run(BOTH, AGENT("connected", ""), "{}");

    assert_json(condition_of(result, "AgentConnected"),
                "{'type':'AgentConnected','status':'True'," PROBED "}");
    assert_json(condition_of(result, "AgentVersionNotSupported"),
                "{'type':'AgentVersionNotSupported','status':'True','reason':'old'," PROBED "}");
}

/* spec:02-14.2#3 spec:01#39 spec:02-14.13#9: the verdict outlives the connection. */
static void
test_disconnected(void)
{
    g_autoptr(ChStatusResult) result = run(BOTH, AGENT("disconnected", ""), "{}");

    g_assert_null(condition_of(result, "AgentConnected"));
    g_assert_nonnull(condition_of(result, "AgentVersionNotSupported"));
    g_assert_nonnull(condition_of(result, "LiveMigratable"));
}

/* Nobody is asked in a guest that ended, and nobody is connected to. */
static void
test_ended_guest_has_no_agent(void)
{
    static const char ended[] =
        "{'Spec':{'Devices':{'Channels':[{'Target':{'Name':'org.qemu.guest_agent.0','State':"
        "'connected'}}]}},'Status':{'Status':'Shutoff','Reason':'Shutdown'}}";
    g_autoptr(ChDomain) domain = parse_domain(ended);
    g_autoptr(ChStatusResult) result = run(BOTH, ended, "{}");

    g_assert_false(ch_status_wants_guest_info(domain));
    g_assert_null(condition_of(result, "AgentConnected"));
    g_assert_cmpint(result->phase, ==, CH_PHASE_SUCCEEDED);
}

static void
test_supported(void)
{
    g_autoptr(ChStatusResult) result =
        run(BOTH, AGENT("connected", ""), "{'guestAgentVersion':'4.2'}");

    g_assert_nonnull(condition_of(result, "AgentConnected"));
    g_assert_null(condition_of(result, "AgentVersionNotSupported"));
}

#define OS                                                                                         \
    ",'OSInfo':{'Name':'n','KernelRelease':'kr','Version':'v','PrettyName':'p','VersionId':'vi',"  \
    "'KernelVersion':'kv','Machine':'m','Id':'i'}"

/* spec:02-14.8#2 spec:01#46 spec:02-14.13#7 */
static void
test_guest_os(void)
{
    g_autoptr(ChStatusResult) fresh = run("'guestOSInfo':{}", AGENT("disconnected", OS), "{}");
    g_autoptr(ChStatusResult) same_name =
        run("'guestOSInfo':{'name':'n','version':'old'}", AGENT("disconnected", OS), "{}");
    g_autoptr(ChStatusResult) silent =
        run("'guestOSInfo':{'name':'n'}", AGENT("disconnected", ",'OSInfo':{}"), "{}");

    assert_json(ch_json_at(fresh->vmi, "status", "guestOSInfo"),
                "{'name':'n','kernelRelease':'kr','version':'v','prettyName':'p',"
                "'versionId':'vi','kernelVersion':'kv','machine':'m','id':'i'}");
    assert_json(ch_json_at(same_name->vmi, "status", "guestOSInfo"),
                "{'name':'n','version':'old'}");
    assert_json(ch_json_at(silent->vmi, "status", "guestOSInfo"), "{'name':'n'}");
}

static const struct FreezeCase {
    const char *reported, *before, *expect;
} freezes[] = {
    {"frozen", "", "frozen"},   /* spec:02-14.8#3 */
    {"thawed", "frozen", NULL}, /* spec:02-14.8#4 */
    {"", "frozen", "frozen"},
};

/* Silence is no news (trap 17). */
static void
test_freeze(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(freezes); i++) {
        g_autofree char *domain =
            g_strdup_printf("{'Status':{'Status':'Running','FSFreezeStatus':{'Status':'%s'}}}",
                            freezes[i].reported);
        g_autofree char *status = g_strdup_printf("'fsFreezeStatus':'%s'", freezes[i].before);
        g_autoptr(ChStatusResult) result = run(status, domain, "{}");

        g_assert_cmpstr(
            ch_json_string_at(result->vmi, "status", "fsFreezeStatus"), ==, freezes[i].expect);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/agent/01-connected-and-empty", test_connected_and_empty);
    g_test_add_func("/agent/02-still-unsupported", test_still_unsupported);
    g_test_add_func("/agent/03-disconnected", test_disconnected);
    g_test_add_func("/agent/ended-guest-has-no-agent", test_ended_guest_has_no_agent);
    g_test_add_func("/agent/supported", test_supported);
    g_test_add_func("/agent/guest-os", test_guest_os);
    g_test_add_func("/agent/freeze", test_freeze);
    return g_test_run();
}
