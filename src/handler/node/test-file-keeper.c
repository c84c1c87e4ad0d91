/* SPDX-License-Identifier: Apache-2.0 */

/* The hands are this program, executed once more: they watch a directory and note what they are
 * asked. */

#include "handler/node/file-keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/io/test-wait.h"
#include "lib/linux/channel.h"
#include "lib/linux/test-tree.h"

#define NAME  "the.sock"
#define OTHER "other.sock"

/* --- the hands */

static void
note(const char *dir, const char *what)
{
    g_autofree char *path = g_build_filename(dir, "log", NULL);
    ch_autofd int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, what, strlen(what)) < 0)
        _exit(1);
}

static int
watch(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "watched", NULL);
    const int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    if (inotify_add_watch(fd, path, IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_DELETE_SELF) < 0) {
        close(fd);
        return -EBADF;
    }
    return fd;
}

static void
serve(int channel_fd, const char *dir)
{
    ChHandsRequest request = {0};
    ch_autofd int fd = -EBADF;
    ChHandsReply reply = {.version = CH_HANDS_VERSION};
    const ssize_t n = ch_channel_receive(channel_fd, &request, sizeof(request), NULL);

    if (n != sizeof(request))
        _exit(n != 0);
    reply.op = request.op;
    reply.sequence = request.sequence;
    if (request.op == CH_HANDS_OP_MULTIPATH_WATCH) {
        note(dir, "w");
        fd = watch(dir);
        reply.errnum = fd < 0 ? ENOENT : 0;
        reply.has_fd = fd >= 0;
    } else {
        note(dir, request.flags & CH_HANDS_REMOVE ? "R" : "s");
        reply.errnum = test_tree_has(dir, "fails") ? EIO : 0;
        reply.pid = getpid();
    }
    (void)ch_channel_send(channel_fd, &reply, sizeof(reply), fd);
}

static int
be_hands(const char *dir)
{
    struct pollfd fds[CH_HANDS_N_CHANNELS];

    for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
        fds[i] = (struct pollfd){.fd = CH_HANDS_FIRST_FD + i, .events = POLLIN};
    while (poll(fds, CH_HANDS_N_CHANNELS, -1) > 0)
        for (int i = 0; i < CH_HANDS_N_CHANNELS; i++)
            if (fds[i].revents != 0)
                serve(fds[i].fd, dir);
    return 1;
}

/* --- the tests */

typedef struct {
    char *dir, *watched; /* owned */
    ChHands *hands;
    ChLoop *loop;
    ChWorkerPool *pool;
    ChFileKeeper *keeper;
    pid_t hands_pid;
    guint n_settled, n_failed, n_done;
    bool gives_up;
} Fixture;

static bool
on_settled(gpointer data, const ChHandsReply *reply, const GError *error)
{
    Fixture *f = data;

    f->hands_pid = reply->pid != 0 ? reply->pid : f->hands_pid;
    f->n_settled += error == NULL;
    f->n_failed += error != NULL;
    return !f->gives_up;
}

static const ChFileKeeperSpec spec_with_end = {
    .watch = CH_HANDS_OP_MULTIPATH_WATCH,
    .settle = CH_HANDS_OP_MULTIPATH_SET,
    .has_end = true,
    .name = NAME,
    .on_settled = on_settled,
};

static const ChFileKeeperSpec spec_without_end = {
    .watch = CH_HANDS_OP_MULTIPATH_WATCH,
    .settle = CH_HANDS_OP_MULTIPATH_SET,
    .name = NAME,
    .on_settled = on_settled,
};

static void
set_up(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);

    f->dir = test_tree_new();
    f->watched = g_build_filename(f->dir, "watched", NULL);
    test_tree_mkdir(f->watched, ".");
    test_tree_write(f->dir, "log", "");
    f->hands =
        ch_hands_start(program, &(ChHandsPlaces){.pods_dir = f->dir, .private_dir = "/"}, &error);
    g_assert_no_error(error);
    f->loop = ch_loop_new();
    f->pool = ch_worker_pool_new(1, 4);
    f->keeper = ch_file_keeper_new(f->loop, f->pool, f->hands, data, f);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_worker_pool_free(f->pool);
    ch_file_keeper_free(f->keeper);
    ch_loop_free(f->loop);
    ch_hands_stop(f->hands);
    test_tree_remove(f->dir);
    g_free(f->dir);
    g_free(f->watched);
}

