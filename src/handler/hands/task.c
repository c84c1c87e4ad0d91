/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/task.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#include "handler/hands/board.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/clock.h"
#include "lib/linux/pidfd.h"

static ChTask tasks[CH_TASK_MAX];
static unsigned n_used; /* slots from there on have neither task nor child */
static int epoll_fd = -EBADF;
static uint32_t first_event;

void
ch_task_set_epoll(int new_epoll_fd, uint32_t first)
{
    epoll_fd = new_epoll_fd;
    first_event = first;
}

/* One with an idle child rather than one without, or the other way round for a task that takes no
 * idle child; always the first, so that the others' time passes. */
static ChTask *
find_free(bool is_on_mounts)
{
    ChTask *other = NULL;

    for (unsigned i = 0; i < CH_TASK_MAX; i++) {
        if (tasks[i].is_taken)
            continue;
        if (tasks[i].has_child != is_on_mounts)
            return &tasks[i];
        if (other == NULL)
            other = &tasks[i];
    }
    return other;
}

/* Closing alone does not end the watch: a child that was just forked still has a copy, and what is
 * told by that would count for the slot's next child. */
static void
dismiss_child(ChTask *slot)
{
    if (slot->has_child && epoll_fd >= 0)
        (void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, slot->child.channel_fd, NULL);
    if (slot->has_child)
        ch_child_dismiss(&slot->child);
    slot->has_child = false;
}

static unsigned
count_late(const char *uid)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_used; i++)
        if (tasks[i].is_taken && tasks[i].is_late && g_str_equal(tasks[i].pod.uid, uid))
            n++;
    return n;
}

/* Returns 0 or a positive errno. */
static int
start_child(ChTask *slot, ChStepFunc func, bool is_on_mounts)
{
    struct epoll_event event = {.events = EPOLLIN};
    int result = ch_child_start(&slot->child, func, is_on_mounts);

    if (result != 0)
        return result;
    slot->has_child = true;
    n_used = MAX(n_used, (unsigned)(slot - tasks) + 1);
    event.data.u32 = first_event + (uint32_t)(slot - tasks);
    if (epoll_fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, slot->child.channel_fd, &event) < 0) {
        result = errno;
        dismiss_child(slot);
    }
    return result;
}

static uint32_t
next_turn(void)
{
    static uint32_t last;

    last = last < CH_BOARD_MAX_TURN ? last + 1 : 1;
    return last;
}

/* Returns 0 or a positive errno. An idle child may have died meanwhile, but a new one has not. */
static int
hand_over(ChTask *slot,
          const ChTask *task,
          uint32_t turn,
          const void *bytes,
          int given_fd,
          ChStepFunc func)
{
    ChStep step = {.request = task->request,
                   .pid = task->pod.pid,
                   .inode = task->connection.inode,
                   .slot = (uint32_t)(slot - tasks),
                   .turn = turn};
    int result;

    memcpy(step.pod_uid, task->pod.uid, sizeof(step.pod_uid));
    if (slot->has_child && !task->is_on_mounts &&
        ch_child_send(&slot->child, &step, bytes, given_fd, task->channel_fd) == 0)
        return 0;
    dismiss_child(slot);
    result = start_child(slot, func, task->is_on_mounts);
    if (result != 0)
        return result;
    result = ch_child_send(&slot->child, &step, bytes, given_fd, task->channel_fd);
    if (result != 0)
        dismiss_child(slot);
    return result == EPIPE || result == ECONNRESET ? ECHILD : result;
}

bool
ch_task_start(
    const ChTask *task, const void *bytes, int given_fd, ChStepFunc func, ChHandsReply *reply)
{
    ChTask *slot = find_free(task->is_on_mounts);
    const bool is_direct = task->is_direct && ch_board_is_there();
    const uint32_t turn = is_direct ? next_turn() : 0;
    ChChild child;
    int result;

    if (slot == NULL)
        return ch_reply_fail(reply, EAGAIN, "too many operations in pods hang");
    if (count_late(task->pod.uid) >= CH_TASK_MAX_LATE)
        return ch_reply_fail(reply, EAGAIN, "earlier operations in pod '%s' hang", task->pod.uid);
    result = hand_over(slot, task, turn, bytes, given_fd, func);
    if (result != 0)
        return ch_reply_fail(reply, result, "hand an operation to a process");
    child = slot->child;
    *slot = *task;
    slot->is_taken = true;
    slot->is_late = false;
    slot->has_child = true;
    slot->child = child;
    slot->is_direct = is_direct;
    slot->turn = turn;
    slot->started_us = ch_clock_us();
    slot->deadline_us = slot->started_us + ch_hands_op_deadline_us(task->request.op);
    return true;
}

