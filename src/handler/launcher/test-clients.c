/* SPDX-License-Identifier: Apache-2.0 */

/* The table of launcher connections over a fake seam, which writes down what it is asked. */

#include "handler/launcher/clients.h"

#include "handler/launcher/rpc.h"
#include "handler/launcher/test-fake-launcher.h"
#include "lib/base/errors.h"
#include "lib/base/time.h"

#define NOW_US G_GINT64_CONSTANT(1000000000)

typedef struct {
    FakeLauncher fake;
    ChLauncherClients *clients;
    GString *steps; /* of the seam, " name" each */

    const char *socket_pods; /* UIDs of pods that have a socket: "a b" */
    const char *live_pods;   /* those of them that take connections */
    bool has_dir, is_unresponsive, is_recorded;
    bool is_quiet;       /* no steps are written down and none fails */
    const char *failing; /* the step that fails */
    int failing_errno;   /* of "reconnect"; 0: as the others */
} Fixture;

static bool
fails(Fixture *f, const char *step, GError **error)
{
    if (f->is_quiet)
        return false;
    g_string_append_printf(f->steps, " %s", step);
    if (g_strcmp0(f->failing, step) != 0)
        return false;
    ch_fail(error, CH_ERROR_FAILED, "%s fails", step);
    return true;
}

static char *
find_socket(gpointer data, const char *pod_uid, bool *out_is_unresponsive)
{
    Fixture *f = data;
    g_auto(GStrv) pods = g_strsplit(f->socket_pods, " ", -1);

    *out_is_unresponsive = f->is_unresponsive;
    return g_strv_contains((const char *const *)pods, pod_uid)
               ? g_strconcat("/pods/", pod_uid, NULL)
               : NULL;
}

static bool
has_socket_dir(gpointer data, const char *pod_uid)
{
    return ((Fixture *)data)->has_dir;
}

static bool
is_unresponsive(gpointer data, const char *socket_path)
{
    return ((Fixture *)data)->is_unresponsive;
}

static bool
is_live(gpointer data, const char *socket_path)
{
    Fixture *f = data;
    g_auto(GStrv) pods = g_strsplit(f->live_pods, " ", -1);

    return g_strv_contains((const char *const *)pods, socket_path + strlen("/pods/"));
}

static bool
record(gpointer data, const ChLauncherVmi *vmi, const char *path, bool *out_is_new, GError **error)
{
    Fixture *f = data;

    *out_is_new = !f->is_recorded;
    if (fails(f, "record", error))
        return false;
    f->is_recorded = true;
    return true;
}

static void
forget(gpointer data, const char *namespace_, const char *name, const char *uid)
{
    Fixture *f = data;

    (void)fails(f, "forget", NULL);
    f->is_recorded = false;
}

static bool
connect_socket(gpointer data, const char *path, int *out_fd, gpointer *out_pod, GError **error)
{
    Fixture *f = data;

    if (fails(f, "connect", error))
        return false;
    *out_fd = fake_launcher_connect(&f->fake);
    *out_pod = f;
    return true;
}

static bool
reconnect_pod(gpointer data, gpointer pod, int *out_fd, GError **error)
{
    Fixture *f = data;

    if (f->failing_errno != 0) {
        g_string_append(f->steps, " reconnect");
        return ch_fail_errno(error, f->failing_errno, "reconnect");
    }
    if (fails(f, "reconnect", error))
        return false;
    *out_fd = fake_launcher_connect(&f->fake);
    return true;
}

static gpointer
open_pipe(gpointer data, gpointer pod, const ChLauncherVmi *vmi, GError **error)
{
    return fails(data, "open-pipe", error) ? NULL : data;
}

static void
close_pipe(gpointer data, gpointer pipe)
{
    (void)fails(data, "close-pipe", NULL);
}

static void
release(gpointer data, gpointer pod)
{
    (void)fails(data, "release", NULL);
}

static const ChLauncherSeam seam = {
    .find_socket = find_socket,
    .has_socket_dir = has_socket_dir,
    .is_unresponsive = is_unresponsive,
    .is_live = is_live,
    .record = record,
    .forget = forget,
    .connect = connect_socket,
    .reconnect = reconnect_pod,
    .open_pipe = open_pipe,
    .close_pipe = close_pipe,
    .release = release,
};

