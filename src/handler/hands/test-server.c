/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/server.h"

#include <string.h>

#include "handler/hands/launcher.h"
#include "handler/hands/protocol.h"
#include "handler/hands/test-fake-pod.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/channel.h"

/* The server in a forked child, spoken to in raw records. */
typedef struct {
    FakePod pod;
    int channels[CH_HANDS_N_CHANNELS];
    pid_t server;
} Fixture;

static void
run_server(const int theirs[])
{
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        if (dup2(theirs[i], CH_HANDS_FIRST_FD + i) < 0)
            _exit(70);
    (void)close_range(CH_HANDS_FIRST_FD + CH_HANDS_N_CHANNELS, ~0u, 0);
    (void)signal(SIGCHLD, SIG_IGN);
    (void)umask(022);
    _exit(ch_server_run());
}

static void
set_up(Fixture *f, gconstpointer data)
{
    int theirs[CH_HANDS_N_CHANNELS];

    fake_pod_init(&f->pod);
    ch_launcher_set_pods_dir(f->pod.pods_dir);
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        int pair[2];

        g_assert_cmpint(ch_channel_pair(pair), ==, 0);
        f->channels[i] = pair[0];
        theirs[i] = fcntl(pair[1], F_DUPFD_CLOEXEC, 200);
        close(pair[1]);
    }
    f->server = fork();
    if (f->server == 0)
        run_server(theirs);
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        close(theirs[i]);
}

/* Closing one channel ends the server. */
static void
tear_down(Fixture *f, gconstpointer data)
{
    int status = 0;

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        close(f->channels[i]);
    fake_pod_kill_launcher(&f->pod); /* it holds copies of the channels */
    g_assert_cmpint(waitpid(f->server, &status, 0), ==, f->server);
    g_assert_cmpint(status, ==, 0);
    fake_pod_clear(&f->pod);
}

static ChHandsReply
take_reply(int channel_fd, int *out_fd)
{
    ChHandsReply reply = {0};

    g_assert_cmpint(ch_channel_wait(channel_fd, ch_time_now_us() + 60 * CH_SECOND_US), ==, 0);
    g_assert_cmpint(
        ch_channel_receive(channel_fd, &reply, sizeof(reply), out_fd), ==, sizeof(reply));
    g_assert_cmpuint(reply.version, ==, CH_HANDS_VERSION);
    return reply;
}

static ChHandsReply
ask_fd(Fixture *f, const ChHandsRequest *request, int *out_fd)
{
    ChHandsRequest sent = *request;
    ChHandsReply reply;

    sent.version = CH_HANDS_VERSION;
    sent.sequence = 5;
    g_assert_cmpint(ch_channel_send(f->channels[3], &sent, sizeof(sent), -1), ==, 0);
    reply = take_reply(f->channels[3], out_fd);
    g_assert_cmpuint(reply.sequence, ==, 5);
    g_assert_cmpuint(reply.op, ==, sent.op);
    return reply;
}

static ChHandsReply
ask(Fixture *f, const ChHandsRequest *request)
{
    ch_autofd int fd = -EBADF;

    return ask_fd(f, request, &fd);
}

static void
assert_is_well(Fixture *f)
{
    g_assert_cmpint(ask(f, &(ChHandsRequest){.op = CH_HANDS_OP_HELLO}).errnum, ==, 0);
}

static int
send_bytes(Fixture *f, const void *bytes, gsize n_bytes, int pass_fd)
{
    int fd = -EBADF;

    g_assert_cmpint(ch_channel_send(f->channels[0], bytes, n_bytes, pass_fd), ==, 0);
    return take_reply(f->channels[0], &fd).errnum;
}

static void
test_refuses(Fixture *f, gconstpointer data)
{
    const char garbage[1000] = "garbage";
    ChHandsRequest request = {.version = CH_HANDS_VERSION, .op = CH_HANDS_OP_HELLO};

    g_assert_cmpint(send_bytes(f, garbage, 1, -1), ==, EBADMSG);
    g_assert_cmpint(send_bytes(f, garbage, sizeof(request) - 1, -1), ==, EBADMSG);
    g_assert_cmpint(send_bytes(f, garbage, sizeof(request), -1), ==, EPROTO);
    g_assert_cmpint(send_bytes(f, garbage, sizeof(garbage), -1), ==, EBADMSG);
    g_assert_cmpint(send_bytes(f, &request, sizeof(request), STDERR_FILENO), ==, EPROTO);
    request.op = CH_HANDS_OP_N;
    g_assert_cmpint(send_bytes(f, &request, sizeof(request), -1), ==, ENOSYS);
    request.op = CH_HANDS_OP_LOOK;
    g_strlcpy(request.uid, "../../etc", sizeof(request.uid));
    g_assert_cmpint(send_bytes(f, &request, sizeof(request), -1), ==, EINVAL);
    assert_is_well(f);
}

/* Requests that are nearly right: any field, any value. */
static void
test_flood(Fixture *f, gconstpointer data)
{
    for (int i = 0; i < 3000; i++) {
        ChHandsRequest request = {
            .version = CH_HANDS_VERSION,
            .op = (uint32_t)g_test_rand_int_range(0, CH_HANDS_OP_N + 2),
            .flags = (uint32_t)g_test_rand_int_range(0, 3),
            .devices = (uint32_t)g_test_rand_int_range(0, CH_HANDS_DEVICES + 2),
            .handle = (uint64_t)g_test_rand_int_range(0, 3) * 0x8001,
            .ino = (uint64_t)g_test_rand_int_range(0, 2),
        };
        char reply[sizeof(ChHandsReply)];
        int fd = -EBADF;

        if (g_test_rand_bit())
            g_strlcpy(request.uid, FAKE_POD_UID, sizeof(request.uid));
        (void)ch_channel_send(f->channels[8 + i % 8], &request, sizeof(request), -1);
        (void)ch_channel_receive(f->channels[8 + i % 8], reply, sizeof(reply), &fd);
        if (fd >= 0)
            close(fd);
    }
    assert_is_well(f);
}

