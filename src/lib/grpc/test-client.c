/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client against a peer that answers as a script says, good or bad. Statuses and texts are
 * those of spec 03 §3.4.
 */

#include "lib/grpc/client.h"

#include "lib/grpc/test-peer.h"
#include "notify.pb-c.h"

#define METHOD "/kubevirt.notify.v1.Notify/HandleK8sEvent"

#define GRPC_200      ":status: 200\ncontent-type: application/grpc"
#define MESSAGE       "\0\0\0\0\6\x08\1\x12\2hi" /* Response {success, "hi"} */
#define BODY(literal) literal, sizeof(literal) - 1

/* What the peer does with a request. */
typedef struct {
    const char *headers; /* (nullable): lines; with END_STREAM if nothing follows */
    const char *body;    /* (nullable) */
    gsize body_length;
    const char *trailers; /* (nullable): lines */
    guint n_resets;       /* that many requests are reset, after the above */
    uint32_t reset_code;
    bool closes; /* the connection */
    bool says_goaway;
    bool resets_late; /* after the body, instead of trailers */
    bool is_silent;   /* no answer at all */
} Script;

typedef struct {
    TestPeer peer;
    ChGrpcChannel *channel;
    const Script *script;
    guint n_resets;

    guint n_requests;
    uint32_t client_reset; /* code of the client's RST_STREAM */
    bool has_client_reset;

    ChGrpcCall *call;
    guint n_messages;
    bool cancels_in_message;
    bool closes_in_message;
    bool drops_in_message; /* the channel's last reference but the call's */
    bool starts_when_done; /* another call */
    bool is_done;
    GError *error;
} Fixture;

/* The peer */

static ssize_t
read_script_body(nghttp2_session *session,
                 int32_t stream_id,
                 uint8_t *buffer,
                 size_t length,
                 uint32_t *out_flags,
                 nghttp2_data_source *source,
                 void *data)
{
    const Script *script = source->ptr;

    g_assert_cmpuint(script->body_length, <=, length);
    memcpy(buffer, script->body, script->body_length);
    *out_flags |= NGHTTP2_DATA_FLAG_EOF;
    if (script->trailers != NULL) {
        g_auto(GStrv) lines = g_strsplit(script->trailers, "\n", -1);
        g_autoptr(GArray) nvs = test_peer_parse_headers(lines);

        nghttp2_submit_trailer(session, stream_id, (const nghttp2_nv *)(void *)nvs->data, nvs->len);
        *out_flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    } else if (script->resets_late) {
        *out_flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_rst_stream(session, 0, stream_id, script->reset_code);
    }
    return (ssize_t)script->body_length;
}

static void
play(Fixture *f, int32_t stream_id)
{
    const Script *script = f->script;
    const nghttp2_data_provider provider = {.source.ptr = (void *)(uintptr_t)script,
                                            .read_callback = read_script_body};

    if (script->closes) {
        shutdown(f->peer.fd, SHUT_RDWR);
        return;
    }
    if (script->says_goaway)
        nghttp2_submit_goaway(f->peer.session, 0, stream_id, NGHTTP2_NO_ERROR, NULL, 0);
    if (script->headers != NULL && f->n_resets >= script->n_resets) {
        g_auto(GStrv) lines = g_strsplit(script->headers, "\n", -1);
        g_autoptr(GArray) nvs = test_peer_parse_headers(lines);

        nghttp2_submit_response(f->peer.session,
                                stream_id,
                                (const nghttp2_nv *)(void *)nvs->data,
                                nvs->len,
                                script->body != NULL ? &provider : NULL);
    } else if (f->n_resets < script->n_resets) {
        f->n_resets++;
        nghttp2_submit_rst_stream(f->peer.session, 0, stream_id, script->reset_code);
    }
}

static int
on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *data)
{
    Fixture *f = data;

    if (frame->hd.type == NGHTTP2_HEADERS)
        f->n_requests++;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        f->has_client_reset = true;
        f->client_reset = frame->rst_stream.error_code;
    }
    if (frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        !f->script->is_silent)
        play(f, frame->hd.stream_id);
    return 0;
}

/* The client */

