/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: the rules are those of reflector.h; this file carries them out. At any time
 * one thing is under way: a list request, a watch request, or a pause (the timer); `next` says what
 * follows the pause. Listed objects are collected and replace the store when the last page is in,
 * so a failed list changes nothing.
 */

#include "lib/kube/informer.h"

#include "lib/base/backoff.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/kube/list-splitter.h"
#include "lib/kube/reflector.h"
#include "lib/kube/watch-decoder.h"

#define LIST_DEADLINE_US (600 * CH_SECOND_US) /* a guard only; HTTP/2 pings notice sooner */
#define WATCH_GRACE_US   (60 * CH_SECOND_US)  /* for the server to end a watch as agreed */
/* So many in a row that last less than a second are reopened at once: something between us and the
 * server may cut each after its first event, and opening a watch is not throttled. */
#define MAX_BRIEF_WATCHES 10

#define ACCEPT_METADATA                                                                            \
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
#define ACCEPT_METADATA_LIST                                                                       \
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
#define KIND_METADATA "PartialObjectMetadata"

static const ChBackoffSpec backoff_spec = {
    .initial_us = 800 * CH_MS_US,
    .cap_us = 30 * CH_SECOND_US,
    .factor = 2.0,
    .jitter = 1.0,
    .reset_after_us = 120 * CH_SECOND_US,
};

struct ChInformer {
    ChKubeClient *client; /* borrowed */
    const ChKubeClock *clock;
    ChInformerSpec spec; /* strings owned */
    ChInformerHandlers handlers;
    gpointer data;

    GHashTable *store; /* key (in the object) -> owned ChObject */
    bool has_synced;

    ChReflector reflector;
    ChBackoff backoff;
    ChTimer *pause;
    void (*next)(ChInformer *informer); /* after the pause */
    ChTimer *resync;
    ChKubeCall *call; /* the request under way */

    ChListSplitter *splitter; /* of the page under way */
    GPtrArray *listed;        /* owned ChObjects of this list's pages */

    ChWatchDecoder *decoder;
    bool is_open; /* the watch: the server accepted it */
    guint64 n_events;
    int64_t opened_us;
    guint n_brief;       /* watches in a row */
    GError *watch_error; /* an ERROR event, or undecodable bytes */
};

static void begin_round(ChInformer *informer);
static void fetch_page(ChInformer *informer);
static void open_watch(ChInformer *informer);

/* ---- store and fan-out (spec 01 §4) ---- */

static void
upsert(ChInformer *informer, ChObject *object)
{
    const ChInformerHandlers *handlers = &informer->handlers;
    ChObject *cached = g_hash_table_lookup(informer->store, object->key);
    g_autoptr(ChObject) old = cached != NULL ? ch_object_ref(cached) : NULL;

    g_hash_table_replace(informer->store, object->key, ch_object_ref(object));
    if (old != NULL && handlers->on_update != NULL)
        handlers->on_update(informer->data, old, object);
    else if (old == NULL && handlers->on_add != NULL)
        handlers->on_add(informer->data, object);
}

static void delete (ChInformer *informer, ChObject *last)
{
    g_hash_table_remove(informer->store, last->key);
    if (informer->handlers.on_delete != NULL)
        informer->handlers.on_delete(informer->data, last);
}

/* The cached objects that the new list does not have. */
static GPtrArray *
find_vanished(ChInformer *informer)
{
    GPtrArray *vanished = g_ptr_array_new_with_free_func((GDestroyNotify)ch_object_unref);
    g_autoptr(GHashTable) keys = g_hash_table_new(g_str_hash, g_str_equal);
    GHashTableIter iter;
    gpointer key, object;

    for (guint i = 0; i < informer->listed->len; i++) {
        ChObject *listed = g_ptr_array_index(informer->listed, i);

        g_hash_table_add(keys, listed->key);
    }
    g_hash_table_iter_init(&iter, informer->store);
    while (g_hash_table_iter_next(&iter, &key, &object))
        if (!g_hash_table_contains(keys, key))
            g_ptr_array_add(vanished, ch_object_ref(object));
    return vanished;
}

static void
replace_store(ChInformer *informer)
{
    g_autoptr(GPtrArray) vanished = find_vanished(informer);
    g_autoptr(GPtrArray) listed = g_steal_pointer(&informer->listed);
    for (guint i = 0; i < vanished->len; i++)
        delete (informer, g_ptr_array_index(vanished, i));
    for (guint i = 0; i < listed->len; i++)
        upsert(informer, g_ptr_array_index(listed, i));
    if (informer->has_synced)
        return;
    informer->has_synced = true;
    if (informer->handlers.on_synced != NULL)
        informer->handlers.on_synced(informer->data);
}

