/* SPDX-License-Identifier: Apache-2.0 */

/*
 * decide and status together against recordings of the upstream agent: a scripted launcher and API
 * server, as shared/golden/README.md describes them, and every write and RPC in order.
 */

#include "handler/reconcile/status.h"

#include "handler/reconcile/decide.h"
#include "handler/reconcile/test-status-property.h"
#include "handler/reconcile/test-support.h"
#include "lib/base/time.h"

#define UID "1111bbbb-0000-4000-8000-000000000001"

/* --- the scripted launcher --- */

typedef struct {
    bool has_domain;
    const char *status, *reason;
    bool was_signalled; /* the grace period has its deletion timestamp */
    bool has_agent;
    bool is_deleted;
} Launcher;

static char *
print_domain(const Launcher *launcher)
{
    return g_strdup_printf(
        "{'kind':'Domain','apiVersion':'','ObjectMeta':{'name':'vm','namespace':'default',"
        "'uid':'" UID "'%s},'Spec':{'XMLName':{'Space':'','Local':''},'Name':'default_vm',"
        "'Type':'qemu','Metadata':{'KubeVirt':{'UID':'" UID
        "','GracePeriod':{'DeletionGracePeriodSeconds':5%s}}},"
        "'Devices':{'Channels':[{'Type':'unix','Target':{'Name':'org.qemu.guest_agent.0',"
        "'State':'%s'}}]}},'Status':{'Status':'%s','Reason':'%s','Interfaces':%s,'OSInfo':%s,"
        "'FSFreezeStatus':{'Status':''}}}",
        launcher->is_deleted ? ",'deletionTimestamp':'2026-11-29T00:00:00Z'" : "",
        launcher->was_signalled ? ",'DeletionTimestamp':'2026-11-29T00:00:00Z'" : "",
        launcher->has_agent ? "connected" : "disconnected",
        launcher->status,
        launcher->reason,
        launcher->has_agent ? "[{'Name':'default','Mac':'02:00:00:00:00:01','Ip':'10.0.2.2',"
                              "'IPs':['10.0.2.2'],'InterfaceName':'eth0',"
                              "'infoSource':'domain, guest-agent'}]"
                            : "null",
        launcher->has_agent ? "{'Name':'Debian GNU/Linux','KernelRelease':'6.1.0-40-cloud-amd64',"
                              "'Version':'12 (bookworm)',"
                              "'PrettyName':'Debian GNU/Linux 12 (bookworm)','VersionId':'12',"
                              "'KernelVersion':'#1 SMP','Machine':'x86_64','Id':'debian'}"
                            : "{}");
}

/* --- one agent, one VMI --- */

typedef struct {
    ChJson *vmi; /* as the API server has it */
    Launcher launcher;
    bool has_pod;
    ChLauncherState probed; /* what 01 §14.4 answers */
    GPtrArray *puts;        /* ChJson */
    GString *events;        /* "reason: message\n" */
    GString *rpcs;          /* "name\n" */
} World;

