/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-disk: a container whose process serves what is mounted into a pod, for tests: a mount
 * namespace and a root of its own, and a listening socket in the pod's emptyDir. Needs root. For
 * test programs only.
 */

#pragma once

#include "handler/hands/test-fake-pod.h"

#define FAKE_DISKS   "volumes/kubernetes.io~empty-dir/container-disks"
#define FAKE_HOTPLUG "volumes/kubernetes.io~empty-dir/hotplug-disks"

typedef struct {
    char *root;        /* of the container */
    char *empty_dir;   /* kubelet's directory, mounted at /run/sockets in it */
    const char *name;  /* of the socket */
    const char *mount; /* (nullable): /NAME is mounted onto itself, as a volume is */
    bool has_own_mounts;
    bool accepts; /* as a FakePod's */
    pid_t pid;    /* 0: none */
} FakeDisk;

/* The name of what is in @dir to serve is @name. @pods_dir and @uid: of the pod. */
static inline void
fake_disk_init(
    FakeDisk *disk, const char *dir, const char *empty_dir, const char *name, const char *root)
{
    *disk = (FakeDisk){.root = g_build_filename(dir, root, NULL),
                       .empty_dir = g_strdup(empty_dir),
                       .name = name,
                       .has_own_mounts = true};
    test_tree_mkdir(disk->root, "run/sockets");
    test_tree_mkdir(disk->root, "disk");
}

static inline void
fake_disk_run(const FakeDisk *disk, int ready_fd)
{
    g_autofree char *target = g_build_filename(disk->root, "run/sockets", NULL);
    int fd = -1;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (disk->has_own_mounts) {
        fake_pod_must(unshare(CLONE_NEWNS) == 0, "unshare");
        fake_pod_must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "make private");
        fake_pod_must(mount(disk->empty_dir, target, NULL, MS_BIND, NULL) == 0, "bind mount");
    }
    if (disk->mount != NULL) {
        g_autofree char *volume = g_build_filename(disk->root, disk->mount, NULL);

        fake_pod_must(mount(volume, volume, NULL, MS_BIND, NULL) == 0, "bind mount a volume");
    }
    if (!disk->has_own_mounts)
        fd = fake_pod_listen_with(disk->empty_dir, disk->name, fake_pod_backlog(disk->accepts));
    fake_pod_must(chroot(disk->root) == 0 && chdir("/") == 0, "chroot");
    if (disk->has_own_mounts)
        fd = fake_pod_listen_with("/run/sockets", disk->name, fake_pod_backlog(disk->accepts));
    fake_pod_must(write(ready_fd, "x", 1) == 1, "say ready");
    fake_pod_serve(fd, disk->accepts);
}

static inline void
fake_disk_start(FakeDisk *disk)
{
    int ready[2];
    char byte;

    g_assert_cmpint(pipe2(ready, O_CLOEXEC), ==, 0);
    disk->pid = fork();
    if (disk->pid == 0)
        fake_disk_run(disk, ready[1]);
    close(ready[1]);
    g_assert_cmpint(read(ready[0], &byte, 1), ==, 1);
    close(ready[0]);
}

static inline void
fake_disk_stop(FakeDisk *disk)
{
    if (disk->pid > 0) {
        kill(disk->pid, SIGKILL);
        waitpid(disk->pid, NULL, 0);
    }
    disk->pid = 0;
}

static inline void
fake_disk_clear(FakeDisk *disk)
{
    fake_disk_stop(disk);
    g_free(disk->root);
    g_free(disk->empty_dir);
}

static inline void
fake_disk_detach_all(const char *dir)
{
    g_autoptr(GDir) entries = g_dir_open(dir, 0, NULL);
    const char *name;

    while (entries != NULL && (name = g_dir_read_name(entries)) != NULL) {
        g_autofree char *path = g_build_filename(dir, name, NULL);

        while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
            ;
    }
}

/* Of a pod's directory @disks, kernels too: what tests have mounted would keep the tree from being
 * removed. */
static inline void
fake_disk_detach(const char *disks)
{
    g_autofree char *kernels = g_build_filename(disks, "kernel-boot", NULL);

    fake_disk_detach_all(kernels);
    fake_disk_detach_all(disks);
}
