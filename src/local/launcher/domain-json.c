/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-json.h"

#include <libvirt/libvirt.h>
#include <string.h>

#include "lib/base/time.h"
#include "local/launcher/alias.h"

const ChDomainState ch_domain_state_non_existent = {"NoState", "NonExistent"};

/* clang-format off */
static const char *const paused_reasons[] = {
    "Unknown", "User", "Migration", "Save", "Dump", "IOError", "Watchdog", "FromSnapshot",
    "ShuttingDown", "Snapshot", "Crashed", "StartingUp", "Postcopy", "PostcopyFailed",
};
static const char *const shutdown_reasons[] = {"Unknown", "User"};
static const char *const shutoff_reasons[] = {
    "Unknown", "Shutdown", "Destroyed", "Crashed", "Migrated", "Saved", "Failed", "FromSnapshot",
};
static const char *const crashed_reasons[] = {"Unknown", "Panicked"};

/* A state without reasons of its own always has the reason "Unknown". */
static const struct {
    const char *status;
    const char *const *reasons;
    int n_reasons;
} states[] = {
    [VIR_DOMAIN_NOSTATE]     = { "NoState",      NULL,             0 },
    [VIR_DOMAIN_RUNNING]     = { "Running",      NULL,             0 },
    [VIR_DOMAIN_BLOCKED]     = { "Blocked",      NULL,             0 },
    [VIR_DOMAIN_PAUSED]      = { "Paused",       paused_reasons,   G_N_ELEMENTS(paused_reasons) },
    [VIR_DOMAIN_SHUTDOWN]    = { "ShuttingDown", shutdown_reasons, G_N_ELEMENTS(shutdown_reasons) },
    [VIR_DOMAIN_SHUTOFF]     = { "Shutoff",      shutoff_reasons,  G_N_ELEMENTS(shutoff_reasons) },
    [VIR_DOMAIN_CRASHED]     = { "Crashed",      crashed_reasons,  G_N_ELEMENTS(crashed_reasons) },
    [VIR_DOMAIN_PMSUSPENDED] = { "PMSuspended",  NULL,             0 },
};
/* clang-format on */

ChDomainState
ch_domain_state(int state, int reason)
{
    ChDomainState words = {"", ""};

    if (state < 0 || (gsize)state >= G_N_ELEMENTS(states))
        return words;
    words.status = states[state].status;
    if (states[state].reasons == NULL)
        words.reason = "Unknown";
    else if (reason >= 0 && reason < states[state].n_reasons)
        words.reason = states[state].reasons[reason];
    return words;
}

typedef enum {
    FIELD_END = 0,
    FIELD_STRING, /* "" when absent */
    FIELD_NUMBER, /* 0 when absent */
    FIELD_MAYBE_NUMBER,
    FIELD_STRUCT, /* always there, with zero values */
    FIELD_MAYBE,  /* struct or null */
    FIELD_LIST,   /* array or null */
    FIELD_NULL,   /* this launcher never makes what would be here */
    FIELD_ALIAS,
    FIELD_XML_NAME,
} FieldKind;

typedef struct Field Field;
struct Field {
    const char *key;
    FieldKind kind;
    const char *path;    /* "child/child", "child@attribute", "@attribute"; "": the node itself */
    const Field *fields; /* of structs and list items */
};

/* clang-format off */
#define STRING(key, path)        { key, FIELD_STRING, path, NULL }
#define NUMBER(key, path)        { key, FIELD_NUMBER, path, NULL }
#define MAYBE_NUMBER(key, path)  { key, FIELD_MAYBE_NUMBER, path, NULL }
#define STRUCT(key, path, of)    { key, FIELD_STRUCT, path, of }
#define MAYBE(key, path, of)     { key, FIELD_MAYBE, path, of }
#define LIST(key, path, of)      { key, FIELD_LIST, path, of }
#define NONE(key)                { key, FIELD_NULL, "", NULL }
#define ALIAS                    { "Alias", FIELD_ALIAS, "alias", NULL }
#define ADDRESS                  MAYBE("Address", "address", address_fields)
#define XML_NAME                 { "XMLName", FIELD_XML_NAME, "", NULL }
#define END                      { NULL, FIELD_END, NULL, NULL }

