/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-cache: what the agent keeps about each network of a VM, on disk in the Go agent's format:
 * PRIVATE-DIR/network-info-cache/VMI-UID/NETWORK.
 *
 * The file is the truth: nothing is kept in memory. It is replaced whole. Thread: any but the
 * loop's, one at a time for a VMI. Blocks: for the disk. Spec: 04 §4.1, traps 5 to 8.
 */

#pragma once

#include "lib/json/json.h"

typedef enum {
    CH_NETWORK_PENDING = 0,
    CH_NETWORK_STARTED = 1, /* the pod is being changed */
    CH_NETWORK_FINISHED = 2,
} ChNetworkState;

/**
 * ch_network_cache_load:
 *
 * Returns: (transfer full): the document, empty when there is no file; NULL with CH_ERRNO or
 * CH_ERROR_INVALID ("error unmarshaling cached object: ...")
 */
ChJson *ch_network_cache_load(const char *private_dir,
                              const char *uid,
                              const char *network,
                              GError **error);

/* Gives the file .@network.new of VMI @uid to 107:107. */
typedef bool (*ChNetworkCacheOwn)(gpointer data,
                                  const char *uid,
                                  const char *network,
                                  GError **error);

/* The file gets mode 0604 and, by @own, its owner; the directories 0750. */
bool ch_network_cache_store(const char *private_dir,
                            const char *uid,
                            const char *network,
                            const ChJson *document,
                            ChNetworkCacheOwn own,
                            gpointer data,
                            GError **error);

/* Of a document; a number that is no state is a state of its own that matches none. */
int64_t ch_network_cache_state(const ChJson *document);
void ch_network_cache_set_state(ChJson *document, ChNetworkState state);

/* Removes the file of one network. None there: true. */
bool ch_network_cache_forget(const char *private_dir,
                             const char *uid,
                             const char *network,
                             GError **error);

/* Removes all of a VMI's. None there: true. "teardown failed, err: ..." */
bool ch_network_cache_remove(const char *private_dir, const char *uid, GError **error);
