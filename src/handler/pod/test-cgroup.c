/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/cgroup.h"

#include "handler/hands/test-fake-cgroup.h"
#include "handler/hands/test-fake-pod.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"

#define BLOCK(major, minor) CH_DEVICE_RULE('b', major, minor, CH_DEVICE_ALL, 1)
#define DENY(major, minor)  CH_DEVICE_RULE('b', major, minor, CH_DEVICE_ALL, 0)

typedef struct {
    FakePod fake;
    FakeCgroup cgroup;
    ChHands *hands;
    ChPod *pod;
} Fixture;

/* Nodes of three volumes, which the hands made, in the launcher's pod. */
static void
make_volumes(const FakePod *fake)
{
    g_autofree char *dir = g_build_filename(
        fake->pods_dir, FAKE_POD_UID, "volumes/kubernetes.io~empty-dir/hotplug-disks", NULL);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    for (unsigned i = 0; i < 3; i++) {
        g_autofree char *name = g_strdup_printf("%s/vol%u", dir, i);

        g_assert_cmpint(mknod(name, S_IFBLK | 0600, makedev(7, 200 + i)), ==, 0);
    }
}

/* A launcher in a v1 cgroup of its own, as a container runtime leaves it. */
static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    ch_autofd int fd = -EBADF;

    fake_cgroup_init(&f->cgroup, "/sys/fs/cgroup/devices", "devices.list");
    if (geteuid() != 0)
        return;
    fake_pod_init(&f->fake);
    make_volumes(&f->fake);
    f->hands =
        ch_hands_start(NULL, &(ChHandsPlaces){f->fake.pods_dir, "/nonexistent", NULL, 0}, &error);
    g_assert_no_error(error);
    fake_pod_start_launcher(&f->fake, false);
    f->pod = ch_pod_connect(f->hands, FAKE_POD_UID, &fd, &error);
    g_assert_no_error(error);
    if (f->cgroup.dir == NULL)
        return;
    if (fake_cgroup_write(&f->cgroup, "devices.deny", "a")) {
        g_assert_true(fake_cgroup_write(&f->cgroup, "devices.allow", "c 1:3 rwm"));
        fake_cgroup_take(&f->cgroup, f->fake.pid);
    } else {
        fake_cgroup_clear(&f->cgroup);
    }
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->hands != NULL) {
        ch_pod_free(f->pod);
        fake_pod_kill_launcher(&f->fake);
        ch_hands_stop(f->hands);
        fake_pod_clear(&f->fake);
    }
    fake_cgroup_clear(&f->cgroup);
}

static ChPodCgroup *
make(Fixture *f)
{
    const ChPodCgroupOptions options = {0};
    g_autoptr(GError) error = NULL;
    ChPodCgroup *cgroup = ch_pod_cgroup_new(f->pod, &options, &error);

    g_assert_no_error(error);
    return cgroup;
}

static void
set(ChPodCgroup *cgroup, const ChDeviceRule *rules, gsize n_rules)
{
    g_autoptr(GError) error = NULL;

    ch_pod_cgroup_set_devices(cgroup, rules, n_rules, &error);
    g_assert_no_error(error);
}

static bool
lists(const Fixture *f, const char *line)
{
    g_autofree char *text = fake_cgroup_read(&f->cgroup, "devices.list");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    return g_strv_contains((const char *const *)lines, line);
}

/* spec:05-16.5#122, spec:05-16.5#123: through the real hands, in the kernel. */
static void
test_devices(Fixture *f, gconstpointer data)
{
    const ChDeviceRule two[] = {BLOCK(7, 200), BLOCK(7, 201)};
    g_autoptr(ChPodCgroup) cgroup = NULL;

    if (fake_cgroup_skip(&f->cgroup, "needs root and the v1 hierarchy of devices"))
        return;
    cgroup = make(f);
    set(cgroup, two, 2);
    g_assert_true(lists(f, "b 7:200 rwm"));
    g_assert_true(lists(f, "b 7:201 rwm"));
    g_assert_true(lists(f, "c 136:* rw"));
    set(cgroup, &BLOCK(7, 202), 1);
    g_assert_true(lists(f, "b 7:200 rwm"));
    g_assert_true(lists(f, "b 7:202 rwm"));
    set(cgroup, &DENY(7, 200), 1);
    g_assert_false(lists(f, "b 7:200 rwm"));
    g_assert_true(lists(f, "b 7:201 rwm"));
    g_assert_true(fake_cgroup_may_open(&f->cgroup, S_IFBLK, 7, 201));
    g_assert_false(fake_cgroup_may_open(&f->cgroup, S_IFBLK, 7, 200));
}

