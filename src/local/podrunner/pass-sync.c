/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pass-internal.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/podrunner/api.h"
#include "local/podrunner/hotplug.h"
#include "local/podrunner/secondary-plan.h"
#include "local/podrunner/secondary.h"
#include "local/podrunner/troubles.h"
#include "local/podrunner/volume-pods.h"
#include "local/podrunner/volume-uses.h"

#define PLUG_RETRY_US   (CH_SECOND_US / 2) /* what a volume or network waits for is not watched */
#define FAILED_RETRY_US (2 * CH_SECOND_US) /* nor is what keeps a volume from coming */

/* Once, not at every attempt. @kind: "network"; @told: (inout): the record's */
static void
tell_news(ChPass *pass, const char *kind, const ChJson *troubles, char **told)
{
    g_autoptr(ChJson) list = ch_record_list(*told);
    g_autoptr(ChJson) news = ch_troubles_news(list, troubles);

    for (gsize i = 0; i < ch_json_length(news); i++) {
        const ChJson *trouble = ch_json_item(news, i);
        g_autofree char *text = g_strdup_printf("%s '%s': %s",
                                                kind,
                                                ch_json_string_at(trouble, "of"),
                                                ch_json_string_at(trouble, "message"));

        ch_pass_tell(pass, "Warning", ch_json_string_at(trouble, "reason"), text);
    }
    ch_record_set_list(told, list);
    if (ch_json_length(news) > 0)
        (void)ch_pass_save_record(pass, NULL); /* else the next pod runner tells them once more */
}

static void
tell_failures(ChPass *pass, const ChJson *failures)
{
    g_autoptr(ChJson) troubles = ch_json_new_array();
    ChJsonIter iter;
    const char *volume = NULL;
    ChJson *failure = NULL;

    ch_json_iter_init(&iter, failures);
    while (ch_json_iter_next(&iter, &volume, &failure))
        ch_json_append(
            troubles,
            ch_trouble_new(volume, CH_VOLUME_FAILED, ch_json_string_at(failure, "message")));
    tell_news(pass, "volume", troubles, &pass->record->volume_troubles);
}

static bool
is_pod_alive(const ChPass *pass)
{
    return !pass->record->is_tidied && pass->pod != NULL &&
           (pass->container == CH_CONTAINER_STARTING || pass->container == CH_CONTAINER_READY);
}

/* Volumes that come and go while the launcher is there. */
static bool
sync_volumes(ChPass *pass, ChJson *vmi, bool *out_is_changed, GError **error)
{
    g_autoptr(ChJson) claims = NULL;
    g_autoptr(ChJson) failures = NULL;
    g_autoptr(ChJson) attachments = NULL;
    bool is_waiting = false;

    if (!ch_volume_pods_update(&(ChVolumePods){pass->env, pass->vmi, pass->pod, pass->record},
                               &claims,
                               &failures,
                               &is_waiting,
                               error))
        return false;
    attachments = ch_record_list(pass->record->hotplugs);
    if (ch_hotplug_set_status(vmi, attachments, claims, failures))
        *out_is_changed = true;
    tell_failures(pass, failures);
    if (is_waiting)
        pass->delay_us = PLUG_RETRY_US;
    else if (ch_json_length(failures) > 0 && pass->delay_us < 0)
        pass->delay_us = FAILED_RETRY_US;
    return true;
}

/* The same of networks. What was done is told, whatever failed. */
static bool
sync_networks(ChPass *pass, ChJson *vmi, bool *out_is_changed, GError **error)
{
    g_autoptr(ChJson) resting =
        ch_record_list(pass->input->is_poll ? pass->record->troubles : NULL);
    g_autoptr(ChJson) attachments = NULL;
    g_autoptr(ChJson) troubles = NULL;
    const ChJson *first;
    bool is_waiting = false;
    bool is_annotated;
    gsize n_failed;

    troubles = ch_secondary_update(&(ChSecondary){pass->env, pass->vmi, pass->record, resting},
                                   &is_waiting);
    n_failed = ch_json_length(troubles);
    for (gsize i = 0; i < ch_json_length(resting); i++)
        ch_json_append(troubles, ch_json_dup(ch_json_item(resting, i)));
    tell_news(pass, "network", troubles, &pass->record->troubles);
    if (is_waiting)
        pass->delay_us = PLUG_RETRY_US;
    is_annotated = ch_secondary_annotate(pass->env, pass->record, &pass->pod, error);
    attachments = ch_record_list(pass->record->attachments);
    if (ch_secondary_set_spec(vmi, attachments))
        *out_is_changed = true;
    if (ch_secondary_set_status(vmi, attachments))
        *out_is_changed = true;
    if (!is_annotated || n_failed == 0)
        return is_annotated;
    first = ch_json_item(troubles, 0);
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "network '%s': %s",
                   ch_json_string_at(first, "of"),
                   ch_json_string_at(first, "message"));
}

/* The first that failed is what the pass failed of. */
static bool
sync_plugged(ChPass *pass, ChJson *vmi, bool *out_is_changed, GError **error)
{
    g_autoptr(GError) failure = NULL;
    bool is_good;

    if (!is_pod_alive(pass))
        return true;
    is_good = sync_networks(pass, vmi, out_is_changed, error);
    if (sync_volumes(pass, vmi, out_is_changed, &failure))
        return is_good;
    if (!ch_api_is_conflict(failure))
        ch_pass_tell(pass, "Warning", CH_VOLUME_FAILED, failure->message);
    if (is_good)
        g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

/* What cannot be plugged in is told, and does not keep the rest from going on. */
bool
ch_pass_step_sync_ready(ChPass *pass, GError **error)
{
    g_autoptr(ChJson) vmi = ch_json_dup(pass->vmi);
    g_autoptr(GError) failure = NULL;
    bool is_changed = false;

    pass->is_over = true;
    if (pass->record == NULL)
        return true;
    (void)sync_plugged(pass, vmi, &is_changed, &failure);
    if (ch_vmi_set_ready(vmi, ch_pass_seen_pod(pass), ch_time_wall_us()))
        is_changed = true;
    if (is_changed && !ch_pass_put_vmi(pass, g_steal_pointer(&vmi), error))
        return false;
    if (failure == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}
