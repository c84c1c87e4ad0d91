/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/controller.h"

#include <string.h>

#include "handler/reconcile/controller-internal.h"
#include "handler/reconcile/pass.h"
#include "lib/base/time.h"

#define IO_RETRY_INITIAL_US (10 * CH_SECOND_US)
#define IO_RETRY_MAX_US     (180 * CH_SECOND_US)
#define IO_RETRY_WINDOW_US  (30 * CH_SECOND_US)

static const char *const hook_texts[] = {
    [CH_HOOK_PRE_VM_START] = "PreVMStart",
    [CH_HOOK_POST_VM_START] = "PostVMStart",
    [CH_HOOK_PRE_VM_STOP] = "PreVMStop",
    [CH_HOOK_POST_VM_STOP] = "PostVMStop",
};
G_STATIC_ASSERT(G_N_ELEMENTS(hook_texts) == CH_HOOK_N);

const char *
ch_hook_text(ChHook hook)
{
    return hook_texts[hook];
}

ChCounter *
ch_controller_sync_counter_new(void)
{
    static const char *const labels[] = {"namespace", "name", NULL};

    return ch_counter_new("kubevirt_vmi_sync_total",
                          "Total number of times a VirtualMachineInstance has been synced.",
                          labels);
}

/* --- the queue */

static void dispatch(ChController *controller);

static void
on_delay(gpointer data)
{
    dispatch(data);
}

static void
sweep(gpointer data)
{
    ChController *controller = data;

    pthread_mutex_lock(&controller->lock);
    ch_retry_manager_sweep(controller->io_retries, ch_time_now_us());
    pthread_mutex_unlock(&controller->lock);
    ch_timer_arm(controller->sweep_timer, IO_RETRY_MAX_US);
}

static ChPass *
pass_new(ChController *controller, char *key /* (transfer full) */)
{
    const ChReconcileEnv *env = &controller->env;
    ChPass *pass = g_new0(ChPass, 1);
    const char *slash = strchr(key, '/');
    ChObject *object = env->seam.lookup_vmi(env->seam_data, key);

    pass->controller = controller;
    pass->env = env;
    pass->key = key;
    pass->namespace_ = slash != NULL ? g_strndup(key, (gsize)(slash - key)) : g_strdup("");
    pass->name = g_strdup(slash != NULL ? slash + 1 : key);
    pass->object = object != NULL ? ch_object_ref(object) : NULL;
    pass->domain = env->seam.lookup_domain(env->seam_data, key);
    pass->config = ch_cluster_config_ref(env->seam.peek_config(env->seam_data));
    if (env->seam.list_plugins != NULL)
        pass->plugins = env->seam.list_plugins(env->seam_data);

    pthread_mutex_lock(&controller->lock);
    pass->expectations_satisfied =
        ch_expectations_are_satisfied(controller->expectations, key, ch_time_now_us());
    pthread_mutex_unlock(&controller->lock);
    return pass;
}

/* A pass that was dropped because its own write is still on the way must not sleep for ever when
 * the echo is lost. */
static void
wake_when_expectation_expires(ChController *controller, const char *key)
{
    int64_t now_us = ch_time_now_us();
    int64_t expiry_us;

    pthread_mutex_lock(&controller->lock);
    expiry_us = ch_expectations_expiry_us(controller->expectations, key);
    pthread_mutex_unlock(&controller->lock);
    if (expiry_us >= 0)
        ch_workqueue_add_after(
            controller->queue, key, MAX(expiry_us - now_us, 0) + CH_MS_US, now_us);
}

/* What is kept by the name of a VMI that this node has no more. */
static void
forget_name(ChController *controller, const char *key)
{
    g_auto(GStrv) parts = g_strsplit(key, "/", 2);

    ch_counter_forget(controller->env.syncs, (const char *const *)parts);
}

/* What is kept by the UID of a VMI that this node has no more. */
static void
forget_vmi(ChController *controller, const char *uid)
{
    ch_guest_panics_forget(controller->env.panics, uid);
    pthread_mutex_lock(&controller->lock);
    ch_stages_forget(controller->stages, uid);
    ch_last_lines_forget(controller->last_lines, uid);
    ch_sriov_plugs_forget(controller->sriov_plugs, uid);
    g_hash_table_remove(controller->stopping, uid);
    g_hash_table_remove(controller->synced, uid);
    pthread_mutex_unlock(&controller->lock);
    ch_controller_forget_phase(controller, uid);
    ch_launcher_clients_forget(controller->env.clients, uid);
}

