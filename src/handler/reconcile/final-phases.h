/* SPDX-License-Identifier: Apache-2.0 */

/*
 * final-phases: final phases that are computed and not stored yet. 01 trap 7, §28.
 *
 * A VM that ended is cleaned up before its phase is written, and its domain is gone by then: what
 * the phase was must survive a write that fails and an end of the agent in between. On disk each is
 * an empty file `<private-dir>/final-phases/<uid>.<phase>`, made in one step. Thread: any.
 */

#pragma once

#include "handler/reconcile/vmi.h"

typedef struct ChFinalPhases ChFinalPhases;

/* Reads what an earlier agent left. (transfer full) */
ChFinalPhases *ch_final_phases_load(const char *private_dir);
void ch_final_phases_free(ChFinalPhases *phases); /* the files stay; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChFinalPhases, ch_final_phases_free)

/* Keeps a final phase, instead of the one before; what cannot be written is kept in memory only,
 * which is said in the log. Blocks: makes a file. */
void ch_final_phases_keep(ChFinalPhases *phases, const char *uid, ChPhase phase);
/* CH_PHASE_UNSET: none is kept */
ChPhase ch_final_phases_find(ChFinalPhases *phases, const char *uid);
/* (transfer full) (nullable): it is forgotten; the path is for ch_final_phases_remove_file() by
 * somebody who may block. It need not exist. */
char *ch_final_phases_forget(ChFinalPhases *phases, const char *uid);
void ch_final_phases_remove_file(const char *path);
/* (transfer full): the UIDs (owned) of all that are kept */
GPtrArray *ch_final_phases_list(ChFinalPhases *phases);
