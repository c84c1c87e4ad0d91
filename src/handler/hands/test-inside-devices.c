/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-devices.h"

#include "handler/hands/test-fake-pod.h"
#include "lib/base/fd.h"

typedef struct {
    FakePod pod;
    int root_fd;
    ChDeviceRules rules;
    ChHandsReply reply;
} Fixture;

/* A pod whose /dev is a tmpfs of its own, in this process's mount namespace alone. */
static void
set_up(Fixture *f, gconstpointer data)
{
    g_autofree char *dev = NULL;

    f->root_fd = -EBADF;
    if (geteuid() != 0)
        return;
    fake_pod_init(&f->pod);
    dev = fake_pod_path(&f->pod, "dev");
    g_assert_cmpint(mount("dev", dev, "tmpfs", 0, "mode=0755"), ==, 0);
    f->root_fd = open(f->pod.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(f->root_fd, >=, 0);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    g_autofree char *dev = NULL;

    if (f->root_fd < 0)
        return;
    close(f->root_fd);
    dev = fake_pod_path(&f->pod, "dev");
    g_assert_cmpint(umount2(dev, MNT_DETACH), ==, 0);
    fake_pod_clear(&f->pod);
}

static void
make_node(const Fixture *f, const char *in_root, mode_t type, unsigned major_n, unsigned minor_n)
{
    g_autofree char *path = fake_pod_path(&f->pod, in_root);

    g_assert_cmpint(mknod(path, type | 0600, makedev(major_n, minor_n)), ==, 0);
}

static bool
list(Fixture *f, uint32_t flags)
{
    f->reply = (ChHandsReply){0};
    return ch_inside_list_devices(f->root_fd, flags, &f->rules, &f->reply);
}

static bool
has(const Fixture *f, const char *expected)
{
    for (gsize i = 0; i < f->rules.n_rules; i++) {
        char line[CH_DEVICE_LINE_SIZE];

        ch_device_line_print(line, &f->rules.rules[i]);
        if (g_str_equal(line, expected))
            return true;
    }
    return false;
}

/* spec:05-16.5#129, field:FR-G01, field:FR-G03, field:FR-G04: whatever the runtime put there. */
static void
test_all(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->pod.root, "dev/vfio");
    test_tree_mkdir(f->pod.root, "dev/bus/usb/001");
    make_node(f, "dev/vfio/vfio", S_IFCHR, 10, 196);
    make_node(f, "dev/vfio/42", S_IFCHR, 240, 7);
    make_node(f, "dev/bus/usb/001/002", S_IFCHR, 189, 1);
    make_node(f, "dev/bus/usb/001/003", S_IFCHR, 189, 2);
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 4);
    g_assert_true(has(f, "c 10:196 rwm"));
    g_assert_true(has(f, "c 240:7 rwm"));
    g_assert_true(has(f, "c 189:1 rwm"));
    g_assert_true(has(f, "c 189:2 rwm"));

    make_node(f, "dev/kvm", S_IFCHR, 10, 232); /* spec:05-16.5#128 */
    make_node(f, "dev/volume", S_IFBLK, 8, 16);
    make_node(f, "dev/sev", S_IFCHR, 10, 124);
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 7);
    g_assert_true(has(f, "c 10:232 rwm"));
    g_assert_true(has(f, "b 8:16 rwm"));
    g_assert_true(has(f, "c 10:124 rwm"));
}

/* spec:05-16.5#129: neither directory; both empty. */
static void
test_none(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 0);
    test_tree_mkdir(f->pod.root, "dev/vfio");
    test_tree_mkdir(f->pod.root, "dev/bus/usb");
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 0);
}

/* spec:05-16.5#130, field:FR-G02, field:FR-G04 */
static void
test_wanted(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    g_assert_false(list(f, CH_HANDS_RNG));
    g_assert_cmpint(f->reply.errnum, ==, ENOENT);
    g_assert_nonnull(strstr(f->reply.text, "/dev/urandom"));
    make_node(f, "dev/urandom", S_IFCHR, 1, 9);
    g_assert_true(list(f, CH_HANDS_RNG));
    g_assert_true(has(f, "c 1:9 rwm"));
    g_assert_false(list(f, CH_HANDS_RNG | CH_HANDS_VSOCK));
    g_assert_nonnull(strstr(f->reply.text, "/dev/vhost-vsock"));
    make_node(f, "dev/vhost-vsock", S_IFCHR, 10, 241);
    g_assert_true(list(f, CH_HANDS_RNG | CH_HANDS_VSOCK));
    g_assert_true(has(f, "c 10:241 rwm"));
}

