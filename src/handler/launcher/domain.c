/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/domain.h"

#include <stdatomic.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"

#define AGENT_CHANNEL "org.qemu.guest_agent.0"

/* The status compares lists with each other: their lengths are a stranger's. No VM has so many
 * devices; how many interfaces a guest shows is its own affair, and the rest of them is not told.
 */
#define CHUNK_BYTES 512 /* of texts; most domains have less */

#define MAX_DEVICES    1024
#define MAX_GUEST_NICS 4096

static const char *const status_texts[] = {
    [CH_DOMAIN_OTHER] = NULL,
    [CH_DOMAIN_NO_STATE] = "NoState",
    [CH_DOMAIN_RUNNING] = "Running",
    [CH_DOMAIN_BLOCKED] = "Blocked",
    [CH_DOMAIN_PAUSED] = "Paused",
    [CH_DOMAIN_SHUTTING_DOWN] = "ShuttingDown",
    [CH_DOMAIN_SHUTOFF] = "Shutoff",
    [CH_DOMAIN_CRASHED] = "Crashed",
    [CH_DOMAIN_PM_SUSPENDED] = "PMSuspended",
    [CH_DOMAIN_UNKNOWN] = "Unknown",
};
G_STATIC_ASSERT(G_N_ELEMENTS(status_texts) == CH_DOMAIN_N);

static const char *const reason_texts[] = {
    [CH_REASON_OTHER] = NULL,
    [CH_REASON_USER] = "User",
    [CH_REASON_SHUTDOWN] = "Shutdown",
    [CH_REASON_DESTROYED] = "Destroyed",
    [CH_REASON_MIGRATED] = "Migrated",
    [CH_REASON_CRASHED] = "Crashed",
    [CH_REASON_PANICKED] = "Panicked",
    [CH_REASON_SAVED] = "Saved",
    [CH_REASON_FROM_SNAPSHOT] = "FromSnapshot",
    [CH_REASON_MIGRATION] = "Migration",
    [CH_REASON_IO_ERROR] = "IOError",
    [CH_REASON_STARTING_UP] = "StartingUp",
    [CH_REASON_POSTCOPY] = "Postcopy",
    [CH_REASON_POSTCOPY_FAILED] = "PostcopyFailed",
};
G_STATIC_ASSERT(G_N_ELEMENTS(reason_texts) == CH_REASON_N);

/* --- what is read of the document: the rest is a dozen kilobytes --- */

#define PART(name, within)                                                                         \
    {                                                                                              \
        name, within                                                                               \
    }
#define PARTS_END                                                                                  \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

static const ChJsonPart disk_parts[] = {
    PART("Alias", NULL), PART("Source", NULL), PART("Target", NULL), PARTS_END};

static const ChJsonPart nic_parts[] = {PART("Alias", NULL),
                                       PART("MAC", NULL),
                                       PART("Driver", NULL),
                                       PART("LinkState", NULL),
                                       PARTS_END};

static const ChJsonPart host_device_parts[] = {PART("Alias", NULL), PARTS_END};

static const ChJsonPart channel_parts[] = {PART("Target", NULL), PARTS_END};

static const ChJsonPart device_parts[] = {
    PART("Disks", disk_parts),
    PART("Interfaces", nic_parts),
    PART("HostDevices", host_device_parts),
    PART("Channels", channel_parts),
    PARTS_END,
};

static const ChJsonPart os_parts[] = {PART("Type", NULL), PARTS_END};

static const ChJsonPart metadata_parts[] = {PART("KubeVirt", NULL), PARTS_END};

static const ChJsonPart spec_parts[] = {
    PART("Type", NULL),
    PART("CurrentMemory", NULL),
    PART("OS", os_parts),
    PART("Features", NULL),
    PART("CPUTune", NULL),
    PART("Devices", device_parts),
    PART("Metadata", metadata_parts),
    PARTS_END,
};

static const ChJsonPart domain_parts[] = {
    PART("ObjectMeta", NULL),
    PART("Spec", spec_parts),
    PART("Status", NULL),
    PARTS_END,
};

