/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/informer.h"

#include <malloc.h>

#include "lib/kube/test-server.h"

/* ---- a script: what the server is asked, in order, and what it answers ---- */

#define THINGS           "/apis/x/v1/things"
#define LIST_ANY         THINGS "?limit=500&resourceVersion=0"
#define LIST_AT(version) THINGS "?resourceVersion=" version
#define LIST_NEW         THINGS "?limit=500"
#define LIST_ALL         THINGS
#define PAGE(token)      THINGS "?continue=" token "&limit=500"
#define WATCH(version)                                                                             \
    THINGS "?allowWatchBookmarks=true&resourceVersion=" version "&timeoutSeconds=450&watch=true"

#define OBJECT(name, version)                                                                      \
    "{\"kind\":\"Thing\",\"apiVersion\":\"x/v1\",\"metadata\":{\"name\":\"" name                   \
    "\",\"namespace\":\"n\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version "\"}}"
#define EVENT(type, name, version) "{\"type\":\"" type "\",\"object\":" OBJECT(name, version) "}\n"
#define ERROR_EVENT(code)                                                                          \
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":" code ",\"message\":\"m\"}}\n"
#define PAGE_OF(version, token, items)                                                             \
    "{\"kind\":\"ThingList\",\"apiVersion\":\"x/v1\",\"metadata\":{\"resourceVersion\":\"" version \
    "\",\"continue\":\"" token "\"},\"items\":[" items "]}"
#define LIST_OF(version, items) PAGE_OF(version, "", items)
#define STATUS(code, reason)                                                                       \
    "{\"kind\":\"Status\",\"code\":" code ",\"reason\":\"" reason "\",\"message\":\"" reason "\"}"

typedef enum {
    END = 0, /* of the script */
    REPLY,   /* a whole answer */
    HOLD,    /* a stream that stays open */
    FINISH,  /* a stream that ends in order */
    CUT,     /* a stream whose connection is cut, the end of the document missing */
    RAW,     /* bytes that need not be HTTP, then the end */
    SILENCE, /* the connection is closed without an answer */
} Action;

typedef struct {
    const char *target;
    Action action;
    const char *text;
    int status;          /* of REPLY; 0: 200 */
    const char *headers; /* of REPLY */
    int64_t lasts_ms;    /* of streams: how long they ran on the test's clock */
} Step;

typedef struct {
    const char *path;
    Step steps[10];
    const char *seen;   /* by the handlers */
    const char *delays; /* in milliseconds */
} Script;

typedef struct {
    ChLoop *loop;
    TestServer server;
    TestClock clock;
    ChKubeClient *client;
    ChInformer *informer;
    GString *seen;
    const Script *script;
    guint n_done;
} Fixture;

static void
play(gpointer data, TestRequest *request)
{
    Fixture *f = data;
    const Step *step = &f->script->steps[f->n_done];
    g_autofree char *cut_after = NULL;

    if (step->action == END)
        g_error("request beyond the script: %s", request->target);
    g_assert_cmpstr(request->target, ==, step->target);
    g_assert_cmpstr(request->method, ==, "GET");
    f->n_done++;
    f->clock.now_us += step->lasts_ms * 1000;
    switch (step->action) {
    case REPLY:
        test_reply(request->bev, step->status != 0 ? step->status : 200, step->headers, step->text);
        break;
    case HOLD:
    case FINISH:
        test_stream_begin(request->bev);
        test_stream_chunk(request->bev, step->text);
        if (step->action == FINISH)
            test_stream_end(request->bev);
        break;
    case CUT:
        cut_after =
            g_strdup_printf("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n%zx\r\n%s\r\n",
                            strlen(step->text),
                            step->text);
        test_cut_after(request, cut_after);
        break;
    case RAW:
        test_cut_after(request, step->text);
        break;
    case SILENCE:
        test_cut(request->server, request->bev);
        break;
    case END:
        break;
    }
}

static void
on_add(gpointer data, ChObject *object)
{
    Fixture *f = data;

    g_assert_true(ch_informer_lookup(f->informer, object->key) == object);
    g_string_append_printf(f->seen, "+%s:%s ", object->key, object->resource_version);
}

