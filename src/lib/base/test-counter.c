/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/counter.h"

#include <string.h>

static const char *const labels[] = {"namespace", "name", NULL};

static char *
print(ChCounter *counter)
{
    GString *page = g_string_new(NULL);

    ch_counter_print(counter, page);
    return g_string_free(page, FALSE);
}

#define VALUES(...)                                                                                \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void
test_counts_by_label(void)
{
    g_autoptr(ChCounter) counter = ch_counter_new("x_total", "Help.", labels);
    g_autofree char *empty = print(counter);
    g_autofree char *page = NULL;

    g_assert_cmpstr(empty, ==, "");
    g_assert_true(ch_counter_increment(counter, VALUES("b", "vm")));
    g_assert_true(ch_counter_increment(counter, VALUES("a", "vm\"\\")));
    g_assert_true(ch_counter_increment(counter, VALUES("b", "vm")));
    g_assert_cmpuint(ch_counter_read(counter, VALUES("b", "vm")), ==, 2);
    g_assert_cmpuint(ch_counter_read(counter, VALUES("b", "other")), ==, 0);
    page = print(counter);
    g_assert_cmpstr(page,
                    ==,
                    "# HELP x_total Help.\n# TYPE x_total counter\n"
                    "x_total{namespace=\"a\",name=\"vm\\\"\\\\\"} 1\n"
                    "x_total{namespace=\"b\",name=\"vm\"} 2\n");
}

/* "a" is no prefix of "ab". */
static void
test_forgets_by_first_labels(void)
{
    g_autoptr(ChCounter) counter = ch_counter_new("x_total", "Help.", labels);

    (void)ch_counter_increment(counter, VALUES("a", "1"));
    (void)ch_counter_increment(counter, VALUES("a", "2"));
    (void)ch_counter_increment(counter, VALUES("ab", "1"));
    ch_counter_forget(counter, VALUES("a"));
    g_assert_cmpuint(ch_counter_read(counter, VALUES("a", "1")), ==, 0);
    g_assert_cmpuint(ch_counter_read(counter, VALUES("a", "2")), ==, 0);
    g_assert_cmpuint(ch_counter_read(counter, VALUES("ab", "1")), ==, 1);
    ch_counter_forget(counter, VALUES("ab", "1"));
    g_assert_cmpuint(ch_counter_read(counter, VALUES("ab", "1")), ==, 0);
}

/* No value breaks the page, and none can be made to look like two. */
static void
test_strange_values(void)
{
    g_autoptr(ChCounter) counter = ch_counter_new("x_total", "Help.", labels);
    g_autofree char *lengthy = g_strnfill(CH_COUNTER_MAX_LABEL - 1, 'l');
    g_autofree char *cut = g_strconcat(lengthy, "\xC3\xA4 and more", NULL);
    g_autofree char *page = NULL;

    (void)ch_counter_increment(counter, VALUES("a\nb", "\xff"));
    (void)ch_counter_increment(counter, VALUES(cut, ""));
    page = print(counter);
    g_assert_nonnull(strstr(page, "x_total{namespace=\"a b\",name=\"\xEF\xBF\xBD\"} 1\n"));
    g_assert_cmpuint(ch_counter_read(counter, VALUES(lengthy, "")), ==, 1);
    g_assert_true(g_utf8_validate(page, -1, NULL));
}

static void
test_number_of_series_is_bounded(void)
{
    g_autoptr(ChCounter) counter = ch_counter_new("x_total", "Help.", labels);

    for (int i = 0; i < CH_COUNTER_MAX_SERIES; i++) {
        g_autofree char *name = g_strdup_printf("%d", i);

        g_assert_true(ch_counter_increment(counter, VALUES("a", name)));
    }
    g_assert_false(ch_counter_increment(counter, VALUES("a", "one more")));
    g_assert_true(ch_counter_increment(counter, VALUES("a", "7")));
    g_assert_cmpuint(ch_counter_read(counter, VALUES("a", "7")), ==, 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/counter/counts-by-label", test_counts_by_label);
    g_test_add_func("/counter/forgets-by-first-labels", test_forgets_by_first_labels);
    g_test_add_func("/counter/strange-values", test_strange_values);
    g_test_add_func("/counter/number-of-series-is-bounded", test_number_of_series_is_bounded);
    return g_test_run();
}
