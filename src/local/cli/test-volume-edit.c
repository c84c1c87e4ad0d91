/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/volume-edit.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

static void
test_names(void)
{
    static const char *const names[][2] = {
        {"/srv/data.img", "data"},
        {"/srv/My Data (old).qcow2", "my-data-old"},
        {"./a", "a"},
        {"/srv/.hidden", "hidden"},
        {"/srv/___.img", "volume"},
        {"/", "volume"},
        {"my-claim", "my-claim"},
        {"/dev/sdb1", "sdb1"},
    };
    g_autofree char *long_path = g_strnfill(300, 'x');
    g_autofree char *short_name = ch_volume_name_of_path(long_path);

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = ch_volume_name_of_path(names[i][0]);

        g_assert_cmpstr(name, ==, names[i][1]);
    }
    g_assert_cmpuint(strlen(short_name), <=, 63);
}

static void
test_there_and_back(void)
{
    g_autoptr(ChJson) vmi = parse_json("{\"spec\":{\"domain\":{\"devices\":{\"rng\":{}}}}}");
    g_autoptr(GError) error = NULL;
    g_autofree char *claim = NULL;
    const ChVolumeEdit edit = {"data", "vm-data", "virtio"};

    g_assert_true(ch_vmi_add_volume(vmi, &edit, &error));
    g_assert_no_error(error);
    assert_json(
        vmi,
        "{\"spec\":{\"domain\":{\"devices\":{\"rng\":{},\"disks\":[{\"name\":\"data\","
        "\"disk\":{\"bus\":\"virtio\"},\"serial\":\"data\"}]}},\"volumes\":[{\"name\":\"data\","
        "\"persistentVolumeClaim\":{\"claimName\":\"vm-data\",\"hotpluggable\":true}}]}}");
    g_assert_false(ch_vmi_add_volume(vmi, &edit, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_true(ch_vmi_remove_volume(vmi, "data", &claim, NULL));
    g_assert_cmpstr(claim, ==, "vm-data");
    assert_json(vmi,
                "{\"spec\":{\"domain\":{\"devices\":{\"rng\":{},\"disks\":[]}},\"volumes\":[]}}");
}

static void
test_what_cannot_be_detached(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{\"spec\":{\"volumes\":[{\"name\":\"seed\",\"emptyDisk\":{}}]}}");
    g_autoptr(GError) error = NULL;
    g_autofree char *claim = NULL;

    g_assert_false(ch_vmi_remove_volume(vmi, "seed", &claim, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_false(ch_vmi_remove_volume(vmi, "data", &claim, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_NOT_FOUND);
    g_assert_null(claim);
}

static void
test_claim(void)
{
    g_autoptr(ChJson) claim = ch_claim_new("lab", "vm-data", "/srv/data.img", false, 65536);

    assert_json(
        claim,
        "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":"
        "\"vm-data\",\"namespace\":\"lab\",\"labels\":{\"chandler.dev/made-by\":\"attach\"},"
        "\"annotations\":{\"chandler.dev/path\":\"/srv/data.img\"}},\"spec\":{\"resources\":{"
        "\"requests\":{\"storage\":\"65536\"}},\"accessModes\":[\"ReadWriteOnce\"],"
        "\"volumeMode\":\"Filesystem\"}}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-edit/names", test_names);
    g_test_add_func("/volume-edit/there-and-back", test_there_and_back);
    g_test_add_func("/volume-edit/what-cannot-be-detached", test_what_cannot_be_detached);
    g_test_add_func("/volume-edit/claim", test_claim);
    return g_test_run();
}
