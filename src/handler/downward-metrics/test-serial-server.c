/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/serial-server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "handler/downward-metrics/request.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/io/test-wait.h"

#define NO_METRICS                                                                                 \
    "<metrics><!-- host metrics not available --><!-- VM metrics not available --></metrics>\n\n"

/* A server, and QEMU's end of its channel. */
typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChSerialJobs jobs;
    ChSerialSeam seam;
    ChSerialServer *server;
    int given_fd;          /* for the server's next connection */
    int qemu_fd;           /* the guest's side */
    atomic_int n_refusals; /* attempts that fail before one succeeds */
    int refusal;
    atomic_int n_begun, n_reports;
    atomic_bool is_report_held; /* until this is over */
    const char *report;         /* NULL: none */
    GString *answers;           /* what the guest got so far */
    bool is_closed;             /* QEMU sees the end */
} Fixture;

static bool
fake_connect(gpointer data, const char *uid, int *out_fd, GError **error)
{
    Fixture *f = data;

    g_assert_cmpstr(uid, ==, "uid");
    if (atomic_fetch_sub(&f->n_refusals, 1) > 0)
        return ch_fail_errno(error, f->refusal, "connect");
    *out_fd = g_steal_fd(&f->given_fd);
    return true;
}

static char *
fake_report(gpointer data, const char *uid, GError **error)
{
    Fixture *f = data;

    atomic_fetch_add(&f->n_begun, 1);
    while (atomic_load(&f->is_report_held))
        g_usleep(1000);
    atomic_fetch_add(&f->n_reports, 1);
    if (f->report == NULL)
        (void)ch_fail(error, CH_ERROR_FAILED, "no launcher");
    return g_strdup(f->report);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    int pair[2];

    f->loop = ch_loop_new();
    f->pool = ch_worker_pool_new(1, 2 * CH_SERIAL_MAX_JOBS);
    g_assert_cmpint(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), ==, 0);
    f->given_fd = pair[0];
    f->qemu_fd = pair[1];
    f->answers = g_string_new(NULL);
    f->seam = (ChSerialSeam){fake_connect, fake_report, 1000, 1000};
}

static void
start(Fixture *f)
{
    f->server = ch_serial_server_new(f->loop, f->pool, &f->jobs, &f->seam, f, "default/vm", "uid");
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_worker_pool_free(f->pool);
    ch_serial_server_free(f->server);
    ch_loop_free(f->loop);
    ch_close_fd(&f->given_fd);
    ch_close_fd(&f->qemu_fd);
    g_string_free(f->answers, TRUE);
}

/* The guest writes. */
static void
say(Fixture *f, const char *text)
{
    g_assert_cmpint(send(f->qemu_fd, text, strlen(text), MSG_NOSIGNAL), ==, (gssize)strlen(text));
}

