/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/request.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

/* One "name: value" a line. */
static void
fill(ChGrpcRequest *request, const char *lines)
{
    g_auto(GStrv) headers = g_strsplit(lines, "\n", -1);

    for (gsize i = 0; headers[i] != NULL; i++) {
        g_auto(GStrv) parts = g_strsplit(headers[i], ": ", 2);

        g_assert_cmpuint(g_strv_length(parts), ==, 2);
        ch_grpc_request_add(request,
                            (const uint8_t *)parts[0],
                            strlen(parts[0]),
                            (const uint8_t *)parts[1],
                            strlen(parts[1]));
    }
}

#define GOOD ":method: POST\n:scheme: http\n:path: /a.B/C\n"
#define TYPE "content-type: application/grpc"

static const struct RequestCase {
    const char *path;
    const char *headers;
    ChGrpcVerdict verdict;
    guint number; /* HTTP/2 error or HTTP status */
    ChGrpcStatus status;
    const char *text;
} cases[] = {
    {"served",
     GOOD ":authority: localhost\n" TYPE "\nte: trailers\ngrpc-timeout: 5S",
     CH_GRPC_VERDICT_SERVE},
    {"authority-is-optional", GOOD TYPE, CH_GRPC_VERDICT_SERVE},
    {"subtype", GOOD TYPE "+proto", CH_GRPC_VERDICT_SERVE},
    {"parameter", GOOD TYPE ";charset=x", CH_GRPC_VERDICT_SERVE},
    {"one-good-type-is-enough", GOOD TYPE "\ncontent-type: text/html", CH_GRPC_VERDICT_SERVE},
    {"other-type",
     GOOD "content-type: application/grpcx",
     CH_GRPC_VERDICT_ABORT,
     415,
     CH_GRPC_INVALID_ARGUMENT,
     "invalid gRPC request content-type \"application/grpcx\""},
    {"no-type",
     ":method: GET\n:path: /",
     CH_GRPC_VERDICT_ABORT,
     415,
     CH_GRPC_INVALID_ARGUMENT,
     "invalid gRPC request content-type \"\""},
    {"get",
     ":method: GET\n:path: /\n" TYPE,
     CH_GRPC_VERDICT_ABORT,
     405,
     CH_GRPC_INTERNAL,
     "Received a HEADERS frame with :method \"GET\" which should be POST"},
    {"bad-timeout",
     GOOD TYPE "\ngrpc-timeout: 5x",
     CH_GRPC_VERDICT_ABORT,
     400,
     CH_GRPC_INTERNAL,
     "malformed grpc-timeout: transport: timeout unit is not recognized: \"5x\""},
    {"two-hosts",
     GOOD "host: a\nhost: b\n" TYPE,
     CH_GRPC_VERDICT_ABORT,
     400,
     CH_GRPC_INTERNAL,
     "num values of host: 2, must only have 1 value as per HTTP/2 spec"},
    {"two-authorities",
     GOOD ":authority: a\n:authority: b\n" TYPE,
     CH_GRPC_VERDICT_RESET,
     NGHTTP2_PROTOCOL_ERROR},
    {"late-pseudo", TYPE "\n" GOOD "te: trailers", CH_GRPC_VERDICT_RESET, NGHTTP2_PROTOCOL_ERROR},
    {"unknown-pseudo", GOOD ":status: 200\n" TYPE, CH_GRPC_VERDICT_RESET, NGHTTP2_PROTOCOL_ERROR},
    {"connection", GOOD TYPE "\nconnection: close", CH_GRPC_VERDICT_RESET, NGHTTP2_PROTOCOL_ERROR},
    {"upper-case", GOOD TYPE "\nFoo: bar", CH_GRPC_VERDICT_RESET, NGHTTP2_PROTOCOL_ERROR},
    {"control-character", GOOD TYPE "\nfoo: a\x01", CH_GRPC_VERDICT_RESET, NGHTTP2_PROTOCOL_ERROR},
};

static void
test_verdict(gconstpointer data)
{
    const struct RequestCase *c = data;
    ChGrpcRequest request = {0};
    uint32_t h2_error = 0;
    guint http_status = 0;
    g_autoptr(GError) error = NULL;

    fill(&request, c->headers);
    g_assert_cmpint(
        ch_grpc_request_judge(&request, &h2_error, &http_status, &error), ==, c->verdict);
    g_assert_cmpuint(h2_error + http_status, ==, c->number);
    if (c->text != NULL) {
        g_assert_error(error, CH_GRPC_ERROR, (int)c->status);
        g_assert_cmpstr(error->message, ==, c->text);
    } else {
        g_assert_no_error(error);
    }
    ch_grpc_request_clear(&request);
}

static void
test_long_list_is_refused(void)
{
    ChGrpcRequest request = {0};
    g_autofree char *value = g_strnfill(CH_GRPC_MAX_HEADER_LIST_BYTES, 'a');
    uint32_t h2_error = 0;
    guint http_status = 0;

    fill(&request, GOOD TYPE);
    ch_grpc_request_add(&request, (const uint8_t *)"x", 1, (const uint8_t *)value, strlen(value));
    g_assert_cmpint(
        ch_grpc_request_judge(&request, &h2_error, &http_status, NULL), ==, CH_GRPC_VERDICT_RESET);
    g_assert_cmpuint(h2_error, ==, NGHTTP2_FRAME_SIZE_ERROR);
    ch_grpc_request_clear(&request);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/grpc/request/", cases[i].path, NULL);

        g_test_add_data_func(path, &cases[i], test_verdict);
    }
    g_test_add_func("/grpc/request/long-list-is-refused", test_long_list_is_refused);
    return g_test_run();
}
