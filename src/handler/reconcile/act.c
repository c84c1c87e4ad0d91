/* SPDX-License-Identifier: Apache-2.0 */

/*
 * act: carries out what decide() chose. Each action is idempotent: the pass that repeats it after a
 * failure finds what was done. Spec 01 §20 (shut down), §21 (delete, clean up), §22 (start,
 * update).
 */

#include <string.h>

#include "handler/launcher/rpc.h"
#include "handler/pod/container-disks.h"
#include "handler/pod/network-cache.h"
#include "handler/reconcile/act-hotplug.h"
#include "handler/reconcile/pass.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define LISTEN_RETRY_US (5 * CH_SECOND_US)

/* --- talking to the launcher */

/* (transfer full): what goes out as the VMI. One that is gone from the API is described by its
 * identity: that is all a launcher needs. */
char *
ch_act_vmi_json(const ChPass *pass, const char *uid)
{
    g_autoptr(ChJson) vmi = NULL;
    ChJson *meta;

    if (pass->document != NULL)
        return ch_json_print(ch_pass_launcher_document(pass), NULL);
    vmi = ch_json_new_object();
    ch_json_set_string(vmi, "kind", "VirtualMachineInstance");
    ch_json_set_string(vmi, "apiVersion", "kubevirt.io/v1");
    meta = ch_json_ensure_object(vmi, "metadata");
    ch_json_set_string(meta, "name", pass->name);
    ch_json_set_string(meta, "namespace", pass->namespace_);
    ch_json_set_string(meta, "uid", uid);
    (void)ch_json_ensure_object(ch_json_ensure_object(ch_json_ensure_object(vmi, "spec"), "domain"),
                                "devices");
    (void)ch_json_ensure_object(vmi, "status");
    return ch_json_print(vmi, NULL);
}

bool
ch_act_run_hooks(const ChPass *pass, ChHook hook, const char *uid, GError **error)
{
    const ChReconcileSeam *seam = &pass->env->seam;
    g_autofree char *json = NULL;

    if (seam->run_hooks == NULL)
        return true;
    json = ch_act_vmi_json(pass, uid);
    return seam->run_hooks(pass->env->seam_data, hook, json, error);
}

static ChLauncherClient *
get_verified(const ChPass *pass, const char *uid, GError **error)
{
    g_autoptr(GArray) pods = NULL;
    const ChLauncherVmi vmi = ch_pass_launcher_vmi(pass, uid, &pods);

    return ch_launcher_clients_get_verified(pass->env->clients, &vmi, error);
}

/* A launcher that went away in mid-call has done what stopping and deleting ask for. */
static bool
send_ending(const ChPass *pass,
            const ChLauncherClient *client,
            ChLauncherRpc rpc,
            const char *uid,
            GError **error)
{
    g_autofree char *json = ch_act_vmi_json(pass, uid);
    g_autoptr(GError) reason = NULL;

    if (ch_launcher_send_vmi(client->channel, rpc, json, strlen(json), NULL, &reason) ||
        g_error_matches(reason, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_DISCONNECTED))
        return true;
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

/* --- clean up and delete: spec 01 §21 */

/* The pod's own network goes with the pod. */
static void
tear_down_network(const ChLogContext *context, const char *private_dir, const char *uid)
{
    g_autoptr(GError) reason = NULL;

    if (uid[0] != '\0' && !ch_network_cache_remove(private_dir, uid, &reason))
        ch_log_error(
            context, NULL, "failed to delete VMI Network cache files: %s", reason->message);
}

static bool
unmount_disks(const ChPass *pass, const char *uid, GError **error)
{
    const ChContainerDiskEnv env = {
        .hands = pass->env->hands,
        .private_dir = pass->env->private_dir,
        .pods_dir = pass->env->pods_dir,
    };
    const bool is_this = pass->document != NULL && g_str_equal(pass->vmi.uid, uid);

    return ch_container_disks_clean_up(&env, uid, is_this ? pass->document : NULL, error);
}

bool
ch_act_clean_up(ChPass *pass, const char *uid, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);

    ch_log_info(&context, "Performing final local cleanup for vmi with uid %s", uid);
    ch_downward_metrics_end(pass->env->metrics, uid);
    if (!unmount_disks(pass, uid, error))
        return false;
    CH_CRASH_POINT("clean-up/disks");
    if (!ch_act_hotplug_clean_up(pass, uid, error))
        return false;
    CH_CRASH_POINT("clean-up/volumes");
    tear_down_network(&context, pass->env->private_dir, uid);
    CH_CRASH_POINT("clean-up/network");
    ch_launcher_clients_close(pass->env->clients, pass->namespace_, pass->name, uid);
    CH_CRASH_POINT("clean-up/client");
    ch_log_info(&context, "Removing domain from cache during final cleanup");
    ch_controller_forget_domain(pass->controller, pass->key, uid);
    CH_CRASH_POINT("clean-up/domain");
    return true;
}