static void
world_clear(World *world)
{
    ch_json_unref(world->vmi);
    g_ptr_array_unref(world->puts);
    g_string_free(world->events, TRUE);
    g_string_free(world->rpcs, TRUE);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(World, world_clear)

static void
json_unref(void *json)
{
    ch_json_unref(json);
}

static void
record(World *world, ChEvent *event)
{
    g_autofree char *line =
        g_strdup_printf("%s %s: %s", event->type, event->reason, event->message);

    if (strstr(world->events->str, line) == NULL) /* the same event again is a PATCH */
        g_string_append_printf(world->events, "%s\n", line);
}

static void
record_kind(World *world, ChEventKind kind)
{
    g_autoptr(ChEvent) event = ch_event_new(kind, NULL);

    record(world, event);
}

static void
call(World *world, const char *rpc)
{
    g_string_append_printf(world->rpcs, "%s\n", rpc);
}

/* 01 §21.1; a launcher that is gone is only cleaned up after. */
static void
delete_domain(World *world)
{
    if (!world->has_pod)
        return;
    record_kind(world, CH_EVENT_SIGNALED_DELETION);
    call(world, "DeleteVirtualMachine");
}

static void
shut_down(World *world, const ChShutdownPlan *plan)
{
    g_assert_true(plan->step == CH_SHUTDOWN_SIGNAL_FIRST || plan->step == CH_SHUTDOWN_SIGNAL_AGAIN);
    if (plan->step == CH_SHUTDOWN_SIGNAL_FIRST)
        record_kind(world, CH_EVENT_SHUTTING_DOWN);
    call(world, "ShutdownVirtualMachine");
    world->launcher.was_signalled = true;
}

static void
sync_domain(World *world, bool is_new)
{
    call(world, "SyncVirtualMachine");
    if (is_new)
        record_kind(world, CH_EVENT_CREATED);
    if (world->launcher.has_domain)
        return;
    world->launcher.has_domain = true;
    world->launcher.status = "Paused";
    world->launcher.reason = "StartingUp";
}

static void
act(World *world, const ChDecision *decision, const ChDomain *domain)
{
    const ChAction action = decision->action;

    if (action == CH_ACTION_DELETE)
        delete_domain(world);
    else if (action == CH_ACTION_SHUT_DOWN)
        shut_down(world, &decision->shutdown);
    else if (action == CH_ACTION_START || action == CH_ACTION_UPDATE)
        sync_domain(world, domain == NULL);
    else if (action != CH_ACTION_IGNORE && action != CH_ACTION_NONE && action != CH_ACTION_LISTEN)
        g_error("unexpected action: %s", ch_action_text(action));
}

/* Nothing is news a second time: the same observations on the written document. */
static void
assert_settled(const ChStatusInput *input, const ChJson *written)
{
    ChStatusInput again = *input;
    g_autoptr(ChStatusResult) result = NULL;

    again.vmi = written;
    again.sync = CH_SYNC_OK;
    again.now_us = input->now_us + 1234567;
    result = ch_status(&again, &test_node);
    g_assert_false(result->changed);
    g_assert_false(result->phase_changed);
    g_assert_cmpuint(result->events->len, ==, 0);
}

static void
update_status(World *world, const ChDomain *domain)
{
    g_autoptr(ChGuestInfo) guest_info = ch_guest_info_parse("", 0, NULL);
    const ChStatusInput input = {
        .vmi = world->vmi,
        .domain = domain,
        .launcher = world->probed,
        .guest_info = ch_status_wants_guest_info(domain) ? guest_info : NULL,
        .selinux_context = "none",
        .now_us = TEST_NOW_US,
    };
    g_autoptr(ChStatusResult) result = ch_status(&input, &test_node);

    for (guint i = 0; i < result->events->len; i++)
        record(world, result->events->pdata[i]);
    if (!result->changed)
        return;
    assert_settled(&input, result->vmi);
    g_ptr_array_add(world->puts, ch_json_ref(result->vmi));
    if (result->phase_event != NULL)
        record(world, result->phase_event);
    ch_json_unref(world->vmi);
    world->vmi = ch_json_ref(result->vmi);
}

/* Until nothing is written any more: each write comes back through the watch. */
static void
settle(World *world)
{
    guint n_puts;

    do {
        g_autofree char *text = world->launcher.has_domain ? print_domain(&world->launcher) : NULL;
        g_autoptr(ChDomain) domain = parse_domain(text);
        ChVmiView vmi;
        ChFacts facts = {
            .node = "node01",
            .vmi = &vmi,
            .existence = CH_EXISTENCE_EXISTS,
            .domain = domain,
            .expectations_satisfied = true,
            .now_us = TEST_NOW_US,
        };
        ChDecision decision;

        n_puts = world->puts->len;
        ch_vmi_view_init(&vmi, world->vmi);
        decision = ch_decide(&facts);
        if (decision.action == CH_ACTION_PROBE_LAUNCHER) {
            facts.launcher = world->probed;
            decision = ch_decide(&facts);
        }
        act(world, &decision, ch_domain_live(domain));
        if (decision.updates_status)
            update_status(world, domain);
    } while (world->puts->len > n_puts);
}

/* The launcher reports a new state of the domain. */
static void
report(World *world, const char *status, const char *reason)
{
    world->launcher.status = status;
    world->launcher.reason = reason;
    settle(world);
}

/* --- the scenarios --- */

static void
start(World *world)
{
    settle(world); /* SyncVirtualMachine, PUT; the launcher defines */
    settle(world); /* Paused, StartingUp */
    report(world, "Running", "Unknown");
}

static void
play_start(World *world)
{
    start(world);
}

static void
play_root(World *world)
{
    ch_json_set_int(ch_json_at(world->vmi, "status"), "runtimeUser", 0);
    start(world);
}

static void
play_ports(World *world)
{
    ChJson *interface =
        ch_json_item(ch_json_at(world->vmi, "spec", "domain", "devices", "interfaces"), 0);

    ch_json_set(interface,
                "ports",
                parse_json("[{'name':'http','port':80,'protocol':'TCP'},"
                           "{'port':53,'protocol':'UDP'}]"));
    start(world);
}

static void
play_foreign(World *world)
{
    ch_json_set_string(ch_json_at(world->vmi, "metadata", "labels"), CH_LABEL_NODE_NAME, "node02");
    ch_json_set_string(ch_json_at(world->vmi, "status"), "nodeName", "node02");
    settle(world);
}

static void
play_no_pod(World *world)
{
    const char *pod = "aaaabbbb-0000-4000-8000-000000000099";
    ChJson *pods = ch_json_new_object();

    ch_json_set_string(pods, pod, "node01");
    ch_json_set(ch_json_at(world->vmi, "status"), "activePods", pods);
    ch_json_set_string(ch_json_at(world->vmi, "metadata", "labels"),
                       "kubevirt.io/created-by",
                       "1111bbbb-0000-4000-8000-000000000099");
    world->has_pod = false;
    world->probed = CH_LAUNCHER_UNRESPONSIVE;
    settle(world);
}

static void
end(World *world)
{
    report(world, "Shutoff", "Shutdown");
    world->launcher.is_deleted = true;
    world->has_pod = false;
    settle(world);
}

static void
play_guest_shutdown(World *world)
{
    start(world);
    end(world);
}

static void
play_graceful_delete(World *world)
{
    start(world);
    ch_json_set_string(
        ch_json_at(world->vmi, "metadata"), "deletionTimestamp", "2026-11-29T00:00:00Z");
    settle(world);                        /* first signal */
    report(world, "Shutdown", "Unknown"); /* as recorded: not libvirt's word, so it is alive */
    end(world);
}

static void
play_pause(World *world)
{
    start(world);
    report(world, "Paused", "User");
    report(world, "Running", "Unpaused");
}

static void
play_agent(World *world)
{
    start(world);
    world->launcher.has_agent = true;
    settle(world);
}

static void
play_restart(World *world)
{
    start(world);
    call(world, "GetDomain");
    settle(world);
}

static const struct Scenario {
    const char *name, *vmi;
    void (*play)(World *world);
} scenarios[] = {
    {"start_plain", "vmi-plain", play_start},
    {"root_vm", "vmi-plain", play_root},
    {"foreign_node", "vmi-plain", play_foreign},
    {"no_pod", "vmi-plain", play_no_pod},
    {"graceful_delete", "vmi-plain", play_graceful_delete},
    {"guest_shutdown", "vmi-plain", play_guest_shutdown},
    {"pause_unpause", "vmi-plain", play_pause},
    {"handler_restart", "vmi-plain", play_restart},
    {"start_masquerade", "vmi-masquerade", play_start},
    {"start_ports", "vmi-masquerade", play_ports},
    {"agent", "vmi-masquerade", play_agent},
};

/* --- recordings --- */

static ChJson *
load(const char *name)
{
    const char *shared = g_getenv("CH_SHARED");
    g_autofree char *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = g_build_filename(shared != NULL ? shared : "", "golden", file, NULL);
    g_autofree char *text = NULL;
    gsize length;

    if (!g_file_get_contents(path, &text, &length, NULL))
        return NULL;
    return ch_json_parse(text, (gssize)length, NULL);
}

/* Times become "T"; lists that the upstream types leave out when empty are left out. */
static ChJson *
normalised(const ChJson *json)
{
    ChJsonIter iter;
    const char *key;
    ChJson *value;
    ChJson *copy;

    if (ch_json_is_array(json)) {
        copy = ch_json_new_array();
        for (gsize i = 0; i < ch_json_length(json); i++)
            ch_json_append(copy, normalised(ch_json_item(json, i)));
        return copy;
    }
    if (!ch_json_is_object(json))
        return json != NULL ? ch_json_dup(json) : NULL;

    copy = ch_json_new_object();
    ch_json_iter_init(&iter, json);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (ch_json_is_array(value) && ch_json_length(value) == 0)
            continue;
        if (ch_json_is_string(value) &&
            (g_str_has_suffix(key, "Time") || g_str_has_suffix(key, "Timestamp")))
            ch_json_set_string(copy, key, "T");
        else
            ch_json_set(copy, key, normalised(value));
    }
    return copy;
}

