/* SPDX-License-Identifier: Apache-2.0 */

/* With the real hands, this program being the node; file systems: tests/scenario/test_hotplug.py.
 */

#include "handler/pod/hotplug.h"

#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "handler/hands/test-fake-disk.h"
#include "handler/pod/mount-record.h"
#include "lib/base/errors.h"

#define VMI_UID "1111bbbb-0000-4000-8000-000000000001"
#define ATTACH  "cccc0000-0000-4000-8000-000000000001"

typedef struct {
    char *dir;      /* owned; NULL: no root */
    char *pods_dir; /* owned */
    char *volumes;  /* owned; the launcher's directory of volumes */
    char *source;   /* owned; the attachment pod's */
    ChHands *hands;
    ChHotplug *hotplug;
    GArray *rules; /* ChHotplugRule: what was put into force, in order */
    guint n_calls;
    bool refuses; /* rules are refused */
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    if (geteuid() != 0)
        return;
    f->dir = test_tree_new();
    f->pods_dir = g_build_filename(f->dir, "pods", NULL);
    f->volumes = g_build_filename(f->pods_dir, FAKE_POD_UID, FAKE_HOTPLUG, NULL);
    f->source = g_build_filename(f->pods_dir, ATTACH, FAKE_HOTPLUG, NULL);
    test_tree_mkdir(f->volumes, ".");
    test_tree_mkdir(f->source, ".");
    test_tree_mkdir(f->dir, "hotplug-volume-mount-state");
    f->rules = g_array_new(FALSE, FALSE, sizeof(ChHotplugRule));
    f->hands = ch_hands_start(NULL, &(ChHandsPlaces){f->pods_dir, f->dir, NULL, getpid()}, &error);
    g_assert_no_error(error);
    f->hotplug = ch_hotplug_new(f->hands, f->dir, f->pods_dir, "node01");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    if (f->dir == NULL)
        return;
    ch_hotplug_free(f->hotplug);
    ch_hands_stop(f->hands);
    g_array_unref(f->rules);
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->pods_dir);
    g_free(f->volumes);
    g_free(f->source);
}

static bool
set_rules(gpointer data, const ChHotplugRule *rules, gsize n_rules, GError **error)
{
    Fixture *f = data;

    f->n_calls++;
    if (f->refuses)
        return ch_fail(error, CH_ERROR_FAILED, "cannot set cgroup resources");
    g_array_append_vals(f->rules, rules, (guint)n_rules);
    return true;
}

static void
assert_rule(
    const Fixture *f, guint index, unsigned major_number, unsigned minor_number, bool is_allowed)
{
    const ChHotplugRule *rule = &g_array_index(f->rules, ChHotplugRule, index);

    g_assert_cmpuint(index, <, f->rules->len);
    g_assert_cmpuint(rule->major_number, ==, major_number);
    g_assert_cmpuint(rule->minor_number, ==, minor_number);
    g_assert_cmpint(rule->is_allowed, ==, is_allowed);
}

/* The attachment pod's device of a volume. */
static void
attach(const Fixture *f, const char *volume, unsigned major_number, unsigned minor_number)
{
    g_autofree char *path = g_build_filename(f->source, volume, "pvc", NULL);

    test_tree_mkdir(f->source, volume);
    (void)g_unlink(path);
    g_assert_cmpint(mknod(path, S_IFBLK | 0666, makedev(major_number, minor_number)), ==, 0);
}