static void
resync(gpointer data)
{
    ChInformer *informer = data;
    GHashTableIter iter;
    gpointer object;

    ch_timer_arm(informer->resync, ch_kube_clock_timer(informer->clock, informer->spec.resync_us));
    if (informer->handlers.on_update == NULL)
        return;
    g_hash_table_iter_init(&iter, informer->store);
    while (g_hash_table_iter_next(&iter, NULL, &object))
        informer->handlers.on_update(informer->data, object, object);
}

static ChObject *
make_object(ChInformer *informer, ChJson *json, GError **error)
{
    if (informer->spec.trim != NULL)
        informer->spec.trim(json);
    return ch_object_new(json, informer->spec.api_version, informer->spec.kind, error);
}

/* ---- rounds ---- */

static void
pause_then(ChInformer *informer, void (*next)(ChInformer *informer))
{
    const ChKubeClock *clock = informer->clock;
    const int64_t delay_us =
        ch_backoff_next(&informer->backoff, ch_kube_clock_now(clock), ch_kube_clock_random(clock));

    informer->next = next;
    ch_timer_arm(informer->pause, ch_kube_clock_timer(clock, delay_us));
}

static void
pause_over(gpointer data)
{
    ChInformer *informer = data;

    informer->next(informer);
}

static void
begin_round(ChInformer *informer)
{
    if (informer->spec.resync_us > 0)
        ch_timer_arm(informer->resync,
                     ch_kube_clock_timer(informer->clock, informer->spec.resync_us));
    ch_reflector_begin_list(&informer->reflector);
    fetch_page(informer);
}

/* ---- list (spec 01 §3.3) ---- */

static void
drop_listed(ChInformer *informer)
{
    g_clear_pointer(&informer->listed, g_ptr_array_unref);
}

/* An item that is cached in the same state costs no second copy. */
static bool
list_item(gpointer data, const char *text, gsize length, GError **error)
{
    ChInformer *informer = data;
    g_autoptr(ChJson) json = ch_json_parse(text, (gssize)length, error);
    g_autoptr(ChObject) object = json != NULL ? make_object(informer, json, error) : NULL;
    ChObject *cached;

    if (object == NULL)
        return false;
    if (!ch_reflector_may_keep(&informer->reflector, object->length))
        return ch_fail(
            error, CH_ERROR_LIMIT, "objects of more than %u bytes", CH_REFLECTOR_MAX_BYTES);
    cached = g_hash_table_lookup(informer->store, object->key);
    if (cached != NULL && ch_object_is_same_state(cached, object))
        g_ptr_array_add(informer->listed, ch_object_ref(cached));
    else
        g_ptr_array_add(informer->listed, g_steal_pointer(&object));
    return true;
}

static void
log_list_failure(ChInformer *informer, const GError *error)
{
    if (ch_kube_error_is_expired(error))
        ch_log_verbose(4, NULL, "%s: failed to list: %s", informer->spec.name, error->message);
    else if (!g_error_matches(error, CH_HTTP_ERROR, CH_HTTP_ERROR_EOF))
        ch_log_error(NULL, error, "%s: failed to list", informer->spec.name);
}

static void
list_react(ChInformer *informer, ChListReaction reaction, const GError *error)
{
    switch (reaction) {
    case CH_LIST_NEXT_PAGE:
        fetch_page(informer);
        return;
    case CH_LIST_RESTART:
        drop_listed(informer);
        fetch_page(informer);
        return;
    case CH_LIST_DONE:
        replace_store(informer);
        open_watch(informer);
        return;
    case CH_LIST_FAILED:
        log_list_failure(informer, error);
        drop_listed(informer);
        pause_then(informer, begin_round);
        return;
    case CH_LIST_INVALID:
        break;
    }
    g_assert_not_reached();
}

static void
page_failed(ChInformer *informer, const GError *error)
{
    g_clear_pointer(&informer->splitter, ch_list_splitter_free);
    list_react(informer, ch_reflector_page_failed(&informer->reflector, error), error);
}

static void
page_data(gpointer data, const uint8_t *bytes, gsize length)
{
    ChInformer *informer = data;
    g_autoptr(GError) error = NULL;

    if (ch_list_splitter_feed(informer->splitter, (const char *)bytes, length, &error))
        return;
    ch_kube_call_cancel(g_steal_pointer(&informer->call));
    page_failed(informer, error);
}

static void
page_end(gpointer data, const GError *error)
{
    ChInformer *informer = data;
    g_autoptr(GError) bad_list = NULL;
    g_autofree char *version = NULL;
    g_autofree char *token = NULL;

    informer->call = NULL;
    if (error == NULL) {
        (void)ch_list_splitter_finish(informer->splitter, &version, &token, &bad_list);
        error = bad_list;
    }
    if (error != NULL) {
        page_failed(informer, error);
        return;
    }
    g_clear_pointer(&informer->splitter, ch_list_splitter_free);
    list_react(informer, ch_reflector_page_done(&informer->reflector, version, token), NULL);
}

