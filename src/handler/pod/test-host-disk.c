/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/host-disk.h"

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

#define VOLUMES(volume, status, more)                                                              \
    "{'spec':{'volumes':[" volume "]" more "},'status':{'volumeStatus':[" status "]}}"
#define CLAIM        "{'name':'v','persistentVolumeClaim':{'claimName':'c'}}"
#define DATA_VOLUME  "{'name':'v','dataVolume':{'name':'d'}}"
#define STATUS(info) "{'name':'v','persistentVolumeClaimInfo':{" info "}}"
#define DISK(capacity, shared)                                                                     \
    "{'name':'v','hostDisk':{'path':'/var/run/kubevirt-private/vmi-disks/v/disk.img',"             \
    "'type':'DiskOrCreate','capacity':'" capacity "','shared':" shared "}}"
#define BOTH "'capacity':{'storage':'2Gi'},'requests':{'storage':'2Gi'}"

/* @expect: the volume; NULL: it stays. An error's text begins with '!' */
static const struct ClaimCase {
    const char *path;
    const char *vmi;
    const char *expect;
} claim_cases[] = {
    /* clang-format off */
    /* spec:05-16.6#144 */
    {"/host-disk/claim/both", VOLUMES(CLAIM, STATUS("'volumeMode':'Filesystem'," BOTH), ""), DISK("2Gi", "false")},
    /* spec:05-16.6#144 */
    {"/host-disk/claim/less-was-asked-for", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'2Gi'},'requests':{'storage':'1Gi'}"), ""),
     DISK("1Gi", "false")},
    /* spec:05-16.6#144: without a suffix that the capacity has, there is none */
    {"/host-disk/claim/only-request", VOLUMES(CLAIM, STATUS("'requests':{'storage':'1Gi'}"), ""), DISK("1073741824", "false")},
    /* spec:05-16.6#144 */
    {"/host-disk/claim/only-capacity", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'1Gi'}"), ""), DISK("1Gi", "false")},
    /* spec:05-16.6#144 */
    {"/host-disk/claim/block-stays", VOLUMES(CLAIM, STATUS("'volumeMode':'Block'," BOTH), ""), NULL},
    /* spec:05-16.6#144 */
    {"/host-disk/claim/virtiofs-stays", VOLUMES(CLAIM, STATUS(BOTH), ",'domain':{'devices':{'filesystems':[{'name':'v','virtiofs':{}}]}}"), NULL},
    /* spec:05-16.6#144 */
    {"/host-disk/claim/no-size", VOLUMES(CLAIM, STATUS(""), ""),
     "!unable to determine capacity of HostDisk from PVC that provides no storage capacity or requests"},
    /* spec:05-16.6#145 */
    {"/host-disk/claim/hotplugged-stays", VOLUMES(CLAIM, "{'name':'v','hotplugVolume':{},'persistentVolumeClaimInfo':{" BOTH "}}", ""), NULL},
    /* spec:05-16.6#145 */
    {"/host-disk/claim/too-small", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'1048575'}"), ""),
     "!the size for volume v is too low, must be at least 1MiB"},
    /* spec:05-16.6#145 */
    {"/host-disk/claim/rounded-down", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'3000000'}"), ""), DISK("2097152", "false")},
    {"/host-disk/claim/decimal-suffix", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'1048576k'},'requests':{'storage':'1Gi'}"), ""),
     DISK("1048576k", "false")},
    {"/host-disk/claim/a-byte-and-a-bit", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'1048575500m'}"), ""), DISK("1048576", "false")},
    {"/host-disk/claim/shared", VOLUMES(CLAIM, STATUS("'accessModes':['ReadWriteOnce','ReadWriteMany']," BOTH), ""), DISK("2Gi", "true")},
    {"/host-disk/claim/data-volume", VOLUMES(DATA_VOLUME, STATUS(BOTH), ""), DISK("2Gi", "false")},
    {"/host-disk/claim/data-volume-without-name", VOLUMES("{'name':'v','dataVolume':{'name':''}}", STATUS(BOTH), ""), NULL},
    {"/host-disk/claim/unknown-stays", VOLUMES(CLAIM, "", ""), NULL},
    {"/host-disk/claim/nothing-known-of-it", VOLUMES(CLAIM, "{'name':'v'}", ""), NULL},
    {"/host-disk/claim/other-volumes-stay", VOLUMES("{'name':'v','containerDisk':{'image':'i'}}", STATUS(BOTH), ""), NULL},
    {"/host-disk/claim/no-quantity", VOLUMES(CLAIM, STATUS("'capacity':{'storage':'much'}"), ""), "!"},
    /* clang-format on */
};

