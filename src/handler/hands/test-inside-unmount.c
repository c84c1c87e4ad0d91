/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-unmount.h"

#include "handler/hands/inside-mount.h"
#include "handler/hands/test-fake-mounts.h"

/* spec:05-16.4#105: nothing is mounted; more than can be taken away at a time; what has the name
 * cannot be looked at. */
static void
test_volume_unmount(Fixture *f, gconstpointer data)
{
    g_autofree char *target = NULL;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->hotplug, "vol.img", "");
    reply = fake_step_run(unmount_it, volume_file, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 0);
    target = g_build_filename(f->hotplug, "vol.img", NULL);
    for (int i = 0; i < 20; i++)
        g_assert_cmpint(mount(target, target, NULL, MS_BIND, NULL), ==, 0);
    reply = fake_step_run(unmount_it, volume_file, NULL);
    g_assert_cmpint(reply.errnum, ==, EBUSY);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_UNMOUNT);
    g_assert_cmpint(fake_step_run(unmount_it, volume_file, NULL).errnum, ==, 0);
    test_tree_remove(f->hotplug);
    test_tree_write(f->pods_dir, FAKE_POD_UID "/" FAKE_HOTPLUG, "no directory");
    reply = fake_step_run(ch_inside_look_at_target, volume_file, NULL);
    g_assert_cmpint(reply.errnum, ==, ENOTDIR);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_DIR);
}

static bool
sweep(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    return ch_inside_sweep(request, reply);
}

/* Whatever was mounted and noted nowhere. field:FR-G10 */
static void
test_sweep(Fixture *f, gconstpointer data)
{
    const ChHandsRequest pod = {.uid = FAKE_POD_UID};
    g_autofree char *node = NULL;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    node = g_build_filename(f->hotplug, "block", NULL);
    g_assert_cmpint(fake_step_run(ch_inside_mount, volume_file, NULL).errnum, ==, 0);
    g_assert_cmpint(fake_step_run(ch_inside_mount, volume_dir, NULL).errnum, ==, 0);
    g_assert_cmpint(mknod(node, S_IFBLK | 0600, makedev(7, 1)), ==, 0);
    test_tree_write(f->hotplug, "own", "the pod's");
    test_tree_link(f->hotplug, "link", "own");
    g_assert_cmpuint(fake_step_run(sweep, pod, NULL).size, ==, 2);
    g_assert_false(test_tree_has(f->hotplug, "vol.img"));
    g_assert_false(test_tree_has(f->hotplug, "vol"));
    g_assert_false(test_tree_has(f->hotplug, "block"));
    assert_content(f->hotplug, "own", "the pod's");
    g_assert_true(test_tree_has(f->hotplug, "link"));
    g_assert_cmpuint(fake_step_run(sweep, pod, NULL).size, ==, 0);
    assert_content(f->disk.root, "vol/disk.img", "volume");
}

/* An earlier one unmounted, and got no further. What is the pod's, or not empty, stays. */
static void
test_sweep_resumes(Fixture *f, gconstpointer data)
{
    const ChHandsRequest pod = {.uid = FAKE_POD_UID};
    g_autofree char *theirs = NULL;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    theirs = g_build_filename(f->hotplug, "theirs", NULL);
    test_tree_write(f->hotplug, "vol.img", "");
    test_tree_mkdir(f->hotplug, "vol");
    test_tree_mkdir(f->hotplug, "full/of");
    test_tree_write(f->hotplug, "theirs", "");
    g_assert_cmpint(chown(theirs, 107, 107), ==, 0);
    g_assert_cmpint(fake_step_run(sweep, pod, NULL).errnum, ==, 0);
    g_assert_false(test_tree_has(f->hotplug, "vol.img"));
    g_assert_false(test_tree_has(f->hotplug, "vol"));
    g_assert_true(test_tree_has(f->hotplug, "full/of"));
    g_assert_true(test_tree_has(f->hotplug, "theirs"));
}

/* What the pod has renamed is found too, whatever it put there instead: kubelet could not remove
 * it.
 */
