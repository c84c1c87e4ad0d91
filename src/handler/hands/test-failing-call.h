/* SPDX-License-Identifier: Apache-2.0 */

/*
 * test-failing-call: counts the system calls of the hands by kind, and lets that one fail which a
 * test asks for.
 *
 * Theory of operation: memory that the hands share with their children and with the test has a row
 * for each kind of call. The row's call number `fail_at` (over all processes) fails with `error`
 * and is not made; with `always` each one does. What is replaced are the C library's functions, by
 * the program or library that includes this; all of them take up to six integers or pointers, so
 * one shape of wrapper fits all. As long as failing_rows is not set, calls are only passed on. For
 * tests only.
 */

#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "handler/hands/protocol.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Functions that tell of failure by -1 and errno. */
#define FAILING_CALLS(X)                                                                           \
    X(bind)                                                                                        \
    X(chmod)                                                                                       \
    X(close_range)                                                                                 \
    X(connect)                                                                                     \
    X(epoll_ctl)                                                                                   \
    X(fchmod)                                                                                      \
    X(fchmodat)                                                                                    \
    X(fchownat)                                                                                    \
    X(fgetxattr)                                                                                   \
    X(fork)                                                                                        \
    X(fstat64)                                                                                     \
    X(fstatat64)                                                                                   \
    X(fstatfs64)                                                                                   \
    X(fsetxattr)                                                                                   \
    X(fsync)                                                                                       \
    X(ftruncate64)                                                                                 \
    X(getdents64)                                                                                  \
    X(getsockopt)                                                                                  \
    X(getxattr)                                                                                    \
    X(inotify_add_watch)                                                                           \
    X(inotify_init1)                                                                               \
    X(ioctl)                                                                                       \
    X(linkat)                                                                                      \
    X(listen)                                                                                      \
    X(mkdirat)                                                                                     \
    X(mknodat)                                                                                     \
    X(mount)                                                                                       \
    X(mount_setattr)                                                                               \
    X(move_mount)                                                                                  \
    X(open64)                                                                                      \
    X(open_tree)                                                                                   \
    X(openat64)                                                                                    \
    X(pread64)                                                                                     \
    X(prlimit64)                                                                                   \
    X(pwrite64)                                                                                    \
    X(read)                                                                                        \
    X(readlinkat)                                                                                  \
    X(renameat)                                                                                    \
    X(renameat2)                                                                                   \
    X(sched_getaffinity)                                                                           \
    X(sched_setaffinity)                                                                           \
    X(sched_setscheduler)                                                                          \
    X(sendmsg)                                                                                     \
    X(setns)                                                                                       \
    X(setsockopt)                                                                                  \
    X(setxattr)                                                                                    \
    X(socket)                                                                                      \
    X(socketpair)                                                                                  \
    X(stat64)                                                                                      \
    X(statx)                                                                                       \
    X(syscall)                                                                                     \
    X(umount2)                                                                                     \
    X(unlinkat)                                                                                    \
    X(unshare)                                                                                     \
    X(write)

/* What the hands live by: it fails only for whoever asks for it before the #include. */
#ifdef FAILING_CALLS_OF_LIFE
#define FAILING_LIFE(X)                                                                            \
    X(epoll_wait)                                                                                  \
    X(execve)                                                                                      \
    X(poll)                                                                                        \
    X(recvmsg)                                                                                     \
    X(waitpid)
#else
#define FAILING_LIFE(X)
#endif

/* Kinds that are told apart by an argument. */
#define FAILING_KINDS(X)                                                                           \
    X(bpf)                                                                                         \
    X(faccessat2)                                                                                  \
    X(fchmodat2)                                                                                   \
    X(openat2)                                                                                     \
    X(peerpidfd)                                                                                   \
    X(pidfd_open)                                                                                  \
    X(pidfd_send_signal)                                                                           \
    X(reply)

