/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/status.h"

void
ch_refusal_free(ChRefusal *refusal)
{
    if (refusal == NULL)
        return;
    ch_json_unref(refusal->body);
    g_free(refusal);
}

/* (transfer full): a Status; @message is copied, @details taken over (nullable). */
static ChJson *
make_status(bool is_success, const char *message, const char *reason, ChJson *details, int code)
{
    ChJson *status = ch_json_new_object();

    ch_json_set_string(status, "kind", "Status");
    ch_json_set_string(status, "apiVersion", "v1");
    ch_json_set(status, "metadata", ch_json_new_object());
    ch_json_set_string(status, "status", is_success ? "Success" : "Failure");
    ch_json_set_string(status, "message", message);
    ch_json_set_string(status, "reason", reason != NULL && reason[0] != '\0' ? reason : NULL);
    if (details != NULL)
        ch_json_set(status, "details", details);
    if (!is_success)
        ch_json_set_int(status, "code", code);
    return status;
}

static ChRefusal *
refuse(int code, const char *reason, ChJson *details, const char *message)
{
    ChRefusal *refusal = g_new0(ChRefusal, 1);

    refusal->code = code;
    refusal->body = make_status(false, message, reason, details, code);
    return refusal;
}

/* (transfer full): what `details` says of one object. */
static ChJson *
object_details(const ChResource *resource, const char *name)
{
    ChJson *details = ch_json_new_object();

    ch_json_set_string(details, "name", name);
    ch_json_set_string(details, "group", resource->group[0] != '\0' ? resource->group : NULL);
    ch_json_set_string(details, "kind", resource->plural);
    return details;
}

ChRefusal *
ch_refusal_new(int code, const char *reason, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    return refuse(code, reason, NULL, message);
}

ChRefusal *
ch_refuse_bad_request(const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    return refuse(400, "BadRequest", NULL, message);
}

/* A refusal about one object: `kind "name" WHY`. */
static ChRefusal *
refuse_object(
    int code, const char *reason, const ChResource *resource, const char *name, const char *why)
{
    g_autofree char *qualified = ch_resource_qualified(resource);
    g_autofree char *message = g_strdup_printf("%s \"%s\" %s", qualified, name, why);

    return refuse(code, reason, object_details(resource, name), message);
}

ChRefusal *
ch_refuse_not_found(const ChResource *resource, const char *name)
{
    return refuse_object(404, "NotFound", resource, name, "not found");
}

ChRefusal *
ch_refuse_exists(const ChResource *resource, const char *name)
{
    return refuse_object(409, "AlreadyExists", resource, name, "already exists");
}

ChRefusal *
ch_refuse_no_route(void)
{
    return refuse(
        404, "NotFound", ch_json_new_object(), "the server could not find the requested resource");
}

ChRefusal *
ch_refuse_conflict(const ChResource *resource, const char *name, const char *why)
{
    g_autofree char *qualified = ch_resource_qualified(resource);
    g_autofree char *message =
        g_strdup_printf("Operation cannot be fulfilled on %s \"%s\": %s", qualified, name, why);

    return refuse(409, "Conflict", object_details(resource, name), message);
}

ChRefusal *
ch_refuse_forbidden(const ChResource *resource, const char *name, const char *why)
{
    g_autofree char *qualified = ch_resource_qualified(resource);
    g_autofree char *message = g_strdup_printf("%s \"%s\" is forbidden: %s", qualified, name, why);

    return refuse(403, "Forbidden", object_details(resource, name), message);
}

ChRefusal *
ch_refuse_method(void)
{
    return refuse(405,
                  "MethodNotAllowed",
                  ch_json_new_object(),
                  "the server does not allow this method on the requested resource");
}

