/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/limits.h"

#include "handler/pod/vcpu-mask.h"

bool
ch_pod_adjust_resources(ChPod *pod,
                        const ChJson *vmi,
                        const ChMemoryLockOptions *options,
                        GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_MEMLOCK_SET,
        .flags = ch_memory_lock_is_qemus(vmi) ? CH_HANDS_QEMU : 0,
        .n_bytes = sizeof(uint64_t),
    };
    uint64_t bytes;

    if (!ch_memory_lock_is_needed(vmi, options))
        return true;
    bytes = (uint64_t)ch_memory_lock_size(vmi, options);
    return ch_pod_ask(pod, &request, &bytes, NULL, error);
}

static bool
isolate(ChPod *pod, const ChHousekeepingOptions *options, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_HOUSE_KEEP,
        .flags = options->is_mshv ? CH_HANDS_MSHV : 0,
        .n_bytes = sizeof(ChCpuSet),
    };
    g_autofree ChCpuSet *cpus = g_new0(ChCpuSet, 1);

    if (options->emulator_cpus != NULL && options->emulator_cpus[0] != '\0' &&
        !ch_cpu_list_parse(options->emulator_cpus, cpus, error))
        return false;
    return ch_pod_ask(pod, &request, cpus, NULL, error);
}

static bool
set_realtime(ChPod *pod, const ChJson *vmi, bool is_mshv, GError **error)
{
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_REALTIME_SET,
        .flags = is_mshv ? CH_HANDS_MSHV : 0,
        .n_bytes = sizeof(ChCpuSet),
    };
    g_autofree ChCpuSet *cpus = g_new0(ChCpuSet, 1);

    return ch_vcpu_mask_parse(
               ch_json_string_at(vmi, "spec", "domain", "cpu", "realtime", "mask"), cpus, error) &&
           ch_pod_ask(pod, &request, cpus, NULL, error);
}

bool
ch_pod_keep_house(ChPod *pod,
                  const ChJson *vmi,
                  const ChHousekeepingOptions *options,
                  GError **error)
{
    const ChJson *cpu = ch_json_at(vmi, "spec", "domain", "cpu");
    const bool is_dedicated = ch_json_bool_at(cpu, false, "dedicatedCpuPlacement");
    const bool is_realtime = ch_json_at(cpu, "realtime") != NULL;
    const ChHandsRequest request = {
        .op = CH_HANDS_OP_PIT_SET,
        .flags = is_realtime ? CH_HANDS_REALTIME : 0,
    };

    if (is_dedicated && ch_json_bool_at(cpu, false, "isolateEmulatorThread") &&
        !isolate(pod, options, error))
        return false;
    if (!options->is_starting)
        return true;
    if (is_realtime && !set_realtime(pod, vmi, options->is_mshv, error))
        return false;
    return !is_dedicated || options->is_mshv || ch_pod_ask(pod, &request, NULL, NULL, error);
}
