/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-devices: which devices a pod was given.
 *
 * Only in a child, as of inside.h. Spec: 05 §8.3.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"
#include "lib/linux/device-rules.h"

/* Whether the devices of @flags are there: CH_HANDS_RNG: /dev/urandom; CH_HANDS_VSOCK:
 * /dev/vhost-vsock. Returns: false with the reply filled in: ENOENT, ... */
bool ch_inside_has_devices(int root_fd, uint32_t flags, ChHandsReply *reply);

/**
 * ch_inside_list_devices: a rule for each device node below the pod's /dev.
 * @flags: as of ch_inside_has_devices(), which is asked first
 * @out_rules: allow rules, for everything
 *
 * Only nodes on a tmpfs count: the container runtime put them there for this pod, while a file
 * system that a volume brings may hold anything. Links are not followed. Other mounts below /dev
 * (its pts, its mqueue) are not looked into.
 *
 * Returns: false with the reply filled in: ENOENT (a device that must be there is not), ENOSPC (too
 * many), or "failed to discover device rules in D: ..."
 */
bool
ch_inside_list_devices(int root_fd, uint32_t flags, ChDeviceRules *out_rules, ChHandsReply *reply);
