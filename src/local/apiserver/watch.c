/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/watch.h"

#define BATCH_BYTES (64u << 10)

struct ChWatch {
    ChHistory *history; /* borrowed */
    ChWatchSpec spec;   /* members owned */
    GPtrArray *initial; /* owned (nullable): objects still to come first */
    guint n_initial_sent;
    guint64 position; /* in the history */
    bool has_sent;    /* a table's columns were told */
    bool is_late;     /* asked for changes that are compacted away */
    bool is_over;
};

ChWatch *
ch_watch_new(ChHistory *history, ChWatchSpec *spec, GPtrArray *initial)
{
    ChWatch *watch = g_new0(ChWatch, 1);

    watch->history = history;
    watch->spec = *spec;
    *spec = (ChWatchSpec){0};
    watch->initial = initial;
    watch->is_late = watch->spec.revision < ch_history_oldest(history);
    watch->position = ch_history_seek(history, watch->spec.revision);
    return watch;
}

void
ch_watch_free(ChWatch *watch)
{
    if (watch == NULL)
        return;
    g_free(watch->spec.namespace_);
    ch_select_free(watch->spec.select);
    g_clear_pointer(&watch->initial, g_ptr_array_unref);
    g_free(watch);
}

const ChWatchSpec *
ch_watch_peek_spec(const ChWatch *watch)
{
    return &watch->spec;
}

bool
ch_watch_is_over(const ChWatch *watch)
{
    return watch->is_over;
}

static void
add_frame(GString *frames, const char *type, const char *object)
{
    g_string_append_printf(frames, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
}

/* An object in the client's view. @revision: > 0: show it with this resourceVersion. */
static void
add_object(ChWatch *watch,
           GString *frames,
           const char *type,
           const char *text,
           int64_t revision,
           int64_t now_us)
{
    g_autoptr(ChJson) object = NULL;
    g_autoptr(ChJson) shown = NULL;
    g_autofree char *printed = NULL;

    if (watch->spec.view.kind == CH_VIEW_PLAIN && revision == 0) {
        add_frame(frames, type, text);
        return;
    }
    object = ch_json_parse(text, -1, NULL);
    g_return_if_fail(object != NULL); /* it was printed by this program */
    if (revision > 0) {
        g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, revision);

        ch_json_set_string(ch_json_at(object, "metadata"), "resourceVersion", number);
    }
    shown = watch->spec.view.kind == CH_VIEW_PLAIN
                ? ch_json_ref(object)
                : ch_view_object(
                      &watch->spec.view, watch->spec.resource, object, !watch->has_sent, now_us);
    watch->has_sent = true;
    printed = ch_json_print(shown, NULL);
    add_frame(frames, type, printed);
}

/* What a change means to this client: by what matched before and what matches now. */
static void
add_change(ChWatch *watch, GString *frames, const ChChange *change, int64_t now_us)
{
    const ChWatchSpec *spec = &watch->spec;
    bool did_match, does_match;

    if (change->resource != spec->resource ||
        (spec->namespace_ != NULL && !g_str_equal(spec->namespace_, change->namespace_)))
        return;
    did_match =
        change->previous_traits != NULL && ch_select_matches(spec->select, change->previous_traits);
    does_match =
        change->type != CH_CHANGE_DELETED && ch_select_matches(spec->select, change->traits);
    if (does_match)
        add_object(watch, frames, did_match ? "MODIFIED" : "ADDED", change->object, 0, now_us);
    else if (did_match && change->type == CH_CHANGE_DELETED)
        add_object(watch, frames, "DELETED", change->object, 0, now_us);
    else if (did_match)
        /* it left the selection: shown as the client knew it, at the revision of the change */
        add_object(watch, frames, "DELETED", change->previous, change->revision, now_us);
}

/* @annotation: (nullable): set to "true" */
static void
add_bookmark(const ChWatch *watch, GString *frames, int64_t revision, const char *annotation)
{
    const bool is_plain = watch->spec.view.kind == CH_VIEW_PLAIN;
    g_autoptr(ChJson) object = ch_json_new_object();
    g_autofree char *version = NULL;
    g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, revision);
    g_autofree char *printed = NULL;
    ChJson *metadata;

    version = is_plain ? ch_resource_api_version(watch->spec.resource)
                       : g_strconcat("meta.k8s.io/", watch->spec.view.version, NULL);
    ch_json_set_string(object,
                       "kind",
                       is_plain                                 ? watch->spec.resource->kind
                       : watch->spec.view.kind == CH_VIEW_TABLE ? "Table"
                                                                : "PartialObjectMetadata");
    ch_json_set_string(object, "apiVersion", version);
    metadata = ch_json_ensure_object(object, "metadata");
    ch_json_set_string(metadata, "resourceVersion", number);
    if (annotation != NULL)
        ch_json_set_string(ch_json_ensure_object(metadata, "annotations"), annotation, "true");
    printed = ch_json_print(object, NULL);
    add_frame(frames, "BOOKMARK", printed);
}

static void
add_lost(ChWatch *watch, GString *frames)
{
    g_autoptr(ChRefusal) refusal =
        ch_refuse_expired(watch->spec.revision, ch_history_oldest(watch->history));
    g_autofree char *printed = ch_json_print(refusal->body, NULL);

    add_frame(frames, "ERROR", printed);
    watch->is_over = true;
}

static void
add_initial(ChWatch *watch, GString *frames, int64_t now_us)
{
    while (watch->n_initial_sent < watch->initial->len && frames->len < BATCH_BYTES)
        add_object(watch,
                   frames,
                   "ADDED",
                   g_ptr_array_index(watch->initial, watch->n_initial_sent++),
                   0,
                   now_us);
    if (watch->n_initial_sent < watch->initial->len)
        return;
    g_clear_pointer(&watch->initial, g_ptr_array_unref);
    if (watch->spec.ends_initial)
        add_bookmark(watch, frames, watch->spec.revision, "k8s.io/initial-events-end");
}

GBytes *
ch_watch_next(ChWatch *watch, int64_t now_us)
{
    g_autoptr(GString) frames = g_string_new(NULL);
    const ChChange *change = NULL;
    ChHistoryOutcome outcome = CH_HISTORY_CHANGE;

    if (watch->initial != NULL)
        add_initial(watch, frames, now_us);
    while (watch->initial == NULL && !watch->is_over && outcome != CH_HISTORY_NONE &&
           frames->len < BATCH_BYTES) {
        outcome = watch->is_late ? CH_HISTORY_LOST
                                 : ch_history_get(watch->history, watch->position, &change);
        if (outcome == CH_HISTORY_LOST) {
            add_lost(watch, frames);
        } else if (outcome == CH_HISTORY_CHANGE) {
            watch->position++;
            watch->spec.revision = change->revision;
            add_change(watch, frames, change, now_us);
        }
    }
    return frames->len == 0 ? NULL : g_string_free_to_bytes(g_steal_pointer(&frames));
}

GBytes *
ch_watch_bookmark(const ChWatch *watch)
{
    g_autoptr(GString) frames = g_string_new(NULL);

    add_bookmark(watch, frames, ch_history_revision(watch->history), NULL);
    return g_string_free_to_bytes(g_steal_pointer(&frames));
}
