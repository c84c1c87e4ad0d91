/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/hotplug-plan.h"

#include <string.h>

#define NODE "node01"
#define PODS "/var/lib/kubelet/pods"

/* Single quotes for double ones. (transfer full) */
static ChJson *
vmi(const char *text)
{
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    g_autoptr(GError) error = NULL;
    ChJson *document = ch_json_parse(json, -1, &error);

    g_assert_no_error(error);
    return document;
}

static const ChHotplugVolume *
item(const GArray *list, guint index)
{
    g_assert_cmpuint(index, <, list->len);
    return &g_array_index(list, ChHotplugVolume, index);
}

#define PVC_MODE(mode) "'persistentVolumeClaimInfo':{'volumeMode':'" mode "'}"

static const struct {
    const char *name;
    const char *entry;    /* of the volume v */
    const char *migrated; /* status.migratedVolumes */
    const char *target;   /* node of a migration */
    const char *spec;
    ChHotplugKind kind;
} kinds[] = {
    /* spec:05-16.4#90 spec:05-16.4#116 */
    {"no information", "", "[]", "", "{}", CH_HOTPLUG_FILE},
    {"no mode", ",'persistentVolumeClaimInfo':{}", "[]", "", "{}", CH_HOTPLUG_FILE},
    {"file system", "," PVC_MODE("Filesystem"), "[]", "", "{}", CH_HOTPLUG_FILE},
    {"block", "," PVC_MODE("Block"), "[]", "", "{}", CH_HOTPLUG_BLOCK},
    {"another volume migrated",
     "," PVC_MODE("Block"),
     "[{'volumeName':'w','sourcePVCInfo':{'volumeMode':'Filesystem'}}]",
     "",
     "{}",
     CH_HOTPLUG_BLOCK},
    {"migrated, source",
     "," PVC_MODE("Block"),
     "[{'volumeName':'v','sourcePVCInfo':{'volumeMode':'Filesystem'},"
     "'destinationPVCInfo':{'volumeMode':'Block'}}]",
     "node02",
     "{}",
     CH_HOTPLUG_FILE},
    {"migrated, destination",
     "," PVC_MODE("Filesystem"),
     "[{'volumeName':'v','sourcePVCInfo':{'volumeMode':'Filesystem'},"
     "'destinationPVCInfo':{'volumeMode':'Block'}}]",
     NODE,
     "{}",
     CH_HOTPLUG_BLOCK},
    {"migrated without information",
     "," PVC_MODE("Block"),
     "[{'volumeName':'v'}]",
     NODE,
     "{}",
     CH_HOTPLUG_BLOCK},
    {"memory dump",
     "",
     "[]",
     "",
     "{'volumes':[{'name':'v','memoryDump':{'claimName':'c','hotpluggable':true}}]}",
     CH_HOTPLUG_DIR},
    {"utility volume",
     "",
     "[]",
     "",
     "{'utilityVolumes':[{'name':'v','claimName':'c'}]}",
     CH_HOTPLUG_DIR},
    {"disk",
     "",
     "[]",
     "",
     "{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'c'}}]}",
     CH_HOTPLUG_FILE},
};

static void
test_kinds(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *text = g_strdup_printf(
            "{'spec':%s,'status':{'migrationState':{'targetNode':'%s'},'migratedVolumes':%s,"
            "'volumeStatus':[{'name':'v','hotplugVolume':{}%s}]}}",
            kinds[i].spec,
            kinds[i].target,
            kinds[i].migrated,
            kinds[i].entry);
        g_autoptr(ChJson) document = vmi(text);
        g_autoptr(GArray) list = ch_hotplug_list(document, NODE, NULL);

        g_test_message("%s", kinds[i].name);
        g_assert_cmpuint(list->len, ==, 1);
        g_assert_cmpint(item(list, 0)->kind, ==, kinds[i].kind);
    }
}

#define THREE                                                                                      \
    "{'spec':{'volumes':[{'name':'a'},{'name':'b'}],'utilityVolumes':[{'name':'u'}]},"             \
    "'status':{'volumeStatus':["                                                                   \
    "{'name':'permanent'},"                                                                        \
    "{'name':'b','phase':'Ready','hotplugVolume':{'attachPodName':'p','attachPodUID':'pod-b'}},"   \
    "{'name':'a','hotplugVolume':{'attachPodName':'p'}},"                                          \
    "{'name':'gone','phase':'Ready','hotplugVolume':{'attachPodUID':'pod-g'}},"                    \
    "{'name':'u','hotplugVolume':{'attachPodUID':'pod-u'}," PVC_MODE(                              \
        "Block") "},"                                                                              \
                 "{'name':'../x','hotplugVolume':{'attachPodUID':'pod-x'}},"                       \
                 "{'hotplugVolume':{}},7]}}"

