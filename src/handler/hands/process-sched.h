/* SPDX-License-Identifier: Apache-2.0 */

/*
 * process-sched: how the threads of a VM are scheduled.
 *
 * Only in a child, as of process.h. Needs CAP_SYS_NICE. Spec: 05 §13.3.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/hands/process.h"

/**
 * ch_process_set_realtime: SCHED_FIFO, priority 1, for virtual CPUs of QEMU.
 * @cpus: bit N % 8 of byte N / 8: virtual CPU N; @n_bytes of them
 * @hypervisor: "KVM" or "MSHV"
 */
bool ch_process_set_realtime(pid_t launcher,
                             int pidfd,
                             const uint8_t *cpus,
                             gsize n_bytes,
                             const char *hypervisor,
                             ChHandsReply *reply);

/**
 * ch_process_set_pit: puts the kernel's thread for QEMU's timer where its first virtual CPU is.
 * @is_realtime: also SCHED_FIFO, priority 2
 *
 * That thread is nobody's child and in no pod: it is known by its name, and that the kernel made
 * it. Without one, or without a virtual CPU, there is nothing to do.
 */
bool ch_process_set_pit(pid_t launcher, int pidfd, bool is_realtime, ChHandsReply *reply);
