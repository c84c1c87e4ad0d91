/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/stage-log.h"

#include <glib/gstdio.h>
#include <string.h>

#define LINE(stage, name, uid, second, more)                                                       \
    "{\"component\":\"x\",\"name\":\"" name "\",\"namespace\":\"default\",\"stage\":\"" stage      \
    "\"" more ",\"timestamp\":\"2026-11-29T00:00:0" second ".5Z\",\"uid\":\"" uid "\"}\n"

static void
test_line(void)
{
    static const char text[] = LINE("seen", "vm", "u", "1", ",\"elapsedMs\":7");
    ChStageLine line = {0};

    g_assert_true(ch_stage_line_parse(text, strlen(text), "default", "vm", &line));
    g_assert_cmpstr(line.stage, ==, "seen");
    g_assert_cmpstr(line.uid, ==, "u");
    g_assert_cmpint(line.elapsed_ms, ==, 7);
    ch_stage_line_clear(&line);
}

static void
test_other_lines(void)
{
    static const char *const texts[] = {
        "",
        "\"stage\"",
        "{\"stage\":\"seen\"}",
        "{\"stage\":\"seen\",",
        LINE("seen", "another", "u", "1", ""),
        "{\"name\":\"vm\",\"namespace\":\"default\",\"stage\":\"seen\",\"timestamp\":\"noon\","
        "\"uid\":\"u\"}",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        ChStageLine line;

        g_assert_false(ch_stage_line_parse(texts[i], strlen(texts[i]), "default", "vm", &line));
    }
}

/* Two starts of one name in two logs: the last one's lines, in the order of time. */
static void
test_last_start(void)
{
    g_autofree char *dir = g_dir_make_tmp("stage-log-XXXXXX", NULL);
    g_autofree char *a = g_build_filename(dir, "a", NULL);
    g_autofree char *b = g_build_filename(dir, "b", NULL);
    const char *const paths[] = {a, b, "/nonexistent", NULL};
    g_autoptr(GArray) last = NULL;
    g_autoptr(GArray) first = NULL;

    g_assert_true(g_file_set_contents(
        a, LINE("accepted", "vm", "u1", "1", "") LINE("accepted", "vm", "u2", "4", ""), -1, NULL));
    g_assert_true(g_file_set_contents(
        b,
        LINE("seen", "vm", "u1", "2", "") "garbage\n" LINE("running", "vm", "u2", "6", "")
            LINE("seen", "vm", "u2", "5", ""),
        -1,
        NULL));
    last = ch_stage_log_load(paths, "default", "vm", NULL);
    g_assert_cmpuint(last->len, ==, 3);
    g_assert_cmpstr(g_array_index(last, ChStageLine, 0).stage, ==, "accepted");
    g_assert_cmpstr(g_array_index(last, ChStageLine, 2).stage, ==, "running");
    first = ch_stage_log_load(paths, "default", "vm", "u1");
    g_assert_cmpuint(first->len, ==, 2);
    g_unlink(a);
    g_unlink(b);
    g_rmdir(dir);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stage-log/line", test_line);
    g_test_add_func("/stage-log/other-lines", test_other_lines);
    g_test_add_func("/stage-log/last-start", test_last_start);
    return g_test_run();
}
