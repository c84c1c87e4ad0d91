/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/mount-record.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/linux/test-tree.h"

#define UID  "1111bbbb-0000-4000-8000-000000000001"
#define FILE "hotplug-volume-mount-state/" UID
#define DIR  "/var/lib/kubelet/pods/aaaa/volumes/kubernetes.io~empty-dir/hotplug-disks/"
#define GO_RECORD                                                                                  \
    "{\"mountTargetEntries\":[{\"targetFile\":\"" DIR "vol1.img\"},{\"targetFile\":\"" DIR         \
    "blk\"}],\"usesSafePaths\":true}"
#define GO_DISKS                                                                                   \
    "{\"mountTargetEntries\":[{\"targetFile\":\"/d/disk_0.img\",\"socketFile\":\"/s/"              \
    "disk_0.sock\"}],\"usesSafePaths\":true}"

typedef struct {
    char *dir;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = test_tree_new();
    test_tree_mkdir(f->dir, "hotplug-volume-mount-state");
    test_tree_mkdir(f->dir, "container-disk-mount-state");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    test_tree_remove(f->dir);
    g_free(f->dir);
}

static void
plant(const Fixture *f, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

/* (transfer full) */
static char *
read_file(const Fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->dir, name, NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static ChMountRecord *
load(const Fixture *f, ChMountRecordKind kind)
{
    g_autoptr(GError) error = NULL;
    ChMountRecord *record = ch_mount_record_load(kind, f->dir, UID, &error);

    g_assert_no_error(error);
    g_assert_nonnull(record);
    return record;
}

static void
store(const Fixture *f, ChMountRecord *record)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_mount_record_store(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, record, &error));
    g_assert_no_error(error);
}

/* spec:05-16.4#86 */
static void
test_none_is_empty(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = load(f, CH_MOUNT_RECORD_HOTPLUG);

    g_assert_cmpuint(record->entries->len, ==, 0);
    g_assert_false(record->is_stored);
}

/* What Go wrote is read, and what we write is what Go would have. spec:05-16.4#84
 * spec:05-16.4#89 */
static void
test_bytes_are_those_of_go(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = NULL;
    g_autofree char *text = NULL;
    g_autofree char *path = g_build_filename(f->dir, FILE, NULL);
    struct stat st;

    plant(f, FILE, GO_RECORD);
    record = load(f, CH_MOUNT_RECORD_HOTPLUG);
    g_assert_true(record->is_stored);
    g_assert_cmpuint(record->entries->len, ==, 2);
    g_assert_nonnull(ch_mount_record_find(record, DIR "vol1.img"));
    g_assert_nonnull(ch_mount_record_find(record, DIR "blk"));
    g_assert_true(ch_mount_record_remove(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, NULL));
    g_assert_false(test_tree_has(f->dir, FILE));
    store(f, record);
    text = read_file(f, FILE);
    g_assert_cmpstr(text, ==, GO_RECORD);
    g_assert_cmpint(stat(path, &st), ==, 0);
    g_assert_cmpuint(st.st_mode & 07777, ==, 0600);
}

static void
test_disks_have_sockets(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = NULL;
    g_autofree char *text = NULL;

    plant(f, "container-disk-mount-state/" UID, GO_DISKS);
    record = load(f, CH_MOUNT_RECORD_DISKS);
    g_assert_cmpstr(
        ch_mount_record_find(record, "/d/disk_0.img")->socket_file, ==, "/s/disk_0.sock");
    g_assert_true(ch_mount_record_store(CH_MOUNT_RECORD_DISKS, f->dir, UID, record, NULL));
    text = read_file(f, "container-disk-mount-state/" UID);
    g_assert_cmpstr(text, ==, GO_DISKS);
}

/* spec:05-16.4#88 */
static void
test_a_target_is_told_once(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = load(f, CH_MOUNT_RECORD_HOTPLUG);

    g_assert_true(ch_mount_record_add(record, "/a", NULL));
    g_assert_false(ch_mount_record_add(record, "/a", NULL));
    g_assert_cmpuint(record->entries->len, ==, 1);
    g_assert_true(ch_mount_record_drop(record, "/a"));
    g_assert_false(ch_mount_record_drop(record, "/a"));
    g_assert_null(ch_mount_record_find(record, "/a"));
}

static void
test_empty_is_null(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = load(f, CH_MOUNT_RECORD_HOTPLUG);
    g_autoptr(ChMountRecord) again = NULL;
    g_autofree char *text = NULL;

    store(f, record);
    text = read_file(f, FILE);
    g_assert_cmpstr(text, ==, "{\"mountTargetEntries\":null,\"usesSafePaths\":true}");
    again = load(f, CH_MOUNT_RECORD_HOTPLUG);
    g_assert_true(again->is_stored);
    g_assert_cmpuint(again->entries->len, ==, 0);
}

/* spec:05-16.8#158: written, read, written over, read, taken away, and then neither there to be
 * read nor to be taken away; of both kinds, which know nothing of each other. */
