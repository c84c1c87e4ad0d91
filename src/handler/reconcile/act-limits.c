/* SPDX-License-Identifier: Apache-2.0 */

/*
 * act-limits: what a VM's processes may use, lock, and where they run, in the course of a sync.
 * Spec 05 §8.2, §13.
 */

#include "handler/pod/limits.h"
#include "handler/reconcile/pass.h"

static bool
is_mshv(const ChPass *pass)
{
    return g_str_equal(ch_cluster_config_hypervisor(pass->config), "hyperv-direct");
}

ChPodCgroup *
ch_act_open_cgroup(const ChPass *pass, ChPod *pod, GError **error)
{
    const ChJson *devices = ch_json_at(pass->document, "spec", "domain", "devices");
    const ChPodCgroupOptions options = {
        .has_rng = ch_json_at(devices, "rng") != NULL,
        .has_vsock = ch_json_bool_at(devices, false, "autoattachVSOCK"),
    };

    return ch_pod_cgroup_new(pod, &options, error);
}

bool
ch_act_adjust_resources(const ChPass *pass, ChPod *pod, GError **error)
{
    const ChMemoryLockOptions options = {
        .ratio = pass->config->guest_memory_overhead_ratio,
        .is_arm64 = g_strcmp0(pass->env->architecture, "arm64") == 0,
        .is_mshv = is_mshv(pass),
    };

    return ch_pod_adjust_resources(pod, pass->document, &options, error);
}

bool
ch_act_keep_house(const ChPass *pass, ChPod *pod, GError **error)
{
    const ChDomain *domain = ch_domain_live(pass->domain);
    const ChHousekeepingOptions options = {
        .is_mshv = is_mshv(pass),
        .is_starting = pass->vmi.phase != CH_PHASE_RUNNING && !ch_phase_is_final(pass->vmi.phase),
        .emulator_cpus = domain != NULL ? domain->emulator_cpuset : NULL,
    };

    return ch_pod_keep_house(pod, pass->document, &options, error);
}
