/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/watch/domain-watch.h"

#include "handler/pod/launcher-socket.h"
#include "handler/watch/launcher-questions.h"
#include "handler/watch/stale-sockets.h"
#include "lib/base/backoff.h"
#include "lib/base/crash-point.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define MAX_SERVER_FAILURES 10
#define SERVER_HEALTHY_US   (60 * CH_SECOND_US)
#define MAX_DOMAINS         4096         /* far more than a node has */
#define DOUBT_US            CH_SECOND_US /* a launcher may report errors as often as it likes */
#define MAX_ASKING          32 /* launchers at a time: half of the workers stay for passes */

/* As client-go's reflector waits between two lists. Spec 01 §3.2 */
static const ChBackoffSpec relist_backoff = {
    .initial_us = 800 * CH_MS_US,
    .cap_us = 30 * CH_SECOND_US,
    .factor = 2,
    .jitter = 1,
    .reset_after_us = 120 * CH_SECOND_US,
};

struct ChDomainWatch {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChHands *hands;
    ChGhostRecords *records;
    ChDomainStore *store;
    int64_t watchdog_us, resync_us;
    guint max_server_failures;
    ChDomainWatchHandlers handlers;
    gpointer data;

    ChNotifyServer *server;
    int64_t server_started_us;
    guint n_server_failures; /* in a row, over all servers of this process */

    ChTimer *relist_timer, *resync_timer, *stale_timer;
    GHashTable *doubted; /* keys (owned) whose launchers reported an error, or what cannot be */
    ChTimer *doubt_timer;
    ChBackoff backoff;

    ChLauncherQuestions *questions;
    ChStaleSockets *stale;
};

/* --- asking launchers */

/* (transfer full) */
static char *
record_key(const ChGhostRecord *record)
{
    return g_strdup_printf("%s/%s", record->namespace_, record->name);
}

static bool
is_on_record(const ChDomainWatch *watch, const ChGhostRecord *record)
{
    g_autoptr(ChGhostRecord) current =
        ch_ghost_records_find_by_socket(watch->records, record->socket_file);

    return current != NULL && g_str_equal(current->uid, record->uid);
}

static void
put_minimal(ChDomainWatch *watch,
            const ChGhostRecord *record,
            const char *owner_uid,
            ChKnownDomainKind kind)
{
    g_autoptr(ChKnownDomain) domain = ch_known_domain_new_minimal(
        record->namespace_, record->name, record->uid, owner_uid, kind, ch_time_wall_us());

    ch_domain_store_put(watch->store, domain);
}

static bool
is_unknown(const ChDomainWatch *watch, const char *key)
{
    const ChKnownDomain *domain = ch_domain_store_lookup(watch->store, key);

    return domain != NULL && g_str_equal(domain->status, "Unknown");
}

/* (transfer full): as v1.9.0 says it. Spec 01 §11.1, §11.3 */
static char *
silence_text(ChAskOccasion occasion, ChLauncherQueryOutcome outcome, const char *socket)
{
    const bool is_connected = outcome == CH_LAUNCHER_QUERY_NO_ANSWER;

    if (occasion == CH_ASK_RESYNC)
        return is_connected
                   ? g_strdup_printf("unable to retrieve domain at socket %s during resync", socket)
                   : g_strdup("failed to connect to cmd client socket during resync");
    if (outcome == CH_LAUNCHER_QUERY_NO_ACCESS)
        return g_strdup("failed access cmd client socket");
    return g_strdup_printf("failed to %s cmd client socket %s, preserving domain with Unknown "
                           "status",
                           is_connected ? "list domains on" : "connect to",
                           socket);
}

/* A launcher without an answer. What was known before stays, unless a list wants to know. Spec 01
 * §11.1 rows 1 to 4, §11.3 */
