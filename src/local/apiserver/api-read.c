/* SPDX-License-Identifier: Apache-2.0 */

#include <string.h>

#include "lib/base/time.h"
#include "local/apiserver/api-internal.h"

#define WATCH_MIN_S                                                                                \
    1800 /* a watch without timeoutSeconds (or with 0) ends after 30 to 60 minutes */
#define WATCH_MAX_S (24 * 3600)

/* --- revisions -------------------------------------------------------------------------------- */

/* What a list or watch says about how fresh it must be. */
typedef struct {
    bool is_set; /* a number other than 0 */
    bool is_any; /* "0" */
    int64_t revision;
    bool is_exact;    /* resourceVersionMatch=Exact */
    bool is_at_least; /* resourceVersionMatch=NotOlderThan */
} Freshness;

static ChRefusal *
read_freshness(const ChCall *call, Freshness *out)
{
    const char *text = ch_query_get(call->params, "resourceVersion");
    const char *match = ch_query_get(call->params, "resourceVersionMatch");
    ChRefusal *refusal = ch_query_int(call->params, "resourceVersion", 0, &out->revision);

    if (refusal != NULL)
        return refusal;
    out->is_set = out->revision > 0;
    out->is_any = text != NULL && *text != '\0' && out->revision == 0;
    out->is_exact = g_strcmp0(match, "Exact") == 0;
    out->is_at_least = g_strcmp0(match, "NotOlderThan") == 0;
    if (match != NULL && *match != '\0' && !out->is_exact && !out->is_at_least)
        return ch_refuse_bad_request("resourceVersionMatch: Unsupported value: \"%s\": supported "
                                     "values: \"Exact\", \"NotOlderThan\"",
                                     match);
    if (out->is_exact && !out->is_set)
        return ch_refuse_bad_request(
            "resourceVersionMatch: Forbidden: \"Exact\" needs a resourceVersion other than 0");
    return NULL;
}

static ChRefusal *
check_freshness(const ChCall *call, const Freshness *fresh)
{
    const int64_t current = ch_store_revision(call->api->store);

    if (fresh->is_set && fresh->revision > current)
        return ch_refuse_too_new(fresh->revision, current);
    if (fresh->is_exact && fresh->revision < current)
        return ch_refuse_expired(fresh->revision, current);
    return NULL;
}

/* --- get -------------------------------------------------------------------------------------- */

ChRefusal *
ch_verb_get(ChCall *call)
{
    const ChStoreKey key = ch_call_key(call);
    g_autoptr(ChJson) object = NULL;
    Freshness fresh = {0};
    ChRefusal *refusal;

    if ((refusal = read_freshness(call, &fresh)) != NULL ||
        (refusal = check_freshness(call, &fresh)) != NULL ||
        (refusal = ch_api_load(call->api, call->route.resource, &key, &object)) != NULL)
        return refusal;
    ch_call_answer_object(call, 200, object);
    return NULL;
}

/* --- continue tokens -------------------------------------------------------------------------- */

/* Where the next page begins, and at which revision the first page was. Base64 of
 * "1/REVISION/NAMESPACE/NAME". */
typedef struct {
    int64_t revision;
    char **parts; /* owned */
} Token;

static char *
make_token(int64_t revision, const char *namespace_, const char *name)
{
    g_autofree char *text =
        g_strdup_printf("1/%" G_GINT64_FORMAT "/%s/%s", revision, namespace_, name);

    return g_base64_encode((const guchar *)text, strlen(text));
}

static ChRefusal *
parse_token(const char *token, int64_t newest, Token *out)
{
    gsize length;
    g_autofree guchar *bytes = g_base64_decode(token, &length);
    g_autofree char *text = g_strndup((const char *)bytes, length);
    g_auto(GStrv) parts = g_strsplit(text, "/", 5);
    guint64 revision;

    if (g_strv_length(parts) != 4 || !g_str_equal(parts[0], "1") ||
        !g_ascii_string_to_unsigned(parts[1], 10, 0, (guint64)newest, &revision, NULL) ||
        !g_utf8_validate(text, -1, NULL))
        return ch_refuse_bad_request("continue key is not valid");
    out->revision = (int64_t)revision;
    out->parts = g_steal_pointer(&parts);
    return NULL;
}

/* --- list ------------------------------------------------------------------------------------- */

typedef struct {
    ChCall *call;
    ChSelect *select;
    int64_t limit; /* 0: none */
    int64_t n_items;
    GString *items;       /* comma-separated texts */
    char *last_namespace; /* owned: of the last item taken */
    char *last_name;
    bool has_more;
    ChRefusal *refusal; /* what stopped the visit */
} Listing;

static void
listing_clear(Listing *listing)
{
    ch_select_free(listing->select);
    if (listing->items != NULL)
        g_string_free(listing->items, TRUE);
    g_free(listing->last_namespace);
    g_free(listing->last_name);
    ch_refusal_free(listing->refusal);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Listing, listing_clear)