static void
on_update(gpointer data, ChObject *old_object, ChObject *object)
{
    Fixture *f = data;

    g_assert_true(ch_informer_lookup(f->informer, object->key) == object);
    g_string_append_printf(f->seen,
                           "%c%s:%s>%s ",
                           object == old_object ? '=' : '~',
                           object->key,
                           old_object->resource_version,
                           object->resource_version);
}

static void
on_delete(gpointer data, ChObject *last)
{
    Fixture *f = data;

    g_assert_null(ch_informer_lookup(f->informer, last->key));
    g_string_append_printf(f->seen, "-%s:%s ", last->key, last->resource_version);
}

static void
on_synced(gpointer data)
{
    Fixture *f = data;

    g_assert_true(ch_informer_has_synced(f->informer));
    g_string_append(f->seen, "synced ");
}

static const ChInformerHandlers handlers = {on_add, on_update, on_delete, on_synced};
static const ChInformerSpec things = {
    .name = "things",
    .path = THINGS,
    .api_version = "x/v1",
    .kind = "Thing",
};

static void
set_up(Fixture *f, TestHandler handler, const ChInformerSpec *spec)
{
    f->loop = ch_loop_new();
    f->seen = g_string_new(NULL);
    test_clock_init(&f->clock);
    f->clock.random = 0.5;
    test_server_init(&f->server, f->loop, handler, f);
    f->client = test_client_new(f->loop, &f->server, &f->clock);
    f->informer = ch_informer_new(f->client, spec, &handlers, f);
}

static void
tear_down(Fixture *f)
{
    ch_informer_free(f->informer);
    ch_kube_client_free(f->client);
    test_server_clear(&f->server);
    test_clock_clear(&f->clock);
    ch_loop_free(f->loop);
    g_string_free(f->seen, TRUE);
}

static guint
n_steps(const Script *script)
{
    guint n = 0;

    while (n < G_N_ELEMENTS(script->steps) && script->steps[n].action != END)
        n++;
    return n;
}

static void
test_script(gconstpointer data)
{
    Fixture f = {.script = data};

    set_up(&f, play, &things);
    ch_informer_start(f.informer);
    test_wait_until(f.loop, f.n_done == n_steps(f.script));
    test_wait_us(f.loop, 20000); /* for the last answer, and for what must not follow */
    g_assert_cmpstr(f.seen->str, ==, f.script->seen);
    g_assert_cmpstr(f.clock.delays->str, ==, f.script->delays);
    tear_down(&f);
}