static void
fetch_page(ChInformer *informer)
{
    static const ChKubeSink sink = {.on_data = page_data, .on_end = page_end};
    const ChInformerSpec *spec = &informer->spec;
    const ChListQuery query = ch_reflector_list_query(&informer->reflector);
    g_autofree char *path =
        ch_reflector_list_path(&query, spec->path, spec->label_selector, spec->field_selector);
    const ChKubeRequest request = {
        .method = "GET",
        .path = path,
        .accept = spec->metadata_only ? ACCEPT_METADATA_LIST : NULL,
        .timeout_us = LIST_DEADLINE_US,
    };

    if (informer->listed == NULL)
        informer->listed = g_ptr_array_new_with_free_func((GDestroyNotify)ch_object_unref);
    informer->splitter = ch_list_splitter_new(list_item, informer);
    informer->call = ch_kube_client_stream(informer->client, &request, &sink, informer);
}

/* ---- watch (spec 01 §3.4) ---- */

static void
watch_over(ChInformer *informer, ChWatchOutcome outcome, const GError *error)
{
    const ChWatchRule *rule = ch_watch_rule(outcome);

    if (rule->is_quiet)
        ch_log_verbose(4,
                       NULL,
                       "%s: %s: %s",
                       informer->spec.name,
                       rule->text,
                       error != NULL ? error->message : "end of stream");
    else
        ch_log_warning(NULL, error, "%s: %s, listing again", informer->spec.name, rule->text);
    g_clear_pointer(&informer->decoder, ch_watch_decoder_free);

    switch (rule->reaction) {
    case CH_REACT_REOPEN:
        open_watch(informer);
        return;
    case CH_REACT_PAUSE_REOPEN:
        pause_then(informer, open_watch);
        return;
    case CH_REACT_PAUSE_RELIST:
        pause_then(informer, begin_round);
        return;
    case CH_REACT_INVALID:
        break;
    }
    g_assert_not_reached();
}

/* Objects of a kind that was not asked for are dropped. Decoders may leave the kind out. */
static bool
is_expected_kind(const ChInformer *informer, const ChJson *object)
{
    const char *kind = ch_json_string_at(object, "kind");

    return kind == NULL || g_str_equal(kind, informer->spec.kind) ||
           (informer->spec.metadata_only && g_str_equal(kind, KIND_METADATA));
}

static bool
apply_event(ChInformer *informer, ChFrameType type, ChJson *json, GError **error)
{
    g_autoptr(ChObject) object = make_object(informer, json, error);

    if (object == NULL)
        return false;
    if (type == CH_FRAME_DELETED)
        delete (informer, object);
    else
        upsert(informer, object);
    return true;
}

static bool
watch_frame(gpointer data, ChFrameType type, const char *type_text, ChJson *object)
{
    ChInformer *informer = data;
    g_autofree char *version = NULL;

    if (type == CH_FRAME_ERROR) {
        informer->watch_error = ch_kube_error_from_status(object);
        return false;
    }
    if (!is_expected_kind(informer, object)) {
        ch_log_verbose(3, NULL, "%s: event for another kind, ignoring", informer->spec.name);
        return true;
    }
    version = g_strdup(ch_json_string_at(object, "metadata", "resourceVersion"));
    if (type == CH_FRAME_UNKNOWN)
        ch_log_verbose(3, NULL, "%s: unknown event type, ignoring", informer->spec.name);
    else if (type != CH_FRAME_BOOKMARK &&
             !apply_event(informer, type, object, &informer->watch_error))
        return false;
    ch_reflector_saw(&informer->reflector, version);
    informer->n_events++;
    return true;
}

static void
watch_open(gpointer data)
{
    ChInformer *informer = data;

    informer->is_open = true;
}

static void
watch_data(gpointer data, const uint8_t *bytes, gsize length)
{
    ChInformer *informer = data;
    g_autoptr(GError) error = NULL;

    (void)ch_watch_decoder_feed(informer->decoder, (const char *)bytes, length, &error);
    if (error == NULL)
        error = g_steal_pointer(&informer->watch_error);
    if (error == NULL)
        return;
    ch_kube_call_cancel(g_steal_pointer(&informer->call));
    watch_over(informer, ch_watch_outcome_of_event(error), error);
}

