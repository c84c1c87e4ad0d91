/* SPDX-License-Identifier: Apache-2.0 */

/*
 * step: what is done in a child, by operation, and what it works on there.
 *
 * The hands checked the request before they sent it on.
 */

#pragma once

#include "handler/hands/child.h"

/* What a step works on. */
typedef enum {
    CH_STEP_ON_NOTHING = 0, /* no step */
    CH_STEP_ON_ROOT,        /* the pod's */
    CH_STEP_ON_PROCESS,     /* the launcher's pidfd */
    CH_STEP_ON_NET,         /* the netlink socket in the pod */
    CH_STEP_ON_MOUNTS,      /* the node's mounts: no descriptor */
    CH_STEP_ON_FILES,       /* kubelet's directories, or the node's: no descriptor */
    CH_STEP_ON_SOURCE,      /* who serves an image: no descriptor */
} ChStepOn;

/* @op: of the table of operations */
ChStepOn ch_step_on(uint32_t op);

/* A ChStepFunc. */
bool
ch_step_do(const ChStep *step, const void *bytes, int given_fd, int *out_fd, ChHandsReply *reply);
