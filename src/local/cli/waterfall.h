/* SPDX-License-Identifier: Apache-2.0 */

/*
 * waterfall: the start of a VM as text, one line a stage.
 *
 * Milliseconds count from the moment when the agent first saw the VMI; what the pod runner did
 * before has negative ones. A stage's bar begins where the one before it ended. Pure. Thread: any.
 */

#pragma once

#include <glib.h>

#define CH_WATERFALL_COLUMNS 40 /* of the bars */

/**
 * ch_waterfall_render:
 * @lines: (element-type ChStageLine): in the order of time
 *
 * Returns: (transfer full): lines; "" when there is no stage
 */
char *ch_waterfall_render(const GArray *lines);
