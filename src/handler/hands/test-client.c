/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "handler/hands/test-fake-disk.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"

/* Arguments by which this program is such hands. */
#define ANSWERS_TWICE "/answers-twice"
#define IS_DENIED     "/is-denied"

/* The real program, from the directory of this one. */
static ChHands *
start_with(const char *pods_dir)
{
    g_autoptr(GError) error = NULL;
    ChHands *hands =
        ch_hands_start(NULL, &(ChHandsPlaces){pods_dir, "/nonexistent", NULL, 0}, &error);

    g_assert_no_error(error);
    g_assert_nonnull(hands);
    return hands;
}

static ChHands *
start(void)
{
    return start_with("/nonexistent");
}

static pid_t
get_pid(ChHands *hands)
{
    g_autoptr(GError) error = NULL;
    ChHandsReply reply;

    g_assert_true(
        ch_hands_call(hands, &(ChHandsRequest){.op = CH_HANDS_OP_HELLO}, &reply, NULL, &error));
    g_assert_no_error(error);
    return reply.pid;
}

static bool
has_ended(ChHands *hands, int timeout_ms)
{
    struct pollfd poll_fd = {.fd = ch_hands_peek_death_fd(hands), .events = POLLIN};

    return poll(&poll_fd, 1, timeout_ms) == 1;
}

static void
test_hello(void)
{
    g_autoptr(ChHands) hands = start();

    g_assert_cmpint(get_pid(hands), >, 0);
    g_assert_cmpint(get_pid(hands), !=, getpid());
    g_assert_false(has_ended(hands, 0));
    g_assert_cmpstr(ch_hands_peek_pods_dir(hands), ==, "/nonexistent");
}

static void
test_no_program(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_hands_start(
        "/nonexistent/hands", &(ChHandsPlaces){"/pods", "/nonexistent", NULL, 0}, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
}

static guint
count_descriptors(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)pid);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

/* An idle child has two of them for a moment. */
static void
wait_for_descriptors(pid_t pid, guint n)
{
    for (int i = 0; i < 6000 && count_descriptors(pid) != n; i++)
        g_usleep(10 * 1000);
    g_assert_cmpuint(count_descriptors(pid), ==, n);
}

static void
connect_pod(ChHands *hands, uint64_t *out_handle)
{
    const ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    g_assert_true(ch_hands_call(hands, &connect, &reply, &fd, &error));
    g_assert_no_error(error);
    *out_handle = reply.handle;
}

/* Far more than a channel has room for, told to hands that stand still: nothing is lost. */
static void
test_told_in_a_burst(void)
{
    uint64_t handles[8]; /* the launcher has a backlog of 16 */
    FakePod pod;
    ChHands *hands;
    pid_t pid;
    guint n_before;

    if (fake_pod_skip())
        return;
    fake_pod_init(&pod);
    fake_pod_start_launcher(&pod, false);
    hands = start_with(pod.pods_dir);
    pid = get_pid(hands);
    n_before = count_descriptors(pid);
    for (gsize i = 0; i < G_N_ELEMENTS(handles); i++)
        connect_pod(hands, &handles[i]);
    wait_for_descriptors(pid, n_before + 2 * G_N_ELEMENTS(handles));

    g_assert_cmpint(kill(pid, SIGSTOP), ==, 0);
    for (gsize i = 0; i < 3000 + G_N_ELEMENTS(handles); i++) {
        const uint64_t handle = i < 3000 ? 0x30000 + i : handles[i - 3000];
        const ChHandsRequest release = {.op = CH_HANDS_OP_RELEASE, .handle = handle};

        g_assert_true(ch_hands_tell(hands, &release, NULL));
    }
    g_assert_cmpint(kill(pid, SIGCONT), ==, 0);
    for (int i = 0; i < 6000 && count_descriptors(pid) > n_before; i++) {
        g_assert_cmpint(get_pid(hands), ==, pid);
        g_usleep(10 * 1000);
    }
    g_assert_cmpuint(count_descriptors(pid), ==, n_before);
    ch_hands_stop(hands);
    fake_pod_clear(&pod);
}

/* The whole way through the program, its sandbox and a child that may mount; this program is the
 * node. */
