/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Can this VMI be migrated, and can its storage? From spec and status alone (02 §8.4, §8.5).
 */

#include "handler/reconcile/status-internal.h"

#define BRIDGE_MIGRATION_ANNOTATION "kubevirt.io/allow-pod-bridge-network-live-migration"

#define NOT_SHARED                                                                                 \
    "live migration requires that all PVCs must be shared (using ReadWriteMany access mode)"

/* A check returns why the VMI cannot be migrated: (transfer full) (nullable), NULL: it can. */
typedef char *(*Check)(const ChStatusPass *pass);

static const ChJson *
devices_of(const ChStatusPass *pass)
{
    return ch_json_at(pass->vmi, "spec", "domain", "devices");
}

static bool
is_listed(const char *const *list, const char *text)
{
    return list != NULL && text != NULL && g_strv_contains(list, text);
}

/* --- network --- */

static const char *
pod_network_name(const ChStatusPass *pass)
{
    const ChJson *networks = ch_json_at(pass->vmi, "spec", "networks");

    for (gsize i = 0; i < ch_json_length(networks); i++)
        if (ch_json_at(ch_json_item(networks, i), "pod") != NULL)
            return ch_json_string_at(ch_json_item(networks, i), "name");
    return NULL;
}

static bool
is_migratable_binding(const ChStatusPass *pass, const ChJson *interface)
{
    if (ch_json_at(interface, "masquerade") != NULL ||
        ch_json_at(interface, "passtBinding") != NULL)
        return true;
    if (ch_json_at(interface, "bridge") != NULL)
        return ch_vmi_has_annotation(&pass->old, BRIDGE_MIGRATION_ANNOTATION);
    return is_listed(pass->node->migratable_plugins,
                     ch_json_string_at(interface, "binding", "name"));
}

static char *
check_network(const ChStatusPass *pass)
{
    const ChJson *interfaces = ch_json_at(devices_of(pass), "interfaces");
    const char *network = pod_network_name(pass);
    const ChJson *primary;

    if (network == NULL || ch_json_length(interfaces) == 0)
        return NULL;
    primary = ch_json_find(interfaces, "name", network);
    if (primary == NULL)
        return g_strdup_printf("no primary interface found for network %s", network);
    if (is_migratable_binding(pass, primary))
        return NULL;
    return g_strdup("cannot migrate VMI which does not use masquerade or a migratable plugin to "
                    "connect to the pod network");
}

/* --- CPU, devices, confidential guests, clocks --- */

static char *
check_cpu_model(const ChStatusPass *pass)
{
    const char *known = pass->node->cpu_model;

    if (g_strcmp0(ch_json_string_at(pass->vmi, "spec", "domain", "cpu", "model"), "host-model") !=
            0 ||
        (known != NULL && known[0] != '\0'))
        return NULL;
    return g_strdup_printf("the node \"%s\" does not allow migration with host-model",
                           pass->old.status_node);
}

static char *
check_host_devices(const ChStatusPass *pass)
{
    const ChJson *gpus = ch_json_at(devices_of(pass), "gpus");

    if (ch_json_length(ch_json_at(devices_of(pass), "hostDevices")) > 0)
        return g_strdup("VMI specifies non-migratable generic PCI host device");
    if (ch_json_length(gpus) == 0)
        return NULL;
    if (ch_json_length(gpus) > 1)
        return g_strdup("VMI specifies too many GPUs");
    if (!pass->node->gate_vgpu_live_migration)
        return g_strdup("VMI specifies a GPU but feature gate VGPULiveMigration is not enabled");
    if (!is_listed(pass->node->permitted_mdevs,
                   ch_json_string_at(ch_json_item(gpus, 0), "deviceName")))
        return g_strdup("VMI specifies non-migratable GPU device");
    return NULL;
}

static const ChJson *
launch_security(const ChStatusPass *pass)
{
    return ch_json_at(pass->vmi, "spec", "domain", "launchSecurity");
}

static bool
uses_sev(const ChStatusPass *pass)
{
    return ch_json_at(launch_security(pass), "sev") != NULL ||
           ch_json_at(launch_security(pass), "snp") != NULL;
}

static char *
check_sev(const ChStatusPass *pass)
{
    return uses_sev(pass) ? g_strdup("VMI uses SEV") : NULL;
}

static char *
check_tdx(const ChStatusPass *pass)
{
    if (uses_sev(pass) || ch_json_at(launch_security(pass), "tdx") == NULL)
        return NULL;
    return g_strdup("VMI uses TDX");
}

static char *
check_secure_execution(const ChStatusPass *pass)
{
    if (launch_security(pass) == NULL ||
        g_strcmp0(ch_json_string_at(pass->vmi, "spec", "architecture"), "s390x") != 0)
        return NULL;
    return g_strdup("VMI uses Secure Execution");
}