bool
ch_task_has_room(void)
{
    bool are_all_late = true;

    for (unsigned i = 0; i < CH_TASK_MAX; i++) {
        if (!tasks[i].is_taken)
            return true;
        are_all_late = are_all_late && tasks[i].is_late;
    }
    return are_all_late;
}

unsigned
ch_task_count(uint32_t op)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_used; i++)
        n += tasks[i].is_taken && tasks[i].request.op == op;
    return n;
}

unsigned
ch_task_n_used(void)
{
    return n_used;
}

ChTask *
ch_task_peek(unsigned index)
{
    return tasks[index].is_taken ? &tasks[index] : NULL;
}

/* Its child is idle until @deadline_us. */
static void
free_slot(ChTask *task, int64_t deadline_us)
{
    const ChTask idle = {
        .has_child = task->has_child,
        .child = task->child,
        .deadline_us = deadline_us,
    };

    if (task->request.op == CH_HANDS_OP_CONNECT) {
        ch_close_fd(&task->connection.socket_fd);
        ch_close_fd(&task->pod.pidfd);
        ch_close_fd(&task->pod.root_fd);
    }
    *task = idle;
}

/* Returns whether it was done. */
static bool
settle(ChTask *task)
{
    bool child_ends = false;

    if (!task->is_taken || task->is_late || !task->is_direct ||
        !ch_board_shows((unsigned)(task - tasks), task->turn, &child_ends))
        return false;
    if (child_ends)
        dismiss_child(task);
    free_slot(task, task->started_us + CH_TASK_IDLE_US);
    return true;
}

void
ch_task_settle(void)
{
    for (unsigned i = 0; i < n_used; i++)
        (void)settle(&tasks[i]);
}

bool
ch_task_collect(ChTask *task, int *out_fd, ChHandsReply *out_reply)
{
    bool is_last = true;

    if (task->is_late) {
        dismiss_child(task);
        ch_task_end(task);
        return false;
    }
    if (settle(task))
        return false;
    *out_fd = -EBADF;
    if (!ch_child_receive(&task->child, out_reply, out_fd, &is_last)) {
        ch_reply_init(out_reply, &task->request);
        (void)ch_reply_fail(out_reply, ECHILD, "an operation's process ended early");
    }
    if (is_last)
        dismiss_child(task);
    return true;
}

void
ch_task_check_idle(unsigned index)
{
    ChTask *slot = &tasks[index];

    if (!slot->is_taken && slot->has_child && ch_child_has_ended(&slot->child))
        dismiss_child(slot);
}

void
ch_task_expire(ChTask *task, ChHandsReply *out_reply)
{
    if (task->child.pidfd >= 0)
        (void)ch_pidfd_kill(task->child.pidfd, SIGKILL);
    task->is_late = true;
    ch_reply_init(out_reply, &task->request);
    (void)ch_reply_fail(out_reply, ETIMEDOUT, "an operation in pod '%s'", task->pod.uid);
}

void
ch_task_end(ChTask *task)
{
    free_slot(task, ch_clock_us() + CH_TASK_IDLE_US);
}

void
ch_task_dismiss_idle(int64_t now_us)
{
    for (unsigned i = 0; i < n_used; i++)
        if (!tasks[i].is_taken && tasks[i].deadline_us <= now_us)
            dismiss_child(&tasks[i]);
    while (n_used > 0 && !tasks[n_used - 1].is_taken && !tasks[n_used - 1].has_child)
        n_used--;
}

/* A direct task is mostly done long before its deadline, and its child idle since then. */
static int64_t
next_look(const ChTask *task, int64_t now_us)
{
    const int64_t idle_us = task->started_us + CH_TASK_IDLE_US;

    return task->is_taken && task->is_direct && idle_us > now_us ? MIN(idle_us, task->deadline_us)
                                                                 : task->deadline_us;
}

int64_t
ch_task_time_left(int64_t now_us)
{
    int64_t nearest_us = -1;

    for (unsigned i = 0; i < n_used; i++) {
        const ChTask *task = &tasks[i];
        int64_t left_us;

        if (!task->has_child || task->is_late)
            continue;
        left_us = MAX(next_look(task, now_us) - now_us, 0);
        if (nearest_us < 0 || left_us < nearest_us)
            nearest_us = left_us;
    }
    return nearest_us;
}