static void
set_up(Fixture *f, gconstpointer data)
{
    const int fd = test_peer_open(&f->peer, true, on_frame, NULL);

    f->script = data;
    f->channel = ch_grpc_channel_new(f->peer.loop, fd, "localhost");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_grpc_channel_unref(f->channel);
    for (int i = 0; i < 4; i++)
        test_peer_turn(&f->peer); /* what is posted frees the last references */
    test_peer_close(&f->peer);
    g_clear_error(&f->error);
}

static void start(Fixture *f, int64_t timeout_us);

static void
on_message(gpointer data, ProtobufCMessage *message)
{
    Fixture *f = data;
    const Kubevirt__Notify__V1__Response *response = (const void *)message;

    f->n_messages++;
    g_assert_true(response->success);
    if (f->cancels_in_message)
        ch_grpc_call_cancel(f->call);
    if (f->closes_in_message)
        ch_grpc_channel_close(f->channel);
    if (f->drops_in_message)
        g_clear_pointer(&f->channel, ch_grpc_channel_unref);
}

static void
on_done(gpointer data, const GError *error)
{
    Fixture *f = data;

    g_assert_false(f->is_done);
    ch_grpc_call_cancel(f->call); /* allowed, and does nothing */
    if (f->script->closes) /* who learns that the call was lost sees the same of its channel */
        g_assert_false(ch_grpc_channel_is_usable(f->channel));
    if (f->starts_when_done) {
        f->starts_when_done = false;
        start(f, DEADLINE_US);
        return;
    }
    f->is_done = true;
    f->error = error != NULL ? g_error_copy(error) : NULL;
}

static void
start(Fixture *f, int64_t timeout_us)
{
    static const ChGrpcSink sink = {on_message, on_done};
    Kubevirt__Notify__V1__K8sEventRequest request = KUBEVIRT__NOTIFY__V1__K8S_EVENT_REQUEST__INIT;

    request.event_json.data = (uint8_t *)(uintptr_t) "{}";
    request.event_json.len = 2;
    f->call = ch_grpc_call_start(f->channel,
                                 METHOD,
                                 &request.base,
                                 &kubevirt__notify__v1__response__descriptor,
                                 timeout_us,
                                 &sink,
                                 f);
}

static const Script good = {.headers = GRPC_200,
                            .body = MESSAGE,
                            .body_length = sizeof(MESSAGE) - 1,
                            .trailers = "grpc-status: 0\ngrpc-message: "};
static const Script silent = {.is_silent = true};

