/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/final-phases.h"

#include "lib/linux/test-tree.h" /* lint: include, a temporary directory */

#define UID_A "1111bbbb-0000-4000-8000-000000000001"
#define UID_B "1111bbbb-0000-4000-8000-000000000002"

typedef struct {
    char *dir;
    ChFinalPhases *phases;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    f->dir = test_tree_new();
    f->phases = ch_final_phases_load(f->dir);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_final_phases_free(f->phases);
    test_tree_remove(f->dir);
    g_free(f->dir);
}

static void
restart(Fixture *f)
{
    ch_final_phases_free(f->phases);
    f->phases = ch_final_phases_load(f->dir);
}

static void
test_survives(Fixture *f, gconstpointer data)
{
    g_autofree char *path = NULL;

    ch_final_phases_keep(f->phases, UID_A, CH_PHASE_SUCCEEDED);
    ch_final_phases_keep(f->phases, UID_A, CH_PHASE_SUCCEEDED);
    restart(f);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_A), ==, CH_PHASE_SUCCEEDED);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_B), ==, CH_PHASE_UNSET);
    path = ch_final_phases_forget(f->phases, UID_A);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    ch_final_phases_remove_file(path);
    g_assert_null(ch_final_phases_forget(f->phases, UID_A));
    g_assert_false(test_tree_has(f->dir, "final-phases")); /* nothing is left */
    restart(f);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_A), ==, CH_PHASE_UNSET);
}

/* Whatever the order in which a directory is read. */
static void
test_last_counts(Fixture *f, gconstpointer data)
{
    ch_final_phases_keep(f->phases, UID_A, CH_PHASE_FAILED);
    ch_final_phases_keep(f->phases, UID_A, CH_PHASE_SUCCEEDED);
    ch_final_phases_keep(f->phases, UID_B, CH_PHASE_SUCCEEDED);
    ch_final_phases_keep(f->phases, UID_B, CH_PHASE_FAILED);
    g_assert_false(test_tree_has(f->dir, "final-phases/" UID_A ".Failed"));
    g_assert_false(test_tree_has(f->dir, "final-phases/" UID_B ".Succeeded"));
    restart(f);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_A), ==, CH_PHASE_SUCCEEDED);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_B), ==, CH_PHASE_FAILED);
}

static void
test_list(Fixture *f, gconstpointer data)
{
    g_autoptr(GPtrArray) uids = ch_final_phases_list(f->phases);

    g_assert_cmpuint(uids->len, ==, 0);
    g_clear_pointer(&uids, g_ptr_array_unref);
    ch_final_phases_keep(f->phases, UID_A, CH_PHASE_SUCCEEDED);
    restart(f);
    uids = ch_final_phases_list(f->phases);
    g_assert_cmpuint(uids->len, ==, 1);
    g_assert_cmpstr(uids->pdata[0], ==, UID_A);
}

/* An agent that dies between directory and file leaves nothing for ever. */
static void
test_empty_directory(Fixture *f, gconstpointer data)
{
    test_tree_mkdir(f->dir, "final-phases");
    restart(f);
    g_assert_false(test_tree_has(f->dir, "final-phases"));
    ch_final_phases_keep(f->phases, UID_A, CH_PHASE_FAILED);
    restart(f);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_A), ==, CH_PHASE_FAILED);
}

/* Files that are none of ours, and UIDs that name no file. */
static void
test_odd_names(Fixture *f, gconstpointer data)
{
    static const char *const uids[] = {"", ".", "..", "../x", "a/b", ".hidden"};
    g_autofree char *dir = g_build_filename(f->dir, "final-phases", NULL);
    g_autofree char *long_uid = g_strnfill(300, 'x');

    test_tree_mkdir(f->dir, "final-phases");
    test_tree_write(dir, "garbage", "");
    test_tree_write(dir, ".Succeeded", "");
    test_tree_write(dir, UID_A ".Running", "");
    restart(f);
    g_assert_cmpint(ch_final_phases_find(f->phases, UID_A), ==, CH_PHASE_UNSET);
    for (gsize i = 0; i < G_N_ELEMENTS(uids); i++) {
        ch_final_phases_keep(f->phases, uids[i], CH_PHASE_FAILED);
        g_assert_cmpint(ch_final_phases_find(f->phases, uids[i]), ==, CH_PHASE_FAILED);
        g_assert_null(ch_final_phases_forget(f->phases, uids[i])); /* no file */
    }
    ch_final_phases_keep(f->phases, long_uid, CH_PHASE_FAILED);
    g_assert_null(ch_final_phases_forget(f->phases, long_uid));
}

static void
test_no_directory(void)
{
    g_autoptr(ChFinalPhases) phases = NULL;

    phases = ch_final_phases_load("/dev/null/private");
    ch_final_phases_keep(phases, UID_A, CH_PHASE_FAILED);
    g_assert_cmpint(ch_final_phases_find(phases, UID_A), ==, CH_PHASE_FAILED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/final-phases/survives", Fixture, NULL, set_up, test_survives, tear_down);
    g_test_add("/final-phases/last-counts", Fixture, NULL, set_up, test_last_counts, tear_down);
    g_test_add("/final-phases/list", Fixture, NULL, set_up, test_list, tear_down);
    g_test_add(
        "/final-phases/empty-directory", Fixture, NULL, set_up, test_empty_directory, tear_down);
    g_test_add("/final-phases/odd-names", Fixture, NULL, set_up, test_odd_names, tear_down);
    g_test_add_func("/final-phases/no-directory", test_no_directory);
    return g_test_run();
}
