/* SPDX-License-Identifier: Apache-2.0 */

/* Each system call of each operation fails once, for want of memory, by the device, by a signal. */

#include "handler/hands/client.h"
#include "handler/hands/labeller.h"
#include "handler/hands/tap.h"
#include "handler/hands/test-fake-network.h"
#include "handler/hands/test-injection-cases.h"
#include "handler/hands/test-injection-vm.h"
#include "lib/base/errors.h"

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
     .describe = case_describe_labels},
};

/* --- taps with a label */

#define LAUNCHERS_LABEL "system_u:system_r:container_t:s0:c1,c22"
#define OWN_LABEL       "system_u:system_r:spc_t:s0"

static char proc_dir[PATH_MAX], helper[PATH_MAX];

/* What stands for /proc/PID/attr/current. */
static void
set_label(const Injector *injector, const char *label)
{
    g_autofree char *below = g_strdup_printf("proc/%d/attr", (int)injector->all.pod.pid);
    g_autofree char *dir = fake_all_path(&injector->all, below);

    test_tree_mkdir(dir, ".");
    test_tree_write(dir, "current", label);
}

static void
prepare_labelled(Injector *injector, ChHandsRequest *request)
{
    set_label(injector, LAUNCHERS_LABEL);
    case_no_tap(injector, request);
}

static void
prepare_like_us(Injector *injector, ChHandsRequest *request)
{
    set_label(injector, OWN_LABEL);
    case_no_tap(injector, request);
}

static const InjectorCase labelled_cases[] = {
    {"tap-make, labelled",
     {OP(TAP_MAKE), .name = "tap0", .flags = CH_HANDS_NON_ROOT},
     .prepare = prepare_labelled,
     .describe = case_describe_tap,
     .done_errnum = EBUSY,
     .by_another = true},
    {"tap-make, with our label",
     {OP(TAP_MAKE), .name = "tap0", .flags = CH_HANDS_NON_ROOT},
     .prepare = prepare_like_us,
     .describe = case_describe_tap,
     .done_errnum = EBUSY,
     .by_another = true},
};

static int
start_labeller(void)
{
    static const ChTapLabelPlaces places = {proc_dir, helper};

    return ch_labeller_start(&places);
}

/* A copy of this program, as what it shares with the test lies beside it. */
static void
make_label_places(const FakeAll *all)
{
    g_autofree char *proc = fake_all_path(all, "proc");
    g_autofree char *program = fake_all_path(all, "helper");
    g_autofree char *bytes = NULL;
    gsize n_bytes;

    test_tree_mkdir(proc, "thread-self/attr");
    test_tree_write(proc, "thread-self/attr/current", OWN_LABEL);
    test_tree_write(proc, "thread-self/attr/exec", "");
    g_assert_true(g_file_get_contents("/proc/self/exe", &bytes, &n_bytes, NULL));
    g_assert_true(g_file_set_contents(program, bytes, (gssize)n_bytes, NULL));
    g_assert_cmpint(chmod(program, 0755), ==, 0);
    (void)g_strlcpy(proc_dir, proc, sizeof(proc_dir));
    (void)g_strlcpy(helper, program, sizeof(helper));
}

/* Executed by the labeller. */
static int
helper_main(char **argv)
{
    char path[PATH_MAX] = "";
    InjectorShared *shared;
    char *name;

    if (readlink("/proc/self/exe", path, sizeof(path) - sizeof(INJECTOR_FILE)) < 0)
        return 121;
    name = strrchr(path, '/') + 1;
    (void)g_strlcpy(name, INJECTOR_FILE, sizeof(path) - (gsize)(name - path));
    shared = injector_map(path);
    failing_find_real();
    failing_rows = shared->rows;
    return ch_tap_main(argv);
}

/* --- what fails */