/* random is 0.5: a back-off is 1.5 times 800 ms, 1.6 s, 3.2 s ... */
static const Script scripts[] = {
    {"/informer/events",
     {{LIST_ANY, REPLY, LIST_OF("10", OBJECT("a", "4") "," OBJECT("b", "5"))},
      {WATCH("10"),
       HOLD,
       EVENT("ADDED", "c", "11") EVENT("MODIFIED", "a", "12") EVENT("DELETED", "b", "13")}},
     "+n/a:4 +n/b:5 synced +n/c:11 ~n/a:4>12 -n/b:13 ",
     ""},
    {"/informer/added-twice-modified-unknown-deleted-unknown",
     {{LIST_ANY, REPLY, LIST_OF("10", OBJECT("a", "4"))},
      {WATCH("10"),
       HOLD,
       EVENT("ADDED", "a", "11") EVENT("MODIFIED", "z", "12") EVENT("DELETED", "y", "13")}},
     "+n/a:4 synced ~n/a:4>11 +n/z:12 -n/y:13 ",
     ""},
    {"/informer/empty-list-is-synced",
     {{LIST_ANY, REPLY, LIST_OF("10", "")}, {WATCH("10"), HOLD, ""}},
     "synced ",
     ""},
    {"/informer/bookmark-and-end-reopens-at-once",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), FINISH, EVENT("BOOKMARK", "", "17")},
      {WATCH("17"), FINISH, "", .lasts_ms = 1000},
      {WATCH("17"), HOLD, EVENT("ADDED", "a", "18")}},
     "synced +n/a:18 ",
     ""},
    {"/informer/very-short-watch-relists",
     {{LIST_ANY, REPLY, LIST_OF("10", OBJECT("a", "4"))},
      {WATCH("10"), FINISH, "", .lasts_ms = 999},
      {LIST_AT("10"), REPLY, LIST_OF("20", OBJECT("b", "15"))},
      {WATCH("20"), HOLD, ""}},
     "+n/a:4 synced -n/a:4 +n/b:15 ",
     "1200 "},
    {"/informer/relist-keeps-equal-objects",
     {{LIST_ANY, REPLY, LIST_OF("10", OBJECT("a", "4") "," OBJECT("b", "5"))},
      {WATCH("10"), FINISH, ""},
      {LIST_AT("10"), REPLY, LIST_OF("20", OBJECT("b", "15") "," OBJECT("a", "4"))},
      {WATCH("20"), HOLD, ""}},
     "+n/a:4 +n/b:5 synced ~n/b:5>15 =n/a:4>4 ",
     "1200 "},
    {"/informer/watch-expired",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), FINISH, EVENT("ADDED", "a", "11") ERROR_EVENT("410")},
      {LIST_AT("11"), REPLY, STATUS("410", "Expired"), 410},
      {LIST_ALL, REPLY, LIST_OF("30", OBJECT("a", "11"))},
      {WATCH("30"), HOLD, ""}},
     "synced +n/a:11 =n/a:11>11 ",
     "1200 "},
    {"/informer/watch-throttled-within",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), FINISH, ERROR_EVENT("429")},
      {WATCH("10"), FINISH, ERROR_EVENT("429")},
      {WATCH("10"), HOLD, EVENT("ADDED", "a", "11")}},
     "synced +n/a:11 ",
     "1200 2400 "},
    {"/informer/watch-error-500",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), HOLD, ERROR_EVENT("500") EVENT("ADDED", "never", "11")},
      {LIST_AT("10"), REPLY, LIST_OF("20", "")},
      {WATCH("20"), HOLD, ""}},
     "synced ",
     "1200 "},
    {"/informer/undecodable-frame",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), HOLD, EVENT("ADDED", "a", "11") "rubbish"},
      {LIST_AT("11"), REPLY, LIST_OF("20", OBJECT("a", "11"))},
      {WATCH("20"), HOLD, ""}},
     "synced +n/a:11 =n/a:11>11 ",
     "1200 "},
    {"/informer/object-without-name",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), HOLD, "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Thing\",\"metadata\":{}}}"},
      {LIST_AT("10"), REPLY, LIST_OF("20", "")},
      {WATCH("20"), HOLD, ""}},
     "synced ",
     "1200 "},
    {"/informer/cut-within-a-frame-just-ends",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), CUT, EVENT("ADDED", "a", "11") "{\"type\":\"ADDED\",\"obj"},
      {WATCH("11"), HOLD, EVENT("ADDED", "b", "12")}},
     "synced +n/a:11 +n/b:12 ",
     ""},
    {"/informer/unknown-type-and-other-kind",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"),
       FINISH,
       EVENT("NEWS", "a", "11") "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Other\",\"metadata\":"
                                "{\"name\":\"o\",\"resourceVersion\":\"12\"}}}"},
      {WATCH("11"), HOLD, ""}},
     "synced ",
     ""},
    {"/informer/watch-refused-by-429",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), REPLY, STATUS("429", "TooManyRequests"), 429},
      {WATCH("10"), REPLY, STATUS("429", "TooManyRequests"), 429, "retry-after: 7\r\n"},
      {WATCH("10"), HOLD, EVENT("ADDED", "a", "11")}},
     "synced +n/a:11 ",
     "1200 7000 "}, /* the second is waited out within the request */
    {"/informer/watch-refused-by-403",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), REPLY, STATUS("403", "Forbidden"), 403},
      {LIST_AT("10"), REPLY, LIST_OF("20", "")},
      {WATCH("20"), HOLD, ""}},
     "synced ",
     "1200 "},
    {"/informer/watch-answers-410",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), REPLY, STATUS("410", "Expired"), 410},
      {LIST_AT("10"), REPLY, LIST_OF("20", "")},
      {WATCH("20"), HOLD, ""}},
     "synced ",
     "1200 "},
    {"/informer/list-fails-and-backs-off",
     {{LIST_ANY, REPLY, STATUS("500", "InternalError"), 500},
      {LIST_ANY, REPLY, "not found", 404},
      {LIST_ANY, REPLY, "<html>a proxy</html>"},
      {LIST_ANY, REPLY, LIST_OF("10", "{\"metadata\":{}}")},
      {LIST_ANY, CUT, "{\"kind\":\"ThingList\",\"items\":[" OBJECT("a", "4")},
      {LIST_ANY, REPLY, STATUS("503", "ServiceUnavailable"), 503, "retry-after: 2\r\n"},
      {LIST_ANY, REPLY, LIST_OF("10", OBJECT("b", "5"))},
      {WATCH("10"), HOLD, ""}},
     "+n/b:5 synced ",
     "1200 2400 4800 9600 19200 2000 "},
    {"/informer/list-without-answer-is-retried",
     {{LIST_ANY, SILENCE}, {LIST_ANY, REPLY, LIST_OF("10", "")}, {WATCH("10"), HOLD, ""}},
     "synced ",
     "1000 "},
    {"/informer/no-http",
     {{LIST_ANY, RAW, "SSH-2.0-OpenSSH_9.2\r\n\r\n"},
      {LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), HOLD, ""}},
     "synced ",
     "1200 "},
    {"/informer/pages",
     {{LIST_ANY, REPLY, PAGE_OF("10", "t1", OBJECT("a", "4"))},
      {PAGE("t1"), REPLY, PAGE_OF("11", "t2", OBJECT("b", "5"))},
      {PAGE("t2"), REPLY, PAGE_OF("12", "", OBJECT("c", "6"))},
      {WATCH("10"), HOLD, ""}},
     "+n/a:4 +n/b:5 +n/c:6 synced ",
     ""},
    {"/informer/page-expired",
     {{LIST_ANY, REPLY, PAGE_OF("10", "t1", OBJECT("a", "4"))},
      {PAGE("t1"), REPLY, STATUS("410", "Expired"), 410},
      {THINGS "?resourceVersion=0", REPLY, LIST_OF("15", OBJECT("b", "5"))},
      {WATCH("15"), HOLD, ""}},
     "+n/b:5 synced ",
     ""},
    {"/informer/version-from-the-future",
     {{LIST_ANY, REPLY, LIST_OF("10", "")},
      {WATCH("10"), HOLD, ERROR_EVENT("500")},
      {LIST_AT("10"), REPLY, STATUS("504", "Too large resource version: 10, current: 3"), 504},
      {LIST_ALL, REPLY, LIST_OF("3", "")},
      {WATCH("3"), HOLD, ""}},
     "synced ",
     "1200 "},
    {"/informer/twice-expired-then-consistent",
     {{LIST_ANY, REPLY, STATUS("410", "Gone"), 410},
      {LIST_NEW, REPLY, STATUS("410", "Gone"), 410},
      {LIST_NEW, REPLY, LIST_OF("10", "")},
      {WATCH("10"), HOLD, ""}},
     "synced ",
     "1200 "},
};

