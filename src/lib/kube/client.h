/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client: requests to the Kubernetes API server, with client-go's rules (spec 01 §2): the bearer
 * token, the shared token bucket, retries of 429/5xx with Retry-After, `Status` answers turned into
 * errors.
 */

#pragma once

#include "lib/io/http-client.h"
#include "lib/kube/api-status.h" /* CH_KUBE_ERROR: answers; transport failures keep CH_HTTP_ERROR */
#include "lib/kube/clock.h"
#include "lib/kube/config.h"

#define CH_KUBE_MAX_ANSWER (64u << 20) /* bytes; streams have no limit here */

typedef struct ChKubeClient ChKubeClient;
typedef struct ChKubeCall ChKubeCall;

typedef struct {
    const char *method;       /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    const char *path;         /* with query, percent-encoded */
    const char *content_type; /* NULL: application/json */
    const char *accept;       /* NULL: application/json */
    const char *body;         /* (nullable): NUL-terminated JSON, copied */
    bool is_watch;            /* opening it is not throttled */
    int64_t timeout_us;       /* all tries together; 0: none */
} ChKubeRequest;

/* @error as above; @body: (nullable) the whole answer (of 2xx answers, and the Status of errors
 * where there is one). */
typedef void (*ChKubeDone)(gpointer data, GBytes *body, const GError *error);

/* What a streamed answer does. on_end comes exactly once and last, unless the call was cancelled.
 * Callbacks may cancel their call. */
typedef struct {
    void (*on_open)(gpointer data); /* a 2xx answer begins: no more retries; (nullable) */
    void (*on_data)(gpointer data, const uint8_t *bytes, gsize length);
    /* NULL without on_open before: a watch that could not be kept open, to be taken as one that
     * ended at once */
    void (*on_end)(gpointer data, const GError *error);
} ChKubeSink;

/* Blocks: reads the token file. Fails when there is neither a readable token file nor a token. */
ChKubeClient *ch_kube_client_new(ChLoop *loop, const ChKubeConfig *config, GError **error);
/* Ends every call without its callback, but waiting workers by CH_ERROR_CLOSED. Thread: the loop's.
 */
void ch_kube_client_free(ChKubeClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChKubeClient, ch_kube_client_free)
/* A new, full bucket replaces the old one (spec 01 §2.1). Default 50/s, burst 100, also
 * when one of the two is not positive. */
void ch_kube_client_set_rate(ChKubeClient *client, double qps, guint burst);

/* @func: hears what the server warns of, on the loop's thread: see ch_kube_warning_text(). Right
 * after new. */
typedef void (*ChKubeWarning)(gpointer data, const char *text);
void ch_kube_client_set_warning_func(ChKubeClient *client, ChKubeWarning func, gpointer data);

/* For tests, right after new. @clock is borrowed for the client's life. */
void ch_kube_client_set_clock(ChKubeClient *client, const ChKubeClock *clock);
const ChKubeClock *ch_kube_client_peek_clock(const ChKubeClient *client);
ChLoop *ch_kube_client_peek_loop(const ChKubeClient *client);

/* Thread: the loop's. Callbacks never come from within; nothing comes after cancel. */
ChKubeCall *ch_kube_client_stream(ChKubeClient *client,
                                  const ChKubeRequest *request,
                                  const ChKubeSink *sink,
                                  gpointer data);
/* The same with the answer in one piece (CH_ERROR_LIMIT beyond CH_KUBE_MAX_ANSWER). */
ChKubeCall *ch_kube_client_start(ChKubeClient *client,
                                 const ChKubeRequest *request,
                                 ChKubeDone done,
                                 gpointer data);
void ch_kube_call_cancel(ChKubeCall *call);

/**
 * ch_kube_client_request: the same for any other thread, also before the loop runs. On the loop's
 * own thread it would wait for itself until the deadline.
 *
 * Returns: (transfer full): the answer's body; NULL with CH_KUBE_ERROR, CH_HTTP_ERROR,
 * CH_ERROR_TIMEOUT or CH_ERROR_CLOSED
 * Blocks: up to @request->timeout_us (which must be > 0)
 */
GBytes *ch_kube_client_request(ChKubeClient *client, const ChKubeRequest *request, GError **error);
