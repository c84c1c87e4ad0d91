/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/ghost-records.h"

#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "lib/base/errors.h"
#include "lib/linux/test-tree.h"

#define SOCKET                                                                                     \
    "/pods/aaaabbbb-0000-4000-8000-000000000001/volumes/kubernetes.io~empty-dir/sockets/"          \
    "launcher-sock"
#define UID "1111bbbb-0000-4000-8000-000000000001"
/* Byte for byte what the Go agent writes. */
#define RECORD                                                                                     \
    "{\"name\":\"vm\",\"namespace\":\"default\",\"socketFile\":\"" SOCKET "\",\"uid\":\"" UID "\"" \
    "}"

typedef struct {
    char *base;
    char *dir; /* private, not made yet */
    ChGhostRecords *records;
} Fixture;

static void
load(Fixture *f)
{
    g_autoptr(GError) error = NULL;

    ch_ghost_records_free(f->records);
    f->records = ch_ghost_records_load(f->dir, &error);
    g_assert_no_error(error);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    (void)umask(022);
    f->base = test_tree_new();
    f->dir = g_build_filename(f->base, "run/private", NULL);
    f->records = NULL;
    load(f);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_ghost_records_free(f->records);
    test_tree_remove(f->base);
    g_free(f->dir);
    g_free(f->base);
}

static bool
add(Fixture *f, const char *namespace_, const char *name, const char *socket, const char *uid)
{
    g_autoptr(GError) error = NULL;
    const bool is_added = ch_ghost_records_add(f->records, namespace_, name, socket, uid, &error);

    g_assert_true(is_added == (error == NULL));
    return is_added;
}

static void
assert_add_fails(
    Fixture *f, const char *const arguments[4], GQuark domain, int code, const char *message)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_ghost_records_add(
        f->records, arguments[0], arguments[1], arguments[2], arguments[3], &error));
    g_assert_error(error, domain, code);
    g_assert_cmpstr(error->message, ==, message);
}

/* spec:01#61 spec:01#76 */
static void
test_files(Fixture *f, gconstpointer data)
{
    g_autofree char *path = g_build_filename(f->dir, "ghost-records", UID, NULL);
    g_autofree char *text = NULL;

    g_assert_cmpint(test_tree_stat(f->dir, "ghost-records").st_mode, ==, S_IFDIR | 0755);
    g_assert_cmpint(
        test_tree_stat(f->dir, "container-disk-mount-state").st_mode, ==, S_IFDIR | 0700);
    g_assert_cmpint(
        test_tree_stat(f->dir, "hotplug-volume-mount-state").st_mode, ==, S_IFDIR | 0700);
    g_assert_true(add(f, "default", "vm", SOCKET, UID));
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_assert_cmpstr(text, ==, RECORD);
    g_assert_cmpint(test_tree_stat(f->dir, "ghost-records/" UID).st_mode, ==, S_IFREG | 0600);
    g_assert_false(test_tree_has(f->dir, "." UID ".tmp"));
}

/* spec:01#62 */
static void
test_reload(Fixture *f, gconstpointer data)
{
    g_autoptr(ChGhostRecord) record = NULL;
    g_autoptr(GPtrArray) list = NULL;

    g_assert_true(add(f, "default", "vm", SOCKET, UID));
    g_assert_true(add(f, "a", "vm", "/pods/2/./x//launcher-sock", "2222"));
    load(f);
    list = ch_ghost_records_list(f->records);
    g_assert_cmpuint(list->len, ==, 2);
    g_assert_cmpstr(((const ChGhostRecord *)list->pdata[0])->namespace_, ==, "a");
    record = ch_ghost_records_find(f->records, "default", "vm");
    g_assert_cmpstr(record->uid, ==, UID);
    g_assert_cmpstr(record->socket_file, ==, SOCKET);
    ch_ghost_record_free(g_steal_pointer(&record));
    record = ch_ghost_records_find_by_socket(f->records, "/pods/2/x/launcher-sock");
    g_assert_cmpstr(record->uid, ==, "2222");
    g_assert_null(ch_ghost_records_find_by_socket(f->records, "/pods/3/x/launcher-sock"));
    g_assert_null(ch_ghost_records_find(f->records, "default", "other"));
}

