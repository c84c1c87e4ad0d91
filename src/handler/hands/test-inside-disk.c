/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-disk.h"

#include <sys/statvfs.h>

#include "handler/hands/test-fake-root.h"
#include "lib/base/fd.h"

#define MIB   (INT64_C(1) << 20)
#define DISKS "run/kubevirt-private/vmi-disks"

/* --- how large it becomes */

static const struct SizeCase {
    const char *path;
    int64_t capacity, available;
    int percent;
    int64_t expect;
} size_cases[] = {
    /* spec:05-16.6#139 */
    {"/inside-disk/size/enough", 64 * MIB, 64 * MIB, 0, 64 * MIB},
    /* spec:05-16.6#140 */
    {"/inside-disk/size/tolerated", 64 * MIB, 63 * MIB, 10, 63 * MIB},
    /* spec:05-16.6#141 */
    {"/inside-disk/size/not-tolerated", 64 * MIB, 63 * MIB, 1, 0},
    /* spec:05-16.6#142 */
    {"/inside-disk/size/96-of-100", 100 * MIB, 96 * MIB, 5, 96 * MIB},
    /* spec:05-16.6#142 */
    {"/inside-disk/size/95-of-100", 100 * MIB, 95 * MIB, 5, 95 * MIB},
    /* spec:05-16.6#142 */
    {"/inside-disk/size/94-of-100", 100 * MIB, 94 * MIB, 5, 0},
    /* spec:05-16.6#138: beyond what 64 bits hold times a hundred */
    {"/inside-disk/size/an-exabyte", INT64_C(1000000000000000000), 64 * MIB, 10, 0},
    {"/inside-disk/size/all-is-tolerated", 64 * MIB, 1, 100, 1},
    {"/inside-disk/size/reserve-takes-it-all", 64 * MIB, -5, 100, 0},
    {"/inside-disk/size/none-left", 64 * MIB, 0, 100, 0},
    {"/inside-disk/size/no-size", 0, 64 * MIB, 10, 0},
};

static void
test_size(gconstpointer data)
{
    const struct SizeCase *c = data;

    g_assert_cmpint(ch_inside_disk_size(c->capacity, c->available, c->percent), ==, c->expect);
}

/* --- in a pod */

static void
set_up(FakeRoot *f, gconstpointer data)
{
    fake_root_set_up(f, data);
    if (f->root_fd >= 0)
        test_tree_mkdir(f->pod.root, DISKS "/vol");
}

static void
tear_down(FakeRoot *f, gconstpointer data)
{
    if (f->root_fd >= 0)
        g_assert_false(test_tree_has(f->pod.root, DISKS "/vol/.chandler-new-image"));
    fake_root_tear_down(f, data);
}

static int
prepare(const FakeRoot *f, const ChHandsDisk *disk, bool is_non_root, ChHandsReply *out_reply)
{
    *out_reply = (ChHandsReply){0};
    g_assert_true(ch_inside_prepare_disk(f->root_fd, "vol", disk, is_non_root, out_reply) ==
                  (out_reply->errnum == 0));
    return out_reply->errnum;
}

static struct stat
look(const FakeRoot *f, const char *name)
{
    g_autofree char *path = g_strconcat(DISKS "/vol/", name, NULL);

    return test_tree_stat(f->pod.root, path);
}

/* spec:05-16.6#137 */
static void
test_makes(FakeRoot *f, gconstpointer data)
{
    static const int64_t sizes[] = {64 * MIB, 128 * MIB, 80 * MIB};
    ChHandsDisk disk = {.makes_image = 1, .tolerated_percent = 10};
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        struct stat st;

        (void)snprintf(disk.file, sizeof(disk.file), "disk%zu.img", i);
        disk.capacity = (uint64_t)sizes[i];
        g_assert_cmpint(prepare(f, &disk, false, &reply), ==, 0);
        g_assert_cmpint((int64_t)reply.size, ==, sizes[i]);
        st = look(f, disk.file);
        g_assert_cmpint(st.st_size, ==, sizes[i]);
        g_assert_cmpint(st.st_blocks, <, 2048); /* sparse */
        g_assert_cmpint(st.st_mode & 07777, ==, 0644);
        g_assert_cmpint(st.st_uid, ==, 107);
        g_assert_cmpint(st.st_gid, ==, 107);
    }
    g_assert_cmpint(look(f, ".").st_uid, ==, 0);
    g_assert_cmpint(prepare(f, &disk, true, &reply), ==, 0);
    g_assert_cmpuint(reply.size, ==, 0); /* none was made */
    g_assert_cmpint(look(f, ".").st_uid, ==, 107);
}

/* spec:05-16.6#143 field:FR-F03 */
static void
test_leaves_alone(FakeRoot *f, gconstpointer data)
{
    const ChHandsDisk disk = {
        .makes_image = 1, .capacity = 64 * MIB, .tolerated_percent = 10, .file = "disk.img"};
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    test_tree_write(f->pod.root, DISKS "/vol/disk.img", "12345");
    g_assert_cmpint(prepare(f, &disk, true, &reply), ==, 0);
    g_assert_cmpint(look(f, "disk.img").st_size, ==, 5);
    g_assert_cmpint(look(f, "disk.img").st_uid, ==, 0);
}

/* spec:05-16.6#135: only its directory is looked at */
static void
test_makes_none(FakeRoot *f, gconstpointer data)
{
    const ChHandsDisk disk = {.makes_image = 0};
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(prepare(f, &disk, true, &reply), ==, 0);
    g_assert_cmpint(look(f, ".").st_uid, ==, 107);
    g_assert_cmpuint(look(f, ".").st_nlink, ==, 2);
    g_assert_false(test_tree_has(f->pod.root, DISKS "/vol/disk.img"));
}

