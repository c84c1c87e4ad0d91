/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/worker-pool.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define IDLE_SECONDS  10
#define QUICK_THREADS 8 /* so many are made as soon as there is work for them */
#define RESERVE_US    10000
#define STACK_BYTES   (1024u * 1024) /* of address space; the sanitizers want 900 KB of them */

/*
 * Theory of operation, continued: a thread brings its own stack, since glibc would keep three pages
 * of each that ended. Nobody can free the stack that it runs on, so each thread that ends waits for
 * the one that ended before it and frees that one's; the last is left to ch_worker_pool_free(),
 * which thereby waits for all.
 */

typedef struct {
    ChWorkFunc func;
    gpointer data;
    GDestroyNotify drop;
} Job;

typedef struct Worker Worker;

struct Worker {
    ChWorkerPool *pool;
    bool is_reserve;
    pthread_t thread;
    void *stack;         /* its lowest page is the guard */
    pthread_cond_t wake; /* it is called, or the pool stops; CLOCK_MONOTONIC */
    bool is_resting;     /* in the pool's stack, until it is called; guarded by the pool's lock */
    Worker *below;       /* in that stack */
};

struct ChWorkerPool {
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t gone;  /* a thread ended */
    pthread_cond_t end;   /* the pool stops; CLOCK_MONOTONIC */
    GQueue jobs;          /* Job, owned */
    guint min, max;
    guint n_threads, n_idle;
    Worker *resting; /* who was busy last is called first: the others may end meanwhile */
    Worker
        *ended; /* owned (nullable): its thread has ended, or is about to without taking the lock */
    gboolean has_reserve; /* one of n_idle is new, and waits whether it is needed */
    gboolean is_stopping;
};

static void
job_drop(Job *job)
{
    if (job->drop != NULL)
        job->drop(job->data);
    g_free(job);
}

static void
leave_stack(Worker *worker)
{
    Worker **place = &worker->pool->resting;

    while (*place != worker)
        place = &(*place)->below;
    *place = worker->below;
    worker->is_resting = false;
}

/* With the lock held: a worker may end as soon as it is given back. */
static void
wake_worker(ChWorkerPool *pool)
{
    Worker *worker = pool->resting;

    if (worker == NULL)
        return;
    leave_stack(worker);
    pthread_cond_signal(&worker->wake);
}

/* Called with the lock held. Returns: false when nobody called for so long that it may end, which
 * leaves the minimum. */
static bool
rest(Worker *worker)
{
    ChWorkerPool *pool = worker->pool;
    struct timespec deadline;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += IDLE_SECONDS;
    worker->is_resting = true;
    worker->below = pool->resting;
    pool->resting = worker;
    while (worker->is_resting && !pool->is_stopping &&
           (result != ETIMEDOUT || pool->n_threads <= pool->min)) {
        if (pool->n_threads <= pool->min)
            pthread_cond_wait(&worker->wake, &pool->lock);
        else
            result = pthread_cond_timedwait(&worker->wake, &pool->lock, &deadline);
    }
    if (!worker->is_resting)
        return true;
    leave_stack(worker);
    return false;
}

/* Called with the lock held. Returns: the next job, or NULL when this thread shall end */
static Job *
wait_for_job(Worker *worker)
{
    ChWorkerPool *pool = worker->pool;
    bool may_end = false;

    pool->n_idle++;
    while (g_queue_is_empty(&pool->jobs) && !pool->is_stopping && !may_end)
        may_end = !rest(worker);
    pool->n_idle--;
    return pool->is_stopping ? NULL : g_queue_pop_head(&pool->jobs);
}

static void
worker_free(Worker *worker)
{
    (void)munmap(worker->stack, STACK_BYTES); /* fails for no mapping of ours */
    pthread_cond_destroy(&worker->wake);
    g_free(worker);
}

/* NULL is fine. */
static void
worker_join(Worker *worker)
{
    if (worker == NULL)
        return;
    pthread_join(worker->thread, NULL);
    worker_free(worker);
}

/* Called with the lock held, and gives it back. The last of a burst's threads returns what the
 * burst left of the heap to the kernel. */