static void
set_up(Fixture *f, gconstpointer data)
{
    fake_launcher_start(&f->fake);
    f->steps = g_string_new(NULL);
    f->socket_pods = f->live_pods = "a";
    f->has_dir = true;
    f->clients = ch_launcher_clients_new(f->fake.loop, "node01", &seam, f);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_launcher_clients_free(f->clients);
    fake_launcher_stop(&f->fake);
    g_string_free(f->steps, TRUE);
}

static const ChLauncherPod pods[] = {{"a", "node01"}, {"b", "node01"}, {"elsewhere", "node02"}};
static const ChLauncherVmi vmi = {"ns", "vm", "u", pods, G_N_ELEMENTS(pods), true};

static ChLauncherClient *
get(Fixture *f)
{
    g_autoptr(GError) error = NULL;
    ChLauncherClient *client = ch_launcher_clients_get(f->clients, &vmi, &error);

    g_assert_no_error(error);
    return client;
}

static void
assert_steps(Fixture *f, const char *steps)
{
    g_assert_cmpstr(f->steps->str, ==, steps);
    g_string_truncate(f->steps, 0);
}

/* --- connecting --- */

static void
test_connected_once(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) first = get(f);
    g_autoptr(ChLauncherClient) second = NULL;
    g_autofree char *calls = NULL;

    assert_steps(f, " record connect open-pipe");
    second = get(f);
    g_assert_true(first == second);
    assert_steps(f, "");
    calls = fake_launcher_take_calls(&f->fake);
    g_assert_cmpstr(calls, ==, " Info");
}

/* 03 §4.8: what a failing step undoes, in this order. */
static const struct UndoCase {
    const char *failing;
    bool was_recorded;
    const char *steps;
} undo_cases[] = {
    {"record", false, " record"},
    {"connect", false, " record connect forget"},
    {"open-pipe", false, " record connect open-pipe release forget"},
    {"connect", true, " record connect"}, /* of a VM that may run: stays on record */
    {"open-pipe", true, " record connect open-pipe release"},
};

static void
test_undo(Fixture *f, gconstpointer data)
{
    const struct UndoCase *c = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ChLauncherClient) client = NULL;

    f->failing = c->failing;
    f->is_recorded = c->was_recorded;
    g_assert_null(ch_launcher_clients_get(f->clients, &vmi, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_FAILED);
    assert_steps(f, c->steps);
    f->failing = NULL; /* nothing is in the way of the next try */
    client = get(f);
}

static void
test_wrong_version_is_undone(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;

    f->fake.versions[0] = 9;
    g_assert_null(ch_launcher_clients_get(f->clients, &vmi, &error));
    g_assert_cmpstr(error->message, ==, "no compatible version found, server: [9], client: [1]");
    assert_steps(f, " record connect release forget");
}

/* spec:01#98 spec:05-16.2#44 field:FR-D05 field:FR-C11: dead pods' sockets are passed over */
static void
test_which_socket(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) none = NULL;
    g_autoptr(GError) many = NULL;
    g_autoptr(ChLauncherClient) client = NULL;

    f->socket_pods = "elsewhere"; /* another node's pod does not count */
    g_assert_null(ch_launcher_clients_get(f->clients, &vmi, &none));
    g_assert_cmpstr(none->message, ==, "No command socket found for vmi u");
    f->socket_pods = f->live_pods = "a b";
    g_assert_null(ch_launcher_clients_get(f->clients, &vmi, &many));
    g_assert_cmpstr(
        many->message, ==, "Found multiple sockets for vmi ns/vm. waiting for only one to exist");
    g_clear_error(&many);
    f->live_pods = ""; /* which of them will be back? */
    g_assert_null(ch_launcher_clients_get(f->clients, &vmi, &many));
    g_assert_error(many, CH_ERROR, CH_ERROR_FAILED);
    assert_steps(f, "");
    f->live_pods = "b";
    client = get(f);
}

/* field:FR-B10 */
static void
test_socket_on_record(Fixture *f, gconstpointer data)
{
    ChLauncherVmi gone = {"ns", "vm", "u", NULL, 0, true, "/pods/a"};
    g_autoptr(GError) error = NULL;
    g_autoptr(ChLauncherClient) client = NULL;

    gone.known_socket = NULL;
    g_assert_null(ch_launcher_clients_get(f->clients, &gone, &error));
    g_assert_cmpstr(error->message, ==, "No command socket found for vmi u");
    gone.known_socket = "/pods/a";
    client = ch_launcher_clients_get(f->clients, &gone, NULL);
    g_assert_nonnull(client);
    assert_steps(f, " record connect open-pipe");
}

