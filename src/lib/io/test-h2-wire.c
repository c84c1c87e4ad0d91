/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/h2-wire.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What nghttp2 asks for when it makes the buffer of one frame. */
#define FRAME_BUFFER_BYTES 16394

static void *
ask(ChH2FrameLender *lender, size_t size)
{
    return lender->mem.realloc(NULL, size, lender->mem.mem_user_data);
}

static void
give_back(ChH2FrameLender *lender, void *pointer)
{
    lender->mem.free(pointer, lender->mem.mem_user_data);
}

static void
test_sessions_share_the_first_buffer(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    ChH2FrameLender a, b;
    void *shared, *second;

    ch_h2_frame_lender_init(&a, loop);
    ch_h2_frame_lender_init(&b, loop);
    shared = ask(&a, FRAME_BUFFER_BYTES);
    g_assert_true(ask(&b, FRAME_BUFFER_BYTES) == shared);

    /* a header block that takes several frames */
    second = ask(&a, FRAME_BUFFER_BYTES);
    g_assert_true(second != shared);
    give_back(&a, second);
    give_back(&a, shared);
    g_assert_true(ask(&a, FRAME_BUFFER_BYTES) == shared);
    give_back(&a, shared);
    give_back(&b, shared);
}

/* Proves that this nghttp2 asks as the lender expects it: else it would cost memory, silently. */
static void
test_nghttp2_takes_the_loan(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    ChH2FrameLender lender;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;

    ch_h2_frame_lender_init(&lender, loop);
    g_assert_cmpint(nghttp2_session_callbacks_new(&callbacks), ==, 0);
    g_assert_cmpint(
        nghttp2_session_client_new3(&session, callbacks, NULL, NULL, &lender.mem), ==, 0);
    g_assert_true(lender.is_lent);
    g_assert_true(lender.has_table);
    g_assert_cmpuint(lender.n_placed, ==, 3);
    nghttp2_session_del(session);
    g_assert_false(lender.is_lent);
    g_assert_null(lender.pages);
    nghttp2_session_callbacks_del(callbacks);
}

static bool
is_resident(void *page)
{
    unsigned char state = 0;

    g_assert_cmpint(mincore(page, (gsize)sysconf(_SC_PAGESIZE), &state), ==, 0);
    return state & 1;
}

/* A page costs nothing until it is written to, and again when it is empty; what is in it stays. */
static void
test_empty_table_is_given_back(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    ChH2FrameLender lender;
    char *table, *ring, *other;

    ch_h2_frame_lender_init(&lender, loop);
    ch_h2_frame_lender_rest(&lender); /* without a table: nothing */
    ring = lender.mem.malloc(1024, &lender);
    table = lender.mem.calloc(256, 16, &lender);
    other = lender.mem.calloc(256, 16, &lender); /* there is one table only */
    g_assert_cmpuint(lender.n_placed, ==, 2);
    g_assert_false(is_resident(table));
    memset(ring, 'r', 1024);
    table[4095] = 't';
    ch_h2_frame_lender_rest(&lender);
    g_assert_cmpint(table[4095], ==, 't');
    table[4095] = 0;
    g_assert_true(is_resident(table));
    ch_h2_frame_lender_rest(&lender);
    g_assert_false(is_resident(table));
    g_assert_cmpint(table[4095], ==, 0);
    g_assert_cmpint(ring[1023], ==, 'r');
    give_back(&lender, other);
    give_back(&lender, table);
    ch_h2_frame_lender_rest(&lender);
    give_back(&lender, ring);
    g_assert_null(lender.pages);
}