static const Field no_fields[] = { END };
static const Field value_unit_fields[] = { NUMBER("Value", ""), STRING("Unit", "@unit"), END };
static const Field state_fields[] = { STRING("State", "@state"), END };
static const Field type_fields[] = { STRING("Type", "@type"), END };
static const Field order_fields[] = { NUMBER("Order", "@order"), END };
static const Field mode_path_fields[] = { STRING("Mode", "@mode"), STRING("Path", "@path"), END };

static const Field address_fields[] = {
    STRING("Type", "@type"), STRING("Domain", "@domain"), STRING("Bus", "@bus"),
    STRING("Slot", "@slot"), STRING("Function", "@function"), STRING("Controller", "@controller"),
    STRING("Target", "@target"), STRING("Unit", "@unit"), STRING("UUID", "@uuid"),
    STRING("Device", "@device"), STRING("CSSID", "@cssid"), STRING("SSID", "@ssid"),
    STRING("DevNo", "@devno"), END
};

static const Field interface_source_fields[] = {
    STRING("Network", "@network"), STRING("Device", "@dev"), STRING("Bridge", "@bridge"),
    STRING("Mode", "@mode"), ADDRESS, END
};
static const Field interface_target_fields[] = {
    STRING("Device", "@dev"), STRING("Managed", "@managed"), END
};
static const Field mac_fields[] = { STRING("MAC", "@address"), END };
static const Field mtu_fields[] = { STRING("Size", "@size"), END };
static const Field interface_driver_fields[] = {
    STRING("Name", "@name"), MAYBE_NUMBER("Queues", "@queues"), STRING("IOMMU", "@iommu"), END
};
static const Field rom_fields[] = { STRING("Enabled", "@enabled"), END };
static const Field acpi_index_fields[] = { NUMBER("Index", "@index"), END };
static const Field interface_fields[] = {
    XML_NAME, ADDRESS, STRING("Type", "@type"),
    STRING("TrustGuestRxFilters", "@trustGuestRxFilters"),
    STRUCT("Source", "source", interface_source_fields),
    MAYBE("Target", "target", interface_target_fields), MAYBE("Model", "model", type_fields),
    MAYBE("MAC", "mac", mac_fields), MAYBE("MTU", "mtu", mtu_fields), NONE("BandWidth"),
    MAYBE("BootOrder", "boot", order_fields), MAYBE("LinkState", "link", state_fields),
    NONE("FilterRef"), ALIAS, MAYBE("Driver", "driver", interface_driver_fields),
    MAYBE("Rom", "rom", rom_fields), MAYBE("ACPI", "acpi", acpi_index_fields), NONE("Backend"),
    NONE("PortForward"), END
};

static const Field channel_target_fields[] = {
    STRING("Name", "@name"), STRING("Type", "@type"), STRING("Address", "@address"),
    NUMBER("Port", "@port"), STRING("State", "@state"), END
};
static const Field channel_fields[] = {
    STRING("Type", "@type"), MAYBE("Source", "source", mode_path_fields),
    MAYBE("Target", "target", channel_target_fields), END
};

static const Field controller_target_fields[] = {
    MAYBE_NUMBER("BusNr", "@busNr"), MAYBE_NUMBER("NUMANode", "node"), END
};
static const Field controller_fields[] = {
    STRING("Type", "@type"), STRING("Index", "@index"), STRING("Model", "@model"), NONE("Driver"),
    ALIAS, ADDRESS, MAYBE("PCIHole64", "pcihole64", value_unit_fields),
    MAYBE("Target", "target", controller_target_fields), END
};

