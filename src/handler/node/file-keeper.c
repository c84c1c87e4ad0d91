/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/file-keeper.h"

#include <errno.h>

#include "handler/node/dir-events.h"
#include "lib/base/backoff.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"

#define MIN_GAP_US  CH_SECOND_US
#define END_WAIT_US (2 * CH_SECOND_US)

static const ChBackoffSpec backoff_spec = {
    .initial_us = CH_SECOND_US,
    .cap_us = 60 * CH_SECOND_US,
    .factor = 2,
    .jitter = 0.1,
};

struct ChFileKeeper {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChHands *hands;
    const ChFileKeeperSpec *spec;
    gpointer data;

    int watch_fd;     /* owned; -EBADF: none */
    ChFdWatch *watch; /* NULL: what it says can wait until the timer ends */
    ChTimer *timer;
    ChBackoff backoff;
    int64_t last_us; /* when it was settled, or events taken, last; 0: never */
    bool is_kept;    /* started, and not stopped */
    bool is_due;     /* to be settled, whatever the watch says */
    bool is_busy;    /* a job is under way */
    bool is_ending;  /* done is to be called */
    ChLoopFunc done; /* (nullable) */
    gpointer done_data;
};

typedef struct {
    ChFileKeeper *keeper;
    bool wants_watch;
    bool ends;

    int watch_fd; /* owned; -EBADF: none */
    ChHandsReply reply;
    GError *error;       /* owned */
    GError *watch_error; /* owned */
} Job;

static void
job_free(gpointer data)
{
    Job *job = data;

    ch_close_fd(&job->watch_fd);
    g_clear_error(&job->error);
    g_clear_error(&job->watch_error);
    g_free(job);
}

/* --- in a worker */

static void deliver(gpointer data);

static void
run(gpointer data)
{
    Job *job = data;
    const ChFileKeeper *keeper = job->keeper; /* what a worker looks at of it never changes */
    const ChHandsRequest watch = {.op = keeper->spec->watch};
    const ChHandsRequest settle = {
        .op = keeper->spec->settle,
        .flags = job->ends ? CH_HANDS_REMOVE : 0,
    };

    /* First the watch, so that nothing happens between the two. */
    if (job->wants_watch)
        (void)ch_hands_call(keeper->hands, &watch, NULL, &job->watch_fd, &job->watch_error);
    (void)ch_hands_call(keeper->hands, &settle, &job->reply, NULL, &job->error);
    ch_loop_post(keeper->loop, deliver, job, job_free);
}

/* --- in the loop */

static void
drop_watch(ChFileKeeper *keeper)
{
    g_clear_pointer(&keeper->watch, ch_fd_watch_free);
    ch_close_fd(&keeper->watch_fd);
}

static void
begin(ChFileKeeper *keeper, bool ends)
{
    Job *job = g_new0(Job, 1);

    job->keeper = keeper;
    job->ends = ends;
    job->wants_watch = !ends && keeper->watch_fd < 0;
    job->watch_fd = -EBADF;
    keeper->is_busy = true;
    keeper->is_due = ends && keeper->is_due; /* it may be started again meanwhile */
    ch_worker_pool_run(keeper->pool, run, job, job_free);
}

/* A second after the last time at the earliest. */
static void
schedule(ChFileKeeper *keeper, int64_t delay_us)
{
    const int64_t gap_us =
        keeper->last_us == 0 ? 0 : keeper->last_us + MIN_GAP_US - ch_time_now_us();

    if (!keeper->is_busy)
        ch_timer_arm(keeper->timer, MAX(delay_us, MAX(gap_us, 0)));
}

static void
on_readable(int fd, short what, gpointer data)
{
    ChFileKeeper *keeper = data;

    g_clear_pointer(&keeper->watch, ch_fd_watch_free);
    schedule(keeper, 0);
}

static void
resume_watch(ChFileKeeper *keeper)
{
    if (keeper->watch_fd >= 0 && keeper->watch == NULL)
        keeper->watch =
            ch_fd_watch_new(keeper->loop, keeper->watch_fd, EV_READ, on_readable, keeper);
}

