/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/options.h"

#include <string.h>

typedef Kubevirt__Cmd__V1__VirtualMachineOptions Options;
typedef Kubevirt__Cmd__V1__VirtualMachineOptions__InterfaceDomainAttachmentEntry Attachment;
typedef Kubevirt__Cmd__V1__VirtualMachineOptions__InterfaceMigrationEntry Migration;

/* The tree is freed by protobuf-c with free(), which pairs with GLib's allocator (since 2.46 it is
 * malloc). */
static gpointer
message_new(const ProtobufCMessageDescriptor *type)
{
    gpointer message = g_malloc0(type->sizeof_message);

    protobuf_c_message_init(type, message);
    return message;
}

static Kubevirt__Cmd__V1__SMBios *
smbios_new(const ChClusterConfig *config)
{
    Kubevirt__Cmd__V1__SMBios *smbios = message_new(&kubevirt__cmd__v1__smbios__descriptor);

    smbios->manufacturer = g_strdup(config->smbios.manufacturer);
    smbios->product = g_strdup(config->smbios.product);
    smbios->version = g_strdup(config->smbios.version);
    smbios->sku = g_strdup(config->smbios.sku);
    smbios->family = g_strdup(config->smbios.family);
    return smbios;
}

static Kubevirt__Cmd__V1__ClusterConfig *
cluster_config_new(const ChClusterConfig *config)
{
    Kubevirt__Cmd__V1__ClusterConfig *bits =
        message_new(&kubevirt__cmd__v1__cluster_config__descriptor);

    bits->free_page_reporting_disabled = config->free_page_reporting_disabled;
    bits->bochs_display_for_efi_guests =
        !config->has_vga_display_annotation &&
        !ch_cluster_config_has_gate(config, "VGADisplayForEFIGuests");
    bits->serial_console_log_disabled = config->serial_console_log_disabled;
    bits->pci_numa_aware_topology_enabled =
        ch_cluster_config_has_gate(config, "PCINUMAAwareTopology");
    bits->vgpu_live_migration_enabled = ch_cluster_config_has_gate(config, "VGPULiveMigration");
    bits->grace_io_virtualization_enabled =
        ch_cluster_config_has_gate(config, "GraceIOVirtualization");
    return bits;
}

static Kubevirt__Cmd__V1__CPU *
cpu_new(const ChNumaCpu *cpu)
{
    Kubevirt__Cmd__V1__CPU *message = message_new(&kubevirt__cmd__v1__cpu__descriptor);

    message->id = cpu->id;
    message->n_siblings = cpu->siblings->len;
    message->siblings = g_memdup2(cpu->siblings->data, cpu->siblings->len * sizeof(uint32_t));
    return message;
}

static Kubevirt__Cmd__V1__Pages *
pages_new(const ChNumaPages *pages)
{
    Kubevirt__Cmd__V1__Pages *message = message_new(&kubevirt__cmd__v1__pages__descriptor);

    message->count = pages->count;
    message->unit = g_strdup(pages->unit);
    message->size = pages->size;
    return message;
}

static Kubevirt__Cmd__V1__Sibling *
distance_new(const ChNumaDistance *distance)
{
    Kubevirt__Cmd__V1__Sibling *message = message_new(&kubevirt__cmd__v1__sibling__descriptor);

    message->id = distance->id;
    message->value = distance->value;
    return message;
}

static Kubevirt__Cmd__V1__Cell *
cell_new(const ChNumaCell *cell)
{
    Kubevirt__Cmd__V1__Cell *message = message_new(&kubevirt__cmd__v1__cell__descriptor);

    message->id = cell->id;
    if (cell->has_memory) {
        message->memory = message_new(&kubevirt__cmd__v1__memory__descriptor);
        message->memory->amount = cell->memory_amount;
        message->memory->unit = g_strdup(cell->memory_unit != NULL ? cell->memory_unit : "");
    }
    message->pages = g_new0(Kubevirt__Cmd__V1__Pages *, cell->pages->len);
    for (guint i = 0; i < cell->pages->len; i++)
        message->pages[message->n_pages++] = pages_new(&g_array_index(cell->pages, ChNumaPages, i));
    message->distances = g_new0(Kubevirt__Cmd__V1__Sibling *, cell->distances->len);
    for (guint i = 0; i < cell->distances->len; i++)
        message->distances[message->n_distances++] =
            distance_new(&g_array_index(cell->distances, ChNumaDistance, i));
    message->cpus = g_new0(Kubevirt__Cmd__V1__CPU *, cell->cpus->len);
    for (guint i = 0; i < cell->cpus->len; i++)
        message->cpus[message->n_cpus++] = cpu_new(&g_array_index(cell->cpus, ChNumaCpu, i));
    return message;
}

