/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/link-names.h"

#include <string.h>

#define SECONDARY_PREFIX "pod"

void
ch_link_name_hashed(const char *network, char name[CH_LINK_NAME_SIZE])
{
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, network, -1);

    (void)g_snprintf(name, CH_LINK_NAME_SIZE, SECONDARY_PREFIX "%.11s", hash);
}

void
ch_link_names_derive(ChLinkNames *names, bool is_primary)
{
    const char *stem = names->pod_link;

    if (g_str_has_prefix(stem, SECONDARY_PREFIX))
        stem += strlen(SECONDARY_PREFIX);
    (void)g_snprintf(names->bridge, sizeof(names->bridge), "k6t-%.27s", stem);
    (void)g_snprintf(names->nic, sizeof(names->nic), "%.27s-nic", stem);
    if (is_primary)
        g_strlcpy(names->tap, "tap0", sizeof(names->tap));
    else
        (void)g_snprintf(names->tap,
                         sizeof(names->tap),
                         "tap%.28s",
                         names->pod_link + MIN(strlen(names->pod_link), 3));
}