static void
conclude_silence(ChDomainWatch *watch,
                 const ChGhostRecord *record,
                 ChAskOccasion occasion,
                 const ChLauncherAnswer *answer)
{
    const ChLogField socket = {.key = "socket", .text = record->socket_file};
    const ChLogContext context = {.fields = &socket, .n_fields = 1};
    g_autofree char *text = silence_text(occasion, answer->outcome, record->socket_file);

    if (occasion == CH_ASK_AGAIN) {
        ch_log_verbose(3, NULL, "still no answer from %s", record->socket_file);
    } else if (occasion == CH_ASK_LIST && answer->outcome == CH_LAUNCHER_QUERY_NO_SOCKET) {
        ch_log_warning(NULL, NULL, "detected stale domain from ghost record");
        put_minimal(watch, record, "", CH_KNOWN_DOMAIN_GONE);
    } else {
        ch_log_error(&context, answer->error, "%s", text);
        if (occasion == CH_ASK_LIST)
            put_minimal(watch, record, record->uid, CH_KNOWN_DOMAIN_UNKNOWN);
    }
}

static void
conclude(gpointer data,
         const ChGhostRecord *record,
         ChAskOccasion occasion,
         const ChLauncherAnswer *answer)
{
    ChDomainWatch *watch = data;
    g_autofree char *key = record_key(record);

    if (!is_on_record(watch, record))
        return; /* a VM that was cleaned up meanwhile must not come back */
    switch (answer->outcome) {
    case CH_LAUNCHER_QUERY_DOMAIN:
        ch_domain_store_put(watch->store, answer->domain);
        return;
    case CH_LAUNCHER_QUERY_NO_DOMAIN:
        /* Only a list deletes; but that nothing is known is over in any case. */
        if (occasion == CH_ASK_LIST || is_unknown(watch, key))
            ch_domain_store_remove(watch->store, key);
        return;
    case CH_LAUNCHER_QUERY_NO_SOCKET:
    case CH_LAUNCHER_QUERY_NO_ACCESS:
    case CH_LAUNCHER_QUERY_UNREACHABLE:
    case CH_LAUNCHER_QUERY_NO_ANSWER:
        conclude_silence(watch, record, occasion, answer);
        return;
    }
}

static void
ask_launcher(gpointer data, const ChGhostRecord *record, ChLauncherAnswer *out_answer) /* worker */
{
    ChDomainWatch *watch = data;

    out_answer->outcome = ch_launcher_query(
        watch->loop, watch->hands, record, &out_answer->domain, &out_answer->error);
}

static void
ask_all(ChDomainWatch *watch, ChAskOccasion occasion)
{
    g_autoptr(GPtrArray) records = ch_ghost_records_list(watch->records);

    for (guint i = 0; i < records->len; i++)
        ch_launcher_questions_ask(watch->questions, records->pdata[i], occasion);
}

/* --- the list */

static void schedule_relist(ChDomainWatch *watch);
static void on_server_failed(gpointer data, const GError *error);

static void
ensure_server(ChDomainWatch *watch)
{
    g_autoptr(GError) error = NULL;

    if (ch_notify_server_is_running(watch->server))
        return;
    watch->server_started_us = ch_time_now_us();
    if (!ch_notify_server_start(watch->server, &error))
        on_server_failed(watch, error);
}

typedef struct {
    GHashTable *recorded; /* keys */
    GPtrArray *strangers; /* keys, borrowed from the store */
} Sorting;

static void
sort_domain(gpointer data, ChKnownDomain *domain)
{
    Sorting *sorting = data;

    if (!g_hash_table_contains(sorting->recorded, domain->key))
        g_ptr_array_add(sorting->strangers, domain->key);
}

/* A list replaces what is known: domains that no record stands for go. */
static void
drop_strangers(ChDomainWatch *watch)
{
    g_autoptr(GPtrArray) records = ch_ghost_records_list(watch->records);
    g_autoptr(GHashTable) recorded = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) strangers = g_ptr_array_new();

    for (guint i = 0; i < records->len; i++)
        g_hash_table_add(recorded, record_key(records->pdata[i]));
    ch_domain_store_foreach(watch->store, sort_domain, &(Sorting){recorded, strangers});
    for (guint i = 0; i < strangers->len; i++)
        ch_domain_store_remove(watch->store, strangers->pdata[i]);
}

/* Without a notify server the list is all that tells about domains: it does not wait for one. */
static void
relist(gpointer data)
{
    ChDomainWatch *watch = data;

    ensure_server(watch);
    CH_CRASH_POINT("domain/listening");
    drop_strangers(watch);
    ask_all(watch, CH_ASK_LIST);
}

