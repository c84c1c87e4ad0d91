/* SPDX-License-Identifier: Apache-2.0 */

/*
 * shutdown-plan: signal, wait or kill; the arithmetic of the grace period.
 *
 * Pure. Whole seconds of the wall clock, as the launcher on the same host writes them.
 * Thread: any. Spec: 01 §20, trap 12.
 */

#pragma once

#include "handler/launcher/domain.h"
#include "handler/reconcile/vmi.h"

typedef enum {
    CH_SHUTDOWN_INVALID = 0,
    CH_SHUTDOWN_SIGNAL_FIRST, /* ShutdownVirtualMachine, and the event */
    CH_SHUTDOWN_SIGNAL_AGAIN, /* ShutdownVirtualMachine, no event */
    CH_SHUTDOWN_WAIT,         /* the guest is on its way: nothing is sent */
    CH_SHUTDOWN_KILL_EXPIRED, /* KillVirtualMachine */
    CH_SHUTDOWN_KILL,         /* KillVirtualMachine: no grace was asked for */
    CH_SHUTDOWN_N,
} ChShutdownStep;

typedef struct {
    ChShutdownStep step;
    int64_t requeue_us;  /* look again after this; 0: none */
    int64_t left_s;      /* of the grace period */
    bool may_be_refused; /* a paused guest takes no signal: that is no failure */
} ChShutdownPlan;

/**
 * ch_shutdown_plan:
 * @vmi: (nullable): gone from the cluster: the grace comes from the domain
 * @domain: a live domain
 * @graceful: false: destroy, whatever the grace says
 * @stopping_for_us: how long this agent has been stopping the domain; -1: it begins now. The grace
 *   period runs by it as long as the launcher has not noted when it began, so that it ends also
 *   for a guest that cannot be signalled (03 §15)
 */
ChShutdownPlan ch_shutdown_plan(const ChVmiView *vmi,
                                const ChDomain *domain,
                                bool graceful,
                                int64_t stopping_for_us,
                                int64_t now_us);
