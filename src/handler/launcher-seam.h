/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launcher-seam: what connecting to a launcher does to its pod and to this node's records.
 *
 * Fills ChLauncherSeam, so that launcher/ knows neither pod/ nor watch/. Thread: workers, as the
 * seam says.
 */

#pragma once

#include <stdatomic.h>

#include "handler/launcher/clients.h"
#include "handler/pod/ghost-records.h"
#include "handler/watch/domain-watch.h"

/* The seam's data; all borrowed. */
typedef struct {
    ChLoop *loop;
    ChHands *hands;
    ChGhostRecords *records;
    ChDomainWatch *domain_watch;
    const atomic_bool *is_ending; /* the agent stops */
} ChLauncherSeamData;

extern const ChLauncherSeam ch_launcher_seam;
