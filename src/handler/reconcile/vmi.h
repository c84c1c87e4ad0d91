/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi: what decisions need of a VMI document, read once.
 *
 * The document stays the truth: the view borrows its strings and is valid as long as the document
 * lives unchanged. Reading cannot fail: what is missing or of another type is empty. Pure.
 * Thread: the document's owner. Spec: 01 §15.1, §17, §20; 02 §2.1.
 */

#pragma once

#include "lib/json/json.h"

#define CH_LABEL_NODE_NAME             "kubevirt.io/nodeName"
#define CH_LABEL_TARGET_NODE_NAME      "kubevirt.io/migrationTargetNodeName"
#define CH_ANNOTATION_MIGRATION_TARGET "kubevirt.io/create-migration-target"

typedef enum {
    CH_PHASE_UNSET = 0, /* "" */
    CH_PHASE_PENDING,
    CH_PHASE_SCHEDULING,
    CH_PHASE_SCHEDULED,
    CH_PHASE_RUNNING,
    CH_PHASE_SUCCEEDED,
    CH_PHASE_FAILED,
    CH_PHASE_WAITING_FOR_SYNC,
    CH_PHASE_UNKNOWN, /* "Unknown", and every text that is none of the above */
    CH_PHASE_N,
} ChPhase;

ChPhase ch_phase_from_text(const char *text /* (nullable) */);
const char *ch_phase_text(ChPhase phase); /* static storage */
bool ch_phase_is_final(ChPhase phase);    /* Succeeded or Failed */

/* status.migrationState */
typedef struct {
    bool exists;
    bool has_start, has_end;
    int64_t start_us, end_us; /* wall clock; valid with has_start, has_end */
    bool completed, failed;
    bool abort_requested;
    const char *mode, *source_node, *target_node, *target_node_address; /* "" when absent */
} ChMigrationView;

/* Strings are borrowed from the document, never NULL: "" when absent. */
typedef struct {
    const ChJson *document; /* borrowed */
    const char *namespace_, *name, *uid;
    ChPhase phase;
    const char *phase_text; /* as the document spells it */
    bool is_deleting;       /* metadata.deletionTimestamp is set */
    const char *node_label, *target_node_label, *status_node;
    bool is_migration_target; /* annotated "create-migration-target": "true" */
    bool is_migration_source; /* targetState has both a sync and a node address */
    bool is_decentralised;
    bool has_grace; /* spec.terminationGracePeriodSeconds is set: 0 and unset differ */
    int64_t grace_s;
    ChMigrationView migration;
} ChVmiView;

void ch_vmi_view_init(ChVmiView *view, const ChJson *document);

/* status.nodeName or the node label names @node (01 §15.1). */
bool ch_vmi_is_owned_by(const ChVmiView *vmi, const char *node);
/* Started not later than @now_us and not ended by then; the "migrating (time)" predicate. */
bool ch_vmi_is_migrating(const ChVmiView *vmi, int64_t now_us);
/* The base variant, used for the paused condition; mind the other one (01 trap 47). */
bool ch_vmi_is_source_of_running_migration(const ChVmiView *vmi, const char *node);
/* The migration-source role's own variant. */
bool ch_vmi_has_source_role(const ChVmiView *vmi, const char *node);
/* State absent, or ended and (completed or failed). */
bool ch_vmi_is_migration_done(const ChVmiView *vmi);
/* Whether metadata has the annotation, with any value. */
bool ch_vmi_has_annotation(const ChVmiView *vmi, const char *key);
/* Confidential guests that are attested start only when their owner has sent session and
 * certificate. 01 §22.2 row 9 */
bool ch_vmi_awaits_sev_session(const ChVmiView *vmi);
