/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/volume-uses.h"

#include <string.h>

#include "lib/base/errors.h"
#include "local/podrunner/api.h"
#include "local/podrunner/disk-use.h"

#define PURPOSE "volume " /* then its name */

bool
ch_volume_use_take(const ChVolumePods *pods,
                   const ChJson *claim,
                   const char *volume,
                   GError **error)
{
    g_autofree char *purpose = g_strconcat(PURPOSE, volume, NULL);
    g_autofree char *user = NULL;
    g_auto(ChDiskUse) disk = {0};
    ChClaim facts = {0};

    if (!ch_claim_read(claim, &facts, error) || !ch_disk_use_read(&facts, &disk, error))
        return false;
    if (ch_uses_take(pods->env->uses,
                     pods->record,
                     purpose,
                     &(ChUse){disk.what, disk.within, ch_disk_use_is_shared(pods->vmi, volume)},
                     &user))
        return true;
    return ch_fail(error,
                   CH_ERROR_EXISTS,
                   "'%s' is in use by %s, and two guests that write to one disk destroy what is on "
                   "it: where each only reads, or knows of the other, say so on both disks by "
                   "'disk.readonly: true' or 'shareable: true' (attach --read-only, --shareable)",
                   facts.path,
                   user);
}

bool
ch_volume_use_is_taken(const ChVolumePods *pods, const char *volume)
{
    g_auto(GStrv) purposes = ch_uses_purposes(pods->env->uses, pods->record);
    g_autofree char *purpose = g_strconcat(PURPOSE, volume, NULL);

    return g_strv_contains((const char *const *)purposes, purpose);
}

bool
ch_volume_uses_trim(const ChVolumePods *pods, const ChJson *attachments)
{
    g_auto(GStrv) purposes = ch_uses_purposes(pods->env->uses, pods->record);
    bool is_changed = false;

    for (gsize i = 0; purposes[i] != NULL; i++) {
        const char *volume = purposes[i] + strlen(PURPOSE);

        if (g_str_has_prefix(purposes[i], PURPOSE) && !ch_hotplug_is_wanted(pods->vmi, volume) &&
            ch_hotplug_find(attachments, volume) == NULL)
            is_changed |= ch_uses_release(pods->env->uses, pods->record, purposes[i]);
    }
    return is_changed;
}

void
ch_volume_uses_forget(const ChPassEnv *env, ChRecord *record)
{
    g_auto(GStrv) purposes = ch_uses_purposes(env->uses, record);

    for (gsize i = 0; purposes[i] != NULL; i++) {
        if (g_str_has_prefix(purposes[i], PURPOSE))
            (void)ch_uses_release(env->uses, record, purposes[i]);
    }
}

/* What is amiss besides is told when the volume's pod is made. A VM that waits for one disk keeps
 * no other: two that want the same ones would wait for each other. */
bool
ch_volume_uses_reserve(const ChVolumePods *pods, GError **error)
{
    const ChJson *volumes = ch_json_at(pods->vmi, "spec", "volumes");

    (void)ch_volume_uses_trim(pods, NULL); /* it has no pods of volumes yet */
    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        g_autoptr(ChJson) claim = NULL;
        g_autoptr(GError) failure = NULL;

        if (!ch_hotplug_is_hotpluggable(volume))
            continue;
        claim = ch_api_get_claim(pods->env->kube,
                                 pods->record->namespace_,
                                 ch_json_string_at(volume, "persistentVolumeClaim", "claimName"),
                                 NULL);
        if (claim == NULL ||
            ch_volume_use_take(pods, claim, ch_json_string_at(volume, "name"), &failure) ||
            !g_error_matches(failure, CH_ERROR, CH_ERROR_EXISTS))
            continue;
        ch_volume_uses_forget(pods->env, pods->record);
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    return true;
}