static void
test_sweep_of_what_was_renamed(Fixture *f, gconstpointer data)
{
    const ChHandsRequest pod = {.uid = FAKE_POD_UID};
    ChHandsRequest removal = kernel;
    g_autofree char *old_dir = NULL;
    g_autofree char *new_dir = NULL;

    if (fake_pod_skip_mounts())
        return;
    test_tree_mkdir(f->disk.root, "boot");
    test_tree_write(f->disk.root, "boot/vmlinuz", "kernel");
    f->disk.name = "kernel-boot.sock";
    fake_disk_start(&f->disk);
    g_assert_cmpint(fake_step_run(ch_inside_mount, kernel, "/boot/vmlinuz").errnum, ==, 0);
    old_dir = g_build_filename(f->disks, "kernel-boot", NULL);
    new_dir = g_build_filename(f->disks, "a b/deep", NULL);
    test_tree_mkdir(f->disks, "a b");
    g_assert_cmpint(rename(old_dir, new_dir), ==, 0);
    test_tree_link(f->disks, "disk_0.img", "a b");
    test_tree_mkdir(f->disks, "kernel-boot");
    removal.flags = CH_HANDS_REMOVE;
    g_assert_cmpuint(
        fake_step_run(unmount_it, removal, NULL).size, ==, 0); /* it has no such name */
    g_assert_false(test_tree_has(f->disks, "kernel-boot"));
    g_assert_false(test_tree_has(f->disks, "kernel-boot.sock"));
    assert_content(f->disks, "a b/deep/vmlinuz", "kernel");

    g_assert_cmpuint(fake_step_run(sweep, pod, NULL).size, ==, 1);
    assert_content(f->disks, "a b/deep/vmlinuz", "");
    g_assert_cmpuint(fake_step_run(sweep, pod, NULL).size, ==, 0);
}

static void
bind_to_itself(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_cmpint(mount(path, path, NULL, MS_BIND, NULL), ==, 0);
}

/* One failure does not keep the others from being taken away. */
static void
test_sweep_goes_on(Fixture *f, gconstpointer data)
{
    const ChHandsRequest pod = {.uid = FAKE_POD_UID};
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->hotplug, "stack.img", "");
    test_tree_mkdir(f->hotplug, "renamed/vol");
    for (int i = 0; i < 20; i++)
        bind_to_itself(f->hotplug, "stack.img");
    bind_to_itself(f->hotplug, "renamed/vol");
    reply = fake_step_run(sweep, pod, NULL);
    g_assert_cmpint(reply.errnum, ==, EBUSY);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_UNMOUNT);
    g_assert_cmpuint(reply.size, ==, 21);
    reply = fake_step_run(sweep, pod, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 0);
}

/* Mounts that are not where they are listed, as another hides them: a directory is, a link, a file,
 * or nothing. */
static void
test_sweep_of_what_is_hidden(Fixture *f, gconstpointer data)
{
    const ChHandsRequest pod = {.uid = FAKE_POD_UID};
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    for (int i = 0; i < 16; i++) {
        g_autofree char *hidden = g_strdup_printf("x/%d/vol/deep", i);
        g_autofree char *vol = g_path_get_dirname(hidden);
        g_autofree char *dir = g_path_get_dirname(vol);
        g_autofree char *path = g_build_filename(f->hotplug, dir, NULL);

        test_tree_mkdir(f->hotplug, hidden);
        bind_to_itself(f->hotplug, hidden);
        g_assert_cmpint(mount("none", path, "tmpfs", 0, NULL), ==, 0);
        if (i % 4 == 0)
            test_tree_mkdir(f->hotplug, hidden);
        else if (i % 4 == 1)
            test_tree_link(f->hotplug, vol, ".");
        else if (i % 4 == 2)
            test_tree_write(f->hotplug, vol, "");
    }
    reply = fake_step_run(sweep, pod, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 32);
}

/* Nothing is left to sweep, as clean-up after kubelet's own finds. field:FR-G11 */
static void
test_sweep_without_pod(Fixture *f, gconstpointer data)
{
    const ChHandsRequest pod = {.uid = "aaaabbbb-0000-4000-8000-00000000dead"};

    if (fake_pod_skip_mounts())
        return;
    g_assert_cmpint(fake_step_run(sweep, pod, NULL).errnum, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    become_node();
#define ADD(name, func) add_for("inside-unmount", name, NULL, func)
    ADD("volume", test_volume_unmount);
    ADD("sweep", test_sweep);
    ADD("sweep-resumes", test_sweep_resumes);
    ADD("sweep-of-what-was-renamed", test_sweep_of_what_was_renamed);
    ADD("sweep-goes-on", test_sweep_goes_on);
    ADD("sweep-of-what-is-hidden", test_sweep_of_what_is_hidden);
    ADD("sweep-without-pod", test_sweep_without_pod);
#undef ADD
    return g_test_run();
}