static void
test_verified(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) good = ch_launcher_clients_get_verified(f->clients, &vmi, NULL);
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(good);
    assert_steps(f, " record connect open-pipe");
    fake_launcher_answer(&f->fake, CH_GRPC_UNAVAILABLE, "x");
    g_assert_null(ch_launcher_clients_get_verified(f->clients, &vmi, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_CALL);
    assert_steps(f, ""); /* the entry stays */
}

/* --- losing and closing --- */

static void
close_connections(gpointer data)
{
    FakeLauncher *fake = data;

    ch_grpc_server_free(fake->server);
    fake->server = ch_grpc_server_new(fake->loop, NULL);
    ch_grpc_server_add(fake->server, fake_methods, G_N_ELEMENTS(fake_methods), fake);
}

static void
lose_connection(Fixture *f, ChLauncherClient *client)
{
    const gint64 until_us = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;

    ch_loop_post(f->fake.loop, close_connections, &f->fake, NULL);
    while (ch_grpc_channel_is_usable(client->channel) && g_get_monotonic_time() < until_us)
        g_usleep(1000);
    g_assert_false(ch_grpc_channel_is_usable(client->channel));
}

static void
test_lost_connection_is_made_again(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) lost = get(f);
    g_autoptr(ChLauncherClient) made = NULL;

    lose_connection(f, lost);
    g_string_truncate(f->steps, 0);
    made = get(f);
    g_assert_true(made != lost);
    g_assert_true(ch_launcher_ping(made->channel, NULL));
    g_assert_true(made->pod == lost->pod);
    g_assert_cmpint(made->since_us, ==, lost->since_us);
    assert_steps(f, " reconnect"); /* to the same process: its pipe and its version are known */
    g_clear_pointer(&lost, ch_launcher_client_unref);
    assert_steps(f, "");
}

/* A launcher that is gone keeps its record: it decides whether the VM is dead. */
static void
test_lost_connection_does_not_come_back(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) lost = get(f);
    g_autoptr(ChLauncherClient) again = NULL;
    g_autoptr(GError) error = NULL;

    lose_connection(f, lost);
    g_string_truncate(f->steps, 0);
    f->failing = "reconnect";
    again = get(f);
    g_assert_true(again == lost);
    assert_steps(f, " reconnect");
    g_assert_false(ch_launcher_ping(again->channel, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_CALL);
}

/* Another process listens there by now: a launcher like any new one, but for its record. */
static void
test_launcher_was_replaced(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) lost = get(f);
    g_autoptr(ChLauncherClient) made = NULL;
    g_autofree char *calls = NULL;

    lose_connection(f, lost);
    g_string_truncate(f->steps, 0);
    f->failing_errno = ESTALE;
    made = get(f);
    g_assert_true(made != lost);
    g_assert_true(ch_launcher_ping(made->channel, NULL));
    calls = fake_launcher_take_calls(&f->fake);
    g_assert_cmpstr(calls, ==, " Info Info Ping");
    assert_steps(f, " reconnect connect open-pipe close-pipe"); /* this test has the old pod yet */
    g_clear_pointer(&lost, ch_launcher_client_unref);
    assert_steps(f, " release");
}

/* --- closed when idle --- */

static int64_t
close_idle(Fixture *f)
{
    return ch_launcher_clients_close_idle(f->clients, ch_time_now_us() + CH_LAUNCHER_IDLE_US);
}

static void
make_idle(Fixture *f)
{
    g_autofree char *calls = NULL;

    ch_launcher_client_unref(get(f));
    g_assert_cmpint(close_idle(f), ==, 0);
    assert_steps(f, " record connect open-pipe");
    calls = fake_launcher_take_calls(&f->fake);
    g_assert_cmpstr(calls, ==, " Info");
}

static void
test_idle_is_closed_and_made_again(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) again = NULL;
    g_autofree char *calls = NULL;

    make_idle(f);
    ch_launcher_clients_forget(f->clients, "u"); /* it was connected: the entry stays */
    again = get(f);
    g_assert_true(ch_launcher_ping(again->channel, NULL));
    assert_steps(f, " reconnect");
    calls = fake_launcher_take_calls(&f->fake);
    g_assert_cmpstr(calls, ==, " Ping");
}

