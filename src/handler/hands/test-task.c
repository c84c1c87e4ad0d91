/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/task.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "handler/hands/board.h"
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
static uint32_t op = CH_HANDS_OP_PIPE_OPEN;
static int brain_fd = -EBADF; /* where direct tasks are answered; none: tasks are not direct */

/* Starts it; returns the one task there is. */
static ChTask *
start(uint32_t flags)
{
    const ChTask task = {
        .is_on_mounts = is_on_mounts,
        .is_direct = brain_fd >= 0,
        .channel_fd = brain_fd,
        .request = {.op = op, .sequence = 3, .flags = flags, .n_bytes = 4},
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

/* --- direct tasks: the brain's end of a channel, of which the hands' end is brain_fd */

static int
open_brain(void)
{
    int pair[2];

    g_assert_cmpint(ch_channel_pair(pair), ==, 0);
    brain_fd = pair[0];
    return pair[1];
}

static void
close_brain(int *fd)
{
    ch_close_fd(&brain_fd);
    ch_close_fd(fd);
    dismiss_all();
}

static void
wait_until_settled(const ChTask *task)
{
    while (task->is_taken) {
        g_usleep(500);
        ch_task_settle();
    }
}

/* Returns the process that did it, which told nobody but the brain. */
static pid_t
succeed_directly(int fd, uint32_t flags)
{
    ChTask *task = start(flags);
    ch_autofd int got_fd = -EBADF;
    ChHandsReply reply;

    g_assert_cmpint(ch_task_time_left(ch_clock_us()), <=, CH_TASK_IDLE_US);
    g_assert_cmpint(ch_channel_wait(fd, ch_time_now_us() + 60 * CH_SECOND_US), ==, 0);
    g_assert_cmpint(ch_channel_receive(fd, &reply, sizeof(reply), &got_fd), ==, sizeof(reply));
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.sequence, ==, 3);
    g_assert_cmpuint(reply.dev, ==, 1);
    g_assert_cmpuint(reply.ino, ==, 6); /* one more: where it answers */
    g_assert_cmpuint(reply.has_fd, ==, 1);
    g_assert_cmpint(got_fd, >=, 0);
    ch_task_settle(); /* it was noted before it was answered */
    g_assert_false(task->is_taken);
    return reply.pid;
}

static void
test_direct(void)
{
    ch_autofd int fd = open_brain();
    const pid_t first = succeed_directly(fd, SUCCEED);

    ch_task_check_idle(0); /* nothing was told here */
    g_assert_cmpint(succeed_directly(fd, SUCCEED), ==, first);
    g_assert_cmpint(succeed_directly(fd, LEAVE_TRACES), ==, first);
    g_assert_cmpint(succeed_directly(fd, SUCCEED), !=, first);
    close_brain(&fd);
}

static void
test_direct_and_silent(void)
{
    ch_autofd int fd = open_brain();
    char buffer[8];

    op = CH_HANDS_OP_PIPE_CLOSE;
    wait_until_settled(start(SUCCEED));
    op = CH_HANDS_OP_PIPE_OPEN;
    g_assert_cmpint(ch_channel_receive(fd, buffer, sizeof(buffer), NULL), ==, -EAGAIN);
    close_brain(&fd);
}

/* The end of the child is all that is heard of it. */
static void
test_direct_child_ends(void)
{
    ch_autofd int fd = open_brain();
    ChTask *task = start(LEAVE_TRACES);
    ChHandsReply reply;
    int got_fd;

    wait_for(task);
    g_assert_false(ch_task_collect(task, &got_fd, &reply));
    g_assert_false(task->is_taken);
    task = start(DIE);
    wait_for(task);
    ch_task_settle();
    g_assert_true(ch_task_collect(task, &got_fd, &reply));
    g_assert_cmpint(reply.errnum, ==, ECHILD);
    ch_task_end(task);
    close_brain(&fd);
}

/* Its deadline passes before its note is seen: the slot is nobody else's until it has ended. */
static void
test_direct_answers_late(void)
{
    ch_autofd int fd = open_brain();
    ChTask *task = start(SUCCEED);
    ChHandsReply reply;
    int got_fd;

    g_assert_cmpint(ch_channel_wait(fd, ch_time_now_us() + 60 * CH_SECOND_US), ==, 0);
    ch_task_expire(task, &reply);
    ch_task_settle();
    g_assert_true(task->is_taken && task->is_late);
    wait_for(task);
    g_assert_false(ch_task_collect(task, &got_fd, &reply));
    g_assert_false(task->is_taken);
    (void)ch_channel_receive(fd, &reply, sizeof(reply), &got_fd);
    close(got_fd);
    (void)succeed_directly(fd, SUCCEED);
    close_brain(&fd);
}

static void
test_direct_hangs(void)
{
    ch_autofd int fd = open_brain();
    ChTask *task = start(HANG);
    ChHandsReply reply;
    int got_fd;

    g_assert_cmpint(ch_task_time_left(ch_clock_us() + CH_TASK_IDLE_US), >, 0); /* its deadline */
    ch_task_settle();
    g_assert_true(task->is_taken);
    ch_task_expire(task, &reply);
    g_assert_cmpint(reply.errnum, ==, ETIMEDOUT);
    wait_for(task);
    g_assert_false(ch_task_collect(task, &got_fd, &reply));
    g_assert_cmpint(ch_channel_receive(fd, &reply, sizeof(reply), NULL), ==, -EAGAIN);
    close_brain(&fd);
}

/* A child that could not be killed would keep its slot for ever, as a direct one tells nobody that
 * it is late. From here on none can. */
static void
test_no_pidfd(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    const ChTask task = {
        .request = {.op = CH_HANDS_OP_PIPE_OPEN},
        .pod = {.pidfd = -EBADF, .root_fd = -EBADF},
    };
    const int n_before = count_descriptors();
    ChHandsReply reply = {0};

    g_assert_nonnull(filter);
    g_assert_cmpint(
        seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENFILE), SCMP_SYS(pidfd_open), 0), ==, 0);
    g_assert_cmpint(seccomp_load(filter), ==, 0);
    seccomp_release(filter);
    g_assert_false(ch_task_start(&task, NULL, -EBADF, do_step, &reply));
    g_assert_cmpint(reply.errnum, ==, ENFILE);
    g_assert_cmpint(count_descriptors(), ==, n_before);
    g_assert_cmpint(ch_task_time_left(ch_clock_us()), ==, -1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    (void)signal(SIGCHLD, SIG_IGN); /* as the program does */
    g_assert_cmpint(ch_board_init(), ==, 0);
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
    g_test_add_func("/task/direct/brain-is-answered", test_direct);
    g_test_add_func("/task/direct/silent", test_direct_and_silent);
    g_test_add_func("/task/direct/child-ends", test_direct_child_ends);
    g_test_add_func("/task/direct/answers-late", test_direct_answers_late);
    g_test_add_func("/task/direct/hanging-child-is-killed", test_direct_hangs);
    g_test_add_func("/task/direct/no-pidfd", test_no_pidfd); /* the last one */
    return g_test_run();
}