static const struct StatusCase {
    const char *path;
    Script script;
    int code; /* 0: success */
    const char *text;
} cases[] = {
    {"success", {GRPC_200, BODY(MESSAGE), "grpc-status: 0\ngrpc-message: "}, 0, NULL},
    {"two-messages", {GRPC_200, BODY(MESSAGE MESSAGE), "grpc-status: 0"}, 0, NULL},
    {"trailers-only",
     {GRPC_200 "\ngrpc-status: 5\ngrpc-message: no 100%25 w%C3%BC"},
     CH_GRPC_NOT_FOUND,
     "no 100% wü"},
    {"failure-after-a-message",
     {GRPC_200, BODY(MESSAGE), "grpc-status: 9\ngrpc-message: x"},
     CH_GRPC_FAILED_PRECONDITION,
     "x"},
    {"unnamed-status", {GRPC_200 "\ngrpc-status: 77"}, 77, ""},
    {"malformed-status",
     {GRPC_200 "\ngrpc-status: x"},
     CH_GRPC_INTERNAL,
     "transport: malformed grpc-status: \"x\""},
    {"no-status", {GRPC_200, BODY(MESSAGE), "x: y"}, CH_GRPC_UNKNOWN, ""},
    {"no-trailers",
     {GRPC_200, BODY(MESSAGE)},
     CH_GRPC_INTERNAL,
     "server closed the stream without sending trailers"},
    {"cut-message",
     {GRPC_200, BODY("\0\0\0\0\6\x08"), "grpc-status: 0"},
     CH_GRPC_INTERNAL,
     "unexpected EOF"},
    {"undecodable",
     {GRPC_200, BODY("\0\0\0\0\1\xff"), "grpc-status: 0"},
     CH_GRPC_INTERNAL,
     "grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format "
     "data"},
    {"not-utf-8",
     {GRPC_200, BODY("\0\0\0\0\3\x12\1\xff"), "grpc-status: 0"},
     CH_GRPC_INTERNAL,
     "grpc: failed to unmarshal the received message: string field contains invalid UTF-8"},
    {"too-large",
     {GRPC_200, BODY("\0\0\x50\0\x09"), "grpc-status: 0"},
     CH_GRPC_RESOURCE_EXHAUSTED,
     "grpc: received message larger than max (5242889 vs. 4194304)"},
    {"http-404",
     {":status: 404\ncontent-type: text/html"},
     CH_GRPC_UNIMPLEMENTED,
     "unexpected HTTP status code received from server: 404; transport: received unexpected "
     "content-type \"text/html\""},
    {"http-503",
     {":status: 503"},
     CH_GRPC_UNAVAILABLE,
     "unexpected HTTP status code received from server: 503; malformed header: missing HTTP "
     "content-type"},
    {"http-200",
     {":status: 200\ncontent-type: text/html"},
     CH_GRPC_UNKNOWN,
     "transport: received unexpected content-type \"text/html\""},
    {"http-error-with-grpc-status",
     {":status: 405\ncontent-type: application/grpc\ngrpc-status: 13\ngrpc-message: m"},
     CH_GRPC_INTERNAL,
     "m"},
    {"reset-cancel",
     {.n_resets = 9, .reset_code = NGHTTP2_CANCEL},
     CH_GRPC_CANCELED,
     "stream terminated by RST_STREAM with error code: CANCEL"},
    {"reset-no-error",
     {.n_resets = 9, .reset_code = NGHTTP2_NO_ERROR},
     CH_GRPC_INTERNAL,
     "stream terminated by RST_STREAM with error code: NO_ERROR"},
    {"reset-calm",
     {.n_resets = 9, .reset_code = NGHTTP2_ENHANCE_YOUR_CALM},
     CH_GRPC_RESOURCE_EXHAUSTED,
     "stream terminated by RST_STREAM with error code: ENHANCE_YOUR_CALM"},
    {"reset-unnamed",
     {.n_resets = 9, .reset_code = 99},
     CH_GRPC_UNKNOWN,
     "stream terminated by RST_STREAM with error code: 99"},
    {"refused-once-is-retried",
     {GRPC_200, BODY(MESSAGE), "grpc-status: 0", 1, NGHTTP2_REFUSED_STREAM},
     0,
     NULL},
    {"refused-twice",
     {.n_resets = 2, .reset_code = NGHTTP2_REFUSED_STREAM},
     CH_GRPC_UNAVAILABLE,
     "stream terminated by RST_STREAM with error code: REFUSED_STREAM"},
    {"refused-after-half-a-message",
     {GRPC_200, BODY("\0\0\0\0\6\x08"), .reset_code = NGHTTP2_REFUSED_STREAM, .resets_late = true},
     CH_GRPC_UNAVAILABLE,
     "stream terminated by RST_STREAM with error code: REFUSED_STREAM"},
    {"connection-closed", {.closes = true}, CH_GRPC_UNAVAILABLE, "error reading from server: EOF"},
    {"goaway-lets-it-finish",
     {GRPC_200, BODY(MESSAGE), "grpc-status: 0", .says_goaway = true},
     0,
     NULL},
};

static void
test_status(Fixture *f, gconstpointer data)
{
    const struct StatusCase *c = data;

    f->script = &c->script;
    start(f, DEADLINE_US);
    test_peer_run_until(&f->peer, &f->is_done);
    if (c->text == NULL) {
        g_assert_no_error(f->error);
        g_assert_cmpuint(f->n_messages, ==, c->script.body_length / (sizeof(MESSAGE) - 1));
    } else {
        g_assert_error(f->error, CH_GRPC_ERROR, c->code);
        g_assert_cmpstr(f->error->message, ==, c->text);
    }
}

static void
test_request_on_the_wire(Fixture *f, gconstpointer data)
{
    static const uint8_t body[] = "\0\0\0\0\4\x0a\2{}";

    start(f, 0);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_cmpstr(f->peer.headers->str,
                    ==,
                    ":method: POST\n:scheme: http\n:path: " METHOD
                    "\n:authority: localhost\ncontent-type: application/grpc\n"
                    "user-agent: chandler\nte: trailers\n");
    g_assert_cmpuint(f->peer.data->len, ==, sizeof(body) - 1);
    g_assert_true(memcmp(f->peer.data->data, body, sizeof(body) - 1) == 0);
}

