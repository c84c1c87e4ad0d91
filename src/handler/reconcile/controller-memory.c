/* SPDX-License-Identifier: Apache-2.0 */

/* controller-memory: what passes tell while they run, and what is known of a VM from one to the
 * next (pass.h). */

#include "handler/reconcile/controller-internal.h"

#include <string.h>

#include "handler/reconcile/pass.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define REPORT_US CH_SECOND_US /* from a launcher's answer until it reports what it did */

void
ch_controller_expect_write(ChController *controller, const char *key)
{
    pthread_mutex_lock(&controller->lock);
    ch_expectations_set(controller->expectations, key, 1, ch_time_now_us());
    pthread_mutex_unlock(&controller->lock);
}

void
ch_controller_drop_expectations(ChController *controller, const char *key)
{
    pthread_mutex_lock(&controller->lock);
    ch_expectations_delete(controller->expectations, key);
    pthread_mutex_unlock(&controller->lock);
}

int64_t
ch_controller_ask_io_retry(ChController *controller, const char *uid)
{
    int64_t delay_us;

    pthread_mutex_lock(&controller->lock);
    delay_us = ch_retry_manager_ask(controller->io_retries, uid, ch_time_now_us());
    pthread_mutex_unlock(&controller->lock);
    return delay_us;
}

int64_t
ch_controller_ask_sriov_plug(ChController *controller, const char *uid)
{
    int64_t delay_us;

    pthread_mutex_lock(&controller->lock);
    delay_us = ch_sriov_plugs_ask(controller->sriov_plugs, uid, ch_time_now_us());
    pthread_mutex_unlock(&controller->lock);
    return delay_us;
}

int64_t
ch_controller_sriov_plug_tried(ChController *controller, const char *uid)
{
    const int64_t now_us = ch_time_now_us();
    int64_t delay_us;

    pthread_mutex_lock(&controller->lock);
    ch_sriov_plugs_tried(controller->sriov_plugs, uid, now_us);
    delay_us = ch_sriov_plugs_ask(controller->sriov_plugs, uid, now_us);
    pthread_mutex_unlock(&controller->lock);
    return delay_us;
}

void
ch_controller_forget_sriov_plug(ChController *controller, const char *uid)
{
    pthread_mutex_lock(&controller->lock);
    ch_sriov_plugs_forget(controller->sriov_plugs, uid);
    pthread_mutex_unlock(&controller->lock);
}

void
ch_controller_remember_phase(ChController *controller, const char *uid, ChPhase phase)
{
    ch_final_phases_keep(controller->final_phases, uid, phase);
}

static void
remove_phase_work(gpointer data) /* worker */
{
    ch_final_phases_remove_file(data);
    g_free(data);
}

void
ch_controller_forget_phase(ChController *controller, const char *uid)
{
    char *path = ch_final_phases_forget(controller->final_phases, uid);

    if (path != NULL)
        ch_worker_pool_run(controller->env.pool, remove_phase_work, path, g_free);
}

ChPhase
ch_controller_recall_phase(ChController *controller, const char *uid)
{
    return ch_final_phases_find(controller->final_phases, uid);
}

int64_t
ch_controller_stopping_for(ChController *controller, const char *uid, bool begins)
{
    const int64_t now_us = ch_time_now_us();
    const int64_t *since;
    int64_t for_us;

    pthread_mutex_lock(&controller->lock);
    since = g_hash_table_lookup(controller->stopping, uid);
    for_us = since != NULL ? now_us - *since : -1;
    if (since == NULL && begins)
        g_hash_table_insert(
            controller->stopping, g_strdup(uid), g_memdup2(&now_us, sizeof(now_us)));
    pthread_mutex_unlock(&controller->lock);
    return for_us;
}

bool
ch_controller_note_sync(ChController *controller, const char *uid, bool is_complete)
{
    const int64_t since_us = ch_time_now_us() - (is_complete ? 0 : REPORT_US);
    bool is_first;

    pthread_mutex_lock(&controller->lock);
    is_first = g_hash_table_replace(
        controller->synced, g_strdup(uid), g_memdup2(&since_us, sizeof(since_us)));
    pthread_mutex_unlock(&controller->lock);
    return is_first;
}

void
ch_controller_forget_sync(ChController *controller, const char *uid)
{
    pthread_mutex_lock(&controller->lock);
    g_hash_table_remove(controller->synced, uid);
    pthread_mutex_unlock(&controller->lock);
}

bool
ch_controller_is_sync_fresh(ChController *controller, const char *uid)
{
    const int64_t *since;
    bool is_fresh;

    pthread_mutex_lock(&controller->lock);
    since = g_hash_table_lookup(controller->synced, uid);
    is_fresh = since != NULL && ch_time_now_us() - *since < REPORT_US;
    pthread_mutex_unlock(&controller->lock);
    return is_fresh;
}

void
ch_controller_log_stage(ChController *controller, const char *key, const char *uid, ChStage stage)
{
    int64_t elapsed_us;
    bool is_news;
    const char *slash = strchr(key, '/');
    g_autofree char *namespace_ = slash != NULL ? g_strndup(key, (gsize)(slash - key)) : NULL;

    pthread_mutex_lock(&controller->lock);
    is_news = ch_stages_finish(controller->stages, uid, stage, ch_time_now_us(), &elapsed_us);
    pthread_mutex_unlock(&controller->lock);
    if (is_news) {
        const ChLogField fields[] = {{"stage", ch_stage_text(stage), 0},
                                     {"elapsedMs", NULL, elapsed_us / CH_MS_US}};
        const ChLogContext context = {.controller = "vm",
                                      .namespace_ = namespace_,
                                      .name = slash != NULL ? slash + 1 : key,
                                      .kind = "VirtualMachineInstance",
                                      .uid = uid,
                                      .fields = fields,
                                      .n_fields = G_N_ELEMENTS(fields)};

        ch_log_info(&context, "stage finished");
    }
}

bool
ch_controller_is_news(ChController *controller, const ChPass *pass, const char *line)
{
    bool is_news = true;

    if (pass->object == NULL)
        return is_news; /* such a pass is rare, and nothing may be kept by its UID */
    pthread_mutex_lock(&controller->lock);
    is_news = ch_last_lines_is_news(controller->last_lines, pass->vmi.uid, line);
    pthread_mutex_unlock(&controller->lock);
    return is_news;
}

void
ch_controller_stage(ChController *controller, const ChPass *pass, ChStage stage)
{
    ch_controller_log_stage(controller, pass->key, pass->vmi.uid, stage);
}

typedef struct {
    ChController *controller;
    char *key, *uid;
} DomainPost;

static void
domain_post_free(gpointer data)
{
    DomainPost *post = data;

    g_free(post->key);
    g_free(post->uid);
    g_free(post);
}

static void
forget_domain(gpointer data) /* loop thread */
{
    DomainPost *post = data;
    const ChReconcileEnv *env = &post->controller->env;

    env->seam.forget_domain(env->seam_data, post->key, post->uid);
}

void
ch_controller_forget_domain(ChController *controller, const char *key, const char *uid)
{
    DomainPost *post = g_new(DomainPost, 1);

    pthread_mutex_lock(&controller->lock);
    ch_sriov_plugs_forget(controller->sriov_plugs, uid);
    g_hash_table_remove(controller->stopping, uid);
    g_hash_table_remove(controller->synced, uid);
    pthread_mutex_unlock(&controller->lock);
    ch_guest_panics_forget(controller->env.panics, uid);
    *post = (DomainPost){controller, g_strdup(key), g_strdup(uid)};
    ch_loop_post(controller->env.loop, forget_domain, post, domain_post_free);
}
