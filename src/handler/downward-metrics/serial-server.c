/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/serial-server.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "handler/downward-metrics/request.h"
#include "handler/pod/pod.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define INVALID_REQUEST "INVALID REQUEST\n\n"
#define NO_METRICS                                                                                 \
    "<metrics><!-- host metrics not available --><!-- VM metrics not available --></metrics>"
#define END "\n\n" /* of each answer */

struct ChSerialServer {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChSerialJobs *jobs;
    const ChSerialSeam *seam;
    gpointer seam_data;
    char *key, *uid;
    atomic_int references; /* the owner's, and one of each job */

    /* The loop's thread only. */
    bool has_ended;
    bool has_failed; /* the last report */
    ChWorkFunc work; /* of the job that waits, or runs */
    unsigned n_attempts;
    int fd;
    ChFdWatch *watch; /* for whatever is waited for */
    ChTimer *timer;   /* the pause between attempts, or between requests */
    int64_t next_us;  /* when the next request may be read */
    char *answer;     /* owned; NULL: none is under way */
    gsize n_answer, n_sent;
    gsize n_bytes;
    char bytes[CH_METRICS_REQUEST_MAX]; /* that were read and not used yet */
};

/* What a worker does, and what came of it. */
typedef struct {
    ChSerialServer *server; /* referenced */
    int fd;
    char *report;
    GError *error;
} Job;

static void read_request(ChSerialServer *server);
static void take_turn(ChSerialServer *server);
static void connect_channel(gpointer data);

static void
unref(ChSerialServer *server)
{
    if (atomic_fetch_sub(&server->references, 1) != 1)
        return;
    g_free(server->key);
    g_free(server->uid);
    g_free(server);
}

static void
end(ChSerialServer *server)
{
    server->has_ended = true;
    (void)g_queue_remove(&server->jobs->waiting, server); /* mostly it is not there */
    g_clear_pointer(&server->watch, ch_fd_watch_free);
    g_clear_pointer(&server->timer, ch_timer_free);
    g_clear_pointer(&server->answer, g_free);
    ch_close_fd(&server->fd);
}

static void
job_free(gpointer data)
{
    Job *job = data;

    ch_close_fd(&job->fd);
    g_free(job->report);
    g_clear_error(&job->error);
    unref(job->server);
    g_free(job);
}

static void
start_job(ChSerialServer *server)
{
    Job *job = g_new(Job, 1);

    *job = (Job){.server = server, .fd = -EBADF};
    atomic_fetch_add(&server->references, 1);
    server->jobs->n_running++;
    ch_worker_pool_run(server->pool, server->work, job, job_free);
}

static void
begin_job(ChSerialServer *server, ChWorkFunc work)
{
    server->work = work;
    if (server->jobs->n_running < CH_SERIAL_MAX_JOBS)
        start_job(server);
    else
        g_queue_push_tail(&server->jobs->waiting, server);
}

/* A job is done, whoever wanted it: the next one's turn. */
static void
finish_job(ChSerialJobs *jobs)
{
    ChSerialServer *next = g_queue_pop_head(&jobs->waiting);

    jobs->n_running--;
    if (next != NULL)
        start_job(next);
}

/* --- answering */

static void
on_writable(int fd, short what, gpointer data)
{
    ChSerialServer *server = data;
    char reason[CH_ERRNO_TEXT_SIZE];
    ssize_t n;

    g_clear_pointer(&server->watch, ch_fd_watch_free);
    while (server->n_sent < server->n_answer) {
        n = send(server->fd,
                 server->answer + server->n_sent,
                 server->n_answer - server->n_sent,
                 MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            server->watch =
                ch_fd_watch_new(server->loop, server->fd, EV_WRITE, on_writable, server);
            return;
        }
        if (n < 0) {
            ch_log_verbose(3,
                           NULL,
                           "%s: failed to send the metrics: %s",
                           server->key,
                           ch_errno_print(errno, reason));
            end(server);
            return;
        }
        server->n_sent += (gsize)n;
    }
    g_clear_pointer(&server->answer, g_free);
    take_turn(server);
}

/* @text: (transfer full) */
static void
answer(ChSerialServer *server, char *text)
{
    server->answer = text;
    server->n_answer = strlen(text);
    server->n_sent = 0;
    on_writable(server->fd, EV_WRITE, server);
}

static void
on_report(gpointer data)
{
    Job *job = data;
    ChSerialServer *server = job->server;

    finish_job(server->jobs);
    if (server->has_ended)
        return;
    if (job->report == NULL && !server->has_failed) /* the guest may ask each second */
        ch_log_error(NULL, job->error, "%s: failed to collect the metrics", server->key);
    server->has_failed = job->report == NULL;
    answer(server, g_strconcat(job->report != NULL ? job->report : NO_METRICS, END, NULL));
}

