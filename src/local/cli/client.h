/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client: requests to the API server for commands, which do one thing after the other.
 *
 * The loop runs on a thread of its own meanwhile. Thread: the command's. Blocks:
 * CH_CLIENT_TIMEOUT_US at most.
 */

#pragma once

#include "lib/json/json.h"
#include "lib/kube/client.h"
#include "local/cli/cli.h"

#define CH_CLIENT_TIMEOUT_US (20 * G_GINT64_CONSTANT(1000000))

typedef struct ChClient ChClient;

/* Fails with a sentence that says what to do when nothing runs here, or one may not. */
ChClient *ch_client_new(const ChCli *cli, GError **error);
void ch_client_free(ChClient *client);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChClient, ch_client_free)

typedef struct {
    const char *method;
    const char *path;
    const ChJson *body;       /* (nullable) */
    const char *content_type; /* NULL: application/json */
    const char *accept;       /* NULL: application/json */
} ChClientRequest;

/* (transfer full): the answer; NULL with CH_KUBE_ERROR or CH_HTTP_ERROR */
ChJson *ch_client_request(ChClient *client, const ChClientRequest *request, GError **error);
ChJson *ch_client_get(ChClient *client, const char *path, GError **error);

bool ch_client_is_not_found(const GError *error);

/* Creates the object, or merges it into what is there. @out_is_new: (optional). (transfer full): as
 * stored */
ChJson *ch_client_apply(ChClient *client,
                        const char *collection_path,
                        const char *object_path,
                        const ChJson *object,
                        bool *out_is_new,
                        GError **error);
