/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/h2-wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/io/write-now.h"

/* A full frame's payload with its header and pad length: what nghttp2 asks for. */
#define FRAME_BUFFER_BYTES (16384 + 9 + 1)

G_STATIC_ASSERT(FRAME_BUFFER_BYTES <= CH_LOOP_SCRATCH_BYTES);

/* What a new session allocates for its tables: 256 buckets, and a ring of pointers for each
 * direction of HPACK. Another nghttp2 may ask for other sizes: they come from malloc. */
#define TABLE_BYTES 4096
#define RING_BYTES  1024
#define N_RINGS     2

static gsize
page_bytes(void)
{
    return MAX((gsize)sysconf(_SC_PAGESIZE), TABLE_BYTES);
}

/* Returns: (nullable) */
static void *
place(ChH2FrameLender *lender, gsize offset)
{
    if (lender->pages == NULL) {
        void *pages = mmap(NULL,
                           2 * page_bytes(),
                           PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                           -1,
                           0);

        if (pages == MAP_FAILED)
            return NULL;
        lender->pages = pages;
    }
    lender->n_placed++;
    return lender->pages + offset;
}

static bool
is_placed(const ChH2FrameLender *lender, const void *pointer)
{
    return lender->pages != NULL && (const uint8_t *)pointer >= lender->pages &&
           (const uint8_t *)pointer < lender->pages + 2 * page_bytes();
}

static void
take_back(ChH2FrameLender *lender, const void *pointer)
{
    if (pointer == lender->pages)
        lender->has_table = false;
    if (--lender->n_placed > 0)
        return;
    (void)munmap(lender->pages, 2 * page_bytes()); /* fails for no mapping of ours */
    lender->pages = NULL;
}

void
ch_h2_frame_lender_rest(ChH2FrameLender *lender)
{
    static const uint8_t zeros[TABLE_BYTES];

    if (lender->has_table && memcmp(lender->pages, zeros, TABLE_BYTES) == 0)
        (void)madvise(lender->pages, page_bytes(), MADV_DONTNEED); /* else it stays, as it is */
}

static void *
lender_malloc(size_t size, void *data)
{
    ChH2FrameLender *lender = data;
    void *ring = NULL;

    if (size == RING_BYTES && lender->n_rings < N_RINGS)
        ring = place(lender, page_bytes() + lender->n_rings * RING_BYTES);
    if (ring == NULL)
        return malloc(size);
    lender->n_rings++;
    return ring;
}

static void *
lender_calloc(size_t n_members, size_t size, void *data)
{
    ChH2FrameLender *lender = data;
    void *table = NULL;

    /* zero, as a page is placed once */
    if (n_members > 1 && n_members <= TABLE_BYTES && n_members * size == TABLE_BYTES &&
        lender->n_tables == 0)
        table = place(lender, 0);
    if (table == NULL)
        return calloc(n_members, size);
    lender->n_tables++;
    lender->has_table = true;
    return table;
}

static void
lender_free(void *pointer, void *data)
{
    ChH2FrameLender *lender = data;

    if (pointer != NULL && pointer == lender->buffer)
        lender->is_lent = false;
    else if (is_placed(lender, pointer))
        take_back(lender, pointer);
    else
        free(pointer);
}

/* nghttp2 allocates its buffers by realloc(NULL). */
static void *
lender_realloc(void *pointer, size_t size, void *data)
{
    ChH2FrameLender *lender = data;

    if (pointer == NULL && size == FRAME_BUFFER_BYTES && !lender->is_lent) {
        lender->is_lent = true;
        return lender->buffer;
    }
    if (pointer != NULL && (pointer == lender->buffer || is_placed(lender, pointer)))
        return NULL; /* these never grow; nghttp2 takes it as out of memory */
    return realloc(pointer, size);
}

void
ch_h2_frame_lender_init(ChH2FrameLender *lender, ChLoop *loop)
{
    *lender = (ChH2FrameLender){
        .buffer = ch_loop_peek_scratch(loop),
        .mem = {.mem_user_data = lender,
                .malloc = lender_malloc,
                .free = lender_free,
                .calloc = lender_calloc,
                .realloc = lender_realloc},
    };
}

int
ch_h2_receive(nghttp2_session *session, struct evbuffer *input)
{
    struct evbuffer_iovec chunk;

    while (evbuffer_peek(input, -1, NULL, &chunk, 1) > 0 && chunk.iov_len > 0) {
        const ssize_t taken = nghttp2_session_mem_recv(session, chunk.iov_base, chunk.iov_len);

        if (taken < 0)
            return (int)taken;
        evbuffer_drain(input, (size_t)taken);
    }
    return 0;
}

int
ch_h2_send(nghttp2_session *session, struct evbuffer *output, gsize high_bytes)
{
    while (evbuffer_get_length(output) < high_bytes) {
        const uint8_t *bytes;
        const ssize_t length = nghttp2_session_mem_send(session, &bytes);

        if (length <= 0)
            return (int)length;
        evbuffer_add(output, bytes, (size_t)length);
    }
    return 0;
}

int
ch_h2_transmit(nghttp2_session *session, struct bufferevent *bev, gsize high_bytes)
{
    struct evbuffer *output = bufferevent_get_output(bev);
    bool is_full;
    int result;

    do {
        result = ch_h2_send(session, output, high_bytes);
        is_full = evbuffer_get_length(output) >= high_bytes;
        ch_write_now(bev);
    } while (result == 0 && is_full && evbuffer_get_length(output) == 0);
    return result;
}
