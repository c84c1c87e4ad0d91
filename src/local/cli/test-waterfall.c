/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/waterfall.h"

#include "lib/base/time.h"
#include "local/cli/stage-log.h"

static void
add(GArray *lines, const char *stage, int64_t wall_ms, int64_t elapsed_ms)
{
    const ChStageLine line = {(char *)stage, (char *)"u", wall_ms * CH_MS_US, elapsed_ms};

    g_array_append_val(lines, line);
}

static void
test_whole_start(void)
{
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(ChStageLine));
    g_autofree char *text = NULL;

    add(lines, "accepted", 900, -1);
    add(lines, "serving", 999, -1);
    add(lines, "seen", 1000, 0);
    add(lines, "running", 1301, 300);
    add(lines, "later-stage", 1900, 900);
    text = ch_waterfall_render(lines);
    g_assert_cmpstr(text,
                    ==,
                    "  VMI accepted               -100 ms  ╸\n"
                    "  launcher serves              -1 ms  ━━━╸\n"
                    "  VMI seen by the agent         0 ms     ━╸\n"
                    "  VMI Running                 300 ms      ━━━━━━━━━━━━╸\n"
                    "  later-stage                 900 ms                  "
                    "━━━━━━━━━━━━━━━━━━━━━━━━╸\n");
}

static void
test_one_and_none(void)
{
    g_autoptr(GArray) lines = g_array_new(FALSE, FALSE, sizeof(ChStageLine));
    g_autofree char *none = ch_waterfall_render(lines);
    g_autofree char *one = NULL;

    g_assert_cmpstr(none, ==, "");
    add(lines, "accepted", 5, -1);
    one = ch_waterfall_render(lines);
    g_assert_cmpstr(one, ==, "  VMI accepted                  0 ms  ╸\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/waterfall/whole-start", test_whole_start);
    g_test_add_func("/waterfall/one-and-none", test_one_and_none);
    return g_test_run();
}
