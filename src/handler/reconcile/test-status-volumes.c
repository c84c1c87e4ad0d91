/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/test-support.h"
#include "lib/base/time.h"

#define DISKS(disks) "{'Spec':{'Devices':{'Disks':[" disks "]}},'Status':{'Status':'Running'}}"
#define DISK(name, target)                                                                         \
    "{'Alias':{'Name':'" name "'},'Source':{'File':'/x'},'Target':{'Device':'" target "'}}"
#define EMPTY_TRAY(name) "{'Alias':{'Name':'" name "'},'Source':{},'Target':{'Device':'sda'}}"
#define DUMP(members)                                                                              \
    "{'Spec':{'Metadata':{'KubeVirt':{'MemoryDump':{" members "}}}},'Status':{'Status':'Running'}" \
    "}"

#define FILE_NAME "'vm-d-20261129-010203.memory.dump'"

/* The one volume is called "d". */
static const struct VolumeCase {
    const char *path;
    enum { UNMOUNTED, MOUNTED, NOBODY_LOOKED } mount;
    bool is_in_spec;
    const char *entry; /* before, without name */
    const char *domain;
    const char *expect; /* after, without name */
    const char *event;  /* reason, or NULL: none */
    bool expect_refresh;
} cases[] = {
    /* clang-format off */
    /* spec:02-14.6#6 */
    {"/volumes/06-permanent-volume-gets-its-target", UNMOUNTED, 1, "'target':'','phase':''", DISKS(DISK("d", "vda")), "'target':'vda','phase':''", NULL, false},
    {"/volumes/its-target-goes-with-the-domain", UNMOUNTED, 1, "'target':'vda'", NULL, "'target':''", NULL, false},
    /* spec:02-14.6#7 spec:02-14.6#11 spec:05-16.4#115 */
    {"/volumes/07-11-attached-is-ready", UNMOUNTED, 1, "'target':'','hotplugVolume':{},'phase':'MountedToPod'", DISKS(DISK("d", "sda")),
     "'target':'sda','hotplugVolume':{},'phase':'Ready','reason':'VolumeReady','message':'Successfully attach hotplugged volume d to VM'", "VolumeReady", false},
    /* spec:02-14.6#11 spec:05-16.4#115 */
    {"/volumes/11-ready-is-no-news", UNMOUNTED, 1, "'target':'sda','hotplugVolume':{},'phase':'Ready','reason':'VolumeReady','message':'Successfully attach hotplugged volume d to VM'", DISKS(DISK("d", "sda")),
     "'target':'sda','hotplugVolume':{},'phase':'Ready','reason':'VolumeReady','message':'Successfully attach hotplugged volume d to VM'", NULL, false},
    /* spec:02-14.6#8 spec:05-16.4#115 spec:01#43 */
    {"/volumes/08-bound-and-mounted", MOUNTED, 1, "'target':'','hotplugVolume':{},'phase':'Bound'", DISKS(""),
     "'target':'','hotplugVolume':{},'phase':'MountedToPod','reason':'VolumeMountedToPod','message':'Volume d has been mounted in virt-launcher pod'", "VolumeMountedToPod", true},
    /* spec:02-14.6#8 spec:05-16.4#115 */
    {"/volumes/08-bound-and-mounted-from-Pending", MOUNTED, 1, "'target':'','hotplugVolume':{},'phase':'Pending'", DISKS(""),
     "'target':'','hotplugVolume':{},'phase':'MountedToPod','reason':'VolumeMountedToPod','message':'Volume d has been mounted in virt-launcher pod'", "VolumeMountedToPod", true},
    /* spec:02-14.6#8 spec:05-16.4#115 */
    {"/volumes/08-bound-and-mounted-from-AttachedToNode", MOUNTED, 1, "'target':'','hotplugVolume':{},'phase':'AttachedToNode'", DISKS(""),
     "'target':'','hotplugVolume':{},'phase':'MountedToPod','reason':'VolumeMountedToPod','message':'Volume d has been mounted in virt-launcher pod'", "VolumeMountedToPod", true},
    /* spec:02-14.6#8 spec:05-16.4#115 */
    {"/volumes/08-mounted-is-no-news", MOUNTED, 1, "'target':'','hotplugVolume':{},'phase':'MountedToPod'", DISKS(""), "'target':'','hotplugVolume':{},'phase':'MountedToPod'", NULL, true},
    {"/volumes/mounted-but-not-wanted", MOUNTED, 0, "'target':'','hotplugVolume':{},'phase':'Bound'", DISKS(""), "'target':'','hotplugVolume':{},'phase':'Bound'", NULL, true},
    /* spec:02-14.6#9 spec:01#43 spec:05-16.4#115 */
    {"/volumes/09-unmounted", UNMOUNTED, 0, "'target':'sda','hotplugVolume':{},'phase':'Ready'", DISKS(""),
     "'target':'','hotplugVolume':{},'phase':'UnMountedFromPod','reason':'VolumeUnMountedFromPod','message':'Volume d has been unmounted from virt-launcher pod'", "VolumeUnMountedFromPod", true},
    /* spec:02-14.6#9 spec:05-16.4#115 */
    {"/volumes/09-unmounted-from-MountedToPod", UNMOUNTED, 0, "'target':'sda','hotplugVolume':{},'phase':'MountedToPod'", DISKS(""),
     "'target':'','hotplugVolume':{},'phase':'UnMountedFromPod','reason':'VolumeUnMountedFromPod','message':'Volume d has been unmounted from virt-launcher pod'", "VolumeUnMountedFromPod", true},
    /* spec:02-14.6#9 spec:05-16.4#115 */
    {"/volumes/09-unmounted-from-AttachedToNode", UNMOUNTED, 0, "'target':'sda','hotplugVolume':{},'phase':'AttachedToNode'", DISKS(""),
     "'target':'','hotplugVolume':{},'phase':'UnMountedFromPod','reason':'VolumeUnMountedFromPod','message':'Volume d has been unmounted from virt-launcher pod'", "VolumeUnMountedFromPod", true},
    /* spec:02-14.6#9 spec:05-16.4#115 */
    {"/volumes/09-unmounted-is-no-news", UNMOUNTED, 0, "'target':'','hotplugVolume':{},'phase':'UnMountedFromPod'", DISKS(""), "'target':'','hotplugVolume':{},'phase':'UnMountedFromPod'", NULL, true},
    /* spec:02-14.6#10 spec:05-16.4#115 */
    {"/volumes/10-empty-tray-has-no-target", UNMOUNTED, 0, "'target':'sda','hotplugVolume':{},'phase':'Ready'", DISKS(EMPTY_TRAY("d")),
     "'target':'','hotplugVolume':{},'phase':'UnMountedFromPod','reason':'VolumeUnMountedFromPod','message':'Volume d has been unmounted from virt-launcher pod'", "VolumeUnMountedFromPod", true},
    /* spec:02-14.13#34 */
    {"/volumes/13-34-dump-starts-in-one-pass", MOUNTED, 1, "'target':'','hotplugVolume':{},'memoryDumpVolume':{'claimName':'c'},'phase':'AttachedToNode'", DISKS(""),
     "'target':'','hotplugVolume':{},'memoryDumpVolume':{'claimName':'c','targetFileName':" FILE_NAME "},'phase':'MemoryDumpInProgress','reason':'VolumeMountedToPod','message':'Memory dump Volume d is attached, getting memory dump'", "VolumeMountedToPod", true},
    /* spec:02-14.6#13 spec:01#44 */
    {"/volumes/13-dump-starts", MOUNTED, 1, "'target':'','memoryDumpVolume':{'claimName':'c'},'phase':'MountedToPod'", DISKS(""),
     "'target':'','memoryDumpVolume':{'claimName':'c','targetFileName':" FILE_NAME "},'phase':'MemoryDumpInProgress','reason':'VolumeMountedToPod','message':'Memory dump Volume d is attached, getting memory dump'", "VolumeMountedToPod", true},
    /* spec:02-14.6#13 */
    {"/volumes/13-dump-in-progress-is-no-news", MOUNTED, 1, "'target':'','memoryDumpVolume':{'targetFileName':" FILE_NAME "},'phase':'MemoryDumpInProgress'", DISKS(""),
     "'target':'','memoryDumpVolume':{'targetFileName':" FILE_NAME "},'phase':'MemoryDumpInProgress'", NULL, false},
    {"/volumes/nobody-looked-at-mounts", NOBODY_LOOKED, 0, "'target':'','hotplugVolume':{},'phase':'MountedToPod'", DISKS(""), "'target':'','hotplugVolume':{},'phase':'MountedToPod'", NULL, true},
    /* spec:02-14.6#10 spec:05-16.4#115 */
    {"/volumes/10-full-tray-stays-ready", UNMOUNTED, 0, "'target':'sda','hotplugVolume':{},'phase':'Ready'", DISKS(DISK("d", "sda")),
     "'target':'sda','hotplugVolume':{},'phase':'Ready','reason':'VolumeReady','message':'Successfully attach hotplugged volume d to VM'", NULL, false},
    {"/volumes/dump-of-another-file-is-not-ours", UNMOUNTED, 1, "'target':'','memoryDumpVolume':{'targetFileName':'f'},'phase':'MemoryDumpInProgress'", DUMP("'FileName':'g','Completed':true"),
     "'target':'','memoryDumpVolume':{'targetFileName':'f'},'phase':'MemoryDumpInProgress'", NULL, false},
    {"/volumes/dump-goes-on", UNMOUNTED, 1, "'target':'','memoryDumpVolume':{'targetFileName':'f'},'phase':'MemoryDumpInProgress'", DUMP("'FileName':'f','StartTimestamp':'2026-11-29T01:00:00Z'"),
     "'target':'','memoryDumpVolume':{'targetFileName':'f','startTimestamp':'2026-11-29T01:00:00Z'},'phase':'MemoryDumpInProgress'", NULL, true},
    /* spec:02-14.6#14 spec:01#44 */
    {"/volumes/14-dump-completed", UNMOUNTED, 1, "'target':'','memoryDumpVolume':{'targetFileName':'f'},'phase':'MemoryDumpInProgress'",
     DUMP("'FileName':'f','Completed':true,'StartTimestamp':'2026-11-29T01:00:00Z','EndTimestamp':'2026-11-29T01:00:01Z'"),
     "'target':'','memoryDumpVolume':{'targetFileName':'f','startTimestamp':'2026-11-29T01:00:00Z','endTimestamp':'2026-11-29T01:00:01Z'},'phase':'MemoryDumpCompleted','reason':'VolumeReady','message':'Memory dump to Volume d has completed successfully'", "VolumeReady", true},
    /* spec:02-14.6#15 spec:01#44 */
    {"/volumes/15-dump-failed-keeps-its-reason", UNMOUNTED, 1, "'target':'','memoryDumpVolume':{'targetFileName':'f'},'phase':'MemoryDumpInProgress','reason':'old'",
     DUMP("'FileName':'f','Failed':true,'FailureReason':'why','EndTimestamp':'2026-11-29T01:00:01Z'"),
     "'target':'','memoryDumpVolume':{'targetFileName':'f','endTimestamp':'2026-11-29T01:00:01Z'},'phase':'MemoryDumpFailed','reason':'old','message':'Memory dump to pvc d failed: why'", "old", true},
    /* clang-format on */
};

