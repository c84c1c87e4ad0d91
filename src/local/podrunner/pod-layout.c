/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/pod-layout.h"

const ChPodVolume ch_pod_volumes[] = {
    {"private", "/var/run/kubevirt-private"},
    {"public", "/var/run/kubevirt"},
    {"sockets", "/var/run/kubevirt/sockets"},
    {CH_POD_DISKS_VOLUME, CH_POD_CONTAINER_DISKS, true},
    {CH_POD_HOTPLUG_VOLUME, "/var/run/kubevirt/hotplug-disks", true},
    {"ephemeral-disks", "/var/run/kubevirt-ephemeral-disks"},
    {"libvirt-runtime", "/var/run/libvirt"},
};
const gsize ch_pod_n_volumes = G_N_ELEMENTS(ch_pod_volumes);

char *
ch_pod_dir(const char *state_dir, const char *pod_uid)
{
    return g_build_filename(state_dir, "pods", pod_uid, NULL);
}

char *
ch_pod_volume_dir(const char *state_dir, const char *pod_uid, const char *volume)
{
    return g_build_filename(
        state_dir, "pods", pod_uid, "volumes", "kubernetes.io~empty-dir", volume, NULL);
}

char *
ch_pod_run_dir(const char *state_dir, const char *pod_uid)
{
    return g_build_filename(state_dir, "run", pod_uid, NULL);
}
