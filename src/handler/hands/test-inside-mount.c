/* SPDX-License-Identifier: Apache-2.0 */

/* Mounting in a mount namespace that stands for the node's: this program's own. */

#include "handler/hands/inside-mount.h"

#include <sys/resource.h>

#include "handler/hands/source.h"
#include "handler/hands/test-fake-mounts.h"
#include "lib/base/fd.h"

/* spec:05-16.3#63
 * Mounted, looked at, mounted again, unmounted, unmounted again. */
static void
test_life(Fixture *f, gconstpointer data)
{
    ChHandsRequest removal = disk_0;
    g_autofree char *target = NULL;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->disk.root, "disk/disk.img", "image");
    fake_disk_start(&f->disk);
    target = g_build_filename(f->disks, "disk_0.img", NULL);

    reply = fake_step_run(ch_inside_look_at_target, disk_0, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.target.mode, ==, 0);
    reply = fake_step_run(ch_inside_mount, disk_0, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 1);
    g_assert_true(reply.target.is_mounted);
    g_assert_cmpuint(reply.target.ino, ==, test_tree_stat(f->disk.root, "disk/disk.img").st_ino);
    assert_content(f->disks, "disk_0.img", "image");
    g_assert_cmpint(open(target, O_WRONLY | O_CLOEXEC), ==, -1); /* whoever tries */
    g_assert_cmpint(errno, ==, EROFS);

    fake_disk_stop(&f->disk); /* nobody is asked again */
    reply = fake_step_run(ch_inside_mount, disk_0, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 0);
    reply = fake_step_run(ch_inside_look_at_target, disk_0, NULL);
    g_assert_true(reply.target.is_mounted && S_ISREG(reply.target.mode));

    g_assert_cmpint(mount(target, target, NULL, MS_BIND, NULL), ==, 0); /* stacked */
    reply = fake_step_run(unmount_it, disk_0, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 2);
    g_assert_cmpint(test_tree_stat(f->disks, "disk_0.img").st_mode, ==, S_IFREG | 0755);
    g_assert_cmpint(test_tree_stat(f->disks, "disk_0.img").st_size, ==, 0);
    removal.flags = CH_HANDS_REMOVE;
    reply = fake_step_run(unmount_it, removal, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 0);
    g_assert_false(test_tree_has(f->disks, "disk_0.img"));
    g_assert_false(test_tree_has(f->disks, "disk_0.sock"));
    g_assert_cmpint(fake_step_run(unmount_it, removal, NULL).errnum, ==, 0);
}

static void
test_no_pod(Fixture *f, gconstpointer data)
{
    ChHandsRequest request = disk_0;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    g_strlcpy(request.uid, "no-such-pod", sizeof(request.uid));
    reply = fake_step_run(ch_inside_mount, request, NULL);
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_DIR);
    reply = fake_step_run(ch_inside_look_at_target, request, NULL);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_DIR);
    g_assert_cmpint(fake_step_run(unmount_it, request, NULL).errnum, ==, 0);
}

/* --- what a pod may have put at the target's place */

static void
put_link(const char *path)
{
    g_assert_cmpint(symlink("/etc/passwd", path), ==, 0);
}

static void
put_dangling_link(const char *path)
{
    g_assert_cmpint(symlink("../made", path), ==, 0);
}

static void
put_fifo(const char *path)
{
    g_assert_cmpint(mkfifo(path, 0666), ==, 0);
}

static void
put_device(const char *path)
{
    g_assert_cmpint(mknod(path, S_IFCHR | 0666, makedev(1, 5)), ==, 0);
}

static void
put_dir(const char *path)
{
    g_assert_cmpint(g_mkdir(path, 0777), ==, 0);
}

static const struct TargetCase {
    const char *path;
    void (*put)(const char *path);
    int errnum;
} target_cases[] = {
    {"link", put_link, ELOOP},
    {"dangling-link", put_dangling_link, ELOOP},
    {"fifo", put_fifo, ESTALE},
    {"device", put_device, ESTALE},
    {"directory", put_dir, ESTALE},
};

static void
test_target(Fixture *f, gconstpointer data)
{
    const struct TargetCase *c = data;
    g_autofree char *path = NULL;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->disk.root, "disk/disk.img", "image");
    fake_disk_start(&f->disk);
    path = g_build_filename(f->disks, "disk_0.img", NULL);
    c->put(path);
    reply = fake_step_run(ch_inside_mount, disk_0, NULL);
    g_assert_cmpint(reply.errnum, ==, c->errnum);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_TARGET);
    g_assert_false(test_tree_has(f->disks, "../made"));
    g_assert_cmpint(
        fake_step_run(unmount_it, disk_0, NULL).errnum, ==, 0); /* nothing is mounted there */
}