static void
test_volume(gconstpointer data)
{
    static const char *const mounts[][2] = {[UNMOUNTED] = {NULL}, [MOUNTED] = {"d", NULL}};
    const struct VolumeCase *c = data;
    g_autofree char *text = g_strdup_printf(
        "{'metadata':{'name':'vm'},'spec':{'volumes':[%s]},"
        "'status':{'phase':'Running','volumeStatus':[{'name':'d',%s}]}}",
        c->is_in_spec ? "{'name':'d','persistentVolumeClaim':{'claimName':'c'}}" : "",
        c->entry);
    g_autofree char *expect = g_strdup_printf("[{'name':'d',%s}]", c->expect);
    g_autoptr(ChJson) vmi = parse_json(text);
    g_autoptr(ChDomain) domain = parse_domain(c->domain);
    g_autoptr(ChStatusResult) result = ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .mounted_volumes = c->mount != NOBODY_LOOKED ? mounts[c->mount] : NULL,
            .local_timestamp = "20261129-010203",
            .now_us = TEST_NOW_US,
        },
        &test_node);

    assert_json(ch_json_at(result->vmi, "status", "volumeStatus"), expect);
    g_assert_cmpint(result->requeue_us, ==, c->expect_refresh ? CH_SECOND_US : 0);
    g_assert_cmpuint(result->events->len, ==, c->event != NULL ? 1 : 0);
    if (c->event != NULL) {
        const ChEvent *event = result->events->pdata[0];

        g_assert_cmpstr(event->type, ==, "Normal");
        g_assert_cmpstr(event->reason, ==, c->event);
    }
}

