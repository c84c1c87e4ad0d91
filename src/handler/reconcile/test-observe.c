/* SPDX-License-Identifier: Apache-2.0 */

/* What a pass looks at for its status, and what becomes of the status when that fails. */

#include "handler/reconcile/observe.h"

#include <sys/xattr.h>

#include "handler/reconcile/test-controller-node.h"
#include "handler/reconcile/test-stderr.h"

#define VMI(phase, status)                                                                         \
    "{'metadata':{'namespace':'ns','name':'vm','uid':'u1','resourceVersion':'5','labels':{"        \
    "'kubevirt.io/nodeName':'node01'}},'spec':{'domain':{'devices':{'autoattachPodInterface':"     \
    "false}}},'status':{'activePods':{'" NODE_POD "':'node01'},'phase':'" phase "'" status "}}"
#define DOMAIN(status, reason, agent, more)                                                        \
    "{'ObjectMeta':{'namespace':'ns','name':'vm'},'Spec':{'Devices':{'Channels':[{'Target':{"      \
    "'Name':'org.qemu.guest_agent.0','State':'" agent "'}}]},'Metadata':{'KubeVirt':{"             \
    "'UID':'u1'}}},'Status':{'Status':'" status "','Reason':'" reason "'" more "}}"
#define RUNNING DOMAIN("Running", "Unknown", "disconnected", "")

/* --- the pod's files --- */

/* Where the launcher puts what it makes of each source. */
static const struct {
    const char *source, *dir, *file;
} image_files[] = {
    {"cloudInitNoCloud", "run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm", "noCloud.iso"},
    {"cloudInitConfigDrive",
     "run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm",
     "configdrive.iso"},
    {"configMap", "run/kubevirt-private/config-map-disks", "v2.iso"},
    {"downwardAPI", "run/kubevirt-private/downwardapi-disks", "v3.iso"},
    {"secret", "run/kubevirt-private/secret-disks", "v4.iso"},
    {"serviceAccount", "run/kubevirt-private/service-account-disk", "service-account.iso"},
    {"sysprep", "run/kubevirt-private/sysprep-disks", "v6.iso"},
};

/* A VMI with a disk of each source, and one of another source. */
static char *
vmi_with_images(const char *phase)
{
    g_autoptr(GString) disks = g_string_new("{'name':'other'},{'name':'nobody'}");
    g_autoptr(GString) volumes = g_string_new("{'name':'other','containerDisk':{}}");
    g_autoptr(GString) states = g_string_new("{'name':'other','target':''}");

    for (gsize i = 0; i < G_N_ELEMENTS(image_files); i++) {
        g_string_append_printf(disks, ",{'name':'v%zu'}", i);
        g_string_append_printf(volumes, ",{'name':'v%zu','%s':{}}", i, image_files[i].source);
        g_string_append_printf(states, ",{'name':'v%zu','target':'','size':7}", i);
    }
    return g_strdup_printf(
        "{'metadata':{'namespace':'ns','name':'vm','uid':'u1','resourceVersion':'5','labels':{"
        "'kubevirt.io/nodeName':'node01'}},'spec':{'domain':{'devices':{'autoattachPodInterface':"
        "false,'disks':[%s]}},'volumes':[%s]},'status':{'activePods':{'" NODE_POD
        "':'node01'},'phase':'%s','volumeStatus':[%s]}}",
        disks->str,
        volumes->str,
        phase,
        states->str);
}

static void
make_images(const Node *node, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        g_autofree char *path = g_build_filename(image_files[i].dir, image_files[i].file, NULL);
        g_autofree char *text = g_strnfill(100 + i, 'x');

        test_tree_mkdir(node->pod.root, image_files[i].dir);
        test_tree_write(node->pod.root, path, text);
    }
}

