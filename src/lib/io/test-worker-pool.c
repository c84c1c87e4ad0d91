/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/worker-pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int n_run, n_dropped;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void
count_run(gpointer data)
{
    atomic_fetch_add(&n_run, 1);
}

static void
wait_at_gate(gpointer data)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    atomic_fetch_add(&n_run, 1);
}

static void
count_dropped(gpointer data)
{
    atomic_fetch_add(&n_dropped, 1);
}

static void
wait_for(atomic_int *counter, int value)
{
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;

    while (atomic_load(counter) < value && g_get_monotonic_time() < deadline)
        g_usleep(1000);
    g_assert_cmpint(atomic_load(counter), ==, value);
}

static void
test_every_job_runs_once(void)
{
    g_autoptr(ChWorkerPool) pool = ch_worker_pool_new(1, 4);

    atomic_store(&n_run, 0);
    atomic_store(&n_dropped, 0);
    for (int i = 0; i < 1000; i++)
        ch_worker_pool_run(pool, count_run, NULL, count_dropped);
    wait_for(&n_run, 1000);
    g_assert_cmpint(atomic_load(&n_dropped), ==, 0);
    g_assert_cmpuint(ch_worker_pool_n_threads(pool), <=, 4);
}

static void
test_hanging_jobs_do_not_stop_the_others(void)
{
    g_autoptr(ChWorkerPool) pool = ch_worker_pool_new(1, 4);

    atomic_store(&n_run, 0);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 3; i++)
        ch_worker_pool_run(pool, wait_at_gate, NULL, NULL);
    for (int i = 0; i < 50; i++)
        ch_worker_pool_run(pool, count_run, NULL, NULL);
    wait_for(&n_run, 50);
    pthread_mutex_unlock(&gate);
    wait_for(&n_run, 53);
}

static void
test_free_waits_and_drops(void)
{
    ChWorkerPool *pool = ch_worker_pool_new(1, 1);

    atomic_store(&n_run, 0);
    atomic_store(&n_dropped, 0);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 10; i++)
        ch_worker_pool_run(pool, wait_at_gate, NULL, count_dropped);
    pthread_mutex_unlock(&gate);
    ch_worker_pool_free(pool);
    g_assert_cmpint(atomic_load(&n_run) + atomic_load(&n_dropped), ==, 10);
}

/* Mappings of the size of a thread's stack without its guard. */
static guint
count_stacks(void)
{
    g_autofree char *maps = NULL;
    g_auto(GStrv) lines = NULL;
    guint n = 0;

    g_assert_true(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    lines = g_strsplit(maps, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        char *dash = NULL;
        const guint64 start = g_ascii_strtoull(*line, &dash, 16);

        if (dash != NULL && *dash == '-' &&
            g_ascii_strtoull(dash + 1, NULL, 16) - start ==
                1024 * 1024 - (guint64)sysconf(_SC_PAGESIZE))
            n++;
    }
    return n;
}

/* As they end after a while: but for that of the last one, and of the two that stay. A little work
 * now and then keeps one of them, not each in turn. */
static void
test_ended_threads_leave_no_stack(void)
{
    const gint64 deadline = g_get_monotonic_time() + 50 * G_USEC_PER_SEC;
    ChWorkerPool *pool = ch_worker_pool_new(2, 6);

    atomic_store(&n_run, 0);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 6; i++)
        ch_worker_pool_run(pool, wait_at_gate, NULL, NULL);
    g_assert_cmpuint(ch_worker_pool_n_threads(pool), ==, 6);
    g_assert_cmpuint(count_stacks(), >, 2);
    pthread_mutex_unlock(&gate);
    wait_for(&n_run, 6);
    while (count_stacks() > 3 && g_get_monotonic_time() < deadline) {
        ch_worker_pool_run(pool, count_run, NULL, NULL);
        g_usleep(50000);
    }
    g_assert_cmpuint(count_stacks(), <=, 3);
    g_usleep(G_USEC_PER_SEC / 5); /* enough for one more to end */
    g_assert_cmpuint(ch_worker_pool_n_threads(pool), ==, 2);
    ch_worker_pool_free(pool);
    g_assert_cmpuint(count_stacks(), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/worker-pool/every-job-runs-once", test_every_job_runs_once);
    g_test_add_func("/worker-pool/hanging-jobs-do-not-stop-the-others",
                    test_hanging_jobs_do_not_stop_the_others);
    g_test_add_func("/worker-pool/free-waits-and-drops", test_free_waits_and_drops);
    g_test_add_func("/worker-pool/ended-threads-leave-no-stack", test_ended_threads_leave_no_stack);
    return g_test_run();
}
