/* SPDX-License-Identifier: Apache-2.0 */

/*
 * resolver: host names to addresses, without blocking the loop.
 *
 * Numeric addresses and "localhost" need no thread; other names are looked up by the system's own
 * resolver (files, search domains, whatever nsswitch.conf says) on a thread that lives as long as
 * the question. Thread: the loop's.
 */

#pragma once

#include <sys/socket.h>

#include "lib/io/loop.h"

#define CH_RESOLVER_MAX_ADDRESSES 8

typedef struct {
    struct sockaddr_storage storage;
    socklen_t length;
} ChAddress;

typedef struct ChResolver ChResolver;

/* @error: CH_HTTP_ERROR_CONNECT, and then no addresses. Called once, in a later turn; the resolver
 * is the owner's to free, also in here. */
typedef void (*ChResolverFunc)(gpointer data,
                               const ChAddress *addresses,
                               gsize n_addresses,
                               const GError *error);

ChResolver *
ch_resolver_new(ChLoop *loop, const char *host, uint16_t port, ChResolverFunc func, gpointer data);
/* A thread that still asks is left to itself: it holds nothing but its question. */
void ch_resolver_free(ChResolver *resolver);
