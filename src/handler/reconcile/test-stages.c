/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/stages.h"

static void
test_told_once_since_seen(void)
{
    g_autoptr(ChStages) stages = ch_stages_new();
    int64_t elapsed_us = -1;

    g_assert_true(ch_stages_finish(stages, "u", CH_STAGE_SEEN, 100, &elapsed_us));
    g_assert_cmpint(elapsed_us, ==, 0);
    g_assert_true(ch_stages_finish(stages, "u", CH_STAGE_SYNCED, 350, &elapsed_us));
    g_assert_cmpint(elapsed_us, ==, 250);
    g_assert_false(ch_stages_finish(stages, "u", CH_STAGE_SYNCED, 400, &elapsed_us));
    g_assert_false(ch_stages_finish(stages, "u", CH_STAGE_SEEN, 400, &elapsed_us));
    g_assert_cmpint(elapsed_us, ==, 250);
}

/* After a restart of the agent a VM that runs has no start to tell about. */
static void
test_unseen_is_silent(void)
{
    g_autoptr(ChStages) stages = ch_stages_new();
    int64_t elapsed_us;

    for (ChStage stage = CH_STAGE_CONNECTED; stage < CH_STAGE_N; stage++)
        g_assert_false(ch_stages_finish(stages, "u", stage, 1, &elapsed_us));
}

static void
test_forgotten_starts_anew(void)
{
    g_autoptr(ChStages) stages = ch_stages_new();
    int64_t elapsed_us;

    g_assert_true(ch_stages_finish(stages, "u", CH_STAGE_SEEN, 1, &elapsed_us));
    g_assert_true(ch_stages_finish(stages, "v", CH_STAGE_SEEN, 1, &elapsed_us));
    ch_stages_forget(stages, "u");
    ch_stages_forget(stages, "never-there");
    g_assert_false(ch_stages_finish(stages, "u", CH_STAGE_RUNNING, 2, &elapsed_us));
    g_assert_true(ch_stages_finish(stages, "v", CH_STAGE_RUNNING, 2, &elapsed_us));
    g_assert_true(ch_stages_finish(stages, "u", CH_STAGE_SEEN, 3, &elapsed_us));
    g_assert_cmpint(elapsed_us, ==, 0);
}

static void
test_texts_have_no_hole(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);

    for (ChStage stage = CH_STAGE_SEEN; stage < CH_STAGE_N; stage++)
        g_assert_true(g_hash_table_add(seen, (gpointer)ch_stage_text(stage)));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stages/told-once-since-seen", test_told_once_since_seen);
    g_test_add_func("/stages/unseen-is-silent", test_unseen_is_silent);
    g_test_add_func("/stages/forgotten-starts-anew", test_forgotten_starts_anew);
    g_test_add_func("/stages/texts-have-no-hole", test_texts_have_no_hole);
    return g_test_run();
}