/* spec:02-14.6#16; the list is in the order of bytes, duplicates keep theirs. */
static void
test_list_is_sorted(void)
{
    g_autoptr(ChStatusResult) result =
        run_status("",
                   "'phase':'Running','volumeStatus':[{'name':'hot','target':''},"
                   "{'name':'b','target':'','n':1},{'name':'b','target':'','n':2},"
                   "{'name':'Z','target':''}]",
                   DISKS(DISK("hot", "sda") "," DISK("Z", "vda")),
                   NULL);

    assert_json(ch_json_at(result->vmi, "status", "volumeStatus"),
                "[{'name':'Z','target':'vda'},{'name':'b','target':'','n':1},"
                "{'name':'b','target':'','n':2},{'name':'hot','target':'sda'}]");
}

/* spec:02-14.6#12: what was read stays as it is; each volume that changes has its event. */
static void
test_each_volume_has_its_event(void)
{
    static const char *const mounted[] = {"b", "a", NULL};
    g_autoptr(ChJson) vmi = parse_json(
        "{'spec':{'volumes':[{'name':'a'},{'name':'b'},{'name':'c'}]},'status':{'phase':'Running',"
        "'volumeStatus':[{'name':'b','target':'','phase':'Bound','hotplugVolume':{}},"
        "{'name':'a','target':'','phase':'Bound','hotplugVolume':{}},"
        "{'name':'c','target':'','phase':'Bound','hotplugVolume':{}}]}}");
    g_autoptr(ChJson) before = ch_json_dup(vmi);
    g_autoptr(ChDomain) domain = parse_domain(DISKS(""));
    g_autoptr(ChStatusResult) result = ch_status(
        &(ChStatusInput){
            .vmi = vmi,
            .domain = domain,
            .mounted_volumes = mounted,
            .now_us = TEST_NOW_US,
        },
        &test_node);

    g_assert_true(ch_json_equal(vmi, before));
    g_assert_cmpuint(result->events->len, ==, 2);
    g_assert_cmpstr(((const ChEvent *)result->events->pdata[0])->message,
                    ==,
                    "Volume b has been mounted in virt-launcher pod");
    g_assert_cmpstr(((const ChEvent *)result->events->pdata[1])->message,
                    ==,
                    "Volume a has been mounted in virt-launcher pod");
}

