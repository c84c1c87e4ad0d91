/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/downward-metrics/downward-metrics.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/io/test-wait.h"

/* VMs without launchers: what their disks would hold, and QEMU's end of the last channel. */
typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChDownwardMetricsSeam seam;
    ChDownwardMetrics *metrics;

    pthread_mutex_t lock; /* guards what follows */
    GHashTable *writes;   /* UID -> number of writes */
    char *last_text;
    GHashTable *hanging; /* set of UIDs whose launcher does not answer */
    guint n_reports, n_reports_now, max_reports_now;
    bool has_overlap; /* two reports of one VM at the same time */
    GHashTable *reporting;
    int qemu_fd;
    guint n_connects;
    int launcher_code; /* 0: there is one */
    bool fails_write;
} Fixture;

static bool
fake_connect(gpointer data, const char *uid, int *out_fd, GError **error)
{
    Fixture *f = data;
    int pair[2];

    g_assert_cmpint(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), ==, 0);
    pthread_mutex_lock(&f->lock);
    ch_close_fd(&f->qemu_fd);
    f->qemu_fd = pair[1];
    f->n_connects++;
    pthread_mutex_unlock(&f->lock);
    *out_fd = pair[0];
    return true;
}

static bool
is_hanging(Fixture *f, const char *uid)
{
    bool is;

    pthread_mutex_lock(&f->lock);
    is = g_hash_table_contains(f->hanging, uid);
    pthread_mutex_unlock(&f->lock);
    return is;
}

static char *
fake_report(gpointer data, const char *uid, GError **error)
{
    Fixture *f = data;

    pthread_mutex_lock(&f->lock);
    f->n_reports++;
    f->n_reports_now++;
    f->max_reports_now = MAX(f->max_reports_now, f->n_reports_now);
    f->has_overlap |= !g_hash_table_add(f->reporting, g_strdup(uid));
    pthread_mutex_unlock(&f->lock);
    while (is_hanging(f, uid))
        g_usleep(1000);
    pthread_mutex_lock(&f->lock);
    f->n_reports_now--;
    g_hash_table_remove(f->reporting, uid);
    pthread_mutex_unlock(&f->lock);
    return g_strdup_printf("<metrics of %s>", uid);
}

static bool
fake_write(gpointer data, const char *uid, const char *text, gsize length, GError **error)
{
    Fixture *f = data;
    bool fails;

    pthread_mutex_lock(&f->lock);
    fails = f->fails_write;
    g_free(f->last_text);
    f->last_text = g_strndup(text, length);
    g_hash_table_replace(
        f->writes,
        g_strdup(uid),
        GUINT_TO_POINTER(GPOINTER_TO_UINT(g_hash_table_lookup(f->writes, uid)) + 1));
    pthread_mutex_unlock(&f->lock);
    return !fails || ch_fail(error, CH_ERROR_FAILED, "no disk");
}

static bool
fake_has_launcher(gpointer data, const char *uid, GError **error)
{
    const Fixture *f = data;

    return f->launcher_code == 0 ||
           ch_fail(error, (ChErrorCode)f->launcher_code, "virt-launcher socket not found");
}

static void
set_up(Fixture *f, gconstpointer data)
{
    f->loop = ch_loop_new();
    f->pool = ch_worker_pool_new(1, 32);
    pthread_mutex_init(&f->lock, NULL);
    f->writes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->hanging = g_hash_table_new(g_str_hash, g_str_equal);
    f->reporting = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->qemu_fd = -EBADF;
    f->seam = (ChDownwardMetricsSeam){
        .serial = {fake_connect, fake_report, 1000, 1000},
        .write = fake_write,
        .has_launcher = fake_has_launcher,
        .round_us = 5000,
    };
    f->metrics = ch_downward_metrics_new(f->loop, f->pool, &f->seam, f);
}

static void
wake_all(Fixture *f)
{
    pthread_mutex_lock(&f->lock);
    g_hash_table_remove_all(f->hanging);
    pthread_mutex_unlock(&f->lock);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    wake_all(f);
    ch_worker_pool_free(f->pool);
    ch_downward_metrics_free(f->metrics);
    ch_loop_free(f->loop);
    ch_close_fd(&f->qemu_fd);
    g_hash_table_unref(f->writes);
    g_hash_table_unref(f->hanging);
    g_hash_table_unref(f->reporting);
    g_free(f->last_text);
    pthread_mutex_destroy(&f->lock);
}

static ChJson *
make_vmi(const char *uid, bool has_disk, bool has_channel)
{
    g_autofree char *text =
        g_strdup_printf("{\"metadata\":{\"namespace\":\"ns\",\"name\":\"vm\",\"uid\":\"%s\"},"
                        "\"spec\":{\"domain\":{\"devices\":{%s}},\"volumes\":[{\"name\":\"a\","
                        "\"emptyDisk\":{}}%s]}}",
                        uid,
                        has_channel ? "\"downwardMetrics\":{}" : "",
                        has_disk ? ",{\"name\":\"m\",\"downwardMetrics\":{}}" : "");
    ChJson *vmi = ch_json_parse(text, -1, NULL);

    g_assert_nonnull(vmi);
    return vmi;
}

