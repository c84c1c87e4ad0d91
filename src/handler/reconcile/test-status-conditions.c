/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/status-internal.h"
#include "handler/reconcile/test-support.h"

#define NOW            "2026-11-29T00:00:00Z"
#define RUNNING        "{'Status':{'Status':'Running'}}"
#define PAUSED(reason) "{'Status':{'Status':'Paused','Reason':'" reason "'}}"
#define CREDENTIAL(members)                                                                        \
    "{'Spec':{'Metadata':{'KubeVirt':{'AccessCredential':{" members                                \
    "}}}},'Status':{'Status':'Running'}}"
#define SYNCED    "{'type':'AccessCredentialsSynchronized','status':'True','lastProbeTime':null"
#define MIGRATION "'migrationState':{'mode':'Paused','sourceNode':'node01','targetNodeAddress':'a'}"

#define NO_TIMES "'lastProbeTime':null,'lastTransitionTime':null"

/* NULL expectation: there is no such condition. */
static const struct ConditionCase {
    const char *path, *type;
    const char *status; /* of the VMI, after the phase */
    const char *domain;
    const char *expect;
    const char *event; /* message; NULL: none */
} cases[] = {
    /* clang-format off */
    /* spec:02-14.3#1 spec:01#41 */
    {"/conditions/paused-by-user", "Paused", "", PAUSED("User"),
     "{'type':'Paused','status':'True','lastProbeTime':'" NOW "','lastTransitionTime':'" NOW "','reason':'PausedByUser','message':'VMI was paused by user'}", NULL},
    {"/conditions/paused-by-io-error", "Paused", "", PAUSED("IOError"),
     "{'type':'Paused','status':'True','lastProbeTime':'" NOW "','lastTransitionTime':'" NOW "','reason':'PausedIOError','message':'VMI was paused, low-level IO error detected'}", NULL},
    /* spec:02-14.3#2 spec:01#41 */
    {"/conditions/paused-by-migration", "Paused", "", PAUSED("Migration"), NULL, NULL},
    {"/conditions/paused-by-migration-monitor", "Paused", MIGRATION, PAUSED("Migration"),
     "{'type':'Paused','status':'True','lastProbeTime':'" NOW "','lastTransitionTime':'" NOW "','reason':'PausedByMigrationMonitor','message':'VMI was paused by the migration monitor'}", NULL},
    {"/conditions/other-pauses-are-not-shown", "Paused", "", PAUSED("Snapshot"), NULL, NULL},
    /* spec:02-14.13#10 */
    {"/conditions/pause-reason-is-not-refreshed", "Paused", "'conditions':[{'type':'Paused','status':'True'," NO_TIMES ",'reason':'PausedByUser'}]", PAUSED("IOError"),
     "{'type':'Paused','status':'True'," NO_TIMES ",'reason':'PausedByUser'}", NULL},
    /* spec:02-14.3#1 spec:01#41 */
    {"/conditions/unpaused", "Paused", "'conditions':[{'type':'Paused','status':'True'},{'type':'Paused','status':'True'}]", RUNNING, NULL, NULL},
    /* spec:02-14.2#4 spec:01#40 */
    {"/conditions/04-credentials-synced", "AccessCredentialsSynchronized", "", CREDENTIAL("'Succeeded':true"), SYNCED ",'lastTransitionTime':'" NOW "'}", "Access credentials sync successful."},
    {"/conditions/credentials-synced-with-message", "AccessCredentialsSynchronized", "", CREDENTIAL("'Succeeded':true,'Message':'m'"), SYNCED ",'lastTransitionTime':'" NOW "','message':'m'}", "Access credentials sync successful: m"},
    /* spec:02-14.2#5 spec:01#40 */
    {"/conditions/05-credentials-known", "AccessCredentialsSynchronized", "'conditions':[" SYNCED ",'lastTransitionTime':null}]", CREDENTIAL("'Succeeded':true"), SYNCED ",'lastTransitionTime':null}", NULL},
    /* spec:02-14.2#6 spec:01#40 */
    {"/conditions/06-credentials-failed", "AccessCredentialsSynchronized", "'conditions':[" SYNCED "}]", CREDENTIAL("'Succeeded':false,'Message':'some message'"),
     "{'type':'AccessCredentialsSynchronized','status':'False','lastProbeTime':null,'lastTransitionTime':'" NOW "','message':'some message'}", "Access credentials sync failed: some message"},
    {"/conditions/credentials-are-never-removed", "AccessCredentialsSynchronized", "'conditions':[" SYNCED ",'lastTransitionTime':null}]", RUNNING, SYNCED ",'lastTransitionTime':null}", NULL},
    {"/conditions/23-synchronized-is-removed", "Synchronized", "'conditions':[{'type':'Synchronized','status':'False'}]", RUNNING, NULL, NULL},
    {"/conditions/emulation-without-gate", "SoftwareEmulation", "'conditions':[{'type':'SoftwareEmulation','status':'True'," NO_TIMES "}]", RUNNING, "{'type':'SoftwareEmulation','status':'True'," NO_TIMES "}", NULL},
    /* clang-format on */
};

