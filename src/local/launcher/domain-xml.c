/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/domain-xml.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/quantity.h"
#include "local/launcher/alias.h"
#include "local/launcher/domain-internal.h"

#define NANO ((__int128)1000000000)

#define MAX_VCPUS 4096

char *
ch_domain_name(const char *namespace_, const char *name)
{
    return g_strconcat(namespace_, "_", name, NULL);
}

void
ch_domain_add_alias(xmlNode *node, const char *name)
{
    g_autofree char *alias = g_strconcat(CH_ALIAS_PREFIX, name, NULL);

    ch_xml_add(node, "alias", "name", alias, NULL);
}

bool
ch_domain_annotation_is(const ChDomainBuild *build, const char *key, const char *value)
{
    return g_strcmp0(ch_json_string_at(build->input->vmi, "metadata", "annotations", key), value) ==
           0;
}

/* What a VMI may ask for and this launcher does not build: refused by its path, so that nobody gets
 * a guest that lacks what was asked for. */
static const char *const unsupported[][3] = {
    {"cpu", "dedicatedCpuPlacement"},
    {"cpu", "realtime"},
    {"cpu", "numa"},
    {"cpu", "maxSockets"},
    {"memory", "hugepages"},
    {"memory", "maxGuest"},
    {"firmware", "acpi"},
    {"firmware", "bootloader", "efi"},
    {"features", "hyperv"},
    {"features", "hypervPassthrough"},
    {"devices", "gpus"},
    {"devices", "hostDevices"},
    {"devices", "filesystems"},
    {"devices", "tpm"},
    {"devices", "clientPassthrough"},
    {"ioThreadsPolicy"},
    {"launchSecurity"},
};

/* `false`, `{"enabled": false}` and empty lists ask for nothing. */
static bool
asks_for_something(const ChJson *value)
{
    if (ch_json_is_array(value))
        return ch_json_length(value) > 0;
    if (ch_json_is_object(value))
        return ch_json_bool_at(value, true, "enabled");
    return value != NULL && ch_json_as_bool(value, true);
}

static bool
check_supported(const ChJson *spec, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(unsupported); i++) {
        const char *const *path = unsupported[i];

        if (asks_for_something(ch_json_walk(spec, path[0], path[1], path[2], NULL)))
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "spec.domain.%s%s%s%s%s is not supported by this launcher",
                           path[0],
                           path[1] == NULL ? "" : ".",
                           path[1] == NULL ? "" : path[1],
                           path[1] == NULL || path[2] == NULL ? "" : ".",
                           path[1] == NULL || path[2] == NULL ? "" : path[2]);
    }
    return true;
}

/* Whole units of a quantity; what is finer than one is cut, see spec 03 §13.2. */
static bool
read_quantity(const ChJson *value, const char *what, __int128 *out_units, GError **error)
{
    const char *text = ch_json_as_string(value);
    g_autofree char *number = NULL;
    ChQuantity quantity;
    int64_t units = 0;

    if (text == NULL && ch_json_as_int(value, &units))
        text = number = g_strdup_printf("%" G_GINT64_FORMAT, units);
    if (text == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "%s is no quantity", what);
    if (!ch_quantity_parse(text, &quantity, error)) {
        g_prefix_error(error, "%s: ", what);
        return false;
    }
    if (quantity.nano < 0)
        return ch_fail(
            error, CH_ERROR_INVALID, "%s size '%s' must be greater than or equal to 0", what, text);
    *out_units = quantity.nano / NANO;
    return true;
}

/* guest, else request, else limit */
static const ChJson *
choose_resource(const ChJson *spec, const char *resource)
{
    const ChJson *request = ch_json_at(spec, "resources", "requests", resource);

    return request != NULL ? request : ch_json_at(spec, "resources", "limits", resource);
}

static bool
read_memory(ChDomainBuild *build, GError **error)
{
    const ChJson *guest = ch_json_at(build->spec, "memory", "guest");
    __int128 bytes = 0;

    if (guest == NULL)
        guest = choose_resource(build->spec, "memory");
    if (guest == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "the VMI gives no memory size");
    if (!read_quantity(guest, "Memory", &bytes, error))
        return false;
    if (bytes > G_MAXINT64)
        return ch_fail(error, CH_ERROR_LIMIT, "memory size is too large");
    build->memory_bytes = (guint64)bytes;
    return true;
}