static void
test_mount(void)
{
    const ChHandsRequest look = {
        .op = CH_HANDS_OP_SOURCE_LOOK, .uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK};
    ChHandsRequest request = {.op = CH_HANDS_OP_MOUNT,
                              .uid = FAKE_POD_UID,
                              .source_uid = FAKE_POD_UID,
                              .mount = CH_HANDS_MOUNT_DISK,
                              .n_bytes = 9};
    g_autofree char *dir = NULL, *pods_dir = NULL, *disks = NULL;
    g_autoptr(GError) error = NULL;
    ChHandsReply reply;
    FakeDisk disk;
    ChHands *hands;

    if (fake_pod_skip_mounts())
        return;
    g_assert_cmpint(unshare(CLONE_NEWNS), ==, 0);
    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
    dir = test_tree_new();
    pods_dir = g_build_filename(dir, "pods", NULL);
    disks = g_build_filename(pods_dir, FAKE_POD_UID, FAKE_DISKS, NULL);
    test_tree_mkdir(disks, ".");
    fake_disk_init(&disk, dir, disks, "disk_0.sock", "image");
    test_tree_write(disk.root, "disk/file", "image");
    hands =
        ch_hands_start(NULL, &(ChHandsPlaces){pods_dir, "/nonexistent", NULL, getpid()}, &error);
    g_assert_no_error(error);

    g_assert_true(ch_hands_call(hands, &look, &reply, NULL, &error));
    g_assert_cmpint(reply.look.dir_errno, ==, 0);
    g_assert_cmpint(reply.look.socket_errno, ==, ENOENT);
    close(fake_pod_listen(disks, "disk_0.sock"));
    g_assert_true(ch_hands_call(hands, &look, &reply, NULL, &error));
    g_assert_cmpint(reply.look.socket_errno, ==, 0);
    g_assert_cmpint(reply.look.process_errno, ==, ECONNREFUSED);
    fake_disk_start(&disk);
    g_assert_true(ch_hands_call(hands, &look, &reply, NULL, &error));
    g_assert_cmpint(reply.look.process_errno, ==, 0);

    g_assert_true(ch_hands_call_with(hands, &request, "disk/file", &reply, NULL, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(reply.size, ==, 1);
    g_assert_true(reply.target.is_mounted);
    g_assert_false(ch_hands_call_with(hands, &request, "disk/fil/", &reply, NULL, &error));
    g_assert_error(error, CH_ERRNO, EINVAL);
    request.op = CH_HANDS_OP_UNMOUNT;
    request.n_bytes = 0;
    request.flags = CH_HANDS_REMOVE;
    request.source_uid[0] = '\0';
    memset(request.source_uid, 0, sizeof(request.source_uid));
    g_clear_error(&error);
    g_assert_true(ch_hands_call(hands, &request, &reply, NULL, &error));
    g_assert_cmpuint(reply.size, ==, 1);
    g_assert_false(test_tree_has(disks, "disk_0.img"));
    ch_hands_stop(hands);
    fake_disk_clear(&disk);
    test_tree_remove(dir);
}

/* A descriptor that somebody forgot to mark is not for the hands. */
static void
test_descriptors(void)
{
    ch_autofd int forgotten = fcntl(STDERR_FILENO, F_DUPFD, 500);
    g_autoptr(ChHands) hands = start();
    g_autofree char *path = g_strdup_printf("/proc/%d/fd", (int)get_pid(hands));
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    guint n = 0;

    g_assert_cmpint(forgotten, >=, 500);
    while ((name = g_dir_read_name(dir)) != NULL) {
        n++;
        g_assert_cmpint(/* the last is the epoll instance */
                        g_ascii_strtoll(name, NULL, 10),
                        <=,
                        CH_HANDS_FIRST_FD + CH_HANDS_N_CHANNELS);
    }
    g_assert_cmpuint(n, ==, CH_HANDS_FIRST_FD + CH_HANDS_N_CHANNELS + 1);
}

static int n_ends;

static void
count_end(void)
{
    n_ends++;
}

/* A program that ends at once, as one that cannot set up its filter does. */
static void
test_early_end(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChHands) hands =
        ch_hands_start("/bin/false", &(ChHandsPlaces){"/pods", "/nonexistent", NULL, 0}, &error);

    g_assert_no_error(error);
    g_assert_true(has_ended(hands, 10000));
    ch_hands_on_end(hands, count_end);
    g_assert_false(
        ch_hands_call(hands, &(ChHandsRequest){.op = CH_HANDS_OP_HELLO}, NULL, NULL, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    g_assert_cmpint(n_ends, ==, 1);
}

static void
test_error_text(void)
{
    g_autoptr(ChHands) hands = start();
    const ChHandsRequest request = {.op = CH_HANDS_OP_PROBE, .uid = "some-pod"};
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_hands_call(hands, &request, NULL, NULL, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_assert_cmpstr(error->message,
                    ==,
                    "open the socket directory of pod 'some-pod': no such file or directory");
}

/* The signals of a terminal's group are not for the hands. */
static void
test_signals(void)
{
    g_autoptr(ChHands) hands = start();
    const pid_t pid = get_pid(hands);

    g_assert_cmpint(kill(pid, SIGINT), ==, 0);
    g_assert_cmpint(kill(pid, SIGTERM), ==, 0);
    g_assert_cmpint(kill(pid, SIGHUP), ==, 0);
    g_assert_cmpint(get_pid(hands), ==, pid);
}

typedef struct {
    ChHands *hands;
    atomic_uint n_answers;
    atomic_uint n_closed;
} Crowd;

/* Asks until the hands are gone, or 200 times. */
static gpointer
ask_often(gpointer data)
{
    Crowd *crowd = data;

    for (int i = 0; i < 200; i++) {
        g_autoptr(GError) error = NULL;
        ChHandsReply reply;

        if (ch_hands_call(crowd->hands,
                          &(ChHandsRequest){.op = CH_HANDS_OP_LOOK, .uid = "some-pod"},
                          &reply,
                          NULL,
                          &error)) {
            g_assert_cmpint(reply.look.dir_errno, ==, ENOENT);
            atomic_fetch_add(&crowd->n_answers, 1);
            continue;
        }
        g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
        atomic_fetch_add(&crowd->n_closed, 1);
        break;
    }
    return NULL;
}

/* More threads than channels; @kill_after_us: -1: never. */
static void
run_crowd(Crowd *crowd, int64_t kill_after_us)
{
    GThread *threads[CH_HANDS_N_CHANNELS + 16];
    const pid_t pid = get_pid(crowd->hands);

    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("asking", ask_often, crowd);
    if (kill_after_us >= 0) {
        g_usleep((gulong)kill_after_us);
        g_assert_cmpint(kill(pid, SIGKILL), ==, 0);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_thread_join(threads[i]);
}

static void
test_crowd(void)
{
    g_autoptr(ChHands) hands = start();
    Crowd crowd = {.hands = hands};

    run_crowd(&crowd, -1);
    g_assert_cmpuint(crowd.n_answers, ==, (CH_HANDS_N_CHANNELS + 16) * 200);
    g_assert_cmpuint(crowd.n_closed, ==, 0);
}

static void
test_kill(void)
{
    for (int round = 0; round < 10; round++) {
        g_autoptr(ChHands) hands = start();
        g_autoptr(GError) error = NULL;
        Crowd crowd = {.hands = hands};

        run_crowd(&crowd, g_test_rand_int_range(0, 20000));
        g_assert_true(has_ended(hands, 10000));
        g_assert_false(ch_hands_tell(
            hands, &(ChHandsRequest){.op = CH_HANDS_OP_RELEASE, .handle = 1}, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_CLOSED);
    }
}

/* What the kernel says of the pod's network is no accident; that there is no process now is. */
static void
test_passing_errors(void)
{
    static const int passing[] = {ECHILD, ETIMEDOUT, EAGAIN, ENOMEM, EMFILE, ENFILE};
    static const int lasting[] = {EPERM, EBUSY, EEXIST, EINVAL, EOPNOTSUPP, ENODEV, ENOENT};

    for (gsize i = 0; i < G_N_ELEMENTS(passing); i++) {
        g_autoptr(GError) error = g_error_new(CH_ERRNO, passing[i], "some text");

        g_assert_true(ch_hands_is_passing(error));
    }
    for (gsize i = 0; i < G_N_ELEMENTS(lasting); i++) {
        g_autoptr(GError) error = g_error_new(CH_ERRNO, lasting[i], "some text");

        g_assert_false(ch_hands_is_passing(error));
    }
}

/* --- hands of our own: they answer twice (a child's deadline passed while it answered), or refuse
 */

static void
answer_twice(int channel_fd)
{
    static int32_t n_asked;
    ChHandsRequest request = {0};
    ChHandsReply reply = {.version = CH_HANDS_VERSION};
    const ssize_t n = ch_channel_receive(channel_fd, &request, sizeof(request), NULL);

    if (n != sizeof(request))
        _exit(n != 0);
    reply.op = request.op;
    reply.sequence = request.sequence;
    reply.pid = ++n_asked;
    if (ch_channel_send(channel_fd, &reply, sizeof(reply), -1) < 0)
        _exit(1);
    reply.errnum = ETIMEDOUT;
    reply.has_fd = true;
    if (ch_channel_send(channel_fd, &reply, sizeof(reply), STDIN_FILENO) < 0)
        _exit(1);
}

static void
answer_denied(int channel_fd)
{
    ChHandsRequest request = {0};
    ChHandsReply reply;
    const ssize_t n = ch_channel_receive(channel_fd, &request, sizeof(request), NULL);

    if (n != sizeof(request))
        _exit(n != 0);
    ch_reply_init(&reply, &request);
    ch_reply_fail(&reply, EACCES, "open_tree '/disk.img'");
    if (!ch_reply_send(&reply, channel_fd, -1))
        _exit(1);
}

static int
be_hands(void (*answer)(int channel_fd))
{
    struct pollfd fds[CH_HANDS_N_CHANNELS];

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        fds[i] = (struct pollfd){.fd = CH_HANDS_FIRST_FD + i, .events = POLLIN};
    while (poll(fds, CH_HANDS_N_CHANNELS, -1) > 0)
        for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
            if (fds[i].revents != 0)
                answer(fds[i].fd);
    return 1;
}

static int
count_open(void)
{
    int n = 0;

    for (int fd = 0; fd < 100; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void
test_two_answers(void)
{
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ChHands) hands =
        ch_hands_start(program, &(ChHandsPlaces){ANSWERS_TWICE, "/", NULL, 0}, &error);
    int n_before;

    g_assert_no_error(error);
    n_before = count_open();
    for (pid_t i = 1; i < 10; i++)
        g_assert_cmpint(get_pid(hands), ==, i);
    g_assert_cmpint(count_open(), ==, n_before);
}

/* field:FR-Q06 */
static void
test_policy_is_hinted_at(void)
{
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(ChHands) hands =
        ch_hands_start(program, &(ChHandsPlaces){IS_DENIED, "/", NULL, 0}, &error);

    g_assert_no_error(error);
    g_assert_false(
        ch_hands_call(hands, &(ChHandsRequest){.op = CH_HANDS_OP_HELLO}, NULL, NULL, &error));
    g_assert_error(error, CH_ERRNO, EACCES);
    g_assert_cmpstr(error->message,
                    ==,
                    "open_tree '/disk.img': permission denied (a policy of this host forbids it? "
                    "its audit log tells: AppArmor, SELinux)");
}

/* However the brain ends, the hands end with it. */
static void
test_brain_dies(void)
{
    int pid_pipe[2];
    ch_autofd int pidfd = -EBADF;
    struct pollfd poll_fd = {.events = POLLIN};
    pid_t hands_pid = 0;
    pid_t brain;

    g_assert_cmpint(pipe2(pid_pipe, O_CLOEXEC), ==, 0);
    brain = fork();
    if (brain == 0) {
        ChHands *hands = start();

        hands_pid = get_pid(hands);
        if (write(pid_pipe[1], &hands_pid, sizeof(hands_pid)) != sizeof(hands_pid))
            _exit(1);
        for (;;)
            pause();
    }
    g_assert_cmpint(read(pid_pipe[0], &hands_pid, sizeof(hands_pid)), ==, sizeof(hands_pid));
    pidfd = (int)syscall(SYS_pidfd_open, hands_pid, 0);
    g_assert_cmpint(pidfd, >=, 0);
    g_assert_cmpint(kill(brain, SIGKILL), ==, 0);
    g_assert_cmpint(waitpid(brain, NULL, 0), ==, brain);
    poll_fd.fd = pidfd;
    g_assert_cmpint(poll(&poll_fd, 1, 10000), ==, 1);
    close(pid_pipe[0]);
    close(pid_pipe[1]);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && g_str_equal(argv[1], ANSWERS_TWICE))
        return be_hands(answer_twice);
    if (argc > 1 && g_str_equal(argv[1], IS_DENIED))
        return be_hands(answer_denied);
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/client/starts-and-stops", test_hello);
    g_test_add_func("/client/only-channels-are-passed", test_descriptors);
    g_test_add_func("/client/no-program", test_no_program);
    g_test_add_func("/client/program-that-ends-at-once", test_early_end);
    g_test_add_func("/client/error-text-arrives", test_error_text);
    g_test_add_func("/client/terminal-signals-are-ignored", test_signals);
    g_test_add_func("/client/many-threads", test_crowd);
    g_test_add_func("/client/hands-killed-at-any-time", test_kill);
    g_test_add_func("/client/told-in-a-burst", test_told_in_a_burst);
    g_test_add_func("/client/mounts", test_mount);
    g_test_add_func("/client/second-answer-is-dropped", test_two_answers);
    g_test_add_func("/client/policy-is-hinted-at", test_policy_is_hinted_at);
    g_test_add_func("/client/passing-errors", test_passing_errors);
    g_test_add_func("/client/hands-end-with-the-brain", test_brain_dies);
    return g_test_run();
}
