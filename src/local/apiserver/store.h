/* SPDX-License-Identifier: Apache-2.0 */

/*
 * store: objects as text in SQLite, and the one revision counter.
 *
 * Theory of operation: every write is one transaction that moves the object and the counter
 * together; with write-ahead log and synchronous=FULL it is on disk when the call returns, so a
 * kill loses nothing that was acknowledged. One fsync a write. The database is locked exclusively:
 * a second server on the same directory is told so. Text is opaque here.
 *
 * Errors: CH_ERROR_FAILED with SQLite's words; the database is unchanged then.
 * Thread: the owner's. Blocks: for the disk.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ChStore ChStore;

typedef struct {
    const char *resource;   /* "virtualmachineinstances.kubevirt.io" */
    const char *namespace_; /* "" for cluster-scoped kinds */
    const char *name;
} ChStoreKey;

#define CH_STORE_IN_MEMORY ":memory:" /* a path: nothing reaches the disk */

/* Makes the file when it is not there (mode 0600). */
ChStore *ch_store_open(const char *path, GError **error);
void ch_store_close(ChStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChStore, ch_store_close)

/* The revision of the last write; 1 in a new database. */
int64_t ch_store_revision(const ChStore *store);

/* @out_text: (transfer full): NULL when there is no such object. */
bool ch_store_get(ChStore *store, const ChStoreKey *key, char **out_text, GError **error);

/**
 * ch_store_put:
 * Makes or replaces. Afterwards ch_store_revision() is one more than before; the caller wrote that
 * number into @text already.
 * @now_us: wall clock, for ch_store_list_older()
 */
bool ch_store_put(
    ChStore *store, const ChStoreKey *key, const char *text, int64_t now_us, GError **error);
/* Removes (it need not be there). Moves the revision as a put does. */
bool ch_store_remove(ChStore *store, const ChStoreKey *key, GError **error);

/* Returns: false to stop. All arguments borrowed for the call. The store must not be written. */
typedef bool (*ChStoreVisit)(const ChStoreKey *key, const char *text, gsize length, gpointer data);

/**
 * ch_store_list: in the order of namespace and name.
 * @namespace_: (nullable): NULL: all
 * @after: (nullable): start behind this key
 */
bool ch_store_list(ChStore *store,
                   const char *resource,
                   const char *namespace_,
                   const ChStoreKey *after,
                   ChStoreVisit visit,
                   gpointer data,
                   GError **error);
/* Those last written before @before_us. */
bool ch_store_list_older(ChStore *store,
                         const char *resource,
                         int64_t before_us,
                         ChStoreVisit visit,
                         gpointer data,
                         GError **error);
