/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-all: a pod with all that any operation of the hands touches: its launcher and VM in
 * namespaces of their own, who serves disks, metrics and passt, an attachment pod, devices,
 * cgroups, and a tree that stands for the node. Needs root, and a process of the test's own to
 * mount in. For test programs only.
 */

#pragma once

#define FAKE_VM_SECONDS 1200

#include <linux/if.h>
#include <linux/if_tun.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>

#include "handler/hands/cache.h"
#include "handler/hands/inside-daemons.h"
#include "handler/hands/inside-own.h"
#include "handler/hands/launcher.h"
#include "handler/hands/mount-spaces.h"
#include "handler/hands/target.h"
#include "handler/hands/test-fake-cgroup.h"
#include "handler/hands/test-fake-disk.h"
#include "handler/hands/test-fake-passt.h"
#include "handler/hands/test-fake-vm.h"

#define FAKE_ALL_ATTACHMENT "aaaabbbb-0000-4000-8000-000000000009"
#define FAKE_ALL_VMI        "1111bbbb-0000-4000-8000-000000000001"
#define FAKE_ALL_PRIVATE    "run/kubevirt-private"
#define FAKE_ALL_BLOCK      makedev(482, 64) /* of nothing: nodes are made, never opened */
#define FAKE_ALL_VFIO       makedev(511, 1048575)
#define FAKE_ALL_LABEL      "system_u:object_r:container_file_t:s0:c1,c2"

typedef struct {
    FakePod pod;
    FakeVm vm;
    FakeDisk disk, boot, volume;
    FakeCgroup devices, cpuset; /* the pod's */
    FakeCgroup unified;         /* the same, of the v2 hierarchy */
    pid_t server;               /* of what else listens in the pod */
    pid_t pit;                  /* looks like the kernel's timer thread; 0: none */
    bool has_label;             /* the pod's root has one */
    char *share, *run, *node;   /* the node's directories */
    char *private_dir, *sysfs;
} FakeAll;

/* (transfer full): below the temporary directory */
static inline char *
fake_all_path(const FakeAll *all, const char *below)
{
    return g_build_filename(all->pod.dir, below, NULL);
}

static inline void
fake_all_node(const FakeAll *all, const char *below, mode_t mode, dev_t number)
{
    g_autofree char *path = fake_all_path(all, below);

    (void)unlink(path);
    g_assert_cmpint(mknod(path, mode, number), ==, 0);
}

/* --- files */

static inline void
fake_all_devices(const FakeAll *all)
{
    const struct {
        const char *path;
        dev_t number;
    } nodes[] = {
        {"root/dev/kvm", makedev(10, 232)},
        {"root/dev/mshv", makedev(10, 101)},
        {"root/dev/vhost-vsock", makedev(10, 241)},
        {"root/dev/sev", makedev(10, 102)},
        {"root/dev/vfio/vfio", makedev(10, 196)},
        {"root/dev/vfio/7", FAKE_ALL_VFIO},
        {"root/dev/vhost-net", makedev(10, 238)},
        {"root/dev/net/tun", makedev(10, 200)},
        {"root/dev/urandom", makedev(1, 9)},
    };
    g_autofree char *dev = fake_all_path(all, "root/dev");
    g_autofree char *sysfs = fake_all_path(all, "sysfs");

    g_assert_cmpint(mount("tmpfs", dev, "tmpfs", 0, "mode=755"), ==, 0);
    test_tree_mkdir(dev, "net");
    test_tree_mkdir(dev, "vfio");
    for (gsize i = 0; i < G_N_ELEMENTS(nodes); i++)
        fake_all_node(all, nodes[i].path, S_IFCHR | 0600, nodes[i].number);
    fake_all_node(all, "root/dev/block", S_IFBLK | 0600, FAKE_ALL_BLOCK);
    test_tree_mkdir(sysfs, "dev/char");
    test_tree_link(sysfs, "dev/char/10:101", "../../devices/virtual/misc/mshv");
    test_tree_link(sysfs, "dev/char/10:102", "../../devices/virtual/misc/sev");
    test_tree_link(sysfs, "dev/char/511:1048575", "../../devices/virtual/vfio/7");
}