/* Index of @text in @texts, 0 when it is none of them. */
static unsigned
index_of(const char *const *texts, unsigned n_texts, const char *text)
{
    for (unsigned i = 1; i < n_texts; i++)
        if (g_str_equal(text, texts[i]))
            return i;
    return 0;
}

/* --- leaves: null and absent are zero, another type is refused --- */

typedef enum {
    FIELD_STRING, /* const char *, "" when absent */
    FIELD_BOOL,   /* bool */
    FIELD_INT,    /* int64_t */
    FIELD_UINT,   /* uint64_t */
    FIELD_TIME,   /* ChDomainTime, RFC 3339 */
    FIELD_EXISTS, /* bool: a member that is not null, an object */
} FieldType;

typedef struct {
    const char *key;
    FieldType type;
    gsize offset; /* in the struct that the table describes */
} Field;

#define FIELD(key, type, record, member)                                                           \
    {                                                                                              \
        key, FIELD_##type, offsetof(record, member)                                                \
    }

static bool
wrong_type(const char *key, const char *wanted, GError **error)
{
    ch_fail(error, CH_ERROR_INVALID, "domain: '%s' is no %s", key, wanted);
    return false; /* spelled out: the compiler is to see that outputs are not used then */
}

/* A text with a NUL in it is none in C. It stands for "something else": it matches nothing, and is
 * not empty. Guests choose some of these texts, so that refusing the document is no way out. */
static const char *
keep_text(ChDomain *domain, const ChJson *value)
{
    const char *text = ch_json_as_string(value);

    if (text == NULL)
        return "\xEF\xBF\xBD"; /* U+FFFD */
    return text[0] != '\0' ? g_string_chunk_insert(domain->texts, text) : "";
}

static bool
read_integer(const ChJson *value, const char *key, int64_t *out_value, GError **error)
{
    return ch_json_as_int(value, out_value) || wrong_type(key, "64-bit integer", error);
}

/* Beyond int64 as well: panic arguments are addresses. */
static bool
read_unsigned(const ChJson *value, const char *key, uint64_t *out_value, GError **error)
{
    g_autofree char *text = ch_json_is_string(value) ? NULL : ch_json_print(value, NULL);

    return (text != NULL &&
            g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, out_value, NULL)) ||
           wrong_type(key, "unsigned 64-bit integer", error);
}

static bool
read_wall_time(const ChJson *value, const char *key, ChDomainTime *out_time, GError **error)
{
    const char *text = ch_json_as_string(value);

    out_time->is_set = text != NULL && ch_time_parse(text, &out_time->wall_us, NULL);
    return out_time->is_set || wrong_type(key, "time", error);
}

static bool
read_field(ChDomain *domain, const ChJson *value, const Field *field, void *target, GError **error)
{
    switch (field->type) {
    case FIELD_STRING:
        if (!ch_json_is_string(value))
            return wrong_type(field->key, "string", error);
        *(const char **)target = keep_text(domain, value);
        return true;
    case FIELD_BOOL:
        if (!ch_json_is_bool(value))
            return wrong_type(field->key, "boolean", error);
        *(bool *)target = ch_json_as_bool(value, false);
        return true;
    case FIELD_INT:
        return read_integer(value, field->key, target, error);
    case FIELD_UINT:
        return read_unsigned(value, field->key, target, error);
    case FIELD_TIME:
        return read_wall_time(value, field->key, target, error);
    case FIELD_EXISTS:
        if (!ch_json_is_object(value))
            return wrong_type(field->key, "object", error);
        *(bool *)target = true;
        return true;
    }
    g_assert_not_reached();
}

/* Fills @record, which is zeroed, from the members of @object (NULL: all absent). */
static bool
read_fields(ChDomain *domain,
            const ChJson *object,
            const Field *fields,
            gsize n_fields,
            void *record,
            GError **error)
{
    for (gsize i = 0; i < n_fields; i++) {
        void *target = (char *)record + fields[i].offset;
        const ChJson *value = ch_json_at(object, fields[i].key);

        if (fields[i].type == FIELD_STRING)
            *(const char **)target = "";
        if (value != NULL && !read_field(domain, value, &fields[i], target, error))
            return false;
    }
    return true;
}

/* Of `domain`. */
#define READ_FIELDS(object, table, record, error)                                                  \
    read_fields(domain, object, table, G_N_ELEMENTS(table), record, error)

