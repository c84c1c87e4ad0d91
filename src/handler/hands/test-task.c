/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/task.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/channel.h"
#include "lib/linux/clock.h"

/* What the step is to do, as a request's flags. */
enum { SUCCEED, HANG, DIE, LEAVE_TRACES };

static int
count_descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 100; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* @reply tells who did it, how many descriptors it has, and whether it got one and @bytes. */
static bool
do_step(const ChStep *step, const void *bytes, int given_fd, int *out_fd, ChHandsReply *reply)
{
    const uint32_t flags = step->request.flags;

    if (flags == HANG)
        pause();
    if (flags == DIE)
        raise(SIGKILL);
    reply->ino = (uint64_t)count_descriptors();
    reply->pid = getpid();
    reply->dev = given_fd >= 0 && (fcntl(given_fd, F_GETFL) & O_ACCMODE) == O_RDONLY &&
                 memcmp(bytes, "text", step->request.n_bytes) == 0;
    *out_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return flags != LEAVE_TRACES;
}

static bool is_on_mounts;

/* Starts it; returns the one task there is. */
static ChTask *
start(uint32_t flags)
{
    const ChTask task = {
        .is_on_mounts = is_on_mounts,
        .request = {.op = CH_HANDS_OP_PIPE_OPEN, .sequence = 3, .flags = flags, .n_bytes = 4},
        .pod = {.uid = "some-pod", .pidfd = -EBADF, .root_fd = -EBADF},
    };
    ch_autofd int given_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ChHandsReply reply = {0};
    ChTask *found = NULL;

    if (!ch_task_start(&task, "text", given_fd, do_step, &reply)) {
        g_assert_cmpint(reply.errnum, ==, EAGAIN);
        return NULL;
    }
    for (unsigned i = 0; i < CH_TASK_MAX; i++)
        if (ch_task_peek(i) != NULL && !ch_task_peek(i)->is_late)
            found = ch_task_peek(i);
    g_assert_nonnull(found);
    return found;
}

static void
wait_for(const ChTask *task)
{
    g_assert_cmpint(
        ch_channel_wait(task->child.channel_fd, ch_time_now_us() + 60 * CH_SECOND_US), ==, 0);
}

/* Returns the process that did it. */
static pid_t
succeed(uint32_t flags)
{
    ChTask *task = start(flags);
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    g_assert_nonnull(task);
    wait_for(task);
    g_assert_true(ch_task_collect(task, &fd, &reply));
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.dev, ==, 1);
    g_assert_cmpuint(reply.ino, ==, 5); /* the standard ones, its channel, what it was given */
    g_assert_cmpuint(reply.sequence, ==, 3);
    g_assert_cmpint(fd, >=, 0);
    ch_task_end(task);
    return reply.pid;
}

static void
dismiss_all(void)
{
    ch_task_dismiss_idle(ch_clock_us() + CH_TASK_IDLE_US);
    g_assert_cmpint(ch_task_time_left(ch_clock_us()), ==, -1);
}

static void
test_succeed(void)
{
    ChTask *task = start(SUCCEED);

    g_assert_cmpint(ch_task_time_left(ch_clock_us()), >, 0);
    wait_for(task);
    ch_task_expire(task, &(ChHandsReply){0}); /* its answer is too late */
    g_assert_false(ch_task_collect(task, &(int){-EBADF}, &(ChHandsReply){0}));
    g_assert_cmpint(ch_task_time_left(ch_clock_us()), ==, -1);
    (void)succeed(SUCCEED);
    g_assert_cmpint(ch_task_time_left(ch_clock_us()), >=, 0); /* the child's */
    dismiss_all();
}

/* The process stays for the next step, and then for none when it is not as it was, or idle. */
static void
test_same_child(void)
{
    const pid_t first = succeed(SUCCEED);
    pid_t second;

    for (int i = 0; i < 100; i++)
        g_assert_cmpint(succeed(SUCCEED), ==, first);
    g_assert_cmpint(succeed(LEAVE_TRACES), ==, first);
    second = succeed(SUCCEED);
    g_assert_cmpint(second, !=, first);
    ch_task_dismiss_idle(0); /* its time is not over */
    g_assert_cmpint(succeed(SUCCEED), ==, second);
    dismiss_all();
    g_assert_cmpint(succeed(SUCCEED), !=, second);
    dismiss_all();
}

/* One that may touch mounts is nobody else's, before or after. */
static void
test_child_of_its_own(void)
{
    const pid_t first = succeed(SUCCEED);

    is_on_mounts = true;
    g_assert_cmpint(succeed(LEAVE_TRACES), !=, first);
    is_on_mounts = false;
    g_assert_cmpint(succeed(SUCCEED), ==, first);
    dismiss_all();
}

