/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/worker.h"

#include <pthread.h>

static GString *order; /* the worker's, until n_done says that it is finished */
static gint n_begun;
static gint n_done;
static gint n_destroyed;

static void
note(gpointer data)
{
    g_string_append(order, data);
    g_atomic_int_inc(&n_done);
}

static void
count(gpointer data)
{
    g_atomic_int_inc(&n_destroyed);
}

static void
hold(gpointer data)
{
    g_atomic_int_inc(&n_begun);
    pthread_mutex_lock(data);
    pthread_mutex_unlock(data);
}

static void
do_nothing(gpointer data)
{
}

static void
wait_for(gint *counter, gint value)
{
    while (g_atomic_int_get(counter) < value)
        g_thread_yield();
}

static void
test_order_and_bound(void)
{
    static char names[][2] = {"a", "b", "c"};
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    g_autoptr(ChWorker) worker = ch_worker_new("test", 2);

    order = g_string_new(NULL);
    pthread_mutex_lock(&gate);
    g_assert_true(ch_worker_push(worker, hold, &gate, NULL));
    wait_for(&n_begun, 1);
    g_assert_true(ch_worker_push(worker, note, names[0], NULL));
    g_assert_true(ch_worker_push(worker, note, names[1], NULL));
    g_assert_false(ch_worker_push(worker, note, names[2], count));
    g_assert_cmpint(g_atomic_int_get(&n_destroyed), ==, 1);

    pthread_mutex_unlock(&gate);
    wait_for(&n_done, 2);
    g_assert_cmpstr(order->str, ==, "ab");
    g_string_free(order, TRUE);
}

static void
test_waiting_jobs_are_dropped_by_their_destroy_function(void)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

    g_atomic_int_set(&n_destroyed, 0);
    pthread_mutex_lock(&gate);
    ChWorker *worker = ch_worker_new("test", 8);
    ch_worker_push(worker, hold, &gate, count);
    for (guint i = 0; i < 3; i++)
        ch_worker_push(worker, do_nothing, NULL, count);
    pthread_mutex_unlock(&gate);
    ch_worker_free(worker); /* whether they ran or not */
    g_assert_cmpint(g_atomic_int_get(&n_destroyed), ==, 4);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/worker/order-and-bound", test_order_and_bound);
    g_test_add_func("/worker/waiting-jobs-are-dropped-by-their-destroy-function",
                    test_waiting_jobs_are_dropped_by_their_destroy_function);
    return g_test_run();
}