/* @out_child is NULL when absent or null. */
static bool
read_object(const ChJson *parent, const char *key, const ChJson **out_child, GError **error)
{
    const ChJson *child = ch_json_at(parent, key);

    if (child != NULL && !ch_json_is_object(child))
        return wrong_type(key, "object", error);
    *out_child = child;
    return true;
}

typedef bool (*ReadItem)(ChDomain *domain, const ChJson *item, GError **error);

static bool
read_list(
    ChDomain *domain, const ChJson *parent, const char *key, ReadItem read_item, GError **error)
{
    const ChJson *list = ch_json_at(parent, key);

    if (list != NULL && !ch_json_is_array(list))
        return wrong_type(key, "list", error);
    for (gsize i = 0; i < MIN(ch_json_length(list), MAX_GUEST_NICS); i++) {
        const ChJson *item = ch_json_item(list, i);

        if (item != NULL && !ch_json_is_object(item))
            return wrong_type(key, "list of objects", error);
        if (!read_item(domain, item, error))
            return false;
    }
    return true;
}

/* The two members inside an alias are matched without regard to case (01 §9). */
static bool
read_alias(ChDomain *domain, const ChJson *parent, const char **out_name, GError **error)
{
    const ChJson *alias;
    ChJsonIter iter;
    const char *key;
    ChJson *value;

    *out_name = "";
    if (!read_object(parent, "Alias", &alias, error))
        return false;
    ch_json_iter_init(&iter, alias);
    while (ch_json_iter_next(&iter, &key, &value)) {
        if (g_ascii_strcasecmp(key, "Name") != 0 || value == NULL)
            continue;
        if (!ch_json_is_string(value))
            return wrong_type("Alias.Name", "string", error);
        *out_name = keep_text(domain, value);
    }
    return true;
}

/* --- Spec --- */

static bool
read_disk(ChDomain *domain, const ChJson *item, GError **error)
{
    static const Field source_fields[] = {
        FIELD("File", STRING, ChDomainDisk, file),
        FIELD("Dev", STRING, ChDomainDisk, dev),
        FIELD("DataStore", EXISTS, ChDomainDisk, has_data_store),
    };
    static const Field target_fields[] = {FIELD("Device", STRING, ChDomainDisk, target)};
    ChDomainDisk disk = {0};
    const ChJson *source, *target;

    if (!read_alias(domain, item, &disk.name, error) ||
        !read_object(item, "Source", &source, error) ||
        !read_object(item, "Target", &target, error) ||
        !READ_FIELDS(source, source_fields, &disk, error) ||
        !READ_FIELDS(target, target_fields, &disk, error))
        return false;
    g_array_append_val(domain->disks, disk);
    return true;
}

