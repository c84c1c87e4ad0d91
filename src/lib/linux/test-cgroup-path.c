/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/cgroup-path.h"

#include <errno.h>
#include <glib.h>
#include <string.h>

#define POD "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice"
#define V1_TEXT(path)                                                                              \
    "12:cpu,cpuacct:" path "\n11:devices:" path "\n10:cpuset:" path "\n1:name=systemd:" path "\n"

static const struct FindCase {
    const char *path, *text, *controller;
    int result;
    const char *found;
} finds[] = {
    {"/cgroup-path/find/v2-systemd",
     "0::" POD "/cri-containerd-ab.scope\n",
     NULL,
     0,
     POD "/cri-containerd-ab.scope"},
    {"/cgroup-path/find/v2-cgroupfs",
     "0::/kubepods/burstable/pod12-34/ab\n",
     NULL,
     0,
     "/kubepods/burstable/pod12-34/ab"},
    {"/cgroup-path/find/v1-systemd",
     V1_TEXT(POD "/crio-ab.scope"),
     "devices",
     0,
     POD "/crio-ab.scope"},
    {"/cgroup-path/find/v1-cgroupfs",
     V1_TEXT("/kubepods/pod12/ab"),
     "cpuset",
     0,
     "/kubepods/pod12/ab"},
    {"/cgroup-path/find/v1-one-of-two", V1_TEXT("/x"), "cpuacct", 0, "/x"},
    {"/cgroup-path/find/v1-named", V1_TEXT("/x"), "name=systemd", 0, "/x"},
    {"/cgroup-path/find/hybrid", V1_TEXT("/one") "0::/two\n", "devices", 0, "/one"},
    {"/cgroup-path/find/hybrid-v2", V1_TEXT("/one") "0::/two\n", NULL, 0, "/two"},
    {"/cgroup-path/find/nested",
     "0::/kubelet.slice/kubepods/pod1/ab/housekeeping\n",
     NULL,
     0,
     "/kubelet.slice/kubepods/pod1/ab/housekeeping"},
    {"/cgroup-path/find/other-namespace", "0::/../../pod1/ab\n", NULL, 0, "/../../pod1/ab"},
    /* FR-Q02: the agent in a cgroup namespace of its own sees itself so */
    {"/cgroup-path/find/own-namespace", "0::/\n", NULL, 0, "/"},
    {"/cgroup-path/find/colon", "0::/a:b\n", NULL, 0, "/a:b"},
    {"/cgroup-path/find/no-newline", "0::/a", NULL, 0, "/a"},
    {"/cgroup-path/find/first-counts", "0::/a\n0::/b\n", NULL, 0, "/a"},
    /* spec:05-16.5#134: no such controller */
    {"/cgroup-path/find/no-controller", "11:cpuset:/x\n0::/y\n", "devices", -ENOENT, NULL},
    {"/cgroup-path/find/part-of-a-name", "11:devices2:/x\n", "devices", -ENOENT, NULL},
    {"/cgroup-path/find/no-v2", "1:name=systemd:/x\n", NULL, -ENOENT, NULL},
    {"/cgroup-path/find/empty", "", NULL, -ENOENT, NULL},
    {"/cgroup-path/find/one-colon", "0:/x\n", NULL, -EINVAL, NULL},
    {"/cgroup-path/find/no-colon", "x\n", NULL, -EINVAL, NULL},
    {"/cgroup-path/find/empty-line", "\n", NULL, -EINVAL, NULL},
    {"/cgroup-path/find/relative", "0::x\n", NULL, -EINVAL, NULL},
    {"/cgroup-path/find/bad-line-after-it", "0::/x\njunk\n", NULL, -EINVAL, NULL},
};

static void
test_find(gconstpointer data)
{
    const struct FindCase *c = data;
    char path[CH_CGROUP_PATH_SIZE] = "untouched";

    g_assert_cmpint(ch_cgroup_find(c->text, strlen(c->text), c->controller, path), ==, c->result);
    if (c->result == 0)
        g_assert_cmpstr(path, ==, c->found);
}

static void
test_long_path(void)
{
    g_autofree char *name = g_strnfill(CH_CGROUP_PATH_SIZE - 1, 'x');
    g_autofree char *text = g_strconcat("0::/", name, "\n", NULL);
    char path[CH_CGROUP_PATH_SIZE];

    g_assert_cmpint(ch_cgroup_find(text, strlen(text), NULL, path), ==, -ENAMETOOLONG);
}