static void
assert_same(const ChJson *ours, const ChJson *theirs, const char *what)
{
    g_autoptr(ChJson) a = normalised(ours);
    g_autoptr(ChJson) b = normalised(theirs);
    g_autofree char *a_text = a != NULL ? ch_json_print(a, NULL) : g_strdup("none");
    g_autofree char *b_text = b != NULL ? ch_json_print(b, NULL) : g_strdup("none");

    if (a != b && (a == NULL || b == NULL || !ch_json_equal(a, b)))
        g_error("%s differs\nours:   %s\ntheirs: %s", what, a_text, b_text);
}

static void
compare_puts(const World *world, const ChJson *recording)
{
    const ChJson *puts = ch_json_at(recording,
                                    "writes",
                                    "/apis/kubevirt.io/v1/namespaces/default/"
                                    "virtualmachineinstances/vm");

    g_assert_cmpuint(world->puts->len, ==, ch_json_length(puts));
    for (guint i = 0; i < world->puts->len; i++) {
        const ChJson *body = ch_json_at(ch_json_item(puts, i), "body");
        const ChJson *vmi = world->puts->pdata[i];

        assert_same(ch_json_at(vmi, "status"), ch_json_at(body, "status"), "status");
        assert_same(ch_json_at(vmi, "spec"), ch_json_at(body, "spec"), "spec");
        assert_same(ch_json_at(vmi, "metadata", "labels"), ch_json_at(body, "labels"), "labels");
        assert_same(ch_json_at(vmi, "metadata", "finalizers"),
                    ch_json_at(body, "finalizers"),
                    "finalizers");
    }
}

