/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-stats: libvirt's statistics as the document of GetDomainStats. Pure. Thread: any.
 * Spec 03 §5.2.
 */

#pragma once

#include "lib/json/json.h"
#include "local/launcher/typed-params.h"
#include "local/launcher/xml.h"

typedef struct {
    const char *name;
    const char *uuid;
    ChParams params;
    const xmlNode *xml;    /* (nullable): <domain>, for the aliases of disks and interfaces */
    const ChJson *cpu_map; /* (nullable): [[bool]], which host CPUs each virtual CPU may use */
} ChStatsInput;

/* (transfer full) */
ChJson *ch_domain_stats_build(const ChStatsInput *input);