/* --- who may serve */

static void
serve_nothing(Fixture *f)
{
}

static void
serve_file(Fixture *f)
{
    test_tree_write(f->disks, "disk_0.sock", "");
}

static void
serve_link(Fixture *f)
{
    test_tree_link(f->disks, "disk_0.sock", "elsewhere.sock");
    f->disk.name = "elsewhere.sock";
    fake_disk_start(&f->disk);
}

static void
serve_dead(Fixture *f)
{
    close(fake_pod_listen(f->disks, "disk_0.sock"));
}

/* A process of the node's: its root is no image. */
static void
serve_node(Fixture *f)
{
    f->disk.has_own_mounts = false;
    fake_disk_start(&f->disk);
}

/* A container that does not see the socket which somebody serves for it. */
static void
serve_elsewhere(Fixture *f)
{
    g_autofree char *other = g_build_filename(f->dir, "other", NULL);
    g_autofree char *from = g_build_filename(other, "disk_0.sock", NULL);
    g_autofree char *to = g_build_filename(f->disks, "disk_0.sock", NULL);

    test_tree_mkdir(other, ".");
    g_free(f->disk.empty_dir);
    f->disk.empty_dir = g_steal_pointer(&other);
    fake_disk_start(&f->disk);
    g_assert_cmpint(g_rename(from, to), ==, 0);
}

static const struct SourceCase {
    const char *path;
    void (*serve)(Fixture *f);
    int errnum;
    ChHandsMountStep step;
} source_cases[] = {
    {"nothing", serve_nothing, ENOENT, CH_HANDS_STEP_SOCKET},
    {"file", serve_file, ECONNREFUSED, CH_HANDS_STEP_SOCKET},
    {"link", serve_link, ELOOP, CH_HANDS_STEP_SOCKET},
    {"dead-socket", serve_dead, ECONNREFUSED, CH_HANDS_STEP_SOCKET},
    {"node", serve_node, EPERM, CH_HANDS_STEP_ROOT},
    {"elsewhere", serve_elsewhere, EXDEV, CH_HANDS_STEP_ROOT},
};

static void
test_source(Fixture *f, gconstpointer data)
{
    const struct SourceCase *c = data;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_write(f->disk.root, "disk/disk.img", "image");
    c->serve(f);
    reply = fake_step_run(ch_inside_mount, disk_0, NULL);
    g_assert_cmpint(reply.errnum, ==, c->errnum);
    g_assert_cmpuint(reply.step, ==, c->step);
    assert_content(f->disks, "disk_0.img", ""); /* made, and not mounted on */
}

/* --- what an image may hold */

static const struct ImageCase {
    const char *path; /* of the test */
    const char *file; /* (nullable): made in the image */
    const char *link, *link_to;
    const char *asked; /* (nullable) */
    int errnum;
    ChHandsMountStep step;
} image_cases[] = {
    {"empty", NULL, NULL, NULL, NULL, ENOENT, CH_HANDS_STEP_NO_IMAGE},
    {"hidden", "disk/.hidden", NULL, NULL, NULL, 0, 0},
    {"link", "elsewhere.img", "disk/a", "/elsewhere.img", NULL, 0, 0},
    {"link-upwards", "elsewhere.img", "disk/a", "../../../../elsewhere.img", NULL, 0, 0},
    {"link-out", NULL, "disk/a", "/etc/passwd", NULL, ENOENT, CH_HANDS_STEP_IMAGE},
    {"magic-link", NULL, "disk/a", "/proc/1/root/etc/passwd", NULL, ENOENT, CH_HANDS_STEP_IMAGE},
    {"two", "disk/a", "disk/b", "a", NULL, ENOENT, CH_HANDS_STEP_IMAGES},
    {"path", "custom/my image.img", NULL, NULL, "/custom/my image.img", 0, 0},
    {"relative-path", "custom/a", NULL, NULL, "custom/a", 0, 0},
    {"path-upwards", "a", NULL, NULL, "/../../a", 0, 0},
    {"path-up-in-the-middle", "x", NULL, NULL, "/custom/../../x", 0, 0},
    {"path-with-dot", "custom/a", NULL, NULL, "custom/./a", 0, 0},
    {"path-by-link", "a", "b", "/a", "b", 0, 0},
    {"loop", NULL, "b", "b", "b", ELOOP, CH_HANDS_STEP_IMAGE},
    {"path-is-directory", NULL, NULL, NULL, "/disk", EINVAL, CH_HANDS_STEP_IMAGE},
    {"no-path", NULL, NULL, NULL, "/custom/a", ENOENT, CH_HANDS_STEP_IMAGE},
};