static int64_t
size_of(const Node *node, const char *volume)
{
    g_autoptr(ChJson) put = ch_json_parse(node->last_put, -1, NULL);
    const ChJson *list = ch_json_at(put, "status", "volumeStatus");
    int64_t size = -1;

    for (gsize i = 0; i < ch_json_length(list); i++)
        if (g_strcmp0(ch_json_string_at(ch_json_item(list, i), "name"), volume) == 0)
            (void)ch_json_int_at(ch_json_item(list, i), &size, "size");
    return size;
}

/* spec:02-14.13#16: each source has its file; the last one is missing, and its old size stays. */
static void
test_image_sizes(Node *node, gconstpointer data)
{
    const gsize last = G_N_ELEMENTS(image_files) - 1;
    g_autofree char *vmi = vmi_with_images("Running");

    if (fake_pod_skip())
        return;
    make_images(node, last);
    node_set_vmi(node, vmi);
    node_set_domain(node, RUNNING);
    node_pass(node);
    for (gsize i = 0; i <= last; i++) {
        g_autofree char *name = g_strdup_printf("v%zu", i);

        g_assert_cmpint(size_of(node, name), ==, i < last ? 100 + (int64_t)i : 7);
    }
    g_assert_cmpint(size_of(node, "other"), ==, -1);
}

/* 02 §6.2 step 2: said with the change of the VM, not with each pass. */
static void
assert_said_once(Node *node, const char *vmi, const char *text)
{
    g_autofree char *first = NULL;
    g_autofree char *second = NULL;
    int before;

    node_set_vmi(node, vmi);
    node_set_domain(node, RUNNING);
    before = test_stderr_begin();
    node_pass(node);
    first = test_stderr_end(before);
    before = test_stderr_begin();
    node_echo(node);
    node_run(node);
    second = test_stderr_end(before);
    g_test_message("%s", first);
    g_assert_nonnull(strstr(first, text));
    g_assert_null(strstr(second, text));
}

static void
test_missing_volume_is_said(Node *node, gconstpointer data)
{
    g_autofree char *vmi = vmi_with_images("Running");

    if (fake_pod_skip())
        return;
    assert_said_once(node, vmi, "\"msg\":\"No matching volume with name nobody found\"");
}

/* A VMI that just started has no sizes yet: they come with the pass after. */
static void
test_no_sizes_before_it_runs(Node *node, gconstpointer data)
{
    g_autofree char *running = vmi_with_images("Running");
    g_autofree char *scheduled = vmi_with_images("Scheduled");

    if (fake_pod_skip())
        return;
    make_images(node, G_N_ELEMENTS(image_files));
    node_set_vmi(node, scheduled);
    node_pass(node); /* connects */
    node_set_domain(node, RUNNING);
    node_echo(node);
    node_run(node);
    g_assert_cmpint(size_of(node, "v0"), ==, 7);
    node_echo(node);
    node_run(node);
    g_assert_cmpint(size_of(node, "v0"), ==, 100);
}

#define LABEL "system_u:object_r:container_file_t:s0:c1,c2"

static char *
context_of(const Node *node)
{
    g_autoptr(ChJson) put = ch_json_parse(node->last_put, -1, NULL);

    return g_strdup(ch_json_string_at(put, "status", "selinuxContext"));
}

/* Without SELinux each VMI says so, before there is a launcher. */
static void
test_without_selinux(Node *node, gconstpointer data)
{
    g_autofree char *context = NULL;

    node->has_socket = false;
    node_set_vmi(node, VMI("Scheduled", ",'selinuxContext':'old'"));
    node_pass(node);
    context = context_of(node);
    g_assert_cmpstr(context, ==, "none");
}

/* On a host with SELinux it is the label of the launcher's root. field:FR-Q03: what cannot be read,
 * with SELinux permissive or without policy, stays. */