static void
test_idle_keeps_what_is_used(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) client = get(f);
    int64_t next_us;

    g_assert_cmpint(close_idle(f), >, ch_time_now_us() + CH_LAUNCHER_IDLE_US);
    g_assert_true(ch_launcher_ping(client->channel, NULL));
    g_clear_pointer(&client, ch_launcher_client_unref);
    /* not used any more, but just now */
    next_us = ch_launcher_clients_close_idle(f->clients, ch_time_now_us());
    g_assert_cmpint(next_us, >, 0);
    g_assert_cmpint(next_us, <=, ch_time_now_us() + CH_LAUNCHER_IDLE_US);
    client = get(f);
    assert_steps(f, " record connect open-pipe");
}

static void
test_idle_launcher_was_replaced(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) again = NULL;
    g_autofree char *calls = NULL;

    make_idle(f);
    f->failing_errno = ESTALE;
    again = get(f);
    g_assert_true(ch_launcher_ping(again->channel, NULL));
    assert_steps(f, " reconnect connect open-pipe close-pipe release");
    calls = fake_launcher_take_calls(&f->fake);
    g_assert_cmpstr(calls, ==, " Info Ping");
}

/* Gone, or replaced by one that does not answer: the entry and the record stay, calls fail. */
static const struct GoneCase {
    const char *name;
    int reconnect_errno;
    const char *failing;
    const char *steps;
    const char *text;
} gone_cases[] = {
    {"refused", ECONNREFUSED, NULL, " reconnect", "connection refused"},
    {"no-socket", ENOENT, NULL, " reconnect", "no such file or directory"},
    {"stranger", ESTALE, "connect", " reconnect connect", "connect fails"},
};

static void
test_idle_launcher_is_gone(Fixture *f, gconstpointer data)
{
    const struct GoneCase *c = data;
    g_autofree char *text = g_strdup_printf(
        "unknown error encountered sending command Ping: rpc error: code = Unavailable desc = "
        "connection error: desc = \"transport: Error while dialing: dial unix /pods/a: connect: "
        "%s\"",
        c->text);
    g_autoptr(ChLauncherClient) again = NULL;
    g_autoptr(GError) error = NULL;

    make_idle(f);
    f->failing_errno = c->reconnect_errno;
    f->failing = c->failing;
    for (int i = 0; i < 2; i++) {
        g_assert_null(ch_launcher_clients_get_verified(f->clients, &vmi, &error));
        g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_CALL);
        g_assert_cmpstr(error->message, ==, text);
        g_clear_error(&error);
        assert_steps(f, c->steps);
    }
    f->failing_errno = 0;
    f->failing = NULL;
    again = get(f);
    g_assert_true(ch_launcher_ping(again->channel, NULL));
    assert_steps(f, " reconnect");
}

static void
test_idle_is_closed_for_good(Fixture *f, gconstpointer data)
{
    make_idle(f);
    ch_launcher_clients_close(f->clients, "ns", "vm", "u");
    assert_steps(f, " close-pipe release forget");
    make_idle(f);
    g_clear_pointer(&f->clients, ch_launcher_clients_free);
    assert_steps(f, " close-pipe release");
}

typedef struct {
    Fixture *f;
    int n_failed;
} Caller;

static gpointer
call_often(gpointer data)
{
    Caller *caller = data;

    for (int i = 0; i < 200; i++) {
        g_autoptr(ChLauncherClient) client =
            ch_launcher_clients_get(caller->f->clients, &vmi, NULL);

        if (client == NULL || !ch_launcher_ping(client->channel, NULL))
            caller->n_failed++;
    }
    return NULL;
}

/* No call meets a connection that is being closed, however often that is done. */
static void
test_idle_race(Fixture *f, gconstpointer data)
{
    Caller callers[3];
    GThread *threads[G_N_ELEMENTS(callers)];

    make_idle(f);
    f->is_quiet = true; /* the steps are written by several threads */
    for (gsize i = 0; i < G_N_ELEMENTS(callers); i++) {
        callers[i] = (Caller){.f = f};
        threads[i] = g_thread_new("caller", call_often, &callers[i]);
    }
    for (int i = 0; i < 2000; i++) {
        (void)close_idle(f);
        g_usleep(100);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(callers); i++) {
        g_thread_join(threads[i]);
        g_assert_cmpint(callers[i].n_failed, ==, 0);
    }
    f->is_quiet = false;
}

