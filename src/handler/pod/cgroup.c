/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/cgroup.h"

#include "lib/base/errors.h"
#include "lib/base/log.h"

struct ChPodCgroup {
    ChPod *pod; /* borrowed */
    uint32_t flags;
    ChDeviceRules *remembered; /* owned (nullable): of earlier calls */
};

ChPodCgroup *
ch_pod_cgroup_new(ChPod *pod, const ChPodCgroupOptions *options, GError **error)
{
    const uint32_t flags =
        (options->has_rng ? CH_HANDS_RNG : 0) | (options->has_vsock ? CH_HANDS_VSOCK : 0);
    ChPodCgroup *cgroup;

    if (!ch_pod_has_devices(pod, flags, error))
        return NULL;
    cgroup = g_new0(ChPodCgroup, 1);
    cgroup->pod = pod;
    cgroup->flags = flags;
    return cgroup;
}

void
ch_pod_cgroup_free(ChPodCgroup *cgroup)
{
    if (cgroup != NULL)
        g_free(cgroup->remembered);
    g_free(cgroup);
}

/* (transfer full): the rules, then those of earlier calls that they do not replace; NULL: more than
 * there may be. */
static ChDeviceRules *
merge(const ChPodCgroup *cgroup, const ChDeviceRule *rules, gsize n_rules)
{
    g_autofree ChDeviceRules *list = g_new0(ChDeviceRules, 1);
    int result = 0;

    for (gsize i = 0; i < n_rules && result == 0; i++)
        result = ch_device_rules_add(list, &rules[i]);
    if (result == 0 && cgroup->remembered != NULL)
        result = ch_device_rules_merge(list, cgroup->remembered);
    return result == 0 ? g_steal_pointer(&list) : NULL;
}

bool
ch_pod_cgroup_set_devices(ChPodCgroup *cgroup,
                          const ChDeviceRule *rules,
                          gsize n_rules,
                          GError **error)
{
    g_autofree ChDeviceRules *list = merge(cgroup, rules, n_rules);
    ChHandsRequest request = {
        .op = CH_HANDS_OP_DEVICES_SET,
        .flags = cgroup->flags,
    };
    ChHandsReply reply;
    char reason[CH_ERRNO_TEXT_SIZE];

    if (n_rules == 0)
        return ch_fail(error, CH_ERROR_INVALID, "new rules cannot be nil");
    if (list == NULL)
        return ch_fail(error, CH_ERROR_INVALID, "more than %d device rules", CH_DEVICE_RULES_MAX);
    request.n_bytes = (uint32_t)(list->n_rules * sizeof(ChDeviceRule));
    if (!ch_pod_ask(cgroup->pod, &request, list->rules, &reply, error))
        return false;
    if (reply.size != 0)
        ch_log_warning(NULL,
                       NULL,
                       "setting the devices of pod %s failed with '%s', ignoring: none is denied",
                       ch_pod_peek_uid(cgroup->pod),
                       ch_errno_print((int)reply.size, reason));
    g_free(cgroup->remembered);
    cgroup->remembered = g_steal_pointer(&list);
    return true;
}