/* nghttp2 leaves an empty table as it began: all zeros. */
static void
test_session_comes_to_rest(void)
{
    const nghttp2_nv headers[] = {
        {(uint8_t *)":method", (uint8_t *)"GET", 7, 3, NGHTTP2_NV_FLAG_NONE},
        {(uint8_t *)":scheme", (uint8_t *)"http", 7, 4, NGHTTP2_NV_FLAG_NONE},
        {(uint8_t *)":path", (uint8_t *)"/", 5, 1, NGHTTP2_NV_FLAG_NONE},
    };
    g_autoptr(ChLoop) loop = ch_loop_new();
    struct evbuffer *wire = evbuffer_new();
    ChH2FrameLender lender;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *client, *server;
    nghttp2_option *option;

    ch_h2_frame_lender_init(&lender, loop);
    g_assert_cmpint(nghttp2_session_callbacks_new(&callbacks), ==, 0);
    g_assert_cmpint(nghttp2_option_new(&option), ==, 0);
    nghttp2_option_set_no_closed_streams(option, 1); /* else they stay in the table */
    g_assert_cmpint(nghttp2_session_client_new(&client, callbacks, NULL), ==, 0);
    g_assert_cmpint(
        nghttp2_session_server_new3(&server, callbacks, NULL, option, &lender.mem), ==, 0);
    nghttp2_option_del(option);
    g_assert_cmpint(nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0), ==, 0);
    g_assert_cmpint(nghttp2_submit_settings(server, NGHTTP2_FLAG_NONE, NULL, 0), ==, 0);
    for (int i = 0; i < 3; i++) {
        const int32_t id =
            nghttp2_submit_request(client, NULL, headers, G_N_ELEMENTS(headers), NULL, NULL);

        g_assert_cmpint(id, >, 0);
        g_assert_cmpint(ch_h2_send(client, wire, 10000), ==, 0);
        g_assert_cmpint(ch_h2_receive(server, wire), ==, 0);
        g_assert_true(is_resident(lender.pages)); /* the stream is in it */
        g_assert_cmpint(nghttp2_submit_rst_stream(server, NGHTTP2_FLAG_NONE, id, 0), ==, 0);
        g_assert_cmpint(ch_h2_send(server, wire, 10000), ==, 0);
        g_assert_cmpint(ch_h2_receive(client, wire), ==, 0);
        ch_h2_frame_lender_rest(&lender);
        g_assert_false(is_resident(lender.pages));
    }
    nghttp2_session_del(client);
    nghttp2_session_del(server);
    nghttp2_session_callbacks_del(callbacks);
    evbuffer_free(wire);
}

/* Two sessions that only greet each other: every byte arrives, and sending stops at the mark. */
static void
test_bytes_move(void)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    struct evbuffer *wire = evbuffer_new();
    ChH2FrameLender lender;
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *client, *server;

    ch_h2_frame_lender_init(&lender, loop);
    g_assert_cmpint(nghttp2_session_callbacks_new(&callbacks), ==, 0);
    g_assert_cmpint(nghttp2_session_client_new(&client, callbacks, NULL), ==, 0);
    g_assert_cmpint(
        nghttp2_session_server_new3(&server, callbacks, NULL, NULL, &lender.mem), ==, 0);
    g_assert_cmpint(nghttp2_submit_settings(client, NGHTTP2_FLAG_NONE, NULL, 0), ==, 0);
    g_assert_cmpint(ch_h2_send(client, wire, 1), ==, 0); /* the preface alone is more than that */
    g_assert_cmpuint(evbuffer_get_length(wire), ==, NGHTTP2_CLIENT_MAGIC_LEN);
    g_assert_cmpint(ch_h2_send(client, wire, 1000), ==, 0);
    g_assert_cmpuint(evbuffer_get_length(wire), ==, NGHTTP2_CLIENT_MAGIC_LEN + 9);
    g_assert_cmpint(ch_h2_receive(server, wire), ==, 0);
    g_assert_cmpuint(evbuffer_get_length(wire), ==, 0);
    g_assert_cmpint(ch_h2_send(server, wire, 1000), ==, 0);
    g_assert_cmpuint(evbuffer_get_length(wire), ==, 9); /* SETTINGS ACK */

    nghttp2_session_del(client);
    nghttp2_session_del(server);
    nghttp2_session_callbacks_del(callbacks);
    evbuffer_free(wire);
}

static void
test_garbage_is_an_error(void)
{
    struct evbuffer *wire = evbuffer_new();
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *server;

    g_assert_cmpint(nghttp2_session_callbacks_new(&callbacks), ==, 0);
    g_assert_cmpint(nghttp2_session_server_new(&server, callbacks, NULL), ==, 0);
    evbuffer_add(wire, "GET / HTTP/1.1\r\n\r\n", 18);
    g_assert_cmpint(ch_h2_receive(server, wire), ==, NGHTTP2_ERR_BAD_CLIENT_MAGIC);
    nghttp2_session_del(server);
    nghttp2_session_callbacks_del(callbacks);
    evbuffer_free(wire);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/io/h2-wire/sessions-share-the-first-buffer",
                    test_sessions_share_the_first_buffer);
    g_test_add_func("/io/h2-wire/nghttp2-takes-the-loan", test_nghttp2_takes_the_loan);
    g_test_add_func("/io/h2-wire/empty-table-is-given-back", test_empty_table_is_given_back);
    g_test_add_func("/io/h2-wire/session-comes-to-rest", test_session_comes_to_rest);
    g_test_add_func("/h2-wire/bytes-move", test_bytes_move);
    g_test_add_func("/h2-wire/garbage-is-an-error", test_garbage_is_an_error);
    return g_test_run();
}