static char *
asked(const Fixture *f)
{
    g_autofree char *path = g_build_filename(f->dir, "log", NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void
assert_asked(const Fixture *f, const char *expected)
{
    g_autofree char *text = asked(f);

    g_assert_cmpstr(text, ==, expected);
}

static void
on_done(gpointer data)
{
    ((Fixture *)data)->n_done++;
}

static void
test_each_change(Fixture *f, gconstpointer data)
{
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 1);
    assert_asked(f, "ws");
    test_tree_write(f->watched, NAME, ""); /* by way of another name, which does not count */
    test_wait_until(f->loop, f->n_settled == 2);
    assert_asked(f, "wss");
    test_tree_mkdir(f->watched, OTHER);
    test_wait_us(f->loop, 1500 * 1000);
    assert_asked(f, "wss");
    test_tree_write(f->watched, NAME, "");
    test_wait_until(f->loop, f->n_settled == 3);
    test_tree_remove(f->watched);
    test_wait_until(f->loop, f->n_failed == 1); /* nothing to watch any more */
    test_tree_mkdir(f->watched, ".");
    test_wait_until(f->loop, f->n_settled == 4);
    test_tree_write(f->watched, NAME, "");
    test_wait_until(f->loop, f->n_settled == 5);
}

/* However fast the changes come, it is not done more often than once a second. */
static void
test_many_changes(Fixture *f, gconstpointer data)
{
    g_autofree char *text = NULL;

    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 1);
    for (int i = 0; i < 200; i++) {
        test_tree_write(f->watched, NAME, "");
        test_wait_us(f->loop, 1000);
    }
    test_wait_until(f->loop, f->n_settled >= 2);
    test_wait_us(f->loop, 1500 * 1000);
    text = asked(f);
    g_assert_cmpuint(strlen(text), <=, 20); /* not 200, however slow this machine is */
}

/* Nor are names looked at that mean nothing: pods can have as many as they like. */
static void
test_other_names(Fixture *f, gconstpointer data)
{
    gint64 first_us;

    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 1);
    test_wait_us(f->loop, 1100 * 1000);
    first_us = g_get_monotonic_time();
    test_tree_mkdir(f->watched, OTHER);
    for (int i = 0; i < 20; i++)
        test_wait_us(f->loop, 1000);
    test_tree_write(f->watched, NAME, "");
    test_wait_until(f->loop, f->n_settled == 2);
    g_assert_cmpint(g_get_monotonic_time() - first_us, >=, 1000 * 1000); /* never sooner */
    assert_asked(f, "wss");
}

static void
test_failure_is_tried_again(Fixture *f, gconstpointer data)
{
    test_tree_write(f->dir, "fails", "");
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_failed == 2);
    assert_asked(f, "wss"); /* one watch is enough */
    test_tree_remove(f->watched);
    test_wait_until(f->loop, f->n_failed == 3);
    {
        g_autofree char *path = g_build_filename(f->dir, "fails", NULL);

        g_assert_cmpint(g_remove(path), ==, 0);
    }
    test_tree_mkdir(f->watched, ".");
    test_wait_until(f->loop, f->n_settled == 1);
}

static void
test_failure_that_waits_for_a_change(Fixture *f, gconstpointer data)
{
    f->gives_up = true;
    test_tree_write(f->dir, "fails", "");
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_failed == 1);
    test_wait_us(f->loop, 2500 * 1000);
    g_assert_cmpuint(f->n_failed, ==, 1);
    test_tree_write(f->watched, NAME, "");
    test_wait_until(f->loop, f->n_failed == 2);
}

