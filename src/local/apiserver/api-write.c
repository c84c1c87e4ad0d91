/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "local/apiserver/api-internal.h"
#include "local/apiserver/patch.h"
#include "local/apiserver/proto-body.h"

/* --- the one place that writes ---------------------------------------------------------------- */

/* What a write does to one object. */
typedef struct {
    const ChResource *resource;
    const ChStoreKey *key;
    const ChJson *old; /* (nullable): NULL: it is new */
    ChJson *object;    /* gets its revision; of a removal: the last state */
    ChChangeType type;
} Write;

static ChChange *
make_change(const Write *write, int64_t revision, const char *text)
{
    ChChange *change = g_new0(ChChange, 1);

    change->type = write->type;
    change->revision = revision;
    change->resource = write->resource;
    change->namespace_ = g_strdup(write->key->namespace_);
    change->object = g_strdup(text);
    change->traits = ch_select_traits(write->resource, write->object);
    if (write->old != NULL) {
        change->previous = ch_json_print(write->old, NULL);
        change->previous_traits = ch_select_traits(write->resource, write->old);
    }
    return change;
}

/* Store first, then tell the watches. */
static ChRefusal *
commit(ChApi *api, const Write *write, int64_t now_us)
{
    const int64_t revision = ch_store_revision(api->store) + 1;
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    bool ok;

    ch_meta_set_revision(write->object, revision);
    text = ch_json_print(write->object, NULL);
    ok = write->type == CH_CHANGE_DELETED
             ? ch_store_remove(api->store, write->key, &error)
             : ch_store_put(api->store, write->key, text, now_us, &error);
    if (!ok)
        return ch_refuse_internal(error);
    ch_history_append(api->history, make_change(write, revision, text));
    return NULL;
}

ChRefusal *
ch_api_add(
    ChApi *api, const ChResource *resource, const ChStoreKey *key, ChJson *object, int64_t now_us)
{
    const Write write = {resource, key, NULL, object, CH_CHANGE_ADDED};

    return commit(api, &write, now_us);
}

ChRefusal *
ch_api_remove(ChApi *api, const ChResource *resource, const ChStoreKey *key, const ChJson *object)
{
    g_autoptr(ChJson) last = ch_json_dup(object);
    const Write write = {resource, key, object, last, CH_CHANGE_DELETED};

    return commit(api, &write, 0);
}

/* --- namespaces ------------------------------------------------------------------------------- */

static const ChResource *
namespaces(void)
{
    return ch_resource_find("", "v1", "namespaces");
}

/* New objects need a namespace that is there to stay. @name: of the new one, for the message */
static ChRefusal *
check_namespace(const ChCall *call, const char *name)
{
    const ChRoute *route = &call->route;
    const ChStoreKey key = {"namespaces", "", route->namespace_};
    g_autoptr(ChJson) object = NULL;
    ChRefusal *refusal;

    if (!route->resource->is_namespaced)
        return NULL;
    refusal = ch_api_load(call->api, namespaces(), &key, &object);
    if (refusal == NULL && ch_json_at(object, "metadata", "deletionTimestamp") != NULL)
        refusal = ch_refuse_forbidden(route->resource,
                                      name,
                                      "unable to create new content in a namespace because it is "
                                      "being terminated");
    return refusal;
}

static bool
note_any(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    *(bool *)data = true;
    return false;
}

static bool
is_namespace_empty(ChApi *api, const char *name)
{
    gsize n;
    const ChResource *rows = ch_resource_table(&n);
    bool has_any = false;

    for (gsize i = 0; i < n && !has_any; i++) {
        g_autofree char *qualified = ch_resource_qualified(&rows[i]);

        if (rows[i].is_namespaced &&
            !ch_store_list(api->store, qualified, name, NULL, note_any, &has_any, NULL))
            return false;
    }
    return !has_any;
}

/* A namespace that is being deleted goes with the last object in it. */
static ChRefusal *
finish_namespace(ChApi *api, const char *name)
{
    const ChStoreKey key = {"namespaces", "", name};
    g_autoptr(ChJson) object = NULL;
    g_autoptr(ChRefusal) refusal = ch_api_load(api, namespaces(), &key, &object);

    if (refusal != NULL || !ch_meta_is_gone(object) || !is_namespace_empty(api, name))
        return NULL;
    return ch_api_remove(api, namespaces(), &key, object);
}

/* --- bodies ----------------------------------------------------------------------------------- */