static void
test_claim(gconstpointer data)
{
    const struct ClaimCase *c = data;
    g_autoptr(ChJson) vmi = parse_json(c->vmi);
    g_autoptr(ChJson) before = ch_json_dup(vmi);
    g_autoptr(ChJson) replaced = NULL;
    g_autoptr(ChJson) expect = NULL;
    g_autoptr(GError) error = NULL;
    bool ok = ch_host_disk_replace_claims(vmi, &replaced, &error);

    g_assert_true(ch_json_equal(vmi, before)); /* the one that is written back */
    if (c->expect != NULL && c->expect[0] == '!') {
        g_assert_false(ok);
        g_assert_true(g_str_has_prefix(error->message, c->expect + 1));
        return;
    }
    g_assert_no_error(error);
    if (c->expect == NULL) {
        g_assert_null(replaced);
        return;
    }
    expect = parse_json(c->expect);
    g_assert_true(ch_json_equal(ch_json_item(ch_json_at(replaced, "spec", "volumes"), 0), expect));
}

static const struct DiskCase {
    const char *path;
    const char *volume;
    bool is_disk;
    ChHostDisk expect;
} disk_cases[] = {
    /* clang-format off */
    {"/host-disk/of/made", "{'name':'v','hostDisk':{'path':'/data/my disk.img','type':'DiskOrCreate','capacity':'64Mi'}}", true,
     {"v", "my disk.img", true, 64 << 20}},
    /* spec:05-16.6#135 */
    {"/host-disk/of/must-exist", "{'name':'v','hostDisk':{'path':'/data/disk.img','type':'Disk'}}", true, {"v", "", false, 0}},
    /* spec:05-16.6#136 */
    {"/host-disk/of/unknown-type", "{'name':'v','hostDisk':{'path':'/data/disk.img','type':'Other'}}", true, {"v", "", false, 0}},
    {"/host-disk/of/no-path", "{'name':'v','hostDisk':{'path':'','type':'DiskOrCreate'}}", true, {"v", "", false, 0}},
    {"/host-disk/of/no-size", "{'name':'v','hostDisk':{'path':'/disk.img','type':'DiskOrCreate'}}", true, {"v", "disk.img", true, 0}},
    {"/host-disk/of/negative-size", "{'name':'v','hostDisk':{'path':'/disk.img','type':'DiskOrCreate','capacity':'-1'}}", true, {"v", "disk.img", true, 0}},
    {"/host-disk/of/fraction", "{'name':'v','hostDisk':{'path':'d','type':'DiskOrCreate','capacity':'1.5Mi'}}", true, {"v", "d", true, 3 << 19}},
    {"/host-disk/of/number", "{'name':'v','hostDisk':{'path':'d','type':'DiskOrCreate','capacity':4096}}", true, {"v", "d", true, 4096}},
    /* field:FR-F04 */
    {"/host-disk/of/no-name", "{'name':'v','hostDisk':{'path':'/data/..','type':'DiskOrCreate','capacity':'1Mi'}}", true, {"v", "", true, 1 << 20}},
    {"/host-disk/of/directory", "{'name':'v','hostDisk':{'path':'/data/','type':'DiskOrCreate','capacity':'1Mi'}}", true, {"v", "", true, 1 << 20}},
    {"/host-disk/of/none", "{'name':'v','containerDisk':{}}", false, {0}},
    /* clang-format on */
};

static void
test_disk(gconstpointer data)
{
    const struct DiskCase *c = data;
    g_autoptr(ChJson) volume = parse_json(c->volume);
    ChHostDisk disk = {0};

    g_assert_true(ch_host_disk_of(volume, &disk) == c->is_disk);
    if (!c->is_disk)
        return;
    g_assert_cmpstr(disk.volume, ==, c->expect.volume);
    g_assert_cmpstr(disk.file, ==, c->expect.file);
    g_assert_true(disk.makes_image == c->expect.makes_image);
    g_assert_cmpint(disk.capacity, ==, c->expect.capacity);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(claim_cases); i++)
        g_test_add_data_func(claim_cases[i].path, &claim_cases[i], test_claim);
    for (gsize i = 0; i < G_N_ELEMENTS(disk_cases); i++)
        g_test_add_data_func(disk_cases[i].path, &disk_cases[i], test_disk);
    return g_test_run();
}
