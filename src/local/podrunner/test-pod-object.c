/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pod-object.h"

#include "local/podrunner/pod-layout.h"

static ChJson *
new_pod(void)
{
    g_autoptr(ChJson) vmi = ch_json_parse(
        "{\"metadata\":{\"name\":\"vm\",\"namespace\":\"lab\",\"uid\":\"u-1\"},\"spec\":{"
        "\"terminationGracePeriodSeconds\":5}}",
        -1,
        NULL);

    return ch_pod_object_new(vmi, "virt-launcher-vm-abcde", "node01", "launcher:1");
}

static void
test_new(void)
{
    g_autoptr(ChJson) pod = new_pod();
    const ChJson *labels = ch_json_at(pod, "metadata", "labels");
    const ChJson *container = ch_json_item(ch_json_at(pod, "spec", "containers"), 0);
    int64_t grace_s = 0;

    g_assert_cmpstr(ch_json_string_at(pod, "metadata", "namespace"), ==, "lab");
    g_assert_cmpstr(ch_json_string_at(labels, "kubevirt.io"), ==, "virt-launcher");
    g_assert_cmpstr(ch_json_string_at(labels, "kubevirt.io/created-by"), ==, "u-1");
    g_assert_cmpstr(
        ch_json_string_at(ch_json_item(ch_json_at(pod, "metadata", "ownerReferences"), 0), "uid"),
        ==,
        "u-1");
    g_assert_cmpstr(ch_json_string_at(pod, "spec", "nodeName"), ==, "node01");
    g_assert_true(ch_json_int_at(pod, &grace_s, "spec", "terminationGracePeriodSeconds"));
    g_assert_cmpint(grace_s, ==, 5 + CH_POD_GRACE_PADDING_S);
    g_assert_cmpuint(ch_json_length(ch_json_at(container, "volumeMounts")), ==, ch_pod_n_volumes);
}

/* Names may have 253 bytes, values of labels 63; they end with a letter or a digit. */
static void
test_cut_name(void)
{
    static const struct {
        const char *name, *cut;
    } names[] = {
        {"vm", "vm"},
        {"", ""},
        {"a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-xyz",
         "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-xyz"},
        {"a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-xyzzz",
         "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-xyz"},
        {"a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-x-.z",
         "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-x"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *cut = ch_pod_cut_name(names[i].name);

        g_assert_cmpstr(cut, ==, names[i].cut);
    }
}

static const struct StateCase {
    const char *path;
    ChPodState state;
    const char *phase, *member, *reason;
    bool is_ready;
} cases[] = {
    {"/pod-object/waiting",
     {.phase = CH_POD_PHASE_WAITING, .reason = "ErrImagePull", .message = "no image"},
     "Pending",
     "waiting",
     "ErrImagePull",
     false},
    {"/pod-object/starting",
     {.phase = CH_POD_PHASE_STARTING},
     "Pending",
     "waiting",
     "ContainerCreating",
     false},
    {"/pod-object/running", {.phase = CH_POD_PHASE_RUNNING}, "Running", "running", NULL, true},
    {"/pod-object/completed",
     {.phase = CH_POD_PHASE_ENDED, .exit_code = 0},
     "Succeeded",
     "terminated",
     "Completed",
     false},
    {"/pod-object/failed",
     {.phase = CH_POD_PHASE_ENDED, .exit_code = 2},
     "Failed",
     "terminated",
     "Error",
     false},
    {"/pod-object/lost",
     {.phase = CH_POD_PHASE_ENDED, .exit_code = -1},
     "Failed",
     "terminated",
     "ContainerStatusUnknown",
     false},
};

static void
test_state(gconstpointer data)
{
    const struct StateCase *c = data;
    g_autoptr(ChJson) pod = new_pod();
    const ChJson *status;

    ch_pod_object_set_state(pod, &c->state);
    ch_pod_object_set_state(pod, &c->state); /* replaced, not added */
    g_assert_cmpstr(ch_json_string_at(pod, "status", "phase"), ==, c->phase);
    g_assert_cmpuint(ch_json_length(ch_json_at(pod, "status", "containerStatuses")), ==, 1);
    status = ch_json_item(ch_json_at(pod, "status", "containerStatuses"), 0);
    g_assert_true(ch_json_bool_at(status, !c->is_ready, "ready") == c->is_ready);
    g_assert_nonnull(ch_json_at(status, "state", c->member));
    g_assert_cmpstr(ch_json_string_at(status, "state", c->member, "reason"), ==, c->reason);
}

static void
test_addresses(void)
{
    g_autoptr(ChJson) pod = new_pod();
    const ChJson *ips;

    ch_pod_object_set_state(pod, &(ChPodState){.phase = CH_POD_PHASE_STARTING});
    g_assert_false(ch_json_has(ch_json_at(pod, "status"), "podIP"));
    ch_pod_object_set_state(
        pod, &(ChPodState){.phase = CH_POD_PHASE_RUNNING, .ips = "10.213.0.2,fd00::2"});
    ch_pod_object_set_state(pod, &(ChPodState){.phase = CH_POD_PHASE_ENDED});
    ips = ch_json_at(pod, "status", "podIPs");
    g_assert_cmpstr(ch_json_string_at(pod, "status", "podIP"), ==, "10.213.0.2");
    g_assert_cmpuint(ch_json_length(ips), ==, 2);
    g_assert_cmpstr(ch_json_string_at(ch_json_item(ips, 1), "ip"), ==, "fd00::2");
}

static void
test_grace(void)
{
    g_autoptr(ChJson) silent = ch_json_parse("{}", -1, NULL);
    g_autoptr(ChJson) hostile =
        ch_json_parse("{\"spec\":{\"terminationGracePeriodSeconds\":-7}}", -1, NULL);

    g_assert_cmpint(ch_vmi_grace_seconds(silent), ==, 30);
    g_assert_cmpint(ch_vmi_grace_seconds(hostile), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pod-object/new", test_new);
    g_test_add_func("/pod-object/cut-name", test_cut_name);
    g_test_add_func("/pod-object/addresses", test_addresses);
    g_test_add_func("/pod-object/grace", test_grace);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_state);
    return g_test_run();
}