static Kubevirt__Cmd__V1__Topology *
topology_new(const ChCapabilities *capabilities)
{
    Kubevirt__Cmd__V1__Topology *topology = message_new(&kubevirt__cmd__v1__topology__descriptor);

    if (capabilities == NULL || capabilities->cells->len == 0)
        return topology;
    topology->numa_cells = g_new0(Kubevirt__Cmd__V1__Cell *, capabilities->cells->len);
    for (guint i = 0; i < capabilities->cells->len; i++)
        topology->numa_cells[topology->n_numa_cells++] =
            cell_new(&g_array_index(capabilities->cells, ChNumaCell, i));
    return topology;
}

static const ChBindingPlugin *
binding_of(const ChClusterConfig *config, const ChJson *interface)
{
    const char *name = ch_json_string_at(interface, "binding", "name");

    return name != NULL ? ch_cluster_config_binding(config, name) : NULL;
}

/* How the launcher attaches an interface of the VMI to the domain; NULL: not the agent's matter.
 * Spec 01 §23 field 8 */
static const char *
interface_attachment(const ChClusterConfig *config, const ChJson *interface)
{
    const ChBindingPlugin *binding = binding_of(config, interface);

    if (ch_json_at(interface, "masquerade") != NULL || ch_json_at(interface, "bridge") != NULL)
        return "tap";
    if (binding == NULL || binding->domain_attachment[0] == '\0')
        return NULL;
    return g_str_equal(binding->domain_attachment, "managedTap") ? "tap"
                                                                 : binding->domain_attachment;
}

static void
add_attachments(Options *options, const ChClusterConfig *config, const ChJson *vmi)
{
    const ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    gsize n = ch_json_length(interfaces);

    if (n == 0)
        return;
    options->interface_domain_attachment = g_new0(Attachment *, n);
    for (gsize i = 0; i < n; i++) {
        const ChJson *interface = ch_json_item(interfaces, i);
        const char *name = ch_json_string_at(interface, "name");
        const char *type = interface_attachment(config, interface);
        Attachment *entry;

        if (name == NULL || type == NULL)
            continue;
        entry = message_new(
            &kubevirt__cmd__v1__virtual_machine_options__interface_domain_attachment_entry__descriptor);
        entry->key = g_strdup(name);
        entry->value = g_strdup(type);
        options->interface_domain_attachment[options->n_interface_domain_attachment++] = entry;
    }
}

static void
add_preallocated_volumes(Options *options, const ChJson *vmi)
{
    const ChJson *statuses = ch_json_at(vmi, "status", "volumeStatus");
    gsize n = ch_json_length(statuses);

    if (n == 0)
        return;
    options->preallocated_volumes = g_new0(char *, n);
    for (gsize i = 0; i < n; i++) {
        const ChJson *status = ch_json_item(statuses, i);
        const char *name = ch_json_string_at(status, "name");

        if (name != NULL &&
            ch_json_bool_at(status, false, "persistentVolumeClaimInfo", "preallocated"))
            options->preallocated_volumes[options->n_preallocated_volumes++] = g_strdup(name);
    }
}

/* By vendor and device: the NVIDIA GPUs of the Grace superchips. */
static bool
is_grace_gpu(const char *selector)
{
    static const char *const grace_gpus[] = {"10de:2342", "10de:2348", "10de:2941"};
    g_autofree char *lower = g_ascii_strdown(selector, -1);

    for (gsize i = 0; i < G_N_ELEMENTS(grace_gpus); i++)
        if (g_str_equal(lower, grace_gpus[i]))
            return true;
    return false;
}

