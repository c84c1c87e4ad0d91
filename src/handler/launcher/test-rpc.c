/* SPDX-License-Identifier: Apache-2.0 */

/* Commands and their failures, against our own gRPC server on a loop of its own. */

#include "handler/launcher/rpc.h"

#include "handler/launcher/test-raw-launcher.h"

#include <string.h>

typedef struct {
    FakeLauncher fake;
    ChGrpcChannel *channel;
} Fixture;

static void
set_up(Fixture *f, gconstpointer data)
{
    fake_launcher_start(&f->fake);
    f->channel = ch_grpc_channel_new(f->fake.loop, fake_launcher_connect(&f->fake), "localhost");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_grpc_channel_close(f->channel);
    ch_grpc_channel_unref(f->channel);
    fake_launcher_stop(&f->fake);
}

static void
test_vmi_commands(Fixture *f, gconstpointer data)
{
    static const struct {
        ChLauncherRpc rpc;
        const char *call;
    } commands[] = {
        {CH_LAUNCHER_RPC_SYNC, " Sync({})"},
        {CH_LAUNCHER_RPC_SHUTDOWN, " Shutdown({})"},
        {CH_LAUNCHER_RPC_KILL, " Kill({})"},
        {CH_LAUNCHER_RPC_DELETE, " Delete({})"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *calls = NULL;

        ch_launcher_send_vmi(f->channel, commands[i].rpc, "{}", 2, NULL, &error);
        g_assert_no_error(error);
        calls = fake_launcher_take_calls(&f->fake);
        g_assert_cmpstr(calls, ==, commands[i].call);
        g_assert_true(f->fake.saw_options); /* empty, but there */
    }
}

/* 03 §4.6: how each way to fail reads, and what callers can tell apart. */
static const struct FailureCase {
    const char *path;
    ChGrpcStatus status;
    const char *text;
    ChLauncherErrorCode code;
    const char *message;
} failure_cases[] = {
    {"unavailable",
     CH_GRPC_UNAVAILABLE,
     "gone",
     CH_LAUNCHER_ERROR_CALL,
     "unknown error encountered sending command Kill: rpc error: code = Unavailable desc = gone"},
    {"internal",
     CH_GRPC_INTERNAL,
     "bug",
     CH_LAUNCHER_ERROR_CALL,
     "unknown error encountered sending command Kill: rpc error: code = Internal desc = bug"},
    {"canceled",
     CH_GRPC_CANCELED,
     "bye",
     CH_LAUNCHER_ERROR_DISCONNECTED,
     "rpc error: code = Canceled desc = bye"},
    {"unimplemented",
     CH_GRPC_UNIMPLEMENTED,
     "unknown method X",
     CH_LAUNCHER_ERROR_UNIMPLEMENTED,
     "rpc error: code = Unimplemented desc = unknown method X"},
    {"refused",
     CH_GRPC_OK,
     "no",
     CH_LAUNCHER_ERROR_REFUSED,
     "server error. command Kill failed: \"no\""},
    {"refused-silently",
     CH_GRPC_OK,
     "",
     CH_LAUNCHER_ERROR_REFUSED,
     "server error. command Kill failed: \"\""},
    {"refused-with-escapes",
     CH_GRPC_OK,
     "a \"b\" \\ \n\t\r\a\b\f\v \x01\x7f \xc2\x80 \xe2\x80\xa8 \xc3\xa9 \xf3\xa0\x80\x81",
     CH_LAUNCHER_ERROR_REFUSED,
     "server error. command Kill failed: \"a \\\"b\\\" \\\\ \\n\\t\\r\\a\\b\\f\\v \\x01\\x7f "
     "\\u0080 \\u2028 \xc3\xa9 "
     "\\U000e0001\""},
};

static void
test_failure(Fixture *f, gconstpointer data)
{
    const struct FailureCase *c = data;
    g_autoptr(GError) error = NULL;

    fake_launcher_answer(&f->fake, c->status, c->text);
    g_assert_false(ch_launcher_send_vmi(f->channel, CH_LAUNCHER_RPC_KILL, "{}", 2, NULL, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, (int)c->code);
    g_assert_cmpstr(error->message, ==, c->message);
}

/* A launcher's text goes into conditions and events: it has an end. */
static void
test_refusal_is_bounded(Fixture *f, gconstpointer data)
{
    g_autofree char *text = g_strnfill(3 << 20, 'x');
    g_autoptr(GError) error = NULL;

    fake_launcher_answer(&f->fake, CH_GRPC_OK, text);
    g_assert_false(ch_launcher_ping(f->channel, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_REFUSED);
    g_assert_cmpuint(strlen(error->message), <, 20000);
    g_assert_true(g_str_has_suffix(error->message, "xxx...\""));
}

static void
test_closed_channel_is_a_disconnect(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    ch_grpc_channel_close(f->channel);
    g_assert_false(ch_launcher_send_vmi(f->channel, CH_LAUNCHER_RPC_DELETE, "{}", 2, NULL, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_DISCONNECTED);
}

static void
set_versions(Fixture *f, gsize n, uint32_t first, uint32_t second)
{
    pthread_mutex_lock(&f->fake.lock);
    f->fake.n_versions = n;
    f->fake.versions[0] = first;
    f->fake.versions[1] = second;
    pthread_mutex_unlock(&f->fake.lock);
}

static void
test_versions(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) none = NULL;
    g_autoptr(GError) others = NULL;
    g_autoptr(GError) failed = NULL;

    g_assert_true(ch_launcher_check_version(f->channel, NULL));
    set_versions(f, 2, 7, 1);
    g_assert_true(ch_launcher_check_version(f->channel, NULL));
    set_versions(f, 0, 0, 0);
    g_assert_false(ch_launcher_check_version(f->channel, &none));
    g_assert_cmpstr(none->message, ==, "no compatible version found, server: [], client: [1]");
    set_versions(f, 2, 2, 3);
    g_assert_false(ch_launcher_check_version(f->channel, &others));
    g_assert_cmpstr(others->message, ==, "no compatible version found, server: [2 3], client: [1]");
    fake_launcher_answer(&f->fake, CH_GRPC_UNAVAILABLE, "x");
    g_assert_false(ch_launcher_check_version(f->channel, &failed));
    g_assert_cmpstr(failed->message,
                    ==,
                    "could not check cmd server version: rpc error: code = Unavailable desc = x");
}

static void
test_get_domain(Fixture *f, gconstpointer data)
{
    char *none = (char *)"unset";
    g_autofree char *domain = NULL;
    g_autoptr(GError) error = NULL;
    char *untouched = NULL;

    g_assert_true(ch_launcher_get_domain(f->channel, &none, NULL));
    g_assert_null(none);
    f->fake.domain = "{\"a\":1}";
    g_assert_true(ch_launcher_get_domain(f->channel, &domain, NULL));
    g_assert_cmpstr(domain, ==, "{\"a\":1}");
    fake_launcher_answer(&f->fake, CH_GRPC_OK, "no libvirt");
    g_assert_false(ch_launcher_get_domain(f->channel, &untouched, &error));
    g_assert_null(untouched);
    g_assert_cmpstr(error->message, ==, "server error. command GetDomain failed: \"no libvirt\"");
}

static void
test_guest_info_without_response(Fixture *f, gconstpointer data)
{
    g_autofree char *info = NULL;
    g_autoptr(GError) error = NULL;

    f->fake.guest_info = (char *)"{}";
    ch_launcher_get_guest_info(f->channel, &info, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(info, ==, "{}");
}

/* --- with a launcher that answers given bytes */

static const ChLauncherRequest a_vmi = {.vmi_json = "{}", .vmi_length = 2};

static void
test_empty_answers(RawLauncher *f, gconstpointer data)
{
    static const struct {
        ChLauncherRpc rpc;
        const char *message; /* NULL: fine */
    } empties[] = {
        {CH_LAUNCHER_RPC_GET_DOMAIN, NULL},
        {CH_LAUNCHER_RPC_GET_DOMAIN_STATS, NULL},
        {CH_LAUNCHER_RPC_GET_GUEST_INFO, NULL},
        {CH_LAUNCHER_RPC_GET_USERS, NULL},
        {CH_LAUNCHER_RPC_GET_FILESYSTEMS, NULL},
        {CH_LAUNCHER_RPC_GET_QEMU_VERSION, "error getting the qemu version"},
        {CH_LAUNCHER_RPC_GET_SEV_INFO, "unexpected end of JSON input"},
        {CH_LAUNCHER_RPC_GET_LAUNCH_MEASUREMENT, "unexpected end of JSON input"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(empties); i++) {
        g_auto(ChLauncherAnswer) answer = {0};
        g_autoptr(GError) error = NULL;
        g_autoptr(ChJson) json = NULL;

        ch_launcher_call(f->channel, empties[i].rpc, &a_vmi, &answer, &error);
        if (empties[i].message != NULL) {
            g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_PAYLOAD);
            g_assert_cmpstr(error->message, ==, empties[i].message);
            continue;
        }
        g_assert_no_error(error);
        g_assert_cmpstr(answer.text, ==, "");
        g_assert_true(ch_launcher_answer_decode(&answer, &json, NULL));
        g_assert_null(json);
    }
}

/* The launcher says that the checkpoint is of no use: virt-controller acts on that. */
static void
test_invalid_checkpoint(RawLauncher *f, gconstpointer data)
{
    const Bytes invalid = BYTES("\x0a\x04\x12\x02no\x10\x01");
    g_autoptr(GError) error = NULL;

    raw_launcher_reply(f, invalid);
    g_assert_false(
        ch_launcher_call(f->channel, CH_LAUNCHER_RPC_REDEFINE_CHECKPOINT, &a_vmi, NULL, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_CHECKPOINT);
    g_assert_cmpstr(error->message, ==, "RedefineCheckpoint failed: no");
}

static void
test_stats(RawLauncher *f, gconstpointer data)
{
    const Bytes reply = BYTES(SUCCESS "\x12\x04\x12\x02{}\x1a\x02\x10\x07\x22\x04\x12\x02"
                                      "v1\x92\x01\x00");
    const ChLauncherRequest all = {.stats = CH_LAUNCHER_STATS_ALL};
    g_auto(ChLauncherAnswer) answer = {0};
    const Kubevirt__Cmd__V1__VMStatsResponse *stats;

    raw_launcher_reply(f, reply);
    g_assert_true(ch_launcher_call(f->channel, CH_LAUNCHER_RPC_GET_VM_STATS, &all, &answer, NULL));
    g_assert_cmpuint(f->request->len, ==, 15 * 2 + 3);
    stats = ch_launcher_answer_stats(&answer);
    g_assert_cmpstr(stats->domain_stats->domain_stats, ==, "{}");
    g_assert_cmpint(stats->dirty_rate_stats->dirty_rate_mbs, ==, 7);
    g_assert_cmpstr(
        stats->guest_agent_version->message, ==, "v1"); /* its own success says nothing */
    g_assert_null(stats->guest_get_load);
    g_assert_nonnull(stats->guest_get_memory_blocks);
}

static const struct DecodeCase {
    const char *path;
    ChLauncherRpc rpc;
    Bytes reply;
    const char *printed; /* "": nothing; NULL: an error */
} decode_cases[] = {
    {"object", CH_LAUNCHER_RPC_GET_GUEST_INFO, BYTES(SUCCESS "\x12\x09 {\"a\":1} "), "{\"a\":1}"},
    {"null", CH_LAUNCHER_RPC_GET_GUEST_INFO, BYTES(SUCCESS "\x12\x05null\n"), ""},
    {"array-for-object", CH_LAUNCHER_RPC_GET_GUEST_INFO, BYTES(SUCCESS "\x12\x02[]"), NULL},
    {"no-json", CH_LAUNCHER_RPC_GET_GUEST_INFO, BYTES(SUCCESS "\x12\x02{\""), NULL},
    {"array", CH_LAUNCHER_RPC_GET_USERS, BYTES(SUCCESS "\x12\x03[1]"), "[1]"},
    {"object-for-array", CH_LAUNCHER_RPC_GET_FILESYSTEMS, BYTES(SUCCESS "\x12\x02{}"), NULL},
    {"bytes",
     CH_LAUNCHER_RPC_GET_SEV_INFO,
     BYTES(SUCCESS "\x12\x0b{\"pdh\":\"x\"}"),
     "{\"pdh\":\"x\"}"},
    {"bytes-not-utf-8", CH_LAUNCHER_RPC_GET_SEV_INFO, BYTES(SUCCESS "\x12\x04{\"\xff\""), NULL},
};

static void
test_decode(RawLauncher *f, gconstpointer data)
{
    const struct DecodeCase *c = data;
    g_auto(ChLauncherAnswer) answer = {0};
    g_autoptr(ChJson) json = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *printed = NULL;

    raw_launcher_reply(f, c->reply);
    g_assert_true(ch_launcher_call(f->channel, c->rpc, &a_vmi, &answer, NULL));
    if (!ch_launcher_answer_decode(&answer, &json, &error)) {
        g_assert_null(c->printed);
        g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_PAYLOAD);
        return;
    }
    printed = json != NULL ? ch_json_print(json, NULL) : g_strdup("");
    g_assert_cmpstr(printed, ==, c->printed);
}

/* 03 §3.4, traps 2 and 37: these end a launcher in Go, and the VM with it. */
static void
test_deadly_requests_are_not_sent(RawLauncher *f, gconstpointer data)
{
    static const struct {
        ChLauncherRpc rpc;
        ChLauncherRequest request;
    } deadly[] = {
        {CH_LAUNCHER_RPC_SYNC, {0}},
        {CH_LAUNCHER_RPC_FREEZE, {.seconds = 1}},
        {CH_LAUNCHER_RPC_GET_SCREENSHOT, {0}},
        {CH_LAUNCHER_RPC_SYNC_MEMORY, {.vmi_json = "{}", .vmi_length = 2}},
        {CH_LAUNCHER_RPC_SYNC_MEMORY, {.vmi_json = "no JSON", .vmi_length = 7}},
        {CH_LAUNCHER_RPC_MIGRATE, {.vmi_json = "{}", .vmi_length = 2, .document = "[]"}},
        {CH_LAUNCHER_RPC_BACKUP, {.vmi_json = "{}", .vmi_length = 2, .document = ""}},
        {CH_LAUNCHER_RPC_EXEC, {.domain_name = "d", .command = "c"}},
        {CH_LAUNCHER_RPC_EXEC, {.domain_name = "d", .command = "c", .seconds = -1}},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(deadly); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_false(
            ch_launcher_call(f->channel, deadly[i].rpc, &deadly[i].request, NULL, &error));
        g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_REQUEST);
    }
    g_assert_null(f->asked);
}

/* JSON null as options ends a launcher in Go: it is sent as the empty object that Go makes of it.
 */
static void
test_null_is_an_empty_document(RawLauncher *f, gconstpointer data)
{
    const Bytes sent = BYTES("\x0a\x04\x0a\x02{}\x12\x02{}"), ok = BYTES("\x08\x01");
    const char *const nothings[] = {NULL, "null", " null\n", "{}"};

    raw_launcher_reply(f, ok);
    for (gsize i = 0; i < G_N_ELEMENTS(nothings); i++) {
        const ChLauncherRequest request = {
            .vmi_json = "{}", .vmi_length = 2, .document = nothings[i]};

        g_assert_true(ch_launcher_call(f->channel, CH_LAUNCHER_RPC_BACKUP, &request, NULL, NULL));
        assert_bytes(f->request->data, f->request->len, sent);
    }
}

/* Trap 6: what is not UTF-8 does not leave the agent. */
static void
test_text_must_be_utf8(RawLauncher *f, gconstpointer data)
{
    const ChLauncherRequest request = {.domain_name = "d", .command = "\xff", .seconds = 1};
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_launcher_call(f->channel, CH_LAUNCHER_RPC_EXEC, &request, NULL, &error));
    g_assert_cmpstr(error->message,
                    ==,
                    "rpc error: code = Internal desc = grpc: error while marshaling: string field "
                    "contains invalid UTF-8");
    g_assert_null(f->asked);
}

/* Scalars and the Response repeat, the last one counts; unknown fields are skipped. */
static void
test_tolerated_answers(RawLauncher *f, gconstpointer data)
{
    const Bytes answers[] = {BYTES("\x08\x00\x08\x01"), BYTES("\x08\x01\xf8\x07\x05")};

    for (gsize i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autoptr(GError) error = NULL;

        raw_launcher_reply(f, answers[i]);
        ch_launcher_call(f->channel, CH_LAUNCHER_RPC_PING, NULL, NULL, &error);
        g_assert_no_error(error);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, data, func) g_test_add(path, Fixture, data, set_up, func, tear_down)
    ADD("/rpc/vmi-commands", NULL, test_vmi_commands);
    for (gsize i = 0; i < G_N_ELEMENTS(failure_cases); i++) {
        g_autofree char *path = g_strconcat("/rpc/failure/", failure_cases[i].path, NULL);

        ADD(path, &failure_cases[i], test_failure);
    }
    ADD("/rpc/refusal-is-bounded", NULL, test_refusal_is_bounded);
    ADD("/rpc/closed-channel-is-a-disconnect", NULL, test_closed_channel_is_a_disconnect);
    ADD("/rpc/versions", NULL, test_versions);
    ADD("/rpc/get-domain", NULL, test_get_domain);
    ADD("/rpc/guest-info-without-response", NULL, test_guest_info_without_response);
#undef ADD
#define ADD(path, data, func)                                                                      \
    g_test_add(path, RawLauncher, data, raw_launcher_set_up, func, raw_launcher_tear_down)
    for (gsize i = 0; i < G_N_ELEMENTS(decode_cases); i++) {
        g_autofree char *path = g_strconcat("/rpc/decode/", decode_cases[i].path, NULL);

        ADD(path, &decode_cases[i], test_decode);
    }
    ADD("/rpc/empty-answers", NULL, test_empty_answers);
    ADD("/rpc/invalid-checkpoint", NULL, test_invalid_checkpoint);
    ADD("/rpc/stats", NULL, test_stats);
    ADD("/rpc/deadly-requests-are-not-sent", NULL, test_deadly_requests_are_not_sent);
    ADD("/rpc/null-is-an-empty-document", NULL, test_null_is_an_empty_document);
    ADD("/rpc/text-must-be-utf8", NULL, test_text_must_be_utf8);
    ADD("/rpc/tolerated-answers", NULL, test_tolerated_answers);
    return g_test_run();
}
