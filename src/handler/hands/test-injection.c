/* SPDX-License-Identifier: Apache-2.0 */

/* Each system call of each operation fails once, for want of memory, by the device, by a signal. */

#include "handler/hands/test-fake-network.h"
#include "handler/hands/test-injection-cases.h"
#include "handler/hands/test-injection-labels.h"
#include "handler/hands/test-injection-try.h"
#include "handler/hands/test-injection-vm.h"

#define BYTES(object) &(object), sizeof(object)
#define TEXT(text)    (text), sizeof(text) - 1
#define OP(name)      .op = CH_HANDS_OP_##name

static const ChHandsDisk new_disk = {UINT64_C(1) << 20, 0, 10, 1, "disk.img"};

static const InjectorCase cases[] = {
    {.request = {OP(HELLO)}},
    {.request = {OP(LOOK), .uid = FAKE_POD_UID}},
    {.request = {OP(MARK), .uid = FAKE_POD_UID}, .prepare = case_no_marker},
    {.request = {OP(PROBE), .uid = FAKE_POD_UID}, .prepare = case_no_marker},
    {.request = {OP(CONNECT), .uid = FAKE_POD_UID}},
    {.request = {OP(RECONNECT)}},
    {.request = {OP(RELEASE)}, .prepare = case_connect},
    {.request = {OP(PIPE_OPEN), .flags = CH_HANDS_NON_ROOT}, .prepare = case_no_pipe},
    {.request = {OP(PIPE_CLOSE)}, .prepare = case_pipe},
    {.request = {OP(DEVICES_OWN), .devices = CH_HANDS_DEVICES}, .prepare = case_devices},
    {"devices-own, emulation",
     {OP(DEVICES_OWN), .devices = CH_HANDS_DEVICE_KVM, .flags = CH_HANDS_EMULATION},
     .prepare = case_devices},
    {.request = {OP(BLOCK_OWN), .name = "block"}, .prepare = case_block},
    {.request = {OP(VIRTIOFS_OWN), .name = "share"}, .prepare = case_virtiofs},
    {NULL,
     {OP(DISK_PREPARE), .name = "data", .flags = CH_HANDS_NON_ROOT},
     BYTES(new_disk),
     case_no_image},
    {NULL, {OP(METRICS_WRITE)}, TEXT("<metrics></metrics>\n"), case_old_metrics},
    {.request = {OP(METRICS_CONNECT)}},
    {.request = {OP(NET_OPEN), .net = CH_HANDS_NET_ROUTE, .sysctls = CH_HANDS_SYSCTLS},
     .prepare = case_old_sysctls,
     .undo = case_close_net,
     .describe = case_describe_sysctls},
    {NULL,
     {OP(NET_SEND), .net = CH_HANDS_NET_ROUTE},
     BYTES(case_up),
     .prepare = case_net,
     .undo = case_close_net,
     .describe = case_describe_up},
    {.request = {OP(NET_CLOSE)}, .prepare = case_net},
    {.request = {OP(TAP_MAKE), .name = "tap0", .flags = CH_HANDS_NON_ROOT},
     .prepare = case_no_tap,
     .describe = case_describe_tap,
     .is_possible = case_has_tun,
     .done_errnum = EBUSY},
    {.request = {OP(SYSCTLS_SET), .sysctls = CH_HANDS_SYSCTLS},
     .prepare = case_old_sysctls,
     .describe = case_describe_sysctls},
    {NULL, {OP(DHCP_STORE), .name = "eth0"}, TEXT("{}"), case_no_vif},
    {.request = {OP(DHCP_REMOVE), .name = "eth0"}, .prepare = case_vif},
    {.request = {OP(CACHE_OWN), .uid = FAKE_ALL_VMI, .name = "net"}, .prepare = case_cache},
    {.request = {OP(IMAGE_STAT), .image = CH_HANDS_IMAGE_SECRET, .uid = "ns", .name = "v"}},
    {.request = {OP(LABEL_READ)}, .is_possible = case_takes_labels},
    {.request = {OP(PASST_REPAIR)}},
    {.request = {OP(SOURCE_LOOK), .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK}},
    {.request = {OP(TARGET_LOOK), .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK},
     .prepare = case_disk_mounted},
    {"mount, disk", {OP(MOUNT), CASE_DISK}, .prepare = case_no_mounts},
    {"mount, kernel", {OP(MOUNT), CASE_BOOT}, TEXT("boot/vmlinuz"), case_no_mounts},
    {"mount, file", {OP(MOUNT), CASE_FILE, .flags = CH_HANDS_OWN}, .prepare = case_no_mounts},
    {"mount, directory", {OP(MOUNT), CASE_DIR, .flags = CH_HANDS_OWN}, .prepare = case_no_mounts},
    {"unmount, disk",
     {OP(UNMOUNT), .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK},
     .prepare = case_disk_mounted},
    {"unmount, kernels",
     {OP(UNMOUNT), .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_BOOT},
     .prepare = case_boot_mounted},
    {"unmount, directory",
     {OP(UNMOUNT),
      .uid = FAKE_POD_UID,
      .mount = CH_HANDS_MOUNT_HOTPLUG_DIR,
      .name = "fs",
      .flags = CH_HANDS_REMOVE},
     .prepare = case_dir_mounted,
     .may_leave = true},
    {.request = {OP(IMAGE_SUM), .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK}},
    {.request = {OP(NODE_LOOK), CASE_NODE}, .prepare = case_node_made},
    {.request = {OP(NODE_MAKE), CASE_NODE}, .prepare = case_no_mounts},
    {"node-make, anew", {OP(NODE_MAKE), CASE_NODE}, .prepare = case_old_node},
    {.request = {OP(NODE_REMOVE), .uid = FAKE_POD_UID, .name = "vol"}, .prepare = case_node_made},
    {.request = {OP(SWEEP), .uid = FAKE_POD_UID}, .prepare = case_plugged, .may_leave = true},
    {.request = {OP(DEVICES_LOOK), .flags = CH_HANDS_RNG | CH_HANDS_VSOCK}},
    {NULL,
     {OP(DEVICES_SET)},
     BYTES(case_rules),
     .prepare = case_devices_denied,
     .describe = case_describe_list,
     .is_possible = case_has_cgroups},
    {"devices-set, program",
     {OP(DEVICES_SET)},
     BYTES(case_rules),
     .prepare = case_old_program,
     .undo = case_show_lists,
     .describe = case_describe_program,
     .is_possible = case_has_programs},
    {"memlock-set, virtqemud",
     {OP(MEMLOCK_SET)},
     BYTES(case_memory),
     .prepare = case_old_memory,
     .describe = case_describe_memory},
    {"memlock-set, qemu",
     {OP(MEMLOCK_SET), .flags = CH_HANDS_QEMU},
     BYTES(case_memory),
     .prepare = case_old_memory,
     .describe = case_describe_memory},
    {NULL,
     {OP(HOUSE_KEEP)},
     BYTES(case_cpus),
     .prepare = case_no_house,
     .describe = case_describe_house,
     .is_possible = case_has_cgroups},
    {NULL,
     {OP(REALTIME_SET)},
     BYTES(case_cpus),
     .prepare = case_old_schedulers,
     .describe = case_describe_schedulers,
     .is_possible = case_may_be_realtime},
    {.request = {OP(PIT_SET), .flags = CH_HANDS_REALTIME},
     .prepare = case_old_schedulers,
     .describe = case_describe_schedulers,
     .is_possible = case_may_be_realtime},
    {.request = {OP(MULTIPATH_WATCH)}},
    {.request = {OP(MULTIPATH_SET)}, .prepare = case_no_mounts},
    {"multipath-set, remove",
     {OP(MULTIPATH_SET), .flags = CH_HANDS_REMOVE},
     .prepare = case_multipath_mounted},
    {.request = {OP(RESERVATION_WATCH)}},
    {.request = {OP(RESERVATION_OWN)},
     .prepare = case_reservation,
     .describe = case_describe_labels,
     .is_possible = case_takes_labels},
};

