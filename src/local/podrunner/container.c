/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/container.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "lib/linux/mount-space.h"
#include "lib/linux/pidfd.h"
#include "local/podrunner/crun.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/pod-object.h"
#include "local/podrunner/resolv-conf.h"

#define TIMEOUT_US  (30 * CH_SECOND_US)
#define UPPER_SIZE  "64m"
#define VOLUME_MODE (S_ISGID | 0777) /* kubelet's, with fsGroup */

/* --- the process ------------------------------------------------------------------------------ */

int
ch_container_open(const ChRecord *record)
{
    ch_autofd int pidfd = -EBADF;
    int64_t start_time = 0;

    if (record->pid <= 0)
        return -EBADF;
    pidfd = pidfd_open((pid_t)record->pid, 0);
    /* The descriptor pins the process, so the number means the same now. */
    if (pidfd < 0 || !ch_crun_start_time(record->pid, &start_time) ||
        start_time != record->start_time || !ch_pidfd_is_alive(pidfd))
        return -EBADF;
    return g_steal_fd(&pidfd);
}

bool
ch_container_signal(const ChRecord *record, int signo, GError **error)
{
    ch_autofd int pidfd = ch_container_open(record);
    int result;

    if (pidfd < 0)
        return true;
    result = ch_pidfd_kill(pidfd, signo);
    if (result < 0 && result != -ESRCH)
        return ch_fail_errno(error, -result, "signal process %" G_GINT64_FORMAT, record->pid);
    return true;
}

/* --- directories and files -------------------------------------------------------------------- */

static bool
make_directory(const char *path, mode_t mode, GError **error)
{
    if (g_mkdir_with_parents(path, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", path);
    if (chown(path, 0, CH_POD_USER) < 0 || chmod(path, mode) < 0)
        return ch_fail_errno(error, errno, "set mode of '%s'", path);
    return true;
}

static bool
make_volumes(const char *state_dir, const char *pod_uid, GError **error)
{
    for (gsize i = 0; i < ch_pod_n_volumes; i++) {
        g_autofree char *dir = ch_pod_volume_dir(state_dir, pod_uid, ch_pod_volumes[i].name);

        if (!make_directory(dir, VOLUME_MODE, error))
            return false;
    }
    return true;
}

/* A copy of this machine's @name with an entry for 107, unless it has one. */
static bool
write_account_file(const char *upper, const char *name, const char *entry, GError **error)
{
    g_autofree char *source = g_build_filename("/etc", name, NULL);
    g_autofree char *target = g_build_filename(upper, "etc", name, NULL);
    g_autofree char *text = NULL;
    g_autofree char *more = NULL;

    if (!g_file_get_contents(source, &text, NULL, error))
        return false;
    if (!g_regex_match_simple("^[^:\n]*:[^:\n]*:107:", text, G_REGEX_MULTILINE, 0)) {
        more = g_strconcat(text, g_str_has_suffix(text, "\n") ? "" : "\n", entry, NULL);
        return g_file_set_contents_full(target, more, -1, G_FILE_SET_CONTENTS_NONE, 0644, error);
    }
    return true;
}

static bool
write_resolv_conf(const char *upper, GError **error)
{
    g_autofree char *path = g_build_filename(upper, "etc/resolv.conf", NULL);
    g_autofree char *text = ch_resolv_conf_load();

    return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_NONE, 0644, error);
}

/* libvirt looks its own name up, and would ask name servers for it, which may take long to say no.
 */
static bool
write_hosts(const char *upper, const char *pod_name, GError **error)
{
    g_autofree char *path = g_build_filename(upper, "etc/hosts", NULL);
    g_autofree char *hostname = ch_pod_cut_name(pod_name);
    g_autofree char *text = g_strdup_printf("127.0.0.1 localhost\n"
                                            "::1 localhost ip6-localhost ip6-loopback\n"
                                            "127.0.1.1 %s\n",
                                            hostname);

    return g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_NONE, 0644, error);
}

