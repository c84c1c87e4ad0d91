/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/test-support.h"

#define SPEC                                                                                       \
    "'spec':{'domain':{'firmware':{'kernelBoot':{'container':{'kernelPath':'/k',"                  \
    "'initrdPath':'/i'}}}},'volumes':[{'name':'d','containerDisk':{}},{'name':'e','secret':{}}]}"
#define VOLUMES(disk) "'volumeStatus':[{'name':'d','target':''" disk "},{'name':'e','target':''}]"
#define BOOT          "'kernelBootStatus':{'kernelInfo':{'checksum':33},'initrdInfo':{'checksum':35}}"
#define DISK          ",'containerDiskVolume':{'checksum':1234}"

static const ChStatusNode without_image_volume = {.name = "n"};

static const struct WantsCase {
    const char *vmi;
    bool gate;
    ChSyncOutcome sync;
    bool expect;
} cases[] = {
    {"{" SPEC ",'status':{" VOLUMES("") "}}", false, CH_SYNC_OK, true},
    {"{" SPEC ",'status':{" VOLUMES("") "}}", true, CH_SYNC_OK, false},
    {"{" SPEC ",'status':{" VOLUMES("") "}}", false, CH_SYNC_FAILED, false},
    {"{'metadata':{'deletionTimestamp':'x'}," SPEC ",'status':{" VOLUMES("") "}}",
     false,
     CH_SYNC_OK,
     false},
    {"{" SPEC ",'status':{" VOLUMES(DISK) "," BOOT "}}", false, CH_SYNC_OK, false},
    {"{" SPEC ",'status':{" VOLUMES(DISK) "}}", false, CH_SYNC_OK, true},
    {"{" SPEC ",'status':{" VOLUMES(DISK) ",'kernelBootStatus':{'kernelInfo':{'checksum':33}}}}",
     false,
     CH_SYNC_OK,
     true},
    {"{" SPEC ",'status':{" VOLUMES(",'containerDiskVolume':{}") "," BOOT "}}",
     false,
     CH_SYNC_OK,
     true},
    {"{'status':{" VOLUMES("") "}}", false, CH_SYNC_OK, false},
};

static void
test_wants(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const ChStatusNode node = {.gate_image_volume = cases[i].gate};
        g_autoptr(ChJson) document = parse_json(cases[i].vmi);
        ChVmiView vmi;

        ch_vmi_view_init(&vmi, document);
        g_assert_true(ch_status_wants_checksums(&vmi, &node, cases[i].sync) == cases[i].expect);
    }
}

/* spec:02-14.5#4 spec:01#31; unsigned 32 bits are not cut (trap 14). */
static void
test_stores(void)
{
    static const ChVolumeChecksum disk = {"d", 4294967295u};
    static const uint32_t kernel = 33, initrd = 35;
    static const ChChecksums checksums = {&disk, 1, &kernel, &initrd};
    g_autoptr(ChJson) vmi = parse_json("{" SPEC ",'status':{'phase':'Running'," VOLUMES("") "}}");
    g_autoptr(ChDomain) domain = parse_domain("{'Status':{'Status':'Running'}}");
    g_autoptr(ChStatusResult) result = ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .checksums = &checksums,
            .now_us = TEST_NOW_US,
        },
        &without_image_volume);

    assert_json(ch_json_at(result->vmi, "status", "volumeStatus"),
                "[{'name':'d','target':'','containerDiskVolume':{'checksum':4294967295}},"
                "{'name':'e','target':''}]");
    assert_json(ch_json_at(result->vmi, "status", "kernelBootStatus"),
                "{'kernelInfo':{'checksum':33},'initrdInfo':{'checksum':35}}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/checksums/wants", test_wants);
    g_test_add_func("/checksums/04-stores", test_stores);
    return g_test_run();
}
