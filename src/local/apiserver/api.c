/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/api.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/apiserver/api-internal.h"
#include "local/apiserver/discovery.h"

#define JSON_TYPE           "application/json"
#define DEFAULT_MAX_CHANGES 8192
#define DEFAULT_MAX_BYTES   (32u << 20)

typedef enum {
    LEVEL_COLLECTION,
    LEVEL_OBJECT,
    LEVEL_STATUS,
} Level;

/* clang-format off */
static const struct {
    const char *method;
    Level level;
    ChVerb verb;
} verbs[] = {
    {"GET",    LEVEL_COLLECTION, ch_verb_list},
    {"POST",   LEVEL_COLLECTION, ch_verb_create},
    {"DELETE", LEVEL_COLLECTION, ch_verb_delete_collection},
    {"GET",    LEVEL_OBJECT,     ch_verb_get},
    {"PUT",    LEVEL_OBJECT,     ch_verb_update},
    {"PATCH",  LEVEL_OBJECT,     ch_verb_patch},
    {"DELETE", LEVEL_OBJECT,     ch_verb_delete},
    {"GET",    LEVEL_STATUS,     ch_verb_get},
    {"PUT",    LEVEL_STATUS,     ch_verb_update},
    {"PATCH",  LEVEL_STATUS,     ch_verb_patch},
};
/* clang-format on */

void
ch_api_answer_clear(ChApiAnswer *answer)
{
    g_clear_pointer(&answer->body, g_bytes_unref);
    g_clear_pointer(&answer->watch, ch_watch_free);
    g_clear_pointer(&answer->warnings, g_ptr_array_unref);
    *answer = (ChApiAnswer){0};
}

ChStoreKey
ch_call_key(const ChCall *call)
{
    return (ChStoreKey){
        .resource = call->resource_key,
        .namespace_ = call->route.namespace_ != NULL ? call->route.namespace_ : "",
        .name = call->route.name != NULL ? call->route.name : "",
    };
}

ChPart
ch_call_part(const ChCall *call)
{
    return call->route.subresource != NULL ? CH_PART_STATUS : CH_PART_MAIN;
}

static void
answer_json(ChApiAnswer *answer, int code, const ChJson *json)
{
    gsize length;
    char *text = ch_json_print(json, &length);

    answer->code = code;
    answer->content_type = JSON_TYPE;
    answer->body = g_bytes_new_take(text, length);
}

void
ch_call_answer_json(ChCall *call, int code, const ChJson *json)
{
    answer_json(call->answer, code, json);
}

void
ch_call_answer_object(ChCall *call, int code, ChJson *object)
{
    g_autoptr(ChJson) shown = NULL;

    if (call->view.kind == CH_VIEW_PLAIN)
        shown = ch_json_ref(object);
    else
        shown = ch_view_object(&call->view, call->route.resource, object, true, call->now_us);
    answer_json(call->answer, code, shown);
}

ChRefusal *
ch_api_load(ChApi *api, const ChResource *resource, const ChStoreKey *key, ChJson **out_object)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    ChJson *object;

    if (!ch_store_get(api->store, key, &text, &error))
        return ch_refuse_internal(error);
    if (text == NULL)
        return ch_refuse_not_found(resource, key->name);
    object = ch_json_parse(text, -1, &error);
    if (object == NULL)
        return ch_refuse_internal(error);
    *out_object = object;
    return NULL;
}

/* --- dispatch --------------------------------------------------------------------------------- */

/* Everything that all verbs read from the request alike. */
static ChRefusal *
read_common(ChCall *call)
{
    const char *dry_run;
    ChRefusal *refusal = ch_query_parse(call->request->query, &call->params);

    if (refusal != NULL)
        return refusal;
    call->resource_key = ch_resource_qualified(call->route.resource);
    dry_run = ch_query_get(call->params, "dryRun");
    if (dry_run != NULL && *dry_run != '\0' && !g_str_equal(dry_run, "All"))
        return ch_refuse_bad_request("dryRun: Unsupported value: \"%s\": supported values: \"All\"",
                                     dry_run);
    call->is_dry = dry_run != NULL && *dry_run != '\0';
    return ch_view_choose(
        call->request->accept, ch_query_get(call->params, "includeObject"), &call->view);
}

static ChRefusal *
dispatch(ChCall *call)
{
    const ChRoute *route = &call->route;
    const Level level = route->subresource != NULL ? LEVEL_STATUS
                        : route->name != NULL      ? LEVEL_OBJECT
                                                   : LEVEL_COLLECTION;
    ChRefusal *refusal;

    if (level == LEVEL_STATUS &&
        (!g_str_equal(route->subresource, "status") || !route->resource->has_status))
        return ch_refuse_no_route();
    /* objects of all namespaces can be listed, but neither made nor deleted together */
    if (level == LEVEL_COLLECTION && route->resource->is_namespaced && route->namespace_ == NULL &&
        !g_str_equal(call->request->method, "GET"))
        return ch_refuse_method();
    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
        if (verbs[i].level != level || !g_str_equal(verbs[i].method, call->request->method))
            continue;
        refusal = read_common(call);
        return refusal != NULL ? refusal : verbs[i].verb(call);
    }
    return ch_refuse_method();
}

static bool
is_health_path(const char *path)
{
    return g_str_equal(path, "healthz") || g_str_equal(path, "livez") ||
           g_str_equal(path, "readyz");
}

static void
answer_bytes(ChApiAnswer *answer, const char *content_type, GBytes *body)
{
    answer->code = 200;
    answer->content_type = content_type;
    answer->body = body;
}

