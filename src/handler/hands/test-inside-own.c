/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-own.h"

#include "handler/hands/test-fake-root.h"
#include "lib/base/fd.h"

typedef struct {
    FakeRoot root;
    char *sysfs; /* owned; where the pod's devices get their names from */
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    fake_root_set_up(&f->root, data);
    if (f->root.root_fd < 0)
        return;
    f->sysfs = g_build_filename(f->root.pod.dir, "sys", NULL);
    test_tree_mkdir(f->sysfs, "dev/char");
    ch_inside_set_sysfs(f->sysfs);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_inside_set_sysfs("/sys");
    g_free(f->sysfs);
    fake_root_tear_down(&f->root, data);
}

static void
make_node(const Fixture *f, const char *path, mode_t type, unsigned major_, unsigned minor_)
{
    g_autofree char *full = fake_pod_path(&f->root.pod, path);

    g_assert_cmpint(mknod(full, type | 0600, makedev(major_, minor_)), ==, 0);
}

static void
name_device(const Fixture *f, const char *numbers, const char *name)
{
    g_autofree char *target = g_strconcat("../../devices/virtual/", name, NULL);
    g_autofree char *path = g_strconcat("dev/char/", numbers, NULL);

    test_tree_link(f->sysfs, path, target);
}

static bool
is_107(const Fixture *f, const char *path)
{
    const struct stat st = test_tree_stat(f->root.pod.root, path);

    return st.st_uid == 107 && st.st_gid == 107;
}

static int
own(const Fixture *f, uint32_t devices, bool may_lack_kvm, ChHandsReply *out_reply)
{
    *out_reply = (ChHandsReply){0};
    g_assert_true(ch_inside_own_devices(f->root.root_fd, devices, may_lack_kvm, out_reply) ==
                  (out_reply->errnum == 0));
    return out_reply->errnum;
}

/* spec:05-16.7#147 */
static void
test_devices(Fixture *f, gconstpointer data)
{
    static const char *const paths[] = {
        "dev/kvm", "dev/mshv", "dev/vhost-vsock", "dev/sev", "dev/vhost-net", "dev/net/tun"};
    static const unsigned minors[] = {232, 120, 241, 121, 238, 200};
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    name_device(f, "10:120", "misc/mshv");
    name_device(f, "10:121", "misc/sev");
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++)
        make_node(f, paths[i], S_IFCHR, 10, minors[i]);
    for (int times = 0; times < 2; times++) /* the second time there is nothing to do */
        g_assert_cmpint(own(f, CH_HANDS_DEVICES, false, &reply), ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_assert_true(is_107(f, paths[i]));
        g_assert_cmpint(test_tree_stat(f->root.pod.root, paths[i]).st_mode & 07777, ==, 0600);
    }
}

static void
test_only_what_is_asked_for(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    make_node(f, "dev/kvm", S_IFCHR, 10, 232);
    make_node(f, "dev/net/tun", S_IFCHR, 10, 200);
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_TUN, false, &reply), ==, 0);
    g_assert_true(is_107(f, "dev/net/tun"));
    g_assert_false(is_107(f, "dev/kvm"));
}

/* spec:05-16.7#148 spec:05-16.7#149: a missing device ends it, KVM without emulation only; what
 * comes after the first that fails is not touched. */
static void
test_missing_device(Fixture *f, gconstpointer data)
{
    const uint32_t devices = CH_HANDS_DEVICE_KVM | CH_HANDS_DEVICE_VHOST_NET | CH_HANDS_DEVICE_TUN;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    make_node(f, "dev/net/tun", S_IFCHR, 10, 200);
    g_assert_cmpint(own(f, devices, false, &reply), ==, ENOENT);
    g_assert_cmpuint(reply.device, ==, CH_HANDS_DEVICE_KVM);
    g_assert_cmpstr(reply.text, ==, "failed opening /dev/kvm: no such file or directory");
    g_assert_cmpint(own(f, devices, true, &reply), ==, ENOENT);
    g_assert_cmpuint(reply.device, ==, CH_HANDS_DEVICE_VHOST_NET);
    g_assert_false(is_107(f, "dev/net/tun"));
    make_node(f, "dev/vhost-net", S_IFCHR, 10, 238);
    g_assert_cmpint(own(f, devices, true, &reply), ==, 0);
    g_assert_cmpstr(reply.text, ==, "");
    g_assert_true(is_107(f, "dev/net/tun"));
}

/* spec:05-16.7#151 */
static void
test_missing_sev(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_SEV, true, &reply), ==, ENOENT);
    g_assert_cmpuint(reply.device, ==, CH_HANDS_DEVICE_SEV);
}