/* Compares without parameters. */
static bool
is_type(const char *content_type, const char *wanted)
{
    const gsize n = strcspn(content_type, "; ");

    return n == strlen(wanted) && g_ascii_strncasecmp(content_type, wanted, n) == 0;
}

static ChRefusal *
read_body(const ChCall *call, ChJson **out_object)
{
    const ChApiRequest *request = call->request;
    const char *type = request->content_type;
    g_autoptr(ChJson) object = NULL;
    g_autoptr(GError) error = NULL;

    if (type == NULL || *type == '\0' || is_type(type, "application/json"))
        object = ch_json_parse((const char *)request->body, (gssize)request->length, &error);
    else if (is_type(type, CH_PROTO_BODY_TYPE))
        object = ch_proto_body_parse(request->body, request->length, &error);
    else
        return ch_refuse_media_type("application/json");
    if (object == NULL)
        return ch_refuse_bad_request("the object provided is unrecognized: %s", error->message);
    if (!ch_json_is_object(object))
        return ch_refuse_bad_request("the object provided is unrecognized: it is no JSON object");
    *out_object = g_steal_pointer(&object);
    return NULL;
}

/* Patches must not let an object grow beyond what a client could send at once. */
static ChRefusal *
check_size(const ChJson *object)
{
    gsize length;
    g_autofree char *text = ch_json_print(object, &length);

    return length > CH_API_MAX_BODY ? ch_refuse_too_large(CH_API_MAX_BODY) : NULL;
}

/* Whoever writes a spec is told which of its fields nobody reads. On a cluster
 * fieldValidation=Strict, kubectl's default, refuses them; here a newer KubeVirt's field is
 * welcome. */
static void
warn_of_unknown(ChCall *call, const ChJson *old, const ChJson *object)
{
    const char *validation = ch_query_get(call->params, "fieldValidation");
    const ChResourceUnknown unknown = call->route.resource->unknown;

    if (unknown == NULL || g_strcmp0(validation, "Ignore") == 0 ||
        ch_json_equal(ch_json_at(old, "spec"), ch_json_at(object, "spec")))
        return;
    call->answer->warnings = unknown(object);
}

/* --- create ----------------------------------------------------------------------------------- */

ChRefusal *
ch_verb_create(ChCall *call)
{
    const ChResource *resource = call->route.resource;
    ChStoreKey key = ch_call_key(call);
    g_autoptr(ChJson) object = NULL;
    g_autofree char *there = NULL;
    g_autoptr(GError) error = NULL;
    ChRefusal *refusal;

    if ((refusal = read_body(call, &object)) != NULL ||
        (refusal = check_namespace(call, ch_meta_name(object))) != NULL ||
        (refusal = ch_meta_prepare_create(
             resource, object, call->route.namespace_, call->api->keeps_given, call->now_us)) !=
            NULL ||
        (refusal = check_size(object)) != NULL)
        return refusal;
    key.name = ch_meta_name(object);
    if (!ch_store_get(call->api->store, &key, &there, &error))
        return ch_refuse_internal(error);
    if (there != NULL)
        return ch_refuse_exists(resource, key.name);
    if (!call->is_dry &&
        (refusal = ch_api_add(call->api, resource, &key, object, call->now_us)) != NULL)
        return refusal;
    warn_of_unknown(call, NULL, object);
    ch_call_answer_object(call, 201, object);
    return NULL;
}

/* --- update ----------------------------------------------------------------------------------- */

/* Writes @object in place of @old: not at all when nothing changed, and as a removal when the last
 * finalizer of a deleted object went. */
static ChRefusal *
store_successor(ChCall *call, const ChStoreKey *key, const ChJson *old, ChJson *object)
{
    const bool is_gone = ch_meta_is_gone(object);
    const Write write = {
        call->route.resource, key, old, object, is_gone ? CH_CHANGE_DELETED : CH_CHANGE_MODIFIED};
    ChRefusal *refusal;

    if (call->is_dry || ch_json_equal(old, object))
        return NULL;
    refusal = commit(call->api, &write, call->now_us);
    if (refusal == NULL && is_gone && call->route.namespace_ != NULL)
        refusal = finish_namespace(call->api, call->route.namespace_);
    return refusal;
}

