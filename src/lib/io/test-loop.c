/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/loop.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

typedef struct {
    ChLoop *loop;
    GString *trace;
    int n_runs;
    int n_destroyed;
    ChTimer *timer;
    ChFdWatch *watch;
    bool was_current;
} Probe;

static void
stop(gpointer data)
{
    Probe *probe = data;

    ch_loop_stop(probe->loop);
}

static void
count_run(gpointer data)
{
    ((Probe *)data)->n_runs++;
}

static void
count_destroyed(gpointer data)
{
    ((Probe *)data)->n_destroyed++;
}

static void
trace_a(gpointer data)
{
    g_string_append_c(((Probe *)data)->trace, 'a');
}

static void
trace_b_post_c(gpointer data)
{
    Probe *probe = data;

    g_string_append_c(probe->trace, 'b');
    ch_loop_post(probe->loop, trace_a, probe, NULL);
    ch_loop_post(probe->loop, stop, probe, NULL);
    g_string_append_c(probe->trace, 'B');
}

static void
test_posts_run_in_order(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop, .trace = g_string_new(NULL)};

    ch_loop_post(loop, trace_a, &probe, count_destroyed);
    ch_loop_post(loop, trace_b_post_c, &probe, count_destroyed);
    ch_loop_run(loop);
    g_assert_cmpstr(probe.trace->str, ==, "abBa");
    g_assert_cmpint(probe.n_destroyed, ==, 2);
    g_string_free(probe.trace, TRUE);
}

static void
post_again(gpointer data)
{
    Probe *probe = data;

    if (probe->n_destroyed++ == 0)
        ch_loop_post(probe->loop, count_run, probe, post_again);
}

static void
test_free_drops_posts(void)
{
    ChLoop *loop = ch_loop_new();
    Probe probe = {.loop = loop};

    ch_loop_post(loop, count_run, &probe, post_again);
    ch_loop_free(loop);
    g_assert_cmpint(probe.n_runs, ==, 0);
    g_assert_cmpint(probe.n_destroyed, ==, 2);
}

static void
test_stop_before_run(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};

    ch_loop_stop(loop);
    ch_loop_run(loop);
    ch_loop_post(loop, count_run, &probe, NULL); /* and it runs again afterwards */
    ch_loop_post(loop, stop, &probe, NULL);
    ch_loop_run(loop);
    g_assert_cmpint(probe.n_runs, ==, 1);
}

static void
see_current(gpointer data)
{
    Probe *probe = data;

    probe->was_current = ch_loop_is_current(probe->loop);
}

static void *
poster(void *data)
{
    Probe *probe = data;

    for (int i = 0; i < 1000; i++)
        ch_loop_post(probe->loop, count_run, probe, NULL);
    return NULL;
}

static void
test_threads_post(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};
    pthread_t threads[4];

    g_assert_true(ch_loop_is_current(loop));
    ch_loop_start(loop, "a-name-that-is-too-long");
    g_assert_false(ch_loop_is_current(loop));
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_create(&threads[i], NULL, poster, &probe);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
    ch_loop_post(loop, see_current, &probe, NULL);
    ch_loop_post(loop, stop, &probe, NULL);
    ch_loop_join(loop);
    g_assert_cmpint(probe.n_runs, ==, 4000);
    g_assert_true(probe.was_current);
    g_assert_true(ch_loop_is_current(loop));
}

static void
test_timer_is_never_early(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};
    g_autoptr(ChTimer) timer = ch_timer_new(loop, stop, &probe);
    const gint64 before_us = g_get_monotonic_time();

    g_assert_false(ch_timer_is_armed(timer));
    ch_timer_arm(timer, 10 * G_USEC_PER_SEC);
    ch_timer_arm(timer, 20000); /* replaces */
    g_assert_true(ch_timer_is_armed(timer));
    ch_loop_run(loop);
    g_assert_cmpint(g_get_monotonic_time() - before_us, >=, 20000);
    g_assert_cmpint(g_get_monotonic_time() - before_us, <, 5 * G_USEC_PER_SEC);
    g_assert_false(ch_timer_is_armed(timer));
}

static void
test_disarmed_timer_is_silent(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};
    g_autoptr(ChTimer) silent = ch_timer_new(loop, count_run, &probe);
    g_autoptr(ChTimer) end = ch_timer_new(loop, stop, &probe);

    ch_timer_arm(silent, 0);
    ch_timer_disarm(silent);
    ch_timer_arm(end, 5000);
    ch_loop_run(loop);
    g_assert_cmpint(probe.n_runs, ==, 0);
}

static void
free_own_timer(gpointer data)
{
    Probe *probe = data;

    g_clear_pointer(&probe->timer, ch_timer_free);
    ch_loop_stop(probe->loop);
}

static void
test_timer_frees_itself(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};

    probe.timer = ch_timer_new(loop, free_own_timer, &probe);
    ch_timer_arm(probe.timer, -1);
    ch_loop_run(loop);
    g_assert_null(probe.timer);
}

static void
on_signal(int signo, gpointer data)
{
    Probe *probe = data;

    g_assert_true(ch_loop_is_current(probe->loop));
    probe->n_runs = signo;
    ch_loop_stop(probe->loop);
}

static void
test_signal_runs_on_the_loop(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};
    g_autoptr(ChSignal) sig = ch_signal_new(loop, SIGUSR1, on_signal, &probe);

    kill(getpid(), SIGUSR1);
    ch_loop_run(loop);
    g_assert_cmpint(probe.n_runs, ==, SIGUSR1);
}

static void
on_readable(int fd, short what, gpointer data)
{
    Probe *probe = data;

    g_assert_cmpint(what, ==, EV_READ);
    if (++probe->n_runs == 3) { /* nothing was read: level-triggered */
        g_clear_pointer(&probe->watch, ch_fd_watch_free);
        ch_loop_stop(probe->loop);
    }
}

static void
test_fd_watch_is_level_triggered(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Probe probe = {.loop = loop};
    int fds[2];

    g_assert_no_errno(pipe(fds));
    g_assert_cmpint(write(fds[1], "x", 1), ==, 1);
    probe.watch = ch_fd_watch_new(loop, fds[0], EV_READ, on_readable, &probe);
    ch_loop_run(loop);
    g_assert_cmpint(probe.n_runs, ==, 3);
    close(fds[0]);
    close(fds[1]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loop/posts-run-in-order", test_posts_run_in_order);
    g_test_add_func("/loop/free-drops-posts", test_free_drops_posts);
    g_test_add_func("/loop/stop-before-run", test_stop_before_run);
    g_test_add_func("/loop/threads-post", test_threads_post);
    g_test_add_func("/loop/timer-is-never-early", test_timer_is_never_early);
    g_test_add_func("/loop/disarmed-timer-is-silent", test_disarmed_timer_is_silent);
    g_test_add_func("/loop/timer-frees-itself", test_timer_frees_itself);
    g_test_add_func("/loop/signal-runs-on-the-loop", test_signal_runs_on_the_loop);
    g_test_add_func("/loop/fd-watch-is-level-triggered", test_fd_watch_is_level_triggered);
    return g_test_run();
}
