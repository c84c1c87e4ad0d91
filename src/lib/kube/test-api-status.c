/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/api-status.h"

#include "lib/base/errors.h"
#include "lib/json/json.h"

static GError *
answer(int status, const char *body)
{
    return ch_kube_error_from_answer(status, body, strlen(body));
}

static void
test_status_object(void)
{
    g_autoptr(GError) error =
        answer(409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"was changed\"}");
    g_autoptr(GError) copy = g_error_copy(error);

    g_assert_error(error, CH_KUBE_ERROR, 409);
    g_assert_cmpstr(error->message, ==, "was changed");
    g_assert_cmpstr(ch_kube_error_reason(error), ==, "Conflict");
    g_assert_cmpstr(ch_kube_error_reason(copy), ==, "Conflict");
    g_assert_false(ch_kube_error_is_expired(error));
}

static void
test_other_bodies(void)
{
    g_autoptr(GError) empty = answer(502, "");
    g_autoptr(GError) html = answer(502, "<html>\n<b>bad \x1b[31m gateway \xff</b>");
    g_autoptr(GError) json = answer(404, "{\"kind\":\"Pod\"}");
    g_autoptr(GError) mute = answer(403, "{\"kind\":\"Status\"}");
    g_autoptr(GError) foreign = g_error_new_literal(CH_ERROR, CH_ERROR_FAILED, "x");

    g_assert_cmpstr(empty->message, ==, "the server answered with status 502");
    g_assert_nonnull(strstr(html->message, "<html> <b>bad "));
    g_assert_null(strchr(html->message, '\x1b'));
    g_assert_true(g_utf8_validate(html->message, -1, NULL));
    g_assert_error(json, CH_KUBE_ERROR, 404);
    g_assert_error(mute, CH_KUBE_ERROR, 403);
    g_assert_cmpstr(ch_kube_error_reason(mute), ==, "");
    g_assert_cmpstr(ch_kube_error_reason(foreign), ==, "");
    g_assert_false(ch_kube_error_is_too_large_version(foreign));
}

static void
test_too_large_version(void)
{
    g_autoptr(GError) by_reason =
        answer(504,
               "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"causes\":[{\"reason\":"
               "\"FieldValueInvalid\"},{\"reason\":\"ResourceVersionTooLarge\"}]}}");
    g_autoptr(GError) by_cause =
        answer(504,
               "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"causes\":[{\"message\":"
               "\"Too large resource version\"}]}}");
    g_autoptr(GError) by_text =
        answer(504, "{\"kind\":\"Status\",\"message\":\"Too large resource version: 9\"}");
    g_autoptr(GError) none =
        answer(504, "{\"kind\":\"Status\",\"message\":\"m\",\"details\":{\"causes\":{}}}");

    g_assert_true(ch_kube_error_is_too_large_version(by_reason));
    g_assert_true(ch_kube_error_is_too_large_version(by_cause));
    g_assert_true(ch_kube_error_is_too_large_version(by_text));
    g_assert_false(ch_kube_error_is_too_large_version(none));
}

static void
test_error_events(void)
{
    static const struct {
        const char *text;
        int code;
        bool is_expired;
    } rows[] = {
        {"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}", 410, true},
        {"{\"kind\":\"Status\",\"code\":410}", 410, true},
        {"{\"kind\":\"Status\",\"reason\":\"Gone\"}", 500, true},
        {"{\"kind\":\"Status\",\"code\":429}", 429, false},
        {"{\"kind\":\"Status\"}", 500, false},
        {"{\"kind\":\"Status\",\"code\":-3}", 500, false},
        {"{\"kind\":\"Pod\",\"code\":410}", 500, false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(ChJson) json = ch_json_parse(rows[i].text, -1, NULL);
        g_autoptr(GError) error = ch_kube_error_from_status(json);

        g_assert_error(error, CH_KUBE_ERROR, rows[i].code);
        g_assert_cmpint(ch_kube_error_is_expired(error), ==, rows[i].is_expired);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/api-status/status-object", test_status_object);
    g_test_add_func("/api-status/other-bodies", test_other_bodies);
    g_test_add_func("/api-status/too-large-version", test_too_large_version);
    g_test_add_func("/api-status/error-events", test_error_events);
    return g_test_run();
}