static void
schedule_relist(ChDomainWatch *watch)
{
    if (!ch_timer_is_armed(watch->relist_timer))
        ch_timer_arm(watch->relist_timer,
                     ch_backoff_next(&watch->backoff, ch_time_now_us(), g_random_double()));
}

/* --- the notify server's word */

/* Its connection may stay open when another VM has taken the name: what it says last must not end
 * that one. */
static bool
is_predecessors(const ChDomainWatch *watch, const ChKnownDomain *domain)
{
    g_auto(GStrv) names = g_strsplit(domain->key, "/", 2);
    g_autoptr(ChGhostRecord) record = ch_ghost_records_find(watch->records, names[0], names[1]);

    return record != NULL && domain->uid[0] != '\0' && !g_str_equal(record->uid, domain->uid);
}

/* A launcher repeats reports that it could not deliver: to an agent that was restarted meanwhile it
 * tells of the time before its guest ran. A guest that ends says how; so this is no end. */
static bool
is_of_old(const ChDomainWatch *watch, const ChKnownDomain *domain)
{
    const ChKnownDomain *current = ch_domain_store_lookup(watch->store, domain->key);

    return current != NULL && ch_domain_is_alive(ch_domain_live(current->domain)) &&
           ch_domain_is_unstarted(domain->domain);
}

/* The launcher of @key is asked again, by itself; others have nothing to do with it. Returns:
 * whether that was not decided before */
static bool
doubt(ChDomainWatch *watch, const char *key)
{
    if (!ch_timer_is_armed(watch->doubt_timer))
        ch_timer_arm(watch->doubt_timer, DOUBT_US);
    return g_hash_table_add(watch->doubted, g_strdup(key));
}

static void
on_domain(gpointer data, ChKnownDomain *domain, bool is_deleted)
{
    ChDomainWatch *watch = data;

    if (is_predecessors(watch, domain)) {
        ch_log_info(NULL,
                    "ignoring a report about domain %s of UID %.64s, which is not on record",
                    domain->key,
                    domain->uid);
        return;
    }
    if (!is_deleted && ch_domain_store_lookup(watch->store, domain->key) == NULL &&
        ch_domain_store_count(watch->store) >= MAX_DOMAINS) {
        ch_log_warning(
            NULL, NULL, "ignoring domain %s: %d others are known", domain->key, MAX_DOMAINS);
        return;
    }
    if (!is_deleted && is_of_old(watch, domain)) {
        if (doubt(watch, domain->key))
            ch_log_info(NULL,
                        "asking the launcher of %s, which reports a guest that has not run yet",
                        domain->key);
        return;
    }
    CH_CRASH_POINT("domain/reported");
    ch_launcher_questions_note_event(watch->questions, domain->key);
    if (is_deleted)
        ch_domain_store_remove(watch->store, domain->key);
    else
        ch_domain_store_put(watch->store, domain);
}

/* It reports an error, or what cannot be. */
static void
on_relist(gpointer data, const char *key)
{
    (void)doubt(data, key);
}

static void
ask_doubted(gpointer data)
{
    ChDomainWatch *watch = data;
    g_autoptr(GPtrArray) records = ch_ghost_records_list(watch->records);

    for (guint i = 0; i < records->len; i++) {
        g_autofree char *key = record_key(records->pdata[i]);

        if (g_hash_table_contains(watch->doubted, key))
            ch_launcher_questions_ask(watch->questions, records->pdata[i], CH_ASK_LIST);
    }
    g_hash_table_remove_all(watch->doubted);
}

static const char *
on_event(gpointer data, const ChLauncherEvent *event)
{
    ChDomainWatch *watch = data;

    return watch->handlers.on_event(watch->data, event);
}

