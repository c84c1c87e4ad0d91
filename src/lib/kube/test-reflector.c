/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/reflector.h"

#include "lib/io/http-client.h"
#include "lib/kube/api-status.h"

static GError *
answer(int code, const char *reason, const char *message)
{
    g_autofree char *body =
        g_strdup_printf("{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\",\"message\":\"%s\"}",
                        code,
                        reason,
                        message);

    return ch_kube_error_from_answer(code, body, strlen(body));
}

static void
assert_query(const ChReflector *reflector, guint limit, const char *version, const char *token)
{
    const ChListQuery query = ch_reflector_list_query(reflector);

    g_assert_cmpuint(query.limit, ==, limit);
    g_assert_cmpstr(query.version, ==, version);
    g_assert_cmpstr(query.token, ==, token);
}

static void
test_first_list_asks_for_any_version(void)
{
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_begin_list(&reflector);
    assert_query(&reflector, 500, "0", NULL);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "41", ""), ==, CH_LIST_DONE);
    g_assert_cmpstr(reflector.last_version, ==, "41");
    g_assert_false(reflector.is_paginated);

    /* The next round: from the watch cache, which wants no limit. */
    ch_reflector_begin_list(&reflector);
    assert_query(&reflector, 0, "41", NULL);
    ch_reflector_clear(&reflector);
}

static void
test_pages_keep_the_first_version(void)
{
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_begin_list(&reflector);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "41", "a"), ==, CH_LIST_NEXT_PAGE);
    assert_query(&reflector, 500, "", "a");
    g_assert_cmpint(ch_reflector_page_done(&reflector, "43", "b"), ==, CH_LIST_NEXT_PAGE);
    assert_query(&reflector, 500, "", "b");
    g_assert_cmpint(ch_reflector_page_done(&reflector, "44", ""), ==, CH_LIST_DONE);
    g_assert_cmpstr(reflector.last_version, ==, "41");

    /* This server pages on its own: ask for pages with a concrete version too. */
    g_assert_true(reflector.is_paginated);
    ch_reflector_begin_list(&reflector);
    assert_query(&reflector, 500, "41", NULL);
    ch_reflector_clear(&reflector);
}

/* spec:01#101 */
static void
test_expired_version_reads_consistently(void)
{
    g_autoptr(GError) expired = answer(410, "Expired", "too old");
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_saw(&reflector, "41");
    ch_reflector_begin_list(&reflector);
    assert_query(&reflector, 0, "41", NULL);
    g_assert_cmpint(ch_reflector_page_failed(&reflector, expired), ==, CH_LIST_RESTART);
    assert_query(&reflector, 0, "", NULL); /* the page size of the failed attempt */
    g_assert_true(reflector.is_version_unavailable);

    /* Again: the round fails, and the next one starts with the consistent read, in pages. */
    g_assert_cmpint(ch_reflector_page_failed(&reflector, expired), ==, CH_LIST_FAILED);
    ch_reflector_begin_list(&reflector);
    assert_query(&reflector, 500, "", NULL);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "77", NULL), ==, CH_LIST_DONE);
    g_assert_false(reflector.is_version_unavailable);
    g_assert_cmpstr(reflector.last_version, ==, "77");
    ch_reflector_clear(&reflector);
}

static void
test_expired_token_lists_unpaged_first(void)
{
    g_autoptr(GError) expired = answer(410, "Expired", "the token is too old");
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_begin_list(&reflector);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "41", "a"), ==, CH_LIST_NEXT_PAGE);
    g_assert_cmpint(ch_reflector_page_failed(&reflector, expired), ==, CH_LIST_RESTART);
    assert_query(&reflector, 0, "0", NULL);
    g_assert_false(reflector.is_version_unavailable);

    /* That one expired too: the consistent read, in pages as before. */
    g_assert_cmpint(ch_reflector_page_failed(&reflector, expired), ==, CH_LIST_RESTART);
    assert_query(&reflector, 500, "", NULL);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "50", "z"), ==, CH_LIST_NEXT_PAGE);
    g_assert_cmpint(ch_reflector_page_failed(&reflector, expired), ==, CH_LIST_RESTART);
    assert_query(&reflector, 0, "", NULL);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "51", ""), ==, CH_LIST_DONE);
    g_assert_cmpstr(reflector.last_version, ==, "51");
    ch_reflector_clear(&reflector);
}

static void
test_gone_on_a_later_page_is_no_token_matter(void)
{
    g_autoptr(GError) gone = answer(410, "Gone", "gone");
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_begin_list(&reflector);
    g_assert_cmpint(ch_reflector_page_done(&reflector, "41", "a"), ==, CH_LIST_NEXT_PAGE);
    g_assert_cmpint(ch_reflector_page_failed(&reflector, gone), ==, CH_LIST_RESTART);
    assert_query(&reflector, 500, "", NULL);
    ch_reflector_clear(&reflector);
}

