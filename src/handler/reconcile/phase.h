/* SPDX-License-Identifier: Apache-2.0 */

/*
 * phase: the phases of a VMI, and which one follows from what is seen.
 *
 * Pure. Thread: any. Spec: 01 §19, 02 §4.
 */

#pragma once

#include "handler/launcher/domain.h"
#include "handler/reconcile/vmi.h"

/* What the launcher client manager says about a launcher (01 §14.4). */
typedef enum {
    CH_LAUNCHER_UNKNOWN = 0, /* not asked yet in this pass */
    CH_LAUNCHER_NOT_INITIALIZED,
    CH_LAUNCHER_UNRESPONSIVE,
    CH_LAUNCHER_RESPONSIVE,
    CH_LAUNCHER_N,
} ChLauncherState;

typedef enum {
    CH_PHASE_VERDICT_KEEP = 1,       /* the phase stays */
    CH_PHASE_VERDICT_CHANGE,         /* `phase` is the next one */
    CH_PHASE_VERDICT_KEEP_AND_WAIT,  /* stays; ask again in a second (launcher not initialized) */
    CH_PHASE_VERDICT_NEEDS_LAUNCHER, /* cannot say without the launcher's state */
} ChPhaseVerdictKind;

typedef struct {
    ChPhaseVerdictKind kind;
    ChPhase phase; /* the phase to store: the old one unless CHANGE */
} ChPhaseVerdict;

/**
 * ch_phase_decide:
 * @domain: (nullable): a deleted one counts as none
 * @launcher: needed for a Scheduled VMI without domain only
 * @remembered: final phase that an earlier pass computed and could not store (01 trap 7), else
 *   CH_PHASE_UNSET; it stands in for the domain that is gone by now
 *
 * Returns: the verdict, for every input
 */
ChPhaseVerdict ch_phase_decide(const ChVmiView *vmi,
                               const ChDomain *domain,
                               ChLauncherState launcher,
                               ChPhase remembered);