ChRefusal *
ch_refuse_invalid(const ChResource *resource, const char *name, GPtrArray *causes)
{
    ChJson *details = object_details(resource, name);
    ChJson *list = ch_json_new_array();
    g_autoptr(GString) text = g_string_new(NULL);
    const bool is_many = causes->len > 1;

    /* an object is named by its kind here, not by its resource */
    ch_json_set_string(details, "kind", resource->kind);
    g_string_printf(text,
                    "%s%s%s \"%s\" is invalid: %s",
                    resource->kind,
                    resource->group[0] != '\0' ? "." : "",
                    resource->group,
                    name != NULL ? name : "",
                    is_many ? "[" : "");
    for (guint i = 0; i < causes->len; i++) {
        const ChCause *cause = g_ptr_array_index(causes, i);
        ChJson *item = ch_json_new_object();

        ch_json_set_string(item, "reason", cause->reason);
        ch_json_set_string(item, "message", cause->message);
        ch_json_set_string(item, "field", cause->field);
        ch_json_append(list, item);
        g_string_append_printf(text, "%s%s: %s", i > 0 ? ", " : "", cause->field, cause->message);
    }
    if (is_many)
        g_string_append_c(text, ']');
    ch_json_set(details, "causes", list);
    return refuse(422, "Invalid", details, text->str);
}

ChRefusal *
ch_refuse_media_type(const char *accepted)
{
    return ch_refusal_new(415,
                          "UnsupportedMediaType",
                          "the body of the request was in an unknown format - accepted media "
                          "types include: %s",
                          accepted);
}

ChRefusal *
ch_refuse_patch(const char *why)
{
    ChJson *details = ch_json_new_object();
    ChJson *list = ch_json_new_array();
    ChJson *cause = ch_json_new_object();

    ch_json_set_string(cause, "reason", "UnexpectedServerResponse");
    ch_json_set_string(cause, "message", why);
    ch_json_append(list, cause);
    ch_json_set(details, "causes", list);
    return refuse(
        422, "Invalid", details, "the server rejected our request due to an error in our request");
}

ChRefusal *
ch_refuse_expired(int64_t wanted, int64_t oldest)
{
    return ch_refusal_new(410,
                          "Expired",
                          "too old resource version: %" G_GINT64_FORMAT " (%" G_GINT64_FORMAT ")",
                          wanted,
                          oldest);
}

ChRefusal *
ch_refuse_too_new(int64_t wanted, int64_t current)
{
    ChJson *details = ch_json_new_object();
    ChJson *list = ch_json_new_array();
    ChJson *cause = ch_json_new_object();
    g_autofree char *message = g_strdup_printf("Too large resource version: %" G_GINT64_FORMAT
                                               ", current: %" G_GINT64_FORMAT,
                                               wanted,
                                               current);
    ChRefusal *refusal;

    ch_json_set_string(cause, "reason", "ResourceVersionTooLarge");
    ch_json_set_string(cause, "message", "Too large resource version");
    ch_json_append(list, cause);
    ch_json_set(details, "causes", list);
    ch_json_set_int(details, "retryAfterSeconds", 1);
    refusal = refuse(504, "Timeout", details, message);
    refusal->retry_after_s = 1;
    return refusal;
}

ChRefusal *
ch_refuse_unauthorized(void)
{
    return ch_refusal_new(401, "Unauthorized", "Unauthorized");
}

ChRefusal *
ch_refuse_too_large(gsize limit_bytes)
{
    return ch_refusal_new(413,
                          "RequestEntityTooLarge",
                          "Request entity too large: limit is %" G_GSIZE_FORMAT,
                          limit_bytes);
}

ChRefusal *
ch_refuse_internal(const GError *error)
{
    return ch_refusal_new(500, "InternalError", "Internal error occurred: %s", error->message);
}

ChJson *
ch_status_deleted(const ChResource *resource, const char *name, const char *uid)
{
    ChJson *details = object_details(resource, name);

    ch_json_set_string(details, "uid", uid);
    return make_status(true, NULL, NULL, details, 200);
}
