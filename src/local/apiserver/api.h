/* SPDX-License-Identifier: Apache-2.0 */

/*
 * api: the Kubernetes REST conventions over the store, without HTTP: a request in, an answer out.
 *
 * Every call is short: it reads and writes SQLite on the calling thread (one fsync a write), which
 * is right for one machine's stand-in and nothing else. Thread: the loop's.
 */

#pragma once

#include "local/apiserver/store.h"
#include "local/apiserver/watch.h"

/* A request's body may be so large, as on a cluster. */
#define CH_API_MAX_BODY (3u << 20)

typedef struct {
    const char *method;
    const char *path;         /* as sent */
    const char *query;        /* (nullable): as sent */
    const char *content_type; /* (nullable) */
    const char *accept;       /* (nullable) */
    const uint8_t *body;
    gsize length;
} ChApiRequest;

typedef struct {
    int code;
    const char *content_type; /* static */
    int retry_after_s;        /* 0: none */
    GPtrArray *warnings;      /* owned (nullable) (element-type utf8): printable, without quotes */
    GBytes *body;             /* owned; NULL: the answer is a stream of @watch */
    ChWatch *watch;           /* owned */
} ChApiAnswer;

void ch_api_answer_clear(ChApiAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChApiAnswer, ch_api_answer_clear)

typedef struct ChApi ChApi;

typedef struct {
    bool keeps_given;  /* UID and status of new objects stay as given: for tests */
    guint max_changes; /* history: 0: 8192 changes, */
    gsize max_bytes;   /* 0: 32 MiB */
} ChApiOptions;

/* Takes @store over. Makes the namespace `default` when it is not there.
 * Returns: (transfer full): NULL when the store cannot be written */
ChApi *ch_api_new(ChStore *store, const ChApiOptions *options, GError **error);
void ch_api_free(ChApi *api);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChApi, ch_api_free)

ChHistory *ch_api_peek_history(ChApi *api);

/* Never fails: what goes wrong is an answer too. @now_us: wall clock */
void
ch_api_handle(ChApi *api, const ChApiRequest *request, int64_t now_us, ChApiAnswer *out_answer);

/* Removes what has outlived its kind's ttl. */
void ch_api_expire(ChApi *api, int64_t now_us);
