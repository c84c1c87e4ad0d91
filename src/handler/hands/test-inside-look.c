/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-look.h"

#include <sys/xattr.h>

#include "handler/hands/test-fake-root.h"
#include "lib/base/fd.h"

#define CLOUD_INIT "run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm"
#define PRIVATE    "run/kubevirt-private"
#define LABEL      "system_u:object_r:container_file_t:s0:c1,c2"

static const struct ImageCase {
    ChHandsImage image;
    const char *dir, *file;
} images[] = {
    {CH_HANDS_IMAGE_NO_CLOUD, CLOUD_INIT, "noCloud.iso"},
    {CH_HANDS_IMAGE_CONFIG_DRIVE, CLOUD_INIT, "configdrive.iso"},
    {CH_HANDS_IMAGE_CONFIG_MAP, PRIVATE "/config-map-disks", "vm.iso"},
    {CH_HANDS_IMAGE_DOWNWARD_API, PRIVATE "/downwardapi-disks", "vm.iso"},
    {CH_HANDS_IMAGE_SECRET, PRIVATE "/secret-disks", "vm.iso"},
    {CH_HANDS_IMAGE_SYSPREP, PRIVATE "/sysprep-disks", "vm.iso"},
    {CH_HANDS_IMAGE_SERVICE_ACCOUNT, PRIVATE "/service-account-disk", "service-account.iso"},
};

/* spec:02-14.13#16: each of the seven, below a /var/run that is a link. */
static void
test_images(FakeRoot *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(images); i++) {
        g_autofree char *path = g_build_filename(images[i].dir, images[i].file, NULL);
        g_autofree char *text = g_strnfill(1000 + i, 'x');
        ChHandsReply reply = {0};

        g_assert_false(ch_inside_stat_image(f->root_fd, images[i].image, "ns", "vm", &reply));
        g_assert_cmpint(reply.errnum, ==, ENOENT);
        test_tree_mkdir(f->pod.root, images[i].dir);
        test_tree_write(f->pod.root, path, text);
        reply = (ChHandsReply){0};
        g_assert_true(ch_inside_stat_image(f->root_fd, images[i].image, "ns", "vm", &reply));
        g_assert_cmpuint(reply.size, ==, 1000 + i);
    }
}

static void
put_link_to_host(const FakeRoot *f)
{
    g_autofree char *victim = g_build_filename(f->pod.dir, "victim", NULL);

    test_tree_link(f->pod.root, PRIVATE "/secret-disks/vm.iso", victim);
}

static void
put_directory(const FakeRoot *f)
{
    test_tree_mkdir(f->pod.root, PRIVATE "/secret-disks/vm.iso");
}

static void
put_fifo(const FakeRoot *f)
{
    g_autofree char *path = fake_pod_path(&f->pod, PRIVATE "/secret-disks/vm.iso");

    g_assert_cmpint(mkfifo(path, 0600), ==, 0);
}

static const struct {
    const char *path;
    void (*put)(const FakeRoot *f);
} strangers[] = {
    {"link-to-host", put_link_to_host},
    {"directory", put_directory},
    {"fifo", put_fifo},
};

/* What the pod put there instead; a FIFO must not make anybody wait. */
static void
test_stranger(FakeRoot *f, gconstpointer data)
{
    void (*const *put)(const FakeRoot *f) = data;
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->pod.root, PRIVATE "/secret-disks");
    (*put)(f);
    g_assert_false(ch_inside_stat_image(f->root_fd, CH_HANDS_IMAGE_SECRET, "ns", "vm", &reply));
    g_assert_cmpint(reply.errnum, ==, EINVAL);
    g_assert_cmpuint(reply.size, ==, 0);
}

/* A link on the way is the pod's: it leads to what is there in the pod, not on the host. */
static void
test_link_on_the_way(FakeRoot *f, gconstpointer data)
{
    g_autofree char *outside = NULL;
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    outside = g_build_filename(f->pod.dir, "outside", NULL);
    test_tree_mkdir(f->pod.dir, "outside");
    test_tree_write(f->pod.dir, "outside/vm.iso", "the host's");
    test_tree_mkdir(f->pod.root, PRIVATE);
    test_tree_link(f->pod.root, PRIVATE "/secret-disks", outside);
    g_assert_false(ch_inside_stat_image(f->root_fd, CH_HANDS_IMAGE_SECRET, "ns", "vm", &reply));
    g_assert_cmpint(reply.errnum, ==, ENOENT);
}

/* False: this kernel or file system takes no labels; the test says that it is skipped. */
static bool
set_label(const FakeRoot *f, const char *label, gsize size)
{
    if (setxattr(f->pod.root, "security.selinux", label, size, 0) == 0)
        return true;
    g_test_skip("no SELinux labels on this file system");
    return false;
}

static void
test_label(FakeRoot *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip() || !set_label(f, LABEL, sizeof(LABEL)))
        return;
    g_assert_true(ch_inside_read_label(f->root_fd, &reply));
    g_assert_cmpstr(reply.text, ==, LABEL);
}

static void
test_no_label(FakeRoot *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    g_assert_false(ch_inside_read_label(f->root_fd, &reply));
    g_assert_cmpint(reply.errnum, !=, 0);
}

/* 02 trap 19: nothing is left when the last byte of nothing is cut. */
static void
test_empty_label(FakeRoot *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip() || !set_label(f, "", 1))
        return;
    g_assert_false(ch_inside_read_label(f->root_fd, &reply));
    g_assert_cmpint(reply.errnum, ==, ENODATA);
}

/* Longer than an answer: an error, and no half label. */
static void
test_long_label(FakeRoot *f, gconstpointer data)
{
    g_autofree char *label = g_strnfill(CH_HANDS_TEXT_SIZE, 'c');
    ChHandsReply reply = {0};

    if (fake_pod_skip() || !set_label(f, label, CH_HANDS_TEXT_SIZE + 1))
        return;
    g_assert_false(ch_inside_read_label(f->root_fd, &reply));
    g_assert_cmpint(reply.errnum, ==, ERANGE);
}

#define ADD(path, data, func)                                                                      \
    g_test_add("/inside-look/" path, FakeRoot, data, fake_root_set_up, func, fake_root_tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("images", NULL, test_images);
    for (gsize i = 0; i < G_N_ELEMENTS(strangers); i++) {
        g_autofree char *path = g_strconcat("/inside-look/stranger/", strangers[i].path, NULL);

        g_test_add(path,
                   FakeRoot,
                   &strangers[i].put,
                   fake_root_set_up,
                   test_stranger,
                   fake_root_tear_down);
    }
    ADD("link-on-the-way", NULL, test_link_on_the_way);
    ADD("label", NULL, test_label);
    ADD("no-label", NULL, test_no_label);
    ADD("empty-label", NULL, test_empty_label);
    ADD("long-label", NULL, test_long_label);
    return g_test_run();
}