/* --- all of them */

/* @start: (nullable): what the hands do at first */
static void
set_up(Injector *injector, int (*start)(void))
{
    static const char zeros[sizeof(InjectorShared)];
    const ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    g_autofree char *path = NULL;

    *injector = (Injector){.faults = g_string_new(NULL)};
    fake_all_init(&injector->all);
    path = fake_all_path(&injector->all, INJECTOR_FILE);
    g_assert_true(g_file_set_contents(path, zeros, sizeof(zeros), NULL));
    injector->shared = injector_map(path);
    labels_make_places(&injector->all);
    injector_start_hands(injector, start);
    injector->handle = injector_do(injector, &connect).reply.handle;
    g_assert_cmpuint(injector->handle, !=, 0);
    injector->n_children = start != NULL;
    g_assert_true(injector_settle(injector));
    injector->n_fds = injector_count_fds(injector->server);
}

/* Closing a channel ends the hands. */
static void
tear_down(Injector *injector)
{
    int status = 0;

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        close(injector->channels[i]);
    fake_all_clear(&injector->all);
    g_assert_cmpint(waitpid(injector->server, &status, 0), ==, injector->server);
    g_assert_cmpint(status, ==, 0);
    g_test_message("%u calls failed, %u were not made again",
                   injector->n_tried - injector->n_missed,
                   injector->n_missed);
    if (injector->faults->len > 0)
        g_printerr("%s", injector->faults->str);
    g_assert_cmpuint(injector->faults->len, ==, 0);
    g_assert_cmpuint(injector->n_missed, <, injector->n_tried / 10 + 2);
    g_string_free(injector->faults, TRUE);
    (void)munmap(injector->shared, sizeof(*injector->shared));
}