static void
test_selinux_context(Node *node, gconstpointer data)
{
    g_autofree char *unlabelled = NULL;
    g_autofree char *labelled = NULL;

    if (fake_pod_skip())
        return;
    node_use_selinux(node);
    node_set_vmi(node, VMI("Running", ",'selinuxContext':'old'"));
    node_set_domain(node, RUNNING);
    node_pass(node);
    unlabelled = context_of(node);
    g_assert_cmpstr(unlabelled, ==, "old");
    if (setxattr(node->pod.root, "security.selinux", LABEL, sizeof(LABEL), 0) != 0) {
        g_test_skip("no SELinux labels on this file system");
        return;
    }
    node_echo(node);
    node_run(node);
    labelled = context_of(node);
    g_assert_cmpstr(labelled, ==, LABEL);
}

/* --- the guest agent --- */

/* spec:02-14.13#5: half a status is not written; the key comes back. */
static void
test_guest_info_fails(Node *node, gconstpointer data)
{
    node_set_vmi(node, VMI("Running", ""));
    node_set_domain(node, RUNNING);
    node_pass(node); /* connects */
    node_echo(node);
    node_run(node);
    g_free(node_take_trace(node));
    node_set_vmi(node, VMI("Scheduled", ""));
    node_set_domain(node, DOMAIN("Running", "Unknown", "connected", ""));
    fake_launcher_answer(&node->fake, CH_GRPC_UNAVAILABLE, "x");
    node_pass(node);
    node_assert_trace(node, "");
    node_assert_events(node, "");

    fake_launcher_answer(&node->fake, CH_GRPC_OK, NULL);
    node_wait_for_pass(node);
    node_assert_trace(node, " PUT:Running hook:PostVMStart");
    node_assert_events(node, "Started: VirtualMachineInstance started.; ");
}

/* field:FR-R01: a call that fails now and then makes nothing flip. */
static void
test_guest_agent_that_answers_now_and_then(Node *node, gconstpointer data)
{
    node->fake.guest_info = "{\"guestAgentVersion\":\"4.2\"}";
    node_set_vmi(node, VMI("Running", ""));
    node_set_domain(
        node,
        DOMAIN("Running", "Unknown", "connected", ",'OSInfo':{'Name':'Debian','Version':'12'}"));
    node_pass(node);
    g_assert_nonnull(node->last_put);
    node_echo(node);
    node_run(node);
    for (int round = 0; round < 10; round++) {
        g_free(node_take_trace(node));
        if (round % 2 == 0)
            fake_launcher_answer(&node->fake, CH_GRPC_UNAVAILABLE, "x");
        else
            fake_launcher_answer(&node->fake, CH_GRPC_OK, NULL);
        node_pass(node);
        {
            g_autofree char *trace = node_take_trace(node);

            g_assert_null(strstr(trace, "PUT"));
        }
    }
    g_assert_nonnull(strstr(node->last_put, "AgentConnected"));
    g_assert_nonnull(strstr(node->last_put, "Debian"));
}

/* field:FR-J01 field:FR-C02: the same failure again is no news; its text is told in the condition
 * and an event, and the phase stays. */
static void
test_failing_sync_is_written_once(Node *node, gconstpointer data)
{
    g_autofree char *trace = NULL;
    g_autofree char *events = NULL;

    node_set_vmi(node, VMI("Running", ""));
    node_set_domain(node, RUNNING);
    node_pass(node);
    node_echo(node);
    node_run(node);
    g_free(node_take_trace(node));
    fake_launcher_answer(&node->fake, CH_GRPC_OK, "no such image");
    node_pass(node);
    g_assert_nonnull(strstr(node->last_put, "no such image"));
    node_echo(node);
    node_run(node);
    for (int i = 0; i < 98; i++)
        node_pass(node);
    trace = node_take_trace(node);
    g_assert_nonnull(strstr(trace, "PUT:Running"));
    g_assert_null(strstr(strstr(trace, "PUT:Running") + 1, "PUT"));
    events = node_take_events(node);
    g_assert_true(g_str_has_prefix(events, "SyncFailed: "));
    g_assert_null(strstr(events + 1, "SyncFailed"));
}

