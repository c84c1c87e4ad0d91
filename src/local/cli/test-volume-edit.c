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
        {"/srv/var.img", "volume-var"},
    };
    g_autofree char *long_path = g_strnfill(300, 'x');
    g_autofree char *short_name = ch_volume_name_of_path(long_path);

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *name = ch_volume_name_of_path(names[i][0]);

        g_assert_cmpstr(name, ==, names[i][1]);
        g_assert_true(ch_volume_check_name(name, NULL));
    }
    g_assert_cmpuint(strlen(short_name), <=, 63);
}

static void
test_bad_names(void)
{
    static const char *const names[] = {"", "Data", "a_b", "-a", "a-", "a.b", "a/b", "dev", "ü"};
    g_autofree char *long_name = g_strnfill(64, 'x');
    g_autoptr(GError) error = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_false(ch_volume_check_name(names[i], NULL));
    g_assert_false(ch_volume_check_name(long_name, NULL));
    g_assert_true(ch_volume_check_name(long_name + 1, NULL));
    g_assert_false(ch_volume_check_name("My_Data", &error));
    g_assert_nonnull(strstr(error->message, "lower-case letters, digits and '-'"));
}

static void
test_shared_disks(void)
{
    g_autoptr(ChJson) vmi = parse_json("{}");
    const ChVolumeEdit edit = {"v", "c", "scsi", .is_read_only = true, .is_shareable = true};

    g_assert_true(ch_vmi_add_volume(vmi, &edit, NULL));
    assert_json(ch_json_at(vmi, "spec", "domain", "devices", "disks"),
                "[{\"name\":\"v\",\"disk\":{\"bus\":\"scsi\",\"readonly\":true},\"shareable\":true,"
                "\"serial\":\"v\"}]");
}

/* One volume for one claim: two would be two disks that know nothing of each other. */
static void
test_same_claim_twice(void)
{
    g_autoptr(ChJson) vmi = parse_json("{}");
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_vmi_add_volume(vmi, &(ChVolumeEdit){"one", "data", "virtio"}, NULL));
    g_assert_false(ch_vmi_add_volume(vmi, &(ChVolumeEdit){"two", "data", "virtio"}, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_cmpstr(error->message, ==, "the VM has the claim 'data' already, as its volume 'one'");
    g_assert_null(ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", "two"));
}

static void
test_name_of_a_nic(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{'spec':{'domain':{'devices':{'interfaces':[{'name':'red'}]}}}}");
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_vmi_add_volume(vmi, &(ChVolumeEdit){"red", "data", "virtio"}, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_null(ch_json_find(ch_json_at(vmi, "spec", "volumes"), "name", "red"));
}

static void
test_claim_user(void)
{
    g_autoptr(ChJson) vmis = parse_json("{\"items\":[{\"metadata\":{\"name\":\"a\"}},"
                                        "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"volumes\":[{"
                                        "\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
                                        "\"c\"}}]}}]}");

    g_assert_cmpstr(ch_vmis_find_claim_user(vmis, "c"), ==, "b");
    g_assert_null(ch_vmis_find_claim_user(vmis, "d"));
    g_assert_null(ch_vmis_find_claim_user(NULL, "c"));
}

#define PHASE(phase) "\"phase\":\"" phase "\""
#define STATUS(text) "\"volumeStatus\":[{\"name\":\"v\"," text "}]"

static const struct ProgressCase {
    const char *status, *text;
    bool attaches;
} progress[] = {
    {"", "the VM does not run yet: it is new", true},
    {PHASE("Scheduling"), "the VM does not run yet: it is Scheduling", true},
    {PHASE("Running"), "the pod runner has not seen it yet", true},
    {PHASE("Running") "," STATUS("\"phase\":\"Pending\",\"message\":\"There is no claim c\""),
     "Pending: There is no claim c",
     true},
    {PHASE("Running") "," STATUS("\"phase\":\"MountedToPod\""), "MountedToPod", true},
    {PHASE("Scheduled") "," STATUS("\"phase\":\"UnMountedFromPod\""), "UnMountedFromPod", false},
    {PHASE("Running") ",\"conditions\":[{\"type\":\"Synchronized\",\"status\":\"False\","
                      "\"message\":\"QEMU says no\"}]," STATUS("\"phase\":\"MountedToPod\""),
     "QEMU says no",
     true},
};

static void
test_progress(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(progress); i++) {
        g_autofree char *text = g_strdup_printf("{\"status\":{%s}}", progress[i].status);
        g_autoptr(ChJson) vmi = parse_json(text);
        g_autofree char *shown = ch_vmi_volume_progress(vmi, "v", progress[i].attaches);

        g_assert_cmpstr(shown, ==, progress[i].text);
    }
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
    g_assert_cmpstr(error->message, ==, "the VM has no volume 'data': none is attached");
    g_clear_error(&error);
    g_assert_true(ch_vmi_add_volume(vmi, &(ChVolumeEdit){"one", "c", "virtio"}, NULL));
    g_assert_false(ch_vmi_remove_volume(vmi, "data", &claim, &error));
    g_assert_cmpstr(error->message, ==, "the VM has no volume 'data': attached are one");
    g_assert_null(claim);
}

/* A second `detach` goes on waiting; nothing else may have the name until then. */
static void
test_one_that_is_going(void)
{
    g_autoptr(ChJson) vmi = parse_json("{'spec':{'volumes':[]},'status':{'volumeStatus':[{'name':"
                                       "'data','phase':'UnMountedFromPod'}]}}");
    g_autoptr(GError) error = NULL;
    g_autofree char *claim = NULL;

    g_assert_true(ch_vmi_remove_volume(vmi, "data", &claim, NULL));
    g_assert_null(claim);
    g_assert_false(ch_vmi_add_volume(vmi, &(ChVolumeEdit){"data", "c", "virtio"}, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    assert_json(ch_json_at(vmi, "spec"), "{'volumes':[],'domain':{'devices':{'disks':[]}}}");
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
        "\"requests\":{\"storage\":\"64Ki\"}},\"accessModes\":[\"ReadWriteOnce\"],"
        "\"volumeMode\":\"Filesystem\"}}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volume-edit/names", test_names);
    g_test_add_func("/volume-edit/bad-names", test_bad_names);
    g_test_add_func("/volume-edit/same-claim-twice", test_same_claim_twice);
    g_test_add_func("/volume-edit/name-of-a-nic", test_name_of_a_nic);
    g_test_add_func("/volume-edit/claim-user", test_claim_user);
    g_test_add_func("/volume-edit/progress", test_progress);
    g_test_add_func("/volume-edit/shared-disks", test_shared_disks);
    g_test_add_func("/volume-edit/there-and-back", test_there_and_back);
    g_test_add_func("/volume-edit/what-cannot-be-detached", test_what_cannot_be_detached);
    g_test_add_func("/volume-edit/one-that-is-going", test_one_that_is_going);
    g_test_add_func("/volume-edit/claim", test_claim);
    return g_test_run();
}