static bool
read_nic(ChDomain *domain, const ChJson *item, GError **error)
{
    static const Field mac_fields[] = {FIELD("MAC", STRING, ChDomainNic, mac)};
    static const Field driver_fields[] = {FIELD("Queues", UINT, ChDomainNic, queues)};
    static const Field link_fields[] = {FIELD("State", STRING, ChDomainNic, link_state)};
    ChDomainNic nic = {0};
    const ChJson *mac, *driver, *link;

    if (!read_alias(domain, item, &nic.name, error) || !read_object(item, "MAC", &mac, error) ||
        !read_object(item, "Driver", &driver, error) ||
        !read_object(item, "LinkState", &link, error) ||
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
    static const Field fields[] = {
        FIELD("Name", STRING, Channel, name),
        FIELD("State", STRING, Channel, state),
    };
    Channel channel = {0};
    const ChJson *target;

    if (!read_object(item, "Target", &target, error) ||
        !READ_FIELDS(target, fields, &channel, error))
        return false;
    if (g_str_equal(channel.name, AGENT_CHANNEL) && g_str_equal(channel.state, "connected"))
        domain->agent_connected = true;
    return true;
}

/* As read_list(), of what the VM has. */
static bool
read_device_list(
    ChDomain *domain, const ChJson *devices, const char *key, ReadItem read_item, GError **error)
{
    if (ch_json_length(ch_json_at(devices, key)) > MAX_DEVICES)
        return ch_fail(error, CH_ERROR_LIMIT, "domain: more than %d '%s'", MAX_DEVICES, key);
    return read_list(domain, devices, key, read_item, error);
}

static bool
read_devices(ChDomain *domain, const ChJson *spec, GError **error)
{
    const ChJson *devices;

    return read_object(spec, "Devices", &devices, error) &&
           read_device_list(domain, devices, "Disks", read_disk, error) &&
           read_device_list(domain, devices, "Interfaces", read_nic, error) &&
           read_device_list(domain, devices, "HostDevices", read_host_device, error) &&
           read_device_list(domain, devices, "Channels", read_channel, error);
}

static bool
read_hardware(ChDomain *domain, const ChJson *spec, GError **error)
{
    static const Field spec_fields[] = {
        FIELD("Type", STRING, ChDomain, type),
        FIELD("CurrentMemory", EXISTS, ChDomain, has_current_memory),
    };
    static const Field memory_fields[] = {
        FIELD("Value", UINT, ChDomain, current_memory),
        FIELD("Unit", STRING, ChDomain, current_memory_unit),
    };
    static const Field os_type_fields[] = {FIELD("Machine", STRING, ChDomain, machine)};
    static const Field feature_fields[] = {FIELD("ACPI", EXISTS, ChDomain, has_acpi)};
    static const Field pin_fields[] = {FIELD("CPUSet", STRING, ChDomain, emulator_cpuset)};
    const ChJson *memory, *os, *os_type, *features, *tune, *pin;

    return READ_FIELDS(spec, spec_fields, domain, error) &&
           read_object(spec, "CurrentMemory", &memory, error) &&
           READ_FIELDS(memory, memory_fields, domain, error) &&
           read_object(spec, "OS", &os, error) && read_object(os, "Type", &os_type, error) &&
           READ_FIELDS(os_type, os_type_fields, domain, error) &&
           read_object(spec, "Features", &features, error) &&
           READ_FIELDS(features, feature_fields, domain, error) &&
           read_object(spec, "CPUTune", &tune, error) &&
           read_object(tune, "EmulatorPin", &pin, error) &&
           READ_FIELDS(pin, pin_fields, domain, error);
}

/* --- Spec.Metadata.KubeVirt --- */

static const Field kubevirt_fields[] = {
    FIELD("UID", STRING, ChDomain, uid),
    FIELD("GracePeriod", EXISTS, ChDomain, grace.exists),
    FIELD("Migration", EXISTS, ChDomain, migration.exists),
    FIELD("Backup", EXISTS, ChDomain, backup.exists),
    FIELD("AccessCredential", EXISTS, ChDomain, access_credential.exists),
    FIELD("MemoryDump", EXISTS, ChDomain, memory_dump.exists),
};

static const Field grace_fields[] = {
    FIELD("DeletionGracePeriodSeconds", INT, ChDomain, grace.grace_s),
    FIELD("DeletionTimestamp", TIME, ChDomain, grace.deletion),
    FIELD("MarkedForGracefulShutdown", BOOL, ChDomain, grace.is_marked),
};

static const Field migration_fields[] = {
    FIELD("UID", STRING, ChDomain, migration.uid),
    FIELD("StartTimestamp", TIME, ChDomain, migration.start),
    FIELD("EndTimestamp", TIME, ChDomain, migration.end),
    FIELD("Failed", BOOL, ChDomain, migration.failed),
    FIELD("FailureReason", STRING, ChDomain, migration.failure_reason),
    FIELD("AbortStatus", STRING, ChDomain, migration.abort_status),
    FIELD("Mode", STRING, ChDomain, migration.mode),
};

static const Field backup_fields[] = {
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

static const Field credential_fields[] = {
    FIELD("Succeeded", BOOL, ChDomain, access_credential.succeeded),
    FIELD("Message", STRING, ChDomain, access_credential.message),
};

static const Field dump_fields[] = {
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

    return read_object(spec, "Metadata", &metadata, error) &&
           read_object(metadata, "KubeVirt", &kubevirt, error) &&
           READ_FIELDS(kubevirt, kubevirt_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "GracePeriod"), grace_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "Migration"), migration_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "Backup"), backup_fields, domain, error) &&
           READ_FIELDS(
               ch_json_at(kubevirt, "AccessCredential"), credential_fields, domain, error) &&
           READ_FIELDS(ch_json_at(kubevirt, "MemoryDump"), dump_fields, domain, error);
}

