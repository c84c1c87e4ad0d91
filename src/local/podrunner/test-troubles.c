/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/troubles.h"

#include "lib/json/test-text.h"

static ChJson *
troubles(const char *const (*texts)[2], gsize n)
{
    ChJson *list = ch_json_new_array();

    for (gsize i = 0; i < n; i++)
        ch_json_append(list, ch_trouble_new(texts[i][0], "FailedAttachNetwork", texts[i][1]));
    return list;
}

/* Told once, also when it comes back after another one; and anew when all was fine meanwhile. */
static void
test_news(void)
{
    static const char *const first[][2] = {{"red", "a"}, {"blue", "a"}};
    static const char *const second[][2] = {{"red", "b"}, {"red", "a"}};
    static const struct {
        const char *const (*now)[2];
        gsize n, n_news, n_told;
    } cases[] = {
        {first, 2, 2, 2},
        {first, 2, 0, 2},
        {second, 2, 1, 2}, /* blue's is forgotten */
        {first, 2, 1, 3},
        {first, 1, 0, 2},
        {NULL, 0, 0, 0},
        {first, 1, 1, 1},
    };
    g_autoptr(ChJson) told = ch_json_new_array();

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(ChJson) now = troubles(cases[i].now, cases[i].n);
        g_autoptr(ChJson) news = ch_troubles_news(told, now);

        g_assert_cmpuint(ch_json_length(news), ==, cases[i].n_news);
        g_assert_cmpuint(ch_json_length(told), ==, cases[i].n_told);
    }
}

/* Words that differ each time do not fill the record. */
static void
test_news_are_bounded(void)
{
    g_autoptr(ChJson) told = ch_json_new_array();

    for (int i = 0; i < 2 * CH_TROUBLES_MAX; i++) {
        g_autofree char *words = g_strdup_printf("%d", i);
        const char *const text[][2] = {{"red", words}};
        g_autoptr(ChJson) now = troubles(text, 1);
        g_autoptr(ChJson) news = ch_troubles_news(told, now);

        g_assert_cmpuint(ch_json_length(news), ==, 1);
    }
    g_assert_cmpuint(ch_json_length(told), ==, CH_TROUBLES_MAX);
}

/* As an earlier pod runner wrote them. */
static void
test_foreign_ones_are_forgotten(void)
{
    g_autoptr(ChJson) told = parse_json("[{'network':'red','message':'a'},7]");
    static const char *const text[][2] = {{"red", "a"}};
    g_autoptr(ChJson) now = troubles(text, 1);
    g_autoptr(ChJson) news = ch_troubles_news(told, now);

    g_assert_true(ch_troubles_have(told, "red"));
    g_assert_false(ch_troubles_have(told, "blue"));
    g_assert_cmpuint(ch_json_length(news), ==, 1);
    g_assert_cmpuint(ch_json_length(told), ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/troubles/news", test_news);
    g_test_add_func("/troubles/news-are-bounded", test_news_are_bounded);
    g_test_add_func("/troubles/foreign-ones-are-forgotten", test_foreign_ones_are_forgotten);
    return g_test_run();
}
