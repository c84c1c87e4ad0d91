/* SPDX-License-Identifier: Apache-2.0 */

/*
 * device-bpf: the program by which a v2 cgroup lets its processes use devices.
 *
 * Pure; allocates nothing: also for the hands. Spec: 05 §8.5.
 */

#pragma once

#include <linux/bpf.h>
#include <stddef.h>

#include "lib/linux/device-rules.h"

/* Of the longest program: a beginning, a few instructions a rule, an end. */
#define CH_DEVICE_BPF_MAX (6 + 8 * CH_DEVICE_RULES_MAX + 2)

/**
 * ch_device_bpf_build: the program that lets through what a rule allows, and nothing else.
 * @allowed: as ch_device_rules_evaluate() gives it
 * @out_program: room for CH_DEVICE_BPF_MAX
 *
 * Returns: the number of instructions
 */
size_t ch_device_bpf_build(const ChDeviceRules *allowed, struct bpf_insn *out_program);