static bool
read_spec(ChDomain *domain, const ChJson *document, GError **error)
{
    const ChJson *spec;

    return read_object(document, "Spec", &spec, error) && read_hardware(domain, spec, error) &&
           read_devices(domain, spec, error) && read_metadata(domain, spec, error);
}

/* --- Status --- */

/* *out_texts: NULL-terminated; what is null is "". */
static bool
read_ips(ChDomain *domain, const ChJson *list, const char ***out_texts, GError **error)
{
    const gsize n = ch_json_length(list);

    if (list != NULL && !ch_json_is_array(list))
        return wrong_type("IPs", "list", error);
    for (gsize i = 0; i < n; i++)
        if (ch_json_item(list, i) != NULL && !ch_json_is_string(ch_json_item(list, i)))
            return wrong_type("IPs", "list of strings", error);
    *out_texts = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++) {
        const ChJson *ip = ch_json_item(list, i);

        (*out_texts)[i] = ip != NULL ? keep_text(domain, ip) : "";
    }
    return true;
}

static bool
read_guest_nic(ChDomain *domain, const ChJson *item, GError **error)
{
    static const Field fields[] = {
        FIELD("Mac", STRING, ChGuestNic, mac),
        FIELD("Ip", STRING, ChGuestNic, ip),
        FIELD("InterfaceName", STRING, ChGuestNic, interface_name),
    };
    ChGuestNic nic = {0};

    if (!READ_FIELDS(item, fields, &nic, error) ||
        !read_ips(domain, ch_json_at(item, "IPs"), &nic.ips, error))
        return false;
    g_array_append_val(domain->guest_nics, nic);
    return true;
}

static const Field status_fields[] = {
    FIELD("Status", STRING, ChDomain, status_text),
    FIELD("Reason", STRING, ChDomain, reason_text),
    FIELD("GuestPanicInfo", EXISTS, ChDomain, panic.exists),
    FIELD("PanicCount", INT, ChDomain, panic_count),
};

static const Field os_fields[] = {
    FIELD("Name", STRING, ChDomain, os.name),
    FIELD("KernelRelease", STRING, ChDomain, os.kernel_release),
    FIELD("Version", STRING, ChDomain, os.version),
    FIELD("PrettyName", STRING, ChDomain, os.pretty_name),
    FIELD("VersionId", STRING, ChDomain, os.version_id),
    FIELD("KernelVersion", STRING, ChDomain, os.kernel_version),
    FIELD("Machine", STRING, ChDomain, os.machine),
    FIELD("Id", STRING, ChDomain, os.id),
};

static const Field freeze_fields[] = {FIELD("Status", STRING, ChDomain, freeze_status)};

static const Field panic_fields[] = {
    FIELD("Type", STRING, ChDomain, panic.type),
    FIELD("Arg1", UINT, ChDomain, panic.arg1),
};

static bool
read_status(ChDomain *domain, const ChJson *document, GError **error)
{
    const ChJson *status, *os, *freeze, *panic;

    if (!read_object(document, "Status", &status, error) ||
        !READ_FIELDS(status, status_fields, domain, error) ||
        !read_list(domain, status, "Interfaces", read_guest_nic, error) ||
        !read_object(status, "OSInfo", &os, error) || !READ_FIELDS(os, os_fields, domain, error) ||
        !read_object(status, "FSFreezeStatus", &freeze, error) ||
        !READ_FIELDS(freeze, freeze_fields, domain, error) ||
        !read_object(status, "GuestPanicInfo", &panic, error) ||
        !READ_FIELDS(panic, panic_fields, domain, error))
        return false;

    domain->status = index_of(status_texts, CH_DOMAIN_N, domain->status_text);
    domain->reason = index_of(reason_texts, CH_REASON_N, domain->reason_text);
    return true;
}