static void
begin(Fixture *f, const char *uid, bool has_disk, bool has_channel)
{
    g_autoptr(ChJson) vmi = make_vmi(uid, has_disk, has_channel);
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_downward_metrics_begin(f->metrics, vmi, &error));
    g_assert_no_error(error);
}

static guint
n_writes(Fixture *f, const char *uid)
{
    guint n;

    pthread_mutex_lock(&f->lock);
    n = GPOINTER_TO_UINT(g_hash_table_lookup(f->writes, uid));
    pthread_mutex_unlock(&f->lock);
    return n;
}

static guint
n_reports(Fixture *f)
{
    guint n;

    pthread_mutex_lock(&f->lock);
    n = f->n_reports;
    pthread_mutex_unlock(&f->lock);
    return n;
}

static guint
n_connects(Fixture *f)
{
    guint n;

    pthread_mutex_lock(&f->lock);
    n = f->n_connects;
    pthread_mutex_unlock(&f->lock);
    return n;
}

/* Whether the agent has closed the last channel. */
static bool
is_channel_closed(Fixture *f)
{
    char byte;
    bool is_closed;

    pthread_mutex_lock(&f->lock);
    is_closed = recv(f->qemu_fd, &byte, 1, MSG_DONTWAIT) == 0;
    pthread_mutex_unlock(&f->lock);
    return is_closed;
}

static void
test_has(void)
{
    g_autoptr(ChJson) none = make_vmi("u", false, false);
    g_autoptr(ChJson) disk = make_vmi("u", true, false);
    g_autoptr(ChJson) channel = make_vmi("u", false, true);

    g_assert_false(ch_downward_metrics_has_disk(none) || ch_downward_metrics_has_channel(none));
    g_assert_true(ch_downward_metrics_has_disk(disk));
    g_assert_false(ch_downward_metrics_has_channel(disk));
    g_assert_false(ch_downward_metrics_has_disk(channel));
    g_assert_true(ch_downward_metrics_has_channel(channel));
}

/* At once, then again and again, until the VM is gone. */
static void
test_disk(Fixture *f, gconstpointer data)
{
    begin(f, "u1", true, false);
    begin(f, "u1", true, false); /* the next pass */
    begin(f, "u2", false, false);
    test_wait_until(f->loop, n_writes(f, "u1") >= 3);
    g_assert_cmpstr(f->last_text, ==, "<metrics of u1>\n");
    g_assert_cmpuint(ch_downward_metrics_n_vms(f->metrics), ==, 1);
    g_assert_false(f->has_overlap);
    ch_downward_metrics_end(f->metrics, "u1");
    ch_downward_metrics_end(f->metrics, "u1");
    test_wait_until(
        f->loop, ch_downward_metrics_n_vms(f->metrics) == 0 && ch_worker_pool_n_busy(f->pool) == 0);
    {
        const guint n = n_writes(f, "u1");

        test_wait_us(f->loop, 50000);
        g_assert_cmpuint(n_writes(f, "u1"), ==, n);
    }
    begin(f, "u1", true, false); /* it comes back, as after a migration there and back */
    {
        const guint n = n_writes(f, "u1");

        test_wait_until(f->loop, n_writes(f, "u1") > n + 1);
    }
}

/* A launcher that hangs holds up its own disk; when it answers again, so is its disk. */
static void
test_hanging(Fixture *f, gconstpointer data)
{
    pthread_mutex_lock(&f->lock);
    g_hash_table_add(f->hanging, (gpointer) "slow");
    pthread_mutex_unlock(&f->lock);
    begin(f, "slow", true, false);
    begin(f, "quick", true, false);
    test_wait_until(f->loop, n_writes(f, "quick") >= 5);
    g_assert_cmpuint(n_writes(f, "slow"), ==, 0);
    wake_all(f);
    test_wait_until(f->loop, n_writes(f, "slow") >= 2);
    g_assert_false(f->has_overlap); /* never two writers of a disk */
}

/* Many that hang take a few threads of the pool, and the others get their turn when those end. */
static void
test_many(Fixture *f, gconstpointer data)
{
    char uids[20][8];

    for (gsize i = 0; i < G_N_ELEMENTS(uids); i++) {
        (void)g_snprintf(uids[i], sizeof(uids[i]), "u%zu", i);
        pthread_mutex_lock(&f->lock);
        g_hash_table_add(f->hanging, uids[i]);
        pthread_mutex_unlock(&f->lock);
        begin(f, uids[i], true, false);
    }
    test_wait_until(f->loop, n_reports(f) >= CH_DOWNWARD_METRICS_JOBS);
    test_wait_us(f->loop, 50000);
    g_assert_cmpuint(n_reports(f), ==, CH_DOWNWARD_METRICS_JOBS);
    wake_all(f);
    for (gsize i = 0; i < G_N_ELEMENTS(uids); i++)
        test_wait_until(f->loop, n_writes(f, uids[i]) >= 2);
    g_assert_cmpuint(f->max_reports_now, <=, CH_DOWNWARD_METRICS_JOBS);
}

