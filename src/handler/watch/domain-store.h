/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-store: the domains of this node as their launchers last described them. Spec 01 §9, §11.
 *
 * Parsed once, when they come; passes share what was parsed (launcher/domain.h). Every change
 * is told by key. A domain with a deletion timestamp stays in the store: it counts as gone, but its
 * UID is still needed. Thread: the loop's; ChKnownDomain: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "handler/launcher/domain.h"

/* One description of one domain; counted, immutable. */
typedef struct {
    char *key;          /* "namespace/name" */
    const char *uid;    /* Spec.Metadata.KubeVirt.UID, "" when there is none */
    const char *status; /* Status.Status */
    ChDomain *domain;
} ChKnownDomain;

/**
 * ch_known_domain_new: checks a Domain document and wraps it.
 * @json: @length bytes, not kept
 *
 * Thread: any. Returns: (transfer full): NULL with CH_ERROR_INVALID (also when namespace and name
 * cannot be a VMI's: they become a key, part of URLs and of log lines) or CH_ERROR_LIMIT
 */
ChKnownDomain *ch_known_domain_new(const char *json, gsize length, GError **error);

typedef enum {
    CH_KNOWN_DOMAIN_GONE,    /* with a deletion timestamp */
    CH_KNOWN_DOMAIN_UNKNOWN, /* the launcher cannot be reached */
    CH_KNOWN_DOMAIN_AWAITED, /* the launcher is being asked: unknown as well, until it answers */
} ChKnownDomainKind;

/**
 * ch_known_domain_new_minimal: the agent's own description of a domain that it cannot ask about.
 * Spec 01 §9
 * @uid: the VMI's; @owner_uid: what Spec.Metadata says ("" for a record whose socket is missing)
 * @wall_us: deletion time of a GONE one
 */
ChKnownDomain *ch_known_domain_new_minimal(const char *namespace_,
                                           const char *name,
                                           const char *uid,
                                           const char *owner_uid,
                                           ChKnownDomainKind kind,
                                           int64_t wall_us);
/* Whether it describes VMI @uid of this key. A launcher's first reports have no UID yet. */
bool ch_known_domain_is_of(const ChKnownDomain *domain, const char *key, const char *uid);
ChKnownDomain *ch_known_domain_ref(ChKnownDomain *domain);
void ch_known_domain_unref(ChKnownDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChKnownDomain, ch_known_domain_unref)

typedef struct ChDomainStore ChDomainStore;

/* @on_change: told after each change but ch_domain_store_forget() */
ChDomainStore *ch_domain_store_new(void (*on_change)(gpointer data, const char *key),
                                   gpointer data);
void ch_domain_store_free(ChDomainStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChDomainStore, ch_domain_store_free)

void ch_domain_store_put(ChDomainStore *store, ChKnownDomain *domain);
void ch_domain_store_remove(ChDomainStore *store, const char *key);
/* Silently: the last step of the clean-up of VM @uid (spec 01 §21.2 step 9). A domain that another
 * VM of this name has by now stays. */
void ch_domain_store_forget(ChDomainStore *store, const char *key, const char *uid);
ChKnownDomain *ch_domain_store_lookup(const ChDomainStore *store, const char *key); /* borrowed */
guint ch_domain_store_count(const ChDomainStore *store);
void ch_domain_store_foreach(const ChDomainStore *store,
                             void (*func)(gpointer data, ChKnownDomain *domain),
                             gpointer data);
