/* SPDX-License-Identifier: Apache-2.0 */

/*
 * agent-poller: asks the guest agent again and again while it is connected.
 *
 * Each question has its own pace: at once, then after ten seconds at most, doubling up to its
 * period. Questions go to a worker of their own, for a guest may take its time over an answer; what
 * it says goes into the store. Thread: the loop's. Spec 03 §12.
 */

#pragma once

#include "lib/io/loop.h"
#include "local/launcher/guest-store.h"
#include "local/launcher/virt.h"
#include "local/launcher/worker.h"

typedef struct {
    int64_t version_us;
    int64_t filesystems_us;
    int64_t freeze_us;
    int64_t system_us;
    int64_t users_us;
} ChAgentPeriods;

typedef struct {
    ChLoop *loop;
    ChVirt *virt;
    ChGuestStore *store;
    const char *domain_name;
    ChAgentPeriods periods;
    void (*on_change)(gpointer data); /* the domain document changed; on the worker's thread */
    gpointer data;
} ChAgentPollerConfig; /* borrowed */

typedef struct ChAgentPoller ChAgentPoller;

ChAgentPoller *ch_agent_poller_new(const ChAgentPollerConfig *config);
/* The loop is not running any more. Blocks until the current question is over. */
void ch_agent_poller_free(ChAgentPoller *poller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChAgentPoller, ch_agent_poller_free)

/* Starts and stops with the agent and the guest; every other event changes nothing. */
void ch_agent_poller_note(ChAgentPoller *poller, ChVirtEvent event);