/* A pass that ran while its VMI left may have noted something about it afterwards. */
static void
forget_if_gone(ChController *controller, const ChPass *pass)
{
    const ChReconcileEnv *env = &controller->env;
    const ChObject *now;

    if (pass->object == NULL)
        return;
    now = env->seam.lookup_vmi(env->seam_data, pass->key);
    if (now == NULL || !g_str_equal(now->uid, pass->object->uid))
        forget_vmi(controller, pass->object->uid);
    if (now == NULL)
        forget_name(controller, pass->key);
}

/* What the queue is told of a pass that is over; dispatch() comes next. */
static void
settle(ChPass *pass)
{
    ChController *controller = pass->controller;
    int64_t now_us = ch_time_now_us();

    if (pass->requeue_us > 0)
        ch_workqueue_add_after(controller->queue, pass->key, pass->requeue_us, now_us);
    if (pass->error != NULL) {
        ch_workqueue_add_rate_limited(controller->queue, pass->key, now_us);
    } else {
        ch_workqueue_forget(controller->queue, pass->key);
        if (!pass->expectations_satisfied)
            wake_when_expectation_expires(controller, pass->key);
    }
    ch_workqueue_done(controller->queue, pass->key);
    forget_if_gone(controller, pass);
}

static void
pass_finish(ChPass *pass) /* loop thread */
{
    settle(pass);
    dispatch(pass->controller);
}

static void
pass_free(gpointer data)
{
    ch_pass_free(data);
}

/* A pass on its way from its worker to the loop. */
typedef struct {
    ChPass *pass; /* owned */
} Delivery;

static void
delivery_free(gpointer data)
{
    Delivery *delivery = data;

    ch_pass_free(delivery->pass);
    g_free(delivery);
}

static void pass_deliver(gpointer data);

static void
deliver(ChPass *pass /* (transfer full) */)
{
    Delivery *delivery = g_new(Delivery, 1);

    *delivery = (Delivery){pass};
    ch_loop_post(pass->env->loop, pass_deliver, delivery, delivery_free);
}

static void
post_start_work(gpointer data) /* worker */
{
    ch_pass_run_post_start(data);
    deliver(data);
}

static void
on_written(gpointer data, GBytes *body, const GError *error)
{
    ChPass *pass = data;

    (void)g_queue_remove(&pass->controller->writing, pass); /* it is in there */
    if (ch_pass_written(pass, body, error)) {
        ch_worker_pool_run(pass->env->pool, post_start_work, pass, pass_free);
        return;
    }
    pass_finish(pass);
    ch_pass_free(pass);
}

static void
pass_deliver(gpointer data) /* loop thread */
{
    Delivery *delivery = data;
    ChPass *pass = delivery->pass;

    if (pass->write.body == NULL) {
        pass_finish(pass);
        return;
    }
    delivery->pass = NULL;
    g_queue_push_tail(&pass->controller->writing, pass);
    ch_pass_start_write(pass, on_written);
}

static void
pass_work(gpointer data) /* worker */
{
    ch_pass_run(data);
    deliver(data);
}

/* Whether decide() ignores it, and nobody need be told of that: no worker has to look. */
static bool
waits_for_write(const ChPass *pass)
{
    return ch_decide_awaits_write(pass->object != NULL, pass->expectations_satisfied) &&
           (pass->domain == NULL || pass->domain->status != CH_DOMAIN_UNKNOWN);
}

/* Returns: whether it is over already */
static bool
begin(ChPass *pass /* (transfer full) */)
{
    const bool is_over = waits_for_write(pass);

    if (is_over) {
        settle(pass);
        ch_pass_free(pass);
    } else {
        ch_worker_pool_run(pass->env->pool, pass_work, pass, pass_free);
    }
    return is_over;
}

static void
dispatch(ChController *controller)
{
    int64_t next_us, now_us = ch_time_now_us();
    bool has_settled;
    char *key;

    if (!controller->is_started)
        return;
    do {
        has_settled = false;
        next_us = ch_workqueue_advance(controller->queue, now_us);
        while ((key = ch_workqueue_get(controller->queue)) != NULL)
            has_settled |= begin(pass_new(controller, key));
    } while (has_settled); /* which may have put it off */
    if (next_us >= 0)
        ch_timer_arm(controller->delay_timer, next_us - now_us);
}