static void
test_life(Fixture *f, gconstpointer data)
{
    static const ChMountRecordKind kinds[] = {CH_MOUNT_RECORD_DISKS, CH_MOUNT_RECORD_HOTPLUG};
    static const char *const files[] = {"container-disk-mount-state/" UID, FILE};

    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autoptr(ChMountRecord) record = load(f, kinds[i]);
        g_autoptr(ChMountRecord) first = NULL;
        g_autoptr(ChMountRecord) second = NULL;
        g_autoptr(ChMountRecord) gone = NULL;

        g_assert_false(record->is_stored);
        g_assert_true(ch_mount_record_add(record, "/a", "/s"));
        g_assert_true(ch_mount_record_store(kinds[i], f->dir, UID, record, NULL));
        first = load(f, kinds[i]);
        g_assert_true(first->is_stored);
        g_assert_cmpuint(first->entries->len, ==, 1);
        g_assert_cmpstr(ch_mount_record_find(first, "/a")->socket_file, ==, "/s");

        g_assert_true(ch_mount_record_drop(first, "/a"));
        g_assert_true(ch_mount_record_add(first, "/b", NULL));
        g_assert_true(ch_mount_record_store(kinds[i], f->dir, UID, first, NULL));
        second = load(f, kinds[i]);
        g_assert_cmpuint(second->entries->len, ==, 1);
        g_assert_nonnull(ch_mount_record_find(second, "/b"));

        g_assert_true(ch_mount_record_remove(kinds[i], f->dir, UID, NULL));
        g_assert_false(test_tree_has(f->dir, files[i]));
        gone = load(f, kinds[i]);
        g_assert_false(gone->is_stored);
        g_assert_cmpuint(gone->entries->len, ==, 0);
        g_assert_true(ch_mount_record_remove(kinds[i], f->dir, UID, NULL));
    }
}

static void
test_removing_twice_is_fine(Fixture *f, gconstpointer data)
{
    plant(f, FILE, GO_RECORD);
    g_assert_true(ch_mount_record_remove(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, NULL));
    g_assert_false(test_tree_has(f->dir, FILE));
    g_assert_true(ch_mount_record_remove(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, NULL));
}

/* spec:05-16.4#82 spec:05-16.4#83 */
static void
test_a_vmi_without_uid_has_none(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = load(f, CH_MOUNT_RECORD_HOTPLUG);
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, f->dir, "", &error));
    g_assert_cmpstr(
        error->message, ==, "unable to find hotplug mounted directories for vmi without uid");
    g_clear_error(&error);
    g_assert_false(ch_mount_record_store(CH_MOUNT_RECORD_DISKS, f->dir, "", record, &error));
    g_assert_cmpstr(
        error->message, ==, "unable to set container disk mounted directories for vmi without uid");
    g_clear_error(&error);
    g_assert_false(ch_mount_record_store(CH_MOUNT_RECORD_HOTPLUG, f->dir, "../x", record, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_clear_error(&error);
    g_assert_false(ch_mount_record_remove(CH_MOUNT_RECORD_HOTPLUG, f->dir, "..", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

/* Records from before safe paths: without "/proc/1/root", which no longer shows in paths. */
static void
test_legacy_paths_are_converted(Fixture *f, gconstpointer data)
{
    g_autoptr(ChMountRecord) record = NULL;
    g_autoptr(GError) error = NULL;

    plant(f,
          FILE,
          "{\"mountTargetEntries\":[{\"targetFile\":\"/proc/1/root/var//lib/x/../y\"},"
          "{\"targetFile\":\"/proc/1/rootless/z\"}]}");
    record = load(f, CH_MOUNT_RECORD_HOTPLUG);
    g_assert_nonnull(ch_mount_record_find(record, "/var/lib/y"));
    g_assert_nonnull(ch_mount_record_find(record, "/proc/1/rootless/z"));
    plant(f, FILE, "{\"mountTargetEntries\":[{\"targetFile\":\"x\"}],\"usesSafePaths\":false}");
    g_assert_null(ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, &error));
    g_assert_nonnull(strstr(error->message, "failed converting legacy path to safepath: "));
}

static void
test_garbage_is_refused(Fixture *f, gconstpointer data)
{
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"mountTargetEntries\":{}}",
        "{\"mountTargetEntries\":[1]}",
        "{\"mountTargetEntries\":[{\"targetFile\":7}],\"usesSafePaths\":true}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        plant(f, FILE, texts[i]);
        g_assert_null(ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, &error));
        g_assert_true(g_str_has_prefix(error->message, "failed to get checkpoint " UID ", "));
    }
}

static void
test_too_many_are_refused(Fixture *f, gconstpointer data)
{
    g_autoptr(GString) text = g_string_new("{\"mountTargetEntries\":[");
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i <= CH_MOUNT_RECORD_MAX_ENTRIES; i++)
        g_string_append_printf(text, "%s{\"targetFile\":\"/%u\"}", i > 0 ? "," : "", i);
    g_string_append(text, "]}");
    plant(f, FILE, text->str);
    g_assert_null(ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_a_link_is_no_record(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    plant(f, "elsewhere", GO_RECORD);
    test_tree_link(f->dir, FILE, "../elsewhere");
    g_assert_null(ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, f->dir, UID, &error));
    g_assert_error(error, CH_ERRNO, ELOOP);
}

#define ADD(name, func)                                                                            \
    g_test_add("/pod/mount-record/" name, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("none-is-empty", test_none_is_empty);
    ADD("bytes-are-those-of-go", test_bytes_are_those_of_go);
    ADD("disks-have-sockets", test_disks_have_sockets);
    ADD("a-target-is-told-once", test_a_target_is_told_once);
    ADD("empty-is-null", test_empty_is_null);
    ADD("life", test_life);
    ADD("removing-twice-is-fine", test_removing_twice_is_fine);
    ADD("a-vmi-without-uid-has-none", test_a_vmi_without_uid_has_none);
    ADD("legacy-paths-are-converted", test_legacy_paths_are_converted);
    ADD("garbage-is-refused", test_garbage_is_refused);
    ADD("too-many-are-refused", test_too_many_are_refused);
    ADD("a-link-is-no-record", test_a_link_is_no_record);
    return g_test_run();
}