/* Nodes of other devices, other files, and links: refused, unchanged. */
static void
test_false_device(Fixture *f, gconstpointer data)
{
    g_autofree char *path = NULL;
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    path = fake_pod_path(&f->root.pod, "dev/kvm");
    make_node(f, "dev/kvm", S_IFCHR, 10, 1);
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_KVM, false, &reply), ==, ENODEV);
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_KVM, true, &reply), ==, 0); /* as if there was none */
    g_assert_cmpint(test_tree_stat(f->root.pod.root, "dev/kvm").st_uid, ==, 0);
    (void)unlink(path);
    make_node(f, "dev/kvm", S_IFBLK, 10, 232);
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_KVM, false, &reply), ==, ENODEV);
    (void)unlink(path);
    test_tree_write(f->root.pod.root, "dev/kvm", "");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_KVM, false, &reply), ==, ENODEV);
    (void)unlink(path);
    test_tree_link(f->root.pod.root, "dev/kvm", "../../victim");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_KVM, false, &reply), ==, ELOOP);
    (void)unlink(path);
    make_node(f, "dev/other", S_IFCHR, 10, 232);
    test_tree_link(f->root.pod.root, "dev/kvm", "other");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_KVM, false, &reply), ==, ELOOP);
    g_assert_cmpint(test_tree_stat(f->root.pod.root, "dev/other").st_uid, ==, 0);
}

/* Numbers that the kernel draws: it is sysfs that says what they are. */
static void
test_named_device(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    make_node(f, "dev/sev", S_IFCHR, 10, 55);
    name_device(f, "10:55", "misc/notsev");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_SEV, false, &reply), ==, ENODEV);
    g_assert_false(is_107(f, "dev/sev"));
    make_node(f, "dev/mshv", S_IFCHR, 10, 56); /* no device has these numbers */
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_MSHV, false, &reply), ==, 0);
}

/* spec:05-16.7#151: without the directory, or the container node in it, there is nothing to do */
static void
test_no_vfio(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_VFIO, false, &reply), ==, 0);
    test_tree_mkdir(f->root.pod.root, "dev/vfio");
    make_node(f, "dev/vfio/12", S_IFCHR, 500, 12);
    name_device(f, "500:12", "vfio/12");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_VFIO, false, &reply), ==, 0);
    g_assert_cmpstr(reply.text, ==, "");
    g_assert_false(is_107(f, "dev/vfio/12"));
}

static void
test_vfio(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->root.pod.root, "dev/vfio/devices");
    make_node(f, "dev/vfio/vfio", S_IFCHR, 10, 196);
    for (unsigned i = 1; i <= 300; i++) { /* more than one reading of the directory brings */
        g_autofree char *path = g_strdup_printf("dev/vfio/%u", i);
        g_autofree char *numbers = g_strdup_printf("500:%u", i);
        g_autofree char *name = g_strdup_printf("vfio/%u", i);

        make_node(f, path, S_IFCHR, 500, i);
        name_device(f, numbers, name);
    }
    make_node(f, "dev/vfio/noiommu-7", S_IFCHR, 500, 307);
    name_device(f, "500:307", "vfio/noiommu-7");
    make_node(f, "dev/vfio/stranger", S_IFCHR, 1, 3);
    name_device(f, "1:3", "mem/null");
    test_tree_write(f->root.pod.root, "dev/vfio/file", "");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_VFIO, false, &reply), ==, 0);
    g_assert_cmpint(test_tree_stat(f->root.pod.root, "dev/vfio/vfio").st_mode & 07777, ==, 0666);
    g_assert_false(is_107(f, "dev/vfio/vfio"));
    for (unsigned i = 1; i <= 300; i++) {
        g_autofree char *path = g_strdup_printf("dev/vfio/%u", i);

        g_assert_true(is_107(f, path));
    }
    g_assert_true(is_107(f, "dev/vfio/noiommu-7"));
    g_assert_false(is_107(f, "dev/vfio/stranger"));
    g_assert_false(is_107(f, "dev/vfio/file"));
    g_assert_false(is_107(f, "dev/vfio/devices"));
}

static void
test_hostile_vfio(Fixture *f, gconstpointer data)
{
    ChHandsReply reply;

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->root.pod.root, "dev/vfio");
    test_tree_link(f->root.pod.root, "dev/vfio/vfio", "../../../victim");
    g_assert_cmpint(own(f, CH_HANDS_DEVICE_VFIO, false, &reply), ==, ELOOP);
    g_assert_cmpint(test_tree_stat(f->root.pod.dir, "victim").st_mode & 07777, ==, 0644);
}