static inline void
fake_all_files(FakeAll *all)
{
    const char *root = all->pod.root;
    g_autofree char *cache =
        fake_all_path(all, "private/" CH_HANDS_CACHE_DIR "/" FAKE_ALL_VMI "/.net.new");
    g_autofree char *cache_dir = g_path_get_dirname(cache);
    g_autofree char *daemons = fake_all_path(all, "share/daemons/pr");
    g_autofree char *run = fake_all_path(all, "run");
    g_autofree char *node = fake_all_path(all, "node");

    test_tree_mkdir(node, "sys/fs/selinux"); /* SELinux, enforcing */
    test_tree_write(node, "sys/fs/selinux/enforce", "1");
    test_tree_mkdir(node, run); /* as the node's root would show it */
    test_tree_mkdir(root, FAKE_ALL_PRIVATE "/secret-disks");
    test_tree_write(root, FAKE_ALL_PRIVATE "/secret-disks/v.iso", "image");
    test_tree_mkdir(root, FAKE_ALL_PRIVATE "/downwardapi-disks");
    test_tree_write(root, FAKE_ALL_PRIVATE "/downwardapi-disks/vhostmd0", "1");
    test_tree_mkdir(root, FAKE_ALL_PRIVATE "/downwardmetrics-channel");
    test_tree_mkdir(root, FAKE_ALL_PRIVATE "/vmi-disks/data");
    test_tree_mkdir(root, "run/kubevirt/virtiofs-containers");
    test_tree_mkdir(root, FAKE_PASST_DIR);
    fake_all_node(all, "root/run/kubevirt/virtiofs-containers/share.sock", S_IFSOCK | 0600, 0);
    all->has_label =
        setxattr(root, "security.selinux", FAKE_ALL_LABEL, sizeof(FAKE_ALL_LABEL), 0) == 0;
    g_assert_cmpint(g_mkdir_with_parents(cache_dir, 0755), ==, 0);
    test_tree_write(cache_dir, ".net.new", "{}");
    test_tree_mkdir(daemons, ".");
    test_tree_mkdir(run, ".");
    close(fake_pod_listen(daemons, "pr-helper.sock"));
    close(fake_pod_listen(run, "multipathd.socket"));
    fake_all_devices(all);
}

/* --- processes */

/* What listens for metrics takes connections. passt has one of its sockets set to repair mode by
 * whoever comes, and goes. */
static inline void
fake_all_serve(int metrics_fd, int passt_fd)
{
    const int tcp_fd = fake_passt_tcp(true);
    struct pollfd fds[] = {{.fd = metrics_fd, .events = POLLIN},
                           {.fd = passt_fd, .events = POLLIN}};

    for (;;) {
        int fd;

        (void)poll(fds, G_N_ELEMENTS(fds), -1);
        if (fds[0].revents != 0)
            close(accept4(metrics_fd, NULL, NULL, SOCK_CLOEXEC));
        if (fds[1].revents == 0)
            continue;
        fd = accept4(passt_fd, NULL, NULL, SOCK_CLOEXEC);
        fake_passt_send(fd, 1, &tcp_fd, 1);
        (void)fake_passt_echo(fd);
        close(fd);
    }
}

static inline void
fake_all_start_server(FakeAll *all)
{
    g_autofree char *channel =
        fake_all_path(all, "root/" FAKE_ALL_PRIVATE "/downwardmetrics-channel");
    const int metrics_fd = fake_pod_listen_with(channel, "downwardmetrics.sock", SOMAXCONN);
    const int passt_fd = fake_passt_listen(all->pod.root, "vm.socket.repair");

    g_assert_cmpint(listen(passt_fd, SOMAXCONN), ==, 0); /* who accepts may be late */
    all->server = fork();
    if (all->server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake_all_serve(metrics_fd, passt_fd);
    }
    close(metrics_fd);
    close(passt_fd);
}

static inline void
fake_all_be_launcher(const FakeAll *all, int ready_fd)
{
    if (fork() == 0)
        fake_vm_sleep("virtqemud");
    (void)prctl(PR_SET_NAME, "virt-launcher");
    fake_pod_must(unshare(CLONE_NEWNET) == 0, "unshare");
    fake_pod_launcher(&all->pod, ready_fd, false);
}

/* Its monitor is the init of a pid namespace. */
static inline void
fake_all_be_keeper(const FakeAll *all, int ready_fd)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    fake_pod_must(unshare(CLONE_NEWPID) == 0, "unshare");
    if (fork() == 0) {
        if (fork() == 0)
            fake_all_be_launcher(all, ready_fd);
        if (fork() == 0)
            fake_vm_qemu();
        fake_vm_sleep("monitor");
    }
    fake_vm_sleep("keeper");
}

