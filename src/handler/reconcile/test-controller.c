/* SPDX-License-Identifier: Apache-2.0 */

/* Whole passes: what one run over a key does, as API server, launcher and plugins see it. */

#include "handler/reconcile/controller.h"

#include "handler/reconcile/test-controller-vmi.h"

static const struct PassCase {
    const char *path;
    const char *vmi; /* NULL: nowhere */
    const char *domain;
    bool is_recorded; /* a ghost record says where the launcher is */
    const char *expect_trace, *expect_events;
    bool expect_clean_up;
} cases[] = {
    /* clang-format off */
    /* spec:01#1 spec:02-14.1#1 */
    {"/controller/pass/01-dead-domain-of-nobody", NULL, DOMAIN("", "", ""), true, CONNECTED " Ping Delete", DELETED, true},
    /* spec:01#2 spec:02-14.1#2 */
    {"/controller/pass/02-live-domain-of-nobody", NULL, DOMAIN("Running", "Unknown", ""), true, " hook:PreVMStop" CONNECTED " Ping Kill", STOPPING, false},
    /* spec:01#3 spec:02-14.1#3 */
    {"/controller/pass/03-crashed-domain-of-nobody", NULL, DOMAIN("Crashed", "Unknown", GRACE("1")), true, CONNECTED " Ping Delete", DELETED, true},
    /* spec:01#4 spec:02-14.1#4 field:FR-B10: nobody but the record knows the launcher */
    {"/controller/pass/04-grace-of-the-domain", NULL, DOMAIN("Running", "Unknown", GRACE("1")), true, " hook:PreVMStop" CONNECTED " Ping Shutdown", SIGNALLED_EVENT, false},
    /* spec:01#11 spec:02-14.1#11 */
    {"/controller/pass/11-succeeded-without-domain", VMI(HERE, "'phase':'Succeeded'"), NULL, false, " hook:PostVMStop" CONNECTED " Ping Delete", DELETED, true},
    /* spec:01#12 spec:02-14.1#12 */
    {"/controller/pass/12-deleted-without-domain", VMI(DELETING, "'phase':'Scheduled'"), NULL, false, CONNECTED " Ping Delete PUT:Scheduled", DELETED, true},
    /* spec:01#13 spec:02-14.1#13 */
    {"/controller/pass/13-grace-is-over", NULL, DOMAIN("Running", "Unknown", SIGNALLED("1", "2026-11-01T00:00:00Z")), true, " hook:PreVMStop" CONNECTED " Ping Kill", STOPPING, false},
    /* spec:01#14 spec:02-14.1#14 */
    {"/controller/pass/14-grace-0", NULL, DOMAIN("Running", "Unknown", GRACE("0")), true, " hook:PreVMStop" CONNECTED " Ping Kill", STOPPING, false},
    /* spec:01#16 spec:02-14.1#27 */
    {"/controller/pass/16-post-copy-failed", VMI(HERE, "'phase':'Running','migrationState':{}"), DOMAIN("Paused", "PostcopyFailed", ""), false,
     " hook:PreVMStop" CONNECTED " Ping Kill PUT:Failed", STOPPING "SyncFailed: VMI is irrecoverable due to failed post-copy migration; " CRASHED, false},
    /* spec:01#17 spec:02-14.1#28 */
    {"/controller/pass/17-deleted-while-it-migrates", VMI(DELETING, "'phase':'Running','migrationState':{'startTimestamp':'2026-11-01T00:00:00Z'}"), DOMAIN("Running", "Unknown", ""), false,
     " hook:PreVMStop" CONNECTED " Ping Kill PUT:Running", STOPPING, false},
    /* spec:01#24 spec:02-14.1#21 */
    {"/controller/pass/24-running-without-domain", VMI(HERE, "'phase':'Running'"), NULL, false, " PUT:Failed", CRASHED, false},
    /* spec:01#37 spec:02-14.1#25 */
    {"/controller/pass/37-elsewhere", VMI(ELSEWHERE, "'phase':'Running','nodeName':'node02'"), NULL, false, "", "", false},
    /* spec:01#38 spec:02-14.1#26: its launcher is only connected to */
    {"/controller/pass/38-migration-in-progress", VMI(HERE, "'phase':'Running','migrationState':{'startTimestamp':'2026-11-01T00:00:00Z'}"),
     DOMAIN("Running", "Unknown", ",'Migration':{'StartTimestamp':'2026-11-01T00:00:00Z'}"), false, CONNECTED, "", false},
    /* spec:01#92 */
    {"/controller/pass/92-unknown-and-deleting", VMI(DELETING, "'phase':'Running'"), DOMAIN("Unknown", "", ""), false, "", "", false},
    /* spec:01#93 field:FR-C10 */
    {"/controller/pass/93-migrated-away", VMI(ELSEWHERE, "'phase':'Running'"), DOMAIN("Shutoff", "Migrated", ""), false, CONNECTED " Ping Delete", DELETED, true},
    /* spec:01#94 */
    {"/controller/pass/94-failed-while-it-migrates", VMI(HERE, "'phase':'Failed','migrationState':{'startTimestamp':'2026-11-01T00:00:00Z'}"), NULL, false, "", "", true},
    /* the clean-up comes before the write */
    {"/controller/pass/dead-guest-succeeds", VMI(HERE, "'phase':'Running'"), DOMAIN("Shutoff", "Shutdown", ""), false,
     CONNECTED " Ping Delete PUT:Succeeded", DELETED "Stopped: The VirtualMachineInstance was shut down.; ", true},
    /* clang-format on */
};

