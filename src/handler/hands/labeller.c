/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/labeller.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "handler/hands/sandbox.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"
#include "lib/linux/clock.h"

#define FOREVER          (G_MAXINT64 / 2)
#define START_TIMEOUT_US INT64_C(10000000)

typedef struct {
    int32_t errnum; /* 0: done */
    char text[CH_HANDS_TEXT_SIZE];
} Answer;

static int labeller_fd = -EBADF; /* the hands' end; children have no copy */
static bool is_wanted;

/* --- in the labeller */

static void
carry_out(const ChTapLabelPlaces *places, int caller_fd)
{
    ChTapOrder order;
    ch_autofd int pidfd = -EBADF;
    ChHandsReply reply = {0};
    Answer answer = {0};

    if (ch_channel_receive(caller_fd, &order, sizeof(order), &pidfd) != sizeof(order) || pidfd < 0)
        return;
    order.name[sizeof(order.name) - 1] = '\0';
    if (!ch_tap_label_make(places, &order, pidfd, caller_fd, &reply))
        answer.errnum = reply.errnum;
    memcpy(answer.text, reply.text, sizeof(answer.text));
    (void)ch_channel_send(caller_fd, &answer, sizeof(answer), -1);
}

/* Returns false when the hands are gone. */
static bool
serve(const ChTapLabelPlaces *places, int channel_fd)
{
    ch_autofd int caller_fd = -EBADF;
    char byte;
    ssize_t n;

    if (ch_channel_wait(channel_fd, FOREVER) < 0)
        return false;
    n = ch_channel_receive(channel_fd, &byte, sizeof(byte), &caller_fd);
    if (n == 0 || n == -ECONNRESET)
        return false;
    if (n < 0 || caller_fd < 0 || fork() != 0) /* failing, its caller sees an end */
        return true;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(channel_fd);
    (void)signal(SIGCHLD, SIG_DFL); /* it has a child to wait for */
    carry_out(places, caller_fd);
    _exit(0);
}

static void
run(const ChTapLabelPlaces *places, int channel_fd)
{
    const unsigned kept = (unsigned)channel_fd;
    char reason[CH_ERRNO_TEXT_SIZE];
    int result;

    /* The parent may be gone before this takes effect; the channel is closed then. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps its children */
    if ((kept > STDERR_FILENO + 1 && close_range(STDERR_FILENO + 1, kept - 1, 0) < 0) ||
        close_range(kept + 1, ~0u, 0) < 0)
        _exit(EXIT_FAILURE);
    result = ch_sandbox_enter_labeller();
    if (result < 0) {
        (void)dprintf(STDERR_FILENO,
                      "virt-handler-hands: labels for taps: %s\n",
                      ch_errno_print(-result, reason));
        _exit(EXIT_FAILURE);
    }
    if (ch_channel_send(channel_fd, "", 1, -1) == 0) /* it is ready */
        while (serve(places, channel_fd))
            ;
    _exit(0);
}

/* --- in the hands */

int
ch_labeller_start(const ChTapLabelPlaces *places)
{
    int pair[2];
    int result = ch_channel_pair(pair);
    char byte;
    pid_t pid;

    if (result < 0)
        return result;
    pid = fork();
    if (pid == 0)
        run(places, pair[1]);
    result = pid < 0 ? -errno : 0;
    close(pair[1]);
    if (result == 0)
        result = ch_channel_wait(pair[0], ch_clock_us() + START_TIMEOUT_US);
    if (result == 0 && ch_channel_receive(pair[0], &byte, sizeof(byte), NULL) != sizeof(byte))
        result = -ECHILD;
    if (result < 0) {
        close(pair[0]);
        return result;
    }
    labeller_fd = pair[0];
    is_wanted = true;
    return 0;
}

bool
ch_labeller_is_wanted(void)
{
    return is_wanted;
}

int
ch_labeller_ask(const ChTapOrder *order, int pidfd, int *out_fd)
{
    int pair[2];
    int result = -ch_channel_pair(pair);

    if (result != 0)
        return result;
    result = -ch_channel_send(pair[0], order, sizeof(*order), pidfd);
    if (result == 0)
        result = -ch_channel_send(labeller_fd, "", 1, pair[1]);
    close(pair[1]);
    if (result == EPIPE || result == ECONNRESET) {
        (void)dprintf(STDERR_FILENO, "virt-handler-hands: the process for taps has ended\n");
        _exit(EXIT_FAILURE);
    }
    if (result != 0)
        close(pair[0]);
    else
        *out_fd = pair[0];
    return result;
}

bool
ch_labeller_await(int fd, ChHandsReply *reply)
{
    Answer answer;

    if (ch_channel_wait(fd, FOREVER) < 0 ||
        ch_channel_receive(fd, &answer, sizeof(answer), NULL) != sizeof(answer))
        return ch_reply_fail(reply, ECHILD, "the process for a tap ended early");
    if (answer.errnum == 0)
        return true;
    answer.text[sizeof(answer.text) - 1] = '\0';
    reply->errnum = answer.errnum;
    (void)g_strlcpy(reply->text, answer.text, sizeof(reply->text));
    return false;
}