/* field:FR-R05: a launcher's text is shown, in bounds. One that is no UTF-8 does not get through
 * gRPC, whose error is shown then (lib/grpc/test-client.c). */
static void
test_strange_sync_error(Node *node, gconstpointer data)
{
    g_autofree char *lengthy = g_strnfill(200000, 'x');
    g_autofree char *text = g_strconcat("first line\nsecond \xc3\xa4 line ", lengthy, NULL);
    g_autoptr(ChJson) put = NULL;
    const ChJson *conditions;
    const char *message = NULL;

    node_set_vmi(node, VMI("Running", ""));
    node_set_domain(node, RUNNING);
    node_pass(node);
    node_echo(node);
    node_run(node);
    fake_launcher_answer(&node->fake, CH_GRPC_OK, text);
    node_pass(node);
    g_assert_true(g_utf8_validate(node->last_put, -1, NULL));
    put = ch_json_parse(node->last_put, -1, NULL);
    conditions = ch_json_at(put, "status", "conditions");
    for (gsize i = 0; i < ch_json_length(conditions); i++)
        if (g_strcmp0(ch_json_string_at(ch_json_item(conditions, i), "type"), "Synchronized") == 0)
            message = ch_json_string_at(ch_json_item(conditions, i), "message");
    g_assert_nonnull(message);
    g_assert_nonnull(strstr(message, "first line"));
    g_assert_cmpuint(strlen(message), <, 32768);
}

/* --- backup trackers --- */

#define SOURCE(name)                                                                               \
    "'spec':{'source':{'apiGroup':'kubevirt.io','kind':'VirtualMachine','name':'" name "'}}"
#define TRACKER(name, status) "{'metadata':{'name':'" name "'}," SOURCE("vm") status "}"
#define CHECKPOINT            "'latestCheckpoint':{'name':'c'}"
#define INITIALIZING          ",'changedBlockTracking':{'state':'Initializing'}"

/* Each ends with state Enabled. */
static const struct TrackerCase {
    const char *path;
    const char *trackers; /* items; NULL: the cluster has no such kind */
    const char *expect;   /* PATCHes */
} tracker_cases[] = {
    /* clang-format off */
    /* spec:02-14.9#15 spec:02-14.9#21 */
    {"/observe/trackers/15-none", "", ""},
    /* spec:02-14.9#16 */
    {"/observe/trackers/16-without-status", TRACKER("a", ""), ""},
    /* spec:02-14.9#17 */
    {"/observe/trackers/17-without-checkpoint", TRACKER("a", ",'status':{'latestCheckpoint':null}"), ""},
    /* spec:02-14.9#18 */
    {"/observe/trackers/18-marked-already", TRACKER("a", ",'status':{" CHECKPOINT ",'checkpointRedefinitionRequired':true}"), ""},
    /* spec:02-14.9#19 spec:02-14.9#22 spec:01#88 spec:01#89 */
    {"/observe/trackers/19-two", TRACKER("a", ",'status':{" CHECKPOINT "}") "," TRACKER("b", ",'status':{" CHECKPOINT ",'checkpointRedefinitionRequired':false}"), " PATCH:a PATCH:b"},
    /* spec:02-14.9#20 */
    {"/observe/trackers/20-one-of-three", TRACKER("a", ",'status':{" CHECKPOINT ",'checkpointRedefinitionRequired':true}") "," TRACKER("b", ",'status':{" CHECKPOINT "}") "," TRACKER("c", ",'status':{}"), " PATCH:b"},
    /* spec:02-14.9#23 spec:01#89 */
    {"/observe/trackers/23-of-another", "{'metadata':{'name':'a'}," SOURCE("other") ",'status':{" CHECKPOINT "}}", ""},
    {"/observe/trackers/of-another-kind", "{'metadata':{'name':'a'},'spec':{'source':{'apiGroup':'kubevirt.io','kind':'VirtualMachineInstance','name':'vm'}},'status':{" CHECKPOINT "}}", ""},
    {"/observe/trackers/of-another-group", "{'metadata':{'name':'a'},'spec':{'source':{'kind':'VirtualMachine','name':'vm'}},'status':{" CHECKPOINT "}}", ""},
    {"/observe/trackers/garbage", "7,null,{},{'metadata':{}," SOURCE("vm") ",'status':{" CHECKPOINT "}}", ""},
    {"/observe/trackers/no-such-kind", NULL, ""},
    /* clang-format on */
};

