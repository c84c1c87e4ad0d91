/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup-devices: lets a pod's processes use devices, or no more.
 *
 * Only in a child. Spec: 05 §8.4, §8.5.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/cgroup.h"
#include "lib/linux/device-rules.h"

/**
 * ch_cgroup_set_devices: puts a list of rules into force.
 * @cgroup: of the controller "devices"
 * @requested: what is asked for; they win
 * @base: what the pod's VM needs besides. v1 keeps what it has in the kernel, and needs none
 *
 * v1: the requested rules, the default ones and what is there already; only what differs is
 * written, what is to be allowed first. A cgroup that allows everything is left so.
 * v2: one program of the requested rules, the base and the default ones, in the place of those that
 * are there, at once: what both allow is allowed at any time. The very same program is left.
 * Idempotent. Needs CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_DAC_OVERRIDE.
 *
 * Returns: false with the reply filled in: EINVAL (a rule that cannot be had), EPERM (the agent's
 * own cgroup). A program that could not be put into force is no failure if the rules only allow:
 * its errno is the reply's `size` then
 */
bool ch_cgroup_set_devices(const ChCgroup *cgroup,
                           const ChDeviceRules *requested,
                           const ChDeviceRules *base,
                           ChHandsReply *reply);