static void
work(Worker *worker)
{
    ChWorkerPool *pool = worker->pool;
    Worker *previous;
    bool was_burst;
    Job *job;

    while ((job = wait_for_job(worker)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        job->func(job->data);
        g_free(job);
        pthread_mutex_lock(&pool->lock);
    }
    was_burst = --pool->n_threads == pool->min && !pool->is_stopping;
    previous = pool->ended;
    pool->ended = worker;
    pthread_cond_broadcast(&pool->gone);
    pthread_mutex_unlock(&pool->lock);
    worker_join(previous);
    if (was_burst)
        malloc_trim(0);
}

static void add_reserve(ChWorkerPool *pool);

/* Called with the lock held. Jobs that still wait after a moment wait for threads that hang, not
 * for their turn. */
static void
wait_as_reserve(ChWorkerPool *pool)
{
    struct timespec deadline;
    int result = 0;

    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_nsec += RESERVE_US * 1000;
    deadline.tv_sec += deadline.tv_nsec / 1000000000;
    deadline.tv_nsec %= 1000000000;
    while (!pool->is_stopping && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&pool->end, &pool->lock, &deadline);
    pool->n_idle--;
    pool->has_reserve = FALSE;
    if (g_queue_get_length(&pool->jobs) > pool->n_idle + 1)
        add_reserve(pool);
}

static void *
thread_main(void *data)
{
    Worker *worker = data;

    pthread_mutex_lock(&worker->pool->lock); /* by then `thread` is set */
    if (worker->is_reserve)
        wait_as_reserve(worker->pool);
    work(worker);
    return NULL;
}

static void
cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Returns: (nullable): with a stack, without a thread */
static Worker *
worker_new(ChWorkerPool *pool, bool is_reserve)
{
    void *stack = mmap(NULL,
                       STACK_BYTES,
                       PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE,
                       -1,
                       0);
    Worker *worker;

    if (stack == MAP_FAILED)
        return NULL;
    worker = g_new(Worker, 1);
    *worker = (Worker){.pool = pool, .is_reserve = is_reserve, .stack = stack};
    cond_init(&worker->wake);
    return worker;
}

/* Signals are the loop's: a new thread starts with all of them blocked. */
static bool
worker_start(Worker *worker)
{
    const gsize guard_bytes = (gsize)sysconf(_SC_PAGESIZE);
    pthread_attr_t attributes;
    sigset_t all, before;
    int result;

    if (mprotect(worker->stack, guard_bytes, PROT_NONE) < 0)
        return false;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(
        &attributes, (char *)worker->stack + guard_bytes, STACK_BYTES - guard_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&worker->thread, &attributes, thread_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return result == 0;
}

/* Called with the lock held. Returns: whether there is a new thread */
static bool
spawn_thread(ChWorkerPool *pool, bool is_reserve)
{
    Worker *worker = worker_new(pool, is_reserve);

    if (worker == NULL)
        return false;
    if (!worker_start(worker)) {
        worker_free(worker);
        return false;
    }
    pool->n_threads++;
    return true;
}

static void
add_reserve(ChWorkerPool *pool)
{
    if (pool->has_reserve || pool->n_threads >= pool->max || pool->is_stopping)
        return;
    pool->has_reserve = spawn_thread(pool, true);
    pool->n_idle += pool->has_reserve ? 1 : 0;
}

ChWorkerPool *
ch_worker_pool_new(guint min, guint max)
{
    ChWorkerPool *pool = g_new0(ChWorkerPool, 1);

    g_assert(min >= 1 && min <= max);
    pthread_mutex_init(&pool->lock, NULL);
    cond_init(&pool->gone);
    cond_init(&pool->end);
    g_queue_init(&pool->jobs);
    pool->min = min;
    pool->max = max;
    return pool;
}

void
ch_worker_pool_free(ChWorkerPool *pool)
{
    Job *job;

    if (pool == NULL)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->is_stopping = TRUE;
    for (Worker *worker = pool->resting; worker != NULL; worker = worker->below)
        pthread_cond_signal(&worker->wake);
    pthread_cond_broadcast(&pool->end);
    while (pool->n_threads > 0)
        pthread_cond_wait(&pool->gone, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    worker_join(pool->ended);
    while ((job = g_queue_pop_head(&pool->jobs)) != NULL)
        job_drop(job);
    pthread_cond_destroy(&pool->gone);
    pthread_cond_destroy(&pool->end);
    pthread_mutex_destroy(&pool->lock);
    g_free(pool);
}

/* Beyond the first few one at a time: a burst would otherwise have as many threads as jobs, each
 * with a stack and a document, that take turns on a few processors. A thread that cannot be had is
 * no loss while there are others: the job waits. Without any, this is a machine that is out of
 * resources, and the agent cannot work. */
static void
add_thread(ChWorkerPool *pool)
{
    if (pool->n_threads >= QUICK_THREADS)
        add_reserve(pool);
    else if (pool->n_threads < pool->max && !spawn_thread(pool, false))
        g_assert(pool->n_threads > 0);
}

void
ch_worker_pool_run(ChWorkerPool *pool, ChWorkFunc func, gpointer data, GDestroyNotify drop)
{
    Job *job = g_new(Job, 1);

    *job = (Job){func, data, drop};
    pthread_mutex_lock(&pool->lock);
    g_queue_push_tail(&pool->jobs, job);
    if (g_queue_get_length(&pool->jobs) > pool->n_idle)
        add_thread(pool);
    wake_worker(pool);
    pthread_mutex_unlock(&pool->lock);
}

guint
ch_worker_pool_n_threads(ChWorkerPool *pool)
{
    guint n;

    pthread_mutex_lock(&pool->lock);
    n = pool->n_threads;
    pthread_mutex_unlock(&pool->lock);
    return n;
}

guint
ch_worker_pool_n_busy(ChWorkerPool *pool)
{
    guint n;

    pthread_mutex_lock(&pool->lock);
    n = pool->n_threads - pool->n_idle;
    pthread_mutex_unlock(&pool->lock);
    return n;
}