/* Those that are POSTed; a PATCH repeats one. */
static void
compare_events(const World *world, const ChJson *recording)
{
    const ChJson *writes = ch_json_at(recording, "writes", "/events");
    g_autoptr(GString) theirs = g_string_new(NULL);

    for (gsize i = 0; i < ch_json_length(writes); i++) {
        const ChJson *body = ch_json_at(ch_json_item(writes, i), "body");

        if (ch_json_string_at(body, "reason") != NULL)
            g_string_append_printf(theirs,
                                   "%s %s: %s\n",
                                   ch_json_string_at(body, "type"),
                                   ch_json_string_at(body, "reason"),
                                   ch_json_string_at(body, "message"));
    }
    g_assert_cmpstr(world->events->str, ==, theirs->str);
}

/* Names only: the options are the launcher room's. */
static void
compare_rpcs(const World *world, const ChJson *recording)
{
    const ChJson *calls = ch_json_at(recording, "rpcs", "vm");
    g_autoptr(GString) theirs = g_string_new(NULL);

    for (gsize i = 0; i < ch_json_length(calls); i++) {
        g_auto(GStrv) parts = g_strsplit(ch_json_as_string(ch_json_item(calls, i)), ":", 2);

        g_string_append_printf(theirs, "%s\n", parts[0]);
    }
    g_assert_cmpstr(world->rpcs->str, ==, theirs->str);
}

