/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/route.h"

#include <string.h>

#define MAX_SEGMENTS 12
#define MAX_PARAMS   64

/* Replaces every segment by its decoded form. */
static bool
decode_segments(char **segments)
{
    for (char **segment = segments; *segment != NULL; segment++) {
        char *decoded = g_uri_unescape_string(*segment, "/");

        if (decoded == NULL || !g_utf8_validate(decoded, -1, NULL)) {
            g_free(decoded);
            return false;
        }
        g_free(*segment);
        *segment = decoded;
    }
    return true;
}

/* @rest: what follows the version. */
static void
find_resource(ChRoute *route, const char *group, const char *version, char **rest)
{
    const guint n = g_strv_length(rest);

    /* "namespaces/x/pods" is about pods, but "namespaces/x/status" about the namespace */
    if (n >= 3 && g_str_equal(rest[0], "namespaces") &&
        (route->resource = ch_resource_find(group, version, rest[2])) != NULL) {
        if (!route->resource->is_namespaced) {
            route->resource = NULL;
            return;
        }
        route->namespace_ = rest[1];
        rest += 2;
    } else if (n >= 1) {
        route->resource = ch_resource_find(group, version, rest[0]);
    }
    if (route->resource == NULL)
        return;
    if (rest[1] != NULL) {
        route->name = rest[1];
        route->subresource = rest[2];
        if (rest[2] != NULL && rest[3] != NULL)
            route->resource = NULL;
    }
    /* an object of a namespaced kind lives in a namespace */
    if (route->resource != NULL && route->resource->is_namespaced && route->name != NULL &&
        route->namespace_ == NULL)
        route->resource = NULL;
}

ChRefusal *
ch_route_parse(const char *path, ChRoute *out_route)
{
    g_auto(ChRoute) route = {0};
    gsize length = strlen(path);
    g_autofree char *trimmed = NULL;
    char **segments;
    guint n;

    while (length > 1 && path[length - 1] == '/')
        length--;
    trimmed = g_strndup(path + 1, length - 1);
    segments = route.segments = g_strsplit(trimmed, "/", MAX_SEGMENTS);
    if (!decode_segments(segments))
        return ch_refuse_bad_request("the path is not percent-encoded UTF-8");
    n = g_strv_length(segments);
    if (n >= 3 && g_str_equal(segments[0], "api"))
        find_resource(&route, "", segments[1], segments + 2);
    else if (n >= 4 && g_str_equal(segments[0], "apis") && segments[1][0] != '\0')
        find_resource(&route, segments[1], segments[2], segments + 3);
    *out_route = route;
    route = (ChRoute){0};
    return NULL;
}

void
ch_route_clear(ChRoute *route)
{
    g_strfreev(route->segments);
    *route = (ChRoute){0};
}

/* (transfer full) (nullable) */
static char *
decode_param(const char *text)
{
    g_autofree char *spaced = g_strdelimit(g_strdup(text), "+", ' ');
    g_autofree char *decoded = g_uri_unescape_string(spaced, NULL);

    return decoded != NULL && g_utf8_validate(decoded, -1, NULL) ? g_steal_pointer(&decoded) : NULL;
}

ChRefusal *
ch_query_parse(const char *query, GHashTable **out_params)
{
    g_autoptr(GHashTable) params = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_auto(GStrv) pairs = g_strsplit(query != NULL ? query : "", "&", MAX_PARAMS);

    if (g_strv_length(pairs) == MAX_PARAMS)
        return ch_refuse_bad_request("the query has more than %d parameters", MAX_PARAMS - 1);
    for (char **pair = pairs; *pair != NULL; pair++) {
        char *value = strchr(*pair, '=');
        g_autofree char *decoded_key = NULL;
        g_autofree char *decoded_value = NULL;

        if (**pair == '\0')
            continue;
        if (value != NULL)
            *value++ = '\0';
        decoded_key = decode_param(*pair);
        decoded_value = decode_param(value != NULL ? value : "");
        if (decoded_key == NULL || decoded_value == NULL)
            return ch_refuse_bad_request("the query is not percent-encoded UTF-8");
        g_hash_table_replace(
            params, g_steal_pointer(&decoded_key), g_steal_pointer(&decoded_value));
    }
    *out_params = g_steal_pointer(&params);
    return NULL;
}

const char *
ch_query_get(GHashTable *params, const char *name)
{
    return g_hash_table_lookup(params, name);
}

bool
ch_query_is_true(GHashTable *params, const char *name)
{
    const char *text = ch_query_get(params, name);

    return text != NULL && !g_str_equal(text, "0") && g_ascii_strcasecmp(text, "false") != 0;
}

ChRefusal *
ch_query_int(GHashTable *params, const char *name, int64_t fallback, int64_t *out_value)
{
    const char *text = ch_query_get(params, name);
    guint64 value;

    if (text == NULL || *text == '\0') {
        *out_value = fallback;
        return NULL;
    }
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &value, NULL))
        return ch_refuse_bad_request(
            "%s: Invalid value: \"%s\": must be a whole number", name, text);
    *out_value = (int64_t)value;
    return NULL;
}
