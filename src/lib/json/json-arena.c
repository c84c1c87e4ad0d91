/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/json/json-arena.h"

#include <string.h>

#if defined(__has_feature) /* clang has no __SANITIZE_ADDRESS__ */
#if __has_feature(address_sanitizer)
#define HAS_POISON
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_POISON
#endif
#ifdef HAS_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

#define MIN_PIECE_BYTES 512
#define PIECE_BYTES     16384

typedef struct Piece Piece;
struct Piece {
    ChJsonArena *arena;
    Piece *next;
};

struct ChJsonArena {
    guint n_held;  /* values, and the maker's hold */
    Piece *pieces; /* owned; the first is the one that is being filled */
    char *at, *end;
};

#define PLACE_UNIT sizeof(void *)
G_STATIC_ASSERT(sizeof(Piece) % PLACE_UNIT == 0);

static gsize
round_up(gsize n_bytes)
{
    return (n_bytes + PLACE_UNIT - 1) / PLACE_UNIT * PLACE_UNIT;
}

static Piece *
piece_new(ChJsonArena *arena, gsize n_bytes)
{
    Piece *piece = g_malloc(sizeof(Piece) + n_bytes);

    *piece = (Piece){.arena = arena};
    return piece;
}

static void
fill_next(ChJsonArena *arena, gsize n_bytes)
{
    Piece *piece = piece_new(arena, n_bytes);

    piece->next = arena->pieces;
    arena->pieces = piece;
    arena->at = (char *)(piece + 1);
    arena->end = arena->at + n_bytes;
}

ChJsonArena *
ch_json_arena_new(gsize expected)
{
    ChJsonArena *arena = g_new0(ChJsonArena, 1);

    arena->n_held = 1;
    fill_next(arena, round_up(CLAMP(expected, MIN_PIECE_BYTES, PIECE_BYTES)));
    return arena;
}

/* *out_piece is the one that it lies in. */
static char *
alloc(ChJsonArena *arena, gsize n_bytes, Piece **out_piece)
{
    const gsize size = round_up(n_bytes);
    char *result;

    if (size > (gsize)(arena->end - arena->at)) {
        if (size > PIECE_BYTES / 4) { /* has its own, behind the one that is being filled */
            Piece *piece = piece_new(arena, size);

            piece->next = arena->pieces->next;
            arena->pieces->next = piece;
            *out_piece = piece;
            return (char *)(piece + 1);
        }
        fill_next(arena, PIECE_BYTES);
    }
    result = arena->at;
    arena->at += size;
    *out_piece = arena->pieces;
    return result;
}

void *
ch_json_arena_alloc(ChJsonArena *arena, gsize n_bytes)
{
    Piece *piece;

    return alloc(arena, n_bytes, &piece);
}

ChJson *
ch_json_arena_value(ChJsonArena *arena, ChJsonKind kind, gsize n_bytes)
{
    Piece *piece;
    char *bytes = alloc(arena, n_bytes, &piece);
    ChJson *json = (ChJson *)(void *)bytes;

    *json = (ChJson){
        .n_refs = 1,
        .kind = kind,
        .place = (gsize)(bytes - (char *)piece) / PLACE_UNIT & CH_JSON_PLACE_MASK,
    };
    arena->n_held++;
    return json;
}

void
ch_json_arena_release(ChJsonArena *arena)
{
    Piece *next;

    if (--arena->n_held > 0)
        return;
    for (Piece *piece = arena->pieces; piece != NULL; piece = next) {
        next = piece->next;
        g_free(piece);
    }
    g_free(arena);
}

void
ch_json_value_free(ChJson *json, gsize n_bytes)
{
    const Piece *piece = (const Piece *)(void *)((char *)json - json->place * PLACE_UNIT);

    if (json->place == 0) {
        g_free(json);
        return;
    }
    ASAN_POISON_MEMORY_REGION(json, n_bytes);
    ch_json_arena_release(piece->arena);
}
