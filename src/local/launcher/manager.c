/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/manager.h"

#include <libvirt/virterror.h>
#include <stdlib.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/launcher/disk-sync.h"
#include "local/launcher/domain-ports.h"
#include "local/launcher/network.h"
#include "local/launcher/nic-sync.h"
#include "local/launcher/volume-prepare.h"

struct ChManager {
    ChManagerConfig config;
    bool is_paused_by_user; /* of the one worker that syncs, pauses and unpauses */
    int64_t quiet_until_us; /* of the same: see nic-sync.h */
};

ChManager *
ch_manager_new(const ChManagerConfig *config)
{
    ChManager *manager = g_new0(ChManager, 1);

    manager->config = *config;
    return manager;
}

void
ch_manager_free(ChManager *manager)
{
    g_free(manager);
}

char *
ch_manager_domain_name(const ChJson *vmi, GError **error)
{
    const char *namespace_ = ch_json_string_at(vmi, "metadata", "namespace");
    const char *name = ch_json_string_at(vmi, "metadata", "name");
    const char *uid = ch_json_string_at(vmi, "metadata", "uid");

    if (namespace_ == NULL || name == NULL || uid == NULL || !ch_volume_name_is_safe(namespace_) ||
        !ch_volume_name_is_safe(name) || !ch_volume_name_is_safe(uid)) {
        ch_fail(
            error, CH_ERROR_INVALID, "the VMI's namespace, name or uid is missing or not valid");
        return NULL;
    }
    return ch_domain_name(namespace_, name);
}

static ChVirtLookup
find_domain(ChManager *manager,
            const ChManagerRequest *request,
            virDomainPtr *out_domain,
            GError **error)
{
    return ch_virt_lookup(manager->config.virt, request->name, out_domain, error);
}

/* For what makes no sense without a domain. (transfer full) (nullable) */
static virDomainPtr
require_domain(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    virDomainPtr domain = NULL;

    if (find_domain(manager, request, &domain, error) == CH_VIRT_LOOKUP_MISSING)
        ch_fail(error, CH_ERROR_NOT_FOUND, "Domain not found.");
    return domain;
}

static bool
get_state(virDomainPtr domain, int *out_state, GError **error)
{
    int reason = 0;

    return virDomainGetState(domain, out_state, &reason, 0) == 0 || ch_virt_fail(error);
}

static int64_t
grace_period(const ChJson *vmi)
{
    int64_t seconds = 0;

    if (!ch_json_int_at(vmi, &seconds, "spec", "terminationGracePeriodSeconds"))
        seconds = 30; /* the API's default */
    return seconds;
}

/* Everything that must be there before libvirt may see the domain; then the document. */
static char *
convert(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    g_autoptr(GArray) nics = ch_network_examine(request->vmi, request->options, error);
    if (nics == NULL ||
        !ch_network_serve(
            manager->config.dhcp, request->vmi, nics, manager->config.paths.private_dir, error))
        return NULL;
    g_autoptr(GArray) disks = ch_volume_prepare_all(request->vmi, &manager->config.paths, error);
    if (disks == NULL)
        return NULL;
    const ChDomainInput input = {
        .vmi = request->vmi,
        .options = request->options,
        .paths = manager->config.paths,
        .is_emulated = manager->config.is_emulated,
        .disks = (const ChDiskFacts *)(gpointer)disks->data,
        .n_disks = disks->len,
        .nics = (const ChNicFacts *)(gpointer)nics->data,
        .n_nics = nics->len,
    };
    return ch_domain_xml_build(&input, error);
}

/* For what is plugged in later. libvirt shows what the domain has when it is defined, so that is
 * done a second time. */
static void
make_room(virConnectPtr connection, virDomainPtr domain)
{
    char *defined = virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_INACTIVE);
    g_autoptr(GError) failure = NULL;
    g_autofree char *xml = defined != NULL ? ch_domain_add_ports(defined, &failure) : NULL;
    g_autoptr(virDomain) again = xml != NULL ? virDomainDefineXML(connection, xml) : NULL;

    free(defined);
    if (xml != NULL && again == NULL)
        ch_virt_fail(&failure);
    if (failure != NULL)
        ch_log_warning(NULL, failure, "ignoring that there is no room for devices that come later");
}

/* The identity is known before libvirt tells of the domain: a domain without would look like
 * another VMI's to the agent. Nobody would watch or end the guest of another domain. */
