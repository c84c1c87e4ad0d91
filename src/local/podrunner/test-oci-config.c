/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/oci-config.h"

static ChJson *
new_named_config(const char *pod_name, bool is_emulated)
{
    static const ChPodFile files[] = {
        {"/images/a.img", "/var/run/kubevirt/container-disks/disk_0.img"}};
    g_autoptr(ChJson) vmi = ch_json_parse(
        "{\"metadata\":{\"name\":\"vm\",\"namespace\":\"lab\",\"uid\":\"u-1\"}}", -1, NULL);

    return ch_oci_config_new(&(ChOciSpec){.vmi = vmi,
                                          .state_dir = "/state",
                                          .pod_uid = "p-1",
                                          .pod_name = pod_name,
                                          .rootfs = "/state/run/p-1/rootfs",
                                          .launcher = "/opt/chandler-launcher",
                                          .is_emulated = is_emulated,
                                          .has_kvm = true,
                                          .has_tun = true,
                                          .has_vhost_net = true,
                                          .verbosity = 3,
                                          .files = files,
                                          .n_files = G_N_ELEMENTS(files)});
}

static ChJson *
new_config(bool is_emulated)
{
    return new_named_config("virt-launcher-vm-abcde", is_emulated);
}

static const ChJson *
find_mount(const ChJson *config, const char *destination)
{
    const ChJson *mounts = ch_json_at(config, "mounts");

    for (gsize i = 0; i < ch_json_length(mounts); i++) {
        const ChJson *mount = ch_json_item(mounts, i);

        if (g_strcmp0(ch_json_string_at(mount, "destination"), destination) == 0)
            return mount;
    }
    return NULL;
}

static bool
has_text(const ChJson *array, const char *text)
{
    for (gsize i = 0; i < ch_json_length(array); i++) {
        if (g_strcmp0(ch_json_as_string(ch_json_item(array, i)), text) == 0)
            return true;
    }
    return false;
}

static void
test_process(void)
{
    g_autoptr(ChJson) config = new_config(true);
    const ChJson *process = ch_json_at(config, "process");
    const ChJson *args = ch_json_at(process, "args");
    int64_t uid = 0;

    g_assert_true(ch_json_int_at(process, &uid, "user", "uid"));
    g_assert_cmpint(uid, ==, 107);
    g_assert_cmpuint(ch_json_length(ch_json_at(process, "capabilities", "permitted")), ==, 0);
    g_assert_true(ch_json_bool_at(process, false, "noNewPrivileges"));
    g_assert_true(has_text(args, "u-1"));
    g_assert_true(has_text(args, "45")); /* 30 by default, and the padding */
    g_assert_cmpstr(ch_json_string_at(config, "hostname"), ==, "virt-launcher-vm-abcde");
}

/* The kernel takes 64 bytes. */
static void
test_long_name(void)
{
    g_autoptr(ChJson) config = new_named_config(
        "virt-launcher-a-name-of-more-than-sixty-three-bytes-cut-after-a-dash-abcde", true);

    g_assert_cmpstr(ch_json_string_at(config, "hostname"),
                    ==,
                    "virt-launcher-a-name-of-more-than-sixty-three-bytes-cut-after-a");
}

static void
test_mounts(void)
{
    g_autoptr(ChJson) config = new_config(true);
    const ChJson *sockets = find_mount(config, "/var/run/kubevirt/sockets");
    const ChJson *disk = find_mount(config, "/var/run/kubevirt/container-disks/disk_0.img");

    g_assert_cmpstr(ch_json_string_at(sockets, "source"),
                    ==,
                    "/state/pods/p-1/volumes/kubernetes.io~empty-dir/sockets");
    g_assert_true(has_text(ch_json_at(sockets, "options"), "rw"));
    g_assert_cmpstr(ch_json_string_at(disk, "source"), ==, "/images/a.img");
    g_assert_true(has_text(ch_json_at(disk, "options"), "ro"));
    g_assert_nonnull(find_mount(config, "/usr/bin/virt-launcher"));
    g_assert_true(has_text(ch_json_at(config, "linux", "maskedPaths"), "/state"));
}

static void
test_namespaces(void)
{
    g_autoptr(ChJson) config = new_config(true);
    const ChJson *namespaces = ch_json_at(config, "linux", "namespaces");

    g_assert_cmpuint(ch_json_length(namespaces), ==, 5);
    g_assert_cmpstr(ch_json_string_at(config, "linux", "cgroupsPath"), ==, "/chandler-podp-1");
}

