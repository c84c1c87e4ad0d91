/* SPDX-License-Identifier: Apache-2.0 */

/* domain-spec: what the VM is made of, and what its launcher notes about it. Spec 02 §11. */

#include "handler/launcher/domain-internal.h"

#include "lib/base/errors.h"

#define AGENT_CHANNEL "org.qemu.guest_agent.0"

/* The status compares lists with each other: their lengths are a stranger's. No VM has so many. */
#define MAX_DEVICES 1024

/* --- devices and the rest of the hardware --- */

/* The two members inside an alias are matched without regard to case (01 §9). */
static bool
read_alias(ChDomain *domain, const ChJson *parent, const char **out_name, GError **error)
{
    const ChJson *alias;
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    *out_name = "";
    if (!ch_domain_read_object(parent, "Alias", &alias, error))
        return false;
    ch_json_iter_init(&iter, alias);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (g_ascii_strcasecmp(key, "Name") != 0 || value == NULL)
            continue;
        if (!ch_json_is_string(value))
            return ch_domain_wrong_type("Alias.Name", "string", error);
        *out_name = ch_domain_keep_text(domain, value);
    }
    return true;
}

static bool
read_disk(ChDomain *domain, const ChJson *item, GError **error)
{
    static const ChDomainField source_fields[] = {
        FIELD("File", STRING, ChDomainDisk, file),
        FIELD("Dev", STRING, ChDomainDisk, dev),
        FIELD("DataStore", EXISTS, ChDomainDisk, has_data_store),
    };
    static const ChDomainField target_fields[] = {FIELD("Device", STRING, ChDomainDisk, target)};
    ChDomainDisk disk = {0};
    const ChJson *source, *target;

    if (!read_alias(domain, item, &disk.name, error) ||
        !ch_domain_read_object(item, "Source", &source, error) ||
        !ch_domain_read_object(item, "Target", &target, error) ||
        !READ_FIELDS(source, source_fields, &disk, error) ||
        !READ_FIELDS(target, target_fields, &disk, error))
        return false;
    g_array_append_val(domain->disks, disk);
    return true;
}

static bool
read_nic(ChDomain *domain, const ChJson *item, GError **error)
{
    static const ChDomainField mac_fields[] = {FIELD("MAC", STRING, ChDomainNic, mac)};
    static const ChDomainField driver_fields[] = {FIELD("Queues", UINT, ChDomainNic, queues)};
    static const ChDomainField link_fields[] = {FIELD("State", STRING, ChDomainNic, link_state)};
    ChDomainNic nic = {0};
    const ChJson *mac, *driver, *link;

    if (!read_alias(domain, item, &nic.name, error) ||
        !ch_domain_read_object(item, "MAC", &mac, error) ||
        !ch_domain_read_object(item, "Driver", &driver, error) ||
        !ch_domain_read_object(item, "LinkState", &link, error) ||
        !READ_FIELDS(mac, mac_fields, &nic, error) ||
        !READ_FIELDS(driver, driver_fields, &nic, error) ||
        !READ_FIELDS(link, link_fields, &nic, error))
        return false;
    nic.has_queues = ch_json_at(driver, "Queues") != NULL;
    if (link == NULL)
        nic.link_state = NULL;
    g_array_append_val(domain->nics, nic);
    return true;
}

static bool
read_host_device(ChDomain *domain, const ChJson *item, GError **error)
{
    const char *name;

    if (!read_alias(domain, item, &name, error))
        return false;
    g_ptr_array_add(domain->host_devices, (gpointer)name);
    return true;
}

static bool
read_channel(ChDomain *domain, const ChJson *item, GError **error)
{
    typedef struct {
        const char *name, *state;
    } Channel;
    static const ChDomainField fields[] = {
        FIELD("Name", STRING, Channel, name),
        FIELD("State", STRING, Channel, state),
    };
    Channel channel = {0};
    const ChJson *target;

    if (!ch_domain_read_object(item, "Target", &target, error) ||
        !READ_FIELDS(target, fields, &channel, error))
        return false;
    if (g_str_equal(channel.name, AGENT_CHANNEL) && g_str_equal(channel.state, "connected"))
        domain->agent_connected = true;
    return true;
}

/* As ch_domain_read_list(), of what the VM has. */
static bool
read_device_list(ChDomain *domain,
                 const ChJson *devices,
                 const char *key,
                 ChDomainReadItem read_item,
                 GError **error)
{
    if (ch_json_length(ch_json_at(devices, key)) > MAX_DEVICES)
        return ch_fail(error, CH_ERROR_LIMIT, "domain: more than %d '%s'", MAX_DEVICES, key);
    return ch_domain_read_list(domain, devices, key, read_item, error);
}

static bool
read_devices(ChDomain *domain, const ChJson *spec, GError **error)
{
    const ChJson *devices;

    return ch_domain_read_object(spec, "Devices", &devices, error) &&
           read_device_list(domain, devices, "Disks", read_disk, error) &&
           read_device_list(domain, devices, "Interfaces", read_nic, error) &&
           read_device_list(domain, devices, "HostDevices", read_host_device, error) &&
           read_device_list(domain, devices, "Channels", read_channel, error);
}