static void
do_all(void (*func)(Injector *injector, const InjectorCase *one),
       const InjectorCase *some,
       gsize n_cases,
       int (*start)(void))
{
    const char *only = g_getenv("CH_INJECT"); /* for whoever looks for a fault */
    Injector injector;

    set_up(&injector, start);
    for (gsize i = 0; i < n_cases; i++)
        if (only == NULL || strstr(try_name_of(&some[i]), only) != NULL)
            func(&injector, &some[i]);
    tear_down(&injector);
}

static void
test_each_call_fails(void)
{
    if (!fake_pod_skip_mounts())
        do_all(try_inject, cases, G_N_ELEMENTS(cases), NULL);
}

/* Of the hands, of the process for taps with a label, of its child, and of what that executes. */
static void
test_each_call_for_labels_fails(void)
{
    if (!fake_pod_skip_mounts() && !fake_network_skip_taps())
        do_all(try_inject, labels_cases, G_N_ELEMENTS(labels_cases), labels_start);
}

/* What is lacking is asked for, so that calls fail here too. */
static void
test_old_kernel(void)
{
    if (!fake_pod_skip_mounts())
        do_all(try_old_kernel, cases, G_N_ELEMENTS(cases), NULL);
}

/* A new operation is not forgotten. */
static void
test_each_operation_is_tried(void)
{
    for (uint32_t op = CH_HANDS_OP_INVALID + 1; op < CH_HANDS_OP_N; op++) {
        bool is_tried = false;

        for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
            is_tried = is_tried || cases[i].request.op == op;
        if (!is_tried)
            g_error("no call of %s fails", ch_hands_op_name(op));
    }
}

static int
run_tests(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/injection/each-operation-is-tried", test_each_operation_is_tried);
    g_test_add_func("/injection/each-call-fails", test_each_call_fails);
    g_test_add_func("/injection/old-kernel", test_old_kernel);
    g_test_add_func("/injection/each-call-for-labels-fails", test_each_call_for_labels_fails);
    return g_test_run();
}

/* With few processes in sight, and mounts of its own. */
int
main(int argc, char **argv)
{
    int status = 0;
    pid_t child;

    if (argc == CH_TAP_N_ARGS && g_str_equal(argv[1], CH_TAP_COMMAND))
        _exit(labels_main(argv));
    if (geteuid() != 0)
        return run_tests(argc, argv);
    fake_pod_must(unshare(CLONE_NEWPID | CLONE_NEWNS) == 0, "unshare");
    child = fork();
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_pod_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "make private");
        fake_pod_must(mount("proc", "/proc", "proc", 0, NULL) == 0, "mount proc");
        exit(run_tests(argc, argv));
    }
    fake_pod_must(waitpid(child, &status, 0) == child, "wait");
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1); /* it can have no child any more */
}
