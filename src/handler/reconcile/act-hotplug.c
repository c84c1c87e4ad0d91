/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/act-hotplug.h"

#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/time.h"

#define RETRY_US CH_SECOND_US

static ChHotplugPass
volumes_of(const ChPass *pass, const ChLogContext *log)
{
    return (ChHotplugPass){.hotplug = pass->env->hotplug,
                           .log = log,
                           .uid = pass->vmi.uid,
                           .name = pass->name,
                           .vmi = pass->document};
}

/* A ChHotplugSetRules. */
static bool
set_rules(gpointer cgroup, const ChHotplugRule *rules, gsize n_rules, GError **error)
{
    g_autofree ChDeviceRule *of_devices = g_new(ChDeviceRule, n_rules);

    for (gsize i = 0; i < n_rules; i++)
        of_devices[i] = CH_DEVICE_RULE(
            'b', rules[i].major_number, rules[i].minor_number, CH_DEVICE_ALL, rules[i].is_allowed);
    return ch_pod_cgroup_set_devices(cgroup, of_devices, n_rules, error);
}

void
ch_act_hotplug_init(ChActHotplug *hotplug, ChPass *pass, ChPodCgroup *cgroup)
{
    *hotplug = (ChActHotplug){.pass = pass, .log = ch_pass_log_context(pass)};
    hotplug->volumes = volumes_of(pass, &hotplug->log);
    hotplug->volumes.set_rules = set_rules;
    hotplug->volumes.rules_data = cgroup;
}

void
ch_act_hotplug_clear(ChActHotplug *hotplug)
{
    ch_hotplug_pass_clear(&hotplug->volumes);
}

/* Each text is told once, not with each of the looks that follow every second. */
static void
tell_missing(const ChActHotplug *hotplug, const ChHotplugFailure *failure)
{
    const ChPass *pass = hotplug->pass;
    const char *text = failure->error->message;

    if (ch_hotplug_is_news(pass->env->hotplug, pass->vmi.uid, failure->volume, text))
        ch_pass_record(pass, ch_event_new(CH_EVENT_HOTPLUG_FAILED, text));
    else
        ch_log_verbose(4, &hotplug->log, "still: %s", text);
}

/* Takes the first of those that fail the sync. */
static void
judge(ChActHotplug *hotplug, ChHotplugFailure *failure, ChActResult *result)
{
    switch (failure->trouble) {
    case CH_HOTPLUG_WAITS:
        ch_log_verbose(4, &hotplug->log, "%s", failure->error->message);
        ch_pass_requeue_after(hotplug->pass, RETRY_US);
        break;
    case CH_HOTPLUG_MISSES:
        tell_missing(hotplug, failure);
        break;
    case CH_HOTPLUG_FAILS:
        if (result->error == NULL)
            *result = ch_act_result(false, g_steal_pointer(&failure->error));
        else
            ch_log_error(&hotplug->log, failure->error, "another hotplugged volume failed");
        break;
    case CH_HOTPLUG_TROUBLE_INVALID:
    case CH_HOTPLUG_TROUBLE_N:
        g_assert_not_reached();
    }
}

ChActResult
ch_act_hotplug_mount(ChActHotplug *hotplug)
{
    ChActResult result = {CH_SYNC_OK, NULL};
    g_autoptr(GPtrArray) failures = NULL;

    if (hotplug->volumes.hotplug == NULL)
        return result;
    failures = ch_hotplug_mount(&hotplug->volumes);
    for (guint i = 0; i < failures->len; i++)
        judge(hotplug, failures->pdata[i], &result);
    return result;
}

bool
ch_act_hotplug_is_ready(ChPass *pass)
{
    if (ch_hotplug_is_ready(pass->document))
        return true;
    ch_pass_requeue_after(pass, RETRY_US);
    return false;
}

ChActResult
ch_act_hotplug_unmount(ChActHotplug *hotplug)
{
    GError *error = NULL;

    if (hotplug->volumes.hotplug == NULL || ch_hotplug_unmount(&hotplug->volumes, &error))
        return (ChActResult){CH_SYNC_OK, NULL};
    return ch_act_result(false, error);
}

/* (transfer full): the VMI's pods, of whatever node */
static GPtrArray *
list_pods(const ChPass *pass)
{
    GPtrArray *pods = g_ptr_array_new();
    const char *pod_uid;
    ChJsonIter iter;
    ChJson *node;

    ch_json_iter_init(&iter, ch_json_at(pass->document, "status", "activePods"));
    while (ch_json_iter_next(&iter, &pod_uid, &node))
        g_ptr_array_add(pods, (gpointer)pod_uid);
    g_ptr_array_add(pods, NULL);
    return pods;
}

bool
ch_act_hotplug_clean_up(const ChPass *pass, const char *uid, GError **error)
{
    const ChLogContext log = ch_pass_log_context(pass);
    const bool is_this = pass->document != NULL && g_str_equal(uid, pass->vmi.uid);
    g_autoptr(GPtrArray) pods = is_this ? list_pods(pass) : NULL;
    const char *socket = g_strcmp0(uid, pass->ghost_uid) == 0 ? pass->ghost_socket : NULL;

    return pass->env->hotplug == NULL ||
           ch_hotplug_unmount_all(pass->env->hotplug,
                                  uid,
                                  pods != NULL ? (const char *const *)pods->pdata : NULL,
                                  socket,
                                  &log,
                                  error);
}

char **
ch_act_hotplug_look(ChPass *pass)
{
    const ChLogContext log = ch_pass_log_context(pass);
    g_auto(ChHotplugPass) volumes = volumes_of(pass, &log);

    return volumes.hotplug != NULL ? ch_hotplug_look(&volumes) : NULL;
}
