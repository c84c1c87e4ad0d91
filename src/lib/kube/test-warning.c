/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/warning.h"

#include <string.h>

static const struct WarningCase {
    const char *header, *text; /* NULL: none */
} cases[] = {
    {"299 - \"unknown field \\\"spec.x\\\"\"", "unknown field \"spec.x\""},
    {"299 kube \"a\\\\b\" \"Mon, 30 Nov 2026\"", "a\\b"},
    {"299 - \"\"", ""},
    {"299 - \"bell\x07\"", "bell?"},
    {"299 - \"\xff\"", "\xef\xbf\xbd"},
    {"199 - \"other\"", NULL},
    {"299 - bare", NULL},
    {"299 \"no agent\"", NULL},
    {"299 - \"no end", NULL},
    {"299 - \"no end\\", NULL},
    {"299 - \"no end\\\"", NULL},
    {"299 -", NULL},
    {"299 ", NULL},
    {"", NULL},
};

static void
test_texts(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = ch_kube_warning_text(cases[i].header);

        g_assert_cmpstr(text, ==, cases[i].text);
    }
}

static void
test_long_text_is_cut(void)
{
    g_autofree char *words = g_strnfill(9000, 'x');
    g_autofree char *header = g_strdup_printf("299 - \"%s\"", words);
    g_autofree char *text = ch_kube_warning_text(header);

    g_assert_cmpuint(strlen(text), ==, CH_KUBE_MAX_WARNING);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/warning/texts", test_texts);
    g_test_add_func("/warning/long-text-is-cut", test_long_text_is_cut);
    return g_test_run();
}