static const Field video_model_fields[] = {
    STRING("Type", "@type"), MAYBE_NUMBER("Heads", "@heads"), MAYBE_NUMBER("Ram", "@ram"),
    MAYBE_NUMBER("VRam", "@vram"), MAYBE_NUMBER("VGAMem", "@vgamem"), END
};
static const Field video_fields[] = { STRUCT("Model", "model", video_model_fields), END };
static const Field listen_fields[] = {
    STRING("Type", "@type"), STRING("Address", "@address"), STRING("Network", "@network"),
    STRING("Socket", "@socket"), END
};
static const Field graphics_fields[] = {
    STRING("AutoPort", "@autoport"), STRING("DefaultMode", "@defaultMode"),
    MAYBE("Listen", "listen", listen_fields), STRING("PasswdValidTo", "@passwdValidTo"),
    NUMBER("Port", "@port"), NUMBER("TLSPort", "@tlsPort"), STRING("Type", "@type"), END
};
static const Field stats_fields[] = { NUMBER("Period", "@period"), END };
static const Field balloon_fields[] = {
    STRING("Model", "@model"), MAYBE("Stats", "stats", stats_fields), ADDRESS, NONE("Driver"),
    STRING("FreePageReporting", "@freePageReporting"), END
};

static const Field disk_source_fields[] = {
    STRING("Dev", "@dev"), STRING("File", "@file"), STRING("StartupPolicy", "@startupPolicy"),
    STRING("Protocol", "@protocol"), STRING("Name", "@name"), NONE("Host"), NONE("Reservations"),
    NONE("Slices"), NONE("DataStore"), END
};
static const Field disk_target_fields[] = {
    STRING("Bus", "@bus"), STRING("Device", "@dev"), STRING("Tray", "@tray"), END
};
static const Field disk_driver_fields[] = {
    STRING("Cache", "@cache"), STRING("ErrorPolicy", "@error_policy"), STRING("IO", "@io"),
    STRING("Name", "@name"), STRING("Type", "@type"), MAYBE_NUMBER("IOThread", "@iothread"),
    NONE("IOThreads"), MAYBE_NUMBER("Queues", "@queues"), STRING("Discard", "@discard"),
    STRING("IOMMU", "@iommu"), END
};
static const Field backing_store_fields[] = {
    STRING("Type", "@type"), MAYBE("Format", "format", type_fields),
    MAYBE("Source", "source", disk_source_fields), END
};
static const Field disk_fields[] = {
    STRING("Device", "@device"), STRING("Snapshot", "@snapshot"), STRING("Type", "@type"),
    STRUCT("Source", "source", disk_source_fields), STRUCT("Target", "target", disk_target_fields),
    STRING("Serial", "serial"), MAYBE("Driver", "driver", disk_driver_fields),
    MAYBE("ReadOnly", "readonly", no_fields), NONE("Auth"), ALIAS,
    MAYBE("BackingStore", "backingStore", backing_store_fields),
    MAYBE("BootOrder", "boot", order_fields), ADDRESS, STRING("Model", "@model"), NONE("BlockIO"),
    NONE("FilesystemOverhead"), NONE("Capacity"), MAYBE("Shareable", "shareable", no_fields), END
};

static const Field input_fields[] = {
    STRING("Type", "@type"), STRING("Bus", "@bus"), ALIAS, ADDRESS, STRING("Model", "@model"), END
};
static const Field serial_target_fields[] = { MAYBE_NUMBER("Port", "@port"), END };
static const Field log_fields[] = { STRING("File", "@file"), STRING("Append", "@append"), END };
static const Field serial_fields[] = {
    STRING("Type", "@type"), MAYBE("Target", "target", serial_target_fields),
    MAYBE("Source", "source", mode_path_fields), ALIAS, MAYBE("Log", "log", log_fields), END
};
static const Field console_target_fields[] = {
    STRING("Type", "@type"), MAYBE_NUMBER("Port", "@port"), END
};
static const Field console_fields[] = {
    STRING("Type", "@type"), MAYBE("Target", "target", console_target_fields),
    MAYBE("Source", "source", mode_path_fields), ALIAS, END
};
static const Field watchdog_fields[] = {
    STRING("Model", "@model"), STRING("Action", "@action"), ALIAS, ADDRESS, END
};
static const Field rng_backend_fields[] = { STRING("Model", "@model"), STRING("Source", ""), END };
static const Field rng_fields[] = {
    STRING("Model", "@model"), MAYBE("Backend", "backend", rng_backend_fields), ADDRESS,
    NONE("Driver"), END
};
static const Field model_fields[] = { STRING("Model", "@model"), END };
static const Field sound_fields[] = { STRING("Model", "@model"), ALIAS, END };