/* ---- what does not fit a script ---- */

static void
play_list_and_hold(gpointer data, TestRequest *request)
{
    if (strstr(request->target, "watch=true") == NULL) {
        test_reply(request->bev, 200, NULL, LIST_OF("10", OBJECT("a", "4")));
        return;
    }
    test_stream_begin(request->bev);
    test_stream_chunk(request->bev, "\n"); /* the headers alone would do, too */
}

static void
test_refused_and_back(void)
{
    Fixture f = {0};

    set_up(&f, play_list_and_hold, &things);
    ch_informer_start(f.informer);
    test_wait_until(f.loop, f.server.n_requests == 2);
    test_wait_us(f.loop, 20000);
    f.clock.now_us += 2 * CH_SECOND_US; /* no very short watch */
    test_server_stop(&f.server);
    test_wait_until(f.loop, g_str_has_prefix(f.clock.delays->str, "1200 2400 4800 9600 "));
    test_server_listen(&f.server);
    test_wait_until(f.loop, f.server.n_requests == 3);
    test_wait_us(f.loop, 20000);
    g_assert_cmpuint(f.server.n_requests, ==, 3); /* the watch, without a list */
    g_assert_cmpstr(f.seen->str, ==, "+n/a:4 synced ");
    tear_down(&f);
}

