/* SPDX-License-Identifier: Apache-2.0 */

/*
 * metadata: what this launcher keeps of its VM beside libvirt, and reports with the domain.
 *
 * Held in memory only. Mutex-guarded: any thread reads and changes it. Changes that the agent must
 * learn of call the listener, after the lock was released; setting the identity is silent. Spec 03
 * §11.2.
 */

#pragma once

#include "lib/json/json.h"

typedef struct ChMetadata ChMetadata;

typedef void (*ChMetadataChanged)(gpointer data);

ChMetadata *ch_metadata_new(ChMetadataChanged changed /* (nullable) */, gpointer data);
void ch_metadata_free(ChMetadata *metadata);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChMetadata, ch_metadata_free)

/* Silent. */
void ch_metadata_set_uid(ChMetadata *metadata, const char *uid);
/* Silent: before the domain is defined. */
void ch_metadata_init_grace_period(ChMetadata *metadata, int64_t seconds);
/* Tells the listener if the value differs from the one kept. */
void ch_metadata_update_grace_period(ChMetadata *metadata, int64_t seconds);
/* The first call counts: the agent's clock starts with it. */
void ch_metadata_mark_shutdown(ChMetadata *metadata, int64_t wall_us);
/* SIGTERM came: the agent shall shut the guest down. */
void ch_metadata_mark_graceful(ChMetadata *metadata);

/* (transfer full): Spec.Metadata of the Domain document */
ChJson *ch_metadata_to_json(ChMetadata *metadata);