/* spec:02-14.13#16: a size that could not be seen stays. */
static void
test_iso_sizes(void)
{
    static const ChVolumeSize size = {"a", 374784};
    static const char *const phases[] = {"Running", "Scheduled"};

    for (gsize i = 0; i < G_N_ELEMENTS(phases); i++) {
        g_autofree char *text =
            g_strdup_printf("{'status':{'phase':'%s','volumeStatus':[{'name':'a','target':''},"
                            "{'name':'b','target':'','size':7}]}}",
                            phases[i]);
        g_autoptr(ChJson) vmi = parse_json(text);
        g_autoptr(ChDomain) domain = parse_domain(DISKS(""));
        g_autoptr(ChStatusResult) result = ch_status(
            &(ChStatusInput){
                .vmi = vmi,
                .domain = domain,
                .iso_sizes = &size,
                .n_iso_sizes = 1,
                .now_us = TEST_NOW_US,
            },
            &test_node);

        assert_json(ch_json_at(result->vmi, "status", "volumeStatus"),
                    i == 0 ? "[{'name':'a','target':'','size':374784},"
                             "{'name':'b','target':'','size':7}]"
                           : "[{'name':'a','target':''},{'name':'b','target':'','size':7}]");
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_volume);
    g_test_add_func("/volumes/16-list-is-sorted", test_list_is_sorted);
    g_test_add_func("/volumes/12-each-volume-has-its-event", test_each_volume_has_its_event);
    g_test_add_func("/volumes/iso-sizes", test_iso_sizes);
    return g_test_run();
}
