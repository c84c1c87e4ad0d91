/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node-label.h"

#include "lib/base/time.h"

#define PATCH_US (5 * CH_SECOND_US) /* the agent's end waits for it */

void
ch_node_label_unschedulable(ChKubeClient *kube,
                            const char *node_name,
                            ChKubeDone done,
                            gpointer data)
{
    g_autofree char *path = g_strdup_printf("/api/v1/nodes/%s", node_name);
    const ChKubeRequest request = {
        .method = "PATCH",
        .path = path,
        .content_type = "application/strategic-merge-patch+json",
        .body = "{\"metadata\": { \"labels\": {\"kubevirt.io/schedulable\": \"false\"}}}",
        .timeout_us = PATCH_US};

    /* ends with the client at the latest */
    (void)ch_kube_client_start(kube, &request, done, data);
}