/* (transfer full) (nullable): as an item of the list, when @object must be looked at for that */
static char *
render_item(const ChCall *call, ChJson *object)
{
    g_autoptr(ChJson) item = NULL;

    if (call->view.kind == CH_VIEW_TABLE)
        item = ch_view_row(&call->view, call->route.resource, object, call->now_us);
    else
        item = ch_view_metadata(&call->view, object);
    return ch_json_print(item, NULL);
}

static void
take_item(Listing *listing, const ChStoreKey *key, const char *text)
{
    if (listing->items->len > 0)
        g_string_append_c(listing->items, ',');
    g_string_append(listing->items, text);
    g_free(listing->last_namespace);
    g_free(listing->last_name);
    listing->last_namespace = g_strdup(key->namespace_);
    listing->last_name = g_strdup(key->name);
    listing->n_items++;
}

/* Objects are parsed only where the selector or the view must look into them. */
static bool
visit_object(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    Listing *listing = data;
    const bool is_plain = listing->call->view.kind == CH_VIEW_PLAIN;
    const bool is_all = ch_select_is_all(listing->select);
    g_autoptr(ChJson) object = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *rendered = NULL;

    if (!is_plain || !is_all) {
        object = ch_json_parse(text, (gssize)length, &error);
        if (object == NULL) {
            listing->refusal = ch_refuse_internal(error);
            return false;
        }
    }
    if (!is_all && !ch_select_matches(listing->select, object))
        return true;
    if (listing->limit > 0 && listing->n_items == listing->limit) {
        listing->has_more = true;
        return false;
    }
    rendered = is_plain ? NULL : render_item(listing->call, object);
    take_item(listing, key, is_plain ? text : rendered);
    return true;
}

static ChRefusal *
run_listing(Listing *listing, const Token *after)
{
    ChCall *call = listing->call;
    const ChStoreKey start = {
        .resource = call->resource_key,
        .namespace_ = after->parts != NULL ? after->parts[2] : "",
        .name = after->parts != NULL ? after->parts[3] : "",
    };
    g_autoptr(GError) error = NULL;

    listing->items = g_string_new(NULL);
    if (!ch_store_list(call->api->store,
                       call->resource_key,
                       call->route.namespace_,
                       after->parts != NULL ? &start : NULL,
                       visit_object,
                       listing,
                       &error))
        return ch_refuse_internal(error);
    return g_steal_pointer(&listing->refusal);
}

/* The list's envelope without its last member, which is the array of items. */
static ChJson *
make_envelope(const ChCall *call, int64_t revision, const char *token)
{
    const ChResource *resource = call->route.resource;
    g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, revision);
    g_autofree char *kind = NULL;
    g_autofree char *api_version = NULL;
    ChJson *list, *metadata;

    if (call->view.kind == CH_VIEW_TABLE) {
        list = ch_view_table_new(&call->view, resource, true);
        ch_json_remove(list, "rows");
    } else {
        const bool is_plain = call->view.kind == CH_VIEW_PLAIN;

        list = ch_json_new_object();
        kind = g_strconcat(is_plain ? resource->kind : "PartialObjectMetadata", "List", NULL);
        api_version = is_plain ? ch_resource_api_version(resource)
                               : g_strconcat("meta.k8s.io/", call->view.version, NULL);
        ch_json_set_string(list, "kind", kind);
        ch_json_set_string(list, "apiVersion", api_version);
    }
    metadata = ch_json_ensure_object(list, "metadata");
    ch_json_set_string(metadata, "resourceVersion", number);
    ch_json_set_string(metadata, "continue", token);
    return list;
}

static void
answer_list(Listing *listing, int64_t revision)
{
    ChCall *call = listing->call;
    const char *member = call->view.kind == CH_VIEW_TABLE ? "rows" : "items";
    g_autofree char *token = NULL;
    g_autoptr(ChJson) envelope = NULL;
    g_autofree char *head = NULL;
    gsize length;
    GString *text;

    if (listing->has_more)
        token = make_token(revision, listing->last_namespace, listing->last_name);
    envelope = make_envelope(call, revision, token);
    head = ch_json_print(envelope, &length);
    text = g_string_sized_new(length + listing->items->len + 32);
    g_string_append_len(text, head, (gssize)length - 1); /* without its '}' */
    g_string_append_printf(text, ",\"%s\":[", member);
    g_string_append_len(text, listing->items->str, (gssize)listing->items->len);
    g_string_append(text, "]}");
    call->answer->code = 200;
    call->answer->content_type = "application/json";
    call->answer->body = g_string_free_to_bytes(text);
}

/* @out_token: parts stay NULL for a first page */
static ChRefusal *
read_page(const ChCall *call, const Freshness *fresh, Token *out_token)
{
    const char *text = ch_query_get(call->params, "continue");
    ChRefusal *refusal;

    if (text == NULL || *text == '\0')
        return check_freshness(call, fresh);
    if (fresh->is_set)
        return ch_refuse_bad_request(
            "specifying resource version is not allowed when using continue");
    refusal = parse_token(text, ch_store_revision(call->api->store), out_token);
    /* pages after a change are not of one moment; the client evens that out by watching from the
     * first page's revision, while the history reaches back so far */
    if (refusal == NULL && out_token->revision < ch_history_oldest(call->api->history))
        refusal = ch_refusal_new(410,
                                 "Expired",
                                 "The provided continue parameter is too old to display a "
                                 "consistent list result. You can start a new list without the "
                                 "continue parameter.");
    return refusal;
}