/* spec:01#85 */
static void
test_close(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) client = get(f);
    g_autoptr(GError) error = NULL;

    g_string_truncate(f->steps, 0);
    ch_launcher_clients_close(f->clients, "ns", "vm", "");
    assert_steps(f, "");
    ch_launcher_clients_close(f->clients, "ns", "vm", "u");
    assert_steps(f, " close-pipe forget");
    ch_launcher_clients_close(f->clients, "ns", "vm", "u"); /* as often as one likes */
    assert_steps(f, " forget");
    g_assert_false(ch_launcher_ping(client->channel, &error)); /* who holds it may still ask */
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_DISCONNECTED);
    g_clear_pointer(&client, ch_launcher_client_unref);
    assert_steps(f, " release");
}

static void
test_free_disconnects(Fixture *f, gconstpointer data)
{
    ch_launcher_client_unref(get(f));
    g_string_truncate(f->steps, 0);
    g_clear_pointer(&f->clients, ch_launcher_clients_free);
    assert_steps(f, " close-pipe release");
}

/* --- liveness: 01 §14.4, row by row --- */

typedef enum {
    ENTRY_READY,
    ENTRY_WAITING, /* present, not ready, seen at NOW_US */
    ENTRY_ABSENT,
} EntryState;

static const struct ProbeCase {
    EntryState entry;
    bool is_found, has_dir;
    int64_t age_us;
    bool is_unresponsive;
    ChLauncherLiveness liveness;
    bool becomes_ready;
} probe_cases[] = {
    {ENTRY_READY, false, false, 0, false, CH_LAUNCHER_LIVENESS_RESPONSIVE, true},
    {ENTRY_READY, false, true, 0, true, CH_LAUNCHER_LIVENESS_UNRESPONSIVE, true},
    {ENTRY_WAITING, true, true, 0, false, CH_LAUNCHER_LIVENESS_RESPONSIVE, true},
    {ENTRY_WAITING, true, true, 0, true, CH_LAUNCHER_LIVENESS_UNRESPONSIVE, true},
    {ENTRY_WAITING, false, false, 0, false, CH_LAUNCHER_LIVENESS_UNRESPONSIVE, false},
    {ENTRY_WAITING,
     false,
     true,
     CH_LAUNCHER_READY_TIMEOUT_US + 1,
     false,
     CH_LAUNCHER_LIVENESS_UNRESPONSIVE,
     false},
    {ENTRY_WAITING,
     false,
     true,
     CH_LAUNCHER_READY_TIMEOUT_US,
     false,
     CH_LAUNCHER_LIVENESS_NOT_INITIALIZED,
     false},
    {ENTRY_ABSENT, true, true, 0, false, CH_LAUNCHER_LIVENESS_RESPONSIVE, true},
    {ENTRY_ABSENT, true, true, 0, true, CH_LAUNCHER_LIVENESS_UNRESPONSIVE, true},
    {ENTRY_ABSENT, false, false, 0, false, CH_LAUNCHER_LIVENESS_UNRESPONSIVE, false},
    {ENTRY_ABSENT,
     false,
     true,
     CH_LAUNCHER_READY_TIMEOUT_US + 1,
     false,
     CH_LAUNCHER_LIVENESS_NOT_INITIALIZED,
     false},
};

static void
make_entry(Fixture *f, EntryState state)
{
    if (state == ENTRY_ABSENT)
        return;
    f->socket_pods = state == ENTRY_READY ? "a" : "";
    f->has_dir = true;
    (void)ch_launcher_clients_probe(f->clients, &vmi, NOW_US, NULL);
}

/* A ready entry is not searched for again: without any socket it is still judged by the files. */
static bool
is_ready(Fixture *f)
{
    f->socket_pods = "";
    f->has_dir = false;
    f->is_unresponsive = false;
    return ch_launcher_clients_probe(f->clients, &vmi, NOW_US, NULL) ==
           CH_LAUNCHER_LIVENESS_RESPONSIVE;
}

static void
test_probe(Fixture *f, gconstpointer data)
{
    const struct ProbeCase *c = data;

    make_entry(f, c->entry);
    f->socket_pods = c->is_found ? "a" : "";
    f->has_dir = c->has_dir;
    f->is_unresponsive = c->is_unresponsive;
    g_assert_cmpint(
        ch_launcher_clients_probe(f->clients, &vmi, NOW_US + c->age_us, NULL), ==, c->liveness);
    g_assert_true(is_ready(f) == c->becomes_ready);
    assert_steps(f, ""); /* no connection is made */
}

