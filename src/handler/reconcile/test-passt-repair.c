/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/passt-repair.h"

#include <pthread.h>

#include "handler/reconcile/test-support.h"
#include "lib/base/errors.h"

/* A pod in which the repair lasts until the test lets it end. */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    guint n_begun, n_released; /* under the lock, as all of it */
    bool is_let, is_failing, was_target;
} Pod;

typedef struct {
    Pod pod;
    ChWorkerPool *pool;
    ChPasstRepairs *repairs;
} Fixture;

static bool
repair(gpointer data, bool is_target, GError **error)
{
    Pod *pod = data;
    bool is_failing;

    pthread_mutex_lock(&pod->lock);
    pod->n_begun++;
    pod->was_target = is_target;
    pthread_cond_broadcast(&pod->changed);
    while (!pod->is_let)
        pthread_cond_wait(&pod->changed, &pod->lock);
    is_failing = pod->is_failing;
    pthread_mutex_unlock(&pod->lock);
    return !is_failing || ch_fail(error, CH_ERROR_NOT_FOUND, "passt-repair socket not found");
}

static void
release(gpointer data)
{
    Pod *pod = data;

    pthread_mutex_lock(&pod->lock);
    pod->n_released++;
    pthread_cond_broadcast(&pod->changed);
    pthread_mutex_unlock(&pod->lock);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    *f = (Fixture){.pod = {.is_let = false}};
    pthread_mutex_init(&f->pod.lock, NULL);
    pthread_cond_init(&f->pod.changed, NULL);
    f->pool = ch_worker_pool_new(1, 4);
    f->repairs = ch_passt_repairs_new(f->pool, repair);
}

static void
let(Fixture *f, bool is_let)
{
    pthread_mutex_lock(&f->pod.lock);
    f->pod.is_let = is_let;
    pthread_cond_broadcast(&f->pod.changed);
    pthread_mutex_unlock(&f->pod.lock);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    let(f, true);
    ch_worker_pool_free(f->pool);
    ch_passt_repairs_free(f->repairs);
    pthread_cond_destroy(&f->pod.changed);
    pthread_mutex_destroy(&f->pod.lock);
}

static void
begin(Fixture *f, const char *uid, bool is_target)
{
    ch_passt_repairs_begin(f->repairs,
                           &(ChPasstRepair){
                               .key = "ns/vm",
                               .uid = uid,
                               .is_target = is_target,
                               .pod = &f->pod,
                               .holder = &f->pod,
                               .release = release,
                           });
}

/* Waits until so many have begun, and so many gave the pod back. */
static void
wait_for(Fixture *f, guint n_begun, guint n_released)
{
    pthread_mutex_lock(&f->pod.lock);
    while (f->pod.n_begun < n_begun || f->pod.n_released < n_released)
        pthread_cond_wait(&f->pod.changed, &f->pod.lock);
    g_assert_cmpuint(f->pod.n_begun, ==, n_begun);
    pthread_mutex_unlock(&f->pod.lock);
}

/* spec:04-23.8#1d: one at a time for a VMI, in whatever role; others have their own. */
static void
test_one_at_a_time(Fixture *f, gconstpointer data)
{
    begin(f, "u1", false);
    wait_for(f, 1, 0);
    begin(f, "u1", false);
    begin(f, "u1", true);
    wait_for(f, 1, 2);
    begin(f, "u2", true);
    wait_for(f, 2, 2);
    g_assert_true(f->pod.was_target);
    let(f, true);
    wait_for(f, 2, 4);
    begin(f, "u1", false); /* the next migration's */
    wait_for(f, 3, 5);
    g_assert_false(f->pod.was_target);
}

/* spec:04-23.8#1c field:FR-H15: it does not stay active for ever, as in the Go agent. */
static void
test_failure(Fixture *f, gconstpointer data)
{
    f->pod.is_failing = true;
    let(f, true);
    for (guint i = 1; i <= 2; i++) {
        begin(f, "u1", i == 2);
        wait_for(f, i, i);
    }
}

/* spec:04-23.8#1a spec:04-23.8#1b */
static void
test_is_used(void)
{
    static const struct {
        const char *vmi;
        bool expect;
    } rows[] = {
        {"{}", false},
        {"{'spec':{'domain':{'devices':{'interfaces':[{'name':'a','bridge':{}},{'name':'b',"
         "'masquerade':{}}]}}}}",
         false},
        {"{'spec':{'networks':[{'name':'a','pod':{}}],'domain':{'devices':{'interfaces':[{'name':"
         "'a','passtBinding':{}}]}}}}",
         true},
        {"{'spec':{'networks':[{'name':'a','multus':{'default':true}}],'domain':{'devices':{"
         "'interfaces':[{'name':'b','bridge':{}},{'name':'a','passtBinding':{}}]}}}}",
         true},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(ChJson) vmi = parse_json(rows[i].vmi);

        g_assert_true(ch_passt_is_used(vmi) == rows[i].expect);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/passt-repair/is-used", test_is_used);
    g_test_add("/passt-repair/one-at-a-time", Fixture, NULL, set_up, test_one_at_a_time, tear_down);
    g_test_add("/passt-repair/failure", Fixture, NULL, set_up, test_failure, tear_down);
    return g_test_run();
}