/* spec:05-16.1#21 spec:05-16.3#72 spec:05-16.3#73 field:FR-F05 */
static void
test_image(Fixture *f, gconstpointer data)
{
    const struct ImageCase *c = data;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_mkdir(f->disk.root, "custom");
    if (c->file != NULL)
        test_tree_write(f->disk.root, c->file, "image");
    if (c->link != NULL)
        test_tree_link(f->disk.root, c->link, c->link_to);
    fake_disk_start(&f->disk);
    reply = fake_step_run(ch_inside_mount, disk_0, c->asked);
    g_assert_cmpint(reply.errnum, ==, c->errnum);
    g_assert_cmpuint(reply.step, ==, c->step);
    assert_content(f->disks, "disk_0.img", c->errnum == 0 ? "image" : "");
}

static void
test_image_is_fifo(Fixture *f, gconstpointer data)
{
    g_autofree char *path = NULL;

    if (fake_pod_skip_mounts())
        return;
    path = g_build_filename(f->disk.root, "disk/fifo", NULL);
    put_fifo(path);
    fake_disk_start(&f->disk);
    g_assert_cmpint(fake_step_run(ch_inside_mount, disk_0, NULL).errnum, ==, EINVAL);
}

/* --- kernels */

/* spec:05-16.1#15 */
static void
test_kernels(Fixture *f, gconstpointer data)
{
    ChHandsRequest removal = kernel;
    g_autofree char *dir = NULL;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    dir = g_build_filename(f->disks, "kernel-boot", NULL);
    g_assert_cmpint(g_mkdir(dir, 0777), ==, 0); /* the pod was there first */
    g_assert_cmpint(chown(dir, 107, 107), ==, 0);
    test_tree_link(dir, "own-link", "/etc");
    test_tree_mkdir(f->disk.root, "boot");
    test_tree_write(f->disk.root, "boot/vmlinuz", "kernel");
    test_tree_write(f->disk.root, "boot/initrd", "initrd");
    f->disk.name = "kernel-boot.sock";
    fake_disk_start(&f->disk);

    g_assert_cmpint(fake_step_run(ch_inside_mount, kernel, "/boot/vmlinuz").errnum, ==, 0);
    g_assert_cmpint(fake_step_run(ch_inside_mount, kernel, "/boot/initrd").errnum, ==, 0);
    g_assert_cmpint(test_tree_stat(f->disks, "kernel-boot").st_mode, ==, S_IFDIR | 0755);
    g_assert_cmpint(test_tree_stat(f->disks, "kernel-boot").st_uid, ==, 0);
    assert_content(dir, "vmlinuz", "kernel");
    assert_content(dir, "initrd", "initrd");
    reply = fake_step_run(ch_inside_look_at_target, kernel, "/boot/initrd");
    g_assert_true(reply.target.is_mounted);

    removal.flags = CH_HANDS_REMOVE;
    reply = fake_step_run(unmount_it, removal, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    g_assert_cmpuint(reply.size, ==, 2);
    g_assert_false(test_tree_has(dir, "vmlinuz"));
    g_assert_false(test_tree_has(f->disks, "kernel-boot.sock"));
    g_assert_true(test_tree_has(dir, "own-link"));
}

static void
test_kernel_dir_is_link(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    test_tree_mkdir(f->dir, "victim");
    test_tree_link(f->disks, "kernel-boot", "../../../../victim");
    reply = fake_step_run(ch_inside_mount, kernel, "/boot/vmlinuz");
    g_assert_cmpint(reply.errnum, ==, ELOOP);
    g_assert_false(test_tree_has(f->dir, "victim/vmlinuz"));
    g_assert_cmpint(fake_step_run(unmount_it, kernel, NULL).errnum, ==, 0);
}

/* --- hotplug volumes */

static void
test_volume_file(Fixture *f, gconstpointer data)
{
    ChHandsRequest owned = volume_file;
    g_autofree char *target = NULL;
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    owned.flags = CH_HANDS_OWN;
    reply = fake_step_run(ch_inside_mount, owned, NULL);
    g_assert_cmpint(reply.errnum, ==, 0);
    assert_content(f->hotplug, "vol.img", "volume");
    g_assert_cmpint(test_tree_stat(f->disk.root, "vol/disk.img").st_uid, ==, 107);
    target = g_build_filename(f->hotplug, "vol.img", NULL);
    {
        ch_autofd int fd = open(target, O_WRONLY | O_CLOEXEC);

        g_assert_cmpint(fd, >=, 0); /* a guest writes to it */
    }
    owned.flags = CH_HANDS_REMOVE;
    g_assert_cmpuint(fake_step_run(unmount_it, owned, NULL).size, ==, 1);
    g_assert_false(test_tree_has(f->hotplug, "vol.img"));
}

static void
test_volume_dir(Fixture *f, gconstpointer data)
{
    ChHandsRequest removal = volume_dir;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    g_assert_cmpint(fake_step_run(ch_inside_mount, volume_dir, NULL).errnum, ==, 0);
    assert_content(f->hotplug, "vol/disk.img", "volume");
    removal.flags = CH_HANDS_REMOVE;
    g_assert_cmpuint(fake_step_run(unmount_it, removal, NULL).size, ==, 1);
    g_assert_false(test_tree_has(f->hotplug, "vol"));
}

/* The directory exists in the image, but no volume is mounted there (yet). */
static void
test_volume_is_none(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, false);
    reply = fake_step_run(ch_inside_mount, volume_file, NULL);
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_NO_IMAGE);
    assert_content(f->hotplug, "vol.img", "");
}