/* What a probe has just found is not looked for again. */
static void
test_probe_finds_for_get(Fixture *f, gconstpointer data)
{
    g_autofree char *found = NULL;
    g_autoptr(ChLauncherClient) client = NULL;
    ChLauncherVmi told = vmi;

    f->socket_pods = "a";
    (void)ch_launcher_clients_probe(f->clients, &vmi, NOW_US, &found);
    g_assert_nonnull(found);
    f->socket_pods = "";
    told.found_socket = found;
    client = ch_launcher_clients_get(f->clients, &told, NULL);
    g_assert_nonnull(client);
    g_clear_pointer(&found, g_free);
    (void)ch_launcher_clients_probe(f->clients, &vmi, NOW_US, &found);
    g_assert_null(found); /* it was not looked for */
}

/* A synthetic VMI has no pods: an entry of it says dead at once. */
static void
test_probe_without_pods(Fixture *f, gconstpointer data)
{
    const ChLauncherVmi gone = {.namespace_ = "ns", .name = "vm", .uid = "old"};

    g_assert_cmpint(ch_launcher_clients_probe(f->clients, &gone, NOW_US, NULL),
                    ==,
                    CH_LAUNCHER_LIVENESS_UNRESPONSIVE);
}

static void
test_forget_drops_what_never_connected(Fixture *f, gconstpointer data)
{
    g_autoptr(ChLauncherClient) client = NULL;

    make_entry(f, ENTRY_WAITING);
    ch_launcher_clients_forget(f->clients, "u");
    ch_launcher_clients_forget(f->clients, "never-there");
    /* as if seen for the first time */
    g_assert_cmpint(ch_launcher_clients_probe(
                        f->clients, &vmi, NOW_US + CH_LAUNCHER_READY_TIMEOUT_US + 1, NULL),
                    ==,
                    CH_LAUNCHER_LIVENESS_NOT_INITIALIZED);
    f->socket_pods = "a";
    client = get(f);
    ch_launcher_clients_forget(f->clients, "u"); /* a connection stays */
    g_assert_true(get(f) == client);
    ch_launcher_client_unref(client); /* of the get() above */
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, data, func) g_test_add(path, Fixture, data, set_up, func, tear_down)
    ADD("/clients/connected-once", NULL, test_connected_once);
    for (gsize i = 0; i < G_N_ELEMENTS(undo_cases); i++) {
        g_autofree char *path =
            g_strdup_printf("/clients/undo/%s%s",
                            undo_cases[i].failing,
                            undo_cases[i].was_recorded ? "-keeps-old-record" : "");

        ADD(path, &undo_cases[i], test_undo);
    }
    ADD("/clients/undo/wrong-version", NULL, test_wrong_version_is_undone);
    ADD("/clients/which-socket", NULL, test_which_socket);
    ADD("/clients/socket-on-record", NULL, test_socket_on_record);
    ADD("/clients/verified", NULL, test_verified);
    ADD("/clients/lost-connection-is-made-again", NULL, test_lost_connection_is_made_again);
    ADD("/clients/lost-connection-does-not-come-back",
        NULL,
        test_lost_connection_does_not_come_back);
    ADD("/clients/launcher-was-replaced", NULL, test_launcher_was_replaced);
    ADD("/clients/idle/is-closed-and-made-again", NULL, test_idle_is_closed_and_made_again);
    ADD("/clients/idle/keeps-what-is-used", NULL, test_idle_keeps_what_is_used);
    ADD("/clients/idle/launcher-was-replaced", NULL, test_idle_launcher_was_replaced);
    for (gsize i = 0; i < G_N_ELEMENTS(gone_cases); i++) {
        g_autofree char *path =
            g_strdup_printf("/clients/idle/launcher-is-gone/%s", gone_cases[i].name);

        ADD(path, &gone_cases[i], test_idle_launcher_is_gone);
    }
    ADD("/clients/idle/is-closed-for-good", NULL, test_idle_is_closed_for_good);
    ADD("/clients/idle/race", NULL, test_idle_race);
    ADD("/clients/close", NULL, test_close);
    ADD("/clients/free-disconnects", NULL, test_free_disconnects);
    for (gsize i = 0; i < G_N_ELEMENTS(probe_cases); i++) {
        g_autofree char *path = g_strdup_printf("/clients/probe/row-%zu", i + 1);

        ADD(path, &probe_cases[i], test_probe);
    }
    ADD("/clients/probe/without-pods", NULL, test_probe_without_pods);
    ADD("/clients/probe/finds-for-get", NULL, test_probe_finds_for_get);
    ADD("/clients/forget-drops-what-never-connected", NULL, test_forget_drops_what_never_connected);
    return g_test_run();
}