static void
test_deadline(Fixture *f, gconstpointer data)
{
    start(f, 30 * CH_MS_US);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_error(f->error, CH_GRPC_ERROR, CH_GRPC_DEADLINE_EXCEEDED);
    g_assert_cmpstr(f->error->message, ==, "context deadline exceeded");
    test_peer_run_until(&f->peer, &f->has_client_reset);
    g_assert_cmpuint(f->client_reset, ==, NGHTTP2_CANCEL);
    g_assert_nonnull(strstr(f->peer.headers->str, "grpc-timeout: "));
}

static void
test_cancel_resets(Fixture *f, gconstpointer data)
{
    start(f, DEADLINE_US);
    while (f->n_requests == 0)
        test_peer_turn(&f->peer);
    ch_grpc_call_cancel(f->call);
    test_peer_run_until(&f->peer, &f->has_client_reset);
    g_assert_cmpuint(f->client_reset, ==, NGHTTP2_CANCEL);
    g_assert_false(f->is_done);
}

static void
test_cancel_inside_message(Fixture *f, gconstpointer data)
{
    static const Script two = {GRPC_200, BODY(MESSAGE MESSAGE), "grpc-status: 0"};

    f->script = &two;
    f->cancels_in_message = true;
    start(f, DEADLINE_US);
    while (f->n_messages == 0)
        test_peer_turn(&f->peer);
    test_peer_turn(&f->peer);
    g_assert_cmpuint(f->n_messages, ==, 1);
    g_assert_false(f->is_done);
}

static void
test_close_inside_message(Fixture *f, gconstpointer data)
{
    static const Script endless = {GRPC_200, BODY(MESSAGE), .n_resets = 0, .trailers = NULL};

    f->script = &endless;
    f->closes_in_message = true;
    start(f, DEADLINE_US);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_false(ch_grpc_channel_is_usable(f->channel));
}

static void
test_drop_channel_inside_message(Fixture *f, gconstpointer data)
{
    f->drops_in_message = true;
    start(f, DEADLINE_US);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_no_error(f->error);
}

/* From the on_done of a call that its connection's end ended, or its channel's. */
static void
test_start_inside_done(Fixture *f, gconstpointer data)
{
    static const struct {
        bool is_closed;
        int code;
    } ends[] = {{false, CH_GRPC_UNAVAILABLE}, {true, CH_GRPC_CANCELED}};

    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++) {
        f->is_done = false;
        f->starts_when_done = true;
        start(f, DEADLINE_US);
        if (ends[i].is_closed)
            ch_grpc_channel_close(f->channel);
        else
            shutdown(f->peer.fd, SHUT_RDWR);
        test_peer_run_until(&f->peer, &f->is_done);
        g_assert_error(f->error, CH_GRPC_ERROR, ends[i].code);
        g_clear_error(&f->error);
    }
}

static void
test_close_cancels_calls(Fixture *f, gconstpointer data)
{
    start(f, DEADLINE_US);
    while (f->n_requests == 0)
        test_peer_turn(&f->peer);
    ch_grpc_channel_close(f->channel);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_error(f->error, CH_GRPC_ERROR, CH_GRPC_CANCELED);
    g_assert_cmpstr(f->error->message, ==, "grpc: the client connection is closing");

    f->is_done = false;
    g_clear_error(&f->error);
    start(f, DEADLINE_US);
    g_assert_false(f->is_done); /* never from within */
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_error(f->error, CH_GRPC_ERROR, CH_GRPC_CANCELED);
}

static void
test_lost_channel_is_unavailable(Fixture *f, gconstpointer data)
{
    shutdown(f->peer.fd, SHUT_RDWR);
    while (ch_grpc_channel_is_usable(f->channel))
        test_peer_turn(&f->peer);
    start(f, DEADLINE_US);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_error(f->error, CH_GRPC_ERROR, CH_GRPC_UNAVAILABLE);
    g_assert_cmpstr(
        f->error->message, ==, "connection error: desc = \"error reading from server: EOF\"");
}

