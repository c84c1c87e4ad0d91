/* SPDX-License-Identifier: Apache-2.0 */

/*
 * reflector: the rules of list and watch: what to ask next, and how to react to an outcome. Spec
 * 01 §3.
 *
 * Pure: no I/O, no clock. Thread: the owner's.
 *
 * Theory of operation: a round is one list (of one or more pages), then watches, until a reaction
 * says RELIST. Every round is followed by a back-off; a watch that is reopened continues at the
 * last resource version seen.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CH_REFLECTOR_PAGE_SIZE 500
#define CH_REFLECTOR_MAX_BYTES                                                                     \
    (256u << 20) /* kept of all pages of a list: they may go on for ever */

typedef struct {
    char *last_version;          /* owned; "" before the first list */
    bool is_version_unavailable; /* the server does not have last_version: read consistently */
    bool is_paginated;           /* this server pages even where its watch cache could answer */

    /* The list under way. */
    char *list_version;   /* owned: the version asked for */
    char *result_version; /* owned (nullable): the first page's */
    char *token;          /* owned (nullable): `continue` of the page to fetch next */
    guint limit;          /* 0: all in one answer */
    bool is_full_retry;   /* the paged list expired half-way; this is the unpaged one */
    bool is_second_try;   /* this is the consistent read after a version was unavailable */
    bool was_paged;       /* a first page had a successor */
    bool is_initial;      /* the round began with version "0" */
    gsize kept_bytes;     /* of the pages since the first */
} ChReflector;

void ch_reflector_init(ChReflector *reflector);
void ch_reflector_clear(ChReflector *reflector);

/* What the next list request carries; borrowed until the next call. */
typedef struct {
    guint limit;         /* 0: none */
    const char *version; /* "": none is sent */
    const char *token;   /* NULL: none */
} ChListQuery;

/* Starts a round. */
void ch_reflector_begin_list(ChReflector *reflector);
ChListQuery ch_reflector_list_query(const ChReflector *reflector);

/* An item of a page is to be kept. Returns: false: the list has become too large */
bool ch_reflector_may_keep(ChReflector *reflector, gsize n_bytes);

typedef enum {
    CH_LIST_INVALID = 0,
    CH_LIST_NEXT_PAGE, /* keep what came, fetch on */
    CH_LIST_DONE,      /* replace the store by what came, then watch */
    CH_LIST_RESTART,   /* throw away what came, ask again at once */
    CH_LIST_FAILED,    /* the round is over: back-off, next round */
} ChListReaction;

/* A page is complete. @token: its `continue`, NULL or "": the last one. */
ChListReaction
ch_reflector_page_done(ChReflector *reflector, const char *version, const char *token);
ChListReaction ch_reflector_page_failed(ChReflector *reflector, const GError *error);

/* An accepted event: the next watch starts behind it. Empty versions change nothing. */
void ch_reflector_saw(ChReflector *reflector, const char *version);

typedef enum {
    CH_WATCH_INVALID = 0,
    CH_WATCH_OPEN_REFUSED,    /* nobody listens */
    CH_WATCH_OPEN_THROTTLED,  /* 429 */
    CH_WATCH_OPEN_FAILED,     /* anything else */
    CH_WATCH_ENDED,           /* after an event or a second */
    CH_WATCH_ENDED_EARLY,     /* within a second, without any event */
    CH_WATCH_ENDED_OFTEN,     /* after an event, but within a second, time after time */
    CH_WATCH_ERROR_EXPIRED,   /* ERROR event, 410 */
    CH_WATCH_ERROR_THROTTLED, /* ERROR event, 429 */
    CH_WATCH_ERROR_OTHER,     /* any other ERROR event, undecodable bytes */
    CH_WATCH_N,
} ChWatchOutcome;

typedef enum {
    CH_REACT_INVALID = 0,
    CH_REACT_REOPEN,       /* at once */
    CH_REACT_PAUSE_REOPEN, /* back-off, then the same watch */
    CH_REACT_PAUSE_RELIST, /* the round is over: back-off, then list */
} ChReaction;

typedef struct {
    ChReaction reaction;
    bool is_quiet;    /* routine: not for the log */
    const char *text; /* static */
} ChWatchRule;

/* The watch could not be opened. */
ChWatchOutcome ch_watch_outcome_of_open(const GError *error);
/* The stream is over. @error: (nullable) how it broke. */
ChWatchOutcome ch_watch_outcome_of_end(const GError *error, guint64 n_events, int64_t duration_us);
/* The server, or the decoder, reported an error within the stream. */
ChWatchOutcome ch_watch_outcome_of_event(const GError *error);
/* Static. */
const ChWatchRule *ch_watch_rule(ChWatchOutcome outcome);

/* (transfer full): "/path?query", parameters in alphabetical order as client-go sends them;
 * selectors NULL or "": none. */
char *ch_reflector_list_path(const ChListQuery *query,
                             const char *path,
                             const char *label_selector,
                             const char *field_selector);
char *ch_reflector_watch_path(const char *version,
                              guint timeout_s,
                              const char *path,
                              const char *label_selector,
                              const char *field_selector);
/* @random: uniform in [0, 1). Returns: a watch's timeoutSeconds, of [300, 600) */
guint ch_reflector_watch_timeout(double random);