/* spec:05-16.6#138 spec:05-16.6#141 */
static void
test_too_large(FakeRoot *f, gconstpointer data)
{
    ChHandsDisk disk = {.makes_image = 1,
                        .capacity = UINT64_C(1000000000000000000),
                        .tolerated_percent = 10,
                        .file = "disk.img"};
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, EFBIG);
    g_assert_cmpint((int64_t)reply.size, >, 0);
    g_assert_false(test_tree_has(f->pod.root, DISKS "/vol/disk.img"));
    disk.capacity = 1;
    disk.reserve = G_MAXINT64; /* more than there is */
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, EFBIG);
    g_assert_cmpint((int64_t)reply.size, <, 0);
    disk.capacity = 0;
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, EINVAL);
    g_assert_false(test_tree_has(f->pod.root, DISKS "/vol/disk.img"));
}

/* A file system of which nobody else takes anything meanwhile. */
static bool
mount_small(const FakeRoot *f)
{
    g_autofree char *path = fake_pod_path(&f->pod, DISKS "/vol");

    if (mount("small", path, "tmpfs", 0, "size=64m,mode=0755") == 0)
        return true;
    g_test_skip("needs tmpfs mounts");
    return false;
}

/* spec:05-16.6#139 spec:05-16.6#140 spec:05-16.6#141 */
static void
test_small_volume(FakeRoot *f, gconstpointer data)
{
    ChHandsDisk disk = {.makes_image = 1, .capacity = 64 * MIB, .reserve = MIB, .file = "disk.img"};
    g_autofree char *path = NULL;
    ChHandsReply reply;

    if (fake_pod_skip() || !mount_small(f))
        return;
    path = fake_pod_path(&f->pod, DISKS "/vol");
    disk.tolerated_percent = 1;
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, EFBIG);
    g_assert_cmpint((int64_t)reply.size, ==, 63 * MIB);
    disk.tolerated_percent = 10;
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, 0);
    g_assert_cmpint((int64_t)reply.size, ==, 63 * MIB);
    g_assert_cmpint(look(f, "disk.img").st_size, ==, 63 * MIB);
    g_assert_cmpint(umount(path), ==, 0);
}

/* field:FR-F04: image and directory; one that is linked within the pod is fine. */
static void
test_links(FakeRoot *f, gconstpointer data)
{
    const ChHandsDisk disk = {
        .makes_image = 1, .capacity = MIB, .tolerated_percent = 10, .file = "disk.img"};
    static const char *const targets[] = {
        "/victim", "../../../../../victim", "made", "/etc/shadow"};
    g_autofree char *path = NULL;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    path = fake_pod_path(&f->pod, DISKS "/vol/disk.img");
    for (gsize i = 0; i < G_N_ELEMENTS(targets); i++) {
        test_tree_link(f->pod.root, DISKS "/vol/disk.img", targets[i]);
        g_assert_cmpint(prepare(f, &disk, true, &reply), ==, ELOOP);
        g_assert_true(
            g_str_has_prefix(reply.text, "preparing host-disks failed: Resolve diskPath "));
        g_assert_cmpint(unlink(path), ==, 0);
    }
    g_assert_false(test_tree_has(f->pod.root, DISKS "/vol/made"));
    g_assert_cmpint(look(f, ".").st_uid, ==, 0);
}

static void
test_no_directory(FakeRoot *f, gconstpointer data)
{
    ChHandsDisk disk = {.makes_image = 1, .capacity = MIB, .file = "disk.img"};
    g_autofree char *path = NULL;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    path = fake_pod_path(&f->pod, DISKS "/vol");
    g_assert_cmpint(rmdir(path), ==, 0);
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, ENOENT);
    g_assert_cmpstr(reply.text,
                    ==,
                    "preparing host-disks failed: Resolve diskdir : "
                    "/var/run/kubevirt-private/vmi-disks/vol: no such file or directory");
    disk = (ChHandsDisk){0};
    g_assert_cmpint(prepare(f, &disk, true, &reply), ==, ENOENT);
    g_assert_true(g_str_has_prefix(reply.text, "Failed to change ownership of HostDisk dir vol, "));
    /* Out of the pod leads nowhere. */
    test_tree_link(f->pod.root, DISKS "/vol", "../../../../..");
    disk = (ChHandsDisk){.makes_image = 1, .capacity = MIB, .file = "victim"};
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, 0); /* in the pod's own root */
    g_assert_true(test_tree_has(f->pod.root, "victim"));
}

/* What an earlier child left that was killed. */
static void
test_interrupted(FakeRoot *f, gconstpointer data)
{
    const ChHandsDisk disk = {
        .makes_image = 1, .capacity = MIB, .tolerated_percent = 0, .file = "disk.img"};
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    test_tree_write(f->pod.root, DISKS "/vol/.chandler-new-image", "x");
    g_assert_cmpint(prepare(f, &disk, false, &reply), ==, 0);
    g_assert_cmpint(look(f, "disk.img").st_size, ==, MIB);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*func)(FakeRoot *f, gconstpointer data);
    } tests[] = {
        {"/inside-disk/makes", test_makes},
        {"/inside-disk/leaves-alone", test_leaves_alone},
        {"/inside-disk/makes-none", test_makes_none},
        {"/inside-disk/too-large", test_too_large},
        {"/inside-disk/small-volume", test_small_volume},
        {"/inside-disk/links", test_links},
        {"/inside-disk/no-directory", test_no_directory},
        {"/inside-disk/interrupted", test_interrupted},
    };

    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(size_cases); i++)
        g_test_add_data_func(size_cases[i].path, &size_cases[i], test_size);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].path, FakeRoot, NULL, set_up, tests[i].func, tear_down);
    return g_test_run();
}