/* Of an idle child one may not have heard that it died. */
static void
test_idle_child_dies(void)
{
    pid_t last = succeed(SUCCEED);

    for (int is_heard = 0; is_heard < 2; is_heard++) {
        const pid_t dead = last;

        ch_task_check_idle(0); /* it lives */
        g_assert_cmpint(succeed(SUCCEED), ==, dead);
        g_assert_cmpint(kill(dead, SIGKILL), ==, 0);
        while (kill(dead, 0) == 0)
            g_usleep(1000);
        if (is_heard) {
            ch_task_check_idle(0);
            g_assert_cmpint(ch_task_time_left(ch_clock_us()), ==, -1);
        }
        last = succeed(SUCCEED);
        g_assert_cmpint(last, !=, dead);
    }
    dismiss_all();
}

static void
test_die(void)
{
    ChTask *task = start(DIE);
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    wait_for(task);
    g_assert_true(ch_task_collect(task, &fd, &reply));
    g_assert_cmpint(reply.errnum, ==, ECHILD);
    g_assert_cmpint(fd, <, 0);
    ch_task_end(task);
}

static void
test_hang(void)
{
    ChTask *task = start(HANG);
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;

    ch_task_expire(task, &reply);
    g_assert_cmpint(reply.errnum, ==, ETIMEDOUT);
    g_assert_cmpuint(reply.sequence, ==, 3);
    g_assert_cmpint(ch_task_time_left(ch_clock_us()), ==, -1); /* waits for nothing */
    wait_for(task);                                            /* its end, as it was killed */
    g_assert_false(ch_task_collect(task, &fd, &reply));
    g_assert_false(task->is_taken);
}

/* A child that was just forked has a copy of each channel until it has closed them. */
static void
test_nothing_is_told_of_the_dismissed(void)
{
    ch_autofd int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ch_autofd int copy_fd = -EBADF;
    struct epoll_event event;
    ChHandsReply reply;
    ChTask *task;
    int fd;

    ch_task_set_epoll(epoll_fd, 7);
    task = start(HANG);
    copy_fd = fcntl(task->child.channel_fd, F_DUPFD_CLOEXEC, 0);
    ch_task_expire(task, &reply);
    g_assert_cmpint(epoll_wait(epoll_fd, &event, 1, 60000), ==, 1);
    g_assert_cmpuint(event.data.u32, ==, 7);
    g_assert_false(ch_task_collect(task, &fd, &reply));
    g_assert_cmpint(epoll_wait(epoll_fd, &event, 1, 0), ==, 0);
    ch_task_set_epoll(-EBADF, 0);
}

/* As with children that cannot die: they are stopped waiting for, not collected. */
static void
test_limit_per_pod(void)
{
    ChTask *late[CH_TASK_MAX_LATE];
    ChHandsReply reply;
    int fd;

    for (int i = 0; i < CH_TASK_MAX_LATE; i++) {
        late[i] = start(HANG);
        g_assert_nonnull(late[i]);
        ch_task_expire(late[i], &reply);
    }
    g_assert_null(start(SUCCEED));
    for (int i = 0; i < CH_TASK_MAX_LATE; i++) {
        wait_for(late[i]);
        g_assert_false(ch_task_collect(late[i], &fd, &reply));
    }
    (void)succeed(SUCCEED); /* once they are gone the pod is served again */
}

static void
test_full(void)
{
    ChTask *task;
    ChHandsReply reply;
    int fd;

    for (int i = 0; i < CH_TASK_MAX; i++)
        g_assert_nonnull(start(HANG));
    g_assert_null(start(HANG));
    for (unsigned i = 0; i < CH_TASK_MAX; i++) {
        task = ch_task_peek(i);
        ch_task_expire(task, &reply);
        wait_for(task);
        g_assert_false(ch_task_collect(task, &fd, &reply));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    (void)signal(SIGCHLD, SIG_IGN); /* as the program does */
    g_test_add_func("/task/answer-and-descriptor-come-back", test_succeed);
    g_test_add_func("/task/child-stays-for-the-next", test_same_child);
    g_test_add_func("/task/child-of-its-own", test_child_of_its_own);
    g_test_add_func("/task/idle-child-dies", test_idle_child_dies);
    g_test_add_func("/task/early-end-is-an-error", test_die);
    g_test_add_func("/task/hanging-child-is-killed", test_hang);
    g_test_add_func("/task/nothing-is-told-of-the-dismissed",
                    test_nothing_is_told_of_the_dismissed);
    g_test_add_func("/task/hanging-pod-is-refused", test_limit_per_pod);
    g_test_add_func("/task/no-more-than-fit", test_full);
    return g_test_run();
}