static void
test_pass(Node *node, gconstpointer data)
{
    const struct PassCase *c = data;

    node_set_vmi(node, c->vmi);
    node_set_domain(node, c->domain);
    if (c->is_recorded)
        g_assert_true(ch_ghost_records_add(node->records, "ns", "vm", NODE_SOCKET, "u1", NULL));
    node_pass(node);
    node_assert_events(node, c->expect_events);
    node_assert_trace(node, c->expect_trace);
    test_wait_until(node->loop, node->has_clean_up == c->expect_clean_up);
}

/* spec:01#5 spec:02-14.1#5 */
static void
test_signalled_again_without_event(Node *node, gconstpointer data)
{
    g_autofree char *now = ch_time_format(ch_time_wall_us());
    g_autofree char *signalled =
        g_strdup_printf(DOMAIN("Running", "Unknown", SIGNALLED("600", "%s")), now);

    g_assert_true(ch_ghost_records_add(node->records, "ns", "vm", NODE_SOCKET, "u1", NULL));
    node_set_domain(node, DOMAIN("Running", "Unknown", GRACE("600")));
    node_pass(node);
    node_set_domain(node, signalled);
    node_pass(node);
    node_assert_events(node, SIGNALLED_EVENT);
    node_assert_trace(node, " hook:PreVMStop Info Ping Shutdown hook:PreVMStop Ping Shutdown");
}

/* spec:01#8 spec:02-14.1#8: the predecessor's launcher answers */
static void
test_predecessor_lives(Node *node, gconstpointer data)
{
    g_assert_true(ch_ghost_records_add(node->records, "ns", "vm", NODE_SOCKET, "old", NULL));
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_set_domain(node,
                    "{'Spec':{'Metadata':{'KubeVirt':{'UID':'old'}}},"
                    "'Status':{'Status':'Running'}}");
    node_pass(node);
    node_assert_events(node, "");
    node_assert_trace(node, "");
    g_assert_false(node->has_clean_up);
}

/* spec:01#9 spec:02-14.1#9 */
static void
test_not_initialized(Node *node, gconstpointer data)
{
    node->has_socket = false;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_pass(node);
    node_assert_events(node, "");
    node_assert_trace(node, " PUT:Scheduled");
    node_set_vmi(node, node->last_put);
    ch_controller_vmi_changed(node->controller, node->vmi);
    node_run(node);
    if (fake_pod_skip())
        return;
    node->has_socket = true;
    node_wait_for_pass(node); /* nobody says "look": the delayed add does */
    node_assert_events(node, "Created: VirtualMachineInstance defined.; ");
}

/* spec:01#10 spec:01#23 spec:02-14.1#10 spec:02-14.1#29 */
static void
test_unresponsive(Node *node, gconstpointer data)
{
    node->is_marked = true;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_pass(node);
    node_assert_events(node, CRASHED);
    node_assert_trace(node, " PUT:Failed");
}

/* spec:01#15 spec:02-14.1#15 */
static void
test_bad_key(Node *node, gconstpointer data)
{
    ch_controller_enqueue(node->controller, "a/b/c/d/e");
    ch_controller_start(node->controller);
    test_wait_until(node->loop, node->n_looked_up >= 3); /* with back-off, for ever */
    node_run(node);
    node_assert_trace(node, "");
}