static void
test_handles(Fixture *f, gconstpointer data)
{
    ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    ChHandsRequest pipe_open = {.op = CH_HANDS_OP_PIPE_OPEN};
    ChHandsRequest release = {.op = CH_HANDS_OP_RELEASE, .version = CH_HANDS_VERSION};
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    pipe_open.handle = 0x10000;
    g_assert_cmpint(ask(f, &pipe_open).errnum, ==, ENOENT);
    g_assert_cmpint(ask(f, &connect).errnum, ==, ENOENT);

    fake_pod_start_launcher(&f->pod, false);
    reply = ask_fd(f, &connect, &fd);
    g_assert_cmpstr(reply.text, ==, "");
    g_assert_cmpint(reply.pid, ==, f->pod.pid);
    g_assert_cmpint(fd, >=, 0);
    pipe_open.handle = release.handle = reply.handle;
    reply = ask(f, &pipe_open);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.has_fd, ==, 1);
    g_assert_cmpint(ch_channel_send(f->channels[3], &release, sizeof(release), -1), ==, 0);
    g_assert_cmpint(ask(f, &pipe_open).errnum, ==, ENOENT);
}

static void
test_dead_launcher(Fixture *f, gconstpointer data)
{
    ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    ChHandsRequest device = {.op = CH_HANDS_OP_DEVICES_OWN, .devices = CH_HANDS_DEVICE_KVM};

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->pod, false);
    device.handle = ask(f, &connect).handle;
    g_assert_cmpint(ask(f, &device).errnum, ==, ENOENT); /* no such node */
    fake_pod_kill_launcher(&f->pod);
    g_assert_cmpint(ask(f, &device).errnum, ==, ESRCH);
    g_assert_cmpint(ask(f, &connect).errnum, ==, ECONNREFUSED);
}

/* What the pod's root was when it was identified stays its root: what has its name by now does not
 * count. */
static void
test_swapped_root(Fixture *f, gconstpointer data)
{
    ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    ChHandsRequest pipe_open = {.op = CH_HANDS_OP_PIPE_OPEN};
    g_autofree char *moved = g_build_filename(f->pod.dir, "moved", NULL);
    g_autofree char *outside = g_build_filename(f->pod.dir, "outside", NULL);

    if (fake_pod_skip())
        return;
    test_tree_mkdir(outside, "var/run/kubevirt");
    fake_pod_start_launcher(&f->pod, false);
    pipe_open.handle = ask(f, &connect).handle;
    g_assert_cmpint(g_rename(f->pod.root, moved), ==, 0);
    g_assert_cmpint(symlink(outside, f->pod.root), ==, 0);
    g_assert_cmpint(ask(f, &pipe_open).errnum, ==, 0);
    g_assert_true(test_tree_has(moved, "run/kubevirt/domain-notify-pipe.sock"));
    g_assert_false(test_tree_has(outside, "var/run/kubevirt/domain-notify-pipe.sock"));
}

/* A brain that fills channels with what is never answered and never reads: others are served, and
 * not refused for want of a process. */
static void
test_silent_flood(Fixture *f, gconstpointer data)
{
    ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    ChHandsRequest close = {.op = CH_HANDS_OP_PIPE_CLOSE, .version = CH_HANDS_VERSION, .ino = 1};
    ChHandsRequest pipe_open = {.op = CH_HANDS_OP_PIPE_OPEN};

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->pod, false);
    close.handle = pipe_open.handle = ask(f, &connect).handle;
    for (int i = 8; i < CH_HANDS_N_CHANNELS; i++)
        for (int n = 0; n < 40; n++)
            (void)ch_channel_send(f->channels[i], &close, sizeof(close), -1);
    for (int i = 0; i < 20; i++)
        g_assert_cmpint(ask(f, &pipe_open).errnum, ==, 0);
}

/* Nothing accepts: after the backlog of 16 the launcher is busy, not waited for. */
static void
test_backlog(Fixture *f, gconstpointer data)
{
    ChHandsRequest connect = {.op = CH_HANDS_OP_CONNECT, .uid = FAKE_POD_UID};
    int errnum = 0;

    if (fake_pod_skip())
        return;
    fake_pod_start_launcher(&f->pod, false);
    for (int i = 0; i < 50 && errnum == 0; i++)
        errnum = ask(f, &connect).errnum;
    g_assert_cmpint(errnum, ==, EAGAIN); /* ETIMEDOUT: of an operation that waited */
    g_assert_cmpint(
        ask(f, &(ChHandsRequest){.op = CH_HANDS_OP_PROBE, .uid = FAKE_POD_UID}).errnum, ==, EAGAIN);
}

static const struct {
    const char *path;
    void (*func)(Fixture *f, gconstpointer data);
} cases[] = {
    {"/server/refuses-what-it-does-not-know", test_refuses},
    {"/server/survives-a-flood", test_flood},
    {"/server/handles-live-until-release", test_handles},
    {"/server/dead-launcher-is-not-acted-on", test_dead_launcher},
    {"/server/swapped-root-does-not-count", test_swapped_root},
    {"/server/silent-flood", test_silent_flood},
    {"/server/full-backlog-is-not-waited-for", test_backlog},
};

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add(cases[i].path, Fixture, NULL, set_up, cases[i].func, tear_down);
    return g_test_run();
}
