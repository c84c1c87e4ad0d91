/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: a worker hands a Job over to the loop and waits on its condition variable.
 * Who gives up first (deadline, answer, end of the client) settles the job; it is counted, as both
 * sides may still hold it then.
 */

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "lib/kube/client-internal.h"

typedef struct {
    atomic_uint refs;
    ChKubeClient *client;  /* a reference */
    ChKubeRequest request; /* strings owned */
    GList link;            /* in the client's jobs; loop thread only */
    bool is_started;       /* has a call; loop thread only */

    pthread_mutex_t lock; /* guards the rest; nothing is called with it held */
    pthread_cond_t settled;
    bool is_settled;
    GBytes *body;  /* (nullable) */
    GError *error; /* (nullable) */
} Job;

static Job *
job_new(ChKubeClient *client, const ChKubeRequest *request)
{
    Job *job = g_new0(Job, 1);
    pthread_condattr_t attributes;

    atomic_init(&job->refs, 2); /* the waiting thread's and the post's */
    atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
    job->client = client;
    job->link.data = job;
    job->request = *request;
    job->request.method = g_strdup(request->method);
    job->request.path = g_strdup(request->path);
    job->request.content_type = g_strdup(request->content_type);
    job->request.accept = g_strdup(request->accept);
    job->request.body = g_strdup(request->body);
    pthread_mutex_init(&job->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&job->settled, &attributes);
    pthread_condattr_destroy(&attributes);
    return job;
}

static void
job_unref(Job *job)
{
    if (atomic_fetch_sub_explicit(&job->refs, 1, memory_order_acq_rel) != 1)
        return;
    ch_kube_client_unref(job->client);
    g_free((char *)job->request.method);
    g_free((char *)job->request.path);
    g_free((char *)job->request.content_type);
    g_free((char *)job->request.accept);
    g_free((char *)job->request.body);
    pthread_cond_destroy(&job->settled);
    pthread_mutex_destroy(&job->lock);
    g_clear_pointer(&job->body, g_bytes_unref);
    g_clear_error(&job->error);
    g_free(job);
}

/* Takes both over; one of them is NULL. The first one to settle wins. */
static void
job_settle(Job *job, GBytes *body, GError *error)
{
    pthread_mutex_lock(&job->lock);
    if (!job->is_settled) {
        job->is_settled = true;
        job->body = g_steal_pointer(&body);
        job->error = g_steal_pointer(&error);
        pthread_cond_signal(&job->settled);
    }
    pthread_mutex_unlock(&job->lock);
    g_clear_pointer(&body, g_bytes_unref);
    g_clear_error(&error);
}

static void
job_settle_closed(Job *job)
{
    job_settle(
        job, NULL, g_error_new_literal(CH_ERROR, CH_ERROR_CLOSED, "the API client was shut down"));
}

static void
job_done(gpointer data, GBytes *body, const GError *error) /* loop thread */
{
    Job *job = data;

    g_queue_unlink(&job->client->jobs, &job->link);
    /* Copies: nothing that the loop still holds is counted by the worker, too. */
    if (error != NULL)
        job_settle(job, NULL, g_error_copy(error));
    else
        job_settle(job, g_bytes_new(g_bytes_get_data(body, NULL), g_bytes_get_size(body)), NULL);
    job_unref(job);
}

static void
job_start(gpointer data) /* loop thread */
{
    Job *job = data;

    if (job->client->http == NULL)
        return;
    job->is_started = true;
    atomic_fetch_add_explicit(&job->refs, 1, memory_order_relaxed); /* the call's */
    g_queue_push_tail_link(&job->client->jobs, &job->link);
    (void)ch_kube_client_start(job->client, &job->request, job_done, job);
}

/* Settles what could not start: the loop or the client ended first. */
static void
job_posted(gpointer data) /* loop thread, or whoever frees the loop */
{
    Job *job = data;

    if (!job->is_started)
        job_settle_closed(job);
    job_unref(job);
}

/* Waits until the job is settled, or settles it by the deadline. */
static void
job_wait(Job *job)
{
    const int64_t end_us = ch_time_now_us() + job->request.timeout_us;
    const struct timespec end = {
        .tv_sec = end_us / CH_SECOND_US,
        .tv_nsec = end_us % CH_SECOND_US * 1000,
    };
    int result = 0;

    pthread_mutex_lock(&job->lock);
    while (!job->is_settled && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&job->settled, &job->lock, &end);
    if (!job->is_settled) {
        job->is_settled = true;
        ch_fail(&job->error,
                CH_ERROR_TIMEOUT,
                "%s '%s': no answer within the deadline",
                job->request.method,
                job->request.path);
    }
    pthread_mutex_unlock(&job->lock);
}

GBytes *
ch_kube_client_request(ChKubeClient *client, const ChKubeRequest *request, GError **error)
{
    Job *job;
    GBytes *body;

    g_return_val_if_fail(request->timeout_us > 0, NULL);
    job = job_new(client, request);
    ch_loop_post(client->loop, job_start, job, job_posted);
    job_wait(job);
    /* It is settled: nobody else touches the two any more. */
    body = g_steal_pointer(&job->body);
    if (job->error != NULL)
        g_propagate_error(error, g_steal_pointer(&job->error));
    job_unref(job);
    return body;
}

void
ch_kube_client_close_jobs(ChKubeClient *client)
{
    Job *job;

    while ((job = g_queue_peek_head(&client->jobs)) != NULL) {
        g_queue_unlink(&client->jobs, &job->link);
        job_settle_closed(job);
        job_unref(job);
    }
}