static const char *
tracking_state(const ChJson *vmi)
{
    return ch_json_string_at(vmi, "status", "changedBlockTracking", "state");
}

static void
test_trackers(Node *node, gconstpointer data)
{
    const struct TrackerCase *c = data;
    g_autofree char *expect = g_strconcat(" Info Sync", c->expect, " PUT:Running", NULL);
    g_autoptr(ChJson) put = NULL;

    node->trackers = c->trackers != NULL ? double_quoted(c->trackers) : NULL;
    node_set_vmi(node, VMI("Running", INITIALIZING));
    node_set_domain(node, RUNNING);
    node_pass(node);
    g_assert_nonnull(node->last_put);
    put = ch_json_parse(node->last_put, -1, NULL);
    g_assert_cmpstr(tracking_state(put), ==, "Enabled");
    node_assert_trace(node, expect);
}

/* spec:02-14.13#23: also a phase that was computed in the same pass is not written. */
static void
test_tracker_cannot_be_marked(Node *node, gconstpointer data)
{
    g_autoptr(ChJson) put = NULL;

    node->trackers = double_quoted(
        TRACKER("a", ",'status':{" CHECKPOINT "}") "," TRACKER("b", ",'status':{" CHECKPOINT "}"));
    node->patch_status = 500;
    node_set_vmi(node, VMI("Scheduled", INITIALIZING));
    node_set_domain(node, RUNNING);
    node_pass(node);
    node_assert_trace(node, " PATCH:a");
    node_assert_events(node, "");

    node->patch_status = 0;
    node_wait_for_pass(node);
    node_assert_trace(node, " PATCH:a PATCH:b PUT:Running hook:PostVMStart");
    put = ch_json_parse(node->last_put, -1, NULL);
    g_assert_cmpstr(tracking_state(put), ==, "Enabled");
}

/* What cannot be read says nothing about trackers. */
static void
test_trackers_cannot_be_listed(Node *node, gconstpointer data)
{
    node->trackers = g_strdup("");
    node->list_status = 403;
    node_set_vmi(node, VMI("Scheduled", INITIALIZING));
    node_set_domain(node, RUNNING);
    node_pass(node);
    node_assert_trace(node, "");
    node->list_status = 0;
    node_wait_for_pass(node);
    node_assert_trace(node, " PUT:Running hook:PostVMStart");
}

/* --- counters --- */

static uint64_t
count_panics(const Node *node)
{
    return ch_counter_read(ch_guest_panics_peek_counter(node->panics),
                           (const char *const[]){"ns", "vm", "t", "unknown", NULL});
}

static uint64_t
count_writes(const Node *node)
{
    return ch_counter_read(node->syncs, (const char *const[]){"ns", "vm", NULL});
}

/* A panic counts although the write fails, and once although the pass is repeated; a write counts
 * when it is stored. */