/* The rest of PUT and PATCH. @sent: what the client wants */
static ChRefusal *
replace(ChCall *call, const ChStoreKey *key, const ChJson *old, const ChJson *sent)
{
    const ChPart part = ch_call_part(call);
    g_autoptr(ChJson) object =
        part == CH_PART_STATUS ? ch_meta_with_status(old, sent) : ch_json_dup(sent);
    ChRefusal *refusal = ch_meta_prepare_update(call->route.resource, old, object, part);

    if (refusal == NULL)
        refusal = check_size(object);
    if (refusal == NULL)
        refusal = store_successor(call, key, old, object);
    if (refusal != NULL)
        return refusal;
    if (part == CH_PART_MAIN)
        warn_of_unknown(call, old, object);
    ch_call_answer_object(call, 200, object);
    return NULL;
}

ChRefusal *
ch_verb_update(ChCall *call)
{
    const ChStoreKey key = ch_call_key(call);
    g_autoptr(ChJson) old = NULL;
    g_autoptr(ChJson) sent = NULL;
    ChRefusal *refusal;

    if ((refusal = read_body(call, &sent)) != NULL ||
        (refusal = ch_api_load(call->api, call->route.resource, &key, &old)) != NULL)
        return refusal;
    return replace(call, &key, old, sent);
}

ChRefusal *
ch_verb_patch(ChCall *call)
{
    const ChStoreKey key = ch_call_key(call);
    const ChApiRequest *request = call->request;
    g_autoptr(ChJson) old = NULL;
    g_autoptr(ChJson) patched = NULL;
    ChRefusal *refusal;

    if ((refusal = ch_api_load(call->api, call->route.resource, &key, &old)) != NULL ||
        (refusal = ch_patch_apply(call->route.resource,
                                  request->content_type,
                                  request->body,
                                  request->length,
                                  old,
                                  &patched)) != NULL)
        return refusal;
    return replace(call, &key, old, patched);
}

/* --- delete ----------------------------------------------------------------------------------- */

/* From body or query. @body: keeps the strings of @out alive */
static ChRefusal *
read_delete_options(ChCall *call, ChJson **body, ChDeleteOptions *out)
{
    const ChJson *dry_run;
    ChRefusal *refusal = ch_query_int(call->params, "gracePeriodSeconds", -1, &out->grace_s);

    if (refusal != NULL || call->request->length == 0)
        return refusal;
    if ((refusal = read_body(call, body)) != NULL)
        return refusal;
    (void)ch_json_int_at(*body, &out->grace_s, "gracePeriodSeconds");
    out->uid = ch_json_string_at(*body, "preconditions", "uid");
    out->resource_version = ch_json_string_at(*body, "preconditions", "resourceVersion");
    dry_run = ch_json_at(*body, "dryRun");
    if (ch_json_length(dry_run) > 0)
        call->is_dry = true;
    return NULL;
}

/* Starts or finishes the deletion of one object. @out_object: (out) (transfer full): its state if
 * it stays for a while, NULL if it is gone */
static ChRefusal *
delete_object(ChCall *call,
              const ChResource *resource,
              const ChStoreKey *key,
              const ChDeleteOptions *options,
              ChJson **out_object)
{
    g_autoptr(ChJson) old = NULL;
    g_autoptr(ChJson) object = NULL;
    Write write = {resource, key, NULL, NULL, CH_CHANGE_MODIFIED};
    ChRefusal *refusal = ch_api_load(call->api, resource, key, &old);
    bool is_gone;

    if (refusal != NULL)
        return refusal;
    if (resource == namespaces() && g_str_equal(key->name, "default"))
        return ch_refuse_forbidden(resource, key->name, "this namespace may not be deleted");
    object = ch_json_dup(old);
    if ((refusal = ch_meta_prepare_delete(resource, object, options, call->now_us)) != NULL)
        return refusal;
    /* a namespace goes when it is empty */
    is_gone = ch_meta_is_gone(object) &&
              (resource != namespaces() || is_namespace_empty(call->api, key->name));
    write.old = old;
    write.object = object;
    if (is_gone)
        write.type = CH_CHANGE_DELETED;
    if (!call->is_dry && (is_gone || !ch_json_equal(old, object)))
        refusal = commit(call->api, &write, call->now_us);
    if (refusal == NULL)
        *out_object = is_gone ? NULL : g_steal_pointer(&object);
    return refusal;
}

static bool
collect_name(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    g_ptr_array_add(data, g_strdup(key->name));
    return true;
}