/* Takes what the guest was answered. Returns: how much that is by now */
static gsize
listen_once(Fixture *f)
{
    char bytes[65536];
    ssize_t n;

    while ((n = recv(f->qemu_fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        g_string_append_len(f->answers, bytes, n);
    f->is_closed = n == 0 || (n < 0 && errno != EAGAIN);
    return f->answers->len;
}

static void
expect(Fixture *f, const char *answers)
{
    test_wait_until(f->loop, listen_once(f) >= strlen(answers));
    g_assert_cmpstr(f->answers->str, ==, answers);
}

/* spec:05-16.10#192 */
static void
test_no_report(Fixture *f, gconstpointer data)
{
    start(f);
    say(f, "GET /metrics/XML\n\n");
    expect(f, NO_METRICS);
    g_assert_false(ch_serial_server_has_ended(f->server));
    ch_close_fd(&f->qemu_fd);
    test_wait_until(f->loop, ch_serial_server_has_ended(f->server));
}

static void
test_report(Fixture *f, gconstpointer data)
{
    f->report = "<metrics>\n</metrics>";
    start(f);
    say(f, "GET /metrics/XML\r\n\r\n");
    expect(f, "<metrics>\n</metrics>\n\n");
    say(f, "GET /met");
    test_wait_us(f->loop, 20000);
    say(f, "rics/XML\n");
    test_wait_us(f->loop, 20000);
    say(f, "\n");
    expect(f, "<metrics>\n</metrics>\n\n<metrics>\n</metrics>\n\n");
    g_assert_cmpint(atomic_load(&f->n_reports), ==, 2);
}

/* spec:05-16.10#193 */
static void
test_invalid(Fixture *f, gconstpointer data)
{
    start(f);
    say(f, "GET /foo\n\n");
    expect(f, "INVALID REQUEST\n\n");
    ch_close_fd(&f->qemu_fd);
    test_wait_until(f->loop, ch_serial_server_has_ended(f->server));
    g_assert_cmpint(atomic_load(&f->n_reports), ==, 0);
}

/* The request behind a bad one is served; one that came with a malformed one is not. */
static void
test_after_invalid(Fixture *f, gconstpointer data)
{
    f->report = "<m>";
    start(f);
    say(f, "GET /foo\n\nGET /metrics/XML\n\n");
    expect(f, "INVALID REQUEST\n\n<m>\n\n");
    say(f, "GET /metrics/XML\nmore\n\nGET /metrics/XML\n\n");
    expect(f, "INVALID REQUEST\n\n<m>\n\nINVALID REQUEST\n\n");
    test_wait_us(f->loop, 50000);
    say(f, "GET /metrics/XML\n\n");
    expect(f, "INVALID REQUEST\n\n<m>\n\nINVALID REQUEST\n\n<m>\n\n");
}

/* A guest that only writes gets an answer now and then, and costs a few kilobytes. */
static void
test_flood(Fixture *f, gconstpointer data)
{
    g_autofree char *flood = g_strnfill(CH_METRICS_REQUEST_MAX * 4, 'x');

    start(f);
    say(f, flood);
    expect(f, "INVALID REQUEST\n\nINVALID REQUEST\n\nINVALID REQUEST\n\nINVALID REQUEST\n\n");
    say(f, "\n\n");
    expect(f,
           "INVALID REQUEST\n\nINVALID REQUEST\n\nINVALID REQUEST\n\nINVALID REQUEST\n\n"
           "INVALID REQUEST\n\n");
    g_assert_false(ch_serial_server_has_ended(f->server));
}

/* spec:05-16.10#194 */
static void
test_stopped(Fixture *f, gconstpointer data)
{
    f->report = "<m>";
    start(f);
    say(f, "GET /metrics/XML\n\n");
    expect(f, "<m>\n\n");
    g_clear_pointer(&f->server, ch_serial_server_free);
    (void)listen_once(f);
    g_assert_true(f->is_closed);
}

/* spec:05-16.10#194: while a worker collects; what it brings is dropped */
static void
test_stopped_in_report(Fixture *f, gconstpointer data)
{
    f->report = "<m>";
    atomic_store(&f->is_report_held, true);
    start(f);
    say(f, "GET /metrics/XML\n\n");
    test_wait_until(f->loop, atomic_load(&f->n_begun) == 1);
    g_clear_pointer(&f->server, ch_serial_server_free);
    (void)listen_once(f);
    g_assert_true(f->is_closed);
    atomic_store(&f->is_report_held, false);
    test_wait_until(f->loop, ch_worker_pool_n_busy(f->pool) == 0);
    test_wait_us(f->loop, 20000);
    g_assert_cmpuint(f->answers->len, ==, 0);
}

/* The next request waits for its turn. */
static void
test_turns(Fixture *f, gconstpointer data)
{
    const gint64 start_us = g_get_monotonic_time();

    f->report = "<m>";
    f->seam.request_us = 100000;
    start(f);
    for (int i = 0; i < 4; i++)
        say(f, "GET /metrics/XML\n\n");
    expect(f, "<m>\n\n<m>\n\n<m>\n\n<m>\n\n");
    g_assert_cmpint(g_get_monotonic_time() - start_us, >=, 300000); /* never sooner */
}

/* An answer that the guest does not take waits, and nothing is read meanwhile. */
static void
test_slow_guest(Fixture *f, gconstpointer data)
{
    g_autofree char *report = g_strnfill(1 << 20, 'r');

    f->report = report;
    start(f);
    say(f, "GET /metrics/XML\n\nGET /metrics/XML\n\n");
    test_wait_until(f->loop, atomic_load(&f->n_reports) == 1);
    test_wait_us(f->loop, 50000);
    g_assert_cmpint(atomic_load(&f->n_reports), ==, 1);
    test_wait_until(f->loop, listen_once(f) >= 2 * (strlen(report) + 2));
    g_assert_cmpuint(f->answers->len, ==, 2 * (strlen(report) + 2));
}

/* QEMU goes away while it has not taken the answer. */
static void
test_gone_in_answer(Fixture *f, gconstpointer data)
{
    g_autofree char *report = g_strnfill(1 << 20, 'r');

    f->report = report;
    start(f);
    say(f, "GET /metrics/XML\n\n");
    test_wait_until(f->loop, atomic_load(&f->n_reports) == 1);
    ch_close_fd(&f->qemu_fd);
    test_wait_until(f->loop, ch_serial_server_has_ended(f->server));
}

static void
test_late_socket(Fixture *f, gconstpointer data)
{
    f->report = "<m>";
    f->refusal = ENOENT;
    atomic_store(&f->n_refusals, 5);
    start(f);
    say(f, "GET /metrics/XML\n\n");
    expect(f, "<m>\n\n");
    g_assert_cmpuint(ch_serial_server_n_attempts(f->server), ==, 6);
}

static void
test_no_socket(Fixture *f, gconstpointer data)
{
    f->refusal = ECONNREFUSED;
    atomic_store(&f->n_refusals, 1000);
    start(f);
    test_wait_until(f->loop, ch_serial_server_has_ended(f->server));
    test_wait_us(f->loop, 100000);
    g_assert_cmpuint(ch_serial_server_n_attempts(f->server), ==, 6);
    g_assert_cmpint(atomic_load(&f->n_refusals), ==, 994);
}

/* That the hands lack something for the moment is no reason to leave a guest without metrics. */
static void
test_shortage(Fixture *f, gconstpointer data)
{
    f->report = "<m>";
    f->refusal = GPOINTER_TO_INT(data);
    atomic_store(&f->n_refusals, 2);
    start(f);
    say(f, "GET /metrics/XML\n\n");
    expect(f, "<m>\n\n");
    g_assert_cmpuint(ch_serial_server_n_attempts(f->server), ==, 3);
}

static void
test_refused(Fixture *f, gconstpointer data)
{
    f->refusal = ELOOP;
    atomic_store(&f->n_refusals, 1000);
    start(f);
    test_wait_until(f->loop, ch_serial_server_has_ended(f->server));
    g_assert_cmpuint(ch_serial_server_n_attempts(f->server), ==, 1);
}

static void
test_stopped_in_pause(Fixture *f, gconstpointer data)
{
    f->refusal = ENOENT;
    f->seam.pause_us = G_GINT64_CONSTANT(3600000000);
    atomic_store(&f->n_refusals, 1000);
    start(f);
    test_wait_until(f->loop, ch_serial_server_n_attempts(f->server) == 1);
    g_clear_pointer(&f->server, ch_serial_server_free);
    g_assert_cmpint(atomic_load(&f->n_refusals), ==, 999);
}

/* Holds its thread for as long as the test wants. */
static bool
hang_connect(gpointer data, const char *uid, int *out_fd, GError **error)
{
    Fixture *f = data;

    atomic_fetch_add(&f->n_begun, 1);
    while (atomic_load(&f->is_report_held))
        g_usleep(1000);
    return ch_fail_errno(error, ELOOP, "connect");
}

/* Launchers that hang leave the pool its threads; who waits for them is served in order, unless it
 * goes meanwhile. */
static void
test_many_servers(Fixture *f, gconstpointer data)
{
    ChSerialServer *servers[2 * CH_SERIAL_MAX_JOBS];

    f->seam.connect = hang_connect;
    atomic_store(&f->is_report_held, true);
    for (gsize i = 0; i < G_N_ELEMENTS(servers); i++) {
        start(f);
        servers[i] = g_steal_pointer(&f->server);
    }
    test_wait_until(f->loop, atomic_load(&f->n_begun) == CH_SERIAL_MAX_JOBS);
    test_wait_us(f->loop, 20000);
    g_assert_cmpint(atomic_load(&f->n_begun), ==, CH_SERIAL_MAX_JOBS);
    ch_serial_server_free(servers[G_N_ELEMENTS(servers) - 1]);
    atomic_store(&f->is_report_held, false);
    for (gsize i = 0; i < G_N_ELEMENTS(servers) - 1; i++) {
        test_wait_until(f->loop, ch_serial_server_has_ended(servers[i]));
        ch_serial_server_free(servers[i]);
    }
    g_assert_cmpint(atomic_load(&f->n_begun), ==, G_N_ELEMENTS(servers) - 1);
    g_assert_cmpuint(f->jobs.n_running, ==, 0);
}

int
main(int argc, char **argv)
{
    static const int shortages[] = {EAGAIN, ECHILD, EMFILE, ENOMEM, ETIMEDOUT};

    g_test_init(&argc, &argv, NULL);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/serial-server/no-report", test_no_report);
    ADD("/serial-server/report", test_report);
    ADD("/serial-server/invalid", test_invalid);
    ADD("/serial-server/after-invalid", test_after_invalid);
    ADD("/serial-server/flood", test_flood);
    ADD("/serial-server/stopped", test_stopped);
    ADD("/serial-server/stopped-in-report", test_stopped_in_report);
    ADD("/serial-server/turns", test_turns);
    ADD("/serial-server/slow-guest", test_slow_guest);
    ADD("/serial-server/gone-in-answer", test_gone_in_answer);
    ADD("/serial-server/late-socket", test_late_socket);
    ADD("/serial-server/no-socket", test_no_socket);
    for (gsize i = 0; i < G_N_ELEMENTS(shortages); i++) {
        g_autofree char *path = g_strdup_printf("/serial-server/shortage/%d", shortages[i]);

        g_test_add(path, Fixture, GINT_TO_POINTER(shortages[i]), set_up, test_shortage, tear_down);
    }
    ADD("/serial-server/refused", test_refused);
    ADD("/serial-server/stopped-in-pause", test_stopped_in_pause);
    ADD("/serial-server/many-servers", test_many_servers);
#undef ADD
    return g_test_run();
}