/* spec:05-16.4#91 spec:05-16.4#94 */
static void
test_list(void)
{
    g_autoptr(ChJson) document = vmi(THREE);
    g_autoptr(GArray) list = ch_hotplug_list(document, NODE, NULL);
    g_autoptr(GArray) target = ch_hotplug_list(document, NODE, "pod-t");

    g_assert_cmpuint(list->len, ==, 4);
    g_assert_cmpstr(item(list, 0)->name, ==, "b");
    g_assert_cmpstr(item(list, 0)->source_uid, ==, "pod-b");
    g_assert_cmpstr(item(list, 0)->phase, ==, "Ready");
    g_assert_true(item(list, 0)->is_wanted);
    g_assert_cmpstr(item(list, 1)->name, ==, "a");
    g_assert_cmpstr(item(list, 1)->source_uid, ==, "");
    g_assert_cmpstr(item(list, 1)->phase, ==, "");
    g_assert_cmpstr(item(list, 2)->name, ==, "gone");
    g_assert_false(item(list, 2)->is_wanted);
    g_assert_cmpstr(item(list, 3)->name, ==, "u");
    g_assert_true(item(list, 3)->is_refused);
    g_assert_false(item(list, 0)->is_refused);
    g_assert_cmpstr(item(target, 0)->source_uid, ==, "pod-t");
    g_assert_cmpstr(item(target, 1)->source_uid, ==, "pod-t");
}

static void
test_list_is_bounded(void)
{
    g_autoptr(GString) text = g_string_new("{'status':{'volumeStatus':[");
    g_autoptr(ChJson) document = NULL;
    g_autoptr(GArray) list = NULL;
    g_autofree char *told = NULL;

    for (unsigned i = 0; i < CH_HOTPLUG_MAX_VOLUMES + 5; i++)
        g_string_append_printf(text, "%s{'name':'v%u','hotplugVolume':{}}", i > 0 ? "," : "", i);
    g_string_append(text, "]}}");
    document = vmi(text->str);
    list = ch_hotplug_list(document, NODE, NULL);
    g_assert_cmpuint(list->len, ==, CH_HOTPLUG_MAX_VOLUMES);
    told = ch_hotplug_left_out(document);
    g_assert_cmpstr(told, ==, "5 hotplug volumes are left out: no more than 1024 are mounted");
}

static void
test_odd_names_are_told(void)
{
    g_autoptr(ChJson) document =
        vmi("{'status':{'volumeStatus':[{'name':'a','hotplugVolume':{}},{'name':'../x'},"
            "{'name':'..','hotplugVolume':{}},{'name':'b/c','hotplugVolume':{}}]}}");
    g_autoptr(ChJson) plain = vmi("{'status':{'volumeStatus':[{'name':'a','hotplugVolume':{}}]}}");
    g_autofree char *text = ch_hotplug_left_out(document);

    g_assert_cmpstr(text, ==, "2 hotplug volumes are left out: no file can have the name '..'");
    g_assert_null(ch_hotplug_left_out(plain));
}

static void
test_nothing_is_listed_of_what_is_no_vmi(void)
{
    static const char *const texts[] = {"{}", "[]", "{'status':{'volumeStatus':{}}}", "7"};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(ChJson) document = vmi(texts[i]);
        g_autoptr(GArray) list = ch_hotplug_list(document, NODE, NULL);
        g_autoptr(GHashTable) kept = ch_hotplug_keep_set(document, NODE);

        g_assert_cmpuint(list->len, ==, 0);
        g_assert_cmpuint(g_hash_table_size(kept), ==, 0);
        g_assert_true(ch_hotplug_is_ready(document));
    }
}

static void
test_kept(void)
{
    g_autoptr(ChJson) document = vmi("{'spec':{'volumes':["
                                     "{'name':'pvc','persistentVolumeClaim':{'hotpluggable':true}},"
                                     "{'name':'dv','dataVolume':{'hotpluggable':true}},"
                                     "{'name':'blk','dataVolume':{'hotpluggable':true}},"
                                     "{'name':'dump','memoryDump':{'hotpluggable':true}},"
                                     "{'name':'dump2','memoryDump':{'hotpluggable':false}},"
                                     "{'name':'fixed','persistentVolumeClaim':{}},"
                                     "{'persistentVolumeClaim':{'hotpluggable':true}}],"
                                     "'utilityVolumes':[{'name':'util'},{'name':'bad'}]},"
                                     "'status':{'volumeStatus':[{'name':'blk'," PVC_MODE(
                                         "Block") "},"
                                                  "{'name':'bad'," PVC_MODE("Block") "}]}}");
    g_autoptr(GHashTable) kept = ch_hotplug_keep_set(document, NODE);
    static const char *const names[] = {"pvc.img", "dv.img", "blk", "dump", "util"};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        g_assert_true(g_hash_table_contains(kept, names[i]));
    g_assert_cmpuint(g_hash_table_size(kept), ==, G_N_ELEMENTS(names));
}