static const Field device_fields[] = {
    STRING("Emulator", "emulator"), LIST("Interfaces", "interface", interface_fields),
    LIST("Channels", "channel", channel_fields), NONE("HostDevices"),
    LIST("PanicDevices", "panic", model_fields), LIST("Controllers", "controller", controller_fields),
    LIST("Video", "video", video_fields), LIST("Graphics", "graphics", graphics_fields),
    MAYBE("Ballooning", "memballoon", balloon_fields), LIST("Disks", "disk", disk_fields),
    LIST("Inputs", "input", input_fields), LIST("Serials", "serial", serial_fields),
    LIST("Consoles", "console", console_fields), LIST("Watchdogs", "watchdog", watchdog_fields),
    MAYBE("Rng", "rng", rng_fields), NONE("Filesystems"), NONE("Redirs"),
    LIST("SoundCards", "sound", sound_fields), NONE("TPMs"), NONE("VSOCK"), NONE("Memory"),
    NONE("IOMMU"), END
};

static const Field os_type_fields[] = {
    STRING("OS", ""), STRING("Arch", "@arch"), STRING("Machine", "@machine"), END
};
static const Field smbios_fields[] = { STRING("Mode", "@mode"), END };
static const Field boot_fields[] = { STRING("Dev", "@dev"), END };
static const Field boot_menu_fields[] = {
    STRING("Enable", "@enable"), MAYBE_NUMBER("Timeout", "@timeout"), END
};
static const Field bios_fields[] = { STRING("UseSerial", "@useserial"), END };
static const Field os_fields[] = {
    STRING("Firmware", "@firmware"), NONE("FirmwareInfo"), STRUCT("Type", "type", os_type_fields),
    NONE("ACPI"), MAYBE("SMBios", "smbios", smbios_fields), LIST("BootOrder", "boot", boot_fields),
    MAYBE("BootMenu", "bootmenu", boot_menu_fields), MAYBE("BIOS", "bios", bios_fields),
    NONE("BootLoader"), NONE("NVRam"), STRING("Kernel", "kernel"), STRING("Initrd", "initrd"),
    STRING("KernelArgs", "cmdline"), END
};

static const Field entry_fields[] = { STRING("Name", "@name"), STRING("Value", ""), END };
static const Field sysinfo_fields[] = {
    STRING("Type", "@type"), LIST("System", "system/entry", entry_fields),
    LIST("BIOS", "bios/entry", entry_fields), LIST("BaseBoard", "baseBoard/entry", entry_fields),
    LIST("Chassis", "chassis/entry", entry_fields), END
};

static const Field timer_fields[] = {
    STRING("Name", "@name"), STRING("TickPolicy", "@tickpolicy"), STRING("Present", "@present"),
    STRING("Track", "@track"), STRING("Frequency", "@frequency"), END
};
static const Field clock_fields[] = {
    STRING("Offset", "@offset"), STRING("Timezone", "@timezone"),
    STRING("Adjustment", "@adjustment"), LIST("Timer", "timer", timer_fields), END
};

static const Field kvm_fields[] = {
    MAYBE("Hidden", "hidden", state_fields), MAYBE("HintDedicated", "hint-dedicated", state_fields),
    END
};
static const Field feature_fields[] = {
    MAYBE("ACPI", "acpi", no_fields), MAYBE("APIC", "apic", no_fields), NONE("Hyperv"),
    MAYBE("SMM", "smm", no_fields), MAYBE("KVM", "kvm", kvm_fields),
    MAYBE("PVSpinlock", "pvspinlock", state_fields), NONE("PMU"),
    MAYBE("VMPort", "vmport", state_fields), END
};