static void
test_counters(Node *node, gconstpointer data)
{
    node->put_status = 409;
    node_set_vmi(node, VMI("Scheduled", ""));
    node_set_domain(
        node,
        DOMAIN(
            "Running", "Unknown", "disconnected", ",'PanicCount':1,'GuestPanicInfo':{'Type':'t'}"));
    node_pass(node);
    g_assert_cmpuint(count_panics(node), ==, 1);
    g_assert_cmpuint(count_writes(node), ==, 0);
    node->put_status = 0;
    node_wait_for_pass(node);
    g_assert_cmpuint(count_panics(node), ==, 1);
    g_assert_cmpuint(count_writes(node), ==, 1);

    /* cleaned up: the same count of a new life is news; the VMI leaves: its writes go */
    node_echo(node);
    ch_controller_forget_domain(node->controller, NODE_KEY, "u1");
    node_set_domain(
        node,
        DOMAIN(
            "Running", "Unknown", "disconnected", ",'PanicCount':1,'GuestPanicInfo':{'Type':'t'}"));
    node_run(node);
    g_assert_cmpuint(count_panics(node), ==, 2);
    ch_controller_vmi_deleted(node->controller, node->vmi);
    g_assert_cmpuint(count_writes(node), ==, 0);
}

/* --- a final phase that is not stored --- */

/* spec:02-14.13#31, trap 41: the domain is gone by the second try, which says the same all the
 * same; the event comes with what is stored. */
static void
test_final_phase_conflicts(Node *node, gconstpointer data)
{
    node->put_status = 409;
    node_set_vmi(node, VMI("Running", ""));
    node_set_domain(node, DOMAIN("Shutoff", "Shutdown", "disconnected", ""));
    node_pass(node);
    test_wait_until(node->loop, node->domain == NULL);
    g_free(node_take_trace(node));
    node_assert_events(node, "Deleted: Signaled Deletion; ");
    node->put_status = 0;
    node_wait_for_pass(node);
    node_assert_trace(node, " PUT:Succeeded");
    node_assert_events(node, "Stopped: The VirtualMachineInstance was shut down.; ");
}

/* The same when it is a look that fails: the guest shut down well, whatever the trackers do. */
static void
test_final_phase_waits_for_a_look(Node *node, gconstpointer data)
{
    node->trackers = double_quoted(TRACKER("a", ",'status':{" CHECKPOINT "}"));
    node->patch_status = 500;
    node_set_vmi(node, VMI("Running", INITIALIZING));
    node_set_domain(node, DOMAIN("Shutoff", "Shutdown", "disconnected", ""));
    node_pass(node);
    test_wait_until(node->loop, node->domain == NULL);
    node_wait_for_pass(node);
    g_free(node_take_trace(node));
    g_assert_nonnull(node->last_put);
    g_assert_nonnull(strstr(node->last_put, "\"phase\":\"Succeeded\""));
}

#define ADD(path, func) g_test_add("/observe/" path, Node, NULL, node_set_up, func, node_tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("image-sizes", test_image_sizes);
    ADD("missing-volume-is-said", test_missing_volume_is_said);
    ADD("no-sizes-before-it-runs", test_no_sizes_before_it_runs);
    ADD("without-selinux", test_without_selinux);
    ADD("selinux-context", test_selinux_context);
    ADD("guest-info-fails", test_guest_info_fails);
    ADD("guest-agent-that-answers-now-and-then", test_guest_agent_that_answers_now_and_then);
    ADD("failing-sync-is-written-once", test_failing_sync_is_written_once);
    ADD("strange-sync-error", test_strange_sync_error);
    for (gsize i = 0; i < G_N_ELEMENTS(tracker_cases); i++)
        g_test_add(tracker_cases[i].path,
                   Node,
                   &tracker_cases[i],
                   node_set_up,
                   test_trackers,
                   node_tear_down);
    ADD("tracker-cannot-be-marked", test_tracker_cannot_be_marked);
    ADD("trackers-cannot-be-listed", test_trackers_cannot_be_listed);
    ADD("counters", test_counters);
    ADD("final-phase-conflicts", test_final_phase_conflicts);
    ADD("final-phase-waits-for-a-look", test_final_phase_waits_for_a_look);
    return g_test_run();
}
