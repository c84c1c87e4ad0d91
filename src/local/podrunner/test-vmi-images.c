/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-images.h"

#include "lib/base/errors.h"

static void
test_disks_and_kernel(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) vmi = ch_json_parse(
        "{\"spec\":{\"domain\":{\"firmware\":{\"kernelBoot\":{\"container\":{\"image\":\"k:1\","
        "\"kernelPath\":\"/boot/vmlinuz\",\"initrdPath\":\"/boot/initrd.img\"}}}},\"volumes\":["
        "{\"name\":\"seed\",\"cloudInitNoCloud\":{}},{\"name\":\"root\",\"containerDisk\":{"
        "\"image\":\"r:2\"}},{\"name\":\"more\",\"containerDisk\":{\"image\":\"m\",\"path\":"
        "\"/x/y.qcow2\"}}]}}",
        -1,
        NULL);
    g_autoptr(GArray) needs = ch_vmi_images(vmi, &error);
    static const char *const expected[][4] = {
        {"r:2", "/disk/", "/var/run/kubevirt/container-disks/disk_1.img", "disk_1"},
        {"m", "/x/y.qcow2", "/var/run/kubevirt/container-disks/disk_2.img", "disk_2"},
        {"k:1",
         "/boot/vmlinuz",
         "/var/run/kubevirt/container-disks/kernel-boot/vmlinuz",
         "kernel-boot"},
        {"k:1",
         "/boot/initrd.img",
         "/var/run/kubevirt/container-disks/kernel-boot/initrd.img",
         "kernel-boot"},
    };

    g_assert_no_error(error);
    g_assert_cmpuint(needs->len, ==, G_N_ELEMENTS(expected));
    for (guint i = 0; i < needs->len; i++) {
        const ChImageNeed *need = &g_array_index(needs, ChImageNeed, i);

        g_assert_cmpstr(need->image, ==, expected[i][0]);
        g_assert_cmpstr(need->wanted, ==, expected[i][1]);
        g_assert_cmpstr(need->target, ==, expected[i][2]);
        g_assert_cmpstr(need->holder, ==, expected[i][3]);
    }
}

static void
test_hostile_kernel_paths(void)
{
    static const char *const paths[] = {"/boot/", "..", "/boot/..", "."};

    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *text =
            g_strdup_printf("{\"spec\":{\"domain\":{\"firmware\":{\"kernelBoot\":{\"container\":{"
                            "\"image\":\"k\",\"kernelPath\":\"%s\"}}}}}}",
                            paths[i]);
        g_autoptr(ChJson) vmi = ch_json_parse(text, -1, NULL);

        g_assert_null(ch_vmi_images(vmi, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

static void
test_held_paths(void)
{
    const ChImageNeed any = {.wanted = (char *)"/disk/"};
    const ChImageNeed one = {.wanted = (char *)"boot/vmlinuz"};
    g_autofree char *in_dir = ch_image_held_path(&any, "/cache/x/root.qcow2");
    g_autofree char *named = ch_image_held_path(&one, "/cache/y/content");

    g_assert_cmpstr(in_dir, ==, "/disk/root.qcow2");
    g_assert_cmpstr(named, ==, "/boot/vmlinuz");
}

static const struct GateCase {
    const char *developer;
    bool are_volumes;
} gates[] = {
    {"{}", true},
    {"{\"featureGates\":[\"ImageVolume\"]}", true},
    {"{\"disabledFeatureGates\":[\"ImageVolume\"]}", false},
    {"{\"disabledFeatureGates\":[\"Sidecar\",7]}", true},
    {"{\"featureGates\":[\"ImageVolume\"],\"disabledFeatureGates\":[\"ImageVolume\"]}", true},
};

static void
test_gate(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(gates); i++) {
        g_autofree char *text = g_strdup_printf(
            "{\"spec\":{\"configuration\":{\"developerConfiguration\":%s}}}", gates[i].developer);
        g_autoptr(ChJson) kubevirt = ch_json_parse(text, -1, NULL);

        g_assert_cmpint(ch_images_are_volumes(kubevirt), ==, gates[i].are_volumes);
    }
    g_assert_true(ch_images_are_volumes(NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vmi-images/disks-and-kernel", test_disks_and_kernel);
    g_test_add_func("/vmi-images/hostile-kernel-paths", test_hostile_kernel_paths);
    g_test_add_func("/vmi-images/held-paths", test_held_paths);
    g_test_add_func("/vmi-images/gate", test_gate);
    return g_test_run();
}