/* @wanted, @plugged: names of block volumes, by blanks. (transfer full) */
static ChJson *
make_vmi(const char *wanted, const char *plugged)
{
    g_auto(GStrv) in_spec = g_strsplit(wanted, " ", 0);
    g_auto(GStrv) in_status = g_strsplit(plugged, " ", 0);
    g_autoptr(GString) text = g_string_new("{\"spec\":{\"volumes\":[");
    g_autoptr(GError) error = NULL;
    ChJson *vmi;

    for (gsize i = 0; in_spec[i] != NULL; i++)
        g_string_append_printf(
            text,
            "%s{\"name\":\"%s\",\"persistentVolumeClaim\":{\"hotpluggable\":true}}",
            i > 0 ? "," : "",
            in_spec[i]);
    g_string_append(text,
                    "]},\"status\":{\"activePods\":{\"" FAKE_POD_UID "\":\"node01\","
                    "\"aaaabbbb-0000-4000-8000-00000000dead\":\"node01\"},\"volumeStatus\":[");
    for (gsize i = 0; in_status[i] != NULL; i++)
        g_string_append_printf(text,
                               "%s{\"name\":\"%s\",\"phase\":\"AttachedToNode\","
                               "\"hotplugVolume\":{\"attachPodUID\":\"" ATTACH "\"},"
                               "\"persistentVolumeClaimInfo\":{\"volumeMode\":\"Block\"}}",
                               i > 0 ? "," : "",
                               in_status[i]);
    g_string_append(text, "]}}");
    vmi = ch_json_parse(text->str, -1, &error);
    g_assert_no_error(error);
    return vmi;
}

static ChHotplugPass
pass_of(Fixture *f, const ChJson *vmi)
{
    static const ChLogContext log = {.controller = "vm"};

    return (ChHotplugPass){.hotplug = f->hotplug,
                           .log = &log,
                           .uid = VMI_UID,
                           .name = "vm",
                           .vmi = vmi,
                           .set_rules = set_rules,
                           .rules_data = f};
}

/* Mounts, then unmounts, as one sync does. Returns what went wrong with mounting. */
static GPtrArray *
sync_volumes(Fixture *f, const char *wanted, const char *plugged, GError **error)
{
    g_autoptr(ChJson) vmi = make_vmi(wanted, plugged);
    g_auto(ChHotplugPass) pass = pass_of(f, vmi);
    GPtrArray *failures = ch_hotplug_mount(&pass);

    if (failures->len == 0)
        (void)ch_hotplug_unmount(&pass, error);
    return failures;
}

static void
sync_well(Fixture *f, const char *wanted, const char *plugged)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) failures = sync_volumes(f, wanted, plugged, &error);

    if (failures->len > 0)
        g_test_message("%s", ((ChHotplugFailure *)failures->pdata[0])->error->message);
    g_assert_cmpuint(failures->len, ==, 0);
    g_assert_no_error(error);
}

/* The one failure of a sync. */
static void
sync_badly(
    Fixture *f, const char *wanted, const char *plugged, ChHotplugTrouble trouble, const char *text)
{
    g_autoptr(GPtrArray) failures = sync_volumes(f, wanted, plugged, NULL);
    const ChHotplugFailure *failure;

    g_assert_cmpuint(failures->len, ==, 1);
    failure = failures->pdata[0];
    g_test_message("%s", failure->error->message);
    g_assert_cmpint(failure->trouble, ==, trouble);
    g_assert_nonnull(strstr(failure->error->message, text));
}

static void
assert_record(const Fixture *f, const char *first, const char *second)
{
    g_autoptr(ChMountRecord) record =
        ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, f->dir, VMI_UID, NULL);
    const char *names[] = {first, second};
    guint n = 0;

    g_assert_nonnull(record);
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path =
            names[i] != NULL ? g_build_filename(f->volumes, names[i], NULL) : NULL;

        if (path == NULL)
            continue;
        g_assert_cmpuint(record->entries->len, >, n);
        g_assert_cmpstr(((ChMountEntry *)record->entries->pdata[n++])->target_file, ==, path);
    }
    g_assert_cmpuint(record->entries->len, ==, n);
    g_assert_cmpint(record->is_stored, ==, n > 0);
}

