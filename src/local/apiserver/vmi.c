/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/vmi.h"

#include "local/apiserver/schema.h"

#define REQUIRED    CH_FIELD_REQUIRED
#define UNIQUE      CH_FIELD_UNIQUE
#define ONE_OF      CH_FIELD_ONE_OF
#define AT_MOST_ONE CH_FIELD_AT_MOST_ONE
#define CHOICES(...)                                                                               \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

#define DISK_BUSES CHOICES("virtio", "sata", "scsi", "usb")

/* clang-format off */
static const ChFieldRule rules[] = {
    {"spec",                                   CH_FIELD_OBJECT,   REQUIRED},
    {"spec.architecture",                      CH_FIELD_STRING,   0, CHOICES("", "amd64", "arm64", "s390x")},
    {"spec.terminationGracePeriodSeconds",     CH_FIELD_INTEGER},
    {"spec.priorityClassName",                 CH_FIELD_STRING},
    {"spec.schedulerName",                     CH_FIELD_STRING},
    {"spec.nodeSelector",                      CH_FIELD_OBJECT},
    {"spec.nodeSelector{}",                    CH_FIELD_STRING},
    {"spec.affinity",                          CH_FIELD_OBJECT},
    {"spec.tolerations",                       CH_FIELD_ARRAY},
    {"spec.tolerations[]",                     CH_FIELD_OBJECT},
    {"spec.evictionStrategy",                  CH_FIELD_STRING,   0, CHOICES("None", "LiveMigrate", "LiveMigrateIfPossible", "External")},
    {"spec.startStrategy",                     CH_FIELD_STRING,   0, CHOICES("Paused")},
    {"spec.hostname",                          CH_FIELD_SUBDOMAIN},
    {"spec.subdomain",                         CH_FIELD_SUBDOMAIN},
    {"spec.dnsPolicy",                         CH_FIELD_STRING,   0, CHOICES("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")},
    {"spec.dnsConfig",                         CH_FIELD_OBJECT},
    {"spec.livenessProbe",                     CH_FIELD_OBJECT},
    {"spec.readinessProbe",                    CH_FIELD_OBJECT},

    {"spec.domain",                            CH_FIELD_OBJECT,   REQUIRED},
    {"spec.domain.cpu",                        CH_FIELD_OBJECT},
    {"spec.domain.cpu.cores",                  CH_FIELD_COUNT},
    {"spec.domain.cpu.sockets",                CH_FIELD_COUNT},
    {"spec.domain.cpu.maxSockets",             CH_FIELD_COUNT},
    {"spec.domain.cpu.threads",                CH_FIELD_COUNT},
    {"spec.domain.cpu.model",                  CH_FIELD_STRING},
    {"spec.domain.cpu.dedicatedCpuPlacement",  CH_FIELD_BOOLEAN},
    {"spec.domain.cpu.isolateEmulatorThread",  CH_FIELD_BOOLEAN},
    {"spec.domain.cpu.features",               CH_FIELD_ARRAY},
    {"spec.domain.cpu.features[]",             CH_FIELD_OBJECT},
    {"spec.domain.cpu.features[].name",        CH_FIELD_STRING,   REQUIRED},
    {"spec.domain.cpu.features[].policy",      CH_FIELD_STRING,   0, CHOICES("", "force", "require", "optional", "disable", "forbid")},
    {"spec.domain.memory",                     CH_FIELD_OBJECT},
    {"spec.domain.memory.guest",               CH_FIELD_SIZE},
    {"spec.domain.memory.maxGuest",            CH_FIELD_SIZE},
    {"spec.domain.memory.hugepages",           CH_FIELD_OBJECT},
    {"spec.domain.memory.hugepages.pageSize",  CH_FIELD_SIZE},
    {"spec.domain.resources",                  CH_FIELD_OBJECT},
    {"spec.domain.resources.requests",         CH_FIELD_OBJECT},
    {"spec.domain.resources.requests{}",       CH_FIELD_QUANTITY},
    {"spec.domain.resources.limits",           CH_FIELD_OBJECT},
    {"spec.domain.resources.limits{}",         CH_FIELD_QUANTITY},
    {"spec.domain.machine",                    CH_FIELD_OBJECT},
    {"spec.domain.machine.type",               CH_FIELD_STRING},
    {"spec.domain.clock",                      CH_FIELD_OBJECT},
    {"spec.domain.features",                   CH_FIELD_OBJECT},
    {"spec.domain.ioThreadsPolicy",            CH_FIELD_STRING,   0, CHOICES("shared", "auto", "supplementalPool")},
    {"spec.domain.chassis",                    CH_FIELD_OBJECT},
    {"spec.domain.firmware",                   CH_FIELD_OBJECT},
    {"spec.domain.firmware.uuid",              CH_FIELD_STRING},
    {"spec.domain.firmware.serial",            CH_FIELD_STRING},
    {"spec.domain.firmware.bootloader",        CH_FIELD_OBJECT},
    {"spec.domain.firmware.kernelBoot",        CH_FIELD_OBJECT},
    {"spec.domain.firmware.kernelBoot.kernelArgs", CH_FIELD_STRING},
    {"spec.domain.firmware.kernelBoot.container", CH_FIELD_OBJECT},
    {"spec.domain.firmware.kernelBoot.container.image", CH_FIELD_STRING, REQUIRED},
    {"spec.domain.firmware.kernelBoot.container.kernelPath", CH_FIELD_STRING},
    {"spec.domain.firmware.kernelBoot.container.initrdPath", CH_FIELD_STRING},
    {"spec.domain.launchSecurity",             CH_FIELD_OBJECT},

    {"spec.domain.devices",                    CH_FIELD_OBJECT,   REQUIRED},
    {"spec.domain.devices.autoattachPodInterface",   CH_FIELD_BOOLEAN},
    {"spec.domain.devices.autoattachGraphicsDevice", CH_FIELD_BOOLEAN},
    {"spec.domain.devices.autoattachSerialConsole",  CH_FIELD_BOOLEAN},
    {"spec.domain.devices.autoattachMemBalloon",     CH_FIELD_BOOLEAN},
    {"spec.domain.devices.autoattachVSOCK",          CH_FIELD_BOOLEAN},
    {"spec.domain.devices.logSerialConsole",         CH_FIELD_BOOLEAN},
    {"spec.domain.devices.blockMultiQueue",          CH_FIELD_BOOLEAN},
    {"spec.domain.devices.networkInterfaceMultiqueue", CH_FIELD_BOOLEAN},
    {"spec.domain.devices.useVirtioTransitional",    CH_FIELD_BOOLEAN},
    {"spec.domain.devices.rng",                CH_FIELD_OBJECT},
    {"spec.domain.devices.tpm",                CH_FIELD_OBJECT},
    {"spec.domain.devices.watchdog",           CH_FIELD_OBJECT},
    {"spec.domain.devices.disks",              CH_FIELD_ARRAY},
    {"spec.domain.devices.disks[]",            CH_FIELD_OBJECT},
    {"spec.domain.devices.disks[].name",       CH_FIELD_STRING,   REQUIRED | UNIQUE},
    {"spec.domain.devices.disks[].bootOrder",  CH_FIELD_INTEGER},
    {"spec.domain.devices.disks[].serial",     CH_FIELD_STRING},
    {"spec.domain.devices.disks[].tag",        CH_FIELD_STRING},
    {"spec.domain.devices.disks[].io",         CH_FIELD_STRING,   0, CHOICES("", "native", "threads", "io_uring")},
    {"spec.domain.devices.disks[].cache",      CH_FIELD_STRING,   0, CHOICES("", "none", "writethrough", "writeback")},
    {"spec.domain.devices.disks[].shareable",  CH_FIELD_BOOLEAN},
    {"spec.domain.devices.disks[].dedicatedIOThread", CH_FIELD_BOOLEAN},
    {"spec.domain.devices.disks[].disk",       CH_FIELD_OBJECT},
    {"spec.domain.devices.disks[].disk.bus",   CH_FIELD_STRING,   0, DISK_BUSES},
    {"spec.domain.devices.disks[].disk.readonly", CH_FIELD_BOOLEAN},
    {"spec.domain.devices.disks[].cdrom",      CH_FIELD_OBJECT},
    {"spec.domain.devices.disks[].cdrom.bus",  CH_FIELD_STRING,   0, DISK_BUSES},
    {"spec.domain.devices.disks[].cdrom.readonly", CH_FIELD_BOOLEAN},
    {"spec.domain.devices.disks[].lun",        CH_FIELD_OBJECT},
    {"spec.domain.devices.disks[].lun.bus",    CH_FIELD_STRING,   0, DISK_BUSES},
    {"spec.domain.devices.filesystems",        CH_FIELD_ARRAY},
    {"spec.domain.devices.filesystems[]",      CH_FIELD_OBJECT},
    {"spec.domain.devices.filesystems[].name", CH_FIELD_STRING,   REQUIRED | UNIQUE},
    {"spec.domain.devices.interfaces",         CH_FIELD_ARRAY},
    {"spec.domain.devices.interfaces[]",       CH_FIELD_OBJECT,   AT_MOST_ONE,
     CHOICES("bridge", "masquerade", "sriov", "binding", "passtBinding", "slirp", "macvtap", "passt")},
    {"spec.domain.devices.interfaces[].name",  CH_FIELD_STRING,   REQUIRED | UNIQUE},
    {"spec.domain.devices.interfaces[].model", CH_FIELD_STRING,   0, CHOICES("", "virtio", "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139")},
    {"spec.domain.devices.interfaces[].macAddress", CH_FIELD_MAC},
    {"spec.domain.devices.interfaces[].state", CH_FIELD_STRING,   0, CHOICES("", "absent", "up", "down")},
    {"spec.domain.devices.interfaces[].bootOrder", CH_FIELD_INTEGER},
    {"spec.domain.devices.interfaces[].ports", CH_FIELD_ARRAY},
    {"spec.domain.devices.interfaces[].ports[]", CH_FIELD_OBJECT},
    {"spec.domain.devices.interfaces[].ports[].port", CH_FIELD_PORT, REQUIRED},
    {"spec.domain.devices.interfaces[].ports[].name", CH_FIELD_STRING},
    {"spec.domain.devices.interfaces[].ports[].protocol", CH_FIELD_STRING, 0, CHOICES("", "TCP", "UDP")},
    {"spec.domain.devices.gpus",               CH_FIELD_ARRAY},
    {"spec.domain.devices.gpus[].name",        CH_FIELD_STRING,   REQUIRED | UNIQUE},
    {"spec.domain.devices.hostDevices",        CH_FIELD_ARRAY},
    {"spec.domain.devices.hostDevices[].name", CH_FIELD_STRING,   REQUIRED | UNIQUE},

    {"spec.volumes",                           CH_FIELD_ARRAY},
    {"spec.volumes[]",                         CH_FIELD_OBJECT,   ONE_OF,
     CHOICES("cloudInitConfigDrive", "cloudInitNoCloud", "configMap", "containerDisk", "dataVolume", "downwardAPI",
             "downwardMetrics", "emptyDisk", "ephemeral", "hostDisk", "memoryDump", "persistentVolumeClaim",
             "secret", "serviceAccount", "sysprep")},
    {"spec.volumes[].name",                    CH_FIELD_LABEL,    REQUIRED | UNIQUE},
    {"spec.volumes[].cloudInitNoCloud",        CH_FIELD_OBJECT},
    {"spec.volumes[].cloudInitNoCloud.userData", CH_FIELD_STRING},
    {"spec.volumes[].cloudInitNoCloud.userDataBase64", CH_FIELD_STRING},
    {"spec.volumes[].cloudInitNoCloud.networkData", CH_FIELD_STRING},
    {"spec.volumes[].cloudInitNoCloud.networkDataBase64", CH_FIELD_STRING},
    {"spec.volumes[].cloudInitConfigDrive",    CH_FIELD_OBJECT},
    {"spec.volumes[].containerDisk",           CH_FIELD_OBJECT},
    {"spec.volumes[].containerDisk.image",     CH_FIELD_STRING,   REQUIRED},
    {"spec.volumes[].containerDisk.path",      CH_FIELD_STRING},
    {"spec.volumes[].containerDisk.imagePullPolicy", CH_FIELD_STRING, 0, CHOICES("", "Always", "IfNotPresent", "Never")},
    {"spec.volumes[].emptyDisk",               CH_FIELD_OBJECT},
    {"spec.volumes[].emptyDisk.capacity",      CH_FIELD_SIZE,     REQUIRED},
    {"spec.volumes[].hostDisk",                CH_FIELD_OBJECT},
    {"spec.volumes[].hostDisk.path",           CH_FIELD_STRING,   REQUIRED},
    {"spec.volumes[].hostDisk.type",           CH_FIELD_STRING,   REQUIRED, CHOICES("Disk", "DiskOrCreate")},
    {"spec.volumes[].hostDisk.capacity",       CH_FIELD_QUANTITY},
    {"spec.volumes[].persistentVolumeClaim",   CH_FIELD_OBJECT},
    {"spec.volumes[].persistentVolumeClaim.claimName", CH_FIELD_STRING, REQUIRED},
    {"spec.volumes[].dataVolume",              CH_FIELD_OBJECT},
    {"spec.volumes[].dataVolume.name",         CH_FIELD_STRING,   REQUIRED},
    {"spec.volumes[].ephemeral",               CH_FIELD_OBJECT},
    {"spec.volumes[].configMap",               CH_FIELD_OBJECT},
    {"spec.volumes[].secret",                  CH_FIELD_OBJECT},
    {"spec.volumes[].serviceAccount",          CH_FIELD_OBJECT},

    {"spec.networks",                          CH_FIELD_ARRAY},
    {"spec.networks[]",                        CH_FIELD_OBJECT,   ONE_OF, CHOICES("pod", "multus")},
    {"spec.networks[].name",                   CH_FIELD_LABEL,    REQUIRED | UNIQUE},
    {"spec.networks[].pod",                    CH_FIELD_OBJECT},
    {"spec.networks[].pod.vmNetworkCIDR",      CH_FIELD_STRING},
    {"spec.networks[].multus",                 CH_FIELD_OBJECT},
    {"spec.networks[].multus.networkName",     CH_FIELD_STRING,   REQUIRED},

    {"spec.accessCredentials",                 CH_FIELD_ARRAY},
    {"spec.topologySpreadConstraints",         CH_FIELD_ARRAY},

    {"status",                                 CH_FIELD_OBJECT},
    {"status.phase",                           CH_FIELD_STRING},
    {"status.reason",                          CH_FIELD_STRING},
    {"status.nodeName",                        CH_FIELD_STRING},
    {"status.activePods",                      CH_FIELD_OBJECT},
    {"status.activePods{}",                    CH_FIELD_STRING},
    {"status.runtimeUser",                     CH_FIELD_INTEGER},
    {"status.conditions",                      CH_FIELD_ARRAY},
    {"status.conditions[]",                    CH_FIELD_OBJECT},
    {"status.conditions[].type",               CH_FIELD_STRING,   REQUIRED},
    {"status.conditions[].status",             CH_FIELD_STRING,   REQUIRED},
    {"status.conditions[].reason",             CH_FIELD_STRING},
    {"status.conditions[].message",            CH_FIELD_STRING},
    {"status.conditions[].lastProbeTime",      CH_FIELD_TIME},
    {"status.conditions[].lastTransitionTime", CH_FIELD_TIME},
    {"status.interfaces",                      CH_FIELD_ARRAY},
    {"status.interfaces[]",                    CH_FIELD_OBJECT},
    {"status.volumeStatus",                    CH_FIELD_ARRAY},
    {"status.volumeStatus[]",                  CH_FIELD_OBJECT},
    {"status.volumeStatus[].name",             CH_FIELD_STRING,   REQUIRED},
    {"status.volumeStatus[].target",           CH_FIELD_STRING,   REQUIRED},
    {"status.phaseTransitionTimestamps",       CH_FIELD_ARRAY},
    {"status.phaseTransitionTimestamps[]",     CH_FIELD_OBJECT},
    {"status.phaseTransitionTimestamps[].phaseTransitionTimestamp", CH_FIELD_TIME},
    {"status.guestOSInfo",                     CH_FIELD_OBJECT},
    {"status.migrationState",                  CH_FIELD_OBJECT},
};

