/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/worker.h"

#include <pthread.h>
#include <signal.h>

typedef struct {
    ChWorkFunc func;
    gpointer data;
    GDestroyNotify destroy;
} Job;

struct ChWorker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t wake;
    GQueue jobs;
    guint max_jobs;
    bool is_ending;
};

static void
job_free(Job *job)
{
    if (job->destroy != NULL)
        job->destroy(job->data);
    g_free(job);
}

/* Returns: NULL when the worker ends. */
static Job *
next_job(ChWorker *worker)
{
    Job *job = NULL;

    pthread_mutex_lock(&worker->lock);
    while (!worker->is_ending && (job = g_queue_pop_head(&worker->jobs)) == NULL)
        pthread_cond_wait(&worker->wake, &worker->lock);
    pthread_mutex_unlock(&worker->lock);
    return job;
}

static void *
run(void *data)
{
    ChWorker *worker = data;

    for (Job *job = next_job(worker); job != NULL; job = next_job(worker)) {
        job->func(job->data);
        job_free(job);
    }
    return NULL;
}

ChWorker *
ch_worker_new(const char *name, guint max_jobs)
{
    ChWorker *worker = g_new0(ChWorker, 1);
    sigset_t all, before;

    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->wake, NULL);
    g_queue_init(&worker->jobs);
    worker->max_jobs = max_jobs;

    /* Signals are the loop thread's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&worker->thread, NULL, run, worker) != 0)
        g_error("no thread for worker '%s'", name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_setname_np(worker->thread, name);
    return worker;
}

void
ch_worker_free(ChWorker *worker)
{
    Job *job = NULL;

    if (worker == NULL)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->is_ending = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);

    while ((job = g_queue_pop_head(&worker->jobs)) != NULL)
        job_free(job);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
    g_free(worker);
}

bool
ch_worker_push(ChWorker *worker, ChWorkFunc func, gpointer data, GDestroyNotify destroy)
{
    Job *job = g_new(Job, 1);
    bool fits = false;

    *job = (Job){func, data, destroy};
    pthread_mutex_lock(&worker->lock);
    fits = !worker->is_ending && worker->jobs.length < worker->max_jobs;
    if (fits) {
        g_queue_push_tail(&worker->jobs, job);
        pthread_cond_signal(&worker->wake);
    }
    pthread_mutex_unlock(&worker->lock);
    if (!fits)
        job_free(job);
    return fits;
}