typedef struct {
    int64_t sockets, cores, threads;
} Topology;

static bool
read_topology(const ChDomainBuild *build, Topology *out_topology, GError **error)
{
    const ChJson *cpu = ch_json_at(build->spec, "cpu");
    const ChJson *limit = ch_json_at(build->spec, "resources", "limits", "cpu");
    const ChJson *share =
        limit != NULL ? limit : ch_json_at(build->spec, "resources", "requests", "cpu");
    Topology topology = {0};
    __int128 cpus = 0;

    (void)ch_json_int_at(cpu, &topology.sockets, "sockets"); /* absent: 0 */
    (void)ch_json_int_at(cpu, &topology.cores, "cores");
    (void)ch_json_int_at(cpu, &topology.threads, "threads");
    if (topology.sockets == 0 && topology.cores == 0 && topology.threads == 0 && share != NULL) {
        if (!read_quantity(share, "CPU", &cpus, error))
            return false;
        topology.sockets = cpus > MAX_VCPUS ? MAX_VCPUS + 1 : (int64_t)cpus;
    }

    topology.sockets = MAX(topology.sockets, 1);
    topology.cores = MAX(topology.cores, 1);
    topology.threads = MAX(topology.threads, 1);
    if (topology.sockets > MAX_VCPUS || topology.cores > MAX_VCPUS / topology.sockets ||
        topology.threads > MAX_VCPUS / (topology.sockets * topology.cores))
        return ch_fail(error, CH_ERROR_LIMIT, "more than %d virtual CPUs", MAX_VCPUS);
    *out_topology = topology;
    return true;
}

static void
add_cpu_features(const ChDomainBuild *build, xmlNode *cpu, const char *model)
{
    const ChJson *features = ch_json_at(build->spec, "cpu", "features");
    bool has_mpx = false;

    for (gsize i = 0; i < ch_json_length(features); i++) {
        const char *name = ch_json_string_at(ch_json_item(features, i), "name");
        const char *policy = ch_json_string_at(ch_json_item(features, i), "policy");

        if (name == NULL)
            continue;
        has_mpx = has_mpx || g_str_equal(name, "mpx");
        ch_xml_add(cpu,
                   "feature",
                   "policy",
                   policy == NULL || *policy == '\0' ? "require" : policy,
                   "name",
                   name,
                   NULL);
    }
    if (!has_mpx && ch_json_at(build->spec, "cpu") != NULL &&
        (model == NULL || !g_str_has_prefix(model, "host-")))
        ch_xml_add(cpu, "feature", "policy", "disable", "name", "mpx", NULL);
}

static bool
add_cpu(ChDomainBuild *build, GError **error)
{
    const char *model = ch_json_string_at(build->spec, "cpu", "model");
    const bool is_custom = model != NULL && *model != '\0' && !g_str_has_prefix(model, "host-");
    Topology topology = {1, 1, 1};
    char count[24];

    if (!read_topology(build, &topology, error))
        return false;
    build->n_vcpus = (guint64)(topology.sockets * topology.cores * topology.threads);
    g_snprintf(count, sizeof(count), "%" G_GUINT64_FORMAT, build->n_vcpus);
    xmlNode *vcpu = ch_xml_add_text(build->root, "vcpu", count);
    ch_xml_set(vcpu, "placement", "static");

    xmlNode *cpu = ch_xml_add(build->root,
                              "cpu",
                              "mode",
                              is_custom                                   ? "custom"
                              : g_strcmp0(model, "host-passthrough") == 0 ? "host-passthrough"
                                                                          : "host-model",
                              NULL);
    if (is_custom)
        ch_xml_add_text(cpu, "model", model);
    xmlNode *node = ch_xml_add(cpu, "topology", NULL);
    ch_xml_set_uint(node, "sockets", (guint64)topology.sockets);
    ch_xml_set_uint(node, "cores", (guint64)topology.cores);
    ch_xml_set_uint(node, "threads", (guint64)topology.threads);
    add_cpu_features(build, cpu, model);
    return true;
}

