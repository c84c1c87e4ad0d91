/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/handover.h"

#include "lib/base/time.h"
#include "lib/json/test-text.h"
#include "local/podrunner/vmi-defaults.h"

#define T0_TEXT "2026-11-29T00:00:00Z"

static int64_t
t0(void)
{
    int64_t wall_us = 0;

    g_assert_true(ch_time_parse(T0_TEXT, &wall_us, NULL));
    return wall_us;
}

/* What a person writes; the rest is admission's and ours. */
static const char written[] =
    "{\"apiVersion\":\"kubevirt.io/v1\",\"kind\":\"VirtualMachineInstance\",\"metadata\":{"
    "\"name\":\"vm\",\"namespace\":\"default\",\"generation\":1,"
    "\"uid\":\"1111bbbb-0000-4000-8000-000000000001\"},\"spec\":{"
    "\"terminationGracePeriodSeconds\":5,\"domain\":{\"devices\":{\"disks\":[{\"name\":"
    "\"cloudinit\",\"disk\":{\"bus\":\"virtio\"}}]},\"memory\":{\"guest\":\"128Mi\"}},"
    "\"volumes\":[{\"name\":\"cloudinit\",\"cloudInitNoCloud\":{\"userData\":"
    "\"#cloud-config\\n\"}}]}}";

/* As on a cluster, at the moment when the agent takes over. */
static const char handed_over_status[] =
    "{\"phase\":\"Scheduled\",\"nodeName\":\"node01\",\"activePods\":{"
    "\"aaaabbbb-0000-4000-8000-000000000001\":\"node01\"},\"guestOSInfo\":{},\"runtimeUser\":107,"
    "\"qosClass\":\"Burstable\",\"phaseTransitionTimestamps\":["
    "{\"phase\":\"Pending\",\"phaseTransitionTimestamp\":\"" T0_TEXT "\"},"
    "{\"phase\":\"Scheduling\",\"phaseTransitionTimestamp\":\"" T0_TEXT "\"},"
    "{\"phase\":\"Scheduled\",\"phaseTransitionTimestamp\":\"" T0_TEXT "\"}],"
    "\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"GuestNotRunning\","
    "\"message\":\"Guest VM is not reported as running\",\"lastProbeTime\":\"" T0_TEXT "\","
    "\"lastTransitionTime\":\"" T0_TEXT "\"}],"
    "\"launcherContainerImageVersion\":\"registry/virt-launcher:v1.9.0\"}";

static ChJson *
start(void)
{
    g_autoptr(GError) error = NULL;
    ChJson *vmi = parse_json(written);
    const ChHandover handover = {
        "node01", "aaaabbbb-0000-4000-8000-000000000001", "registry/virt-launcher:v1.9.0"};

    g_assert_true(
        ch_vmi_set_defaults(vmi, "amd64", "5d307ca9-b3ef-428c-8861-06e72d69f223", &error));
    g_assert_no_error(error);
    ch_vmi_set_phase(vmi, "Pending", t0());
    g_assert_true(ch_vmi_set_ready(vmi, CH_POD_SEEN_NONE, t0()));
    ch_vmi_set_phase(vmi, "Scheduling", t0());
    ch_vmi_hand_over(vmi, &handover, t0());
    g_assert_true(ch_vmi_set_ready(vmi, CH_POD_SEEN_READY, t0()));
    return vmi;
}

static void
test_hand_over(void)
{
    g_autoptr(ChJson) vmi = start();
    g_autoptr(ChJson) expected = parse_json(handed_over_status);
    g_autofree char *text = ch_json_print_pretty(ch_json_at(vmi, "status"));

    g_test_message("%s", text);
    g_assert_true(ch_json_equal(ch_json_at(vmi, "status"), expected));
    g_assert_cmpstr(
        ch_json_string_at(vmi, "metadata", "labels", "kubevirt.io/nodeName"), ==, "node01");
    g_assert_cmpstr(ch_json_string_at(vmi, "metadata", "labels", "kubevirt.io/created-by"),
                    ==,
                    "1111bbbb-0000-4000-8000-000000000001");
    g_assert_true(ch_vmi_has_finalizer(vmi));
}

/* The recorded hand-over, but for what the recorder's author left out of it. */
static void
test_recorded_hand_over(void)
{
    g_autofree char *path =
        g_build_filename(g_getenv("CH_SHARED") != NULL ? g_getenv("CH_SHARED") : "/nonexistent",
                         "golden",
                         "vmi-plain.json",
                         NULL);
    g_autofree char *text = NULL;
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(ChJson) recorded = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        g_test_skip("no recordings: set CH_SHARED");
        return;
    }
    vmi = start();
    recorded = parse_json(text);
    ch_json_remove(ch_json_at(vmi, "spec", "domain"), "features");
    g_assert_true(ch_json_equal(vmi, recorded));
}