/* A VM that ends while its report is made, and one that waits for its turn. */
static void
test_end_in_job(Fixture *f, gconstpointer data)
{
    pthread_mutex_lock(&f->lock);
    g_hash_table_add(f->hanging, (gpointer) "u1");
    pthread_mutex_unlock(&f->lock);
    begin(f, "u1", true, false);
    test_wait_until(f->loop, n_reports(f) == 1);
    ch_downward_metrics_end(f->metrics, "u1");
    test_wait_until(f->loop, ch_downward_metrics_n_vms(f->metrics) == 0);
    begin(
        f, "u1", true, false); /* another life, whose writes the old one's end does not count as */
    test_wait_until(f->loop, n_reports(f) == 2);
    wake_all(f);
    test_wait_until(f->loop, n_writes(f, "u1") >= 4);
}

static void
test_failing_write(Fixture *f, gconstpointer data)
{
    f->fails_write = true;
    begin(f, "u1", true, false);
    test_wait_until(f->loop, n_writes(f, "u1") >= 3);
    pthread_mutex_lock(&f->lock);
    f->fails_write = false;
    pthread_mutex_unlock(&f->lock);
    {
        const guint n = n_writes(f, "u1");

        test_wait_until(f->loop, n_writes(f, "u1") >= n + 2);
    }
}

/* One server however often a pass asks; closed with the VM. spec:05-16.10#194 */
static void
test_channel(Fixture *f, gconstpointer data)
{
    begin(f, "u1", false, true);
    begin(f, "u1", false, true);
    test_wait_until(f->loop, n_connects(f) == 1);
    begin(f, "u1", false, true);
    test_wait_us(f->loop, 20000);
    g_assert_cmpuint(n_connects(f), ==, 1);
    g_assert_false(is_channel_closed(f));
    ch_downward_metrics_end(f->metrics, "u1");
    test_wait_until(f->loop, is_channel_closed(f));
    begin(f, "u1", false, true);
    test_wait_until(f->loop, n_connects(f) == 2);
}

/* A channel that QEMU closed is not connected to again while the VM lives. */
static void
test_channel_ended(Fixture *f, gconstpointer data)
{
    begin(f, "u1", false, true);
    test_wait_until(f->loop, n_connects(f) == 1);
    pthread_mutex_lock(&f->lock);
    ch_close_fd(&f->qemu_fd);
    pthread_mutex_unlock(&f->lock);
    begin(f, "u1", false, true);
    test_wait_us(f->loop, 50000);
    g_assert_cmpuint(n_connects(f), ==, 1);
}

static void
test_no_launcher(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) vmi = make_vmi("u1", true, true);
    g_autoptr(GError) error = NULL;

    f->launcher_code = CH_ERROR_NOT_FOUND;
    g_assert_false(ch_downward_metrics_begin(f->metrics, vmi, &error));
    g_assert_cmpstr(error->message,
                    ==,
                    "failed to start the DownwardMetrics stopServer for VMI [vm], error: "
                    "virt-launcher socket not found");
    g_clear_error(&error);
    f->launcher_code = CH_ERROR_CLOSED;
    g_assert_false(ch_downward_metrics_begin(f->metrics, vmi, &error));
    g_assert_cmpstr(error->message,
                    ==,
                    "failed to get the launcher socket for VMI [vm], error: virt-launcher socket "
                    "not found");
    test_wait_until(f->loop, n_writes(f, "u1") >= 1); /* its disk does not wait for that */
    g_assert_cmpuint(n_connects(f), ==, 0);
    f->launcher_code = 0;
    begin(f, "u1", true, true);
    test_wait_until(f->loop, n_connects(f) == 1);
}

/* The agent ends with all of it under way. */
static void
test_free(Fixture *f, gconstpointer data)
{
    begin(f, "u1", true, true);
    begin(f, "u2", true, true);
    test_wait_until(f->loop, n_writes(f, "u1") >= 1);
    begin(f, "u3", true, true); /* the loop does not get to it */
    ch_downward_metrics_end(f->metrics, "u2");
}

static void
test_none(void)
{
    g_autoptr(ChJson) vmi = make_vmi("u1", true, true);

    g_assert_true(ch_downward_metrics_begin(NULL, vmi, NULL));
    ch_downward_metrics_end(NULL, "u1");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/downward-metrics/has", test_has);
    g_test_add_func("/downward-metrics/none", test_none);
#define ADD(path, func) g_test_add(path, Fixture, NULL, set_up, func, tear_down)
    ADD("/downward-metrics/disk", test_disk);
    ADD("/downward-metrics/hanging", test_hanging);
    ADD("/downward-metrics/many", test_many);
    ADD("/downward-metrics/end-in-job", test_end_in_job);
    ADD("/downward-metrics/failing-write", test_failing_write);
    ADD("/downward-metrics/channel", test_channel);
    ADD("/downward-metrics/channel-ended", test_channel_ended);
    ADD("/downward-metrics/no-launcher", test_no_launcher);
    ADD("/downward-metrics/free", test_free);
#undef ADD
    return g_test_run();
}