static char *
check_reservations(const ChStatusPass *pass)
{
    const ChJson *disks = ch_json_at(devices_of(pass), "disks");

    for (gsize i = 0; i < ch_json_length(disks); i++)
        if (ch_json_bool_at(ch_json_item(disks, i), false, "lun", "reservation"))
            return g_strdup("VMI uses SCSI persistent reservation");
    return NULL;
}

/* A guest that insists on invtsc would not have been scheduled without a frequency. */
static bool
requires_invariant_tsc(const ChStatusPass *pass)
{
    const ChJson *feature =
        ch_json_find(ch_json_at(pass->vmi, "spec", "domain", "cpu", "features"), "name", "invtsc");
    const char *policy = ch_json_string_at(feature, "policy");

    return g_strcmp0(policy, "require") == 0 || g_strcmp0(policy, "force") == 0;
}

static char *
check_tsc(const ChStatusPass *pass)
{
    int64_t frequency = 0;

    (void)ch_json_int_at(pass->status, &frequency, "topologyHints", "tscFrequency");
    if (frequency > 0 || requires_invariant_tsc(pass) ||
        !ch_json_bool_at(
            pass->vmi, false, "spec", "domain", "features", "hyperv", "reenlightenment", "enabled"))
        return NULL;
    return g_strdup("HyperV Reenlightenment VMIs cannot migrate when TSC Frequency is not exposed "
                    "on the cluster: guest timers might be inconsistent");
}

static char *
check_hyperv_passthrough(const ChStatusPass *pass)
{
    if (!ch_json_bool_at(
            pass->vmi, false, "spec", "domain", "features", "hypervPassthrough", "enabled"))
        return NULL;
    return g_strdup("VMI uses hyperv passthrough");
}

/* --- volumes --- */

typedef enum {
    VOLUME_MOVES,  /* shared, or made anew on the target */
    VOLUME_COPIED, /* its blocks travel with the migration */
    VOLUME_STAYS,  /* and the VMI with it */
} VolumeVerdict;

static bool
is_volume_migrated(const ChStatusPass *pass, const char *name)
{
    return ch_json_find(ch_json_at(pass->status, "migratedVolumes"), "volumeName", name) != NULL;
}

static bool
is_claim_shared(const ChJson *claim_info)
{
    return ch_json_contains(ch_json_at(claim_info, "accessModes"), "ReadWriteMany");
}

static VolumeVerdict
judge_claim(const ChStatusPass *pass,
            const char *volume,
            const ChJson *claim_info,
            const char *claim,
            char **out_why)
{
    if (is_claim_shared(claim_info) || is_volume_migrated(pass, volume))
        return VOLUME_MOVES;
    *out_why = g_strdup_printf("cannot migrate VMI: PVC %s is not shared, " NOT_SHARED, claim);
    return VOLUME_STAYS;
}

static VolumeVerdict
judge_host_disk(const ChStatusPass *pass,
                const char *volume,
                const ChJson *host_disk,
                const ChJson *claim_info,
                char **out_why)
{
    if (claim_info != NULL)
        return judge_claim(
            pass, volume, claim_info, ch_status_text(claim_info, "claimName"), out_why);
    if (ch_json_bool_at(host_disk, false, "shared"))
        return VOLUME_MOVES;
    *out_why = g_strdup("cannot migrate VMI with non-shared HostDisk");
    return VOLUME_STAYS;
}

static bool
is_made_anew(const ChStatusPass *pass, const char *volume)
{
    const ChJson *filesystem =
        ch_json_find(ch_json_at(devices_of(pass), "filesystems"), "name", volume);
    const ChJson *disk = ch_json_find(ch_json_at(devices_of(pass), "disks"), "name", volume);
    const ChJson *cdrom = ch_json_at(disk, "cdrom");

    return ch_json_at(filesystem, "virtiofs") != NULL ||
           (cdrom != NULL && ch_json_bool_at(cdrom, true, "readonly"));
}

/* What the claim is called in messages; NULL: the volume is none. */
static const char *
claim_of(const ChJson *volume)
{
    if (ch_json_at(volume, "persistentVolumeClaim") != NULL)
        return ch_status_text(ch_json_at(volume, "persistentVolumeClaim"), "claimName");
    if (ch_json_at(volume, "dataVolume") != NULL)
        return ch_status_text(ch_json_at(volume, "dataVolume"), "name");
    return NULL;
}

static VolumeVerdict
judge_volume(const ChStatusPass *pass, const ChJson *volume, char **out_why)
{
    const char *name = ch_status_text(volume, "name");
    const char *claim = claim_of(volume);
    const ChJson *host_disk = ch_json_at(volume, "hostDisk");
    const ChJson *claim_info;

    claim_info = ch_json_at(ch_json_find(ch_json_at(pass->status, "volumeStatus"), "name", name),
                            "persistentVolumeClaimInfo");

    if (claim != NULL && claim_info == NULL) {
        *out_why = g_strdup_printf(
            "cannot migrate VMI: Unable to determine if PVC %s is shared, " NOT_SHARED, claim);
        return VOLUME_STAYS;
    }
    if (claim != NULL)
        return judge_claim(pass, name, claim_info, claim, out_why);
    if (host_disk != NULL)
        return judge_host_disk(pass, name, host_disk, claim_info, out_why);
    return is_made_anew(pass, name) ? VOLUME_MOVES : VOLUME_COPIED;
}

