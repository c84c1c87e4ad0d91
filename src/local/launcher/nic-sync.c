/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/nic-sync.h"

#include <stdlib.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/launcher/device-change.h"
#include "local/launcher/network.h"
#include "local/launcher/nic-plan.h"
#include "local/launcher/nic-stray.h"

#define QUIET_US  (2 * CH_SECOND_US)  /* until libvirt has heard of a device that is gone */
#define DETACH_US (10 * CH_SECOND_US) /* each waits 5 s for the guest, the agent for Sync 20 s */

/* With its addresses ready before the guest can ask. */
static char *
build(const ChNicSync *sync, const char *name, const GArray *nics, GError **error)
{
    if (!ch_network_serve(sync->dhcp, sync->vmi, nics, sync->paths->private_dir, error))
        return NULL;
    return ch_domain_interface_build(
        &(ChDomainInput){.vmi = sync->vmi,
                         .options = sync->options,
                         .paths = *sync->paths,
                         .nics = (const ChNicFacts *)(gpointer)nics->data,
                         .n_nics = nics->len},
        name,
        error);
}

static bool
attach(virDomainPtr domain, const ChNicSync *sync, const char *name, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (ch_time_now_us() < *sync->quiet_until_us)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "interface '%s': the guest lets go of what an earlier attempt left",
                       name);
    g_autoptr(GArray) nics = ch_network_examine_one(sync->vmi, name, &failure);
    g_autofree char *xml = nics != NULL ? build(sync, name, nics, &failure) : NULL;

    if (nics == NULL && g_error_matches(failure, CH_ERROR, CH_ERROR_NOT_FOUND)) {
        ch_log_verbose(3, NULL, "%s", failure->message); /* the agent is still at it */
        return true;
    }
    if (xml != NULL && ch_device_attach(domain, xml, &failure)) {
        ch_log_info(NULL, "Interface '%s' attached.", name);
        return true;
    }
    if (xml != NULL && ch_nic_stray_remove(domain, name, xml))
        *sync->quiet_until_us = ch_time_now_us() + QUIET_US;
    g_propagate_prefixed_error(error, g_steal_pointer(&failure), "interface '%s': ", name);
    return false;
}

typedef bool (*ChangeFunc)(virDomainPtr domain, const char *xml, GError **error);

static bool
change(
    virDomainPtr domain, const ChNicChange *nic, ChangeFunc func, const char *what, GError **error)
{
    if (!func(domain, nic->xml, error)) {
        g_prefix_error(error, "interface '%s': ", nic->name);
        return false;
    }
    ch_log_info(NULL, "Interface '%s' %s.", nic->name, what);
    return true;
}

/* The next Sync asks for the rest. */
static bool
detach_all(virDomainPtr domain, const GArray *changes, GError **error)
{
    const int64_t end_us = ch_time_now_us() + DETACH_US;
    bool is_good = true;

    for (guint i = 0; i < changes->len && ch_time_now_us() < end_us; i++)
        is_good &= change(domain,
                          &g_array_index(changes, ChNicChange, i),
                          ch_device_detach,
                          "detached, or about to be",
                          is_good ? error : NULL);
    return is_good;
}

/* libvirt has no event for these; after a failure there is nothing to tell, and the agent would
 * answer with the next Sync at once. */
static bool
update_all(virDomainPtr domain, ChVirt *virt, const GArray *changes, GError **error)
{
    bool is_good = true;
    bool is_changed = false;

    for (guint i = 0; i < changes->len; i++) {
        const bool is_done = change(domain,
                                    &g_array_index(changes, ChNicChange, i),
                                    ch_device_update,
                                    "has its link changed",
                                    is_good ? error : NULL);

        is_good &= is_done;
        is_changed |= is_done;
    }
    if (is_changed)
        ch_virt_tell_change(virt);
    return is_good;
}

static bool
carry_out(virDomainPtr domain, const ChNicSync *sync, const ChNicPlan *plan, GError **error)
{
    bool is_good = true;

    for (guint i = 0; i < plan->clash->len; i++)
        is_good = ch_fail(is_good ? error : NULL,
                          CH_ERROR_EXISTS,
                          "interface '%s': another device of the VM has that name",
                          (const char *)plan->clash->pdata[i]);
    is_good &= detach_all(domain, plan->detach, is_good ? error : NULL);
    is_good &= update_all(domain, sync->virt, plan->update, is_good ? error : NULL);
    for (guint i = 0; i < plan->attach->len; i++)
        is_good &= attach(domain, sync, plan->attach->pdata[i], is_good ? error : NULL);
    return is_good;
}

bool
ch_nic_sync(virDomainPtr domain, const ChNicSync *sync, GError **error)
{
    char *live = virDomainGetXMLDesc(domain, 0); /* libvirt's: by malloc() */
    g_auto(ChNicPlan) plan = {0};
    bool is_planned;

    if (live == NULL)
        return ch_virt_fail(error);
    is_planned = ch_nic_plan(live, sync->vmi, &plan, error);
    free(live);
    return is_planned && carry_out(domain, sync, &plan, error);
}
