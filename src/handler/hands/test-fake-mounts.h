/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-mounts: a pod, a container that serves its disks, and a mount namespace that stands for
 * the node's: the test's own. Included by test-inside-mount.c, -sum.c and -unmount.c only.
 */

#pragma once

#include "handler/hands/inside-unmount.h"
#include "handler/hands/launcher.h"
#include "handler/hands/mount-spaces.h"
#include "handler/hands/target.h"
#include "handler/hands/test-fake-disk.h"
#include "handler/hands/test-fake-step.h"

#define ATTACH_UID "aaaabbbb-0000-4000-8000-000000000009"

typedef struct {
    bool is_ready;
    char *dir;      /* owned */
    char *pods_dir; /* owned */
    char *disks;    /* owned; the pod's directory of container disks */
    char *hotplug;  /* owned; the pod's directory of hotplug volumes */
    FakeDisk disk;  /* serves disk 0 */
} Fixture;

static inline void
set_up(Fixture *f, gconstpointer data)
{
    g_autofree char *empty_dir = NULL;

    f->is_ready = geteuid() == 0;
    if (!f->is_ready)
        return;
    (void)umask(022);
    f->dir = test_tree_new();
    f->pods_dir = g_build_filename(f->dir, "pods", NULL);
    f->disks = g_build_filename(f->pods_dir, FAKE_POD_UID, FAKE_DISKS, NULL);
    f->hotplug = g_build_filename(f->pods_dir, FAKE_POD_UID, FAKE_HOTPLUG, NULL);
    test_tree_mkdir(f->disks, ".");
    test_tree_mkdir(f->hotplug, ".");
    fake_disk_init(&f->disk, f->dir, f->disks, "disk_0.sock", "image");
    ch_launcher_set_pods_dir(f->pods_dir);
    ch_target_set_pods_dir(f->pods_dir);
    ch_mount_spaces_set_node(getpid());
}

static inline void
tear_down(Fixture *f, gconstpointer data)
{
    if (!f->is_ready)
        return;
    fake_disk_detach(f->disks);
    fake_disk_detach_all(f->hotplug);
    fake_disk_clear(&f->disk);
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->pods_dir);
    g_free(f->disks);
    g_free(f->hotplug);
}

static inline bool
unmount_it(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    return ch_inside_unmount(request, reply);
}

static const ChHandsRequest disk_0 = {
    .uid = FAKE_POD_UID, .source_uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_DISK};
static const ChHandsRequest kernel = {
    .uid = FAKE_POD_UID, .source_uid = FAKE_POD_UID, .mount = CH_HANDS_MOUNT_BOOT};
static const ChHandsRequest volume_file = {.uid = FAKE_POD_UID,
                                           .source_uid = ATTACH_UID,
                                           .mount = CH_HANDS_MOUNT_HOTPLUG_FILE,
                                           .name = "vol"};
static const ChHandsRequest volume_dir = {.uid = FAKE_POD_UID,
                                          .source_uid = ATTACH_UID,
                                          .mount = CH_HANDS_MOUNT_HOTPLUG_DIR,
                                          .name = "vol"};

static inline char *
read_file(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static inline void
assert_content(const char *dir, const char *name, const char *expected)
{
    g_autofree char *text = read_file(dir, name);

    g_assert_cmpstr(text, ==, expected);
}

static inline void
serve_volume(Fixture *f, bool is_mounted)
{
    g_autofree char *empty_dir = g_build_filename(f->pods_dir, ATTACH_UID, FAKE_HOTPLUG, NULL);

    test_tree_mkdir(empty_dir, ".");
    fake_disk_clear(&f->disk);
    fake_disk_init(&f->disk, f->dir, empty_dir, "hp.sock", "image");
    test_tree_mkdir(f->disk.root, "vol");
    test_tree_write(f->disk.root, "vol/disk.img", "volume");
    f->disk.mount = is_mounted ? "vol" : NULL;
    fake_disk_start(&f->disk);
}

static inline void
add_for(const char *module,
        const char *name,
        gconstpointer data,
        void (*func)(Fixture *f, gconstpointer data))
{
    g_autofree char *path = g_strconcat("/", module, "/", name, NULL);

    g_test_add(path, Fixture, data, set_up, func, tear_down);
}

/* The node that things are mounted in. */
static inline void
become_node(void)
{
    if (geteuid() == 0)
        g_assert_true(unshare(CLONE_NEWNS) == 0 &&
                      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}
