/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/grpc/request.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#define HEADER_OVERHEAD 32 /* RFC 7541 §4.1 */

const char *
ch_grpc_content_subtype(const char *content_type)
{
    static const char ours[] = "application/grpc";
    const char *rest;

    if (!g_str_has_prefix(content_type, ours))
        return NULL;
    rest = content_type + strlen(ours);
    if (*rest == '\0')
        return rest;
    return *rest == '+' || *rest == ';' ? rest + 1 : NULL;
}

static void
set_text(char **slot, const char *value)
{
    g_free(*slot);
    *slot = g_strdup(value);
}

static void
add_path(ChGrpcRequest *request, const char *value)
{
    set_text(&request->path, value);
}

static void
add_method(ChGrpcRequest *request, const char *value)
{
    set_text(&request->method, value);
}

static void
add_content_type(ChGrpcRequest *request, const char *value)
{
    const char *subtype = ch_grpc_content_subtype(value);

    set_text(&request->content_type, value);
    if (subtype != NULL)
        set_text(&request->subtype, subtype);
}

static void
add_encoding(ChGrpcRequest *request, const char *value)
{
    set_text(&request->encoding, value);
}

static void
add_timeout(ChGrpcRequest *request, const char *value)
{
    g_clear_error(&request->bad_timeout);
    request->has_timeout =
        ch_grpc_timeout_parse(value, &request->timeout_us, &request->bad_timeout);
}

static void
add_host(ChGrpcRequest *request, const char *value)
{
    request->n_hosts++;
}

static void
add_connection(ChGrpcRequest *request, const char *value)
{
    request->is_malformed = true;
}

static void
add_ignored(ChGrpcRequest *request, const char *value)
{
}

/* Everything else is metadata, which nobody here reads. */
static const struct {
    const char *name;
    void (*add)(ChGrpcRequest *request, const char *value);
} known_headers[] = {
    {":method", add_method},
    {":path", add_path},
    {":scheme", add_ignored},
    {":authority", add_ignored},
    {"content-type", add_content_type},
    {"grpc-encoding", add_encoding},
    {"grpc-timeout", add_timeout},
    {"host", add_host},
    {"connection", add_connection},
};

/* A pseudo header is one of ours, comes once, and before the others. */
static void
note_kind(ChGrpcRequest *request, const char *name, gsize index)
{
    if (name[0] != ':') {
        request->has_regular = true;
    } else if (request->has_regular || index == G_N_ELEMENTS(known_headers) ||
               (request->pseudo_seen & 1u << index) != 0) {
        request->is_malformed = true;
    } else {
        request->pseudo_seen |= 1u << index;
    }
}

void
ch_grpc_request_add(ChGrpcRequest *request,
                    const uint8_t *name,
                    gsize name_length,
                    const uint8_t *value,
                    gsize value_length)
{
    g_autofree char *name_text = NULL;
    g_autofree char *value_text = NULL;
    gsize index = 0;

    request->n_bytes += name_length + value_length + HEADER_OVERHEAD;
    if (request->n_bytes > CH_GRPC_MAX_HEADER_LIST_BYTES)
        return;
    if (!nghttp2_check_header_name(name, name_length) ||
        !nghttp2_check_header_value(value, value_length)) {
        request->is_malformed = true;
        return;
    }

    name_text = g_strndup((const char *)name, name_length);
    value_text = g_strndup((const char *)value, value_length);
    while (index < G_N_ELEMENTS(known_headers) &&
           !g_str_equal(known_headers[index].name, name_text))
        index++;
    note_kind(request, name_text, index);
    if (index < G_N_ELEMENTS(known_headers))
        known_headers[index].add(request, value_text);
}

void
ch_grpc_request_clear(ChGrpcRequest *request)
{
    g_free(request->path);
    g_free(request->method);
    g_free(request->content_type);
    g_free(request->subtype);
    g_free(request->encoding);
    g_clear_error(&request->bad_timeout);
    *request = (ChGrpcRequest){0};
}

static ChGrpcVerdict
reset(uint32_t h2_error, uint32_t *out_h2_error)
{
    *out_h2_error = h2_error;
    return CH_GRPC_VERDICT_RESET;
}

/* Go prints values in %q; g_strescape() agrees with it on all that a sane peer sends. */
static ChGrpcVerdict
abort_quoting(guint http_status,
              guint *out_http_status,
              ChGrpcStatus status,
              const char *before,
              const char *value,
              const char *after,
              GError **error)
{
    g_autofree char *quoted = g_strescape(value != NULL ? value : "", NULL);

    *out_http_status = http_status;
    ch_grpc_fail(error, status, "%s\"%s\"%s", before, quoted, after);
    return CH_GRPC_VERDICT_ABORT;
}

ChGrpcVerdict
ch_grpc_request_judge(const ChGrpcRequest *request,
                      uint32_t *out_h2_error,
                      guint *out_http_status,
                      GError **error)
{
    if (request->n_bytes > CH_GRPC_MAX_HEADER_LIST_BYTES)
        return reset(NGHTTP2_FRAME_SIZE_ERROR, out_h2_error);
    if (request->is_malformed)
        return reset(NGHTTP2_PROTOCOL_ERROR, out_h2_error);
    if (request->n_hosts > 1) {
        *out_http_status = 400;
        ch_grpc_fail(error,
                     CH_GRPC_INTERNAL,
                     "num values of host: %u, must only have 1 value as per HTTP/2 spec",
                     request->n_hosts);
        return CH_GRPC_VERDICT_ABORT;
    }
    if (request->subtype == NULL)
        return abort_quoting(415,
                             out_http_status,
                             CH_GRPC_INVALID_ARGUMENT,
                             "invalid gRPC request content-type ",
                             request->content_type,
                             "",
                             error);
    if (request->bad_timeout != NULL) {
        *out_http_status = 400;
        g_propagate_error(error, g_error_copy(request->bad_timeout));
        return CH_GRPC_VERDICT_ABORT;
    }
    if (g_strcmp0(request->method, "POST") != 0)
        return abort_quoting(405,
                             out_http_status,
                             CH_GRPC_INTERNAL,
                             "Received a HEADERS frame with :method ",
                             request->method,
                             " which should be POST",
                             error);
    return CH_GRPC_VERDICT_SERVE;
}