/* spec:05-16.5#131: a launcher in `housekeeping` is in the container all the same. */
static void
test_housekeeping(void)
{
    static const char *const cases[][2] = {
        {"/pod/ab/housekeeping", "/pod/ab"},
        {"/housekeeping", "/"},
        {"/pod/ab", "/pod/ab"},
        {"/pod/ab/housekeeping2", "/pod/ab/housekeeping2"},
        {"/pod/my-housekeeping", "/pod/my-housekeeping"},
        {"/pod/housekeeping/ab", "/pod/housekeeping/ab"},
        {"/", "/"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup(cases[i][0]);

        ch_cgroup_strip_housekeeping(path);
        g_assert_cmpstr(path, ==, cases[i][1]);
    }
}

/* spec:05-16.5#125: crun's directory in its scope, and nothing else. */
static void
test_scope(void)
{
    g_assert_true(ch_cgroup_is_in_scope("/pod.slice/crio-456.scope/container"));
    g_assert_false(ch_cgroup_is_in_scope("/pod.slice/crio-456.scope"));
    g_assert_false(ch_cgroup_is_in_scope("/pod.slice/crio-456/container"));
    g_assert_false(ch_cgroup_is_in_scope("/pod.slice/crio-456.scope/container2"));
    g_assert_false(ch_cgroup_is_in_scope(".scope/container"));
}

static const struct MountCase {
    const char *path, *line, *controller, *root, *point; /* NULL: no such mount */
} mount_lines[] = {
    {"/cgroup-path/mount/v2",
     "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate",
     NULL,
     "/",
     "/sys/fs/cgroup"},
    {"/cgroup-path/mount/v1",
     "35 30 0:31 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices",
     "devices",
     "/",
     "/sys/fs/cgroup/devices"},
    {"/cgroup-path/mount/joined-controllers",
     "35 30 0:31 / /sys/fs/cgroup/cpu,cpuacct rw shared:3 master:4 - cgroup cgroup rw,cpu,cpuacct",
     "cpuacct",
     "/",
     "/sys/fs/cgroup/cpu,cpuacct"},
    {"/cgroup-path/mount/part-of-it",
     "35 30 0:31 /kubepods/pod1/ab /sys/fs/cgroup/devices ro - cgroup cgroup rw,devices",
     "devices",
     "/kubepods/pod1/ab",
     "/sys/fs/cgroup/devices"},
    {"/cgroup-path/mount/other-namespace",
     "35 30 0:31 /../../.. /host/sys/fs/cgroup rw - cgroup2 cgroup2 rw",
     NULL,
     "/../../..",
     "/host/sys/fs/cgroup"},
    {"/cgroup-path/mount/escaped",
     "35 30 0:31 /a\\040b /mnt/c\\134d rw - cgroup2 cgroup2 rw",
     NULL,
     "/a b",
     "/mnt/c\\d"},
    {"/cgroup-path/mount/other-controller",
     "35 30 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
     "devices",
     NULL,
     NULL},
    {"/cgroup-path/mount/controller-is-no-v2",
     "35 30 0:31 / /x rw - cgroup2 cgroup2 rw,devices",
     "devices",
     NULL,
     NULL},
    {"/cgroup-path/mount/other-type",
     "35 30 0:31 / /x rw - tmpfs tmpfs rw,devices",
     "devices",
     NULL,
     NULL},
    {"/cgroup-path/mount/no-separator", "35 30 0:31 / /x rw cgroup2 cgroup2 rw", NULL, NULL, NULL},
    {"/cgroup-path/mount/nothing-behind", "35 30 0:31 / /x rw -", NULL, NULL, NULL},
    {"/cgroup-path/mount/short", "35 30", NULL, NULL, NULL},
    {"/cgroup-path/mount/empty", "", NULL, NULL, NULL},
    {"/cgroup-path/mount/relative", "35 30 0:31 / x rw - cgroup2 cgroup2 rw", NULL, NULL, NULL},
    {"/cgroup-path/mount/nul", "35 30 0:31 / /x\\000y rw - cgroup2 cgroup2 rw", NULL, NULL, NULL},
};

static void
test_mount(gconstpointer data)
{
    const struct MountCase *c = data;
    g_autofree ChCgroupMount *mount = g_new0(ChCgroupMount, 1);
    const bool is_one = ch_cgroup_mount_parse(c->line, strlen(c->line), c->controller, mount);

    g_assert_cmpint(is_one, ==, c->root != NULL);
    if (is_one) {
        g_assert_cmpstr(mount->root, ==, c->root);
        g_assert_cmpstr(mount->point, ==, c->point);
    }
}

static void
test_below(void)
{
    static const char *const cases[][3] = {
        {"/", "/kubepods/pod1/ab", "kubepods/pod1/ab"},
        {"/", "/", ""},
        {"/kubepods", "/kubepods/pod1", "pod1"},
        {"/kubepods", "/kubepods", ""},
        {"/kubepods/", "/kubepods/pod1", "pod1"},
        {"/kube", "/kubepods/pod1", NULL},
        {"/kubepods/pod1", "/kubepods", NULL},
        {"/", "/../../pod1", NULL},
        {"/../..", "/../../pod1", NULL},
        {"/..", "/x", NULL},
        {"/", "/..pod", "..pod"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpstr(ch_cgroup_below(cases[i][0], cases[i][1]), ==, cases[i][2]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(finds); i++)
        g_test_add_data_func(finds[i].path, &finds[i], test_find);
    g_test_add_func("/cgroup-path/long-path", test_long_path);
    g_test_add_func("/cgroup-path/housekeeping", test_housekeeping);
    g_test_add_func("/cgroup-path/scope", test_scope);
    for (gsize i = 0; i < G_N_ELEMENTS(mount_lines); i++)
        g_test_add_data_func(mount_lines[i].path, &mount_lines[i], test_mount);
    g_test_add_func("/cgroup-path/below", test_below);
    return g_test_run();
}
