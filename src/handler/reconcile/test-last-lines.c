/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/last-lines.h"

static void
test_repeats_are_no_news(void)
{
    g_autoptr(ChLastLines) lines = ch_last_lines_new();

    g_assert_true(ch_last_lines_is_news(lines, "u", "Running"));
    g_assert_false(ch_last_lines_is_news(lines, "u", "Running"));
    g_assert_true(ch_last_lines_is_news(lines, "v", "Running"));
    g_assert_true(ch_last_lines_is_news(lines, "u", "Paused"));
    g_assert_true(ch_last_lines_is_news(lines, "u", "Running"));
    g_assert_false(ch_last_lines_is_news(lines, "v", "Running"));
}

static void
test_forgotten_is_news(void)
{
    g_autoptr(ChLastLines) lines = ch_last_lines_new();

    g_assert_true(ch_last_lines_is_news(lines, "u", "Running"));
    g_assert_true(ch_last_lines_is_news(lines, "v", "Running"));
    ch_last_lines_forget(lines, "u");
    ch_last_lines_forget(lines, "never-there");
    g_assert_true(ch_last_lines_is_news(lines, "u", "Running"));
    g_assert_false(ch_last_lines_is_news(lines, "v", "Running"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/last-lines/repeats-are-no-news", test_repeats_are_no_news);
    g_test_add_func("/last-lines/forgotten-is-news", test_forgotten_is_news);
    return g_test_run();
}