static void
test_scenario(gconstpointer data)
{
    const struct Scenario *scenario = data;
    g_autoptr(ChJson) recording = load(scenario->name);
    g_auto(World) world = {
        .vmi = load(scenario->vmi),
        .has_pod = true,
        .probed = CH_LAUNCHER_RESPONSIVE,
        .puts = g_ptr_array_new_with_free_func(json_unref),
        .events = g_string_new(NULL),
        .rpcs = g_string_new(NULL),
    };

    if (recording == NULL || world.vmi == NULL) {
        g_test_skip("no recordings: set CH_SHARED");
        return;
    }
    scenario->play(&world);
    compare_puts(&world, recording);
    compare_events(&world, recording);
    compare_rpcs(&world, recording);
}

/* --- the real launcher's domain, and what the upstream agent wrote for it --- */

static const ChJson *
recorded_put(const ChJson *writes, gsize wanted)
{
    for (gsize i = 0; i < ch_json_length(writes); i++)
        if (g_strcmp0(ch_json_string_at(ch_json_item(writes, i), "method"), "PUT") == 0 &&
            wanted-- == 0)
            return ch_json_at(ch_json_item(writes, i), "body");
    return NULL;
}

static void
test_real_domain(void)
{
    static const char *const ips[] = {"10.244.0.3", NULL};
    static const ChPodAddresses addresses = {"default", "10.244.0.3", ips};
    g_autoptr(ChJson) document = load("launcher/GetDomain");
    g_autoptr(ChJson) writes = load("launcher/writes");
    g_autofree char *text = document != NULL ? ch_json_print(document, NULL) : NULL;
    g_autoptr(ChDomain) domain = NULL;
    g_autoptr(ChStatusResult) result = NULL;

    if (document == NULL || writes == NULL) {
        g_test_skip("no recordings: set CH_SHARED");
        return;
    }
    domain = ch_domain_parse(text, -1, NULL);
    g_assert_nonnull(domain);
    result = ch_status(
        &(ChStatusInput){
            .vmi = recorded_put(writes, 0),
            .domain = domain,
            .selinux_context = "none",
            .pod_addresses = &addresses,
            .n_pod_addresses = 1,
            .now_us = TEST_NOW_US,
        },
        &test_node);
    g_assert_true(result->changed);
    assert_same(
        ch_json_at(result->vmi, "status"), ch_json_at(recorded_put(writes, 1), "status"), "status");
}

/* --- rules of the whole --- */

#define SCHEDULED                                                                                  \
    "{'metadata':{'name':'vm','namespace':'ns','uid':'u'},'spec':{},"                              \
    "'status':{'phase':'Scheduled','guestOSInfo':{},'runtimeUser':107}}"

static ChStatusResult *
run(const char *vmi_text, const char *domain_text, ChSyncOutcome sync, const char *sync_text)
{
    g_autoptr(ChJson) vmi = parse_json(vmi_text);
    g_autoptr(ChDomain) domain = parse_domain(domain_text);

    return ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .launcher = CH_LAUNCHER_RESPONSIVE,
            .sync = sync,
            .sync_text = sync_text,
            .now_us = TEST_NOW_US,
        },
        &test_node);
}

/* spec:02-14.1#20 */
static void
test_running_from_scheduled(void)
{
    g_autoptr(ChStatusResult) result =
        run(SCHEDULED, "{'Status':{'Status':'Running'}}", CH_SYNC_OK, NULL);

    g_assert_true(result->changed && result->phase_changed);
    g_assert_cmpint(result->phase, ==, CH_PHASE_RUNNING);
    g_assert_cmpstr(result->phase_event->reason, ==, "Started");
    assert_json(ch_json_at(result->vmi, "status"),
                "{'phase':'Running','guestOSInfo':{},'runtimeUser':107,"
                "'migrationMethod':'LiveMigration','conditions':["
                "{'type':'LiveMigratable','status':'True','lastProbeTime':null,"
                "'lastTransitionTime':null},"
                "{'type':'StorageLiveMigratable','status':'True','lastProbeTime':null,"
                "'lastTransitionTime':null}],"
                "'phaseTransitionTimestamps':[{'phase':'Running',"
                "'phaseTransitionTimestamp':'2026-11-29T00:00:00Z'}]}");
}

