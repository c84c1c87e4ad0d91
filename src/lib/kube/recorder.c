/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: any thread puts an event into the input queue and wakes the loop; the loop
 * moves what is there to the writer's queue. The writer takes one event at a time: correlation,
 * then PATCH or POST, and only after the answer the next. While the API server is away it holds on
 * to its event for up to twelve tries and everything behind waits: the order is never given up.
 * Both queues are bounded; what does not fit is dropped, newest first.
 */

#include "lib/kube/recorder.h"

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/kube/event-correlator.h"

#define QUEUE_LENGTH     1000
#define MAX_TRIES        12
#define RETRY_US         (10 * CH_SECOND_US)
#define WRITE_TIMEOUT_US (60 * CH_SECOND_US) /* a guard: the API server gives up sooner */

#define PATCH_TYPE "application/strategic-merge-patch+json"

/* What the API's validation lets through, roughly: a guest's or launcher's text must not grow the
 * queues. */
#define MAX_REASON_BYTES  1024
#define MAX_MESSAGE_BYTES (16 << 10)

struct ChRecorder {
    atomic_uint refs;     /* the owner's, and one of the post under way */
    ChKubeClient *client; /* borrowed; NULL once the owner freed the recorder (loop thread) */
    ChLoop *loop;         /* borrowed */
    const ChKubeClock *clock;
    ChEventCorrelator *correlator;

    pthread_mutex_t lock; /* guards the next four; nothing is called with it held */
    GQueue input;         /* of Entry */
    int64_t last_ns;      /* of the last entry */
    bool is_posted;       /* the loop has been told */
    bool has_complained;  /* that the queue is full; until there is room again */

    /* Loop thread only. */
    GQueue pending; /* of Entry */
    bool has_write;
    ChEventWrite write; /* the one under way */
    bool is_patching;   /* otherwise POST */
    guint n_tries;
    ChTimer *retry;
    ChKubeCall *call;
    void (*flushed)(gpointer data); /* nullable: waits for the end of what is pending */
    gpointer flushed_data;
};

typedef struct {
    ChObjectRef object; /* strings owned */
    char *type, *reason, *message;
    int64_t wall_ns;
} Entry;

static void write_next(ChRecorder *recorder);

/* ---- entries ---- */

/* (transfer full) at most @most bytes of it, cut between characters */
static char *
dup_bounded(const char *text, gsize most)
{
    g_autofree char *valid = g_utf8_make_valid(text != NULL ? text : "", -1);
    gsize length = strlen(valid);

    if (length <= most)
        return g_steal_pointer(&valid);
    for (length = most; ((guchar)valid[length] & 0xc0) == 0x80; length--)
        ;
    return g_strndup(valid, length);
}

static Entry *
entry_new(const ChObjectRef *object, const char *type, const char *reason, const char *message)
{
    Entry *entry = g_new0(Entry, 1);

    entry->object = (ChObjectRef){
        .kind = g_strdup(object->kind),
        .api_version = g_strdup(object->api_version),
        .namespace_ = g_strdup(object->namespace_),
        .name = g_strdup(object->name),
        .uid = g_strdup(object->uid),
        .resource_version = g_strdup(object->resource_version),
    };
    entry->type = g_strdup(type);
    entry->reason = dup_bounded(reason, MAX_REASON_BYTES);
    entry->message = dup_bounded(message, MAX_MESSAGE_BYTES);
    return entry;
}

static void
entry_free(gpointer data)
{
    Entry *entry = data;

    g_free((char *)entry->object.kind);
    g_free((char *)entry->object.api_version);
    g_free((char *)entry->object.namespace_);
    g_free((char *)entry->object.name);
    g_free((char *)entry->object.uid);
    g_free((char *)entry->object.resource_version);
    g_free(entry->type);
    g_free(entry->reason);
    g_free(entry->message);
    g_free(entry);
}

static void
clear_entries(GQueue *queue)
{
    g_queue_clear_full(queue, entry_free);
}

/* ---- the writer (spec 01 §8.3, 8.4) ---- */

static void
write_over(ChRecorder *recorder)
{
    ch_event_write_clear(&recorder->write);
    recorder->has_write = false;
    write_next(recorder);
}