static void
test_link_instead(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    test_tree_link(f->pod.root, "dev/urandom", "/dev/sda");
    g_assert_false(list(f, CH_HANDS_RNG));
    g_assert_cmpint(f->reply.errnum, ==, ELOOP);
    g_assert_true(list(f, 0)); /* where it is not wanted it is not followed */
    g_assert_cmpuint(f->rules.n_rules, ==, 0);
}

/* What a volume brings, mounted where the runtime's devices are: no device of it is let through. */
static void
test_foreign_file_system(Fixture *f, gconstpointer data)
{
    g_autofree char *source = NULL;
    g_autofree char *target = NULL;

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->pod.root, "volume");
    test_tree_mkdir(f->pod.root, "dev/vfio");
    make_node(f, "volume/disk", S_IFBLK, 8, 0);
    source = fake_pod_path(&f->pod, "volume");
    target = fake_pod_path(&f->pod, "dev/vfio");
    g_assert_cmpint(mount(source, target, NULL, MS_BIND, NULL), ==, 0);
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 0);
    g_assert_cmpint(umount2(target, MNT_DETACH), ==, 0);

    /* and a node alone, bound over a file */
    test_tree_write(f->pod.root, "dev/disk", "");
    g_free(source);
    g_free(target);
    source = fake_pod_path(&f->pod, "volume/disk");
    target = fake_pod_path(&f->pod, "dev/disk");
    g_assert_cmpint(mount(source, target, NULL, MS_BIND, NULL), ==, 0);
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 0);
    g_assert_cmpint(umount2(target, MNT_DETACH), ==, 0);
}

static void
test_other_mounts(Fixture *f, gconstpointer data)
{
    g_autofree char *target = NULL;

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->pod.root, "dev/shm");
    target = fake_pod_path(&f->pod, "dev/shm");
    g_assert_cmpint(mount("shm", target, "tmpfs", 0, ""), ==, 0);
    make_node(f, "dev/shm/x", S_IFBLK, 8, 0);
    make_node(f, "dev/null", S_IFCHR, 1, 3);
    test_tree_write(f->pod.root, "dev/file", "no device");
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 1);
    g_assert_true(has(f, "c 1:3 rwm"));
    g_assert_cmpint(umount2(target, MNT_DETACH), ==, 0);
}

static void
test_too_many(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    for (unsigned i = 0; i <= CH_DEVICE_RULES_MAX; i++) {
        g_autofree char *path = g_strdup_printf("dev/node%u", i);

        make_node(f, path, S_IFCHR, 240, i);
    }
    g_assert_false(list(f, 0));
    g_assert_cmpint(f->reply.errnum, ==, ENOSPC);
    g_assert_nonnull(strstr(f->reply.text, "failed to discover device rules in /dev"));
}

/* Deeper than devices are: not looked into, and no error. */
static void
test_deep(Fixture *f, gconstpointer data)
{
    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->pod.root, "dev/1/2/3/4/5/6/7/8/9");
    make_node(f, "dev/1/2/3/node", S_IFCHR, 240, 1);
    make_node(f, "dev/1/2/3/4/5/6/7/8/9/node", S_IFCHR, 240, 2);
    g_assert_true(list(f, 0));
    g_assert_cmpuint(f->rules.n_rules, ==, 1);
}

#define ADD(path, func) g_test_add("/inside-devices/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (geteuid() == 0 &&
        (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
        g_error("a mount namespace: %s", g_strerror(errno));
    ADD("all", test_all);
    ADD("none", test_none);
    ADD("wanted", test_wanted);
    ADD("link-instead", test_link_instead);
    ADD("foreign-file-system", test_foreign_file_system);
    ADD("other-mounts", test_other_mounts);
    ADD("too-many", test_too_many);
    ADD("deep", test_deep);
    return g_test_run();
}
