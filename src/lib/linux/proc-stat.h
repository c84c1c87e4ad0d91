/* SPDX-License-Identifier: Apache-2.0 */

/*
 * proc-stat: what /proc tells of a process or a thread. Its name is its own choice: anything may be
 * in it.
 *
 * Pure; allocates nothing: also for the hands. Thread: any. Spec: 05 §5.2, §13.3.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CH_PROC_NAME_SIZE 64

typedef struct {
    char name[CH_PROC_NAME_SIZE]; /* up to its first ')' */
    pid_t parent;
    bool is_kernel_thread;
} ChProcStat;

/* @text: of /proc/PID/stat, terminated. Returns whether it is one. */
bool ch_proc_stat_parse(const char *text, ChProcStat *out_stat);

/**
 * ch_proc_inner_pid: the number that a process has at a level of nested pid namespaces.
 * @status: of /proc/PID/status, terminated
 * @level: 0: as the reader sees it
 * @out_n_levels: (optional): how many there are
 *
 * Returns: the number, or -1: there is no such level
 */
pid_t ch_proc_inner_pid(const char *status, size_t level, size_t *out_n_levels);

/* The virtual CPU that the thread with this comm (with its newline) runs: "CPU 3/KVM\n". -1: none.
 * @hypervisor: "KVM" or "MSHV" */
int ch_proc_vcpu_of(const char *comm, const char *hypervisor);