static inline void
fake_all_start_vm(FakeAll *all)
{
    int ready[2];
    pid_t inner;

    g_assert_cmpint(pipe2(ready, O_CLOEXEC), ==, 0);
    all->pod.accepts = true;
    all->vm.keeper = fork();
    if (all->vm.keeper == 0)
        fake_all_be_keeper(all, ready[1]);
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &inner, sizeof(inner)), ==, sizeof(inner));
    close(ready[0]);
    all->vm.monitor = fake_vm_find(all->vm.keeper, "monitor");
    all->vm.launcher = all->pod.pid = fake_vm_find(all->vm.monitor, "virt-launcher");
    all->vm.qemu = fake_vm_find(all->vm.monitor, "qemu-system-x86");
    all->vm.virtqemud = fake_vm_find(all->vm.launcher, "virtqemud");
    all->vm.pidfd = -EBADF;
}

/* A process whose /proc/PID/stat says that it is the kernel's thread for QEMU's timer. */
static inline void
fake_all_start_pit(FakeAll *all)
{
    g_autofree char *name =
        g_strdup_printf("kvm-pit/%d", ch_process_inner_pid(all->pod.pid, all->vm.qemu));
    g_autofree char *path = NULL;
    g_autofree char *fake = fake_all_path(all, "pit-stat");
    g_autofree char *text = NULL;

    all->pit = fork();
    if (all->pit == 0)
        fake_vm_sleep(name);
    path = g_strdup_printf("/proc/%d/stat", (int)all->pit);
    text = g_strdup_printf("%d (%s) S 2 0 0 0 -1 %d 0", (int)all->pit, name, 0x00200040);
    test_tree_write(all->pod.dir, "pit-stat", text);
    if (mount(fake, path, NULL, MS_BIND, NULL) < 0)
        g_test_message("no such thread: mount over %s: %s", path, g_strerror(errno));
}

/* --- cgroups */

static inline void
fake_all_copy(const FakeCgroup *cgroup, const char *file)
{
    g_autofree char *above = g_build_filename("..", file, NULL);
    g_autofree char *text = fake_cgroup_read(cgroup, above);

    g_assert_true(fake_cgroup_write(cgroup, file, text));
}

/* Both, or none. The list of devices holds. */
static inline void
fake_all_cgroups(FakeAll *all)
{
    fake_cgroup_init(&all->devices, "/sys/fs/cgroup/devices", "devices.list");
    fake_cgroup_init(&all->cpuset, "/sys/fs/cgroup/cpuset", "cpuset.cpus");
    fake_cgroup_init(&all->unified, "/sys/fs/cgroup/unified", "cgroup.controllers");
    if (all->unified.dir != NULL)
        fake_cgroup_take(&all->unified, all->pod.pid);
    if (all->devices.dir == NULL || all->cpuset.dir == NULL)
        return;
    g_assert_true(fake_cgroup_write(&all->devices, "devices.deny", "a"));
    g_assert_true(fake_cgroup_write(&all->devices, "devices.allow", "c *:* rwm"));
    fake_all_copy(&all->cpuset, "cpuset.cpus");
    fake_all_copy(&all->cpuset, "cpuset.mems");
    fake_cgroup_take(&all->devices, all->pod.pid);
    fake_cgroup_take(&all->cpuset, all->pod.pid);
    fake_cgroup_take(&all->cpuset, all->vm.qemu);
    fake_cgroup_take(&all->cpuset, all->vm.virtqemud);
}

/* (transfer full) */
static inline char *
fake_all_proc_cgroup(const FakeAll *all)
{
    return g_strdup_printf("/proc/%d/cgroup", (int)all->pod.pid);
}

/* For who reads /proc, as where there is no v1 hierarchy. */
static inline void
fake_all_show_unified(const FakeAll *all)
{
    g_autofree char *path = fake_all_proc_cgroup(all);
    g_autofree char *fake = fake_all_path(all, "launcher-cgroup");
    g_autofree char *text = NULL;
    const char *line;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    line = g_strrstr(text, "0::");
    g_assert_nonnull(line);
    test_tree_write(all->pod.dir, "launcher-cgroup", line);
    g_assert_cmpint(mount(fake, path, NULL, MS_BIND, NULL), ==, 0);
}

static inline void
fake_all_show_all_cgroups(const FakeAll *all)
{
    g_autofree char *path = fake_all_proc_cgroup(all);

    g_assert_cmpint(umount2(path, MNT_DETACH), ==, 0);
}

