/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client-internal: what the client's two halves share: requests on the loop (client.c), and those
 * of other threads (client-wait.c).
 */

#pragma once

#include <stdatomic.h>

#include "lib/kube/client.h"
#include "lib/kube/token-bucket.h"
#include "lib/kube/token-source.h"

struct ChKubeClient {
    atomic_uint refs; /* one of the owner, one of each job on its way to the loop */
    ChLoop *loop;     /* borrowed */
    const ChKubeClock *clock;
    ChHttpClient *http; /* NULL once the owner freed the client */
    ChTokenSource *token;
    ChTokenBucket bucket;
    char *path_prefix;
    char *user_agent;
    ChKubeWarning on_warning; /* (nullable) with warning_data */
    gpointer warning_data;
    GQueue calls; /* of ChKubeCall, by their `link`: the unfinished ones */
    GQueue jobs;  /* of Job, by their `link`: those with a call */
};

/* The memory goes with the last reference; what is in it went before, with the owner's. */
void ch_kube_client_unref(ChKubeClient *client);
/* Ends the waiting of everybody, with CH_ERROR_CLOSED. */
void ch_kube_client_close_jobs(ChKubeClient *client);