/* spec:05-16.4#93 spec:05-16.4#97 field:FR-G14: kubelet's directory is not where it mostly is. */
static void
test_life_of_a_volume(Fixture *f, gconstpointer data)
{
    struct stat st;

    attach(f, "vol", 482, 64);
    sync_well(f, "vol", "vol");
    st = test_tree_stat(f->volumes, "vol");
    g_assert_true(S_ISBLK(st.st_mode));
    g_assert_cmpuint(st.st_rdev, ==, 123456);
    g_assert_cmpuint(st.st_uid, ==, 107);
    g_assert_cmpuint(f->n_calls, ==, 1);
    assert_rule(f, 0, 482, 64, true);
    assert_record(f, "vol", NULL);
    /* Each sync says so again; one that takes it away allows it until then. */
    sync_well(f, "vol", "vol");
    g_assert_cmpuint(f->n_calls, ==, 2);
    sync_well(f, "", "vol");
    g_assert_cmpuint(f->rules->len, ==, 4);
    assert_rule(f, 2, 482, 64, true);
    assert_rule(f, 3, 482, 64, false);
    g_assert_false(test_tree_has(f->volumes, "vol"));
    assert_record(f, NULL, NULL);
    /* What is not recorded any more is not asked for either. */
    sync_well(f, "", "vol");
    g_assert_cmpuint(f->rules->len, ==, 4);
}

/* Between two calls the devices of the others would be denied. Trap 32; spec:05-16.4#106 */
static void
test_rules_come_at_once(Fixture *f, gconstpointer data)
{
    attach(f, "a", 7, 1);
    attach(f, "b", 7, 2);
    sync_well(f, "a b", "a b");
    g_assert_cmpuint(f->n_calls, ==, 1);
    g_assert_cmpuint(f->rules->len, ==, 2);
    assert_rule(f, 0, 7, 1, true);
    assert_rule(f, 1, 7, 2, true);
    assert_record(f, "a", "b");
    sync_well(f, "b", "a b");
    assert_rule(f, 4, 7, 2, true);
    assert_rule(f, 5, 7, 1, false);
    g_assert_cmpuint(f->rules->len, ==, 6);
    assert_record(f, "b", NULL);
}

/* The same device by two names: what one loses the other has. */
static void
test_shared_device_stays_allowed(Fixture *f, gconstpointer data)
{
    attach(f, "a", 7, 1);
    attach(f, "b", 7, 1);
    sync_well(f, "a b", "a b");
    g_assert_cmpuint(f->rules->len, ==, 1);
    sync_well(f, "b", "a b");
    g_assert_false(test_tree_has(f->volumes, "a"));
    for (guint i = 0; i < f->rules->len; i++)
        assert_rule(f, i, 7, 1, true);
}

/* No list without what a volume of old may be in use by. */
static void
test_no_rules_without_all(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->volumes, "a", NULL);

    attach(f, "a", 7, 1);
    sync_well(f, "a", "a");
    g_assert_cmpint(g_unlink(path), ==, 0);
    test_tree_write(f->volumes, "a", "");
    attach(f, "b", 7, 2);
    /* spec:05-16.4#117 */
    sync_badly(f, "a b", "a b", CH_HOTPLUG_FAILS, "exists but it is not a block device");
    g_assert_cmpuint(f->n_calls, ==, 1);
    g_assert_true(test_tree_has(f->volumes, "b"));
}

/* Trap 26 */
static void
test_new_numbers_replace_old_ones(Fixture *f, gconstpointer data)
{
    attach(f, "vol", 7, 1);
    sync_well(f, "vol", "vol");
    attach(f, "vol", 7, 2);
    sync_well(f, "vol", "vol");
    g_assert_cmpuint(f->n_calls, ==, 2);
    assert_rule(f, 1, 7, 1, false);
    assert_rule(f, 2, 7, 2, true);
    g_assert_cmpuint(test_tree_stat(f->volumes, "vol").st_rdev, ==, makedev(7, 2));
}