/* @out_why: (transfer full) (nullable). Returns: whether blocks have to be copied */
static bool
judge_volumes(const ChStatusPass *pass, char **out_why)
{
    const ChJson *volumes = ch_json_at(pass->vmi, "spec", "volumes");
    bool copies_blocks = ch_json_length(ch_json_at(pass->status, "migratedVolumes")) > 0;

    *out_why = NULL;
    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const VolumeVerdict verdict = judge_volume(pass, ch_json_item(volumes, i), out_why);

        if (verdict == VOLUME_STAYS)
            return true;
        copies_blocks |= verdict == VOLUME_COPIED;
    }
    return copies_blocks;
}

static char *
check_volumes(const ChStatusPass *pass)
{
    char *why;

    (void)judge_volumes(pass, &why); /* the method is asked for on its own */
    return why;
}

/* --- the two conditions --- */

static const struct {
    Check check;
    const char *reason;
    bool for_live, for_storage;
} checks[] = {
    /* clang-format off */
    {check_network,            "InterfaceNotLiveMigratable",             true,  true},
    {check_cpu_model,          "CPUModeLiveMigratable",                  true,  true},
    {check_host_devices,       "HostDeviceNotLiveMigratable",            true,  true},
    {check_sev,                "SEVNotLiveMigratable",                   true,  true},
    {check_tdx,                "TDXNotLiveMigratable",                   true,  true},
    {check_secure_execution,   "SecureExecutionNotLiveMigratable",       true,  false},
    {check_reservations,       "PersistentReservationNotLiveMigratable", false, true},
    {check_tsc,                "NoTSCFrequencyNotLiveMigratable",        true,  true},
    {check_hyperv_passthrough, "HypervPassthroughNotLiveMigratable",     true,  true},
    {check_volumes,            "DisksNotLiveMigratable",                 true,  false},
    /* clang-format on */
};

/* The first failing check counts. The condition has no times: with one, each pass would be news. */
static void
set_live_migratable(ChStatusPass *pass)
{
    ChCondition condition = {.type = "LiveMigratable", .status = "True"};
    g_autofree char *message = NULL;
    const ChJson *entry;

    for (gsize i = 0; i < G_N_ELEMENTS(checks) && message == NULL; i++) {
        if (!checks[i].for_live)
            continue;
        message = checks[i].check(pass);
        condition.reason = checks[i].reason;
    }
    if (message == NULL)
        condition.reason = NULL;
    else
        condition.status = "False";
    condition.message = message;

    entry = ch_condition_find(pass->status, condition.type);
    if (entry != NULL && ch_condition_equals(entry, &condition))
        return;
    ch_condition_remove(pass, condition.type);
    ch_condition_add(pass, &condition);
}

/* All failing checks are listed; as the reason is always the same, a changed list alone is not
 * written (02 §8.5). */
static void
set_storage_migratable(ChStatusPass *pass)
{
    g_autoptr(GString) list = g_string_new(NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(checks); i++) {
        g_autofree char *message = checks[i].for_storage ? checks[i].check(pass) : NULL;

        if (message != NULL)
            g_string_append_printf(
                list, "%s%s: %s", list->len > 0 ? ", " : "", checks[i].reason, message);
    }
    ch_condition_update(pass,
                        &(ChCondition){
                            .type = "StorageLiveMigratable",
                            .status = list->len > 0 ? "False" : "True",
                            .reason = list->len > 0 ? "NotMigratable" : NULL,
                            .message = list->str,
                        });
}

static void
set_method(ChStatusPass *pass)
{
    g_autofree char *why = NULL;
    const bool copies_blocks = judge_volumes(pass, &why);

    ch_status_set_text(
        pass->status, "migrationMethod", copies_blocks ? "BlockMigration" : "LiveMigration");
}

/* "Move it when the node is drained" was asked for and cannot be done: said on each pass, the
 * recorder folds the repetitions. LiveMigrateIfPossible gives in silently. */
static void
warn_of_eviction(ChStatusPass *pass)
{
    const char *strategy = ch_json_string_at(pass->vmi, "spec", "evictionStrategy");
    const ChJson *entry = ch_condition_find(pass->status, "LiveMigratable");

    if (strategy == NULL)
        strategy = pass->node->eviction_strategy;
    if (g_strcmp0(strategy, "LiveMigrate") == 0 &&
        g_strcmp0(ch_json_string_at(entry, "status"), "False") == 0)
        ch_status_record(pass,
                         ch_event_new(CH_EVENT_NOT_EVICTABLE, ch_json_string_at(entry, "message")));
}

void
ch_status_migratable(ChStatusPass *pass)
{
    set_live_migratable(pass);
    set_method(pass);
    set_storage_migratable(pass);
    warn_of_eviction(pass);
}
