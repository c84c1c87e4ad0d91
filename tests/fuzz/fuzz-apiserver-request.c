/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A request to the API, six lines: method, path, query, content type, Accept, body (the rest). The
 * store is in memory and keeps one node; every answer must be JSON (or one of the few that are
 * not), and a watch must come to rest.
 */

#include <string.h>

#include "local/apiserver/api.h"

#define NOW_US G_GINT64_CONSTANT(1800000000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ChApi *
make_api(void)
{
    static const ChApiOptions options = {.max_changes = 64};
    static const char node[] = "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\"},"
                               "\"finalizers\":[\"f\"]},\"spec\":{\"x\":{\"y\":1}},"
                               "\"status\":{\"conditions\":[{\"type\":\"Ready\"}]}}";
    const ChApiRequest request = {
        .method = "POST",
        .path = "/api/v1/nodes",
        .body = (const uint8_t *)node,
        .length = sizeof(node) - 1,
    };
    g_auto(ChApiAnswer) answer = {0};
    ChStore *store = ch_store_open(CH_STORE_IN_MEMORY, NULL);
    ChApi *api = ch_api_new(store, &options, NULL);

    ch_api_handle(api, &request, NOW_US, &answer);
    g_assert_cmpint(answer.code, ==, 201);
    return api;
}

/* Cuts the next line off; what is missing is empty. */
static char *
next_line(char **cursor)
{
    char *line = *cursor;
    char *end = strchr(line, '\n');

    *cursor = end != NULL ? end + 1 : line + strlen(line);
    if (end != NULL)
        *end = '\0';
    return line;
}

static void
check_answer(const ChApiAnswer *answer)
{
    g_autoptr(ChJson) json = NULL;

    g_assert_true(answer->code >= 200 && answer->code <= 599);
    g_assert_cmpint(answer->code, !=, 500);
    if (answer->watch != NULL) {
        GBytes *frames;

        for (int i = 0; (frames = ch_watch_next(answer->watch, NOW_US)) != NULL; i++) {
            g_assert_cmpint(i, <, 100);
            g_bytes_unref(frames);
        }
        return;
    }
    if (!g_str_equal(answer->content_type, "application/json"))
        return;
    json = ch_json_parse(
        g_bytes_get_data(answer->body, NULL), (gssize)g_bytes_get_size(answer->body), NULL);
    g_assert_nonnull(json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(ChApi) api = make_api();
    g_auto(ChApiAnswer) answer = {0};
    char *cursor = text;
    ChApiRequest request = {.method = next_line(&cursor)};

    request.path = next_line(&cursor);
    request.query = next_line(&cursor);
    request.content_type = next_line(&cursor);
    request.accept = next_line(&cursor);
    request.body = (const uint8_t *)cursor;
    request.length = size - (size_t)(cursor - text); /* may hold NULs */
    if (request.path[0] != '/')                      /* the HTTP server lets no others pass */
        return 0;
    ch_api_handle(api, &request, NOW_US, &answer);
    check_answer(&answer);
    ch_api_answer_clear(&answer); /* watches go before their history */
    return 0;
}
