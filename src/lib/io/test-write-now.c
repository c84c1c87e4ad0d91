/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/write-now.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <glib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/io/loop.h"
#include "lib/io/test-wait.h"

#define MUCH (4 << 20) /* more than a socket takes */

typedef struct {
    ChLoop *loop;
    struct bufferevent *bev;
    int peer_fd;
    short error; /* what was told of one */
} Fixture;

static void
on_event(struct bufferevent *bev, short what, void *data)
{
    ((Fixture *)data)->error |= what;
}

static void
set_up(Fixture *f, gconstpointer data)
{
    int fds[2];

    f->loop = ch_loop_new();
    g_assert_no_errno(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds));
    f->bev = bufferevent_socket_new(ch_loop_peek_base(f->loop), fds[0], BEV_OPT_CLOSE_ON_FREE);
    f->peer_fd = fds[1];
    bufferevent_setcb(f->bev, NULL, NULL, on_event, f);
    ch_write_now_init(f->bev);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    bufferevent_free(f->bev);
    if (f->peer_fd >= 0)
        close(f->peer_fd);
    ch_loop_free(f->loop);
}

static void
put(Fixture *f, const char *text)
{
    evbuffer_add(bufferevent_get_output(f->bev), text, strlen(text));
    ch_write_now(f->bev);
}

static void
test_at_once(Fixture *f, gconstpointer data)
{
    char text[16];

    put(f, "one");
    g_assert_cmpint(read(f->peer_fd, text, sizeof(text)), ==, 3);
    g_assert_cmpint(memcmp(text, "one", 3), ==, 0);
    put(f, "two");
    g_assert_cmpint(read(f->peer_fd, text, sizeof(text)), ==, 3);
    ch_write_now(f->bev); /* nothing */
    g_assert_false(bufferevent_get_enabled(f->bev) & EV_WRITE);
}

/* What a socket does not take follows, and later bytes come behind it. */
static void
test_rest_follows(Fixture *f, gconstpointer data)
{
    g_autofree char *much = g_strnfill(MUCH, 'x');
    gsize n_read = 0;
    char buffer[65536];
    char last = 0;

    put(f, much);
    g_assert_cmpuint(evbuffer_get_length(bufferevent_get_output(f->bev)), >, 0);
    put(f, "end");
    while (n_read < MUCH + 3) {
        const ssize_t n = read(f->peer_fd, buffer, sizeof(buffer));

        if (n > 0) {
            n_read += (gsize)n;
            last = buffer[n - 1];
        } else {
            test_wait_us(f->loop, 500);
        }
    }
    g_assert_cmpint(last, ==, 'd');
    put(f, "at once again");
    g_assert_cmpint(read(f->peer_fd, buffer, sizeof(buffer)), ==, 13);
}

/* Told by the loop, not from within. */
static void
test_peer_is_gone(Fixture *f, gconstpointer data)
{
    bufferevent_disable(f->bev, EV_READ);
    close(f->peer_fd);
    f->peer_fd = -1;
    put(f, "lost");
    g_assert_cmpint(f->error, ==, 0);
    test_wait_until(f->loop, f->error != 0);
    g_assert_cmpint(f->error, ==, BEV_EVENT_ERROR | BEV_EVENT_WRITING);
}

#define ADD(path, func) g_test_add("/write-now/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("at-once", test_at_once);
    ADD("rest-follows", test_rest_follows);
    ADD("peer-is-gone", test_peer_is_gone);
    return g_test_run();
}
