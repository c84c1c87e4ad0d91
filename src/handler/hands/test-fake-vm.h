/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-fake-vm: the processes of a VM's pod, in a pid namespace of their own: the monitor, its
 * children the launcher and QEMU, the launcher's child virtqemud. Needs root. For test programs
 * only.
 */

#pragma once

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/hands/process.h"

#ifndef FAKE_VM_SECONDS
#define FAKE_VM_SECONDS 120 /* that its processes live at most */
#endif

typedef struct {
    pid_t keeper; /* our child; the monitor's parent */
    pid_t monitor, launcher, qemu, virtqemud;
    int pidfd; /* of the launcher */
} FakeVm;

static inline void
fake_vm_tell_tsan(void)
{
    g_test_skip("ThreadSanitizer has a thread of its own, and threads are counted here");
}

/* Whether a program's tests cannot be; then there is one at @path that says why. */
static inline bool
fake_vm_is_under_tsan(const char *path)
{
#ifdef __SANITIZE_THREAD__
    g_test_add_func(path, fake_vm_tell_tsan);
    return true;
#else
    return false;
#endif
}

/* For the start of a test that needs it; true: return. */
static inline bool
fake_vm_skip(void)
{
    if (geteuid() == 0)
        return false;
    g_test_skip("needs root: a pid namespace");
    return true;
}

static inline void
fake_vm_sleep(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(FAKE_VM_SECONDS);
    for (;;)
        pause();
}

static void *
fake_vm_thread(void *data)
{
    (void)prctl(PR_SET_NAME, data);
    for (;;)
        pause();
    return NULL;
}

/* Two virtual CPUs and a worker. */
static inline void
fake_vm_qemu(void)
{
    static const char *const names[] = {"CPU 0/KVM", "CPU 1/KVM", "worker"};

    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        pthread_t thread;

        if (pthread_create(&thread, NULL, fake_vm_thread, (void *)names[i]) != 0)
            _exit(3);
    }
    fake_vm_sleep("qemu-system-x86"); /* as the kernel cuts qemu-system-x86_64 */
}

static inline void
fake_vm_launcher(bool has_virtqemud)
{
    if (has_virtqemud && fork() == 0)
        fake_vm_sleep("virtqemud");
    fake_vm_sleep("virt-launcher");
}

static inline void
fake_vm_monitor(bool has_qemu, bool has_virtqemud)
{
    if (fork() == 0)
        fake_vm_launcher(has_virtqemud);
    if (has_qemu && fork() == 0)
        fake_vm_qemu();
    fake_vm_sleep("monitor");
}

typedef struct {
    pid_t parent;
    const char *name;
} FakeVmName;

static inline bool
fake_vm_match(const ChProcess *process, bool is_kernel_thread, const void *data)
{
    const FakeVmName *wanted = data;

    return process->parent == wanted->parent && g_str_equal(process->name, wanted->name);
}

/* Waits until it is there. */
static inline pid_t
fake_vm_find(pid_t parent, const char *name)
{
    const gint64 deadline_us = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    const FakeVmName wanted = {parent, name};
    ChProcess found = {0};

    while (ch_process_find(fake_vm_match, &wanted, &found) != 0) {
        g_assert_cmpint(g_get_monotonic_time(), <, deadline_us);
        g_usleep(2000);
    }
    return found.pid;
}

static inline void
fake_vm_start(FakeVm *vm, bool has_qemu, bool has_virtqemud)
{
    *vm = (FakeVm){.pidfd = -EBADF};
    vm->keeper = fork();
    if (vm->keeper == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWPID) < 0)
            _exit(2);
        if (fork() == 0)
            fake_vm_monitor(has_qemu, has_virtqemud);
        fake_vm_sleep("keeper");
    }
    vm->monitor = fake_vm_find(vm->keeper, "monitor");
    vm->launcher = fake_vm_find(vm->monitor, "virt-launcher");
    if (has_qemu)
        vm->qemu = fake_vm_find(vm->monitor, "qemu-system-x86");
    if (has_virtqemud)
        vm->virtqemud = fake_vm_find(vm->launcher, "virtqemud");
    vm->pidfd = (int)syscall(SYS_pidfd_open, vm->launcher, 0);
    g_assert_cmpint(vm->pidfd, >=, 0);
}

/* The monitor is the namespace's init: all end with it. */
static inline void
fake_vm_clear(FakeVm *vm)
{
    if (vm->keeper <= 0)
        return;
    if (vm->monitor > 0)
        kill(vm->monitor, SIGKILL);
    kill(vm->keeper, SIGKILL);
    waitpid(vm->keeper, NULL, 0);
    if (vm->pidfd >= 0)
        close(vm->pidfd);
    vm->keeper = 0;
}

/* Does a step as the hands' children do, in a process of its own. Returns the reply's errno. */
static inline int
fake_vm_do(void (*step)(const FakeVm *vm, const void *data, ChHandsReply *reply),
           const FakeVm *vm,
           const void *data,
           ChHandsReply *out_reply)
{
    int pair[2];
    pid_t pid;

    g_assert_cmpint(pipe(pair), ==, 0);
    pid = fork();
    if (pid == 0) {
        ChHandsReply reply = {0};

        step(vm, data, &reply);
        _exit(write(pair[1], &reply, sizeof(reply)) != (ssize_t)sizeof(reply));
    }
    close(pair[1]);
    g_assert_cmpint(read(pair[0], out_reply, sizeof(*out_reply)), ==, sizeof(*out_reply));
    close(pair[0]);
    g_assert_cmpint(waitpid(pid, NULL, 0), ==, pid);
    return out_reply->errnum;
}
