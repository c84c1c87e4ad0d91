/* SPDX-License-Identifier: Apache-2.0 */

/* The notify server's failures; what launchers answer is tested with launchers, in scenarios. */

#include "handler/watch/domain-watch.h"

#include <glib/gstdio.h>

#include "lib/io/test-wait.h"
#include "lib/linux/test-tree.h" /* lint: include, a temporary directory */

typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    char *dir;
    char *share_dir;
    ChGhostRecords *records;
    ChDomainStore *store;
    guint n_failures;
    char *failure, *fatal; /* owned: the last of them */
} Fixture;

static void
on_change(gpointer data, const char *key)
{
}

static const char *
on_event(gpointer data, const ChLauncherEvent *event)
{
    return NULL;
}

static void
on_server_failure(gpointer data, const char *message)
{
    Fixture *f = data;

    f->n_failures++;
    g_free(f->failure);
    f->failure = g_strdup(message);
}

static void
on_fatal(gpointer data, const char *message)
{
    Fixture *f = data;

    g_free(f->fatal);
    f->fatal = g_strdup(message);
}

static const ChDomainWatchHandlers handlers = {on_event, on_server_failure, on_fatal};

static void
set_up(Fixture *f, gconstpointer data)
{
    f->loop = ch_loop_new();
    f->pool = ch_worker_pool_new(1, 2);
    f->dir = test_tree_new();
    f->share_dir = g_build_filename(f->dir, "share", NULL);
    f->records = ch_ghost_records_load(f->dir, NULL);
    f->store = ch_domain_store_new(on_change, NULL);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_worker_pool_free(f->pool);
    ch_domain_store_free(f->store);
    ch_ghost_records_free(f->records);
    ch_loop_free(f->loop);
    test_tree_remove(f->dir);
    g_free(f->share_dir);
    g_free(f->dir);
    g_free(f->failure);
    g_free(f->fatal);
}

static ChDomainWatch *
watch_new(Fixture *f, guint max_failures)
{
    const ChDomainWatchSpec spec = {.share_dir = f->share_dir,
                                    .watchdog_us = 30 * G_USEC_PER_SEC,
                                    .resync_us = 300 * G_USEC_PER_SEC,
                                    .max_server_failures = max_failures};

    return ch_domain_watch_new(f->loop, f->pool, NULL, f->records, f->store, &spec, &handlers, f);
}

/* spec:01#73 spec:01#74 spec:01#106: the last failure that is borne is the agent's end; what is
 * freed then does nothing any more */
static void
test_too_many_failures(Fixture *f, gconstpointer data)
{
    g_autoptr(ChDomainWatch) watch = watch_new(f, 1);

    test_tree_write(f->dir, "share", "a file where the directory should be");
    ch_domain_watch_start(watch);
    g_assert_cmpuint(f->n_failures, ==, 1);
    g_assert_nonnull(f->fatal);
    g_assert_true(
        g_str_has_prefix(f->fatal, "domain notify server reached max consecutive failures (1): "));
    g_assert_true(g_str_has_prefix(f->failure, "Domain notify server exited unexpectedly: "));
    g_clear_pointer(&watch, ch_domain_watch_free);
    test_wait_us(f->loop, 1000);
    g_assert_cmpuint(f->n_failures, ==, 1);
}

/* spec:01#72: they add up from one server to the next, until one works */
static void
test_failures_add_up(Fixture *f, gconstpointer data)
{
    g_autoptr(ChDomainWatch) watch = watch_new(f, 3);

    test_tree_write(f->dir, "share", "");
    ch_domain_watch_start(watch);
    g_assert_cmpuint(f->n_failures, ==, 1);
    test_wait_until(f->loop, f->n_failures == 2);
    g_assert_null(f->fatal);
    g_assert_false(ch_notify_server_is_running(ch_domain_watch_peek_server(watch)));
    g_assert_no_errno(g_unlink(f->share_dir));
    test_wait_until(f->loop, ch_notify_server_is_running(ch_domain_watch_peek_server(watch)));
    g_assert_cmpuint(f->n_failures, ==, 2);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(path, func) g_test_add("/domain-watch/" path, Fixture, NULL, set_up, func, tear_down)
    ADD("too-many-failures", test_too_many_failures);
    ADD("failures-add-up", test_failures_add_up);
    return g_test_run();
}
