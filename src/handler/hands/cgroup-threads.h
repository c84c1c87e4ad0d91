/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup-threads: keeps what a VM's virtual CPUs have for themselves from all else in the pod.
 *
 * Only in a child. Spec: 05 §8.6, §13.3.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/hands/cgroup.h"

/**
 * ch_cgroup_keep_house: makes the child cgroup "housekeeping" and moves threads into it.
 * @cgroup: of the controller "cpuset"
 * @cpus: bit N % 8 of byte N / 8: CPU N is for housekeeping; @n_bytes of them, at most 1024
 * @hypervisor: "KVM" or "MSHV": whose threads stay
 *
 * Without any CPU it is only made. Threads that end meanwhile are passed over. Idempotent. Needs
 * root, CAP_DAC_OVERRIDE.
 *
 * Returns: false with the reply filled in
 */
bool ch_cgroup_keep_house(const ChCgroup *cgroup,
                          const uint8_t *cpus,
                          gsize n_bytes,
                          const char *hypervisor,
                          ChHandsReply *reply);