static bool
write_etc(const char *upper, const char *pod_name, GError **error)
{
    g_autofree char *etc = g_build_filename(upper, "etc", NULL);

    if (g_mkdir_with_parents(etc, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", etc);
    return write_resolv_conf(upper, error) && write_hosts(upper, pod_name, error) &&
           write_account_file(upper, "passwd", "qemu:x:107:107::/:/usr/sbin/nologin\n", error) &&
           write_account_file(upper, "group", "qemu:x:107:\n", error);
}

/* --- the root --------------------------------------------------------------------------------- */

/* Mounted while crun moves in; @run_dir/scratch holds upper and work. */
typedef struct {
    char *scratch;
    char *path;
    bool has_scratch, has_overlay;
} Root;

static bool
root_mount(Root *root, const char *run_dir, const char *pod_name, GError **error)
{
    g_autofree char *upper = g_build_filename(run_dir, "scratch", "upper", NULL);
    g_autofree char *work = g_build_filename(run_dir, "scratch", "work", NULL);
    int result;

    root->scratch = g_build_filename(run_dir, "scratch", NULL);
    root->path = g_build_filename(run_dir, "rootfs", NULL);
    if (g_mkdir_with_parents(root->scratch, 0700) < 0 || g_mkdir_with_parents(root->path, 0755) < 0)
        return ch_fail_errno(error, errno, "create directories in '%s'", run_dir);
    /* In memory: overlayfs cannot write to every file system, to another overlay for one. */
    result = ch_mount_tmpfs(root->scratch, UPPER_SIZE);
    if (result < 0)
        return ch_fail_errno(error, -result, "mount tmpfs on '%s'", root->scratch);
    root->has_scratch = true;
    if (g_mkdir(upper, 0755) < 0 || g_mkdir(work, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", upper);
    if (!write_etc(upper, pod_name, error))
        return false;
    result = ch_mount_overlay("/", upper, work, root->path);
    if (result < 0)
        return ch_fail_errno(error, -result, "mount an overlay on '%s'", root->path);
    root->has_overlay = true;
    return true;
}

/* The container keeps its own. */
static void
root_clear(Root *root)
{
    if (root->has_overlay)
        (void)ch_mount_detach(root->path); /* gone with this program's namespace at the latest */
    if (root->has_scratch)
        (void)ch_mount_detach(root->scratch);
    g_free(root->path);
    g_free(root->scratch);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Root, root_clear)

/* --- */

static bool
write_config(const ChContainerSpec *spec,
             const ChJson *vmi,
             const ChPodFile *files,
             gsize n_files,
             const ChRecord *record,
             const char *run_dir,
             GError **error)
{
    g_autofree char *rootfs = g_build_filename(run_dir, "rootfs", NULL);
    g_autofree char *path = g_build_filename(run_dir, "config.json", NULL);
    g_autoptr(ChJson) config = ch_oci_config_new(&(ChOciSpec){
        .vmi = vmi,
        .state_dir = spec->state_dir,
        .pod_uid = record->uid,
        .pod_name = record->name,
        .rootfs = rootfs,
        .launcher = spec->launcher,
        .is_emulated = spec->is_emulated,
        .has_kvm = g_file_test("/dev/kvm", G_FILE_TEST_EXISTS),
        .has_tun = g_file_test("/dev/net/tun", G_FILE_TEST_EXISTS),
        .has_vhost_net = g_file_test("/dev/vhost-net", G_FILE_TEST_EXISTS),
        .verbosity = spec->verbosity,
        .files = files,
        .n_files = n_files,
    });
    g_autofree char *text = ch_json_print_pretty(config);

    return g_file_set_contents(path, text, -1, error);
}

bool
ch_container_start(const ChContainerSpec *spec,
                   const ChJson *vmi,
                   const ChPodFile *files,
                   gsize n_files,
                   ChRecord *record,
                   GError **error)
{
    g_autofree char *run_dir = ch_pod_run_dir(spec->state_dir, record->uid);
    const ChCrun crun = {spec->state_dir, record->uid, run_dir, "launcher.log"};
    g_auto(Root) root = {0};
    int64_t pid = 0;
    int64_t start_time = 0;

    if (!ch_crun_delete_all(spec->state_dir, record->uid, error) ||
        !make_volumes(spec->state_dir, record->uid, error) ||
        !root_mount(&root, run_dir, record->name, error) ||
        !write_config(spec, vmi, files, n_files, record, run_dir, error) ||
        !ch_crun_run(&crun, &pid, error))
        return false;
    /* Without a start time it has ended already; the number then stands for nobody. */
    (void)ch_crun_start_time(pid, &start_time);
    record->pid = pid;
    record->start_time = start_time;
    return true;
}

bool
ch_container_remove(const char *state_dir, const char *pod_uid, GError **error)
{
    g_autofree char *dir = ch_pod_dir(state_dir, pod_uid);
    const char *const argv[] = {"rm", "-rf", "--one-file-system", "--", dir, NULL};
    int result;

    if (!ch_crun_delete_all(state_dir, pod_uid, error))
        return false;
    /* What the agent left mounted: with the files, the mounts go in other namespaces too. */
    result = ch_mount_detach_below(dir);
    if (result < 0)
        return ch_fail_errno(error, -result, "unmount what is below '%s'", dir);
    return ch_command_run(&(ChCommand){argv, TIMEOUT_US, 0, 0}, NULL, error);
}