/* The stream is over, or was never open. */
static ChWatchOutcome
outcome_of_end(ChInformer *informer, const GError *error)
{
    const int64_t lasted_us = ch_kube_clock_now(informer->clock) - informer->opened_us;
    ChWatchOutcome outcome;

    if (!informer->is_open && error != NULL)
        return ch_watch_outcome_of_open(error);
    outcome = ch_watch_outcome_of_end(error, informer->n_events, lasted_us);
    informer->n_brief = lasted_us < CH_SECOND_US ? informer->n_brief + 1 : 0;
    return outcome == CH_WATCH_ENDED && informer->n_brief > MAX_BRIEF_WATCHES ? CH_WATCH_ENDED_OFTEN
                                                                              : outcome;
}

static void
watch_end(gpointer data, const GError *error)
{
    ChInformer *informer = data;

    informer->call = NULL;
    watch_over(informer, outcome_of_end(informer, error), error);
}

static void
open_watch(ChInformer *informer)
{
    static const ChKubeSink sink = {
        .on_open = watch_open,
        .on_data = watch_data,
        .on_end = watch_end,
    };
    const ChInformerSpec *spec = &informer->spec;
    const guint timeout_s = ch_reflector_watch_timeout(ch_kube_clock_random(informer->clock));
    g_autofree char *path = ch_reflector_watch_path(informer->reflector.last_version,
                                                    timeout_s,
                                                    spec->path,
                                                    spec->label_selector,
                                                    spec->field_selector);
    const ChKubeRequest request = {
        .method = "GET",
        .path = path,
        .accept = spec->metadata_only ? ACCEPT_METADATA : NULL,
        .is_watch = true,
        .timeout_us = timeout_s * CH_SECOND_US + WATCH_GRACE_US,
    };

    informer->decoder = ch_watch_decoder_new(watch_frame, informer);
    informer->is_open = false;
    informer->n_events = 0;
    informer->opened_us = ch_kube_clock_now(informer->clock);
    informer->call = ch_kube_client_stream(informer->client, &request, &sink, informer);
}

/* ---- the object ---- */

ChInformer *
ch_informer_new(ChKubeClient *client,
                const ChInformerSpec *spec,
                const ChInformerHandlers *handlers,
                gpointer data)
{
    ChInformer *informer = g_new0(ChInformer, 1);
    ChLoop *loop = ch_kube_client_peek_loop(client);

    informer->client = client;
    informer->clock = ch_kube_client_peek_clock(client);
    informer->spec = *spec;
    informer->spec.name = g_strdup(spec->name);
    informer->spec.path = g_strdup(spec->path);
    informer->spec.api_version = g_strdup(spec->api_version);
    informer->spec.kind = g_strdup(spec->kind);
    informer->spec.label_selector = g_strdup(spec->label_selector);
    informer->spec.field_selector = g_strdup(spec->field_selector);
    informer->handlers = *handlers;
    informer->data = data;
    informer->store =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)ch_object_unref);
    ch_reflector_init(&informer->reflector);
    ch_backoff_init(&informer->backoff, &backoff_spec);
    informer->pause = ch_timer_new(loop, pause_over, informer);
    informer->resync = ch_timer_new(loop, resync, informer);
    return informer;
}

void
ch_informer_start(ChInformer *informer)
{
    g_return_if_fail(informer->call == NULL && !ch_timer_is_armed(informer->pause));
    begin_round(informer);
}

static void
free_spec(ChInformerSpec *spec)
{
    g_free((char *)spec->name);
    g_free((char *)spec->path);
    g_free((char *)spec->api_version);
    g_free((char *)spec->kind);
    g_free((char *)spec->label_selector);
    g_free((char *)spec->field_selector);
}

void
ch_informer_free(ChInformer *informer)
{
    if (informer == NULL)
        return;
    if (informer->call != NULL)
        ch_kube_call_cancel(informer->call);
    ch_timer_free(informer->pause);
    ch_timer_free(informer->resync);
    ch_list_splitter_free(informer->splitter);
    drop_listed(informer);
    ch_watch_decoder_free(informer->decoder);
    g_clear_error(&informer->watch_error);
    ch_reflector_clear(&informer->reflector);
    g_hash_table_unref(informer->store);
    free_spec(&informer->spec);
    g_free(informer);
}

bool
ch_informer_has_synced(const ChInformer *informer)
{
    return informer->has_synced;
}

ChObject *
ch_informer_lookup(const ChInformer *informer, const char *key)
{
    return g_hash_table_lookup(informer->store, key);
}

gsize
ch_informer_count(const ChInformer *informer)
{
    return g_hash_table_size(informer->store);
}

void
ch_informer_foreach(const ChInformer *informer,
                    void (*func)(gpointer data, ChObject *object),
                    gpointer data)
{
    GHashTableIter iter;
    gpointer object;

    g_hash_table_iter_init(&iter, informer->store);
    while (g_hash_table_iter_next(&iter, NULL, &object))
        func(data, object);
}