static const Field cpu_feature_fields[] = {
    STRING("Name", "@name"), STRING("Policy", "@policy"), END
};
static const Field topology_fields[] = {
    NUMBER("Sockets", "@sockets"), NUMBER("Cores", "@cores"), NUMBER("Threads", "@threads"), END
};
static const Field cpu_fields[] = {
    STRING("Mode", "@mode"), STRING("Model", "model"), LIST("Features", "feature", cpu_feature_fields),
    MAYBE("Topology", "topology", topology_fields), NONE("NUMA"), END
};
static const Field vcpu_fields[] = {
    STRING("Placement", "@placement"), NUMBER("CPUs", ""), END
};

/* "Metadata" holds its place here; it comes from the cache, never from the XML. */
static const Field spec_fields[] = {
    XML_NAME, STRING("Type", "@type"), STRING("XmlNS", "@no-such"), STRING("Name", "name"),
    STRING("UUID", "uuid"), STRUCT("Memory", "memory", value_unit_fields),
    MAYBE("CurrentMemory", "currentMemory", value_unit_fields), NONE("MaxMemory"),
    NONE("MemoryBacking"), STRUCT("OS", "os", os_fields), MAYBE("SysInfo", "sysinfo", sysinfo_fields),
    STRUCT("Devices", "devices", device_fields), MAYBE("Clock", "clock", clock_fields),
    NONE("Resource"), NONE("QEMUCmd"), NONE("Metadata"), MAYBE("Features", "features", feature_fields),
    STRUCT("CPU", "cpu", cpu_fields), MAYBE("VCPU", "vcpu", vcpu_fields), NONE("VCPUs"),
    NONE("CPUTune"), NONE("NUMATune"), NONE("IOThreads"), NONE("LaunchSecurity"),
    STRING("OnReboot", "on_reboot"), NONE("IOMMUFD"), END
};
/* clang-format on */

static ChJson *build_struct(const Field *fields, const xmlNode *node);

/* Walks the elements of @path; what follows '@' is left for read_leaf(). */
static xmlNode *
walk(const xmlNode *node, const char *path)
{
    const char *end = strchr(path, '@');
    g_autofree char *elements = end == NULL ? g_strdup(path) : g_strndup(path, (gsize)(end - path));
    xmlNode *found = (xmlNode *)node;

    if (*elements == '\0')
        return found;
    g_auto(GStrv) names = g_strsplit(elements, "/", -1);
    for (gsize i = 0; names[i] != NULL; i++)
        found = ch_xml_child(found, names[i]);
    return found;
}

static char *
dup_leaf(const xmlNode *node, const char *path)
{
    const char *attribute = strchr(path, '@');
    const xmlNode *found = walk(node, path);

    return attribute == NULL ? ch_xml_dup_text(found) : ch_xml_dup_attribute(found, attribute + 1);
}

static ChJson *
build_number(const char *text)
{
    guint64 value = 0;

    if (text != NULL && g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &value, NULL))
        return ch_json_new_int((int64_t)value);
    return NULL;
}

static ChJson *
build_list(const Field *field, const xmlNode *node)
{
    ChJson *list = NULL;

    for (const xmlNode *item = walk(node, field->path); item != NULL; item = ch_xml_next(item)) {
        if (list == NULL)
            list = ch_json_new_array();
        ch_json_append(list, build_struct(field->fields, item));
    }
    return list;
}

static ChJson *
build_alias(const xmlNode *node)
{
    g_autofree char *name = ch_xml_dup_attribute(node, "name");
    const char *user_name = ch_alias_user_name(name);

    if (name == NULL)
        return NULL;
    ChJson *alias = ch_json_new_object();
    ch_json_set_string(alias, "Name", user_name != NULL ? user_name : name);
    ch_json_set_bool(alias, "UserDefined", user_name != NULL);
    return alias;
}