/* --- start --- */

/* spec:01#18 spec:01#22 spec:01#33 spec:02-14.1#16 spec:02-14.1#20: one start, with its hooks */
static void
test_start(Node *node, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_pass(node);
    node_assert_events(node, "Created: VirtualMachineInstance defined.; ");
    node_assert_trace(node, " Info hook:PreVMStart Sync PUT:Scheduled");

    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_echo(node);
    node_run(node);
    node_assert_events(node, "Started: VirtualMachineInstance started.; ");
    node_assert_trace(node, " PUT:Running hook:PostVMStart"); /* no Sync in this pass */

    node_echo(node);
    node_run(node);
    node_assert_events(node, "");
    node_assert_trace(node, " Sync"); /* steady: no hook, no write */
}

/* spec:01#100: neither an error nor a timer; the update resumes it */
static void
test_sev_session(Node *node, gconstpointer data)
{
#define SEV(members)                                                                               \
    "{" HERE ",'spec':{'domain':{'devices':{'autoattachPodInterface':false},'launchSecurity':{'"   \
    "sev':{'attestation':{}" members "}}}},'status':{" PODS ",'phase':'Scheduled'}}"
    g_autofree char *sev = NULL;

    if (fake_pod_skip())
        return;
    sev = fake_pod_path(&node->pod, "dev/sev");
    g_assert_cmpint(mknod(sev, S_IFCHR | 0600, makedev(10, 4000)), ==, 0); /* no device's number */
    node_set_vmi(node, SEV(""));
    node_pass(node);
    node_set_vmi(node, SEV(",'session':'s'"));
    ch_controller_vmi_changed(node->controller, node->vmi);
    node_run(node);
    node_assert_events(node, "");
    node_assert_trace(node, " Info PUT:Scheduled PUT:Scheduled");
    node_set_vmi(node, SEV(",'session':'s','dhCert':'c'"));
    ch_controller_vmi_changed(node->controller, node->vmi);
    node_run(node);
    node_assert_trace(node, " hook:PreVMStart Sync PUT:Scheduled");
}

/* --- hooks that fail: spec 01 §24.7, 07 §10.2 --- */

static void
test_pre_start_hook_fails(Node *node, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    node->failing_hook = "PreVMStart";
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_pass(node);
    node_assert_events(node, "SyncFailed: node hook PreVMStart failed; ");
    node_assert_trace(node, " Info hook:PreVMStart PUT:Scheduled");
}

/* spec:02-14.13#22: the phase is stored, the event told; the key is tried again, and without the
 * hook. */
static void
test_post_start_hook_fails(Node *node, gconstpointer data)
{
    node->failing_hook = "PostVMStart";
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_events(node, "Started: VirtualMachineInstance started.; ");
    node_assert_trace(node, " PUT:Running hook:PostVMStart");
    node_wait_for_pass(node); /* the error brings the key back */
    node_assert_trace(node, "");
    node_echo(node);
    node_run(node);
    node_assert_trace(node, " Info Sync");
}

/* field:FR-J02: a VM that runs is synced as often as somebody looks, and nothing is told or written
 */