static void
test_channel_that_never_was(Fixture *f, gconstpointer data)
{
    ch_grpc_channel_unref(f->channel);
    f->channel = ch_grpc_channel_new_lost(f->peer.loop, "connection refused");
    g_assert_false(ch_grpc_channel_is_usable(f->channel));
    start(f, DEADLINE_US);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_error(f->error, CH_GRPC_ERROR, CH_GRPC_UNAVAILABLE);
    g_assert_cmpstr(f->error->message, ==, "connection refused");
}

static void
test_deaf_peer_makes_it_unusable(Fixture *f, gconstpointer data)
{
    const int64_t deadline_us = ch_time_now_us() + DEADLINE_US;

    shutdown(f->peer.fd, SHUT_RD);
    start(f, DEADLINE_US);
    while (ch_grpc_channel_is_usable(f->channel)) {
        g_assert_cmpint(ch_time_now_us(), <, deadline_us);
        test_peer_turn_loop(&f->peer);
    }
    ch_grpc_call_cancel(f->call);
}

static guint
count_fds(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/fd", 0, NULL);
    guint n = 0;

    while (g_dir_read_name(dir) != NULL)
        n++;
    return n;
}

/* Opened, used and dropped at every stage of their lives; half of them by peers that left. */
static void
test_thousand_channels(Fixture *f, gconstpointer data)
{
    const guint n_before = count_fds();
    ChGrpcChannel *ours = f->channel;

    for (guint i = 0; i < 1000; i++) {
        int fds[2];

        g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
        f->channel = ch_grpc_channel_new(f->peer.loop, fds[0], "localhost");
        f->is_done = false;
        g_clear_error(&f->error);
        start(f, DEADLINE_US);
        if (i % 2 == 0)
            close(fds[1]);
        for (guint n_turns = i % 5; n_turns > 0; n_turns--)
            test_peer_turn_loop(&f->peer);
        ch_grpc_channel_close(f->channel);
        ch_grpc_channel_unref(f->channel);
        while (!f->is_done)
            test_peer_turn_loop(&f->peer);
        g_assert_nonnull(f->error);
        if (i % 2 != 0)
            close(fds[1]);
    }
    f->channel = ours;
    for (int i = 0; i < 4; i++)
        test_peer_turn(&f->peer);
    g_assert_cmpuint(count_fds(), ==, n_before);
}

static void
test_unpackable_request(Fixture *f, gconstpointer data)
{
    static const ChGrpcSink sink = {on_message, on_done};
    Kubevirt__Notify__V1__Response bad = KUBEVIRT__NOTIFY__V1__RESPONSE__INIT;
    char text[] = "\xff";

    bad.message = text;
    f->call = ch_grpc_call_start(
        f->channel, METHOD, &bad.base, &kubevirt__notify__v1__response__descriptor, 0, &sink, f);
    test_peer_run_until(&f->peer, &f->is_done);
    g_assert_error(f->error, CH_GRPC_ERROR, CH_GRPC_INTERNAL);
    g_assert_cmpuint(f->n_requests, ==, 0);
}

#define ADD(name, script, function)                                                                \
    g_test_add("/grpc/client/" name, Fixture, script, set_up, function, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/grpc/client/status/", cases[i].path, NULL);

        g_test_add(path, Fixture, &cases[i], set_up, test_status, tear_down);
    }
    ADD("request-on-the-wire", &good, test_request_on_the_wire);
    ADD("deadline", &silent, test_deadline);
    ADD("cancel-resets", &silent, test_cancel_resets);
    ADD("cancel-inside-message", NULL, test_cancel_inside_message);
    ADD("close-inside-message", NULL, test_close_inside_message);
    ADD("drop-channel-inside-message", &good, test_drop_channel_inside_message);
    ADD("start-inside-done", &silent, test_start_inside_done);
    ADD("close-cancels-calls", &silent, test_close_cancels_calls);
    ADD("lost-channel-is-unavailable", &silent, test_lost_channel_is_unavailable);
    ADD("channel-that-never-was", &silent, test_channel_that_never_was);
    ADD("deaf-peer-makes-it-unusable", &silent, test_deaf_peer_makes_it_unusable);
    ADD("thousand-channels", &silent, test_thousand_channels);
    ADD("unpackable-request", &silent, test_unpackable_request);
    return g_test_run();
}