/* No answer, or one that makes no sense: the same event again, later. */
static void
try_later(ChRecorder *recorder, const GError *error)
{
    const ChKubeClock *clock = recorder->clock;
    /* The agents of a cluster shall not come back all at once. */
    const double share = recorder->n_tries == 0 ? ch_kube_clock_random(clock) : 1.0;

    if (++recorder->n_tries >= MAX_TRIES) {
        ch_log_error(NULL, error, "unable to write an event after %d tries, dropping", MAX_TRIES);
        write_over(recorder);
        return;
    }
    ch_timer_arm(recorder->retry, ch_kube_clock_timer(clock, (int64_t)(share * RETRY_US)));
}

static void send_write(ChRecorder *recorder, bool is_patching);

static bool
is_event(const ChJson *json)
{
    return g_strcmp0(ch_json_string_at(json, "kind"), "Event") == 0;
}

static void
write_done(gpointer data, GBytes *body, const GError *error)
{
    ChRecorder *recorder = data;
    g_autoptr(GError) nonsense = NULL;
    g_autoptr(ChJson) answer = NULL;

    recorder->call = NULL;
    if (recorder->is_patching && g_error_matches(error, CH_KUBE_ERROR, 404)) {
        send_write(recorder, false); /* the event was removed meanwhile */
        return;
    }
    if (error != NULL && error->domain == CH_KUBE_ERROR) {
        ch_log_verbose(3, NULL, "the API server refused an event, dropping: %s", error->message);
        write_over(recorder);
        return;
    }
    if (error == NULL)
        answer =
            ch_json_parse(g_bytes_get_data(body, NULL), (gssize)g_bytes_get_size(body), &nonsense);
    if (!is_event(answer)) {
        try_later(recorder, error != NULL ? error : nonsense);
        return;
    }
    ch_event_correlator_observe(recorder->correlator, answer);
    write_over(recorder);
}

static void
send_write(ChRecorder *recorder, bool is_patching)
{
    const ChEventWrite *write = &recorder->write;
    g_autofree char *body = ch_json_print(is_patching ? write->patch : write->document, NULL);
    g_autofree char *namespace_ = g_uri_escape_string(write->namespace_, NULL, FALSE);
    g_autofree char *name = g_uri_escape_string(write->name, NULL, FALSE);
    g_autofree char *path = g_strdup_printf("/api/v1/namespaces/%s/events%s%s",
                                            namespace_,
                                            is_patching ? "/" : "",
                                            is_patching ? name : "");
    const ChKubeRequest request = {
        .method = is_patching ? "PATCH" : "POST",
        .path = path,
        .content_type = is_patching ? PATCH_TYPE : NULL,
        .body = body,
        .timeout_us = WRITE_TIMEOUT_US,
    };

    recorder->is_patching = is_patching;
    recorder->call = ch_kube_client_start(recorder->client, &request, write_done, recorder);
}

static void
retry(gpointer data)
{
    ChRecorder *recorder = data;

    send_write(recorder, recorder->write.patch != NULL);
}

/* Returns: false: the spam filter dropped it */
static bool
correlate(ChRecorder *recorder, const Entry *entry)
{
    const ChKubeClock *clock = recorder->clock;
    g_autofree char *uuid = g_uuid_string_random();
    const ChEvent event = {
        .kind = entry->object.kind,
        .api_version = entry->object.api_version,
        .namespace_ = entry->object.namespace_,
        .name = entry->object.name,
        .uid = entry->object.uid,
        .resource_version = entry->object.resource_version,
        .type = entry->type,
        .reason = entry->reason,
        .message = entry->message,
        .wall_ns = entry->wall_ns,
    };

    return ch_event_correlator_take(recorder->correlator,
                                    &event,
                                    ch_kube_clock_wall(clock) * 1000,
                                    ch_kube_clock_now(clock),
                                    uuid,
                                    &recorder->write);
}

static void
tell_flushed(ChRecorder *recorder)
{
    void (*done)(gpointer data) = recorder->flushed;

    recorder->flushed = NULL;
    if (done != NULL)
        done(recorder->flushed_data);
}

/* Starts on the next event, if there is one and none is under way. */
static void
write_next(ChRecorder *recorder)
{
    while (!recorder->has_write) {
        Entry *entry = g_queue_pop_head(&recorder->pending);

        if (entry == NULL) {
            tell_flushed(recorder);
            return;
        }
        recorder->has_write = correlate(recorder, entry);
        entry_free(entry);
        if (!recorder->has_write)
            continue;
        recorder->n_tries = 0;
        send_write(recorder, recorder->write.patch != NULL);
    }
}