/* 02 §8.8: these three end the VMI although its domain is well. spec:02-14.13#14 (secure boot)
 * Others do not: spec:02-14.13#21 (what a running VMI's update collects, whatever its text). */
static void
test_fatal_sync_errors(void)
{
    for (ChSyncOutcome sync = CH_SYNC_FAILED; sync < CH_SYNC_N; sync++) {
        g_autoptr(ChStatusResult) result =
            run(SCHEDULED, "{'Status':{'Status':'Running'}}", sync, "Critical network error: text");
        const ChJson *conditions = ch_json_at(result->vmi, "status", "conditions");

        g_assert_cmpint(
            result->phase, ==, sync == CH_SYNC_FAILED ? CH_PHASE_RUNNING : CH_PHASE_FAILED);
        assert_json(ch_json_item(conditions, 2),
                    "{'type':'Synchronized','status':'False','lastProbeTime':null,"
                    "'lastTransitionTime':'2026-11-29T00:00:00Z',"
                    "'reason':'Synchronizing with the Domain failed.',"
                    "'message':'Critical network error: text'}");
    }
}

static const ChJson *
find_condition(const ChStatusResult *result, const char *type)
{
    return item_of(ch_json_at(result->vmi, "status", "conditions"), "type", type);
}

/* spec:02-14.1#23 spec:01#26 spec:02-14.1#24 spec:01#27: what an earlier pass found wrong, and is
 * right now. */
static void
test_yesterdays_verdicts_go(void)
{
    g_autoptr(ChStatusResult) result =
        run("{'spec':{},'status':{'phase':'Running','migrationMethod':'BlockMigration',"
            "'conditions':[{'type':'LiveMigratable','status':'False','reason':'r','message':'m'},"
            "{'type':'Synchronized','status':'False',"
            "'reason':'Synchronizing with the Domain failed.','message':'m'}]}}",
            "{'Status':{'Status':'Running'}}",
            CH_SYNC_OK,
            NULL);

    g_assert_null(find_condition(result, "Synchronized"));
    assert_json(find_condition(result, "LiveMigratable"),
                "{'type':'LiveMigratable','status':'True','lastProbeTime':null,"
                "'lastTransitionTime':null}");
    g_assert_cmpstr(
        ch_json_string_at(result->vmi, "status", "migrationMethod"), ==, "LiveMigration");
}

/* spec:02-14.13#4 */
static void
test_final_vmi_is_left_alone(void)
{
    g_autoptr(ChStatusResult) result = run("{'status':{'phase':'Succeeded','x':1.50}}",
                                           "{'Status':{'Status':'Running'}}",
                                           CH_SYNC_FAILED,
                                           "text");

    g_assert_false(result->changed);
    assert_json(result->vmi, "{'status':{'phase':'Succeeded','x':1.50}}");
}

/* spec:02-14.13#2 */
static void
test_second_entry_into_a_phase_is_not_recorded(void)
{
    g_autoptr(ChStatusResult) result =
        run("{'status':{'phase':'Scheduled','phaseTransitionTimestamps':["
            "{'phase':'Running','phaseTransitionTimestamp':'2025-01-01T00:00:00Z'}]}}",
            "{'Status':{'Status':'Running'}}",
            CH_SYNC_OK,
            NULL);

    g_assert_true(result->phase_changed);
    assert_json(ch_json_at(result->vmi, "status", "phaseTransitionTimestamps"),
                "[{'phase':'Running','phaseTransitionTimestamp':'2025-01-01T00:00:00Z'}]");
}

/* spec:02-14.13#35, trap 32: null is what an absent time means. */
static void
test_foreign_members_survive(void)
{
    g_autoptr(ChStatusResult) result =
        run("{'metadata':{'x':[1,2]},'spec':{'n':1e3,'l':[]},"
            "'status':{'phase':'Running','topologyHints':{'tscFrequency':18446744073709551615},"
            "'conditions':[{'type':'Foo','status':'True','new':{'a':1}}],'later':null}}",
            "{'Status':{'Status':'Running'}}",
            CH_SYNC_OK,
            NULL);

    g_assert_true(result->changed);
    assert_json(ch_json_at(result->vmi, "spec"), "{'n':1e3,'l':[]}");
    assert_json(ch_json_at(result->vmi, "metadata"), "{'x':[1,2]}");
    assert_json(ch_json_at(result->vmi, "status", "topologyHints"),
                "{'tscFrequency':18446744073709551615}");
    assert_json(ch_json_item(ch_json_at(result->vmi, "status", "conditions"), 0),
                "{'type':'Foo','status':'True','new':{'a':1},'lastProbeTime':null,"
                "'lastTransitionTime':null}");
}

