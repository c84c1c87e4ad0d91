/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/api-status.h"

#include "lib/json/json.h"

#define EXCERPT_BYTES 200

typedef struct {
    char *reason; /* (nullable) owned */
    bool is_too_large_version;
} ChKubeErrorPrivate;

static void
ch_kube_error_private_init(ChKubeErrorPrivate *private)
{
    private->reason = NULL;
    private->is_too_large_version = false;
}

static void
ch_kube_error_private_copy(const ChKubeErrorPrivate *source, ChKubeErrorPrivate *target)
{
    target->reason = g_strdup(source->reason);
    target->is_too_large_version = source->is_too_large_version;
}

static void
ch_kube_error_private_clear(ChKubeErrorPrivate *private)
{
    g_free(private->reason);
}

/* The macro casts from a byte pointer, which GLib has aligned. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-align"
G_DEFINE_EXTENDED_ERROR(ChKubeError, ch_kube_error)
#pragma GCC diagnostic pop

/* NULL for errors of another domain. */
static const ChKubeErrorPrivate *
peek_private(const GError *error)
{
    return error->domain == CH_KUBE_ERROR ? ch_kube_error_get_private(error) : NULL;
}

const char *
ch_kube_error_reason(const GError *error)
{
    const ChKubeErrorPrivate *private = peek_private(error);

    return private != NULL && private->reason != NULL ? private->reason : "";
}

bool
ch_kube_error_is_expired(const GError *error)
{
    const char *reason = ch_kube_error_reason(error);

    if (g_str_equal(reason, "Expired") || g_str_equal(reason, "Gone"))
        return true;
    return g_error_matches(error, CH_KUBE_ERROR, 410);
}

bool
ch_kube_error_is_too_large_version(const GError *error)
{
    const ChKubeErrorPrivate *private = peek_private(error);

    return private != NULL && private->is_too_large_version;
}

/* Servers of different age say it in three ways: a cause's reason, a cause's message, the start of
 * the message itself. */
static bool
says_too_large_version(const ChJson *status, const char *message)
{
    const ChJson *causes = ch_json_at(status, "details", "causes");

    for (gsize i = 0; i < ch_json_length(causes) && ch_json_is_array(causes); i++) {
        const ChJson *cause = ch_json_item(causes, i);

        if (g_strcmp0(ch_json_string_at(cause, "reason"), "ResourceVersionTooLarge") == 0 ||
            g_strcmp0(ch_json_string_at(cause, "message"), "Too large resource version") == 0)
            return true;
    }
    return g_str_has_prefix(message, "Too large resource version");
}

static GError *
error_from_status(int code, const ChJson *status)
{
    const char *message = ch_json_string_at(status, "message");
    const char *reason = ch_json_string_at(status, "reason");
    g_autofree char *fallback = g_strdup_printf("the server answered with status %d", code);
    const char *text = message != NULL && *message != '\0' ? message : fallback;
    GError *error = g_error_new_literal(CH_KUBE_ERROR, code, text);
    ChKubeErrorPrivate *private = ch_kube_error_get_private(error);

    private->reason = g_strdup(reason);
    private->is_too_large_version = says_too_large_version(status, text);
    return error;
}

/* What a proxy or a broken server said instead of a Status, fit for one log line. */
static GError *
error_from_bytes(int code, const char *body, gsize length)
{
    g_autofree char *start = g_utf8_make_valid(body, (gssize)MIN(length, EXCERPT_BYTES));

    for (char *c = start; *c != '\0'; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    g_strstrip(start);
    if (*start == '\0')
        return g_error_new(CH_KUBE_ERROR, code, "the server answered with status %d", code);
    return g_error_new(CH_KUBE_ERROR, code, "the server answered with status %d: %s", code, start);
}

GError *
ch_kube_error_from_answer(int http_status, const char *body, gsize length)
{
    g_autoptr(ChJson) json = length > 0 ? ch_json_parse(body, (gssize)length, NULL) : NULL;

    if (g_strcmp0(ch_json_string_at(json, "kind"), "Status") == 0)
        return error_from_status(http_status, json);
    return error_from_bytes(http_status, length > 0 ? body : "", length);
}

GError *
ch_kube_error_from_status(const ChJson *status)
{
    int64_t code = 0;

    if (g_strcmp0(ch_json_string_at(status, "kind"), "Status") != 0)
        return g_error_new(CH_KUBE_ERROR, 500, "an ERROR event without a Status");
    if (!ch_json_int_at(status, &code, "code") || code < 100 || code > 999)
        code = 500;
    return error_from_status((int)code, status);
}