static inline bool
fake_all_has_cgroups(const FakeAll *all)
{
    return all->devices.dir != NULL && all->cpuset.dir != NULL;
}

/* --- all of it */

static inline void
fake_all_disks(FakeAll *all)
{
    g_autofree char *disks = g_build_filename(all->pod.pods_dir, FAKE_POD_UID, FAKE_DISKS, NULL);
    g_autofree char *plugged =
        g_build_filename(all->pod.pods_dir, FAKE_POD_UID, FAKE_HOTPLUG, NULL);
    g_autofree char *attached =
        g_build_filename(all->pod.pods_dir, FAKE_ALL_ATTACHMENT, FAKE_HOTPLUG, NULL);
    FakeDisk *const served[] = {&all->disk, &all->boot, &all->volume};

    test_tree_mkdir(disks, ".");
    test_tree_mkdir(plugged, ".");
    test_tree_mkdir(attached, "vol");
    fake_disk_init(&all->disk, all->pod.dir, disks, "disk_0.sock", "image");
    fake_disk_init(&all->boot, all->pod.dir, disks, "kernel-boot.sock", "kernels");
    fake_disk_init(&all->volume, all->pod.dir, attached, "hp.sock", "volumes");
    test_tree_write(all->disk.root, "disk/file", "image");
    test_tree_mkdir(all->boot.root, "boot");
    test_tree_write(all->boot.root, "boot/vmlinuz", "kernel");
    test_tree_mkdir(all->volume.root, "fs");
    test_tree_write(all->volume.root, "fs/disk.img", "volume");
    all->volume.mount = "fs";
    for (gsize i = 0; i < G_N_ELEMENTS(served); i++) {
        served[i]->accepts = true;
        fake_disk_start(served[i]);
    }
}

/* Tells the hands where it is, too. */
static inline void
fake_all_init(FakeAll *all)
{
    static ChDaemonPlaces places;

    *all = (FakeAll){.server = 0};
    (void)umask(022);
    fake_pod_init(&all->pod);
    fake_all_files(all);
    fake_all_disks(all);
    fake_all_start_vm(all);
    fake_all_start_server(all);
    fake_all_start_pit(all);
    fake_all_cgroups(all);
    fake_all_node(all,
                  "pods/" FAKE_ALL_ATTACHMENT "/" FAKE_HOTPLUG "/vol/pvc",
                  S_IFBLK | 0660,
                  FAKE_ALL_BLOCK);
    all->share = fake_all_path(all, "share");
    all->run = fake_all_path(all, "run");
    all->node = fake_all_path(all, "node");
    all->private_dir = fake_all_path(all, "private");
    all->sysfs = fake_all_path(all, "sysfs");
    places = (ChDaemonPlaces){all->share, all->run, all->node, getpid()};
    ch_launcher_set_pods_dir(all->pod.pods_dir);
    ch_target_set_pods_dir(all->pod.pods_dir);
    ch_cache_set_dir(all->private_dir);
    ch_mount_spaces_set_node(getpid());
    ch_inside_daemons_set_places(&places);
    ch_inside_set_sysfs(all->sysfs);
}

static inline void
fake_all_end(pid_t *pid)
{
    if (*pid > 0) {
        kill(*pid, SIGKILL);
        waitpid(*pid, NULL, 0);
    }
    *pid = 0;
}

static inline void
fake_all_clear(FakeAll *all)
{
    g_autofree char *dev = fake_all_path(all, "root/dev");

    fake_all_end(&all->server);
    fake_all_end(&all->pit);
    fake_disk_clear(&all->disk);
    fake_disk_clear(&all->boot);
    fake_disk_clear(&all->volume);
    fake_vm_clear(&all->vm);
    all->pod.pid = 0;
    (void)umount2(dev, MNT_DETACH);
    for (gsize i = 0; i < 2; i++) {
        FakeCgroup *cgroup = i == 0 ? &all->devices : &all->cpuset;
        FakeCgroup child = {.dir = cgroup->dir != NULL
                                       ? g_build_filename(cgroup->dir, "housekeeping", NULL)
                                       : NULL};

        fake_cgroup_clear(&child);
        fake_cgroup_clear(cgroup);
    }
    fake_cgroup_clear(&all->unified);
    g_free(all->share);
    g_free(all->run);
    g_free(all->node);
    g_free(all->private_dir);
    g_free(all->sysfs);
    fake_pod_clear(&all->pod);
}
