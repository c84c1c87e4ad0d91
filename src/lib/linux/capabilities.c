/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/capabilities.h"

#include <cap-ng.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>

int
ch_capabilities_limit(const unsigned kept[], size_t n_kept)
{
    bool has[CAP_LAST_CAP + 1] = {false};
    bool may_shrink_bounds;

    if (capng_get_caps_process() < 0)
        return -EPERM;
    for (size_t i = 0; i < n_kept; i++)
        has[kept[i]] = capng_have_capability(CAPNG_EFFECTIVE, kept[i]) > 0;
    may_shrink_bounds = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP) > 0;

    capng_clear(CAPNG_SELECT_BOTH);
    for (size_t i = 0; i < n_kept; i++)
        if (has[kept[i]])
            (void)capng_update(
                CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, kept[i]);
    return capng_apply(may_shrink_bounds ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS) < 0 ? -EPERM : 0;
}

/* Who lacks CAP_SETPCAP cannot gain from the bounding set either: no exec gives new privileges. */
int
ch_capabilities_keep(const unsigned kept[], size_t n_kept)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return ch_capabilities_limit(kept, n_kept);
}