/* spec:05-16.4#95 */
static void
test_missing_device_keeps_nobody(Fixture *f, gconstpointer data)
{
    g_autofree char *text = NULL;

    attach(f, "b", 7, 2);
    sync_badly(f,
               "a b",
               "a b",
               CH_HOTPLUG_MISSES,
               "failed to mount block hotplug volume a: find the device of 'a' in pod " ATTACH);
    assert_record(f, "b", NULL);
    assert_rule(f, 0, 7, 2, true);
    test_tree_mkdir(f->source, "a");
    text = g_strdup_printf("failed to mount block hotplug volume a: no device in %s/a", f->source);
    sync_badly(f, "a b", "a b", CH_HOTPLUG_FAILS, text);
}

/* What is not done is told; the others are mounted. */
static void
test_odd_name(Fixture *f, gconstpointer data)
{
    attach(f, "b", 7, 2);
    sync_badly(f,
               "../a b",
               "../a b",
               CH_HOTPLUG_MISSES,
               "1 hotplug volumes are left out: no file can have the name '../a'");
    assert_record(f, "b", NULL);
}

static void
test_rules_that_are_refused(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = make_vmi("vol", "vol");
    g_auto(ChHotplugPass) pass = pass_of(f, vmi);
    g_autoptr(GPtrArray) failures = NULL;

    attach(f, "vol", 7, 1);
    f->refuses = true;
    sync_badly(f, "vol", "vol", CH_HOTPLUG_FAILS, "cannot set cgroup resources");
    pass.set_rules = NULL;
    failures = ch_hotplug_mount(&pass);
    g_assert_cmpuint(failures->len, ==, 1);
    g_assert_nonnull(
        strstr(((ChHotplugFailure *)failures->pdata[0])->error->message, "cgroup manager is nil"));
    assert_record(f, "vol", NULL); /* the next pass allows it */
}

/* spec:05-16.4#98 spec:05-16.4#107 field:FR-G06 */
static void
test_one_that_stays_keeps_nobody(Fixture *f, gconstpointer data)
{
    g_autofree char *a = g_build_filename(f->volumes, "a", NULL);
    g_autoptr(GPtrArray) failures = NULL;
    g_autoptr(GError) error = NULL;

    attach(f, "a", 7, 1);
    attach(f, "b", 7, 2);
    attach(f, "c", 7, 3);
    sync_well(f, "a b c", "a b c");
    g_assert_cmpint(g_unlink(a), ==, 0);
    test_tree_link(f->volumes, "a", "/elsewhere");
    failures = sync_volumes(f, "c", "c", &error);
    g_assert_cmpuint(failures->len, ==, 0);
    g_assert_nonnull(error);
    g_test_message("%s", error->message);
    g_assert_true(
        g_str_has_prefix(error->message, "failed to cleanup hotplug mounts for VMI vm: "));
    g_assert_nonnull(strstr(error->message, a));
    g_assert_false(test_tree_has(f->volumes, "b"));
    assert_record(f, "a", "c");
}

/* The rule first: a node whose device could not be denied is found again. Trap 25 */
static void
test_denial_that_fails_is_repeated(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = make_vmi("", "");
    g_auto(ChHotplugPass) pass = pass_of(f, vmi);
    g_autoptr(GError) error = NULL;

    attach(f, "vol", 7, 1);
    sync_well(f, "vol", "vol");
    f->refuses = true;
    g_assert_false(ch_hotplug_unmount(&pass, &error));
    g_assert_nonnull(strstr(error->message, "Unable to remove block device at path "));
    g_assert_true(test_tree_has(f->volumes, "vol"));
    assert_record(f, "vol", NULL);
    f->refuses = false;
    sync_well(f, "", "");
    g_assert_false(test_tree_has(f->volumes, "vol"));
    assert_record(f, NULL, NULL);
}