/* A volume that is not there is another VM's business. */
static void
test_block(Fixture *f, gconstpointer data)
{
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    g_assert_true(ch_inside_own_block(f->root.root_fd, "disk0", &reply));
    make_node(f, "dev/disk0", S_IFBLK, 7, 200);
    g_assert_true(ch_inside_own_block(f->root.root_fd, "disk0", &reply));
    g_assert_true(is_107(f, "dev/disk0"));
    make_node(f, "dev/disk1", S_IFCHR, 1, 1);
    g_assert_false(ch_inside_own_block(f->root.root_fd, "disk1", &reply));
    g_assert_cmpint(reply.errnum, ==, ENOTBLK);
    test_tree_link(f->root.pod.root, "dev/disk2", "../../victim");
    g_assert_false(ch_inside_own_block(f->root.root_fd, "disk2", &reply));
    g_assert_cmpint(reply.errnum, ==, ELOOP);
}

#define VIRTIOFS "run/kubevirt/virtiofs-containers"

/* spec:05-16.7#151 */
static void
test_virtiofs(Fixture *f, gconstpointer data)
{
    g_autofree char *dir = NULL;
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {0};

    if (fake_pod_skip())
        return;
    test_tree_mkdir(f->root.pod.root, VIRTIOFS);
    g_assert_false(ch_inside_own_virtiofs(f->root.root_fd, "fs", &reply));
    g_assert_cmpint(reply.errnum, ==, ENOENT);
    dir = fake_pod_path(&f->root.pod, VIRTIOFS);
    fd = fake_pod_listen(dir, "fs.sock");
    g_assert_true(ch_inside_own_virtiofs(f->root.root_fd, "fs", &reply));
    g_assert_true(is_107(f, VIRTIOFS "/fs.sock"));
    test_tree_write(f->root.pod.root, VIRTIOFS "/file.sock", "");
    g_assert_false(ch_inside_own_virtiofs(f->root.root_fd, "file", &reply));
    g_assert_cmpint(reply.errnum, ==, ENOTSOCK);
    g_assert_false(is_107(f, VIRTIOFS "/file.sock"));
    test_tree_link(f->root.pod.root, VIRTIOFS "/link.sock", "../../../../victim");
    g_assert_false(ch_inside_own_virtiofs(f->root.root_fd, "link", &reply));
}

/* Runs without the right to change owners, as root is on a file system that squashes it. */
static int
run_without_chown(const Fixture *f, bool (*func)(const Fixture *f))
{
    int status = 0;
    const pid_t child = fork();

    if (child == 0) {
        if (setgid(65534) < 0 || setuid(65534) < 0)
            _exit(99);
        _exit(func(f) ? 0 : 1);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    return WEXITSTATUS(status);
}

static bool
own_file(const Fixture *f)
{
    ch_autofd int fd = openat(f->root.root_fd, "file", O_PATH | O_CLOEXEC);
    ChHandsReply reply = {0};

    if (ch_inside_own(fd, "/file", S_IROTH | S_IWOTH, &reply))
        return true;
    /* The error names the file and its owner. */
    if (!g_str_equal(reply.text,
                     "change ownership of /file (0:107, mode 0640): operation not permitted"))
        _exit(98);
    return false;
}

/* field:FR-G20 */
static void
test_squashed_root(Fixture *f, gconstpointer data)
{
    g_autofree char *path = NULL;

    if (fake_pod_skip())
        return;
    path = fake_pod_path(&f->root.pod, "file");
    test_tree_write(f->root.pod.root, "file", "");
    g_assert_cmpint(chmod(f->root.pod.dir, 0755), ==, 0);
    g_assert_cmpint(chown(path, 0, 107), ==, 0);
    g_assert_cmpint(chmod(path, 0640), ==, 0);
    g_assert_cmpint(run_without_chown(f, own_file), ==, 1);
    g_assert_cmpint(chmod(path, 0660), ==, 0); /* its group may */
    g_assert_cmpint(run_without_chown(f, own_file), ==, 0);
    g_assert_cmpint(chown(path, 107, 107), ==, 0); /* nothing to change */
    g_assert_cmpint(chmod(path, 0), ==, 0);
    g_assert_cmpint(run_without_chown(f, own_file), ==, 0);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*func)(Fixture *f, gconstpointer data);
    } tests[] = {
        {"/inside-own/devices-become-107", test_devices},
        {"/inside-own/only-what-is-asked-for", test_only_what_is_asked_for},
        {"/inside-own/missing-device", test_missing_device},
        {"/inside-own/missing-sev", test_missing_sev},
        {"/inside-own/false-device", test_false_device},
        {"/inside-own/named-device", test_named_device},
        {"/inside-own/no-vfio", test_no_vfio},
        {"/inside-own/vfio", test_vfio},
        {"/inside-own/hostile-vfio", test_hostile_vfio},
        {"/inside-own/block", test_block},
        {"/inside-own/virtiofs", test_virtiofs},
        {"/inside-own/squashed-root", test_squashed_root},
    };

    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].path, Fixture, NULL, set_up, tests[i].func, tear_down);
    return g_test_run();
}