static void
test_condition(gconstpointer data)
{
    const struct ConditionCase *c = data;
    g_autofree char *status =
        g_strconcat("'phase':'Running'", c->status[0] != '\0' ? "," : "", c->status, NULL);
    g_autoptr(ChStatusResult) result = run_status("", status, c->domain, NULL);

    if (c->expect == NULL)
        g_assert_null(condition_of(result, c->type));
    else
        assert_json(condition_of(result, c->type), c->expect);
    g_assert_cmpuint(result->events->len, ==, c->event != NULL ? 1 : 0);
    if (c->event != NULL)
        g_assert_cmpstr(((const ChEvent *)result->events->pdata[0])->message, ==, c->event);
}

static guint
n_conditions(const ChStatusResult *result, const char *type)
{
    const ChJson *list = ch_json_at(result->vmi, "status", "conditions");
    guint n = 0;

    for (gsize i = 0; i < ch_json_length(list); i++)
        n += g_strcmp0(ch_json_string_at(ch_json_item(list, i), "type"), type) == 0;
    return n;
}

static const struct EmulationCase {
    const char *type, *architecture;
    bool has_gate, expect;
} emulations[] = {
    {"qemu", "arm64", false, false}, /* spec:02-14.3#3 spec:01#48 */
    {"kvm", "amd64", true, false},   /* spec:02-14.3#4 spec:02-14.3#7 */
    {"qemu", "amd64", true, false},
    {"kvm", "arm64", true, false},
    {"qemu", "arm64", true, true}, /* spec:02-14.3#5 spec:02-14.3#6 spec:01#48 */
    {"qemu", "", true, false},
};

/* @again starts with the condition: without the gate nobody looks at it. */
static void
test_emulation(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(emulations); i++) {
        const struct EmulationCase *c = &emulations[i];
        const ChStatusNode node = {
            .name = "n", .architecture = "amd64", .gate_cross_architecture = c->has_gate};
        g_autofree char *spec = g_strdup_printf("'architecture':'%s'", c->architecture);
        g_autofree char *domain =
            g_strdup_printf("{'Spec':{'Type':'%s'},'Status':{'Status':'Running'}}", c->type);
        g_autoptr(ChStatusResult) fresh = run_status(spec, "'phase':'Running'", domain, &node);
        g_autoptr(ChStatusResult) again = run_status(
            spec,
            "'phase':'Running','conditions':[{'type':'SoftwareEmulation','status':'True'}]",
            domain,
            &node);

        g_assert_true((condition_of(fresh, "SoftwareEmulation") != NULL) == c->expect);
        g_assert_true((condition_of(again, "SoftwareEmulation") != NULL) ==
                      (c->expect || !c->has_gate));
        g_assert_cmpuint(n_conditions(again, "SoftwareEmulation"),
                         ==,
                         c->expect || !c->has_gate ? 1 : 0); /* called twice: one entry */
        if (c->expect)
            g_assert_cmpstr(ch_json_string_at(condition_of(fresh, "SoftwareEmulation"), "message"),
                            ==,
                            "VM running with software emulation (host=amd64, guest=arm64)");
    }
}