static void
test_version_from_the_future(void)
{
    g_autoptr(GError) early = answer(504, "Timeout", "Too large resource version: 9, current: 3");
    g_autoptr(GError) busy = answer(504, "Timeout", "something else took long");
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_saw(&reflector, "9");
    ch_reflector_begin_list(&reflector);
    g_assert_cmpint(ch_reflector_page_failed(&reflector, early), ==, CH_LIST_RESTART);
    assert_query(&reflector, 0, "", NULL);

    ch_reflector_begin_list(&reflector);
    g_assert_cmpint(ch_reflector_page_failed(&reflector, busy), ==, CH_LIST_FAILED);
    ch_reflector_clear(&reflector);
}

static void
test_versions_are_opaque(void)
{
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_saw(&reflector, "900");
    ch_reflector_saw(&reflector, "not/a number");
    ch_reflector_saw(&reflector, "8");
    g_assert_cmpstr(reflector.last_version, ==, "8");
    ch_reflector_saw(&reflector, "");
    ch_reflector_saw(&reflector, NULL);
    g_assert_cmpstr(reflector.last_version, ==, "8");
    ch_reflector_clear(&reflector);
}

/* Every row of the table of spec 01 §3.4. */
static const struct WatchCase {
    ChWatchOutcome outcome;
    ChReaction reaction;
    bool is_quiet;
} watch_cases[] = {
    {CH_WATCH_OPEN_REFUSED, CH_REACT_PAUSE_REOPEN, true},
    {CH_WATCH_OPEN_THROTTLED, CH_REACT_PAUSE_REOPEN, true},
    {CH_WATCH_OPEN_FAILED, CH_REACT_PAUSE_RELIST, false},
    {CH_WATCH_ENDED, CH_REACT_REOPEN, true},
    {CH_WATCH_ENDED_EARLY, CH_REACT_PAUSE_RELIST, false},
    {CH_WATCH_ENDED_OFTEN, CH_REACT_PAUSE_REOPEN, true},
    {CH_WATCH_ERROR_EXPIRED, CH_REACT_PAUSE_RELIST, true},
    {CH_WATCH_ERROR_THROTTLED, CH_REACT_PAUSE_REOPEN, true},
    {CH_WATCH_ERROR_OTHER, CH_REACT_PAUSE_RELIST, false},
};
G_STATIC_ASSERT(G_N_ELEMENTS(watch_cases) == CH_WATCH_N - 1);

static void
test_watch_rules(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(watch_cases); i++) {
        const ChWatchRule *rule = ch_watch_rule(watch_cases[i].outcome);

        g_assert_cmpint(rule->reaction, ==, watch_cases[i].reaction);
        g_assert_cmpint(rule->is_quiet, ==, watch_cases[i].is_quiet);
        g_assert_nonnull(rule->text);
    }
}

static GError *
loss(ChHttpErrorCode code)
{
    return g_error_new_literal(CH_HTTP_ERROR, (gint)code, "lost");
}

static void
test_watch_outcomes(void)
{
    g_autoptr(GError) refused = loss(CH_HTTP_ERROR_REFUSED);
    g_autoptr(GError) reset = loss(CH_HTTP_ERROR_RESET);
    g_autoptr(GError) garbage = loss(CH_HTTP_ERROR_PROTOCOL);
    g_autoptr(GError) stream = loss(CH_HTTP_ERROR_STREAM);
    g_autoptr(GError) throttled = answer(429, "TooManyRequests", "slow down");
    g_autoptr(GError) forbidden = answer(403, "Forbidden", "no");
    g_autoptr(GError) internal = answer(500, "InternalError", "oops");
    g_autoptr(GError) expired = answer(410, "Expired", "too old");

    g_assert_cmpint(ch_watch_outcome_of_open(refused), ==, CH_WATCH_OPEN_REFUSED);
    g_assert_cmpint(ch_watch_outcome_of_open(throttled), ==, CH_WATCH_OPEN_THROTTLED);
    g_assert_cmpint(ch_watch_outcome_of_open(forbidden), ==, CH_WATCH_OPEN_FAILED);
    g_assert_cmpint(ch_watch_outcome_of_open(reset), ==, CH_WATCH_OPEN_FAILED);
    g_assert_cmpint(ch_watch_outcome_of_open(expired), ==, CH_WATCH_OPEN_FAILED);

    g_assert_cmpint(ch_watch_outcome_of_end(NULL, 0, 999999), ==, CH_WATCH_ENDED_EARLY);
    g_assert_cmpint(ch_watch_outcome_of_end(NULL, 0, 1000000), ==, CH_WATCH_ENDED);
    g_assert_cmpint(ch_watch_outcome_of_end(NULL, 1, 0), ==, CH_WATCH_ENDED);
    g_assert_cmpint(ch_watch_outcome_of_end(reset, 1, 0), ==, CH_WATCH_ENDED);
    g_assert_cmpint(ch_watch_outcome_of_end(reset, 0, 0), ==, CH_WATCH_ENDED_EARLY);
    g_assert_cmpint(ch_watch_outcome_of_end(garbage, 9, 9000000), ==, CH_WATCH_ERROR_OTHER);
    g_assert_cmpint(ch_watch_outcome_of_end(stream, 9, 9000000), ==, CH_WATCH_ERROR_OTHER);

    g_assert_cmpint(ch_watch_outcome_of_event(expired), ==, CH_WATCH_ERROR_EXPIRED);
    g_assert_cmpint(ch_watch_outcome_of_event(throttled), ==, CH_WATCH_ERROR_THROTTLED);
    g_assert_cmpint(ch_watch_outcome_of_event(internal), ==, CH_WATCH_ERROR_OTHER);
}