/* Spec 01 §11.2, the failure counter. */
static void
on_server_failed(gpointer data, const GError *error)
{
    ChDomainWatch *watch = data;
    g_autofree char *message =
        g_strdup_printf("Domain notify server exited unexpectedly: %s", error->message);

    ch_log_error(NULL, error, "Domain notify server exited unexpectedly");
    if (ch_time_now_us() - watch->server_started_us >= SERVER_HEALTHY_US)
        watch->n_server_failures = 0;
    watch->n_server_failures++;
    watch->handlers.on_server_failure(watch->data, message);
    if (watch->n_server_failures >= watch->max_server_failures) {
        g_autofree char *fatal =
            g_strdup_printf("domain notify server reached max consecutive failures (%u): %s",
                            watch->max_server_failures,
                            error->message);

        ch_log_fatal(NULL,
                     error,
                     "Domain notify server reached max consecutive failures (%u)",
                     watch->max_server_failures);
        watch->handlers.on_fatal(watch->data, fatal);
        return;
    }
    schedule_relist(watch);
}

static const ChNotifyHandlers notify_handlers = {
    .on_domain = on_domain,
    .on_relist = on_relist,
    .on_event = on_event,
    .on_failed = on_server_failed,
};

/* --- resync */

static void
resync(gpointer data)
{
    ChDomainWatch *watch = data;

    ch_log_info(NULL, "resyncing virt-launcher domains");
    ask_all(watch, CH_ASK_RESYNC);
    ch_timer_arm(watch->resync_timer, watch->resync_us);
}

/* --- dead launchers: spec 01 §11.4 */

typedef struct {
    ChDomainWatch *watch;
    GPtrArray *records; /* ChGhostRecord, owned; a step leaves in it what the next one is about */
} Round;

static void
round_free(gpointer data)
{
    Round *round = data;

    g_ptr_array_unref(round->records);
    g_free(round);
}

static void
arm_stale_timer(ChDomainWatch *watch)
{
    ch_timer_arm(watch->stale_timer, (watch->watchdog_us / CH_SECOND_US / 3 + 1) * CH_SECOND_US);
}

/* (transfer full) (nullable): the pod UID in the record's path */
static char *
pod_uid_of(const ChDomainWatch *watch, const ChGhostRecord *record)
{
    return ch_launcher_socket_pod_uid(ch_hands_peek_pods_dir(watch->hands), record->socket_file);
}

static void
round_report(gpointer data) /* loop thread */
{
    Round *round = data;
    ChDomainWatch *watch = round->watch;

    for (guint i = 0; i < round->records->len; i++) {
        const ChGhostRecord *record = round->records->pdata[i];
        g_autofree char *key = record_key(record);

        if (!is_on_record(watch, record))
            continue;
        ch_log_warning(NULL,
                       NULL,
                       "detected unresponsive virt-launcher command socket (%s) for domain",
                       record->socket_file);
        ch_launcher_questions_note_event(watch->questions, key);
        put_minimal(watch, record, record->uid, CH_KNOWN_DOMAIN_GONE);
    }
    arm_stale_timer(watch);
}

/* The marker comes first: who is told of the death finds it. */
static void
round_mark(gpointer data) /* worker */
{
    Round *round = data;

    for (guint i = 0; i < round->records->len; i++) {
        const ChGhostRecord *record = round->records->pdata[i];
        g_autofree char *pod_uid = pod_uid_of(round->watch, record);
        g_autoptr(GError) error = NULL;

        if (pod_uid != NULL &&
            !ch_launcher_socket_mark_unresponsive(round->watch->hands, pod_uid, &error))
            ch_log_error(
                NULL, error, "Unable to mark vmi as unresponsive socket %s", record->socket_file);
    }
    CH_CRASH_POINT("domain/marked");
    ch_loop_post(round->watch->loop, round_report, round, round_free);
}

/* The launcher of a domain that is not known, or that came back: it is asked again now, since the
 * next resync may be minutes away. */
static void
ask_unknown(ChDomainWatch *watch)
{
    g_autoptr(GPtrArray) records = ch_ghost_records_list(watch->records);

    for (guint i = 0; i < records->len; i++) {
        const ChGhostRecord *record = records->pdata[i];
        g_autofree char *key = record_key(record);

        if (is_unknown(watch, key))
            ch_launcher_questions_ask(watch->questions, record, CH_ASK_AGAIN);
    }
}