static void
play_brief_watches(gpointer data, TestRequest *request)
{
    if (strstr(request->target, "watch=true") == NULL) {
        test_reply(request->bev, 200, NULL, LIST_OF("10", OBJECT("a", "4")));
        return;
    }
    test_stream_begin(request->bev);
    test_stream_chunk(request->bev, EVENT("MODIFIED", "a", "5"));
    test_stream_end(request->bev);
}

/* Something cuts each watch after its first event: that must not become a storm of requests. */
static void
test_brief_watches(void)
{
    Fixture f = {0};

    set_up(&f, play_brief_watches, &things);
    ch_informer_start(f.informer);
    test_wait_until(f.loop, f.clock.delays->len > 0);
    g_assert_cmpuint(f.server.n_requests, ==, 1 + 11);
    test_wait_until(f.loop, g_str_has_prefix(f.clock.delays->str, "1200 2400 4800 "));
    g_assert_cmpuint(f.server.n_requests, ==, 1 + 11 + 2); /* watches, no list */
    tear_down(&f);
}

static void
test_resync(void)
{
    Fixture f = {0};
    ChInformerSpec spec = things;

    spec.resync_us = 3600 * CH_SECOND_US;
    set_up(&f, play_list_and_hold, &spec);
    ch_informer_start(f.informer);
    test_wait_until(f.loop, strstr(f.seen->str, "=n/a:4>4 =n/a:4>4 ") != NULL);
    g_assert_true(g_str_has_prefix(f.clock.delays->str, "3600000 3600000 "));
    tear_down(&f);
}

typedef struct {
    Fixture f;
    struct bufferevent *bev;
    gsize n_sent;
} Slow;

static const char slow_list[] = LIST_OF("10", OBJECT("a", "4") "," OBJECT("b", "5"));

static void
play_slowly(gpointer data, TestRequest *request)
{
    Slow *slow = data;

    if (strstr(request->target, "watch=true") != NULL) {
        play_list_and_hold(data, request);
        return;
    }
    slow->bev = request->bev;
    test_stream_begin(request->bev);
}

static void
test_slow_server(void)
{
    Slow slow = {0};

    set_up(&slow.f, play_slowly, &things);
    ch_informer_start(slow.f.informer);
    test_wait_until(slow.f.loop, slow.bev != NULL);
    for (; slow.n_sent < strlen(slow_list); slow.n_sent += 5) {
        g_autofree char *piece = g_strndup(slow_list + slow.n_sent, 5);

        g_assert_false(ch_informer_has_synced(slow.f.informer));
        test_stream_chunk(slow.bev, piece);
        test_wait_us(slow.f.loop, 1000);
    }
    test_stream_end(slow.bev);
    test_wait_until(slow.f.loop, slow.f.server.n_requests == 2);
    g_assert_cmpstr(slow.f.seen->str, ==, "+n/a:4 +n/b:5 synced ");
    tear_down(&slow.f);
}

#define MANY      5000
#define PAGE_SIZE 500

static void
append_item(GString *text, guint i)
{
    g_string_append_printf(
        text,
        "%s{\"metadata\":{\"name\":\"vm-%u\",\"namespace\":\"n\",\"uid\":\"u-%u\","
        "\"resourceVersion\":\"%u\",\"managedFields\":[{\"fieldsV1\":{",
        i % PAGE_SIZE == 0 ? "" : ",",
        i,
        i,
        i + 1);
    for (guint field = 0; field < 20; field++)
        g_string_append_printf(text, "%s\"f:field%u\":{}", field == 0 ? "" : ",", field);
    g_string_append(text, "}}]},\"spec\":{\"fill\":\"");
    for (guint n = 0; n < 150; n++)
        g_string_append(text, "0123456789");
    g_string_append(text, "\"}}");
}

static void
play_many(gpointer data, TestRequest *request)
{
    const char *token = strstr(request->target, "continue=");
    const guint start = token != NULL ? (guint)strtoul(token + strlen("continue="), NULL, 10) : 0;
    g_autoptr(GString) text = g_string_new(NULL);

    if (strstr(request->target, "watch=true") != NULL) {
        play_list_and_hold(data, request);
        return;
    }
    g_assert_nonnull(strstr(request->target, "limit=500"));
    g_string_append_printf(text,
                           "{\"kind\":\"ThingList\",\"metadata\":{\"resourceVersion\":\"9\","
                           "\"continue\":\"%.0u\"},\"items\":[",
                           start + PAGE_SIZE < MANY ? start + PAGE_SIZE : 0);
    for (guint i = start; i < start + PAGE_SIZE; i++)
        append_item(text, i);
    g_string_append(text, "]}");
    test_reply(request->bev, 200, NULL, text->str);
}