static bool
has_device(const ChJson *config, const char *path)
{
    const ChJson *devices = ch_json_at(config, "linux", "devices");

    for (gsize i = 0; i < ch_json_length(devices); i++) {
        if (g_strcmp0(ch_json_string_at(ch_json_item(devices, i), "path"), path) == 0)
            return true;
    }
    return false;
}

static void
test_devices(void)
{
    g_autoptr(ChJson) emulated = new_config(true);
    g_autoptr(ChJson) accelerated = new_config(false);

    g_assert_false(has_device(emulated, "/dev/kvm"));
    g_assert_true(has_device(accelerated, "/dev/kvm"));
    g_assert_true(has_device(emulated, "/dev/net/tun"));
    g_assert_false(has_device(emulated, "/dev/vhost-net"));
    g_assert_true(has_device(accelerated, "/dev/vhost-net"));
    /* everything is forbidden first */
    g_assert_false(ch_json_bool_at(
        ch_json_item(ch_json_at(emulated, "linux", "resources", "devices"), 0), true, "allow"));
}

static bool
has_option(const ChJson *mount, const char *option)
{
    const ChJson *options = ch_json_at(mount, "options");

    for (gsize i = 0; i < ch_json_length(options); i++) {
        if (g_strcmp0(ch_json_as_string(ch_json_item(options, i)), option) == 0)
            return true;
    }
    return false;
}

/* What the agent mounts on this machine later must appear in the launcher's container. */
static void
test_propagation(void)
{
    g_autoptr(ChJson) config = new_config(true);

    g_assert_cmpstr(ch_json_string_at(config, "linux", "rootfsPropagation"), ==, "rslave");
    g_assert_true(has_option(find_mount(config, "/var/run/kubevirt/container-disks"), "rslave"));
    g_assert_true(has_option(find_mount(config, "/var/run/kubevirt/hotplug-disks"), "rslave"));
    g_assert_false(has_option(find_mount(config, "/var/run/kubevirt/sockets"), "rslave"));
}

static void
test_holder(void)
{
    static const ChPodFile files[] = {{"/cache/root.qcow2", "/disk/root.qcow2", false},
                                      {"/data/vol", "/vol", true}};
    g_autoptr(ChJson) config =
        ch_oci_holder_config_new(&(ChOciHolderSpec){.program = "/opt/chandler-container-disk",
                                                    .rootfs = "/state/run/p-1/disk_0/rootfs",
                                                    .id = "p-1-disk_0",
                                                    .socket = "disk_0.sock",
                                                    .shared_dir = "/state/pods/p-1/disks",
                                                    .temporary_dir = "/other",
                                                    .files = files,
                                                    .n_files = G_N_ELEMENTS(files)});
    const ChJson *args = ch_json_at(config, "process", "args");
    const char *socket = ch_json_as_string(ch_json_item(args, 1));
    g_autofree char *shared = g_path_get_dirname(socket);
    int64_t uid = 0;

    g_assert_cmpuint(ch_json_length(args), ==, 2);
    g_assert_true(g_str_has_suffix(socket, "/disk_0.sock"));
    g_assert_cmpstr(
        ch_json_string_at(find_mount(config, shared), "source"), ==, "/state/pods/p-1/disks");
    g_assert_true(has_option(find_mount(config, shared), "rw"));
    g_assert_true(has_option(find_mount(config, "/disk/root.qcow2"), "ro"));
    g_assert_true(has_option(find_mount(config, "/vol"), "rw"));
    g_assert_cmpstr(ch_json_string_at(find_mount(config, "/other"), "type"), ==, "tmpfs");
    g_assert_cmpstr(
        ch_json_string_at(config, "linux", "cgroupsPath"), ==, "/chandler-podp-1-disk_0");
    g_assert_true(ch_json_int_at(config, &uid, "process", "user", "uid"));
    g_assert_cmpint(uid, ==, 107);
    g_assert_cmpuint(
        ch_json_length(ch_json_at(config, "process", "capabilities", "bounding")), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/oci-config/process", test_process);
    g_test_add_func("/oci-config/long-name", test_long_name);
    g_test_add_func("/oci-config/mounts", test_mounts);
    g_test_add_func("/oci-config/namespaces", test_namespaces);
    g_test_add_func("/oci-config/devices", test_devices);
    g_test_add_func("/oci-config/propagation", test_propagation);
    g_test_add_func("/oci-config/holder", test_holder);
    return g_test_run();
}