/* Whether the launcher has ended meanwhile: the connection broke, and nobody answers in its place.
 */
static bool
has_left(const ChPass *pass, const ChLauncherClient *client, const char *uid)
{
    g_autoptr(ChLauncherClient) again = NULL;

    if (ch_grpc_channel_is_usable(client->channel))
        return false;
    again = get_verified(pass, uid, NULL);
    return again == NULL;
}

/* A launcher that ends while it is told to delete is gone, as one that does not answer the Ping
 * before it. That must not count as a failure: the phase that is stored with it is final, and so
 * the condition would stay. */
static bool
send_deletion(const ChPass *pass, const ChLauncherClient *client, const char *uid, GError **error)
{
    g_autoptr(GError) reason = NULL;

    if (send_ending(pass, client, CH_LAUNCHER_RPC_DELETE, uid, &reason) ||
        has_left(pass, client, uid))
        return true;
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

static bool
delete_domain(ChPass *pass, const char *uid, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);
    g_autoptr(ChLauncherClient) client = get_verified(pass, uid, NULL);
    bool ok = true;

    CH_CRASH_POINT("delete/verified");
    if (client != NULL) { /* else the launcher is gone, and its domain with it */
        ch_pass_record(pass, ch_event_new(CH_EVENT_SIGNALED_DELETION, NULL));
        ok = send_deletion(pass, client, uid, error);
        CH_CRASH_POINT("delete/sent");
        if (ok)
            ch_log_info(&context, "Signaled deletion for %s", pass->name);
    }
    ch_launcher_clients_close(pass->env->clients, pass->namespace_, pass->name, uid);
    CH_CRASH_POINT("delete/closed");
    return ok && ch_act_clean_up(pass, uid, error);
}

static ChActResult
act_delete(ChPass *pass)
{
    GError *error = NULL;
    bool ok = delete_domain(pass, pass->decision.uid, &error);

    return ch_act_result(ok, error);
}

static ChActResult
act_clean_up_stale(ChPass *pass)
{
    const ChLogContext context = ch_pass_log_context(pass);
    GError *error = NULL;
    bool ok;

    if (g_str_equal(pass->decision.uid, pass->vmi.uid))
        ch_log_info(
            &context, "Removing what is left of vmi %s, which lives elsewhere", pass->vmi.uid);
    else
        ch_log_info(&context,
                    "Detected stale vmi %s that still needs cleanup before new vmi %s with "
                    "identical name/namespace can be processed",
                    pass->decision.uid,
                    pass->vmi.uid);
    ok = ch_act_clean_up(pass, pass->decision.uid, &error);
    return ch_act_result(ok, error);
}

/* --- shut down and kill: spec 01 §20 */

static bool
signal_shutdown(ChPass *pass, const ChLauncherClient *client, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const ChShutdownPlan *plan = &pass->decision.shutdown;
    g_autoptr(GError) reason = NULL;

    if (send_ending(pass, client, CH_LAUNCHER_RPC_SHUTDOWN, pass->decision.uid, &reason)) {
        ch_log_info(&context, "Signaled graceful shutdown for %s", pass->name);
        if (plan->step == CH_SHUTDOWN_SIGNAL_FIRST)
            ch_pass_record(pass, ch_event_new(CH_EVENT_SHUTTING_DOWN, NULL));
    } else if (plan->may_be_refused &&
               g_error_matches(reason, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_REFUSED)) {
        ch_log_info_reason(&context,
                           reason,
                           "%s is paused and cannot shut down, killing it in %" G_GINT64_FORMAT
                           " s unless it goes on",
                           pass->name,
                           plan->left_s);
    } else {
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    ch_pass_requeue_after(pass, plan->requeue_us);
    CH_CRASH_POINT("shut-down/sent");
    return true;
}

static bool
kill_domain(ChPass *pass, const ChLauncherClient *client, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);

    ch_log_info(&context,
                pass->decision.shutdown.step == CH_SHUTDOWN_KILL_EXPIRED
                    ? "Grace period expired, killing deleted VirtualMachineInstance %s"
                    : "Graceful shutdown not set, killing deleted VirtualMachineInstance %s",
                pass->name);
    if (!send_ending(pass, client, CH_LAUNCHER_RPC_KILL, pass->decision.uid, error))
        return false;
    CH_CRASH_POINT("kill/sent");
    ch_pass_record(pass, ch_event_new(CH_EVENT_STOPPING, NULL));
    return true;
}

