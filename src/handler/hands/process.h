/* SPDX-License-Identifier: Apache-2.0 */

/*
 * process: the processes of a pod beside its launcher, and their limits and threads.
 *
 * Only in a child. Numbers are looked up as this program's /proc shows them, held by pidfd, and
 * acted on inside the pod's pid namespace, by the numbers that they have there: a number that was
 * given to another process meanwhile can then only be one of the pod's. Each returns false with
 * the reply filled in when it fails. Needs CAP_SYS_PTRACE. Spec: 05 §1.1, §13.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/hands/protocol.h"
#include "lib/linux/proc-stat.h"

typedef struct {
    pid_t pid;
    pid_t parent;
    char name[CH_PROC_NAME_SIZE];
} ChProcess;

/* What is asked of each entry of /proc. Returns whether it is the one. */
typedef bool (*ChProcessMatch)(const ChProcess *process, bool is_kernel_thread, const void *data);

/* The first that matches, by number. Returns 0, -ENOENT, or another -errno. Those that vanish
 * meanwhile are passed over. */
int ch_process_find(ChProcessMatch match, const void *data, ChProcess *out_process);

/* Calls @visit for the number of each thread of @pid, or each entry of /proc (@pid 0), until it
 * returns false. Returns 0 or -errno. */
int ch_process_list(pid_t pid, bool (*visit)(pid_t tid, void *data), void *data);

/* QEMU of the launcher @pid: it is a child of the launcher's parent. Returns 0, -ENOENT or another
 * -errno. */
int ch_process_find_qemu(pid_t launcher, ChProcess *out_process);

/**
 * ch_process_set_memlock: sets both limits of locked memory.
 * @launcher, @pidfd: the launcher
 * @is_qemu: of QEMU, which must be there; else of virtqemud, whose absence is no failure
 * @bytes: the size
 *
 * Needs CAP_SYS_RESOURCE.
 */
bool ch_process_set_memlock(
    pid_t launcher, int pidfd, bool is_qemu, uint64_t bytes, ChHandsReply *reply);

/* What is done inside: returns 0 or a positive errno. */
typedef int (*ChProcessJob)(const void *data);

/**
 * ch_process_run_inside: does @job in a process of the launcher's pid namespace, where only the
 * pod's processes have numbers; here, where that is our own namespace.
 * @pidfd: the launcher
 *
 * Returns: what @job does, or a positive errno
 */
int ch_process_run_inside(pid_t launcher, int pidfd, ChProcessJob job, const void *data);

/* The number that a process or thread has in the launcher's pid namespace, or -errno. */
int ch_process_inner_pid(pid_t launcher, pid_t pid);

/* Whether this process has begun to work in another pid namespace, and must not do another step. */
bool ch_process_has_left(void);