/* ---- from any thread to the writer ---- */

static void
recorder_unref(gpointer data)
{
    ChRecorder *recorder = data;

    if (atomic_fetch_sub_explicit(&recorder->refs, 1, memory_order_acq_rel) != 1)
        return;
    clear_entries(&recorder->input);
    pthread_mutex_destroy(&recorder->lock);
    g_free(recorder);
}

static void
take_input(gpointer data) /* loop thread */
{
    ChRecorder *recorder = data;
    GQueue input;
    Entry *entry;

    pthread_mutex_lock(&recorder->lock);
    input = recorder->input;
    g_queue_init(&recorder->input);
    recorder->is_posted = false;
    recorder->has_complained = false;
    pthread_mutex_unlock(&recorder->lock);

    while ((entry = g_queue_pop_head(&input)) != NULL) {
        const bool is_dropped =
            recorder->client == NULL || g_queue_get_length(&recorder->pending) >= QUEUE_LENGTH;

        if (is_dropped)
            entry_free(entry);
        else
            g_queue_push_tail(&recorder->pending, entry);
    }
    if (recorder->client != NULL)
        write_next(recorder);
}

/* An event is named by its object and its time: two of one object within a microsecond must not
 * have the same name, or the server refuses the second. With the lock held. */
static int64_t
take_time(ChRecorder *recorder, int64_t wall_us)
{
    const int64_t since_ns = recorder->last_ns - wall_us * 1000;

    recorder->last_ns = since_ns >= 0 && since_ns < 1000 ? recorder->last_ns + 1 : wall_us * 1000;
    return recorder->last_ns;
}

void
ch_recorder_event(ChRecorder *recorder,
                  const ChObjectRef *object,
                  const char *type,
                  const char *reason,
                  const char *message)
{
    const int64_t wall_us = ch_kube_clock_wall(recorder->clock);
    Entry *entry;
    bool is_full, must_post, must_complain;

    if (!ch_event_type_is_valid(type)) {
        ch_log_verbose(3, NULL, "an event of a type other than Normal and Warning, dropping");
        return;
    }
    entry = entry_new(object, type, reason, message);

    pthread_mutex_lock(&recorder->lock);
    entry->wall_ns = take_time(recorder, wall_us);
    is_full = g_queue_get_length(&recorder->input) >= QUEUE_LENGTH;
    if (!is_full)
        g_queue_push_tail(&recorder->input, entry);
    must_complain = is_full && !recorder->has_complained;
    recorder->has_complained |= is_full;
    must_post = !recorder->is_posted;
    recorder->is_posted = true;
    pthread_mutex_unlock(&recorder->lock);

    if (must_complain)
        ch_log_warning(NULL, NULL, "too many events at once, dropping");
    if (is_full)
        entry_free(entry);
    if (must_post) {
        atomic_fetch_add_explicit(&recorder->refs, 1, memory_order_relaxed);
        ch_loop_post(recorder->loop, take_input, recorder, recorder_unref);
    }
}

ChRecorder *
ch_recorder_new(ChKubeClient *client, const char *component, const char *host)
{
    ChRecorder *recorder = g_new0(ChRecorder, 1);

    atomic_init(&recorder->refs, 1);
    recorder->client = client;
    recorder->loop = ch_kube_client_peek_loop(client);
    recorder->clock = ch_kube_client_peek_clock(client);
    recorder->correlator = ch_event_correlator_new(component, host);
    pthread_mutex_init(&recorder->lock, NULL);
    g_queue_init(&recorder->input);
    g_queue_init(&recorder->pending);
    recorder->retry = ch_timer_new(recorder->loop, retry, recorder);
    return recorder;
}

void
ch_recorder_flush(ChRecorder *recorder, void (*done)(gpointer data), gpointer data)
{
    recorder->flushed = done;
    recorder->flushed_data = data;
    take_input(recorder);
}

void
ch_recorder_free(ChRecorder *recorder)
{
    if (recorder == NULL)
        return;
    if (recorder->call != NULL)
        ch_kube_call_cancel(g_steal_pointer(&recorder->call));
    g_clear_pointer(&recorder->retry, ch_timer_free);
    if (recorder->has_write)
        ch_event_write_clear(&recorder->write);
    clear_entries(&recorder->pending);
    g_clear_pointer(&recorder->correlator, ch_event_correlator_free);
    recorder->client = NULL;
    recorder_unref(recorder);
}