/* Lists whose items must have a namesake in another list. */
static const struct {
    const char *list[4];
    const char *target[4];
    const char *path;
    const char *wanted; /* what the namesake is */
} references[] = {
    {{"spec", "domain", "devices", "disks"},       {"spec", "volumes"},  "spec.domain.devices.disks",       "volume"},
    {{"spec", "domain", "devices", "filesystems"}, {"spec", "volumes"},  "spec.domain.devices.filesystems", "volume"},
    {{"spec", "domain", "devices", "interfaces"},  {"spec", "networks"}, "spec.domain.devices.interfaces",  "network"},
    {{"spec", "networks"}, {"spec", "domain", "devices", "interfaces"},  "spec.networks",                   "interface"},
};
/* clang-format on */

static const ChJson *
list_at(const ChJson *object, const char *const path[4])
{
    for (int i = 0; i < 4 && path[i] != NULL; i++)
        object = ch_json_at(object, path[i]);
    return object;
}

static void
check_references(const ChJson *object, gsize which, GPtrArray *causes)
{
    const ChJson *list = list_at(object, references[which].list);
    const ChJson *target = list_at(object, references[which].target);

    if (!ch_json_is_array(list) || ch_json_length(list) > CH_FIELD_MAX_ITEMS ||
        ch_json_length(target) > CH_FIELD_MAX_ITEMS)
        return; /* refused by the rules; comparing all with all would take minutes */
    for (gsize i = 0; i < ch_json_length(list); i++) {
        const char *name = ch_json_string_at(ch_json_item(list, i), "name");
        g_autofree char *field = NULL;

        if (name == NULL || ch_json_find(target, "name", name) != NULL)
            continue; /* a missing name has been named already */
        field = g_strdup_printf("%s[%" G_GSIZE_FORMAT "].name", references[which].path, i);
        ch_cause_add(causes,
                     "FieldValueInvalid",
                     field,
                     "Invalid value: \"%s\": there is no %s of this name",
                     name,
                     references[which].wanted);
    }
}