static void
test_phase_is_stamped_once(void)
{
    g_autoptr(ChJson) vmi = parse_json("{\"metadata\":{\"name\":\"vm\"}}");

    ch_vmi_set_phase(vmi, "Pending", t0());
    ch_vmi_set_phase(vmi, "Pending", t0() + CH_SECOND_US);
    g_assert_cmpuint(ch_json_length(ch_json_at(vmi, "status", "phaseTransitionTimestamps")), ==, 1);
}

static const struct ReadyCase {
    const char *path, *phase;
    ChPodSeen seen;
    const char *status, *reason;
} ready_cases[] = {
    {"/handover/ready/no-pod", "Pending", CH_POD_SEEN_NONE, "False", "PodNotExists"},
    {"/handover/ready/guest-starts", "Scheduled", CH_POD_SEEN_READY, "False", "GuestNotRunning"},
    {"/handover/ready/guest-runs", "Running", CH_POD_SEEN_READY, "True", NULL},
    {"/handover/ready/pod-ends", "Running", CH_POD_SEEN_ENDING, "False", "PodTerminating"},
};

static void
test_ready(gconstpointer data)
{
    const struct ReadyCase *c = data;
    g_autoptr(ChJson) vmi = parse_json("{\"metadata\":{\"name\":\"vm\"}}");
    const ChJson *condition;

    ch_vmi_set_phase(vmi, c->phase, t0());
    g_assert_true(ch_vmi_set_ready(vmi, c->seen, t0()));
    g_assert_false(ch_vmi_set_ready(vmi, c->seen, t0() + CH_SECOND_US));
    condition = ch_json_item(ch_json_at(vmi, "status", "conditions"), 0);
    g_assert_cmpstr(ch_json_string_at(condition, "status"), ==, c->status);
    g_assert_cmpstr(ch_json_string_at(condition, "reason"), ==, c->reason);
}

static void
test_failure_comes_and_goes(void)
{
    g_autoptr(ChJson) vmi = parse_json("{\"metadata\":{\"name\":\"vm\"}}");

    g_assert_true(ch_vmi_set_failure(vmi, "ErrImagePull", "no such image", t0()));
    g_assert_false(ch_vmi_set_failure(vmi, "ErrImagePull", "no such image", t0() + CH_SECOND_US));
    g_assert_true(ch_vmi_set_failure(vmi, "ErrImagePull", "another reason", t0()));
    g_assert_cmpuint(ch_json_length(ch_json_at(vmi, "status", "conditions")), ==, 1);
    ch_vmi_clear_failure(vmi);
    g_assert_cmpuint(ch_json_length(ch_json_at(vmi, "status", "conditions")), ==, 0);
}

static void
test_only_our_finalizer_goes(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{\"metadata\":{\"finalizers\":[\"a/b\",\"" CH_VMI_FINALIZER "\",\"c/d\"]}}");

    ch_vmi_remove_finalizer(vmi);
    g_assert_false(ch_vmi_has_finalizer(vmi));
    g_assert_cmpuint(ch_json_length(ch_json_at(vmi, "metadata", "finalizers")), ==, 2);
}

static void
test_qos_class(void)
{
    g_autoptr(ChJson) burstable =
        parse_json("{\"spec\":{\"domain\":{\"resources\":{\"requests\":{\"memory\":\"1Gi\"},"
                   "\"limits\":{\"memory\":\"1024Mi\"}}}}}");
    g_autoptr(ChJson) guaranteed =
        parse_json("{\"spec\":{\"domain\":{\"resources\":{\"requests\":{\"memory\":\"1Gi\","
                   "\"cpu\":\"1\"},\"limits\":{\"memory\":\"1024Mi\",\"cpu\":\"1000m\"}}}}}");

    g_assert_cmpstr(ch_vmi_qos_class(burstable), ==, "Burstable");
    g_assert_cmpstr(ch_vmi_qos_class(guaranteed), ==, "Guaranteed");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/handover/status-at-hand-over", test_hand_over);
    g_test_add_func("/handover/recorded", test_recorded_hand_over);
    g_test_add_func("/handover/phase-is-stamped-once", test_phase_is_stamped_once);
    g_test_add_func("/handover/failure-comes-and-goes", test_failure_comes_and_goes);
    g_test_add_func("/handover/only-our-finalizer-goes", test_only_our_finalizer_goes);
    g_test_add_func("/handover/qos-class", test_qos_class);
    for (gsize i = 0; i < G_N_ELEMENTS(ready_cases); i++)
        g_test_add_data_func(ready_cases[i].path, &ready_cases[i], test_ready);
    return g_test_run();
}