static ChJson *
build_xml_name(const xmlNode *node)
{
    ChJson *name = ch_json_new_object();

    ch_json_set_string(name, "Space", "");
    ch_json_set_string(name, "Local", node == NULL ? "" : (const char *)node->name);
    return name;
}

static ChJson *
build_value(const Field *field, const xmlNode *node)
{
    g_autofree char *text = NULL;
    ChJson *number = NULL;

    switch (field->kind) {
    case FIELD_STRING:
        text = dup_leaf(node, field->path);
        return ch_json_new_string(text == NULL ? "" : text);
    case FIELD_NUMBER:
        text = dup_leaf(node, field->path);
        number = build_number(text);
        return number == NULL ? ch_json_new_int(0) : number;
    case FIELD_MAYBE_NUMBER:
        text = dup_leaf(node, field->path);
        return build_number(text);
    case FIELD_STRUCT:
        return build_struct(field->fields, walk(node, field->path));
    case FIELD_MAYBE:
        return walk(node, field->path) == NULL
                   ? NULL
                   : build_struct(field->fields, walk(node, field->path));
    case FIELD_LIST:
        return build_list(field, node);
    case FIELD_ALIAS:
        return build_alias(walk(node, field->path));
    case FIELD_XML_NAME:
        return build_xml_name(node);
    case FIELD_NULL:
    case FIELD_END:
        break;
    }
    return NULL;
}

static ChJson *
build_struct(const Field *fields, const xmlNode *node)
{
    ChJson *json = ch_json_new_object();

    for (const Field *field = fields; field->kind != FIELD_END; field++)
        ch_json_set(json, field->key, build_value(field, node));
    return json;
}

static ChJson *
build_object_meta(const ChDomainView *view)
{
    ChJson *meta = ch_json_new_object();

    ch_json_set_string(meta, "name", view->name);
    ch_json_set_string(meta, "namespace", view->namespace_);
    if (view->uid != NULL && *view->uid != '\0')
        ch_json_set_string(meta, "uid", view->uid);
    if (view->deletion_us != 0) {
        g_autofree char *time = ch_time_format(view->deletion_us);

        ch_json_set_string(meta, "deletionTimestamp", time);
    }
    return meta;
}

static ChJson *
build_os_info(void)
{
    static const char *const keys[] = {"Name",
                                       "KernelRelease",
                                       "Version",
                                       "PrettyName",
                                       "VersionId",
                                       "KernelVersion",
                                       "Machine",
                                       "Id"};
    ChJson *info = ch_json_new_object();

    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        ch_json_set_string(info, keys[i], "");
    return info;
}

static ChJson *
build_status(const ChDomainView *view)
{
    ChJson *status = ch_json_new_object();

    ch_json_set_string(status, "Status", view->state.status);
    ch_json_set_string(status, "Reason", view->state.reason);
    ch_json_set(
        status, "Interfaces", view->interfaces == NULL ? NULL : ch_json_dup(view->interfaces));
    ch_json_set(
        status, "OSInfo", view->os_info == NULL ? build_os_info() : ch_json_dup(view->os_info));
    ch_json_set_string(ch_json_ensure_object(status, "FSFreezeStatus"),
                       "Status",
                       view->freeze_status == NULL ? "" : view->freeze_status);
    ch_json_set(status, "GuestPanicInfo", NULL);
    ch_json_set_int(status, "PanicCount", 0);
    return status;
}

ChJson *
ch_domain_json_build(const ChDomainView *view)
{
    ChJson *json = ch_json_new_object();
    ChJson *spec = build_struct(spec_fields, view->xml);

    ch_json_set(spec, "Metadata", ch_json_dup(view->metadata));
    ch_json_set_string(json, "kind", "Domain");
    ch_json_set_string(json, "apiVersion", "1.2.2");
    ch_json_set(json, "ObjectMeta", build_object_meta(view));
    ch_json_set(json, "Spec", spec);
    ch_json_set(json, "Status", build_status(view));
    return json;
}