static void
add_length(gpointer data, ChObject *object)
{
    g_assert_null(strstr(object->text, "managedFields"));
    g_assert_nonnull(strstr(object->text, "\"kind\":\"Thing\""));
    *(gsize *)data += object->length;
}

static void
test_many_items(void)
{
    Fixture f = {0};
    gsize before, grown, texts = 0;

    set_up(&f, play_many, &things);
    before = mallinfo2().uordblks;
    ch_informer_start(f.informer);
    test_wait_until(f.loop, ch_informer_has_synced(f.informer));
    g_string_truncate(f.seen, 0);
    grown = mallinfo2().uordblks - before;
    g_assert_cmpuint(ch_informer_count(f.informer), ==, MANY);
    ch_informer_foreach(f.informer, add_length, &texts);
    g_test_message("%zu bytes of text in %zu bytes of memory", texts, grown);
    /* Beside the texts: 250 bytes an object and what one page takes on its way. (Sanitizers count
     * nothing here.) */
    g_assert_cmpuint(grown, <, texts + MANY * 250 + (4u << 20));
    tear_down(&f);
}

static void
keep_name_only(ChJson *object)
{
    ch_json_remove(object, "spec");
}

static void
play_metadata(gpointer data, TestRequest *request)
{
    if (strstr(request->target, "watch=true") == NULL) {
        g_assert_nonnull(strstr(request->headers, "as=partialobjectmetadatalist;"));
        test_reply(
            request->bev,
            200,
            NULL,
            "{\"kind\":\"PartialObjectMetadataList\",\"metadata\":{\"resourceVersion\":\"1\"},"
            "\"items\":[{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"a\"},"
            "\"spec\":{}}]}");
        return;
    }
    g_assert_nonnull(strstr(request->headers, "as=partialobjectmetadata;"));
    test_stream_begin(request->bev);
    test_stream_chunk(request->bev,
                      "{\"type\":\"ADDED\",\"object\":{\"kind\":\"PartialObjectMetadata\","
                      "\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"2\"},\"spec\":{}}}");
}

static void
test_projection(void)
{
    Fixture f = {0};
    ChInformerSpec spec = things;

    spec.metadata_only = true;
    spec.trim = keep_name_only;
    set_up(&f, play_metadata, &spec);
    ch_informer_start(f.informer);
    test_wait_until(f.loop, ch_informer_count(f.informer) == 2);
    g_assert_null(strstr(ch_informer_lookup(f.informer, "a")->text, "spec"));
    g_assert_null(strstr(ch_informer_lookup(f.informer, "b")->text, "spec"));
    tear_down(&f);
}

/* Freed in every state: nothing may come any more, nothing may leak (the sanitizers look). */
static void
test_free_early(void)
{
    for (guint turns = 0; turns < 12; turns++) {
        Fixture f = {0};

        set_up(&f, play_list_and_hold, &things);
        ch_informer_start(f.informer);
        for (guint i = 0; i < turns; i++)
            event_base_loop(ch_loop_peek_base(f.loop), EVLOOP_ONCE | EVLOOP_NONBLOCK);
        g_clear_pointer(&f.informer, ch_informer_free);
        test_wait_us(f.loop, 3000);
        tear_down(&f);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(scripts); i++)
        g_test_add_data_func(scripts[i].path, &scripts[i], test_script);
    g_test_add_func("/informer/refused-and-back", test_refused_and_back);
    g_test_add_func("/informer/brief-watches", test_brief_watches);
    g_test_add_func("/informer/resync", test_resync);
    g_test_add_func("/informer/slow-server", test_slow_server);
    g_test_add_func("/informer/many-items", test_many_items);
    g_test_add_func("/informer/projection", test_projection);
    g_test_add_func("/informer/free-early", test_free_early);
    return g_test_run();
}