static virDomainPtr
define(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    if (!g_str_equal(request->name, manager->config.domain_name)) {
        ch_fail(error,
                CH_ERROR_INVALID,
                "this launcher runs the domain %s, not %s",
                manager->config.domain_name,
                request->name);
        return NULL;
    }
    g_autofree char *xml = convert(manager, request, error);
    if (xml == NULL)
        return NULL;
    g_autoptr(virConnect) connection = ch_virt_connect(manager->config.virt, error);
    if (connection == NULL)
        return NULL;
    ch_metadata_set_uid(manager->config.metadata,
                        ch_json_string_at(request->vmi, "metadata", "uid"));
    ch_metadata_init_grace_period(manager->config.metadata, grace_period(request->vmi));
    virDomainPtr domain = virDomainDefineXML(connection, xml);
    if (domain == NULL)
        ch_virt_fail(error);
    else
        ch_log_info(NULL, "Domain defined.");
    if (domain != NULL &&
        !ch_json_bool_at(request->vmi, false, "spec", "domain", "devices", "disableHotplug"))
        make_room(connection, domain);
    return domain;
}

static bool
start(ChManager *manager, const ChJson *vmi, virDomainPtr domain, GError **error)
{
    const bool is_paused =
        g_strcmp0(ch_json_string_at(vmi, "spec", "startStrategy"), "Paused") == 0;

    if (virDomainCreateWithFlags(domain, is_paused ? VIR_DOMAIN_START_PAUSED : 0) < 0)
        return ch_virt_fail(error);
    manager->is_paused_by_user = is_paused;
    ch_log_info(NULL, "Domain started.");
    return true;
}

static bool
is_phase_before_running(const ChJson *vmi)
{
    static const char *const later[] = {"Running", "Succeeded", "Failed"};
    const char *phase = ch_json_string_at(vmi, "status", "phase");

    for (gsize i = 0; i < G_N_ELEMENTS(later); i++)
        if (g_strcmp0(phase, later[i]) == 0)
            return false;
    return true;
}

/* A guest that ended while its VMI was Running stays as it is: the agent reports the end. */
static bool
bring_up(ChManager *manager, const ChJson *vmi, virDomainPtr domain, GError **error)
{
    int state = VIR_DOMAIN_NOSTATE;

    if (!get_state(domain, &state, error))
        return false;
    switch (state) { /* libvirt's enum, which may grow */
    case VIR_DOMAIN_NOSTATE:
    case VIR_DOMAIN_SHUTDOWN:
    case VIR_DOMAIN_SHUTOFF:
    case VIR_DOMAIN_CRASHED:
        return !is_phase_before_running(vmi) || start(manager, vmi, domain, error);
    case VIR_DOMAIN_PAUSED:
        return manager->is_paused_by_user || virDomainResume(domain) == 0 || ch_virt_fail(error);
    default:
        return true;
    }
}

/* What cannot be plugged in does not keep the rest from it; the first failure is told. */
static bool
sync_devices(ChManager *manager,
             const ChManagerRequest *request,
             virDomainPtr domain,
             GError **error)
{
    const ChPaths *paths = &manager->config.paths;
    int state = VIR_DOMAIN_NOSTATE;
    bool has_disks;

    if (!get_state(domain, &state, error))
        return false;
    if (state != VIR_DOMAIN_RUNNING && state != VIR_DOMAIN_PAUSED)
        return true;
    has_disks = ch_disk_sync(domain, request->vmi, request->options, paths, error);
    return ch_nic_sync(domain,
                       &(ChNicSync){.vmi = request->vmi,
                                    .options = request->options,
                                    .paths = paths,
                                    .dhcp = manager->config.dhcp,
                                    .virt = manager->config.virt,
                                    .quiet_until_us = &manager->quiet_until_us},
                       has_disks ? error : NULL) &&
           has_disks;
}

bool
ch_manager_sync(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    g_autoptr(virDomain) domain = NULL;

    if (find_domain(manager, request, &domain, error) == CH_VIRT_LOOKUP_MISSING)
        domain = define(manager, request, error);
    if (domain == NULL || !bring_up(manager, request->vmi, domain, error) ||
        !sync_devices(manager, request, domain, error))
        return false;
    ch_metadata_update_grace_period(manager->config.metadata, grace_period(request->vmi));
    return true;
}

/* What pause and unpause share: the domain must be there; in another state there is nothing to do.
 */
