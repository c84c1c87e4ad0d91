/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/process-sched.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "handler/hands/reply.h"
#include "lib/linux/line-reader.h"
#include "lib/linux/pidfd.h"

#define MAX_VCPUS    1024
#define VCPU_FIFO    1
#define PIT_FIFO     2
#define FIFO_TEXT    "failed to set FIFO scheduling and priority %d for thread %d"
#define NO_QEMU_TEXT "no QEMU process found under process %d child processes"

typedef struct {
    const uint8_t *cpus;
    gsize n_bytes;
    const char *hypervisor;
    pid_t launcher;
    gsize n_threads;
    bool is_full;
    int trouble;              /* -errno: a thread could not be looked at */
    pid_t threads[MAX_VCPUS]; /* as we see them */
    pid_t inner[MAX_VCPUS];   /* as the pod does */
} Vcpus;

/* Returns 0 with the virtual CPU that it runs (-1: none, or it ended), or -errno. */
static int
look_at_vcpu(pid_t tid, const char *hypervisor, int *out_cpu)
{
    char path[64], comm[64];
    long n;

    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
    n = ch_read_whole(AT_FDCWD, path, comm, sizeof(comm));
    if (ch_reply_is_unknown(n))
        return (int)n;
    *out_cpu = n < 0 ? -1 : ch_proc_vcpu_of(comm, hypervisor);
    return 0;
}

static bool
take_vcpu(pid_t tid, void *data)
{
    Vcpus *vcpus = data;
    int cpu = -1, inner;

    vcpus->trouble = look_at_vcpu(tid, vcpus->hypervisor, &cpu);
    if (vcpus->trouble < 0)
        return false;
    if (cpu < 0 || (gsize)cpu / 8 >= vcpus->n_bytes || !(vcpus->cpus[cpu / 8] & 1u << cpu % 8))
        return true;
    inner = ch_process_inner_pid(vcpus->launcher, tid);
    if (ch_reply_is_unknown(inner)) {
        vcpus->trouble = inner;
        return false;
    }
    if (inner < 0) /* it ended */
        return true;
    vcpus->is_full = vcpus->n_threads == MAX_VCPUS;
    if (vcpus->is_full)
        return false;
    vcpus->threads[vcpus->n_threads] = tid;
    vcpus->inner[vcpus->n_threads++] = inner;
    return true;
}

/* Returns 0, or an errno with the index of the thread above it. */
static int
set_fifo_of_all(const void *data)
{
    const struct sched_param parameters = {.sched_priority = VCPU_FIFO};
    const Vcpus *vcpus = data;

    for (gsize i = 0; i < vcpus->n_threads; i++)
        if (sched_setscheduler(vcpus->inner[i], SCHED_FIFO, &parameters) < 0)
            return errno | (int)(i << 16);
    return 0;
}

bool
ch_process_set_realtime(pid_t launcher,
                        int pidfd,
                        const uint8_t *cpus,
                        gsize n_bytes,
                        const char *hypervisor,
                        ChHandsReply *reply)
{
    static Vcpus vcpus;
    ChProcess qemu;
    int result = ch_process_find_qemu(launcher, &qemu);

    if (result < 0)
        return ch_reply_fail(reply, result, NO_QEMU_TEXT, (int)launcher);
    vcpus =
        (Vcpus){.cpus = cpus, .n_bytes = n_bytes, .hypervisor = hypervisor, .launcher = launcher};
    result = ch_process_list(qemu.pid, take_vcpu, &vcpus);
    if (result == 0)
        result = vcpus.trouble;
    if (result < 0 || vcpus.is_full)
        return ch_reply_fail(reply, result < 0 ? result : E2BIG, "list the virtual CPUs");
    result = ch_process_run_inside(launcher, pidfd, set_fifo_of_all, &vcpus);
    return result == 0 || ch_reply_fail(reply,
                                        result & 0xffff,
                                        FIFO_TEXT,
                                        VCPU_FIFO,
                                        (int)vcpus.threads[(result >> 16) % MAX_VCPUS]);
}

/* --- the kernel's timer thread */

static bool
is_pit(const ChProcess *process, bool is_kernel_thread, const void *data)
{
    return is_kernel_thread && g_str_equal(process->name, data);
}

typedef struct {
    pid_t tid;
    int trouble; /* as of Vcpus */
} First;

static bool
take_first_vcpu(pid_t tid, void *data)
{
    First *first = data;
    int cpu = -1;

    first->trouble = look_at_vcpu(tid, "KVM", &cpu);
    if (cpu == 0)
        first->tid = tid;
    return first->trouble == 0 && first->tid == 0;
}

/* Returns 0 or -errno. */
static int
follow(pid_t pit, pid_t qemu)
{
    static cpu_set_t cpus[8]; /* 8192 CPUs */
    First first = {0};
    int result = ch_process_list(qemu, take_first_vcpu, &first);

    if (result == 0)
        result = first.trouble;
    if (result < 0 || first.tid == 0)
        return result;
    if (sched_getaffinity(first.tid, sizeof(cpus), cpus) < 0 ||
        sched_setaffinity(pit, sizeof(cpus), cpus) < 0)
        return -errno;
    return 0;
}

bool
ch_process_set_pit(pid_t launcher, int pidfd, bool is_realtime, ChHandsReply *reply)
{
    const struct sched_param parameters = {.sched_priority = PIT_FIFO};
    ChProcess qemu, pit;
    char name[CH_PROC_NAME_SIZE];
    int result = ch_process_find_qemu(launcher, &qemu);
    int inner;

    if (result < 0 || !ch_pidfd_is_alive(pidfd))
        return ch_reply_fail(reply, result < 0 ? result : ESRCH, NO_QEMU_TEXT, (int)launcher);
    inner = ch_process_inner_pid(launcher, qemu.pid);
    if (inner < 0)
        return ch_reply_fail(reply, inner, NO_QEMU_TEXT, (int)launcher);
    if (inner == qemu.pid) /* no nested namespace: none is named after it (05 trap 10) */
        return true;
    (void)snprintf(name, sizeof(name), "kvm-pit/%d", inner);
    result = ch_process_find(is_pit, name, &pit);
    if (result == -ENOENT)
        return true;
    if (result < 0)
        return ch_reply_fail(reply, result, "find the thread '%s'", name);
    if (is_realtime && sched_setscheduler(pit.pid, SCHED_FIFO, &parameters) < 0)
        return ch_reply_fail(reply, errno, FIFO_TEXT, PIT_FIFO, (int)pit.pid);
    result = follow(pit.pid, qemu.pid);
    return result == 0 || ch_reply_fail(reply, result, "set the affinity of '%s'", name);
}