static void
test_watch_timeout_range(void)
{
    g_assert_cmpuint(ch_reflector_watch_timeout(0.0), ==, 300);
    g_assert_cmpuint(ch_reflector_watch_timeout(0.5), ==, 450);
    g_assert_cmpuint(ch_reflector_watch_timeout(0.9999999), ==, 599);
}

static void
test_paths(void)
{
    const char *base = "/apis/kubevirt.io/v1/virtualmachineinstances";
    g_autofree char *list = ch_reflector_list_path(
        &(ChListQuery){500, "0", NULL}, base, "kubevirt.io/nodeName in (node01)", NULL);
    g_autofree char *page = ch_reflector_list_path(&(ChListQuery){500, "", "a+/="}, base, "", "");
    g_autofree char *plain = ch_reflector_list_path(&(ChListQuery){0, "", NULL}, base, NULL, NULL);
    g_autofree char *watch =
        ch_reflector_watch_path("41", 333, "/api/v1/nodes", NULL, "metadata.name=node01");

    g_assert_cmpstr(list,
                    ==,
                    "/apis/kubevirt.io/v1/virtualmachineinstances?labelSelector="
                    "kubevirt.io%2FnodeName+in+%28node01%29&limit=500&resourceVersion=0");
    g_assert_cmpstr(
        page, ==, "/apis/kubevirt.io/v1/virtualmachineinstances?continue=a%2B%2F%3D&limit=500");
    g_assert_cmpstr(plain, ==, base);
    g_assert_cmpstr(watch,
                    ==,
                    "/api/v1/nodes?allowWatchBookmarks=true&fieldSelector=metadata.name%3Dnode01&"
                    "resourceVersion=41&timeoutSeconds=333&watch=true");
}

/* A server whose pages never end. */
static void
test_endless_pages(void)
{
    ChReflector reflector;

    ch_reflector_init(&reflector);
    ch_reflector_begin_list(&reflector);
    for (guint page = 0; page < 4; page++) {
        g_assert_true(ch_reflector_may_keep(&reflector, CH_REFLECTOR_MAX_BYTES / 4));
        g_assert_cmpint(ch_reflector_page_done(&reflector, "1", "more"), ==, CH_LIST_NEXT_PAGE);
    }
    g_assert_false(ch_reflector_may_keep(&reflector, 1));
    ch_reflector_begin_list(&reflector);
    g_assert_true(ch_reflector_may_keep(&reflector, 1));
    ch_reflector_clear(&reflector);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reflector/first-list", test_first_list_asks_for_any_version);
    g_test_add_func("/reflector/pages", test_pages_keep_the_first_version);
    g_test_add_func("/reflector/expired-version", test_expired_version_reads_consistently);
    g_test_add_func("/reflector/expired-token", test_expired_token_lists_unpaged_first);
    g_test_add_func("/reflector/gone-page", test_gone_on_a_later_page_is_no_token_matter);
    g_test_add_func("/reflector/too-large-version", test_version_from_the_future);
    g_test_add_func("/reflector/opaque-versions", test_versions_are_opaque);
    g_test_add_func("/reflector/watch-rules", test_watch_rules);
    g_test_add_func("/reflector/watch-outcomes", test_watch_outcomes);
    g_test_add_func("/reflector/watch-timeout", test_watch_timeout_range);
    g_test_add_func("/reflector/paths", test_paths);
    g_test_add_func("/reflector/endless-pages", test_endless_pages);
    return g_test_run();
}