static ChRefusal *
read_select(const ChCall *call, ChSelect **out_select)
{
    return ch_select_parse(call->route.resource,
                           ch_query_get(call->params, "labelSelector"),
                           ch_query_get(call->params, "fieldSelector"),
                           out_select);
}

static ChRefusal *
list_objects(ChCall *call, const Freshness *fresh)
{
    g_auto(Listing) listing = {.call = call};
    g_auto(GStrv) parts = NULL;
    Token token = {0};
    int64_t revision = ch_store_revision(call->api->store);
    ChRefusal *refusal = read_page(call, fresh, &token);

    parts = token.parts;
    if (refusal != NULL || (refusal = read_select(call, &listing.select)) != NULL ||
        (refusal = ch_query_int(call->params, "limit", 0, &listing.limit)) != NULL ||
        (refusal = run_listing(&listing, &token)) != NULL)
        return refusal;
    answer_list(&listing, token.parts != NULL ? token.revision : revision);
    return NULL;
}

/* --- watch ------------------------------------------------------------------------------------ */

static bool
collect_initial(const ChStoreKey *key, const char *text, gsize length, gpointer data)
{
    g_ptr_array_add(data, g_strndup(text, length));
    return true;
}

/* @out_initial: (transfer full): what is there now and matches, as texts */
static ChRefusal *
load_initial(ChCall *call, const ChSelect *select, GPtrArray **out_initial)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    if (!ch_store_list(call->api->store,
                       call->resource_key,
                       call->route.namespace_,
                       NULL,
                       collect_initial,
                       all,
                       &error))
        return ch_refuse_internal(error);
    for (guint i = all->len; i-- > 0 && !ch_select_is_all(select);) {
        g_autoptr(ChJson) object = ch_json_parse(g_ptr_array_index(all, i), -1, NULL);

        if (!ch_select_matches(select, object))
            g_ptr_array_remove_index(all, i);
    }
    *out_initial = g_steal_pointer(&all);
    return NULL;
}

/* sendInitialEvents: a list told by a watch. @out_wants: whether the current objects come first */
static ChRefusal *
read_initial(const ChCall *call, const Freshness *fresh, ChWatchSpec *spec, bool *out_wants)
{
    const char *text = ch_query_get(call->params, "sendInitialEvents");

    if (text == NULL || *text == '\0') {
        *out_wants = !fresh->is_set;
        return fresh->is_at_least || fresh->is_exact
                   ? ch_refuse_bad_request("resourceVersionMatch: Forbidden: "
                                           "resourceVersionMatch is forbidden for watch")
                   : NULL;
    }
    if (!fresh->is_at_least)
        return ch_refuse_bad_request("sendInitialEvents: Forbidden: sendInitialEvents requires "
                                     "setting resourceVersionMatch to NotOlderThan");
    *out_wants = ch_query_is_true(call->params, "sendInitialEvents");
    spec->ends_initial = *out_wants && spec->wants_bookmarks;
    return NULL;
}

static ChRefusal *
watch_objects(ChCall *call, const Freshness *fresh)
{
    const int64_t current = ch_store_revision(call->api->store);
    g_autoptr(ChSelect) select = NULL;
    ChWatchSpec spec = {0};
    GPtrArray *initial = NULL;
    int64_t timeout_s;
    bool wants_initial = false;
    ChRefusal *refusal;

    if (fresh->is_set && fresh->revision > current)
        return ch_refuse_too_new(fresh->revision, current);
    spec.wants_bookmarks = ch_query_is_true(call->params, "allowWatchBookmarks");
    if ((refusal = read_select(call, &select)) != NULL ||
        (refusal = ch_query_int(call->params, "timeoutSeconds", 0, &timeout_s)) != NULL ||
        (refusal = read_initial(call, fresh, &spec, &wants_initial)) != NULL ||
        (wants_initial && (refusal = load_initial(call, select, &initial)) != NULL))
        return refusal;
    spec.resource = call->route.resource;
    spec.namespace_ = g_strdup(call->route.namespace_);
    spec.select = g_steal_pointer(&select);
    spec.view = call->view;
    spec.revision = wants_initial || !fresh->is_set ? current : fresh->revision;
    if (timeout_s == 0)
        timeout_s = g_random_int_range(WATCH_MIN_S, 2 * WATCH_MIN_S);
    spec.timeout_us = MIN(timeout_s, WATCH_MAX_S) * CH_SECOND_US;
    call->answer->code = 200;
    call->answer->content_type = "application/json";
    call->answer->watch = ch_watch_new(call->api->history, &spec, initial);
    return NULL;
}

ChRefusal *
ch_verb_list(ChCall *call)
{
    Freshness fresh = {0};
    ChRefusal *refusal = read_freshness(call, &fresh);

    if (refusal != NULL)
        return refusal;
    return ch_query_is_true(call->params, "watch") ? watch_objects(call, &fresh)
                                                   : list_objects(call, &fresh);
}