static void
spell_out(ChJson *object, const char *key)
{
    const ChJson *value = ch_json_at(object, key);

    if (ch_json_is_number(value)) {
        g_autofree char *text = ch_json_print(value, NULL);

        ch_json_set_string(object, key, text);
    }
}

static void
spell_out_all(ChJson *object)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    ch_json_iter_init(&iter, object);
    while (ch_json_iter_next(&iter, &key, &value))
        if (ch_json_is_number(value))
            g_ptr_array_add(keys, g_strdup(key));
    for (guint i = 0; i < keys->len; i++)
        spell_out(object, g_ptr_array_index(keys, i));
}

void
ch_vmi_normalize(ChJson *object)
{
    ChJson *domain = ch_json_at(object, "spec", "domain");
    ChJson *memory = ch_json_at(domain, "memory");
    const ChJson *volumes = ch_json_at(object, "spec", "volumes");

    spell_out(memory, "guest");
    spell_out(memory, "maxGuest");
    spell_out(ch_json_at(memory, "hugepages"), "pageSize");
    spell_out_all(ch_json_at(domain, "resources", "requests"));
    spell_out_all(ch_json_at(domain, "resources", "limits"));
    for (gsize i = 0; ch_json_is_array(volumes) && i < ch_json_length(volumes); i++) {
        spell_out(ch_json_at(ch_json_item(volumes, i), "emptyDisk"), "capacity");
        spell_out(ch_json_at(ch_json_item(volumes, i), "hostDisk"), "capacity");
    }
}

void
ch_vmi_validate(const ChJson *object, GPtrArray *causes)
{
    ch_schema_check(rules, G_N_ELEMENTS(rules), object, causes);
    for (gsize i = 0; i < G_N_ELEMENTS(references); i++)
        check_references(object, i, causes);
}