static void
test_end(Fixture *f, gconstpointer data)
{
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 1);
    ch_file_keeper_stop(f->keeper, on_done, f);
    g_assert_cmpuint(f->n_done, ==, 0);
    test_wait_until(f->loop, f->n_done == 1);
    assert_asked(f, "wsR");
    test_tree_write(f->watched, NAME, "");
    test_wait_us(f->loop, 1200 * 1000);
    assert_asked(f, "wsR");
    g_assert_cmpuint(f->n_settled, ==, 1);
}

/* While the first job is under way: what it does is taken back after it. */
static void
test_end_at_once(Fixture *f, gconstpointer data)
{
    ch_file_keeper_start(f->keeper);
    event_base_loop(ch_loop_peek_base(f->loop), EVLOOP_ONCE); /* the timer */
    ch_file_keeper_stop(f->keeper, on_done, f);
    test_wait_until(f->loop, f->n_done == 1);
    assert_asked(f, "wsR");
    g_assert_cmpuint(f->n_settled, ==, 0);
}

static void
test_end_before_the_start(Fixture *f, gconstpointer data)
{
    ch_file_keeper_stop(f->keeper, on_done, f);
    g_assert_cmpuint(f->n_done, ==, 0);
    test_wait_until(f->loop, f->n_done == 1);
    assert_asked(f, "");
}

/* Hands that do not answer hold nobody up. */
static void
test_end_without_answer(Fixture *f, gconstpointer data)
{
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 1);
    g_assert_cmpint(kill(f->hands_pid, SIGSTOP), ==, 0);
    ch_file_keeper_stop(f->keeper, on_done, f);
    test_wait_until(f->loop, f->n_done == 1);
    g_assert_cmpint(kill(f->hands_pid, SIGKILL), ==, 0);
    test_wait_until(f->loop, ch_worker_pool_n_busy(f->pool) == 0);
    test_wait_us(f->loop, 10 * 1000);
    g_assert_cmpuint(f->n_done, ==, 1);
}

/* Started again while what it did is taken back. */
static void
test_on_before_the_end(Fixture *f, gconstpointer data)
{
    ch_file_keeper_start(f->keeper);
    event_base_loop(ch_loop_peek_base(f->loop), EVLOOP_ONCE);
    ch_file_keeper_stop(f->keeper, on_done, f);
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_done == 1);
    test_wait_until(f->loop, f->n_settled == 1);
    assert_asked(f, "wsRws");
}

/* Switched off and on again, as a configuration may be, also while a job is under way. */
static void
test_off_and_on(Fixture *f, gconstpointer data)
{
    ch_file_keeper_start(f->keeper);
    event_base_loop(ch_loop_peek_base(f->loop), EVLOOP_ONCE);
    ch_file_keeper_stop(f->keeper, NULL, NULL);
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 1);
    assert_asked(f, "wsws"); /* never R: there is nothing to take back */
    ch_file_keeper_stop(f->keeper, NULL, NULL);
    test_tree_write(f->watched, NAME, "");
    test_wait_us(f->loop, 1200 * 1000);
    assert_asked(f, "wsws");
    ch_file_keeper_start(f->keeper);
    ch_file_keeper_start(f->keeper);
    test_wait_until(f->loop, f->n_settled == 2);
    assert_asked(f, "wswsws");
}

#define ADD(name, spec, func)                                                                      \
    g_test_add("/file-keeper/" name, Fixture, &(spec), set_up, func, tear_down)

int
main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '/')
        return be_hands(argv[1]);
    g_test_init(&argc, &argv, NULL);
    ADD("each-change", spec_with_end, test_each_change);
    ADD("many-changes", spec_with_end, test_many_changes);
    ADD("other-names", spec_with_end, test_other_names);
    ADD("failure-is-tried-again", spec_with_end, test_failure_is_tried_again);
    ADD("failure-that-waits-for-a-change", spec_with_end, test_failure_that_waits_for_a_change);
    ADD("end", spec_with_end, test_end);
    ADD("end-at-once", spec_with_end, test_end_at_once);
    ADD("end-before-the-start", spec_with_end, test_end_before_the_start);
    ADD("end-without-answer", spec_with_end, test_end_without_answer);
    ADD("on-before-the-end", spec_with_end, test_on_before_the_end);
    ADD("off-and-on", spec_without_end, test_off_and_on);
    return g_test_run();
}