static void
test_steady(Node *node, gconstpointer data)
{
    g_autofree char *trace = NULL;

    node_set_vmi(node, VMI(HERE, "'phase':'Running'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_echo(node);
    node_run(node);
    g_free(node_take_trace(node));
    for (int i = 0; i < 100; i++)
        node_pass(node);
    node_assert_events(node, "");
    trace = node_take_trace(node);
    g_assert_null(strstr(trace, "PUT"));
    g_assert_nonnull(strstr(trace, " Sync Sync"));
}

static void
test_pre_stop_hook_fails(Node *node, gconstpointer data)
{
    node->failing_hook = "PreVMStop";
    node_set_vmi(node, VMI(DELETING, "'phase':'Running'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", GRACE("30")));
    node_pass(node);
    node_assert_events(node, "SyncFailed: node hook PreVMStop failed; ");
    node_assert_trace(node, " hook:PreVMStop PUT:Running");
}

static void
test_post_stop_hook_fails(Node *node, gconstpointer data)
{
    node->failing_hook = "PostVMStop";
    node_set_vmi(node, VMI(HERE, "'phase':'Succeeded'"));
    node_pass(node);
    node_assert_events(node, "");
    node_assert_trace(node, " hook:PostVMStop"); /* nothing is deleted before it succeeds */
    g_assert_false(node->has_clean_up);
}

/* spec:01#99: an answer that is none is an error */
static void
test_ping_unavailable(Node *node, gconstpointer data)
{
    node_set_vmi(node, VMI(HERE, "'phase':'Running'"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node); /* connects */
    g_free(node_take_trace(node));
    g_free(node_take_events(node));
    fake_launcher_answer(&node->fake, CH_GRPC_UNAVAILABLE, "x");
    node_set_vmi(node, VMI(DELETING, "'phase':'Running'"));
    ch_controller_vmi_changed(node->controller, node->vmi);
    node_run(node);
    node_assert_events(node,
                       "SyncFailed: unknown error encountered sending command Ping: rpc error: "
                       "code = Unavailable desc = x; ");
}

/* spec:01#99: a launcher that goes away while it is told to kill has done so */
static void
test_kill_cancelled(Node *node, gconstpointer data)
{
    g_assert_true(ch_ghost_records_add(node->records, "ns", "vm", NODE_SOCKET, "u1", NULL));
    node->fake.only = "Kill";
    fake_launcher_answer(&node->fake, CH_GRPC_CANCELED, "x");
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_events(node, STOPPING);
    node_assert_trace(node, " hook:PreVMStop Info Ping Kill");
}

#define GUEST_ENDED "Stopped: The VirtualMachineInstance was shut down.; "

/* A pass over a VM whose guest ended. Returns: whether what was written says that it failed */
static bool
delete_fails(Node *node)
{
    g_autoptr(ChJson) stored = NULL;

    node->fake.only = "Delete";
    node_set_vmi(node, VMI(HERE, "'phase':'Running'"));
    node_set_domain(node, DOMAIN("Shutoff", "Shutdown", ""));
    node_pass(node);
    stored = ch_json_parse(node->last_put, -1, NULL);
    g_assert_cmpstr(ch_json_string_at(stored, "status", "phase"), ==, "Succeeded");
    return ch_json_find(ch_json_at(stored, "status", "conditions"), "type", "Synchronized") != NULL;
}

/* Nobody would take the condition of a final VMI back. */
static void
test_launcher_ends_while_it_deletes(Node *node, gconstpointer data)
{
    node->fake.is_leaving = true;
    g_assert_false(delete_fails(node));
    node_assert_trace(node, CONNECTED " Ping Delete PUT:Succeeded");
    node_assert_events(node, DELETED GUEST_ENDED);
    test_wait_until(node->loop, node->has_clean_up);
}

static void
test_launcher_that_stays_fails_to_delete(Node *node, gconstpointer data)
{
    fake_launcher_answer(&node->fake, CH_GRPC_UNAVAILABLE, "x");
    g_assert_true(delete_fails(node));
    node_assert_trace(node, CONNECTED " Ping Delete PUT:Succeeded");
    node_assert_events(node,
                       DELETED "SyncFailed: unknown error encountered sending command Delete: "
                               "rpc error: code = Unavailable desc = x; " GUEST_ENDED);
    g_assert_false(node->has_clean_up);
}

/* spec:01#19 spec:02-14.1#17, without hotplug volumes, which are not built yet */
static void
test_running_tells_its_machine(Node *node, gconstpointer data)
{
    g_autoptr(ChJson) stored = NULL;

    node_set_vmi(node, VMI(HERE, "'phase':'Running'"));
    node_set_domain(node,
                    "{'ObjectMeta':{'namespace':'ns','name':'vm'},'Spec':{'OS':{'Type':{'Machine':"
                    "'q35-123'}},'Metadata':{'KubeVirt':{'UID':'u1'}}},'Status':{'Status':"
                    "'Running','Reason':'Unknown'}}");
    node_pass(node);
    node_assert_trace(node, " Info Sync PUT:Running");
    stored = ch_json_parse(node->last_put, -1, NULL);
    g_assert_cmpstr(ch_json_string_at(stored, "status", "machine", "type"), ==, "q35-123");
}

/* 01 §22.1 row 3: before the sync, which a failure prevents */
static void
test_memory_dump(Node *node, gconstpointer data)
{
    node_set_vmi(node,
                 VMI(HERE,
                     "'phase':'Running','volumeStatus':[{'name':'d','target':'','phase':"
                     "'MemoryDumpInProgress','memoryDumpVolume':{'claimName':'c',"
                     "'targetFileName':'f'}},{'name':'e','target':'','phase':"
                     "'MemoryDumpCompleted','memoryDumpVolume':{'targetFileName':'g'}}]"));
    node_set_domain(node, DOMAIN("Running", "Unknown", ""));
    node_pass(node);
    node_assert_trace(node, " Info Ping Dump:/var/run/kubevirt/hotplug-disks/d/f Sync PUT:Running");
    node_assert_events(node, "");
    node->fake.only = "Dump";
    fake_launcher_answer(&node->fake, CH_GRPC_OK, "no space");
    node_echo(node);
    node_run(node);
    node_assert_trace(node, " Ping Dump:/var/run/kubevirt/hotplug-disks/d/f PUT:Running");
    node_assert_events(node,
                       "SyncFailed: failed to getting memory dump: server error. command "
                       "Memorydump failed: \"no space\"; ");
}

/* spec:01#54: without /dev/kvm a VM starts where emulation is allowed, and there only */
static void
test_no_kvm(Node *node, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled'"));
    ch_cluster_config_unref(node->config);
    node->config = node_config(false);
    node_pass(node);
    node_assert_events(node,
                       "SyncFailed: failed to set up file ownership for /dev/kvm: failed opening "
                       "/dev/kvm: no such file or directory; ");
    node_assert_trace(node, " Info PUT:Scheduled");
    ch_cluster_config_unref(node->config);
    node->config = node_config(true);
    node_echo(node);
    node_run(node);
    node_assert_events(node, "Created: VirtualMachineInstance defined.; ");
}

/* spec:04-23.9#14: a VM of 107 that has no network does without /dev/net/tun, another does not. */
static void
test_no_tun(Node *node, gconstpointer data)
{
    g_autofree char *events = NULL;

    if (fake_pod_skip())
        return;
    node_set_vmi(node,
                 "{" HERE ",'spec':{'domain':{'devices':{}}},'status':{" PODS
                 ",'phase':'Scheduled','runtimeUser':107}}");
    node_pass(node);
    events = node_take_events(node);
    g_assert_nonnull(strstr(events, "Critical network error: failed to set up tun device, "));
    node_set_vmi(node, VMI(HERE, "'phase':'Scheduled','runtimeUser':107"));
    ch_controller_vmi_changed(node->controller, node->vmi);
    node_run(node);
    node_assert_events(node, "Created: VirtualMachineInstance defined.; ");
}

#define ADD(path, data, func)                                                                      \
    g_test_add("/controller/" path, Node, data, node_set_up, func, node_tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add(cases[i].path, Node, &cases[i], node_set_up, test_pass, node_tear_down);
    ADD("05-signalled-again-without-event", NULL, test_signalled_again_without_event);
    ADD("08-predecessor-lives", NULL, test_predecessor_lives);
    ADD("09-not-initialized", NULL, test_not_initialized);
    ADD("10-unresponsive", NULL, test_unresponsive);
    ADD("15-bad-key", NULL, test_bad_key);
    ADD("start", NULL, test_start);
    ADD("100-sev-session", NULL, test_sev_session);
    ADD("hooks/pre-start", NULL, test_pre_start_hook_fails);
    ADD("hooks/post-start", NULL, test_post_start_hook_fails);
    ADD("hooks/pre-stop", NULL, test_pre_stop_hook_fails);
    ADD("hooks/post-stop", NULL, test_post_stop_hook_fails);
    ADD("steady", NULL, test_steady);
    ADD("99-ping-unavailable", NULL, test_ping_unavailable);
    ADD("99-kill-cancelled", NULL, test_kill_cancelled);
    ADD("launcher-ends-while-it-deletes", NULL, test_launcher_ends_while_it_deletes);
    ADD("launcher-that-stays-fails-to-delete", NULL, test_launcher_that_stays_fails_to_delete);
    ADD("19-running-tells-its-machine", NULL, test_running_tells_its_machine);
    ADD("memory-dump", NULL, test_memory_dump);
    ADD("54-no-kvm", NULL, test_no_kvm);
    ADD("no-tun", NULL, test_no_tun);
    return g_test_run();
}
