/* SPDX-License-Identifier: Apache-2.0 */

/* domain-devices: every device but disks and interfaces. Spec 03 §13.3. */

#include "lib/base/errors.h"
#include "local/launcher/domain-internal.h"

static char *
private_socket(const ChDomainBuild *build, const char *file)
{
    return g_build_filename(build->input->paths.private_dir,
                            ch_json_string_at(build->input->vmi, "metadata", "uid"),
                            file,
                            NULL);
}

static bool
wants_serial_log(const ChDomainBuild *build)
{
    const Kubevirt__Cmd__V1__VirtualMachineOptions *options = build->input->options;
    const bool is_disabled = options != NULL && options->cluster_config != NULL &&
                             options->cluster_config->serial_console_log_disabled;

    return ch_json_bool_at(build->devices, !is_disabled, "logSerialConsole");
}

static void
add_console(const ChDomainBuild *build, xmlNode *devices)
{
    g_autofree char *path = private_socket(build, "virt-serial0");
    g_autofree char *log = private_socket(build, "virt-serial0-log");

    ch_xml_add(
        devices, "controller", "type", "virtio-serial", "index", "0", "model", build->virtio, NULL);
    xmlNode *serial = ch_xml_add(devices, "serial", "type", "unix", NULL);
    ch_xml_add(serial, "target", "port", "0", NULL);
    ch_xml_add(serial, "source", "mode", "bind", "path", path, NULL);
    if (wants_serial_log(build))
        ch_xml_add(serial, "log", "file", log, "append", "on", NULL);
    xmlNode *console = ch_xml_add(devices, "console", "type", "pty", NULL);
    ch_xml_add(console, "target", "type", "serial", "port", "0", NULL);
}

static void
add_graphics(const ChDomainBuild *build, xmlNode *devices)
{
    const char *type = ch_json_string_at(build->devices, "video", "type");
    g_autofree char *path = private_socket(build, "virt-vnc");

    xmlNode *graphics = ch_xml_add(devices, "graphics", "type", "vnc", NULL);
    ch_xml_add(graphics, "listen", "type", "socket", "socket", path, NULL);
    xmlNode *video = ch_xml_add(devices, "video", NULL);
    ch_xml_add(
        video, "model", "type", type == NULL ? "vga" : type, "heads", "1", "vram", "16384", NULL);
}

/* libvirt chooses where the channel's socket lies. */
static void
add_guest_agent(xmlNode *devices)
{
    xmlNode *channel = ch_xml_add(devices, "channel", "type", "unix", NULL);

    ch_xml_add(channel, "target", "type", "virtio", "name", "org.qemu.guest_agent.0", NULL);
}

/* QEMU listens, the agent connects, and the guest asks. */
static void
add_metrics_channel(const ChDomainBuild *build, xmlNode *devices)
{
    g_autofree char *path = g_build_filename(
        build->input->paths.private_dir, "downwardmetrics-channel", "downwardmetrics.sock", NULL);
    xmlNode *channel = ch_xml_add(devices, "channel", "type", "unix", NULL);

    ch_xml_add(channel, "source", "mode", "bind", "path", path, NULL);
    ch_xml_add(channel, "target", "type", "virtio", "name", "org.github.vhostmd.1", NULL);
}

static void
add_rng(const ChDomainBuild *build, xmlNode *devices)
{
    xmlNode *rng = ch_xml_add(devices, "rng", "model", build->virtio, NULL);
    xmlNode *backend = ch_xml_add_text(rng, "backend", "/dev/urandom");

    ch_xml_set(backend, "model", "random");
}

static void
add_balloon(const ChDomainBuild *build, xmlNode *devices)
{
    const Kubevirt__Cmd__V1__VirtualMachineOptions *options = build->input->options;
    const bool is_attached = ch_json_bool_at(build->devices, true, "autoattachMemBalloon");
    const bool is_reporting_off =
        !is_attached ||
        (options != NULL && options->cluster_config != NULL &&
         options->cluster_config->free_page_reporting_disabled) ||
        ch_domain_annotation_is(build, "kubevirt.io/free-page-reporting-disabled", "true");

    if (!is_attached) {
        ch_xml_add(devices, "memballoon", "model", "none", NULL);
        return;
    }
    xmlNode *balloon = ch_xml_add(devices,
                                  "memballoon",
                                  "model",
                                  build->virtio,
                                  "freePageReporting",
                                  is_reporting_off ? "off" : "on",
                                  NULL);
    if (options != NULL && options->mem_balloon_stats_period != 0)
        ch_xml_set_uint(
            ch_xml_add(balloon, "stats", NULL), "period", options->mem_balloon_stats_period);
}