static void
add_kernel_boot(const ChDomainBuild *build, xmlNode *os)
{
    const ChJson *boot = ch_json_at(build->spec, "firmware", "kernelBoot");
    static const struct {
        const char *key;
        const char *element;
    } artifacts[] = {{"kernelPath", "kernel"}, {"initrdPath", "initrd"}};

    for (gsize i = 0; i < G_N_ELEMENTS(artifacts); i++) {
        const char *path = ch_json_string_at(boot, "container", artifacts[i].key);

        if (path != NULL && *path != '\0') {
            g_autofree char *file = ch_volume_kernel_path(&build->input->paths, path);

            ch_xml_add_text(os, artifacts[i].element, file);
        }
    }
    if (ch_json_string_at(boot, "kernelArgs") != NULL)
        ch_xml_add_text(os, "cmdline", ch_json_string_at(boot, "kernelArgs"));
}

static void
add_os(const ChDomainBuild *build)
{
    const char *machine = ch_json_string_at(build->spec, "machine", "type");
    xmlNode *os = ch_xml_add(build->root, "os", NULL);
    xmlNode *type = ch_xml_add_text(os, "type", "hvm");

    ch_xml_set(type, "arch", "x86_64");
    ch_xml_set(type, "machine", machine == NULL || *machine == '\0' ? "q35" : machine);
    ch_xml_add(os, "smbios", "mode", "sysinfo", NULL);
    if (g_strcmp0(ch_json_string_at(build->input->vmi, "spec", "startStrategy"), "Paused") == 0)
        ch_xml_add(os, "bootmenu", "enable", "yes", "timeout", "10000", NULL);
    if (ch_json_bool_at(build->spec, false, "firmware", "bootloader", "bios", "useSerial"))
        ch_xml_add(os, "bios", "useserial", "yes", NULL);
    add_kernel_boot(build, os);
}

static void
add_entry(xmlNode *parent, const char *name, const char *value)
{
    xmlNode *entry = ch_xml_add_text(parent, "entry", value == NULL ? "" : value);

    ch_xml_set(entry, "name", name);
}