#define HOTPLUGGABLE "'volumes':[{'name':'v','dataVolume':{'hotpluggable':true}}]"

static const struct {
    const char *spec;
    const char *statuses;
    bool is_ready;
} readiness[] = {
    {"'volumes':[{'name':'v','dataVolume':{}}]", "[]", true},
    {"'volumes':[{'name':'v','dataVolume':{}}]", "[{'name':'v','hotplugVolume':{}}]", true},
    {HOTPLUGGABLE, "[]", false},
    {HOTPLUGGABLE, "[{'name':'other'}]", true},
    {HOTPLUGGABLE, "[{'name':'v','hotplugVolume':{},'phase':'Ready'}]", true},
    {HOTPLUGGABLE, "[{'name':'v','hotplugVolume':{},'phase':'MountedToPod'}]", true},
    {HOTPLUGGABLE, "[{'name':'v','hotplugVolume':{},'phase':'AttachedToNode'}]", false},
    {HOTPLUGGABLE, "[{'name':'v','hotplugVolume':{}}]", false},
    {HOTPLUGGABLE,
     "[{'name':'v','hotplugVolume':{},'phase':'Ready'},{'name':'w','hotplugVolume':{}}]",
     false},
    {"'utilityVolumes':[{'name':'u'}]", "[]", false},
    {"'utilityVolumes':[{'name':'u'}]", "[{'name':'u','hotplugVolume':{},'phase':'Bound'}]", false},
};

static void
test_ready(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(readiness); i++) {
        g_autofree char *text = g_strdup_printf(
            "{'spec':{%s},'status':{'volumeStatus':%s}}", readiness[i].spec, readiness[i].statuses);
        g_autoptr(ChJson) document = vmi(text);

        g_test_message("row %" G_GSIZE_FORMAT, i);
        g_assert_cmpint(ch_hotplug_is_ready(document), ==, readiness[i].is_ready);
    }
}

static void
test_looks(void)
{
    static const struct {
        const char *phase;
        bool wanted, unwanted;
    } rows[] = {
        {"Bound", true, false},
        {"Pending", true, false},
        {"AttachedToNode", true, true},
        {"MountedToPod", false, true},
        {"Ready", false, true},
        {"UnMountedFromPod", false, false},
        {"", false, false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        ChHotplugVolume volume = {.phase = rows[i].phase, .is_wanted = true};

        g_assert_cmpint(ch_hotplug_wants_look(&volume), ==, rows[i].wanted);
        volume.is_wanted = false;
        g_assert_cmpint(ch_hotplug_wants_look(&volume), ==, rows[i].unwanted);
    }
}

static void
test_paths(void)
{
    static const char *const bad[] = {
        "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/hotplug-disks/",
        "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/hotplug-disks/..",
        "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/hotplug-disks/a/b",
        "/var/lib/kubelet/pods/../volumes/kubernetes.io~empty-dir/hotplug-disks/a",
        "/var/lib/kubelet/pods/u/x/volumes/kubernetes.io~empty-dir/hotplug-disks/a",
        "/var/lib/kubelet/pods/volumes/kubernetes.io~empty-dir/hotplug-disks/a",
        "/var/lib/kubelet/podsu/volumes/kubernetes.io~empty-dir/hotplug-disks/a",
        "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/container-disks/a",
        "/proc/1/root/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/hotplug-disks/a",
        "/",
    };
    g_autofree char *path = ch_hotplug_path(PODS, "aaaa-1", "v.img");
    g_autofree char *uid = NULL;
    g_autofree char *name = NULL;

    g_assert_cmpstr(path, ==, PODS "/aaaa-1/volumes/kubernetes.io~empty-dir/hotplug-disks/v.img");
    g_assert_true(ch_hotplug_path_split(path, PODS, &uid, &name));
    g_assert_cmpstr(uid, ==, "aaaa-1");
    g_assert_cmpstr(name, ==, "v.img");
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_hotplug_path_split(bad[i], PODS, &uid, &name));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pod/hotplug-plan/kinds", test_kinds);
    g_test_add_func("/pod/hotplug-plan/list", test_list);
    g_test_add_func("/pod/hotplug-plan/list-is-bounded", test_list_is_bounded);
    g_test_add_func("/pod/hotplug-plan/odd-names-are-told", test_odd_names_are_told);
    g_test_add_func("/pod/hotplug-plan/nothing-is-listed-of-what-is-no-vmi",
                    test_nothing_is_listed_of_what_is_no_vmi);
    g_test_add_func("/pod/hotplug-plan/kept", test_kept);
    g_test_add_func("/pod/hotplug-plan/ready", test_ready);
    g_test_add_func("/pod/hotplug-plan/looks", test_looks);
    g_test_add_func("/pod/hotplug-plan/paths", test_paths);
    return g_test_run();
}