static bool
is_one_of(int kind, const int *kinds, gsize n_kinds)
{
    for (gsize i = 0; i < n_kinds; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

/* A sanitizer's build takes its time: it is not asked for all. */
static bool
is_tried(uint64_t number)
{
#ifdef __SANITIZE_ADDRESS__
    return number % 10 == 1;
#else
    return true;
#endif
}

/* What the kernel gives of such a call. */
static bool
fits(int kind, int error)
{
    static const int waits[] = {FAILING_epoll_wait, FAILING_poll, FAILING_recvmsg, FAILING_waitpid};
    static const int interruptible[] = {FAILING_open64,
                                        FAILING_openat64,
                                        FAILING_openat2,
                                        FAILING_read,
                                        FAILING_write,
                                        FAILING_pread64,
                                        FAILING_pwrite64,
                                        FAILING_connect,
                                        FAILING_fsync,
                                        FAILING_sendmsg,
                                        FAILING_ioctl,
                                        FAILING_bpf};
    static const int diskless[] = {FAILING_bind,
                                   FAILING_bpf,
                                   FAILING_close_range,
                                   FAILING_connect,
                                   FAILING_epoll_ctl,
                                   FAILING_fork,
                                   FAILING_getsockopt,
                                   FAILING_inotify_init1,
                                   FAILING_ioctl,
                                   FAILING_listen,
                                   FAILING_peerpidfd,
                                   FAILING_pidfd_open,
                                   FAILING_pidfd_send_signal,
                                   FAILING_prlimit64,
                                   FAILING_reply,
                                   FAILING_sched_getaffinity,
                                   FAILING_sched_setaffinity,
                                   FAILING_sched_setscheduler,
                                   FAILING_sendmsg,
                                   FAILING_setns,
                                   FAILING_setsockopt,
                                   FAILING_socket,
                                   FAILING_socketpair,
                                   FAILING_syscall};

    if (is_one_of(kind, waits, G_N_ELEMENTS(waits)))
        return error == EINTR;
    if (error == EINTR)
        return is_one_of(kind, interruptible, G_N_ELEMENTS(interruptible));
    return error == ENOMEM || !is_one_of(kind, diskless, G_N_ELEMENTS(diskless));
}

/* --- what is said of it */

static bool
is_passing(int errnum)
{
    g_autoptr(GError) error = g_error_new_literal(CH_ERRNO, errnum, "");

    return ch_hands_is_passing(error);
}

/* @has_size: also how much this very request did. (transfer full) */
static char *
facts_of(const InjectorAnswer *answer, bool has_size)
{
    const ChHandsReply *reply = &answer->reply;

    return g_strdup_printf("fd %d, pid %d, handle %d, size %lu, look %d %d %d %d %d, device %u, "
                           "source %lx %o %d, step %u, sum %u %lu, target %lx %o %u, text %s",
                           answer->has_fd,
                           reply->pid != 0,
                           reply->handle != 0,
                           has_size ? (unsigned long)reply->size : 0,
                           reply->look.dir_errno,
                           reply->look.socket_errno,
                           reply->look.marker_errno,
                           reply->look.process_errno,
                           reply->look.binary_errno,
                           reply->device,
                           (unsigned long)reply->source.rdev,
                           reply->source.mode,
                           reply->source.errnum,
                           reply->step,
                           reply->crc,
                           (unsigned long)reply->end,
                           (unsigned long)reply->target.rdev,
                           reply->target.mode,
                           reply->target.is_mounted,
                           reply->text);
}

/* A part of an answer may be that this part failed: it is not compared. */
static void
forgive(InjectorAnswer *answer, const InjectorAnswer *clean, int error)
{
    ChHandsLook *look = &answer->reply.look;
    const ChHandsLook *expected = &clean->reply.look;

    look->dir_errno = look->dir_errno == error ? expected->dir_errno : look->dir_errno;
    look->socket_errno = look->socket_errno == error ? expected->socket_errno : look->socket_errno;
    look->marker_errno = look->marker_errno == error ? expected->marker_errno : look->marker_errno;
    look->process_errno =
        look->process_errno == error ? expected->process_errno : look->process_errno;
    look->binary_errno = look->binary_errno == error ? expected->binary_errno : look->binary_errno;
    if (answer->reply.source.errnum == error)
        answer->reply.source = clean->reply.source;
}

/* --- one operation */

/* What it is like when nothing fails. */
typedef struct {
    const InjectorCase *of;
    InjectorAnswer answer;
    char *before_kernel, *after_kernel; /* owned */
    char *after;                        /* owned */
    gsize n_fds_before, n_fds_after;    /* of the hands, at rest */
    uint64_t n_calls[FAILING_N];
} Clean;

static const char *
name_of(const InjectorCase *one)
{
    return one->name != NULL ? one->name : ch_hands_op_name(one->request.op);
}

static void blame(Injector *injector, const char *format, ...) G_GNUC_PRINTF(2, 3);
static void
blame(Injector *injector, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_string_append_vprintf(injector->faults, format, args);
    va_end(args);
    g_string_append_c(injector->faults, '\n');
}

static ChHandsRequest
prepare(Injector *injector, const InjectorCase *one)
{
    ChHandsRequest request = one->request;

    if (request.uid[0] == '\0' || request.image != CH_HANDS_IMAGE_NONE)
        request.handle = injector->handle;
    if (request.op == CH_HANDS_OP_HELLO || request.op == CH_HANDS_OP_MULTIPATH_WATCH ||
        request.op == CH_HANDS_OP_MULTIPATH_SET || request.op == CH_HANDS_OP_RESERVATION_WATCH ||
        request.op == CH_HANDS_OP_RESERVATION_OWN)
        request.handle = 0;
    if (one->prepare != NULL)
        one->prepare(injector, &request);
    (void)injector_settle(injector);
    return request;
}

static InjectorAnswer
ask(Injector *injector, const InjectorCase *one, const ChHandsRequest *request, bool loses_reply)
{
    const InjectorAnswer answer =
        injector_ask(injector, request, one->bytes, one->n_bytes, loses_reply);

    if (ch_hands_op_is_silent(request->op))
        (void)injector_settle(injector); /* nobody says when it is done */
    return answer;
}

/* A handle that nobody else would give back. */
static void
take_back(Injector *injector, const InjectorAnswer *answer)
{
    const ChHandsRequest release = {.op = CH_HANDS_OP_RELEASE, .handle = answer->reply.handle};

    if (answer->has_come && release.handle != 0)
        (void)injector_do(injector, &release);
}

/* Returns whether the hands are as they were at first. */
static bool
end(Injector *injector, const InjectorCase *one, const InjectorAnswer *answer)
{
    take_back(injector, answer);
    if (one->undo != NULL)
        one->undo(injector);
    return injector_is_at_rest(injector);
}

static void
do_cleanly(Injector *injector, Clean *out_clean)
{
    const InjectorCase *one = out_clean->of;
    ChHandsRequest request = prepare(injector, one);

    out_clean->before_kernel = injector_describe_kernel(injector);
    out_clean->n_fds_before = injector_count_fds(injector->server);
    for (int i = 0; i < FAILING_N; i++)
        out_clean->n_calls[i] = injector->shared->rows[i].n_calls;
    out_clean->answer = ask(injector, one, &request, false);
    for (int i = 0; i < FAILING_N; i++)
        out_clean->n_calls[i] = injector->shared->rows[i].n_calls - out_clean->n_calls[i];
    if (!out_clean->answer.has_come || out_clean->answer.reply.errnum != 0)
        g_error("%s fails: %s", name_of(one), out_clean->answer.reply.text);
    out_clean->after = injector_describe(injector, one);
    out_clean->after_kernel = injector_describe_kernel(injector);
    take_back(injector, &out_clean->answer);
    (void)injector_settle(injector);
    out_clean->n_fds_after = injector_count_fds(injector->server);
    if (!end(injector, one, &out_clean->answer))
        blame(injector, "%s leaves something", name_of(one));
}

static void
check_answer(Injector *injector,
             const Clean *clean,
             const char *what,
             const InjectorAnswer *answer,
             int error)
{
    const int errnum = answer->reply.errnum;
    InjectorAnswer forgiven = *answer;
    g_autofree char *expected = facts_of(&clean->answer, true);
    g_autofree char *facts = NULL;
    g_autofree char *now = NULL;

    if (errnum != 0) {
        if (!is_passing(errnum) && errnum != error)
            blame(injector, "%s: said to be: %s", what, answer->reply.text);
        return;
    }
    forgive(&forgiven, &clean->answer, error);
    facts = facts_of(&forgiven, true);
    now = injector_describe(injector, clean->of);
    if (!g_str_equal(facts, expected))
        blame(injector, "%s: is done, but\n    %s\n    %s", what, facts, expected);
    else if (!g_str_equal(now, clean->after) && !(clean->of->may_leave && error == EIO))
        blame(injector, "%s: is said to be done", what);
}

/* Whether each line of @text is one of before, or of what is there after what may have been done.
 */
static bool
is_known(const Clean *clean, const char *text, bool may_be_done)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_auto(GStrv) before = g_strsplit(clean->before_kernel, "\n", -1);
    g_auto(GStrv) after = g_strsplit(clean->after_kernel, "\n", -1);

    for (gsize i = 0; lines[i] != NULL; i++)
        if (!g_strv_contains((const char *const *)before, lines[i]) &&
            !(may_be_done && g_strv_contains((const char *const *)after, lines[i])))
            return false;
    return true;
}

static void
check_kernel(Injector *injector, const Clean *clean, const char *what, bool may_be_done)
{
    g_autofree char *kernel = injector_describe_kernel(injector);
    gsize n_fds;

    if (!injector_settle(injector))
        blame(injector, "%s: a process stays", what);
    n_fds = injector_count_fds(injector->server);
    if (n_fds != clean->n_fds_before && n_fds != clean->n_fds_after)
        blame(injector, "%s: a descriptor stays", what);
    if (!is_known(clean, kernel, may_be_done))
        blame(injector, "%s: a mount or link stays", what);
}

static void
retry(Injector *injector, const Clean *clean, const char *what, const ChHandsRequest *request)
{
    const InjectorCase *one = clean->of;
    const InjectorAnswer answer = ask(injector, one, request, false);
    g_autofree char *expected = facts_of(&clean->answer, false);
    g_autofree char *facts = facts_of(&answer, false);
    g_autofree char *now = injector_describe(injector, one);
    const bool was_done =
        one->done_errnum != 0 && answer.has_come && answer.reply.errnum == one->done_errnum;

    if (!was_done && !g_str_equal(facts, expected))
        blame(injector, "%s: a retry says\n    %s\n    %s", what, facts, expected);
    if (!g_str_equal(now, clean->after))
        blame(injector, "%s: a retry is not enough", what);
    if (!end(injector, one, &answer))
        blame(injector, "%s: a descriptor or process stays after a retry", what);
}

static void
try(Injector *injector, const Clean *clean, int kind, uint64_t number, int error)
{
    ChHandsRequest request = prepare(injector, clean->of);
    FailingRow *row = &injector->shared->rows[kind];
    const uint64_t n_failed = row->n_failed;
    g_autofree char *what = g_strdup_printf("%s: %s %lu: %s",
                                            name_of(clean->of),
                                            failing_names[kind],
                                            (unsigned long)number,
                                            strerrorname_np(error));
    InjectorAnswer answer;

    row->error = (uint32_t)error;
    row->fail_at = row->n_calls + number;
    answer = ask(injector, clean->of, &request, kind == FAILING_reply);
    row->fail_at = 0;
    injector->n_tried++;
    injector->n_missed += row->n_failed == n_failed;
    if (!answer.has_come && kind != FAILING_reply)
        blame(injector, "%s: no answer", what);
    if (answer.has_come && !ch_hands_op_is_silent(request.op))
        check_answer(injector, clean, what, &answer, error);
    take_back(injector, &answer);
    /* What is mounted stays when it cannot be given away: it may be everybody's. */
    check_kernel(injector,
                 clean,
                 what,
                 !answer.has_come || answer.reply.errnum == 0 ||
                     answer.reply.step == CH_HANDS_STEP_OWN || clean->of->by_another);
    retry(injector, clean, what, &request);
}

static void
inject(Injector *injector, const InjectorCase *one)
{
    static const int errors[] = {ENOMEM, EIO, EINTR};
    Clean clean = {.of = one};
    const int64_t begin_us = ch_clock_us();
    const unsigned n_before = injector->n_tried;

    if (one->is_possible != NULL && !one->is_possible(injector)) {
        g_test_message("%s: not possible here", name_of(one));
        return;
    }
    do_cleanly(injector, &clean);
    for (int kind = 0; kind < FAILING_N; kind++)
        for (uint64_t number = 1; number <= clean.n_calls[kind]; number++)
            for (gsize i = 0; i < G_N_ELEMENTS(errors); i++)
                if (is_tried(number) && fits(kind, errors[i]) &&
                    !(kind == FAILING_reply && ch_hands_op_is_silent(one->request.op)))
                    try(injector, &clean, kind, number, errors[i]);
    g_free(clean.before_kernel);
    g_free(clean.after_kernel);
    g_free(clean.after);
    g_test_message("%s: %u in %ld ms",
                   name_of(one),
                   injector->n_tried - n_before,
                   (long)(ch_clock_us() - begin_us) / 1000);
}

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
    make_label_places(&injector->all);
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
inject_all(const InjectorCase *some, gsize n_cases, int (*start)(void))
{
    const char *only = g_getenv("CH_INJECT"); /* for whoever looks for a fault */
    Injector injector;

    set_up(&injector, start);
    for (gsize i = 0; i < n_cases; i++)
        if (only == NULL || strstr(name_of(&some[i]), only) != NULL)
            inject(&injector, &some[i]);
    tear_down(&injector);
}

static void
test_each_call_fails(void)
{
    if (!fake_pod_skip_mounts())
        inject_all(cases, G_N_ELEMENTS(cases), NULL);
}

/* Of the hands, of the process for taps with a label, of its child, and of what that executes. */
static void
test_each_call_for_labels_fails(void)
{
    if (!fake_pod_skip_mounts() && !fake_network_skip_taps())
        inject_all(labelled_cases, G_N_ELEMENTS(labelled_cases), start_labeller);
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
        _exit(helper_main(argv));
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