static void
test_volume_without_file(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    g_assert_cmpint(unlinkat(AT_FDCWD, f->disk.root, AT_REMOVEDIR), ==, -1); /* it is in use */
    {
        g_autofree char *path = g_build_filename(f->disk.root, "vol/disk.img", NULL);

        g_assert_cmpint(g_unlink(path), ==, 0);
    }
    reply = fake_step_run(ch_inside_mount, volume_file, NULL);
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_IMAGE);
}

/* field:FR-F04: what a volume's author makes of disk.img leads nowhere but into the volume. */
static void
test_volume_file_is_link(Fixture *f, gconstpointer data)
{
    static const char *const targets[] = {"/etc/shadow", "../../victim", "/victim", "../victim"};
    g_autofree char *image = NULL;

    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    test_tree_write(f->disk.root, "victim", "the pod's");
    image = g_build_filename(f->disk.root, "vol/disk.img", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(targets); i++) {
        ChHandsRequest owned = volume_file;
        ChHandsReply reply;

        owned.flags = CH_HANDS_OWN;
        g_assert_cmpint(g_unlink(image), ==, 0);
        test_tree_link(f->disk.root, "vol/disk.img", targets[i]);
        reply = fake_step_run(ch_inside_mount, owned, NULL);
        g_assert_cmpint(reply.errnum, ==, ENOENT);
        g_assert_cmpuint(reply.step, ==, CH_HANDS_STEP_IMAGE);
        assert_content(f->hotplug, "vol.img", "");
    }
    g_assert_cmpint(test_tree_stat(f->disk.root, "victim").st_uid, ==, 0);
}

static bool
look_without_descriptors(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    const ChSourceName name = {request->uid, request->mount, request->index};
    struct rlimit limit;

    fake_pod_must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "ask for the limit");
    limit.rlim_cur = 0;
    fake_pod_must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "set the limit");
    return ch_source_look(&name, reply);
}

/* What cannot be looked at is not taken for a pod that is gone, whose record would go too. */
static void
test_look_fails(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip_mounts())
        return;
    serve_volume(f, true);
    g_assert_cmpint(fake_step_run(look_without_descriptors, volume_file, NULL).errnum, ==, EAGAIN);
}

static void
add(const char *name, void (*func)(Fixture *f, gconstpointer data))
{
    add_for("inside-mount", name, NULL, func);
}

static void
add_case(const char *group,
         const char *name,
         gconstpointer data,
         void (*func)(Fixture *f, gconstpointer data))
{
    g_autofree char *path = g_strconcat(group, "/", name, NULL);

    add_for("inside-mount", path, data, func);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    become_node();
    add("life", test_life);
    add("no-pod", test_no_pod);
    for (gsize i = 0; i < G_N_ELEMENTS(target_cases); i++)
        add_case("target", target_cases[i].path, &target_cases[i], test_target);
    for (gsize i = 0; i < G_N_ELEMENTS(source_cases); i++)
        add_case("source", source_cases[i].path, &source_cases[i], test_source);
    for (gsize i = 0; i < G_N_ELEMENTS(image_cases); i++)
        add_case("image", image_cases[i].path, &image_cases[i], test_image);
    add("image/fifo", test_image_is_fifo);
    add("kernels", test_kernels);
    add("kernel-directory-is-link", test_kernel_dir_is_link);
    add("volume/file", test_volume_file);
    add("volume/directory", test_volume_dir);
    add("volume/none", test_volume_is_none);
    add("volume/without-file", test_volume_without_file);
    add("volume/file-is-link", test_volume_file_is_link);
    add("volume/look-fails", test_look_fails);
    return g_test_run();
}
