/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/oci-config.h"

#include "local/podrunner/pod-layout.h"
#include "local/podrunner/pod-object.h"

#define LAUNCHER "/usr/bin/virt-launcher" /* its path in the pod */
#define STATE_DIRS_HIDDEN                                                                          \
    "\"/home\", \"/root\", \"/srv\", \"/mnt\", \"/media\", \"/opt\", \"/boot\", \"/var/lib/dpkg\""

/*
 * What is the same for every pod. The root is this machine's own, below an overlay: QEMU and
 * libvirt come from there. What else lies there is hidden as far as it is somebody's; the rest is
 * as safe as file permissions make it, for a user without capabilities. The launcher serves DHCP,
 * for which such a user must have port 67.
 */
static const char template[] =
    "{\"ociVersion\": \"1.0.2\","
    " \"process\": {\"terminal\": false, \"cwd\": \"/\", \"noNewPrivileges\": true,"
    "  \"env\": [\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\","
    "            \"LANG=C.UTF-8\"],"
    "  \"capabilities\": {\"bounding\": [], \"effective\": [], \"inheritable\": [],"
    "                     \"permitted\": [], \"ambient\": []}},"
    " \"root\": {},"
    " \"mounts\": ["
    "  {\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\","
    "   \"options\": [\"nosuid\", \"noexec\", \"nodev\"]},"
    "  {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
    "   \"options\": [\"nosuid\", \"strictatime\", \"mode=755\", \"size=65536k\"]},"
    "  {\"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\", \"options\":"
    "   [\"nosuid\", \"noexec\", \"newinstance\", \"ptmxmode=0666\", \"mode=0620\"]},"
    "  {\"destination\": \"/dev/shm\", \"type\": \"tmpfs\", \"source\": \"shm\","
    "   \"options\": [\"nosuid\", \"noexec\", \"nodev\", \"mode=1777\", \"size=65536k\"]},"
    "  {\"destination\": \"/dev/mqueue\", \"type\": \"mqueue\", \"source\": \"mqueue\","
    "   \"options\": [\"nosuid\", \"noexec\", \"nodev\"]},"
    "  {\"destination\": \"/sys\", \"type\": \"sysfs\", \"source\": \"sysfs\","
    "   \"options\": [\"nosuid\", \"noexec\", \"nodev\", \"ro\"]},"
    "  {\"destination\": \"/run\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
    "   \"options\": [\"nosuid\", \"nodev\", \"mode=755\", \"size=65536k\"]},"
    "  {\"destination\": \"/tmp\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
    "   \"options\": [\"nosuid\", \"nodev\", \"mode=1777\", \"size=65536k\"]},"
    "  {\"destination\": \"/var/tmp\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
    "   \"options\": [\"nosuid\", \"nodev\", \"mode=1777\", \"size=65536k\"]}],"
    " \"linux\": {\"rootfsPropagation\": \"rslave\","
    "  \"sysctl\": {\"net.ipv4.ip_unprivileged_port_start\": \"0\"},"
    "  \"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"}, {\"type\": \"ipc\"},"
    "                   {\"type\": \"uts\"}, {\"type\": \"mount\"}],"
    "  \"resources\": {\"devices\": [{\"allow\": false, \"access\": \"rwm\"}]},"
    "  \"devices\": [],"
    "  \"maskedPaths\": [\"/proc/acpi\", \"/proc/kcore\", \"/proc/keys\", \"/proc/latency_stats\","
    "   \"/proc/timer_list\", \"/proc/timer_stats\", \"/proc/sched_debug\", \"/proc/scsi\","
    "   \"/sys/firmware\", " STATE_DIRS_HIDDEN "],"
    "  \"readonlyPaths\": [\"/proc/bus\", \"/proc/fs\", \"/proc/irq\", \"/proc/sys\","
    "   \"/proc/sysrq-trigger\"]}}";

static void
append_text(ChJson *array, const char *text)
{
    ch_json_append(array, ch_json_new_string(text));
}

static void
add_flag(ChJson *args, const char *flag, const char *value)
{
    append_text(args, flag);
    append_text(args, value);
}

static ChJson *
new_args(const ChOciSpec *spec)
{
    ChJson *args = ch_json_new_array();
    g_autofree char *grace = g_strdup_printf(
        "%" G_GINT64_FORMAT, ch_vmi_grace_seconds(spec->vmi) + CH_LAUNCHER_GRACE_PADDING_S);
    g_autofree char *verbosity = g_strdup_printf("%d", spec->verbosity);

    append_text(args, LAUNCHER);
    add_flag(args, "--name", ch_json_string_at(spec->vmi, "metadata", "name"));
    add_flag(args, "--namespace", ch_json_string_at(spec->vmi, "metadata", "namespace"));
    add_flag(args, "--uid", ch_json_string_at(spec->vmi, "metadata", "uid"));
    add_flag(args, "--kubevirt-share-dir", "/var/run/kubevirt");
    add_flag(args, "--ephemeral-disk-dir", "/var/run/kubevirt-ephemeral-disks");
    add_flag(args, "--container-disk-dir", CH_POD_CONTAINER_DISKS);
    add_flag(args, "--grace-period-seconds", grace);
    add_flag(args, "--emulation", spec->is_emulated ? "on" : "off");
    add_flag(args, "-v", verbosity);
    return args;
}

static ChJson *
add_mount(ChJson *mounts, const char *type, const char *source, const char *target)
{
    ChJson *mount = ch_json_new_object();

    ch_json_set_string(mount, "destination", target);
    ch_json_set_string(mount, "type", type);
    ch_json_set_string(mount, "source", source);
    ch_json_set(mount, "options", ch_json_new_array());
    ch_json_append(mounts, mount);
    return ch_json_at(mount, "options");
}

static void
add_bind(ChJson *mounts, const char *source, const char *target, bool is_read_only)
{
    ChJson *options = add_mount(mounts, "bind", source, target);

    append_text(options, "bind");
    append_text(options, is_read_only ? "ro" : "rw");
    append_text(options, "nodev");
    append_text(options, "nosuid");
}

/* What the agent mounts in it on this machine later appears in the container. Device nodes in it
 * are the agent's: the device cgroup says which may be opened. */
static void
add_volume(ChJson *mounts, const char *source, const ChPodVolume *volume)
{
    ChJson *options;

    if (!volume->is_propagated) {
        add_bind(mounts, source, volume->mount_path, false);
        return;
    }
    options = add_mount(mounts, "bind", source, volume->mount_path);
    append_text(options, "rbind");
    append_text(options, "rw");
    append_text(options, "nosuid");
    append_text(options, "rslave");
}

static void
add_mounts(ChJson *mounts, const ChOciSpec *spec)
{
    for (gsize i = 0; i < ch_pod_n_volumes; i++) {
        g_autofree char *dir =
            ch_pod_volume_dir(spec->state_dir, spec->pod_uid, ch_pod_volumes[i].name);

        add_volume(mounts, dir, &ch_pod_volumes[i]);
    }
    add_bind(mounts, spec->launcher, LAUNCHER, true);
    for (gsize i = 0; i < spec->n_files; i++)
        add_bind(mounts, spec->files[i].source, spec->files[i].target, !spec->files[i].is_writable);
}

/* Belongs to nobody until the agent gives it away. */
static void
add_device(ChJson *linux_part, const char *path, int64_t major, int64_t minor)
{
    ChJson *device = ch_json_new_object();
    ChJson *rule = ch_json_new_object();

    ch_json_set_string(device, "path", path);
    ch_json_set_string(device, "type", "c");
    ch_json_set_int(device, "major", major);
    ch_json_set_int(device, "minor", minor);
    ch_json_set_int(device, "fileMode", 0660);
    ch_json_set_int(device, "uid", 0);
    ch_json_set_int(device, "gid", CH_POD_USER);
    ch_json_append(ch_json_at(linux_part, "devices"), device);

    ch_json_set_bool(rule, "allow", true);
    ch_json_set_string(rule, "type", "c");
    ch_json_set_int(rule, "major", major);
    ch_json_set_int(rule, "minor", minor);
    ch_json_set_string(rule, "access", "rwm");
    ch_json_append(ch_json_at(linux_part, "resources", "devices"), rule);
}

ChJson *
ch_oci_config_new(const ChOciSpec *spec)
{
    ChJson *config = ch_json_parse(template, -1, NULL);
    ChJson *process = ch_json_at(config, "process");
    ChJson *linux_part = ch_json_at(config, "linux");
    ChJson *user = ch_json_ensure_object(process, "user");
    g_autofree char *hostname = ch_pod_cut_name(spec->pod_name);
    g_autofree char *cgroup = g_strdup_printf("/chandler-pod%s", spec->pod_uid);

    ch_json_set_int(user, "uid", CH_POD_USER);
    ch_json_set_int(user, "gid", CH_POD_USER);
    ch_json_set(process, "args", new_args(spec));
    ch_json_set_string(ch_json_at(config, "root"), "path", spec->rootfs);
    ch_json_set_string(config, "hostname", hostname);
    ch_json_set_string(linux_part, "cgroupsPath", cgroup);
    append_text(ch_json_at(linux_part, "maskedPaths"), spec->state_dir);
    add_mounts(ch_json_at(config, "mounts"), spec);
    if (!spec->is_emulated && spec->has_kvm)
        add_device(linux_part, "/dev/kvm", 10, 232);
    if (spec->has_tun)
        add_device(linux_part, "/dev/net/tun", 10, 200);
    if (!spec->is_emulated && spec->has_vhost_net)
        add_device(linux_part, "/dev/vhost-net", 10, 238);
    return config;
}

/* --- containers that hold files --------------------------------------------------------------- */

#define HOLDER     "/usr/bin/container-disk"
#define SHARED_DIR "/var/run/kubevirt/container-disks" /* anywhere: the agent looks for it */

/* Its root holds nothing but what is bound into it. */
static const char holder_template[] =
    "{\"ociVersion\": \"1.0.2\","
    " \"process\": {\"terminal\": false, \"cwd\": \"/\", \"noNewPrivileges\": true,"
    "  \"env\": [\"PATH=/usr/bin\"],"
    "  \"capabilities\": {\"bounding\": [], \"effective\": [], \"inheritable\": [],"
    "                     \"permitted\": [], \"ambient\": []}},"
    " \"root\": {\"readonly\": true},"
    " \"mounts\": ["
    "  {\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\","
    "   \"options\": [\"nosuid\", \"noexec\", \"nodev\"]},"
    "  {\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\","
    "   \"options\": [\"nosuid\", \"noexec\", \"mode=755\", \"size=64k\"]}],"
    " \"linux\": {"
    "  \"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"network\"}, {\"type\": \"ipc\"},"
    "                   {\"type\": \"uts\"}, {\"type\": \"mount\"}],"
    "  \"resources\": {\"devices\": [{\"allow\": false, \"access\": \"rwm\"}]}}}";

ChJson *
ch_oci_holder_config_new(const ChOciHolderSpec *spec)
{
    ChJson *config = ch_json_parse(holder_template, -1, NULL);
    ChJson *process = ch_json_at(config, "process");
    ChJson *user = ch_json_ensure_object(process, "user");
    ChJson *mounts = ch_json_at(config, "mounts");
    ChJson *args = ch_json_new_array();
    g_autofree char *cgroup = g_strdup_printf("/chandler-pod%s", spec->id);
    g_autofree char *socket = g_build_filename(SHARED_DIR, spec->socket, NULL);

    append_text(args, HOLDER);
    append_text(args, socket);
    ch_json_set(process, "args", args);
    ch_json_set_int(user, "uid", CH_POD_USER);
    ch_json_set_int(user, "gid", CH_POD_USER);
    ch_json_set_string(ch_json_at(config, "root"), "path", spec->rootfs);
    ch_json_set_string(ch_json_at(config, "linux"), "cgroupsPath", cgroup);
    add_bind(mounts, spec->program, HOLDER, true);
    add_bind(mounts, spec->shared_dir, SHARED_DIR, false);
    if (spec->temporary_dir != NULL) {
        ChJson *options = add_mount(mounts, "tmpfs", "tmpfs", spec->temporary_dir);

        append_text(options, "nosuid");
        append_text(options, "nodev");
        append_text(options, "mode=755");
        append_text(options, "size=64k");
    }
    for (gsize i = 0; i < spec->n_files; i++)
        add_bind(mounts, spec->files[i].source, spec->files[i].target, !spec->files[i].is_writable);
    return config;
}