/* spec:05-16.4#87 spec:05-16.4#118 */
static void
test_all_are_taken_away_without_a_cgroup(Fixture *f, gconstpointer data)
{
    static const ChLogContext log = {.controller = "vm"};
    g_autoptr(GError) error = NULL;

    attach(f, "a", 7, 1);
    attach(f, "b", 7, 2);
    sync_well(f, "a b", "a b");
    test_tree_write(f->volumes, "own", "the pod's");
    g_assert_true(ch_hotplug_unmount_all(f->hotplug, VMI_UID, NULL, NULL, &log, &error));
    g_assert_no_error(error);
    g_assert_false(test_tree_has(f->volumes, "a"));
    g_assert_false(test_tree_has(f->volumes, "b"));
    g_assert_true(test_tree_has(f->volumes, "own"));
    assert_record(f, NULL, NULL);
    g_assert_true(ch_hotplug_unmount_all(f->hotplug, VMI_UID, NULL, NULL, &log, &error));
    g_assert_true(ch_hotplug_unmount_all(f->hotplug, "", NULL, NULL, &log, &error));
}

static void
set_descriptors(const Fixture *f, rlim_t n)
{
    const struct rlimit limit = {n, 1024};
    ChHandsReply reply;

    g_assert_true(
        ch_hands_call(f->hands, &(ChHandsRequest){.op = CH_HANDS_OP_HELLO}, &reply, NULL, NULL));
    g_assert_cmpint(prlimit(reply.pid, RLIMIT_NOFILE, &limit, NULL), ==, 0);
}

/* Hands that lack something for the moment are asked again, by what the record says. */
static void
test_all_are_taken_away_later(Fixture *f, gconstpointer data)
{
    static const ChLogContext log = {.controller = "vm"};
    g_autoptr(GError) error = NULL;

    attach(f, "a", 7, 1);
    sync_well(f, "a", "a");
    set_descriptors(f, 1);
    g_assert_false(ch_hotplug_unmount_all(f->hotplug, VMI_UID, NULL, NULL, &log, &error));
    g_assert_error(error, CH_ERRNO, EMFILE);
    assert_record(f, "a", NULL);
    set_descriptors(f, 1024);
    g_assert_true(ch_hotplug_unmount_all(f->hotplug, VMI_UID, NULL, NULL, &log, NULL));
    g_assert_false(test_tree_has(f->volumes, "a"));
    assert_record(f, NULL, NULL);
}

/* spec:05-16.4#119 field:FR-C08 field:FR-G11 */
static void
test_record_of_a_pod_that_is_gone(Fixture *f, gconstpointer data)
{
    attach(f, "vol", 7, 1);
    sync_well(f, "vol", "vol");
    test_tree_remove(f->volumes);
    sync_well(f, "vol", "vol"); /* nothing is done without the directory */
    assert_record(f, NULL, NULL);
}

/* spec:02-14.13#6: what cannot be looked at, as a link there, counts as not mounted. */
static void
test_look(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = make_vmi("a b c", "a b c");
    g_auto(ChHotplugPass) pass = pass_of(f, vmi);
    g_auto(GStrv) mounted = NULL;
    g_autofree char *link = g_build_filename(f->volumes, "c", NULL);

    attach(f, "b", 7, 2);
    sync_badly(f, "a b", "a b", CH_HOTPLUG_MISSES, "volume a");
    g_assert_cmpint(symlink("b", link), ==, 0);
    mounted = ch_hotplug_look(&pass);
    g_assert_cmpuint(g_strv_length(mounted), ==, 1);
    g_assert_cmpstr(mounted[0], ==, "b");
}

/* spec:05-16.4#108 */
static void
test_nothing_to_do(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = ch_json_parse("{}", -1, NULL);
    g_auto(ChHotplugPass) pass = pass_of(f, vmi);
    g_autoptr(GPtrArray) failures = ch_hotplug_mount(&pass);
    g_auto(GStrv) mounted = ch_hotplug_look(&pass);

    g_assert_cmpuint(failures->len, ==, 0);
    g_assert_cmpuint(g_strv_length(mounted), ==, 0);
    g_assert_true(ch_hotplug_unmount(&pass, NULL));
    g_assert_cmpuint(f->n_calls, ==, 0);
}