static void
take_events(ChFileKeeper *keeper)
{
    const unsigned events =
        keeper->watch_fd < 0 ? 0 : ch_dir_events_read(keeper->watch_fd, keeper->spec->name);

    keeper->last_us = ch_time_now_us(); /* events of other names have their price, too */
    if (events & CH_DIR_LOST)
        drop_watch(keeper);
    if (events != 0)
        keeper->is_due = true;
}

static void
end(ChFileKeeper *keeper)
{
    keeper->is_ending = false;
    ch_timer_disarm(keeper->timer);
    if (keeper->done != NULL)
        keeper->done(keeper->done_data);
}

static void
on_timer(gpointer data)
{
    ChFileKeeper *keeper = data;

    if (keeper->is_ending) { /* nobody waits any longer */
        end(keeper);
        return;
    }
    take_events(keeper);
    if (keeper->is_due)
        begin(keeper, false);
    else
        resume_watch(keeper);
}

static void
judge(ChFileKeeper *keeper, const Job *job)
{
    const GError *error = job->error != NULL ? job->error : job->watch_error;
    const bool wants_again = keeper->spec->on_settled(keeper->data, &job->reply, error);
    int64_t delay_us = 0;

    if (error != NULL && (wants_again || keeper->watch_fd < 0)) {
        delay_us = ch_backoff_next(&keeper->backoff, ch_time_now_us(), g_random_double());
        keeper->is_due = true;
    } else {
        ch_backoff_reset(&keeper->backoff);
    }
    if (keeper->is_due)
        schedule(keeper, delay_us);
    resume_watch(keeper);
}

static void
deliver(gpointer data)
{
    Job *job = data;
    ChFileKeeper *keeper = job->keeper;

    keeper->is_busy = false;
    keeper->last_us = ch_time_now_us();
    if (keeper->is_ending && !job->ends && keeper->spec->has_end) {
        begin(keeper, true);
        return;
    }
    if (keeper->is_ending) {
        end(keeper);
    } else if (keeper->is_kept && !job->ends) {
        if (job->watch_fd >= 0) {
            drop_watch(keeper);
            keeper->watch_fd = g_steal_fd(&job->watch_fd);
        }
        judge(keeper, job);
        return;
    }
    if (keeper->is_due) /* started again meanwhile */
        schedule(keeper, 0);
}

ChFileKeeper *
ch_file_keeper_new(
    ChLoop *loop, ChWorkerPool *pool, ChHands *hands, const ChFileKeeperSpec *spec, gpointer data)
{
    ChFileKeeper *keeper = g_new0(ChFileKeeper, 1);

    keeper->loop = loop;
    keeper->pool = pool;
    keeper->hands = hands;
    keeper->spec = spec;
    keeper->data = data;
    keeper->watch_fd = -EBADF;
    keeper->timer = ch_timer_new(loop, on_timer, keeper);
    ch_backoff_init(&keeper->backoff, &backoff_spec);
    return keeper;
}

void
ch_file_keeper_free(ChFileKeeper *keeper)
{
    if (keeper == NULL)
        return;
    drop_watch(keeper);
    ch_timer_free(keeper->timer);
    g_free(keeper);
}

void
ch_file_keeper_start(ChFileKeeper *keeper)
{
    keeper->is_kept = true;
    keeper->is_due = true;
    schedule(keeper, 0);
}

void
ch_file_keeper_stop(ChFileKeeper *keeper, ChLoopFunc done, gpointer data)
{
    const bool was_kept = keeper->is_kept;

    keeper->is_kept = keeper->is_due = false;
    ch_timer_disarm(keeper->timer);
    drop_watch(keeper);
    if (!keeper->is_busy && !(was_kept && keeper->spec->has_end)) {
        if (done != NULL)
            ch_loop_post(keeper->loop, done, data, NULL);
        return;
    }
    keeper->is_ending = true;
    keeper->done = done;
    keeper->done_data = data;
    ch_timer_arm(keeper->timer, END_WAIT_US);
    if (!keeper->is_busy)
        begin(keeper, true);
}