/* spec:01#64 */
static void
test_conditions(Fixture *f, gconstpointer data)
{
    static const struct {
        const char *arguments[4];
        ChErrorCode code;
        const char *message;
    } cases[] = {
        {{"default", "", SOCKET, UID},
         CH_ERROR_INVALID,
         "can not add ghost record when 'name' is not provided"},
        {{"", "vm", SOCKET, UID},
         CH_ERROR_INVALID,
         "can not add ghost record when 'namespace' is not provided"},
        {{"default", "vm", SOCKET, ""},
         CH_ERROR_INVALID,
         "unable to add ghost record with empty UID"},
        {{"default", "vm", "", UID},
         CH_ERROR_INVALID,
         "unable to add ghost record without a socketFile"},
        {{"default", "vm", SOCKET, "../up"},
         CH_ERROR_INVALID,
         "unable to add ghost record with a UID that names no file"},
        {{"default", "known", SOCKET, "other"},
         CH_ERROR_EXISTS,
         "can not add ghost record when entry already exists with differing UID"},
        {{"default", "known", "/pods/other", "3333"},
         CH_ERROR_EXISTS,
         "can not add ghost record when entry already exists with differing socket file "
         "location"},
    };

    g_assert_true(add(f, "default", "known", "/pods//3", "3333"));
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_add_fails(f, cases[i].arguments, CH_ERROR, (int)cases[i].code, cases[i].message);
    g_assert_true(add(f, "default", "known", "/pods/3", "3333")); /* the stored path normalised */
    g_assert_false(test_tree_has(f->base, "run/up"));
}

/* spec:01#63 */
static void
test_remove(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(f->dir, "ghost-records", UID, NULL);
    g_autoptr(ChGhostRecord) record = NULL;

    g_assert_true(ch_ghost_records_remove(f->records, "default", "vm", &error));
    g_assert_true(add(f, "default", "vm", SOCKET, UID));
    g_assert_true(ch_ghost_records_remove(f->records, "default", "vm", &error));
    g_assert_no_error(error);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_null(ch_ghost_records_find(f->records, "default", "vm"));

    /* A file that somebody else removed is no reason to keep the record. */
    g_assert_true(add(f, "default", "vm", SOCKET, UID));
    (void)g_unlink(path);
    g_assert_true(ch_ghost_records_remove(f->records, "default", "vm", &error));
    g_assert_null(ch_ghost_records_find(f->records, "default", "vm"));

    /* One that cannot be removed is. */
    g_assert_true(add(f, "default", "vm", SOCKET, UID));
    (void)g_unlink(path);
    g_assert_no_errno(g_mkdir(path, 0700));
    g_assert_false(ch_ghost_records_remove(f->records, "default", "vm", &error));
    g_assert_error(error, CH_ERRNO, EISDIR);
    g_assert_true(g_str_has_prefix(error->message, "failed to delete checkpoint " UID ", "));
    record = ch_ghost_records_find(f->records, "default", "vm");
    g_assert_nonnull(record);
}

/* spec:01#95: Entries that are no record are passed over and stay; a later file of the same name
 * wins. */
static void
test_foreign(Fixture *f, gconstpointer data)
{
    static const char *const names[] = {
        "broken", "directory", "empty", "fifo", "huge", "link", "other-uid", "no-name"};
    g_autofree char *huge = g_strnfill(100000, ' ');
    g_autoptr(GPtrArray) list = NULL;
    g_autofree char *fifo = g_build_filename(f->dir, "ghost-records/fifo", NULL);

    test_tree_write(f->dir, "ghost-records/broken", "{\"name\":\"vm\",\"na");
    test_tree_write(f->dir, "ghost-records/empty", "");
    test_tree_write(f->dir, "ghost-records/huge", huge);
    test_tree_write(f->dir, "ghost-records/other-uid", RECORD);
    test_tree_write(f->dir,
                    "ghost-records/no-name",
                    "{\"namespace\":\"d\",\"socketFile\":\"/x\",\"uid\":\"no-name\"}");
    test_tree_mkdir(f->dir, "ghost-records/directory");
    test_tree_link(f->dir, "ghost-records/link", UID);
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
    test_tree_write(f->dir, "ghost-records/" UID, RECORD);
    test_tree_write(
        f->dir,
        "ghost-records/a-first",
        "{\"name\":\"vm\",\"namespace\":\"default\",\"socketFile\":\"/x\",\"uid\":\"a-first\"}");
    load(f);
    list = ch_ghost_records_list(f->records);
    g_assert_cmpuint(list->len, ==, 1);
    g_assert_cmpstr(((const ChGhostRecord *)list->pdata[0])->uid, ==, "a-first");
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *entry = g_strconcat("ghost-records/", names[i], NULL);

        g_assert_true(test_tree_has(f->dir, entry));
    }
}