static bool
add_inputs(const ChDomainBuild *build, xmlNode *devices, bool *out_needs_usb, GError **error)
{
    const ChJson *inputs = ch_json_at(build->devices, "inputs");

    for (gsize i = 0; i < ch_json_length(inputs); i++) {
        const ChJson *input = ch_json_item(inputs, i);
        const char *type = ch_json_string_at(input, "type");
        const char *bus = ch_json_string_at(input, "bus");
        const bool is_virtio = g_strcmp0(bus, "virtio") == 0;

        if (g_strcmp0(type, "tablet") != 0)
            return ch_fail(error,
                           CH_ERROR_INVALID,
                           "input contains unsupported type %s",
                           type == NULL ? "" : type);
        if (bus != NULL && *bus != '\0' && !is_virtio && !g_str_equal(bus, "usb"))
            return ch_fail(error, CH_ERROR_INVALID, "input contains unsupported bus %s", bus);
        xmlNode *node = ch_xml_add(devices,
                                   "input",
                                   "type",
                                   type,
                                   "bus",
                                   is_virtio ? "virtio" : "usb",
                                   "model",
                                   is_virtio ? "virtio" : NULL,
                                   NULL);
        if (ch_json_string_at(input, "name") != NULL)
            ch_domain_add_alias(node, ch_json_string_at(input, "name"));
        *out_needs_usb = *out_needs_usb || !is_virtio;
    }
    return true;
}

static bool
add_watchdog(const ChDomainBuild *build, xmlNode *devices, GError **error)
{
    const ChJson *watchdog = ch_json_at(build->devices, "watchdog");
    const char *name = ch_json_string_at(watchdog, "name");

    if (!ch_json_is_object(watchdog))
        return true;
    if (!ch_json_is_object(ch_json_at(watchdog, "i6300esb")))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "watchdog %s can't be mapped, no watchdog type specified",
                       name == NULL ? "" : name);
    xmlNode *node = ch_xml_add(devices,
                               "watchdog",
                               "model",
                               "i6300esb",
                               "action",
                               ch_json_string_at(watchdog, "i6300esb", "action"),
                               NULL);
    if (name != NULL)
        ch_domain_add_alias(node, name);
    return true;
}

static bool
add_sound(const ChDomainBuild *build, xmlNode *devices, GError **error)
{
    const ChJson *sound = ch_json_at(build->devices, "sound");
    const char *model = ch_json_string_at(sound, "model");

    if (!ch_json_is_object(sound))
        return true;
    if (model == NULL || *model == '\0')
        model = "ich9";
    if (!g_str_equal(model, "ich9") && !g_str_equal(model, "ac97"))
        return ch_fail(error, CH_ERROR_INVALID, "invalid model: %s", model);
    xmlNode *node = ch_xml_add(devices, "sound", "model", model, NULL);
    if (ch_json_string_at(sound, "name") != NULL)
        ch_domain_add_alias(node, ch_json_string_at(sound, "name"));
    return true;
}

static void
add_panic_devices(const ChDomainBuild *build, xmlNode *devices)
{
    const ChJson *list = ch_json_at(build->devices, "panicDevices");

    for (gsize i = 0; i < ch_json_length(list); i++)
        ch_xml_add(
            devices, "panic", "model", ch_json_string_at(ch_json_item(list, i), "model"), NULL);
}

static void
add_controllers(const ChDomainBuild *build, xmlNode *devices, bool has_usb_input)
{
    const bool needs_usb = has_usb_input || ch_domain_has_disk_bus(build, "usb");
    const char *pci_hole = ch_json_string_at(
        build->input->vmi, "metadata", "annotations", "kubevirt.io/disablePCIHole64");

    ch_xml_add(devices,
               "controller",
               "type",
               "usb",
               "index",
               "0",
               "model",
               needs_usb ? "qemu-xhci" : "none",
               NULL);
    if (!ch_json_bool_at(build->devices, false, "disableHotplug") ||
        ch_domain_has_disk_bus(build, "scsi"))
        ch_xml_add(
            devices, "controller", "type", "scsi", "index", "0", "model", build->virtio, NULL);
    if (pci_hole != NULL && g_ascii_strcasecmp(pci_hole, "true") == 0) {
        xmlNode *root = ch_xml_add(
            devices, "controller", "type", "pci", "index", "0", "model", "pcie-root", NULL);
        xmlNode *hole = ch_xml_add_text(root, "pcihole64", "0");

        ch_xml_set(hole, "unit", "KiB");
    }
}

bool
ch_domain_build_devices(ChDomainBuild *build, xmlNode *devices, GError **error)
{
    bool has_usb_input = false;

    if (ch_json_string_at(build->input->vmi, "metadata", "uid") == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "the VMI has no uid");
    if (ch_json_bool_at(build->devices, true, "autoattachSerialConsole"))
        add_console(build, devices);
    if (ch_json_bool_at(build->devices, true, "autoattachGraphicsDevice"))
        add_graphics(build, devices);
    add_guest_agent(devices);
    if (ch_json_is_object(ch_json_at(build->devices, "downwardMetrics")))
        add_metrics_channel(build, devices);
    if (ch_json_is_object(ch_json_at(build->devices, "rng")))
        add_rng(build, devices);
    add_balloon(build, devices);
    add_panic_devices(build, devices);
    if (!add_inputs(build, devices, &has_usb_input, error) ||
        !add_watchdog(build, devices, error) || !add_sound(build, devices, error))
        return false;
    add_controllers(build, devices, has_usb_input);
    return true;
}