/* The launcher is where this test is, as in a pod without a cgroup: nothing is taken from anybody.
 */
static void
test_no_cgroup_of_its_own(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPodCgroup) cgroup = NULL;
    g_autofree char *before = NULL;
    g_autofree char *after = NULL;

    if (fake_cgroup_skip(&f->cgroup, "needs root and the v1 hierarchy of devices"))
        return;
    g_assert_true(g_file_get_contents("/sys/fs/cgroup/devices/devices.list", &before, NULL, NULL));
    if (!g_str_equal(before, "a *:* rwm\n")) {
        g_test_skip("needs a root cgroup that allows everything");
        return;
    }
    {
        FakeCgroup root = {(char *)"/sys/fs/cgroup/devices"};

        fake_cgroup_take(&root, f->fake.pid);
    }
    cgroup = make(f);
    set(cgroup, &DENY(7, 200), 1);
    g_assert_true(g_file_get_contents("/sys/fs/cgroup/devices/devices.list", &after, NULL, NULL));
    g_assert_cmpstr(after, ==, before);
}

static void
test_missing_device(Fixture *f, gconstpointer data)
{
    const ChPodCgroupOptions options = {.has_vsock = true};
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    g_assert_null(ch_pod_cgroup_new(f->pod, &options, &error));
    g_assert_error(error, CH_ERRNO, ENOENT);
    g_assert_nonnull(strstr(error->message, "/dev/vhost-vsock"));
}

static void
test_no_rules(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPodCgroup) cgroup = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    cgroup = make(f);
    g_assert_false(ch_pod_cgroup_set_devices(cgroup, NULL, 0, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_cmpstr(error->message, ==, "new rules cannot be nil");
}

/* The hands look at what the brain sends. */
static void
test_bad_rule(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPodCgroup) cgroup = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    cgroup = make(f);
    g_assert_false(
        ch_pod_cgroup_set_devices(cgroup, &CH_DEVICE_RULE('a', -1, -1, 7, 1), 1, &error));
    g_assert_error(error, CH_ERRNO, EINVAL);
}

/* What is none of the pod's volumes is nothing to be used. */
static void
test_foreign_device(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPodCgroup) cgroup = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    cgroup = make(f);
    g_assert_false(ch_pod_cgroup_set_devices(cgroup, &BLOCK(8, 0), 1, &error));
    g_assert_error(error, CH_ERRNO, EPERM);
    g_assert_nonnull(strstr(error->message, "device 'b 8:0 rwm' is of no volume of the pod"));
}

static void
test_launcher_is_gone(Fixture *f, gconstpointer data)
{
    g_autoptr(ChPodCgroup) cgroup = NULL;
    g_autoptr(GError) error = NULL;

    if (fake_pod_skip())
        return;
    cgroup = make(f);
    fake_pod_kill_launcher(&f->fake);
    g_assert_false(ch_pod_cgroup_set_devices(cgroup, &BLOCK(7, 200), 1, &error));
    g_assert_error(error, CH_ERRNO, ESRCH);
}

#define ADD(path, func) g_test_add("/pod-cgroup/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("devices", test_devices);
    ADD("no-cgroup-of-its-own", test_no_cgroup_of_its_own);
    ADD("missing-device", test_missing_device);
    ADD("no-rules", test_no_rules);
    ADD("bad-rule", test_bad_rule);
    ADD("foreign-device", test_foreign_device);
    ADD("launcher-is-gone", test_launcher_is_gone);
    return g_test_run();
}
