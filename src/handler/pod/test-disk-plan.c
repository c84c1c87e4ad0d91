/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/disk-plan.h"
#include "lib/json/test-text.h"

/* The index is that of the volume among all volumes. */
static void
test_plan(void)
{
    g_autoptr(ChJson) vmi = parse_json(
        "{\"spec\":{\"volumes\":[{\"name\":\"a\",\"emptyDisk\":{}},"
        "{\"name\":\"b\",\"containerDisk\":{\"image\":\"x\"}},"
        "{\"name\":\"c\",\"containerDisk\":{\"path\":\"/custom/c.img\"}}],"
        "\"domain\":{\"firmware\":{\"kernelBoot\":{\"container\":{\"kernelPath\":\"/boot/"
        "k\"}}}}}}");
    g_autoptr(GArray) items = ch_disk_plan_new(vmi);
    const ChDiskPlanItem *item = (const ChDiskPlanItem *)(gpointer)items->data;

    g_assert_cmpuint(items->len, ==, 3);
    g_assert_cmpuint(item[0].index, ==, 1);
    g_assert_cmpstr(item[0].name, ==, "b");
    g_assert_cmpstr(item[0].path, ==, "");
    g_assert_cmpuint(item[1].index, ==, 2);
    g_assert_cmpstr(item[1].path, ==, "/custom/c.img");
    g_assert_cmpint(item[2].mount, ==, CH_HANDS_MOUNT_BOOT);
    g_assert_cmpstr(item[2].path, ==, "/boot/k");
    g_assert_true(ch_disk_plan_has_kernel(vmi));
    g_assert_false(ch_disk_plan_has_kernel(NULL));
}

static void
test_nothing(void)
{
    static const char *const vmis[] = {
        "{}",
        "{\"spec\":{\"volumes\":{}}}",
        "{\"spec\":{\"volumes\":[null,1,\"a\",{\"name\":\"a\",\"containerDisk\":null}]}}",
        "{\"spec\":{\"domain\":{\"firmware\":{\"kernelBoot\":{\"kernelArgs\":\"a\"}}}}}",
        "{\"spec\":{\"domain\":{\"firmware\":{\"kernelBoot\":{\"container\":{\"kernelPath\":1,"
        "\"initrdPath\":\"\"}}}}}}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(vmis); i++) {
        g_autoptr(ChJson) vmi = parse_json(vmis[i]);
        g_autoptr(GArray) items = ch_disk_plan_new(vmi);

        g_assert_cmpuint(items->len, ==, 0);
    }
}

/* spec:05-16.3#66 */
static void
test_paths(void)
{
    static const struct {
        ChHandsMount mount;
        unsigned index;
        const char *target, *socket;
    } cases[] = {
        {CH_HANDS_MOUNT_DISK, 0, "disk_0.img", "disk_0.sock"},
        {CH_HANDS_MOUNT_DISK, 65535, "disk_65535.img", "disk_65535.sock"},
        {CH_HANDS_MOUNT_BOOT, 0, "kernel-boot", "kernel-boot.sock"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *target =
            ch_disk_plan_target("/var/lib/kubelet/pods", "uid-1", cases[i].mount, cases[i].index);
        g_autofree char *socket =
            ch_disk_plan_socket("/pods", "uid-1", cases[i].mount, cases[i].index);
        g_autofree char *expected_target = g_strconcat(
            "/var/lib/kubelet/pods/uid-1/volumes/kubernetes.io~empty-dir/container-disks/",
            cases[i].target,
            NULL);
        g_autofree char *expected_socket = g_strconcat(
            "/pods/uid-1/volumes/kubernetes.io~empty-dir/container-disks/", cases[i].socket, NULL);
        g_autofree char *pod_uid = NULL;
        ChHandsMount mount = CH_HANDS_MOUNT_NONE;
        unsigned index = 7;

        g_assert_cmpstr(target, ==, expected_target);
        g_assert_cmpstr(socket, ==, expected_socket);
        g_assert_true(
            ch_disk_plan_parse_target(target, "/var/lib/kubelet/pods/", &pod_uid, &mount, &index));
        g_assert_cmpstr(pod_uid, ==, "uid-1");
        g_assert_cmpint(mount, ==, cases[i].mount);
        g_assert_cmpuint(index, ==, cases[i].index);
    }
}

static void
test_other_paths(void)
{
    static const char *const paths[] = {
        "",
        "/etc/passwd",
        "/p",
        "/p/",
        "/p/u",
        "/pp/u/volumes/kubernetes.io~empty-dir/container-disks/disk_0.img",
        "/p/../u/volumes/kubernetes.io~empty-dir/container-disks/disk_0.img",
        "/p/u/../volumes/kubernetes.io~empty-dir/container-disks/disk_0.img",
        "/p//volumes/kubernetes.io~empty-dir/container-disks/disk_0.img",
        "/p/u/volumes/kubernetes.io~empty-dir/hotplug-disks/disk_0.img",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/disk_.img",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/disk_-1.img",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/disk_65536.img",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/disk_0.img/x",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/disk_0.imgx",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/disk_.im",
        "/p/u/volumes/kubernetes.io~empty-dir/container-disks/kernel-boot/vmlinuz",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *pod_uid = NULL;
        ChHandsMount mount;
        unsigned index;

        g_assert_false(ch_disk_plan_parse_target(paths[i], "/p", &pod_uid, &mount, &index));
        g_assert_null(pod_uid);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/disk-plan/plan", test_plan);
    g_test_add_func("/disk-plan/nothing", test_nothing);
    g_test_add_func("/disk-plan/paths", test_paths);
    g_test_add_func("/disk-plan/other-paths", test_other_paths);
    return g_test_run();
}