#define FAILING_ENUMERATE(name) FAILING_##name,
enum {
    FAILING_CALLS(FAILING_ENUMERATE) FAILING_LIFE(FAILING_ENUMERATE)
        FAILING_KINDS(FAILING_ENUMERATE) FAILING_N
};

/* As a test reads and writes it. */
typedef struct {
    char name[32];
    _Atomic uint64_t n_calls;
    _Atomic uint64_t fail_at; /* 0: none */
    _Atomic uint32_t error;
    _Atomic uint32_t always;
    _Atomic uint64_t n_failed;
} FailingRow;
G_STATIC_ASSERT(sizeof(FailingRow) == 64);

typedef long (*FailingCall)(long a, long b, long c, long d, long e, long f);

static FailingCall failing_real[FAILING_N];
static FailingRow *failing_rows; /* FAILING_N; NULL: nothing is counted */

/* What is sent is an answer to the brain. */
static inline bool
failing_is_reply(const struct msghdr *message)
{
    const ChHandsReply *reply = message->msg_iov[0].iov_base;

    return message->msg_iov[0].iov_len == sizeof(*reply) && reply->version == CH_HANDS_VERSION;
}

static inline int
failing_kind_of_number(long number)
{
    switch (number) {
    case SYS_bpf:
        return FAILING_bpf;
    case SYS_faccessat2:
        return FAILING_faccessat2;
    case 452:
        return FAILING_fchmodat2;
    case SYS_getdents64:
        return FAILING_getdents64;
    case SYS_openat2:
        return FAILING_openat2;
    case SYS_open_tree:
        return FAILING_open_tree;
    case SYS_move_mount:
        return FAILING_move_mount;
    case 442:
        return FAILING_mount_setattr;
    case SYS_pidfd_open:
        return FAILING_pidfd_open;
    case SYS_pidfd_send_signal:
        return FAILING_pidfd_send_signal;
    default:
        return FAILING_syscall;
    }
}

static inline int
failing_kind_of(int call, long a, long b, long c)
{
    if (call == FAILING_getsockopt && b == SOL_SOCKET && c == SO_PEERPIDFD)
        return FAILING_peerpidfd;
    if (call == FAILING_sendmsg && failing_is_reply((const struct msghdr *)b))
        return FAILING_reply;
    return call == FAILING_syscall ? failing_kind_of_number(a) : call;
}

static long failing_make(int call, long a, long b, long c, long d, long e, long f);

#define FAILING_WRAP(name)                                                                         \
    long failing_call_##name(long a, long b, long c, long d, long e, long f) __asm__(#name);       \
    long failing_call_##name(long a, long b, long c, long d, long e, long f)                       \
    {                                                                                              \
        return failing_make(FAILING_##name, a, b, c, d, e, f);                                     \
    }
FAILING_CALLS(FAILING_WRAP)
FAILING_LIFE(FAILING_WRAP)

#define FAILING_NAME(name) #name,
static const char *const failing_names[] = {FAILING_CALLS(FAILING_NAME) FAILING_LIFE(FAILING_NAME)
                                                FAILING_KINDS(FAILING_NAME)};

/* First, as other libraries' constructors make calls; and before the hands' filter. */
static void
failing_find_real(void)
{
    for (int i = 0; i < FAILING_bpf; i++)
        if (failing_real[i] == NULL)
            *(void **)&failing_real[i] = dlsym(RTLD_NEXT, failing_names[i]);
}

static long
failing_make(int call, long a, long b, long c, long d, long e, long f)
{
    FailingRow *row = failing_rows != NULL ? &failing_rows[failing_kind_of(call, a, b, c)] : NULL;

    if (row != NULL &&
        (atomic_fetch_add(&row->n_calls, 1) + 1 == row->fail_at || row->always != 0)) {
        atomic_fetch_add(&row->n_failed, 1);
        errno = (int)row->error;
        return -1;
    }
    if (failing_real[call] == NULL)
        failing_find_real();
    return failing_real[call](a, b, c, d, e, f);
}