void
ch_controller_enqueue(ChController *controller, const char *key)
{
    ch_workqueue_add(controller->queue, key);
    dispatch(controller);
}

void
ch_controller_vmi_changed(ChController *controller, const ChObject *vmi)
{
    ch_controller_drop_expectations(controller, vmi->key);
    ch_controller_enqueue(controller, vmi->key);
}

void
ch_controller_vmi_deleted(ChController *controller, const ChObject *vmi)
{
    forget_name(controller, vmi->key);
    forget_vmi(controller, vmi->uid);
    ch_controller_vmi_changed(controller, vmi);
}

void
ch_controller_domain_seen(ChController *controller,
                          const char *key,
                          const char *uid,
                          const char *status)
{
    if (status[0] == '\0' || g_str_equal(status, "Unknown")) /* our own word, not a launcher's */
        return;
    ch_controller_log_stage(controller, key, uid, CH_STAGE_DEFINED);
    if (g_str_equal(status, "Running"))
        ch_controller_log_stage(controller, key, uid, CH_STAGE_STARTED);
}

/* --- life */

ChController *
ch_controller_new(const ChReconcileEnv *env)
{
    ChController *controller = g_new0(ChController, 1);

    controller->env = *env;
    controller->queue = ch_workqueue_new();
    controller->final_phases = ch_final_phases_load(env->private_dir);
    g_queue_init(&controller->writing);
    controller->delay_timer = ch_timer_new(env->loop, on_delay, controller);
    controller->sweep_timer = ch_timer_new(env->loop, sweep, controller);
    pthread_mutex_init(&controller->lock, NULL);
    controller->expectations = ch_expectations_new(
        env->echo_timeout_us != 0 ? env->echo_timeout_us : CH_EXPECTATION_TIMEOUT_US);
    controller->io_retries =
        ch_retry_manager_new(IO_RETRY_INITIAL_US, IO_RETRY_MAX_US, IO_RETRY_WINDOW_US);
    controller->sriov_plugs = ch_sriov_plugs_new();
    controller->stopping = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    controller->synced = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    controller->stages = ch_stages_new();
    controller->last_lines = ch_last_lines_new();
    return controller;
}

void
ch_controller_free(ChController *controller)
{
    ChPass *pass;

    if (controller == NULL)
        return;
    while ((pass = g_queue_pop_head(&controller->writing)) != NULL) {
        ch_kube_call_cancel(pass->write.call);
        ch_pass_free(pass);
    }
    ch_timer_free(controller->delay_timer);
    ch_timer_free(controller->sweep_timer);
    ch_workqueue_free(controller->queue);
    ch_expectations_free(controller->expectations);
    ch_retry_manager_free(controller->io_retries);
    ch_sriov_plugs_free(controller->sriov_plugs);
    g_hash_table_unref(controller->stopping);
    g_hash_table_unref(controller->synced);
    ch_stages_free(controller->stages);
    ch_last_lines_free(controller->last_lines);
    ch_final_phases_free(controller->final_phases);
    pthread_mutex_destroy(&controller->lock);
    g_free(controller);
}

/* Of VMs that ended and left while no agent was here. */
static void
forget_unknown_phases(ChController *controller)
{
    const ChReconcileEnv *env = &controller->env;
    g_autoptr(GPtrArray) uids = ch_final_phases_list(controller->final_phases);

    for (guint i = 0; i < uids->len; i++) {
        if (!env->seam.knows_uid(env->seam_data, uids->pdata[i]))
            ch_controller_forget_phase(controller, uids->pdata[i]);
    }
}

void
ch_controller_start(ChController *controller)
{
    forget_unknown_phases(controller);
    controller->is_started = true;
    ch_timer_arm(controller->sweep_timer, IO_RETRY_MAX_US);
    dispatch(controller);
}

void
ch_controller_stop(ChController *controller)
{
    controller->is_started = false;
    ch_timer_disarm(controller->delay_timer);
    ch_timer_disarm(controller->sweep_timer);
}

guint
ch_controller_n_running(const ChController *controller)
{
    return ch_workqueue_n_processing(controller->queue);
}