/* spec:02-14.13#13: neither message nor time follow while the reason is the same. */
static void
test_synchronized_is_not_refreshed(void)
{
    g_autoptr(ChJson) vmi = parse_json(
        "{'status':{'phase':'Running','conditions':[{'type':'Synchronized','status':'False',"
        "'reason':'Synchronizing with the Domain failed.','message':'old'}]}}");
    g_autoptr(ChDomain) domain = parse_domain(RUNNING);
    g_autoptr(ChStatusResult) result = ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .sync = CH_SYNC_FAILED,
            .sync_text = "new",
            .now_us = TEST_NOW_US,
        },
        &test_node);

    g_assert_cmpstr(ch_json_string_at(condition_of(result, "Synchronized"), "message"), ==, "old");
}

static const struct UpdateCase {
    const char *before, *status, *reason, *message;
    const char *expect; /* the list */
} updates[] = {
    /* clang-format off */
    /* spec:02-14.11#1 */
    {"{'type':'A','status':'True','reason':'r'},{'type':'B'}", "False", "r", "m",
     "[{'type':'A','status':'False','reason':'r'," NO_TIMES ",'message':'m'},{'type':'B'}]"},
    /* spec:02-14.11#2 */
    {"{'type':'A','status':'True','reason':'r'},{'type':'B'}", "True", "s", "m",
     "[{'type':'A','status':'True','reason':'s'," NO_TIMES ",'message':'m'},{'type':'B'}]"},
    /* spec:02-14.11#3 */
    {"{'type':'A','status':'True','reason':'r','message':'old'},{'type':'B'}", "True", "r", "m",
     "[{'type':'A','status':'True','reason':'r','message':'old'},{'type':'B'}]"},
    {"{'type':'B'}", "True", "r", NULL, "[{'type':'B'},{'type':'A','status':'True'," NO_TIMES ",'reason':'r'}]"},
    /* clang-format on */
};

/* spec:02-14.11#5: the second time finds the first one's entry. */
static void
test_update_replaces_in_place(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(updates); i++) {
        const struct UpdateCase *c = &updates[i];
        const ChStatusInput input = {.now_us = TEST_NOW_US};
        const ChCondition condition = {
            .type = "A", .status = c->status, .reason = c->reason, .message = c->message};
        g_autofree char *text = g_strdup_printf("{'conditions':[%s]}", c->before);
        g_autoptr(ChJson) status = parse_json(text);
        ChStatusPass pass = {.input = &input, .status = status};

        for (int n = 0; n < 2; n++) {
            ch_condition_update(&pass, &condition);
            assert_json(ch_json_at(status, "conditions"), c->expect);
        }
    }
}

/* spec:02-14.11#4 spec:02-14.11#6: what is not there is not found, with or without a list. */
static void
test_find(void)
{
    g_autoptr(ChJson) status = parse_json("{'conditions':[{'type':'B'},{'type':'A','n':1},7,"
                                          "{'type':'A','n':2}]}");
    g_autoptr(ChJson) bare = parse_json("{}");

    g_assert_null(ch_condition_find(NULL, "A"));
    g_assert_null(ch_condition_find(bare, "A"));
    g_assert_null(ch_condition_find(status, "C"));
    assert_json(ch_condition_find(status, "A"), "{'type':'A','n':1}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_condition);
    g_test_add_func("/conditions/emulation", test_emulation);
    g_test_add_func("/conditions/update-replaces-in-place", test_update_replaces_in_place);
    g_test_add_func("/conditions/find", test_find);
    g_test_add_func("/conditions/synchronized-is-not-refreshed",
                    test_synchronized_is_not_refreshed);
    return g_test_run();
}
