/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup-bpf: the device program of a v2 cgroup.
 *
 * Only in a child. Spec: 05 §8.5.
 */

#pragma once

#include "lib/linux/device-rules.h"

/**
 * ch_cgroup_bpf_set_devices: puts a program in the place of all that are attached to the cgroup.
 * @allowed: as ch_device_rules_evaluate() gives it
 * @out_step: on failure, what failed; static storage
 *
 * One of them is replaced in one step, further ones are detached after that: what the old and the
 * new ones allow is allowed at any time. Programs that may not be opened stay. Where the only one
 * is the same, nothing is done. Needs CAP_SYS_ADMIN (or CAP_BPF), CAP_NET_ADMIN.
 *
 * Returns: 0 or -errno
 */
int ch_cgroup_bpf_set_devices(int dir_fd, const ChDeviceRules *allowed, const char **out_step);
