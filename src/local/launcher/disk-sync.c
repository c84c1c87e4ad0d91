/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/disk-sync.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "local/launcher/device-change.h"
#include "local/launcher/disk-diff.h"
#include "local/launcher/virt.h"
#include "local/launcher/volume-prepare.h"

static bool
has_pluggable(const ChJson *vmi)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++)
        if (ch_json_bool_at(
                ch_json_item(volumes, i), false, "persistentVolumeClaim", "hotpluggable"))
            return true;
    return false;
}

/* What the VMI's volumes look like now; cache modes as when the domain is defined. */
static char *
build_wanted(const ChJson *vmi,
             const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
             const ChPaths *paths,
             GError **error)
{
    g_autoptr(GArray) facts = ch_volume_examine_all(vmi, paths, error);

    if (facts == NULL)
        return NULL;
    return ch_domain_disks_build(
        &(ChDomainInput){.vmi = vmi,
                         .options = options,
                         .paths = *paths,
                         .disks = (const ChDiskFacts *)(gpointer)facts->data,
                         .n_disks = facts->len},
        error);
}

static bool
attach(virDomainPtr domain, const ChDiskChange *change, GError **error)
{
    /* Not there yet: the agent is still at it, and syncs again. */
    if (!ch_volume_is_usable(change->is_block ? CH_VOLUME_PLUGGED_BLOCK : CH_VOLUME_PLUGGED_FILE,
                             change->path))
        return true;
    if (!ch_device_attach(domain, change->xml, error))
        return false;
    ch_log_info(NULL, "Disk '%s' attached.", change->path);
    return true;
}

static bool
detach(virDomainPtr domain, const ChDiskChange *change, GError **error)
{
    if (!ch_device_detach(domain, change->xml, error))
        return false;
    ch_log_info(NULL, "Disk '%s' detached, or about to be.", change->path);
    return true;
}

/* One that QEMU refuses holds up no other; the first refusal is told. */
static bool
attach_all(virDomainPtr domain, const GArray *changes, GError **error)
{
    bool is_good = true;

    for (guint i = 0; i < changes->len; i++)
        is_good &= attach(domain, &g_array_index(changes, ChDiskChange, i), is_good ? error : NULL);
    return is_good;
}

bool
ch_disk_sync(virDomainPtr domain,
             const ChJson *vmi,
             const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
             const ChPaths *paths,
             GError **error)
{
    char *live = virDomainGetXMLDesc(domain, 0); /* libvirt's: by malloc() */
    g_auto(ChDiskDiff) diff = {0};
    g_autofree char *wanted = NULL;
    bool is_good;

    if (live == NULL)
        return ch_virt_fail(error);
    if (!has_pluggable(vmi) && strstr(live, paths->hotplug_dir) == NULL) {
        free(live);
        return true;
    }
    wanted = build_wanted(vmi, options, paths, error);
    is_good = wanted != NULL && ch_disk_diff(live, wanted, paths->hotplug_dir, &diff, error);
    free(live);
    for (guint i = 0; is_good && i < diff.detach->len; i++)
        is_good = detach(domain, &g_array_index(diff.detach, ChDiskChange, i), error);
    return is_good && attach_all(domain, diff.attach, error);
}