static bool
change_running(ChManager *manager,
               const ChManagerRequest *request,
               int from_state,
               int (*change)(virDomainPtr domain),
               bool is_paused_after,
               GError **error)
{
    g_autoptr(virDomain) domain = require_domain(manager, request, error);
    int state = VIR_DOMAIN_NOSTATE;

    if (domain == NULL || !get_state(domain, &state, error))
        return false;
    if (state != from_state)
        return true;
    if (change(domain) < 0)
        return ch_virt_fail(error);
    manager->is_paused_by_user = is_paused_after;
    return true;
}

bool
ch_manager_pause(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    return change_running(manager, request, VIR_DOMAIN_RUNNING, virDomainSuspend, true, error);
}

bool
ch_manager_unpause(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    return change_running(manager, request, VIR_DOMAIN_PAUSED, virDomainResume, false, error);
}

bool
ch_manager_shutdown(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    g_autoptr(virDomain) domain = NULL;
    int state = VIR_DOMAIN_NOSTATE;

    const ChVirtLookup lookup = find_domain(manager, request, &domain, error);
    if (lookup != CH_VIRT_LOOKUP_FOUND)
        return lookup == CH_VIRT_LOOKUP_MISSING;
    if (!get_state(domain, &state, error))
        return false;
    if (state != VIR_DOMAIN_RUNNING && state != VIR_DOMAIN_PAUSED)
        return true;
    if (virDomainShutdown(domain) < 0)
        return ch_virt_fail(error);
    ch_metadata_mark_shutdown(manager->config.metadata, ch_time_wall_us());
    return true;
}

/* A domain that goes away meanwhile is gone: that was asked for. */
static bool
is_gone(void)
{
    return virGetLastErrorCode() == VIR_ERR_NO_DOMAIN;
}

bool
ch_manager_kill(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    g_autoptr(virDomain) domain = NULL;
    int state = VIR_DOMAIN_NOSTATE;
    int reason = 0;
    const ChVirtLookup lookup = find_domain(manager, request, &domain, error);

    if (lookup != CH_VIRT_LOOKUP_FOUND)
        return lookup == CH_VIRT_LOOKUP_MISSING;
    if (virDomainGetState(domain, &state, &reason, 0) < 0)
        return is_gone() || ch_virt_fail(error);
    if (state != VIR_DOMAIN_RUNNING && state != VIR_DOMAIN_PAUSED && state != VIR_DOMAIN_SHUTDOWN)
        return true;
    return virDomainDestroyFlags(domain, VIR_DOMAIN_DESTROY_GRACEFUL) == 0 || is_gone() ||
           ch_virt_fail(error);
}

bool
ch_manager_delete(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    g_autoptr(virDomain) domain = NULL;
    const ChVirtLookup lookup = find_domain(manager, request, &domain, error);

    if (lookup != CH_VIRT_LOOKUP_FOUND)
        return lookup == CH_VIRT_LOOKUP_MISSING;
    return virDomainUndefineFlags(domain,
                                  VIR_DOMAIN_UNDEFINE_KEEP_NVRAM |
                                      VIR_DOMAIN_UNDEFINE_CHECKPOINTS_METADATA) == 0 ||
           is_gone() || ch_virt_fail(error);
}

bool
ch_manager_reset(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    g_autoptr(virDomain) domain = require_domain(manager, request, error);

    return domain != NULL && (virDomainReset(domain, 0) == 0 || ch_virt_fail(error));
}

static bool
is_agent_connected(const ChJson *vmi)
{
    const ChJson *condition =
        ch_json_find(ch_json_at(vmi, "status", "conditions"), "type", "AgentConnected");

    return g_strcmp0(ch_json_string_at(condition, "status"), "True") == 0;
}

bool
ch_manager_soft_reboot(ChManager *manager, const ChManagerRequest *request, GError **error)
{
    const bool has_agent = is_agent_connected(request->vmi);

    if (!has_agent &&
        !ch_json_bool_at(request->vmi, true, "spec", "domain", "features", "acpi", "enabled"))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "VMI neither have the agent connected nor the ACPI feature enabled");
    g_autoptr(virDomain) domain = require_domain(manager, request, error);
    if (domain == NULL)
        return false;
    /* The agent goes away while it reboots the guest, so its silence is success. */
    return virDomainReboot(domain,
                           has_agent ? VIR_DOMAIN_REBOOT_GUEST_AGENT
                                     : VIR_DOMAIN_REBOOT_ACPI_POWER_BTN) == 0 ||
           virGetLastErrorCode() == VIR_ERR_AGENT_UNRESPONSIVE || ch_virt_fail(error);
}