/* Paths that are no resource's. */
static ChRefusal *
answer_other(ChCall *call)
{
    const char *const *segments = (const char *const *)call->route.segments;
    const char *accept = call->request->accept;
    g_autoptr(ChJson) document = NULL;

    if (!g_str_equal(call->request->method, "GET"))
        return ch_refuse_no_route();
    if (segments[0] != NULL && segments[1] == NULL && is_health_path(segments[0])) {
        answer_bytes(call->answer, "text/plain; charset=utf-8", g_bytes_new_static("ok", 2));
        return NULL;
    }
    if (g_str_equal(call->request->path, "/openapi/v2") && accept != NULL &&
        strstr(accept, "proto-openapi") != NULL) {
        answer_bytes(call->answer, CH_OPENAPI_PROTOBUF_TYPE, ch_discovery_openapi_protobuf());
        return NULL;
    }
    document = ch_discovery_answer(segments);
    if (document == NULL)
        return ch_refuse_no_route();
    ch_call_answer_json(call, 200, document);
    return NULL;
}

void
ch_api_handle(ChApi *api, const ChApiRequest *request, int64_t now_us, ChApiAnswer *out_answer)
{
    ChCall call = {.api = api, .request = request, .now_us = now_us, .answer = out_answer};
    g_autoptr(ChRefusal) refusal = NULL;

    *out_answer = (ChApiAnswer){0};
    refusal = ch_route_parse(request->path, &call.route);
    if (refusal == NULL)
        refusal = call.route.resource != NULL ? dispatch(&call) : answer_other(&call);
    if (refusal != NULL) {
        answer_json(out_answer, refusal->code, refusal->body);
        out_answer->retry_after_s = refusal->retry_after_s;
    }
    ch_route_clear(&call.route);
    g_clear_pointer(&call.params, g_hash_table_unref);
    g_free(call.resource_key);
}

/* --- life ------------------------------------------------------------------------------------- */

/* Every cluster has it, and kubectl assumes it. */
static bool
ensure_default_namespace(ChApi *api, GError **error)
{
    const ChResource *resource = ch_resource_find("", "v1", "namespaces");
    const ChStoreKey key = {"namespaces", "", "default"};
    const int64_t now_us = ch_time_wall_us();
    g_autoptr(ChJson) object = NULL;
    g_autoptr(ChRefusal) refusal = NULL;
    g_autofree char *text = NULL;

    if (!ch_store_get(api->store, &key, &text, error))
        return false;
    if (text != NULL)
        return true;
    object = ch_json_new_object();
    ch_json_set_string(ch_json_ensure_object(object, "metadata"), "name", key.name);
    refusal = ch_meta_prepare_create(resource, object, NULL, false, now_us);
    if (refusal == NULL)
        refusal = ch_api_add(api, resource, &key, object, now_us);
    if (refusal != NULL)
        return ch_fail(error,
                       CH_ERROR_FAILED,
                       "make namespace 'default': %s",
                       ch_json_string_at(refusal->body, "message"));
    return true;
}

ChApi *
ch_api_new(ChStore *store, const ChApiOptions *options, GError **error)
{
    g_autoptr(ChApi) api = g_new0(ChApi, 1);

    api->store = store;
    api->keeps_given = options->keeps_given;
    api->history =
        ch_history_new(ch_store_revision(store),
                       options->max_changes > 0 ? options->max_changes : DEFAULT_MAX_CHANGES,
                       options->max_bytes > 0 ? options->max_bytes : DEFAULT_MAX_BYTES);
    return ensure_default_namespace(api, error) ? g_steal_pointer(&api) : NULL;
}

void
ch_api_free(ChApi *api)
{
    if (api == NULL)
        return;
    ch_history_free(api->history);
    ch_store_close(api->store);
    g_free(api);
}

ChHistory *
ch_api_peek_history(ChApi *api)
{
    return api->history;
}

typedef struct {
    ChStoreKey key; /* strings owned */
    ChJson *object;
} Expired;

static void
expired_free(gpointer data)
{
    Expired *expired = data;

    g_free((char *)expired->key.namespace_);
    g_free((char *)expired->key.name);
    ch_json_unref(expired->object);
    g_free(expired);
}

/* Each removal waits for the disk, and the loop for it: some now, the rest next time. */
#define MAX_EXPIRED 256

static bool
collect_expired(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    GPtrArray *list = data;
    Expired *expired = g_new0(Expired, 1);

    expired->key = (ChStoreKey){key->resource, g_strdup(key->namespace_), g_strdup(key->name)};
    expired->object = ch_json_parse(text, (gssize)length, NULL);
    g_ptr_array_add(list, expired);
    return list->len < MAX_EXPIRED;
}

static void
expire_kind(ChApi *api, const ChResource *resource, int64_t now_us)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(expired_free);
    g_autofree char *qualified = ch_resource_qualified(resource);
    g_autoptr(GError) error = NULL;

    if (!ch_store_list_older(
            api->store, qualified, now_us - resource->ttl_us, collect_expired, list, &error)) {
        ch_log_warning(NULL, error, "Cannot look for expired %s, retrying later", qualified);
        return;
    }
    for (guint i = 0; i < list->len; i++) {
        const Expired *expired = g_ptr_array_index(list, i);
        g_autoptr(ChRefusal) refusal = ch_api_remove(api, resource, &expired->key, expired->object);

        if (refusal != NULL) {
            ch_log_warning(NULL,
                           NULL,
                           "Cannot remove expired %s, retrying later: %s",
                           qualified,
                           ch_json_string_at(refusal->body, "message"));
            return;
        }
    }
}

void
ch_api_expire(ChApi *api, int64_t now_us)
{
    gsize n;
    const ChResource *rows = ch_resource_table(&n);

    for (gsize i = 0; i < n; i++) {
        if (rows[i].ttl_us > 0)
            expire_kind(api, &rows[i], now_us);
    }
}
