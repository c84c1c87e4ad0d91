/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/hands/board.h"
#include "handler/hands/reply.h"
#include "handler/hands/sandbox.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"

typedef struct {
    ChStep step;
    char bytes[CH_HANDS_MAX_BYTES] __attribute__((aligned(8))); /* netlink wants it */
} Record;

typedef struct {
    ChHandsReply reply;
    uint32_t is_last;
    uint32_t zero;
} Answer;

static gsize
record_size(const ChStep *step)
{
    return G_STRUCT_OFFSET(Record, bytes) + step->request.n_bytes;
}

/* What the hands have open is theirs: other pods, and the channels. */
static bool
close_others(int channel_fd)
{
    const unsigned first = STDERR_FILENO + 1, kept = (unsigned)channel_fd;

    return (kept <= first || close_range(first, kept - 1, 0) == 0) &&
           close_range(MAX(first, kept + 1), ~0u, 0) == 0;
}

/* The board comes first: the brain's next request finds this child free. */
static void
answer_brain(int brain_fd, const ChStep *step, Answer *answer, int fd)
{
    ch_board_note(step->slot, step->turn, answer->is_last);
    if (!ch_hands_op_is_silent(step->request.op))
        (void)ch_reply_send(&answer->reply, brain_fd, answer->reply.errnum == 0 ? fd : -EBADF);
}

/* Returns whether there may be another one. */
static bool
do_step(int channel_fd, ChStepFunc func)
{
    static Record record;
    const ChStep *step = &record.step;
    ch_autofd int first_fd = -EBADF;
    ch_autofd int second_fd = -EBADF;
    ch_autofd int fd = -EBADF;
    Answer answer = {0};
    int fds[2] = {-EBADF, -EBADF};
    ssize_t n;

    if (ch_channel_wait(channel_fd, G_MAXINT64 / 2) < 0)
        return false;
    n = ch_channel_receive_fds(channel_fd, &record, sizeof(record), fds, G_N_ELEMENTS(fds));
    first_fd = fds[0];
    second_fd = fds[1];
    if (n < (ssize_t)G_STRUCT_OFFSET(Record, bytes) || (gsize)n != record_size(step))
        return false;
    ch_reply_init(&answer.reply, &step->request);
    answer.is_last =
        !func(step, record.bytes, step->turn != 0 ? second_fd : first_fd, &fd, &answer.reply);
    if (step->turn != 0)
        answer_brain(first_fd, step, &answer, fd);
    else if (ch_channel_send(channel_fd, &answer, sizeof(answer), fd) < 0)
        return false;
    return !answer.is_last;
}

static void
run(int channel_fd, ChStepFunc func, bool is_on_mounts)
{
    /* The parent may be gone before this takes effect; the channel is closed then. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (close_others(channel_fd) && (is_on_mounts || ch_sandbox_forbid_mounts() == 0))
        while (do_step(channel_fd, func))
            ;
    _exit(0);
}

int
ch_child_start(ChChild *out_child, ChStepFunc func, bool is_on_mounts)
{
    int pair[2];
    pid_t pid;
    int pidfd = -EBADF;
    int result = ch_channel_pair(pair);

    if (result < 0)
        return -result;
    pid = fork();
    if (pid == 0)
        run(pair[1], func, is_on_mounts);
    result = pid < 0 ? errno : 0;
    close(pair[1]);
    if (result == 0) {
        pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        /* A child that cannot be killed gets nothing to do, and ends as its channel closes. */
        result = pidfd < 0 && errno != ESRCH ? errno : 0;
    }
    if (result != 0) {
        close(pair[0]);
        return result;
    }
    *out_child = (ChChild){pair[0], pidfd};
    return 0;
}

int
ch_child_send(
    const ChChild *child, const ChStep *step, const void *bytes, int given_fd, int brain_fd)
{
    static Record record;
    int fds[2];
    size_t n_fds = 0;

    record.step = *step;
    if (step->request.n_bytes > 0)
        memcpy(record.bytes, bytes, step->request.n_bytes);
    if (step->turn != 0)
        fds[n_fds++] = brain_fd;
    if (given_fd >= 0)
        fds[n_fds++] = given_fd;
    return -ch_channel_send_fds(child->channel_fd, &record, record_size(step), fds, n_fds);
}

bool
ch_child_receive(const ChChild *child, ChHandsReply *out_reply, int *out_fd, bool *out_is_last)
{
    ch_autofd int fd = -EBADF;
    Answer answer;

    if (ch_channel_receive(child->channel_fd, &answer, sizeof(answer), &fd) !=
        (ssize_t)sizeof(answer))
        return false;
    *out_reply = answer.reply;
    *out_fd = g_steal_fd(&fd);
    *out_is_last = answer.is_last;
    return true;
}

bool
ch_child_has_ended(const ChChild *child)
{
    Answer answer;

    return ch_channel_receive(child->channel_fd, &answer, sizeof(answer), NULL) != -EAGAIN;
}

void
ch_child_dismiss(ChChild *child)
{
    ch_close_fd(&child->channel_fd);
    ch_close_fd(&child->pidfd);
}
