/* SPDX-License-Identifier: Apache-2.0 */

/*
 * troubles: what is in the way of networks and volumes, each of it told once and not at every
 * attempt.
 *
 * A trouble is a JSON object: {"of": a network's or volume's name, "reason" of the event,
 * "message"}. Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

#define CH_TROUBLES_MAX 32 /* that are remembered */

/* (transfer full) */
ChJson *ch_trouble_new(const char *of, const char *reason, const char *message);

/* Whether there is one of @of. */
bool ch_troubles_have(const ChJson *troubles, const char *of);

/**
 * ch_troubles_news: each is told once, as long as what it is of has any.
 * @told: (inout): what was told; those of what is fine now are forgotten
 *
 * Returns: (transfer full): those of @troubles that are to be told now
 */
ChJson *ch_troubles_news(ChJson *told, const ChJson *troubles);