static void
round_judge(gpointer data) /* loop thread */
{
    Round *probed = data;
    ChDomainWatch *watch = probed->watch;
    Round *round;

    ask_unknown(watch);
    ch_stale_sockets_judge(watch->stale, probed->records, ch_time_now_us());
    if (probed->records->len == 0) {
        arm_stale_timer(watch);
        return;
    }
    round = g_new0(Round, 1);
    *round = (Round){watch, g_ptr_array_ref(probed->records)};
    ch_worker_pool_run(watch->pool, round_mark, round, round_free);
}

static bool
is_reachable(const ChDomainWatch *watch, const ChGhostRecord *record)
{
    g_autofree char *pod_uid = pod_uid_of(watch, record);
    g_autoptr(GError) reason = NULL;

    return pod_uid != NULL && (ch_launcher_socket_probe(watch->hands, pod_uid, &reason) ||
                               ch_hands_is_silence(reason));
}

static void
round_probe(gpointer data) /* worker */
{
    Round *round = data;

    for (guint i = 0; i < round->records->len;) {
        if (is_reachable(round->watch, round->records->pdata[i]))
            g_ptr_array_remove_index_fast(round->records, i);
        else
            i++;
    }
    ch_loop_post(round->watch->loop, round_judge, round, round_free);
}

static void
look_for_dead_launchers(gpointer data)
{
    ChDomainWatch *watch = data;
    Round *round = g_new0(Round, 1);

    *round = (Round){watch, ch_ghost_records_list(watch->records)};
    if (round->records->len > 0) {
        ch_worker_pool_run(watch->pool, round_probe, round, round_free);
    } else {
        round_judge(round);
        round_free(round);
    }
}

/* --- life */

ChDomainWatch *
ch_domain_watch_new(ChLoop *loop,
                    ChWorkerPool *pool,
                    ChHands *hands,
                    ChGhostRecords *records,
                    ChDomainStore *store,
                    const ChDomainWatchSpec *spec,
                    const ChDomainWatchHandlers *handlers,
                    gpointer data)
{
    ChDomainWatch *watch = g_new0(ChDomainWatch, 1);

    watch->loop = loop;
    watch->pool = pool;
    watch->hands = hands;
    watch->records = records;
    watch->store = store;
    watch->watchdog_us = spec->watchdog_us;
    watch->resync_us = spec->resync_us;
    watch->max_server_failures =
        spec->max_server_failures > 0 ? spec->max_server_failures : MAX_SERVER_FAILURES;
    watch->handlers = *handlers;
    watch->data = data;
    watch->server = ch_notify_server_new(loop, spec->share_dir, &notify_handlers, watch);
    watch->relist_timer = ch_timer_new(loop, relist, watch);
    watch->resync_timer = ch_timer_new(loop, resync, watch);
    watch->stale_timer = ch_timer_new(loop, look_for_dead_launchers, watch);
    watch->doubt_timer = ch_timer_new(loop, ask_doubted, watch);
    watch->doubted = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    watch->questions =
        ch_launcher_questions_new(loop, pool, MAX_ASKING, ask_launcher, conclude, watch);
    watch->stale = ch_stale_sockets_new(spec->watchdog_us);
    ch_backoff_init(&watch->backoff, &relist_backoff);
    return watch;
}

void
ch_domain_watch_free(ChDomainWatch *watch)
{
    if (watch == NULL)
        return;
    ch_timer_free(watch->relist_timer);
    ch_timer_free(watch->resync_timer);
    ch_timer_free(watch->stale_timer);
    ch_timer_free(watch->doubt_timer);
    g_hash_table_unref(watch->doubted);
    ch_notify_server_free(watch->server);
    ch_launcher_questions_free(watch->questions);
    ch_stale_sockets_free(watch->stale);
    g_free(watch);
}

void
ch_domain_watch_start(ChDomainWatch *watch)
{
    g_autoptr(GPtrArray) records = ch_ghost_records_list(watch->records);

    for (guint i = 0; i < records->len; i++) {
        const ChGhostRecord *record = records->pdata[i];

        put_minimal(watch, record, record->uid, CH_KNOWN_DOMAIN_AWAITED);
    }
    relist(watch);
    ch_timer_arm(watch->resync_timer, watch->resync_us);
    arm_stale_timer(watch);
}

ChNotifyServer *
ch_domain_watch_peek_server(ChDomainWatch *watch)
{
    return watch->server;
}
