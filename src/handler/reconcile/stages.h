/* SPDX-License-Identifier: Apache-2.0 */

/*
 * stages: how far the start of each VM got, one log line for each finished stage. DESIGN.md §7.
 *
 * A line has `stage` and `elapsedMs` (since the agent first saw the VMI) besides the object's keys;
 * `chandler timeline` draws them. A stage is told once per VMI; a VMI that was Running when it was
 * first seen (the agent was restarted) has none. Thread: the owner serializes the calls.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CH_STAGE_SEEN,      /* the VMI came over the watch */
    CH_STAGE_CONNECTED, /* launcher connected, notify pipe in the pod */
    CH_STAGE_NETWORK,   /* the pod's network is set up */
    CH_STAGE_SYNCED,    /* the launcher answered SyncVirtualMachine */
    CH_STAGE_DEFINED,   /* the launcher reported a domain */
    CH_STAGE_STARTED,   /* the domain runs */
    CH_STAGE_RUNNING,   /* the VMI's phase Running is stored */
    CH_STAGE_AGENT,     /* AgentConnected is stored */
    CH_STAGE_N,
} ChStage;

const char *ch_stage_text(ChStage stage); /* "seen", ...; static */

typedef struct ChStages ChStages;

ChStages *ch_stages_new(void);
void ch_stages_free(ChStages *stages);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChStages, ch_stages_free)

/**
 * ch_stages_finish: notes that VMI @uid finished @stage at @now_us (monotonic).
 * @out_elapsed_us: (out): since CH_STAGE_SEEN; written when the result is true
 *
 * Returns: whether this is news: the VMI was seen, and the stage not told before
 */
bool ch_stages_finish(
    ChStages *stages, const char *uid, ChStage stage, int64_t now_us, int64_t *out_elapsed_us);
void ch_stages_forget(ChStages *stages, const char *uid);