static bool
shut_down(ChPass *pass, GError **error)
{
    g_autoptr(ChLauncherClient) client = NULL;

    if (!ch_act_run_hooks(pass, CH_HOOK_PRE_VM_STOP, pass->decision.uid, error))
        return false;
    client = get_verified(pass, pass->decision.uid, error);
    if (client == NULL)
        return false;
    CH_CRASH_POINT("stop/verified");
    /* For the next pass. Time in which nobody could tell the guest is not taken off its grace. */
    (void)ch_controller_stopping_for(pass->controller, pass->decision.uid, true);
    switch (pass->decision.shutdown.step) {
    case CH_SHUTDOWN_SIGNAL_FIRST:
    case CH_SHUTDOWN_SIGNAL_AGAIN:
        return signal_shutdown(pass, client, error);
    case CH_SHUTDOWN_KILL_EXPIRED:
    case CH_SHUTDOWN_KILL:
        return kill_domain(pass, client, error);
    case CH_SHUTDOWN_WAIT: /* the guest is on its way */
        ch_pass_requeue_after(pass, pass->decision.shutdown.requeue_us);
        return true;
    case CH_SHUTDOWN_INVALID:
    case CH_SHUTDOWN_N:
        break;
    }
    g_assert_not_reached();
}

static ChActResult
act_shut_down(ChPass *pass)
{
    GError *error = NULL;
    bool ok = shut_down(pass, &error);

    return ch_act_result(ok, error);
}

static ChActResult
act_destroy(ChPass *pass)
{
    ChActResult result = act_shut_down(pass);

    if (result.outcome != CH_SYNC_OK)
        return result;
    result.outcome = CH_SYNC_IRRECOVERABLE;
    (void)ch_fail(
        &result.error, CH_ERROR_FAILED, "VMI is irrecoverable due to failed post-copy migration");
    return result;
}

/* --- the rest */

/* After a restart nobody else connects to a VM that is left alone, and what its launcher reports
 * until the next resync would be lost. A launcher that is not there is looked for again. */
static ChActResult
act_listen(ChPass *pass)
{
    g_autoptr(GArray) pods = NULL;
    const ChLauncherVmi vmi = ch_pass_launcher_vmi(pass, pass->vmi.uid, &pods);
    g_autoptr(GError) reason = NULL;
    g_autoptr(ChLauncherClient) client = ch_launcher_clients_get(pass->env->clients, &vmi, &reason);

    if (client == NULL) {
        ch_log_verbose(3, NULL, "%s cannot report: %s", pass->key, reason->message);
        ch_pass_requeue_after(pass, LISTEN_RETRY_US);
    }
    return (ChActResult){CH_SYNC_OK, NULL};
}

static ChActResult
act_refuse_update(ChPass *pass)
{
    ChActResult result = {CH_SYNC_FAILED, NULL};

    (void)ch_fail(&result.error,
                  CH_ERROR_FAILED,
                  "Can not update a VirtualMachineInstance with unresponsive command server.");
    return result;
}

static ChActResult
act_nothing(ChPass *pass)
{
    return (ChActResult){CH_SYNC_OK, NULL};
}

static ChActResult
act_migrate(ChPass *pass)
{
    const ChLogContext context = ch_pass_log_context(pass);

    ch_log_warning(&context,
                   NULL,
                   "this agent takes no part in migrations yet, ignoring its role in this one");
    return (ChActResult){CH_SYNC_OK, NULL};
}

/* By ChAction; those that only fetch a fact never get here. */
static ChActResult (*const actions[])(ChPass *pass) = {
    [CH_ACTION_IGNORE] = act_nothing,
    [CH_ACTION_LISTEN] = act_listen,
    [CH_ACTION_CLEAN_UP_STALE] = act_clean_up_stale,
    [CH_ACTION_DELETE] = act_delete,
    [CH_ACTION_SHUT_DOWN] = act_shut_down,
    [CH_ACTION_DESTROY] = act_destroy,
    [CH_ACTION_START] = ch_act_sync,
    [CH_ACTION_UPDATE] = ch_act_sync,
    [CH_ACTION_REFUSE_UPDATE] = act_refuse_update,
    [CH_ACTION_NONE] = act_nothing,
    [CH_ACTION_MIGRATE_SOURCE] = act_migrate,
    [CH_ACTION_MIGRATE_TARGET] = act_migrate,
};
G_STATIC_ASSERT(G_N_ELEMENTS(actions) == CH_ACTION_N);

ChActResult
ch_act(ChPass *pass)
{
    return actions[pass->decision.action](pass);
}