/* Everything in a namespace that is being deleted; what has finalizers stays until they go. */
static ChRefusal *
empty_namespace(ChCall *call, const char *namespace_)
{
    const ChDeleteOptions options = {.grace_s = -1};
    gsize n;
    const ChResource *rows = ch_resource_table(&n);

    for (gsize i = 0; i < n; i++) {
        g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
        g_autofree char *qualified = ch_resource_qualified(&rows[i]);
        g_autoptr(GError) error = NULL;

        if (!rows[i].is_namespaced)
            continue;
        if (!ch_store_list(
                call->api->store, qualified, namespace_, NULL, collect_name, names, &error))
            return ch_refuse_internal(error);
        for (guint j = 0; j < names->len; j++) {
            const ChStoreKey key = {qualified, namespace_, g_ptr_array_index(names, j)};
            g_autoptr(ChJson) left = NULL;
            ChRefusal *refusal = delete_object(call, &rows[i], &key, &options, &left);

            if (refusal != NULL)
                return refusal;
        }
    }
    return finish_namespace(call->api, namespace_);
}

ChRefusal *
ch_verb_delete(ChCall *call)
{
    const ChResource *resource = call->route.resource;
    const ChStoreKey key = ch_call_key(call);
    ChDeleteOptions options = {.grace_s = -1};
    g_autoptr(ChJson) body = NULL;
    g_autoptr(ChJson) old = NULL;
    g_autoptr(ChJson) object = NULL;
    g_autoptr(ChJson) status = NULL;
    ChRefusal *refusal;

    if ((refusal = read_delete_options(call, &body, &options)) != NULL ||
        (refusal = ch_api_load(call->api, resource, &key, &old)) != NULL ||
        (refusal = delete_object(call, resource, &key, &options, &object)) != NULL)
        return refusal;
    if (object != NULL && resource == namespaces() && !call->is_dry)
        refusal = empty_namespace(call, key.name);
    else if (object == NULL && call->route.namespace_ != NULL)
        refusal = finish_namespace(call->api, call->route.namespace_);
    if (refusal != NULL)
        return refusal;
    if (object != NULL) {
        ch_call_answer_object(call, 200, object);
        return NULL;
    }
    status = ch_status_deleted(resource, key.name, ch_json_string_at(old, "metadata", "uid"));
    ch_call_answer_json(call, 200, status);
    return NULL;
}

typedef struct {
    const ChSelect *select;
    GPtrArray *names;
} Matching;

static bool
collect_matching(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    Matching *matching = data;
    g_autoptr(ChJson) object = NULL;

    if (!ch_select_is_all(matching->select)) {
        object = ch_json_parse(text, (gssize)length, NULL);
        if (!ch_select_matches(matching->select, object))
            return true;
    }
    g_ptr_array_add(matching->names, g_strdup(key->name));
    return true;
}

ChRefusal *
ch_verb_delete_collection(ChCall *call)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(ChSelect) select = NULL;
    g_autoptr(ChJson) body = NULL;
    g_autoptr(ChJson) status = NULL;
    g_autoptr(GError) error = NULL;
    ChDeleteOptions options = {.grace_s = -1};
    Matching matching;
    ChRefusal *refusal;

    if ((refusal = read_delete_options(call, &body, &options)) != NULL ||
        (refusal = ch_select_parse(call->route.resource,
                                   ch_query_get(call->params, "labelSelector"),
                                   ch_query_get(call->params, "fieldSelector"),
                                   &select)) != NULL)
        return refusal;
    matching = (Matching){select, names};
    if (!ch_store_list(call->api->store,
                       call->resource_key,
                       call->route.namespace_,
                       NULL,
                       collect_matching,
                       &matching,
                       &error))
        return ch_refuse_internal(error);
    for (guint i = 0; i < names->len; i++) {
        ChStoreKey key = ch_call_key(call);
        g_autoptr(ChJson) left = NULL;

        key.name = g_ptr_array_index(names, i);
        refusal = delete_object(call, call->route.resource, &key, &options, &left);
        if (refusal == NULL && left != NULL && call->route.resource == namespaces() &&
            !call->is_dry)
            refusal = empty_namespace(call, key.name);
        if (refusal != NULL)
            return refusal;
    }
    if (call->route.namespace_ != NULL && !call->is_dry &&
        (refusal = finish_namespace(call->api, call->route.namespace_)) != NULL)
        return refusal;
    status = ch_status_deleted(call->route.resource, NULL, NULL);
    ch_call_answer_json(call, 200, status);
    return NULL;
}
