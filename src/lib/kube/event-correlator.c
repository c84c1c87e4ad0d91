/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three steps in this order, each with a cache of its own:
 *   aggregate  by everything but the message: the tenth different message turns the event into an
 *              aggregate, whose key is the group's
 *   count      by that key, or by everything: a repetition continues the stored name and count
 *   filter     by object and type: a bucket of 25
 * Keys are digests, since a message (a launcher's, even) may be long and 4096 of them are kept. All
 * three caches full are 1 MB: as small as it goes, since each VM that ever ran leaves entries until
 * others push them out.
 */

#include "lib/kube/event-correlator.h"

#include "lib/base/time.h"
#include "lib/kube/lru.h"
#include "lib/kube/names.h"
#include "lib/kube/token-bucket.h"

#include <string.h>

#define CACHE_ENTRIES    4096
#define MAX_DIFFERENT    9 /* messages of a group that pass one by one */
#define GROUP_FORGETS_US (600 * CH_SECOND_US)
#define SPAM_BURST       25
#define SPAM_PER_SECOND  (1.0 / 300)
#define AGGREGATE_PREFIX "(combined from similar events): "

/* Most groups have one message all their life. */
typedef struct {
    uint64_t first;   /* its digest */
    uint64_t *others; /* owned (nullable): of the further ones */
    int64_t last_us;
    guint n_messages;
} Group;

typedef struct {
    char *name;
    int64_t first_us;
    int64_t count;
} Observation;

struct ChEventCorrelator {
    char *component;
    char *host;
    ChLru *groups;       /* Group */
    ChLru *observations; /* Observation */
    ChLru *spam;         /* ChTokenBucket */
};

/* An event on its way through the steps. */
typedef struct {
    const ChEvent *event;
    ChLruKey key; /* of the observation */
    char *name;
    char *message;
    int64_t first_us, last_us; /* wall */
    int64_t count;
    bool is_aggregate;
} Draft;

static void
draft_clear(Draft *draft)
{
    g_clear_pointer(&draft->name, g_free);
    g_clear_pointer(&draft->message, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Draft, draft_clear)

static void
group_clear(gpointer data)
{
    g_free(((Group *)data)->others);
}

static void
observation_clear(gpointer data)
{
    g_free(((Observation *)data)->name);
}

ChEventCorrelator *
ch_event_correlator_new(const char *component, const char *host)
{
    ChEventCorrelator *correlator = g_new0(ChEventCorrelator, 1);

    correlator->component = g_strdup(component);
    correlator->host = g_strdup(host);
    correlator->groups = ch_lru_new(CACHE_ENTRIES, sizeof(Group), group_clear);
    correlator->observations = ch_lru_new(CACHE_ENTRIES, sizeof(Observation), observation_clear);
    correlator->spam = ch_lru_new(CACHE_ENTRIES, sizeof(ChTokenBucket), NULL);
    return correlator;
}

void
ch_event_correlator_free(ChEventCorrelator *correlator)
{
    if (correlator == NULL)
        return;
    g_free(correlator->component);
    g_free(correlator->host);
    ch_lru_free(correlator->groups);
    ch_lru_free(correlator->observations);
    ch_lru_free(correlator->spam);
    g_free(correlator);
}

bool
ch_event_type_is_valid(const char *type)
{
    return g_strcmp0(type, "Normal") == 0 || g_strcmp0(type, "Warning") == 0;
}

/* Ends a list of texts, among which NULL means empty. */
static const char END[] = "";

static ChLruKey
digest(const char *first, ...)
{
    guint8 bytes[32];
    gsize length = sizeof(bytes);
    ChLruKey key;
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    va_list texts;

    va_start(texts, first);
    for (const char *text = first; text != END; text = va_arg(texts, const char *))
        g_checksum_update(sum,
                          (const guchar *)(text != NULL ? text : ""),
                          text != NULL ? (gssize)strlen(text) + 1 : 1); /* its NUL parts them */
    va_end(texts);
    g_checksum_get_digest(sum, bytes, &length);
    memcpy(&key, bytes, sizeof(key));
    return key;
}

/* The source is the same for all events of a correlator and part of no key. */
static ChLruKey
full_key(const ChEvent *e, const char *message)
{
    return digest(e->kind,
                  e->namespace_,
                  e->name,
                  e->field_path,
                  e->uid,
                  e->api_version,
                  e->type,
                  e->reason,
                  message,
                  END);
}

static ChLruKey
group_key(const ChEvent *e)
{
    return digest(
        "group", e->kind, e->namespace_, e->name, e->uid, e->api_version, e->type, e->reason, END);
}

static ChLruKey
spam_key(const ChEvent *e)
{
    return digest(e->kind, e->namespace_, e->name, e->uid, e->api_version, e->type, END);
}

static const char *
or_empty(const char *text)
{
    return text != NULL ? text : "";
}

/* (transfer full) */
static char *
event_name(const char *object_name, int64_t wall_ns, const char *uuid)
{
    g_autofree char *name =
        g_strdup_printf("%s.%" G_GINT64_MODIFIER "x", or_empty(object_name), wall_ns);

    return ch_name_is_dns_subdomain(name) ? g_steal_pointer(&name) : g_strdup(uuid);
}

static Group *
fetch_group(ChEventCorrelator *correlator, const ChLruKey *key, int64_t now_us)
{
    Group *group = ch_lru_lookup(correlator->groups, key);

    if (group == NULL || now_us - group->last_us > GROUP_FORGETS_US)
        group = ch_lru_insert(correlator->groups, key);
    group->last_us = now_us;
    return group;
}

/* Returns: whether the message is among the first different ones. Which ones are remembered is
 * nobody's business upstream; here it is the first nine, so that those go on being counted. */
static bool
group_admits(Group *group, const char *message)
{
    const ChLruKey key = digest(message, END);
    uint64_t sum;

    memcpy(&sum, &key, sizeof(sum));
    for (guint i = 0; i < group->n_messages; i++)
        if ((i == 0 ? group->first : group->others[i - 1]) == sum)
            return true;
    if (group->n_messages == MAX_DIFFERENT)
        return false;
    if (group->n_messages == 0) {
        group->first = sum;
    } else {
        group->others = g_renew(uint64_t, group->others, group->n_messages);
        group->others[group->n_messages - 1] = sum;
    }
    group->n_messages++;
    return true;
}

static void
aggregate(
    ChEventCorrelator *correlator, Draft *draft, int64_t wall_ns, int64_t now_us, const char *uuid)
{
    const ChEvent *event = draft->event;
    const ChLruKey key = group_key(event);

    if (group_admits(fetch_group(correlator, &key, now_us), event->message)) {
        draft->key = full_key(event, event->message);
        draft->name = event_name(event->name, event->wall_ns, uuid);
        draft->message = g_strdup(or_empty(event->message));
        draft->first_us = draft->last_us = event->wall_ns / 1000;
        return;
    }
    draft->key = key;
    draft->name = event_name(event->name, wall_ns, uuid);
    draft->message = g_strconcat(AGGREGATE_PREFIX, or_empty(event->message), NULL);
    draft->first_us = draft->last_us = wall_ns / 1000;
    draft->is_aggregate = true;
}

static void
remember(ChEventCorrelator *correlator, const ChLruKey *key, const Observation *observation)
{
    Observation *copy = ch_lru_insert(correlator->observations, key);

    *copy = *observation;
    copy->name = g_strdup(observation->name);
}

static void
count(ChEventCorrelator *correlator, Draft *draft)
{
    const Observation *last = ch_lru_lookup(correlator->observations, &draft->key);

    draft->count = 1;
    if (last != NULL) {
        g_free(draft->name);
        draft->name = g_strdup(last->name);
        draft->first_us = last->first_us;
        draft->count = last->count + 1;
    }
    remember(correlator, &draft->key, &(Observation){draft->name, draft->first_us, draft->count});
}

static bool
passes_filter(ChEventCorrelator *correlator, const ChEvent *event, int64_t now_us)
{
    const ChLruKey key = spam_key(event);
    ChTokenBucket *bucket = ch_lru_lookup(correlator->spam, &key);

    if (bucket == NULL) {
        bucket = ch_lru_insert(correlator->spam, &key);
        ch_token_bucket_init(bucket, SPAM_PER_SECOND, SPAM_BURST, now_us);
    }
    return ch_token_bucket_take(bucket, now_us);
}

static void
set_unless_empty(ChJson *object, const char *key, const char *text)
{
    if (text != NULL && *text != '\0')
        ch_json_set_string(object, key, text);
}

static void
set_time(ChJson *object, const char *key, int64_t wall_us)
{
    g_autofree char *text = ch_time_format(wall_us);

    ch_json_set_string(object, key, text);
}

static void
add_involved_object(ChJson *document, const ChEvent *event)
{
    ChJson *object = ch_json_ensure_object(document, "involvedObject");

    set_unless_empty(object, "kind", event->kind);
    set_unless_empty(object, "namespace", event->namespace_);
    set_unless_empty(object, "name", event->name);
    set_unless_empty(object, "uid", event->uid);
    set_unless_empty(object, "apiVersion", event->api_version);
    set_unless_empty(object, "resourceVersion", event->resource_version);
    set_unless_empty(object, "fieldPath", event->field_path);
}

/* (transfer full) */
static ChJson *
build_document(const ChEventCorrelator *correlator, const Draft *draft, const char *namespace_)
{
    ChJson *document = ch_json_new_object();
    ChJson *metadata, *source;

    ch_json_set_string(document, "kind", "Event");
    ch_json_set_string(document, "apiVersion", "v1");
    metadata = ch_json_ensure_object(document, "metadata");
    ch_json_set_string(metadata, "name", draft->name);
    ch_json_set_string(metadata, "namespace", namespace_);
    add_involved_object(document, draft->event);
    set_unless_empty(document, "reason", draft->event->reason);
    set_unless_empty(document, "message", draft->message);
    source = ch_json_ensure_object(document, "source");
    set_unless_empty(source, "component", correlator->component);
    set_unless_empty(source, "host", correlator->host);
    set_time(document, "firstTimestamp", draft->first_us);
    set_time(document, "lastTimestamp", draft->last_us);
    ch_json_set_int(document, "count", draft->count);
    ch_json_set_string(document, "type", draft->event->type);
    ch_json_set(document, "eventTime", NULL);
    ch_json_set_string(
        document, "reportingComponent", draft->is_aggregate ? "" : correlator->component);
    ch_json_set_string(document, "reportingInstance", draft->is_aggregate ? "" : correlator->host);
    return document;
}

/* (transfer full) */
static ChJson *
build_patch(const Draft *draft)
{
    ChJson *patch = ch_json_new_object();

    ch_json_set_int(patch, "count", draft->count);
    set_time(patch, "lastTimestamp", draft->last_us);
    ch_json_set_string(patch, "message", draft->message);
    return patch;
}

bool
ch_event_correlator_take(ChEventCorrelator *correlator,
                         const ChEvent *event,
                         int64_t wall_ns,
                         int64_t now_us,
                         const char *uuid,
                         ChEventWrite *out_write)
{
    g_auto(Draft) draft = {.event = event};
    const bool has_namespace = event->namespace_ != NULL && *event->namespace_ != '\0';

    aggregate(correlator, &draft, wall_ns, now_us, uuid);
    count(correlator, &draft);
    if (!passes_filter(correlator, event, now_us))
        return false;

    *out_write = (ChEventWrite){
        .namespace_ = g_strdup(has_namespace ? event->namespace_ : "default"),
        .patch = draft.count > 1 ? build_patch(&draft) : NULL,
    };
    out_write->document = build_document(correlator, &draft, out_write->namespace_);
    out_write->name = g_steal_pointer(&draft.name);
    return true;
}

void
ch_event_correlator_observe(ChEventCorrelator *correlator, const ChJson *answer)
{
    const ChJson *object = ch_json_at(answer, "involvedObject");
    const ChEvent event = {
        .kind = ch_json_string_at(object, "kind"),
        .api_version = ch_json_string_at(object, "apiVersion"),
        .namespace_ = ch_json_string_at(object, "namespace"),
        .name = ch_json_string_at(object, "name"),
        .uid = ch_json_string_at(object, "uid"),
        .field_path = ch_json_string_at(object, "fieldPath"),
        .type = ch_json_string_at(answer, "type"),
        .reason = ch_json_string_at(answer, "reason"),
    };
    const char *first = ch_json_string_at(answer, "firstTimestamp");
    Observation observation = {.name = (char *)ch_json_string_at(answer, "metadata", "name")};
    ChLruKey key;

    if (observation.name == NULL || first == NULL || !ch_json_is_object(object) ||
        !ch_json_int_at(answer, &observation.count, "count") || observation.count < 1 ||
        observation.count >= G_MAXINT32 || !ch_time_parse(first, &observation.first_us, NULL))
        return;
    key = full_key(&event, ch_json_string_at(answer, "message"));
    remember(correlator, &key, &observation);
}

void
ch_event_write_clear(ChEventWrite *write)
{
    g_clear_pointer(&write->namespace_, g_free);
    g_clear_pointer(&write->name, g_free);
    g_clear_pointer(&write->document, ch_json_unref);
    g_clear_pointer(&write->patch, ch_json_unref);
}