/* Hands that are gone say nothing about volumes. */
static void
test_silent_hands(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = make_vmi("vol", "vol");
    g_auto(ChHotplugPass) pass = pass_of(f, vmi);
    g_autoptr(GPtrArray) failures = NULL;
    ChHandsReply reply;

    g_assert_true(
        ch_hands_call(f->hands, &(ChHandsRequest){.op = CH_HANDS_OP_HELLO}, &reply, NULL, NULL));
    g_assert_cmpint(kill(reply.pid, SIGKILL), ==, 0);
    failures = ch_hotplug_mount(&pass);
    g_assert_cmpuint(failures->len, ==, 1);
    g_assert_cmpint(((ChHotplugFailure *)failures->pdata[0])->trouble, ==, CH_HOTPLUG_FAILS);
    g_assert_null(ch_hotplug_look(&pass));
}

static void
test_news(Fixture *f, gconstpointer data)
{
    g_assert_true(ch_hotplug_is_news(f->hotplug, "u", "v", "text"));
    g_assert_false(ch_hotplug_is_news(f->hotplug, "u", "v", "text"));
    g_assert_true(ch_hotplug_is_news(f->hotplug, "u", "w", "text"));
    g_assert_true(ch_hotplug_is_news(f->hotplug, "u", "v", "other"));
    ch_hotplug_forget(f->hotplug, "u");
    g_assert_true(ch_hotplug_is_news(f->hotplug, "u", "v", "other"));
}

/* The figure of the specification: 5 ms of agent time a volume; told, not tested: machines differ.
 */
static void
test_cost(Fixture *f, gconstpointer data)
{
    const int64_t begin_us = g_get_monotonic_time();
    int64_t mounted_us;

    for (guint i = 0; i < 50; i++) {
        attach(f, "vol", 7, 1);
        sync_well(f, "vol", "vol");
        sync_well(f, "", "");
    }
    mounted_us = g_get_monotonic_time() - begin_us;
    g_test_message("%.3f ms to plug and unplug a block volume", (double)mounted_us / 50 / 1000);
    g_assert_cmpuint(f->rules->len, ==, 100);
}

typedef void (*Test)(Fixture *f, gconstpointer data);

static void
run(Fixture *f, gconstpointer data)
{
    if (!fake_pod_skip_mounts())
        ((Test)data)(f, NULL);
}

#define ADD(name, func)                                                                            \
    g_test_add("/pod/hotplug/" name, Fixture, (gconstpointer)func, set_up, run, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("life-of-a-volume", test_life_of_a_volume);
    ADD("rules-come-at-once", test_rules_come_at_once);
    ADD("shared-device-stays-allowed", test_shared_device_stays_allowed);
    ADD("no-rules-without-all", test_no_rules_without_all);
    ADD("new-numbers-replace-old-ones", test_new_numbers_replace_old_ones);
    ADD("missing-device-keeps-nobody", test_missing_device_keeps_nobody);
    ADD("odd-name-is-told", test_odd_name);
    ADD("rules-that-are-refused", test_rules_that_are_refused);
    ADD("one-that-stays-keeps-nobody", test_one_that_stays_keeps_nobody);
    ADD("denial-that-fails-is-repeated", test_denial_that_fails_is_repeated);
    ADD("all-are-taken-away-without-a-cgroup", test_all_are_taken_away_without_a_cgroup);
    ADD("all-are-taken-away-later", test_all_are_taken_away_later);
    ADD("record-of-a-pod-that-is-gone", test_record_of_a_pod_that_is_gone);
    ADD("look", test_look);
    ADD("nothing-to-do", test_nothing_to_do);
    ADD("silent-hands", test_silent_hands);
    ADD("news", test_news);
    ADD("cost", test_cost);
    return g_test_run();
}