static bool
is_grace_resource(const ChClusterConfig *config, const char *resource)
{
    const GArray *permitted = config->permitted_devices.pci;

    for (guint i = 0; i < permitted->len; i++) {
        const ChPermittedDevice *device = &g_array_index(permitted, ChPermittedDevice, i);

        if (g_str_equal(device->resource_name, resource) && is_grace_gpu(device->selector))
            return true;
    }
    return false;
}

/* Adds "PREFIX-NAME" of each of @devices that is a Grace GPU. */
static void
collect_grace_aliases(GPtrArray *aliases,
                      const ChClusterConfig *config,
                      const ChJson *devices,
                      const char *prefix)
{
    for (gsize i = 0; i < ch_json_length(devices); i++) {
        const ChJson *device = ch_json_item(devices, i);
        const char *name = ch_json_string_at(device, "name");
        const char *resource = ch_json_string_at(device, "deviceName");

        if (name != NULL && resource != NULL && resource[0] != '\0' &&
            is_grace_resource(config, resource))
            g_ptr_array_add(aliases, g_strconcat(prefix, "-", name, NULL));
    }
}

static int
compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Spec 01 §23 field 11. */
static void
add_grace_aliases(Options *options, const ChClusterConfig *config, const ChJson *vmi)
{
    const ChJson *devices = ch_json_at(vmi, "spec", "domain", "devices");
    g_autoptr(GPtrArray) aliases = NULL;

    if (!ch_cluster_config_has_gate(config, "GraceIOVirtualization"))
        return;
    aliases = g_ptr_array_new();
    collect_grace_aliases(aliases, config, ch_json_at(devices, "gpus"), "gpu");
    collect_grace_aliases(aliases, config, ch_json_at(devices, "hostDevices"), "hostdevice");
    g_ptr_array_sort(aliases, compare_texts);
    options->n_grace_host_device_aliases = aliases->len;
    options->grace_host_device_aliases = (char **)g_ptr_array_steal(aliases, NULL);
}

Options *
ch_launcher_options_new(const ChClusterConfig *config,
                        const ChCapabilities *capabilities,
                        GBytes *plugins,
                        const ChJson *vmi)
{
    Options *options = message_new(&kubevirt__cmd__v1__virtual_machine_options__descriptor);

    options->virtual_machine_smbios = smbios_new(config);
    options->mem_balloon_stats_period = config->mem_balloon_stats_period;
    options->topology = topology_new(capabilities);
    options->cluster_config = cluster_config_new(config);
    add_attachments(options, config, vmi);
    add_preallocated_volumes(options, vmi);
    add_grace_aliases(options, config, vmi);
    if (plugins != NULL) {
        gsize length;
        const void *json = g_bytes_get_data(plugins, &length);

        options->plugins_json = (ProtobufCBinaryData){length, g_memdup2(json, length)};
    }
    return options;
}

Options *
ch_launcher_options_new_finalize(const ChClusterConfig *config, const ChJson *vmi)
{
    const ChJson *interfaces = ch_json_at(vmi, "spec", "domain", "devices", "interfaces");
    const gsize n = ch_json_length(interfaces);
    Options *options = message_new(&kubevirt__cmd__v1__virtual_machine_options__descriptor);

    options->interface_migration = n > 0 ? g_new0(Migration *, n) : NULL;
    for (gsize i = 0; i < n; i++) {
        const ChJson *interface = ch_json_item(interfaces, i);
        const ChBindingPlugin *binding = binding_of(config, interface);
        const char *name = ch_json_string_at(interface, "name");
        Migration *entry;

        if (name == NULL || binding == NULL || !binding->can_migrate)
            continue;
        entry = message_new(
            &kubevirt__cmd__v1__virtual_machine_options__interface_migration_entry__descriptor);
        entry->key = g_strdup(name);
        entry->value = message_new(&kubevirt__cmd__v1__interface_binding_migration__descriptor);
        entry->value->method = g_strdup(binding->migration_method);
        options->interface_migration[options->n_interface_migration++] = entry;
    }
    return options;
}

void
ch_launcher_options_free(Options *options)
{
    if (options != NULL)
        protobuf_c_message_free_unpacked(&options->base, NULL);
}
