/* SPDX-License-Identifier: Apache-2.0 */

/*
 * serve: the API on an HTTP server: who may ask, answers, and watches as streams. Thread: the
 * loop's.
 */

#pragma once

#include "lib/io/http-server.h"
#include "local/apiserver/api.h"
#include "local/apiserver/record.h"

typedef struct ChServe ChServe;

/**
 * ch_serve_new:
 * @options: address, port and TLS; limits are set here
 * @token: (nullable): what clients must bear; NULL: anybody may ask
 * @record: (nullable) borrowed
 */
ChServe *ch_serve_new(ChLoop *loop,
                      ChApi *api,
                      const ChHttpServerOptions *options,
                      const char *token,
                      ChRecord *record,
                      GError **error);
void ch_serve_free(ChServe *serve);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChServe, ch_serve_free)

uint16_t ch_serve_port(const ChServe *serve);
