/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "handler/hands/operation.h"
#include "handler/hands/protocol.h"
#include "handler/hands/reply.h"
#include "handler/hands/task.h"
#include "lib/base/crash-point.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"
#include "lib/linux/clock.h"

#define MAX_A_TURN 16 /* records of one channel before the others' turn */
#define NO_ROOM_MS                                                                                 \
    1 /* until slots are looked at again while none is free: children wake nobody                  \
       */

/* A reply that does not fit is dropped. A brain that is gone is noticed by the next poll. */
static void
answer(int channel_fd, const ChHandsRequest *request, ChHandsReply *reply, int fd)
{
    CH_CRASH_POINT("hands/done");
    if (ch_hands_op_is_silent(request->op))
        return;
    if (!ch_reply_send(reply, channel_fd, fd) && reply->handle != 0)
        (void)ch_pod_table_release(reply->handle); /* nobody will know this handle */
}

typedef enum {
    SERVED_NOTHING,
    SERVED_SILENT, /* never answered: there may be more */
    SERVED_ASKED,  /* its asker waits */
    SERVED_GONE,   /* the brain is */
} Served;

static Served
serve_record(int channel_fd)
{
    /* one more, to tell a longer record; netlink wants its messages aligned */
    static char bytes[sizeof(ChHandsRequest) + CH_HANDS_MAX_BYTES + 1] __attribute__((aligned(8)));
    const ssize_t n = ch_channel_receive(channel_fd, bytes, sizeof(bytes), NULL);
    ChHandsRequest request = {0};
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;
    int refusal;

    if (n == -EAGAIN)
        return SERVED_NOTHING;
    if (n == 0 || n == -ECONNRESET)
        return SERVED_GONE;
    refusal = n < 0 ? (int)-n : ch_hands_request_check(bytes, (size_t)n, &request);
    ch_reply_init(&reply, &request);
    CH_CRASH_POINT("hands/asked");
    if (refusal != 0)
        (void)ch_reply_fail(&reply, refusal, "refused request '%s'", ch_hands_op_name(request.op));
    if (refusal != 0 ||
        ch_operation_begin(&request, bytes + sizeof(request), channel_fd, &fd, &reply))
        answer(channel_fd, &request, &reply, fd);
    return ch_hands_op_is_silent(request.op) ? SERVED_SILENT : SERVED_ASKED;
}

/* What is only told comes in bursts on one channel, and frees what others wait for. Returns false
 * when the brain is gone. */
static bool
serve_channel(int channel_fd)
{
    Served served = SERVED_SILENT;

    for (int i = 0; i < MAX_A_TURN && served == SERVED_SILENT && ch_task_has_room(); i++)
        served = serve_record(channel_fd);
    return served != SERVED_GONE;
}

/* What happened on a channel, or on the child of a task. */
typedef struct {
    uint32_t channels[CH_HANDS_N_CHANNELS];
    uint32_t tasks[CH_TASK_MAX];
} Events;

/* Each channel once, beginning where the last round ended for want of room. Returns false when the
 * brain is gone. */
static bool
serve_channels(const Events *events)
{
    static int next;

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        const int index = (next + i) % CH_HANDS_N_CHANNELS;

        if (events->channels[index] == 0)
            continue;
        if (!ch_task_has_room()) {
            next = index;
            return !(events->channels[index] & EPOLLHUP);
        }
        if (!serve_channel(CH_HANDS_FIRST_FD + index))
            return false;
    }
    return true;
}

static void
serve_task(unsigned index)
{
    ChTask *task = ch_task_peek(index);
    ch_autofd int fd = -EBADF;
    ChHandsReply reply;
    int result_fd;

    if (task == NULL)
        ch_task_check_idle(index);
    if (task == NULL || !ch_task_collect(task, &fd, &reply))
        return;
    result_fd = ch_operation_finish(task, &fd, &reply);
    answer(task->channel_fd, &task->request, &reply, result_fd);
    ch_task_end(task);
}

static void
expire_tasks(int64_t now_us)
{
    for (unsigned i = 0; i < ch_task_n_used(); i++) {
        ChTask *task = ch_task_peek(i);
        ChHandsReply reply;

        if (task == NULL || task->is_late || task->deadline_us > now_us)
            continue;
        ch_task_expire(task, &reply);
        answer(task->channel_fd, &task->request, &reply, -EBADF);
    }
}

static int
want_requests(int epoll_fd, int operation, bool are_wanted)
{
    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++) {
        struct epoll_event event = {.events = are_wanted ? EPOLLIN : 0, .data.u32 = (uint32_t)i};

        if (epoll_ctl(epoll_fd, operation, CH_HANDS_FIRST_FD + i, &event) < 0)
            return errno;
    }
    return 0;
}

/* Returns 0 or a positive errno. */
static int
wait_for_work(int epoll_fd, Events *out_events)
{
    static bool are_wanted = true;
    const int64_t left_us = ch_task_time_left(ch_clock_us());
    struct epoll_event events[CH_HANDS_N_CHANNELS + CH_TASK_MAX];
    int timeout_ms = left_us < 0 ? -1 : (int)((left_us + 999) / 1000);
    int result = 0;
    int n;

    /* Requests wait in their channels while all slots are taken; they are not refused for that. */
    if (are_wanted != ch_task_has_room()) {
        are_wanted = !are_wanted;
        result = want_requests(epoll_fd, EPOLL_CTL_MOD, are_wanted);
    }
    if (result != 0)
        return result;
    if (!are_wanted)
        timeout_ms = timeout_ms < 0 ? NO_ROOM_MS : MIN(timeout_ms, NO_ROOM_MS);
    n = epoll_wait(epoll_fd, events, G_N_ELEMENTS(events), timeout_ms);
    if (n < 0)
        return errno;
    for (int i = 0; i < n; i++) {
        if (events[i].data.u32 < CH_HANDS_N_CHANNELS)
            out_events->channels[events[i].data.u32] = events[i].events;
        else
            out_events->tasks[events[i].data.u32 - CH_HANDS_N_CHANNELS] = events[i].events;
    }
    return 0;
}

int
ch_server_run(void)
{
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int result = epoll_fd < 0 ? errno : want_requests(epoll_fd, EPOLL_CTL_ADD, true);

    if (result != 0)
        return result;
    ch_task_set_epoll(epoll_fd, CH_HANDS_N_CHANNELS);
    for (;;) {
        Events events = {0};

        result = wait_for_work(epoll_fd, &events);
        if (result == EINTR)
            continue;
        if (result != 0)
            return result;
        /* Tasks first: a channel's new request may take the slot of one that ends here. */
        ch_task_settle();
        for (unsigned i = 0; i < CH_TASK_MAX; i++)
            if (events.tasks[i] != 0)
                serve_task(i);
        expire_tasks(ch_clock_us());
        ch_task_dismiss_idle(ch_clock_us());
        if (!serve_channels(&events))
            return 0;
    }
}