static void
report(gpointer data) /* worker */
{
    Job *job = data;
    ChSerialServer *server = job->server;

    job->report = server->seam->report(server->seam_data, server->uid, &job->error);
    ch_loop_post(server->loop, on_report, job, job_free);
}

/* --- requests */

static void
on_readable(int fd, short what, gpointer data)
{
    ChSerialServer *server = data;
    const gsize space = sizeof(server->bytes) - server->n_bytes;
    const ssize_t n = recv(server->fd, server->bytes + server->n_bytes, space, MSG_DONTWAIT);

    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return; /* level-triggered */
    g_clear_pointer(&server->watch, ch_fd_watch_free);
    if (n <= 0) {
        ch_log_verbose(3, NULL, "%s: the metrics' channel was closed", server->key);
        end(server);
        return;
    }
    server->n_bytes += (gsize)n;
    read_request(server);
}

/* A guest may write what it likes, as fast as it likes: its mistakes are nothing for the log. */
static void
read_request(ChSerialServer *server)
{
    gsize taken;
    const ChMetricsRequest request =
        ch_metrics_request_take(server->bytes, server->n_bytes, &taken);

    server->n_bytes -= taken;
    memmove(server->bytes, server->bytes + taken, server->n_bytes);
    switch (request) {
    case CH_METRICS_REQUEST_PART:
        server->watch = ch_fd_watch_new(server->loop, server->fd, EV_READ, on_readable, server);
        return;
    case CH_METRICS_REQUEST_GOOD:
        begin_job(server, report);
        return;
    case CH_METRICS_REQUEST_BAD:
    case CH_METRICS_REQUEST_MALFORMED:
        ch_log_verbose(3, NULL, "%s: failed to process the request for metrics", server->key);
        answer(server, g_strdup(INVALID_REQUEST));
        return;
    }
    g_assert_not_reached();
}

/* The next request may come when it is its turn. */
static void
take_turn(ChSerialServer *server)
{
    const int64_t now_us = ch_time_now_us();

    if (now_us < server->next_us) {
        ch_timer_arm(server->timer, server->next_us - now_us);
        return;
    }
    server->next_us = now_us + server->seam->request_us;
    read_request(server);
}

/* --- connecting */

/* QEMU is not there yet, or it cannot be told: the server is not made a second time. */
static bool
may_come(const GError *error)
{
    return g_error_matches(error, CH_ERRNO, ENOENT) ||
           g_error_matches(error, CH_ERRNO, ECONNREFUSED) || ch_pod_error_is_passing(error);
}

static void
on_pause_over(gpointer data)
{
    ChSerialServer *server = data;

    if (server->fd < 0)
        begin_job(server, connect_channel);
    else
        take_turn(server);
}

static void
on_connected(gpointer data)
{
    Job *job = data;
    ChSerialServer *server = job->server;

    finish_job(server->jobs);
    if (server->has_ended)
        return;
    server->n_attempts++;
    if (job->error == NULL) {
        server->fd = g_steal_fd(&job->fd);
        take_turn(server);
    } else if (may_come(job->error) && server->n_attempts < CH_SERIAL_MAX_ATTEMPTS) {
        ch_timer_arm(server->timer, server->seam->pause_us << (server->n_attempts - 1));
    } else {
        ch_log_error(
            NULL, job->error, "%s: failed to connect to virtio-serial socket", server->key);
        end(server);
    }
}

static void
connect_channel(gpointer data) /* worker */
{
    Job *job = data;
    ChSerialServer *server = job->server;

    (void)server->seam->connect(server->seam_data, server->uid, &job->fd, &job->error);
    ch_loop_post(server->loop, on_connected, job, job_free);
}

ChSerialServer *
ch_serial_server_new(ChLoop *loop,
                     ChWorkerPool *pool,
                     ChSerialJobs *jobs,
                     const ChSerialSeam *seam,
                     gpointer seam_data,
                     const char *key,
                     const char *uid)
{
    ChSerialServer *server = g_new0(ChSerialServer, 1);

    server->loop = loop;
    server->pool = pool;
    server->jobs = jobs;
    server->seam = seam;
    server->seam_data = seam_data;
    server->key = g_strdup(key);
    server->uid = g_strdup(uid);
    server->references = 1;
    server->fd = -EBADF;
    server->timer = ch_timer_new(loop, on_pause_over, server);
    begin_job(server, connect_channel);
    return server;
}

void
ch_serial_server_free(ChSerialServer *server)
{
    if (server == NULL)
        return;
    end(server);
    unref(server);
}

bool
ch_serial_server_has_ended(const ChSerialServer *server)
{
    return server->has_ended;
}

unsigned
ch_serial_server_n_attempts(const ChSerialServer *server)
{
    return server->n_attempts;
}
