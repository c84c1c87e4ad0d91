/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/passt-repair.h"

#include <pthread.h>

#include "lib/base/log.h"

struct ChPasstRepairs {
    ChWorkerPool *pool;
    ChPasstRepairFunc repair;
    pthread_mutex_t lock; /* guards: */
    GHashTable *active;   /* set of owned VMI UIDs */
};

typedef struct {
    ChPasstRepairs *repairs;
    char *key, *uid; /* owned */
    bool is_target;
    gpointer pod;
    gpointer holder; /* owned */
    GDestroyNotify release;
} Job;

bool
ch_passt_is_used(const ChJson *vmi)
{
    const ChJson *list = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");

    for (gsize i = 0; i < ch_json_length(list); i++)
        if (ch_json_at(ch_json_item(list, i), "passtBinding") != NULL)
            return true;
    return false;
}

ChPasstRepairs *
ch_passt_repairs_new(ChWorkerPool *pool, ChPasstRepairFunc repair)
{
    ChPasstRepairs *repairs = g_new0(ChPasstRepairs, 1);

    repairs->pool = pool;
    repairs->repair = repair;
    repairs->active = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    pthread_mutex_init(&repairs->lock, NULL);
    return repairs;
}

void
ch_passt_repairs_free(ChPasstRepairs *repairs)
{
    if (repairs == NULL)
        return;
    g_hash_table_unref(repairs->active);
    pthread_mutex_destroy(&repairs->lock);
    g_free(repairs);
}

static void
job_free(gpointer data)
{
    Job *job = data;

    pthread_mutex_lock(&job->repairs->lock);
    g_hash_table_remove(job->repairs->active, job->uid);
    pthread_mutex_unlock(&job->repairs->lock);
    if (job->release != NULL)
        job->release(job->holder);
    g_free(job->key);
    g_free(job->uid);
    g_free(job);
}

static void
run(gpointer data) /* worker */
{
    Job *job = data;
    const char *side = job->is_target ? "target" : "source";
    g_autoptr(GError) reason = NULL;

    ch_log_verbose(4, NULL, "%s: executing passt-repair for the migration's %s", job->key, side);
    if (job->repairs->repair(job->pod, job->is_target, &reason))
        ch_log_verbose(4, NULL, "%s: execution of passt-repair has completed", job->key);
    else
        ch_log_warning(
            NULL, reason, "%s: failed to call passt-repair for migration %s", job->key, side);
    job_free(job);
}

void
ch_passt_repairs_begin(ChPasstRepairs *repairs, const ChPasstRepair *repair)
{
    Job *job;
    bool is_new;

    pthread_mutex_lock(&repairs->lock);
    is_new = g_hash_table_add(repairs->active, g_strdup(repair->uid));
    pthread_mutex_unlock(&repairs->lock);
    if (!is_new) {
        if (repair->release != NULL)
            repair->release(repair->holder);
        return;
    }
    job = g_new(Job, 1);
    *job = (Job){
        .repairs = repairs,
        .key = g_strdup(repair->key),
        .uid = g_strdup(repair->uid),
        .is_target = repair->is_target,
        .pod = repair->pod,
        .holder = repair->holder,
        .release = repair->release,
    };
    ch_worker_pool_run(repairs->pool, run, job, job_free);
}