/* What decide makes of a VMI that this node owns and @domain. */
static ChDecision
decide(const ChJson *vmi, const ChDomain *domain)
{
    ChVmiView view;

    ch_vmi_view_init(&view, vmi);
    return ch_decide(&(ChFacts){
        .node = "node01",
        .vmi = &view,
        .existence = CH_EXISTENCE_EXISTS,
        .domain = domain,
        .launcher = CH_LAUNCHER_RESPONSIVE,
        .expectations_satisfied = true,
        .now_us = TEST_NOW_US,
    });
}

#define OWNED                                                                                      \
    "{'metadata':{'name':'vm','namespace':'ns','uid':'u','labels':{'kubevirt.io/nodeName':"        \
    "'node01'}},'spec':{},'status':{'phase':'Running','nodeName':'node01',"                        \
    "'migrationMethod':'LiveMigration','conditions':[{'type':'LiveMigratable','status':'True'},"   \
    "{'type':'StorageLiveMigratable','status':'True'}]}}"

/* spec:02-14.13#3 */
static void
test_unknown_domain_changes_nothing(void)
{
    g_autoptr(ChJson) vmi = parse_json(OWNED);
    g_autoptr(ChDomain) domain = parse_domain(
        "{'Spec':{'Metadata':{'KubeVirt':{'UID':'u'}}},'Status':{'Status':'Unknown'}}");
    const ChDecision decision = decide(vmi, domain);

    g_assert_cmpint(decision.action, ==, CH_ACTION_IGNORE);
    g_assert_false(decision.updates_status);
}

/* spec:02-14.13#30: a launcher that spells keys in lower case has a domain that is not alive. */
static void
test_lower_case_status_is_no_status(void)
{
    g_autoptr(ChJson) vmi = parse_json(OWNED);
    g_autoptr(ChDomain) domain = parse_domain(
        "{'Spec':{'Metadata':{'KubeVirt':{'UID':'u'}}},'status':{'Status':'Running'}}");
    const ChDecision decision = decide(vmi, domain);
    g_autoptr(ChStatusResult) result = run(OWNED,
                                           "{'Spec':{'Metadata':{'KubeVirt':{'UID':'u'}}},"
                                           "'status':{'Status':'Running'}}",
                                           CH_SYNC_OK,
                                           NULL);

    g_assert_cmpint(decision.action, ==, CH_ACTION_DELETE);
    g_assert_false(result->changed);
    g_assert_false(result->phase_changed);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(scenarios); i++) {
        g_autofree char *path = g_strdup_printf("/status/golden/%s", scenarios[i].name);

        g_test_add_data_func(path, &scenarios[i], test_scenario);
    }
    g_test_add_func("/status/golden/real-domain", test_real_domain);
    g_test_add_func("/status/running-from-scheduled", test_running_from_scheduled);
    g_test_add_func("/status/fatal-sync-errors", test_fatal_sync_errors);
    g_test_add_func("/status/yesterdays-verdicts-go", test_yesterdays_verdicts_go);
    g_test_add_func("/status/final-vmi-is-left-alone", test_final_vmi_is_left_alone);
    g_test_add_func("/status/second-entry-into-a-phase-is-not-recorded",
                    test_second_entry_into_a_phase_is_not_recorded);
    g_test_add_func("/status/foreign-members-survive", test_foreign_members_survive);
    g_test_add_func("/status/unknown-domain-changes-nothing", test_unknown_domain_changes_nothing);
    g_test_add_func("/status/lower-case-status-is-no-status", test_lower_case_status_is_no_status);
    g_test_add_func("/status/any-vmi-and-domain", test_any_vmi_and_domain);
    return g_test_run();
}