/* Chassis entries have the names of the VMI's own fields. */
static void
add_chassis(const ChDomainBuild *build, xmlNode *sysinfo)
{
    static const char *const keys[] = {"manufacturer", "version", "serial", "asset", "sku"};
    const ChJson *chassis = ch_json_at(build->spec, "chassis");

    if (!ch_json_is_object(chassis))
        return;
    xmlNode *node = ch_xml_add(sysinfo, "chassis", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        add_entry(node, keys[i], ch_json_string_at(chassis, keys[i]));
}

static void
add_sysinfo(const ChDomainBuild *build)
{
    const ChJson *firmware = ch_json_at(build->spec, "firmware");
    const char *uuid = ch_json_string_at(firmware, "uuid");
    const char *serial = ch_json_string_at(firmware, "serial");
    const Kubevirt__Cmd__V1__SMBios *smbios =
        build->input->options == NULL ? NULL : build->input->options->virtual_machine_smbios;
    xmlNode *sysinfo = ch_xml_add(build->root, "sysinfo", "type", "smbios", NULL);
    xmlNode *system = ch_xml_add(sysinfo, "system", NULL);

    /* An empty uuid is left out: libvirt would refuse it, and draws one itself without it. */
    if (uuid != NULL && *uuid != '\0')
        add_entry(system, "uuid", uuid);
    if (serial != NULL && *serial != '\0')
        add_entry(system, "serial", serial);
    if (smbios != NULL) {
        add_entry(system, "manufacturer", smbios->manufacturer);
        add_entry(system, "family", smbios->family);
        add_entry(system, "product", smbios->product);
        add_entry(system, "sku", smbios->sku);
        add_entry(system, "version", smbios->version);
    }
    add_chassis(build, sysinfo);
}

static void
add_metadata(const ChDomainBuild *build)
{
    xmlNode *metadata = ch_xml_add(build->root, "metadata", NULL);
    xmlNode *kubevirt = ch_xml_add(metadata, "kubevirt", NULL);

    xmlSetNs(kubevirt, xmlNewNs(kubevirt, BAD_CAST "http://kubevirt.io", NULL));
    ch_xml_add(kubevirt, "uid", NULL);
}

static bool
add_general(ChDomainBuild *build, GError **error)
{
    const ChJson *metadata = ch_json_at(build->input->vmi, "metadata");
    const char *reboot = ch_json_string_at(build->spec, "rebootPolicy");
    g_autofree char *name = ch_domain_name(ch_json_string_at(metadata, "namespace"),
                                           ch_json_string_at(metadata, "name"));
    char bytes[24];

    if (!read_memory(build, error))
        return false;
    g_snprintf(bytes, sizeof(bytes), "%" G_GUINT64_FORMAT, build->memory_bytes);
    ch_xml_add_text(build->root, "name", name);
    xmlNode *memory = ch_xml_add_text(build->root, "memory", bytes);
    ch_xml_set(memory, "unit", "b");
    add_metadata(build);
    add_os(build);
    add_sysinfo(build);
    ch_domain_build_features(build);
    if (!add_cpu(build, error))
        return false;
    ch_domain_build_clock(build);
    if (reboot != NULL)
        ch_xml_add_text(
            build->root, "on_reboot", g_str_equal(reboot, "Terminate") ? "destroy" : "restart");
    return true;
}

static bool
build_all(ChDomainBuild *build, GError **error)
{
    if (!check_supported(build->spec, error) || !add_general(build, error))
        return false;
    xmlNode *devices = ch_xml_add(build->root, "devices", NULL);
    return ch_domain_build_interfaces(build, devices, error) &&
           ch_domain_build_devices(build, devices, error) &&
           ch_domain_build_disks(build, devices, error);
}

static ChDomainBuild
new_build(const ChDomainInput *input, xmlDoc *doc)
{
    const ChJson *spec = ch_json_at(input->vmi, "spec", "domain");
    const ChJson *devices = ch_json_at(spec, "devices");

    return (ChDomainBuild){
        .input = input,
        .spec = spec,
        .devices = devices,
        .virtio = ch_json_bool_at(devices, false, "useVirtioTransitional")
                      ? "virtio-transitional"
                      : "virtio-non-transitional",
        .root = xmlDocGetRootElement(doc),
    };
}

/* For a part of the document. */
static bool
count_vcpus(ChDomainBuild *build, GError **error)
{
    Topology topology = {1, 1, 1};

    if (!read_topology(build, &topology, error))
        return false;
    build->n_vcpus = (guint64)(topology.sockets * topology.cores * topology.threads);
    return true;
}

char *
ch_domain_disks_build(const ChDomainInput *input, GError **error)
{
    g_autoptr(xmlDoc) doc = ch_xml_new("devices");
    ChDomainBuild build = new_build(input, doc);

    return count_vcpus(&build, error) && ch_domain_build_disks(&build, build.root, error)
               ? ch_xml_print(doc)
               : NULL;
}

char *
ch_domain_interface_build(const ChDomainInput *input, const char *name, GError **error)
{
    g_autoptr(xmlDoc) doc = ch_xml_new("devices");
    ChDomainBuild build = new_build(input, doc);
    const ChJson *interface = ch_json_find(ch_json_at(build.devices, "interfaces"), "name", name);
    xmlNode *node;

    if (!count_vcpus(&build, error) ||
        !ch_domain_build_interface(&build, build.root, interface, error))
        return NULL;
    node = ch_xml_child(build.root, "interface");
    if (node == NULL)
        ch_fail(error, CH_ERROR_INVALID, "interface %s is absent", name);
    return node != NULL ? ch_xml_print_node(node) : NULL;
}

char *
ch_domain_xml_build(const ChDomainInput *input, GError **error)
{
    g_autoptr(xmlDoc) doc = ch_xml_new("domain");
    const char *architecture = ch_json_string_at(input->vmi, "spec", "architecture");
    ChDomainBuild build = new_build(input, doc);

    if (ch_json_string_at(input->vmi, "metadata", "name") == NULL ||
        ch_json_string_at(input->vmi, "metadata", "namespace") == NULL) {
        ch_fail(error, CH_ERROR_INVALID, "the VMI has no name or no namespace");
        return NULL;
    }
    if (architecture != NULL && *architecture != '\0' && !g_str_equal(architecture, "amd64")) {
        ch_fail(error,
                CH_ERROR_INVALID,
                "architecture '%s' is not supported by this launcher",
                architecture);
        return NULL;
    }
    ch_xml_set(build.root, "type", input->is_emulated ? "qemu" : "kvm");
    return build_all(&build, error) ? ch_xml_print(doc) : NULL;
}