/* The store has failed: nothing is remembered, and nothing is left behind. */
static void
test_write_fails(Fixture *f, gconstpointer data)
{
    static const char *const arguments[] = {"default", "vm", SOCKET, UID};
    g_autoptr(GError) error = NULL;

    test_tree_mkdir(f->dir, "ghost-records/" UID "/in-the-way");
    g_assert_false(ch_ghost_records_add(
        f->records, arguments[0], arguments[1], arguments[2], arguments[3], &error));
    g_assert_true(g_str_has_prefix(error->message, "failed to checkpoint " UID ", "));
    g_assert_null(ch_ghost_records_find(f->records, "default", "vm"));
    g_assert_false(test_tree_has(f->dir, "." UID ".tmp"));
}

/* One byte more than any record has. The padding is JSON's own. */
static void
test_size(Fixture *f, gconstpointer data)
{
    g_autofree char *padding = g_strnfill(16384 - strlen(RECORD), ' ');
    g_autofree char *fits = g_strconcat(RECORD, padding, NULL);
    g_autofree char *exceeds = g_strconcat(fits, " ", NULL);
    g_autoptr(ChGhostRecord) record = NULL;

    test_tree_write(f->dir, "ghost-records/" UID, exceeds);
    load(f);
    g_assert_null(ch_ghost_records_find(f->records, "default", "vm"));
    test_tree_write(f->dir, "ghost-records/" UID, fits);
    load(f);
    record = ch_ghost_records_find(f->records, "default", "vm");
    g_assert_nonnull(record);
}

/* In a child with mounts of its own: one page, which the first record takes. */
static void
fill_disk(Fixture *f)
{
    g_autoptr(GError) error = NULL;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("full", f->dir, "tmpfs", 0, "size=4k") < 0)
        _exit(77);
    load(f);
    g_assert_true(add(f, "default", "vm", SOCKET, UID));
    g_assert_false(ch_ghost_records_add(f->records, "default", "other", SOCKET, "2222", &error));
    g_assert_error(error, CH_ERRNO, ENOSPC);
    g_assert_false(test_tree_has(f->dir, ".2222.tmp"));
    load(f);
    g_assert_null(ch_ghost_records_find(f->records, "default", "other"));
    g_clear_error(&error);
    g_assert_true(ch_ghost_records_remove(f->records, "default", "vm", &error)); /* makes room */
    g_assert_true(add(f, "default", "other", SOCKET, "2222"));
    _exit(0);
}

static void
test_full_disk(Fixture *f, gconstpointer data)
{
    int status = 0;
    pid_t child;

    if (geteuid() != 0) {
        g_test_skip("needs root: mounts");
        return;
    }
    child = fork();
    if (child == 0)
        fill_disk(f);
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        g_test_skip("no tmpfs can be mounted here");
    else
        g_assert_cmpint(status, ==, 0);
}

/* spec:01#95 */
static void
test_no_directory(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_ghost_records_load("/dev/null/private", &error));
    g_assert_error(error, CH_ERRNO, ENOTDIR);
}

static const struct {
    const char *path;
    void (*func)(Fixture *f, gconstpointer data);
} cases[] = {
    {"/ghost-records/files-are-the-go-agents", test_files},
    {"/ghost-records/survive-a-restart", test_reload},
    {"/ghost-records/conditions-of-add", test_conditions},
    {"/ghost-records/remove", test_remove},
    {"/ghost-records/foreign-entries-are-passed-over", test_foreign},
    {"/ghost-records/failed-write-leaves-nothing", test_write_fails},
    {"/ghost-records/size-limit", test_size},
    {"/ghost-records/full-disk", test_full_disk},
};

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add(cases[i].path, Fixture, NULL, set_up, cases[i].func, tear_down);
    g_test_add_func("/ghost-records/no-directory", test_no_directory);
    return g_test_run();
}
