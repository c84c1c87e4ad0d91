/* SPDX-License-Identifier: Apache-2.0 */

/*
 * start-failure: why a VM does not start, out of its documents. Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

/* Why the VM does not start now, as its status tells; NULL: it tells nothing. Borrowed. */
const char *ch_start_failure_now(const ChJson *vmi);

/* Whether the launcher refused what the VMI asks for, which no further attempt changes. */
bool ch_start_failure_is_final(const char *failure);

/**
 * ch_start_failure_reason: the one sentence for a person whose VM will not start.
 * @events: (nullable): an event list; those of other VMs are left out
 *
 * A launcher that refuses a VM ends, and the agent then warns that it does not answer: the
 * launcher's own answer counts most, then what the status says now, then the first warning. That
 * the VM stopped is known.
 *
 * Returns: (nullable): NULL: nobody said anything. Borrowed from @vmi or @events.
 */
const char *ch_start_failure_reason(const ChJson *vmi, const ChJson *events);