static bool
read_object_meta(ChDomain *domain, const ChJson *document, GError **error)
{
    static const Field fields[] = {
        FIELD("namespace", STRING, ChDomain, namespace_),
        FIELD("name", STRING, ChDomain, name),
        FIELD("uid", STRING, ChDomain, object_uid),
    };
    const ChJson *meta;
    ChDomainTime deletion = {0};

    if (!read_object(document, "ObjectMeta", &meta, error) ||
        !READ_FIELDS(meta, fields, domain, error))
        return false;
    if (ch_json_at(meta, "deletionTimestamp") != NULL &&
        !read_wall_time(
            ch_json_at(meta, "deletionTimestamp"), "deletionTimestamp", &deletion, error))
        return false;
    domain->is_deleted = deletion.is_set;
    return true;
}

typedef struct {
    ChDomain domain;
    atomic_int n_refs;
} Counted;

static void
clear_guest_nic(gpointer nic)
{
    g_free(((ChGuestNic *)nic)->ips);
}

static ChDomain *
domain_new(void)
{
    Counted *counted = g_new0(Counted, 1);
    ChDomain *domain = &counted->domain;

    atomic_init(&counted->n_refs, 1);
    domain->texts = g_string_chunk_new(CHUNK_BYTES);
    domain->disks = g_array_new(FALSE, FALSE, sizeof(ChDomainDisk));
    domain->nics = g_array_new(FALSE, FALSE, sizeof(ChDomainNic));
    domain->host_devices = g_ptr_array_new();
    domain->guest_nics = g_array_new(FALSE, FALSE, sizeof(ChGuestNic));
    g_array_set_clear_func(domain->guest_nics, clear_guest_nic);
    return domain;
}

ChDomain *
ch_domain_parse(const char *text, gssize length, GError **error)
{
    g_autoptr(ChJson) document = ch_json_parse_parts(text, length, domain_parts, error);
    g_autoptr(ChDomain) domain = NULL;

    if (document == NULL)
        return NULL;
    if (!ch_json_is_object(document)) {
        wrong_type("document", "object", error);
        return NULL;
    }
    domain = domain_new();
    if (!read_object_meta(domain, document, error) || !read_spec(domain, document, error) ||
        !read_status(domain, document, error))
        return NULL;
    return g_steal_pointer(&domain);
}

ChDomain *
ch_domain_ref(ChDomain *domain)
{
    atomic_fetch_add(&((Counted *)domain)->n_refs, 1);
    return domain;
}

void
ch_domain_unref(ChDomain *domain)
{
    if (domain == NULL || atomic_fetch_sub(&((Counted *)domain)->n_refs, 1) > 1)
        return;
    g_array_unref(domain->disks);
    g_array_unref(domain->nics);
    g_ptr_array_unref(domain->host_devices);
    g_array_unref(domain->guest_nics);
    g_string_chunk_free(domain->texts);
    g_free(domain);
}

const ChDomain *
ch_domain_live(const ChDomain *domain)
{
    return domain != NULL && !domain->is_deleted ? domain : NULL;
}

bool
ch_domain_is_alive(const ChDomain *domain)
{
    return ch_domain_live(domain) != NULL && domain->status != CH_DOMAIN_SHUTOFF &&
           domain->status != CH_DOMAIN_CRASHED && domain->status_text[0] != '\0';
}

bool
ch_domain_is_unstarted(const ChDomain *domain)
{
    return ch_domain_live(domain) != NULL && domain->status == CH_DOMAIN_SHUTOFF &&
           domain->reason == CH_REASON_OTHER && g_strcmp0(domain->reason_text, "Unknown") == 0;
}

bool
ch_domain_is_migrated(const ChDomain *domain)
{
    return ch_domain_live(domain) != NULL && domain->status == CH_DOMAIN_SHUTOFF &&
           domain->reason == CH_REASON_MIGRATED;
}

bool
ch_domain_is_migrating(const ChDomain *domain)
{
    if (ch_domain_live(domain) == NULL)
        return false;
    if (domain->migration.start.is_set && !domain->migration.end.is_set)
        return true;
    return domain->status == CH_DOMAIN_PAUSED &&
           (domain->reason == CH_REASON_MIGRATION || domain->reason == CH_REASON_STARTING_UP ||
            domain->reason == CH_REASON_POSTCOPY);
}