static bool
read_hardware(ChDomain *domain, const ChJson *spec, GError **error)
{
    static const ChDomainField spec_fields[] = {
        FIELD("Type", STRING, ChDomain, type),
        FIELD("CurrentMemory", EXISTS, ChDomain, has_current_memory),
    };
    static const ChDomainField memory_fields[] = {
        FIELD("Value", UINT, ChDomain, current_memory),
        FIELD("Unit", STRING, ChDomain, current_memory_unit),
    };
    static const ChDomainField os_type_fields[] = {FIELD("Machine", STRING, ChDomain, machine)};
    static const ChDomainField feature_fields[] = {FIELD("ACPI", EXISTS, ChDomain, has_acpi)};
    static const ChDomainField pin_fields[] = {FIELD("CPUSet", STRING, ChDomain, emulator_cpuset)};
    const ChJson *memory, *os, *os_type, *features, *tune, *pin;

    return READ_FIELDS(spec, spec_fields, domain, error) &&
           ch_domain_read_object(spec, "CurrentMemory", &memory, error) &&
           READ_FIELDS(memory, memory_fields, domain, error) &&
           ch_domain_read_object(spec, "OS", &os, error) &&
           ch_domain_read_object(os, "Type", &os_type, error) &&
           READ_FIELDS(os_type, os_type_fields, domain, error) &&
           ch_domain_read_object(spec, "Features", &features, error) &&
           READ_FIELDS(features, feature_fields, domain, error) &&
           ch_domain_read_object(spec, "CPUTune", &tune, error) &&
           ch_domain_read_object(tune, "EmulatorPin", &pin, error) &&
           READ_FIELDS(pin, pin_fields, domain, error);
}

/* --- Spec.Metadata.KubeVirt --- */

static const ChDomainField kubevirt_fields[] = {
    FIELD("UID", STRING, ChDomain, uid),
    FIELD("GracePeriod", EXISTS, ChDomain, grace.exists),
    FIELD("Migration", EXISTS, ChDomain, migration.exists),
    FIELD("Backup", EXISTS, ChDomain, backup.exists),
    FIELD("AccessCredential", EXISTS, ChDomain, access_credential.exists),
    FIELD("MemoryDump", EXISTS, ChDomain, memory_dump.exists),
};

static const ChDomainField grace_fields[] = {
    FIELD("DeletionGracePeriodSeconds", INT, ChDomain, grace.grace_s),
    FIELD("DeletionTimestamp", TIME, ChDomain, grace.deletion),
    FIELD("MarkedForGracefulShutdown", BOOL, ChDomain, grace.is_marked),
};

static const ChDomainField migration_fields[] = {
    FIELD("UID", STRING, ChDomain, migration.uid),
    FIELD("StartTimestamp", TIME, ChDomain, migration.start),
    FIELD("EndTimestamp", TIME, ChDomain, migration.end),
    FIELD("Failed", BOOL, ChDomain, migration.failed),
    FIELD("FailureReason", STRING, ChDomain, migration.failure_reason),
    FIELD("AbortStatus", STRING, ChDomain, migration.abort_status),
    FIELD("Mode", STRING, ChDomain, migration.mode),
};

static const ChDomainField backup_fields[] = {
    FIELD("Name", STRING, ChDomain, backup.name),
    FIELD("StartTimestamp", TIME, ChDomain, backup.start),
    FIELD("EndTimestamp", TIME, ChDomain, backup.end),
    FIELD("Completed", BOOL, ChDomain, backup.completed),
    FIELD("Failed", BOOL, ChDomain, backup.failed),
    FIELD("BackupMsg", STRING, ChDomain, backup.message),
    FIELD("CheckpointName", STRING, ChDomain, backup.checkpoint),
    FIELD("Volumes", STRING, ChDomain, backup.volumes),
    FIELD("QuiesceStatus", STRING, ChDomain, backup.quiesce_status),
};

static const ChDomainField credential_fields[] = {
    FIELD("Succeeded", BOOL, ChDomain, access_credential.succeeded),
    FIELD("Message", STRING, ChDomain, access_credential.message),
};

static const ChDomainField dump_fields[] = {
    FIELD("FileName", STRING, ChDomain, memory_dump.file_name),
    FIELD("StartTimestamp", TIME, ChDomain, memory_dump.start),
    FIELD("EndTimestamp", TIME, ChDomain, memory_dump.end),
    FIELD("Completed", BOOL, ChDomain, memory_dump.completed),
    FIELD("Failed", BOOL, ChDomain, memory_dump.failed),
    FIELD("FailureReason", STRING, ChDomain, memory_dump.failure_reason),
};

static bool
read_metadata(ChDomain *domain, const ChJson *spec, GError **error)
{
    const ChJson *metadata, *kubevirt;

    return ch_domain_read_object(spec, "Metadata", &metadata, error) &&
           ch_domain_read_object(metadata, "KubeVirt", &kubevirt, error) &&
           READ_FIELDS(kubevirt, kubevirt_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "GracePeriod"), grace_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "Migration"), migration_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "Backup"), backup_fields, domain, error) &&
           READ_FIELDS(
               ch_json_at(kubevirt, "AccessCredential"), credential_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "MemoryDump"), dump_fields, domain, error);
}

bool
ch_domain_read_spec(ChDomain *domain, const ChJson *document, GError **error)
{
    const ChJson *spec;

    return ch_domain_read_object(document, "Spec", &spec, error) &&
           read_hardware(domain, spec, error) && read_devices(domain, spec, error) &&
           read_metadata(domain, spec, error);
}
