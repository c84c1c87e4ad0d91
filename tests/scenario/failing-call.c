/* SPDX-License-Identifier: Apache-2.0 */

/*
 * failing-call: preloaded into the hands, counts their system calls by kind and lets that one fail
 * which the test asks for.
 *
 * Theory of operation: the file $CH_FAILING_CALLS is mapped into the hands and, by inheritance,
 * into their children; the test reads and writes it while they run. It has a row for each kind of
 * call. The row's call number `fail_at` (over all processes) fails with `error` and is not made;
 * with `always` each one does. What is replaced are the C library's functions; all of them take up
 * to six integers or pointers, so one shape of wrapper fits all. Other programs are left alone.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/base/fd.h"

#define PROGRAM "virt-handler-hands"
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Functions that tell of failure by -1 and errno. */
#define CALLS(X)                                                                                   \
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

/* Kinds that are told apart by an argument. */
#define KINDS(X)                                                                                   \
    X(bpf)                                                                                         \
    X(faccessat2)                                                                                  \
    X(fchmodat2)                                                                                   \
    X(openat2)                                                                                     \
    X(peerpidfd)                                                                                   \
    X(pidfd_open)                                                                                  \
    X(pidfd_send_signal)                                                                           \
    X(reply)

#define ENUMERATE(name) CALL_##name,
enum { CALLS(ENUMERATE) KINDS(ENUMERATE) N_CALLS };

/* As the test reads and writes it. */
typedef struct {
    char name[32];
    _Atomic uint64_t n_calls;
    _Atomic uint64_t fail_at; /* 0: none */
    _Atomic uint32_t error;
    _Atomic uint32_t always;
    _Atomic uint64_t n_failed;
} Row;
G_STATIC_ASSERT(sizeof(Row) == 64);

typedef long (*Call)(long a, long b, long c, long d, long e, long f);

static Call real[N_CALLS];
static Row *rows; /* NULL: nothing is counted */

static int
kind_of(int call, long a, long b, long c)
{
    int domain = 0;

    if (call == CALL_getsockopt && b == SOL_SOCKET && c == SO_PEERPIDFD)
        return CALL_peerpidfd;
    if (call == CALL_sendmsg &&
        real[CALL_getsockopt](
            a, SOL_SOCKET, SO_DOMAIN, (long)&domain, (long)&(socklen_t){sizeof(domain)}, 0) == 0 &&
        domain == AF_UNIX)
        return CALL_reply;
    if (call != CALL_syscall)
        return call;
    switch (a) {
    case SYS_bpf:
        return CALL_bpf;
    case SYS_faccessat2:
        return CALL_faccessat2;
    case 452:
        return CALL_fchmodat2;
    case SYS_openat2:
        return CALL_openat2;
    case SYS_open_tree:
        return CALL_open_tree;
    case SYS_move_mount:
        return CALL_move_mount;
    case 442:
        return CALL_mount_setattr;
    case SYS_pidfd_open:
        return CALL_pidfd_open;
    case SYS_pidfd_send_signal:
        return CALL_pidfd_send_signal;
    default:
        return call;
    }
}

static long make(int call, long a, long b, long c, long d, long e, long f);

#define WRAP(name)                                                                                 \
    long call_##name(long a, long b, long c, long d, long e, long f) __asm__(#name);               \
    long call_##name(long a, long b, long c, long d, long e, long f)                               \
    {                                                                                              \
        return make(CALL_##name, a, b, c, d, e, f);                                                \
    }
CALLS(WRAP)

#define NAME(name) #name,
static const char *const names[] = {CALLS(NAME) KINDS(NAME)};

/* First, as other libraries' constructors make calls; and before the hands' filter. */
static void
find_real(void)
{
    for (int i = 0; i < CALL_bpf; i++)
        if (real[i] == NULL)
            *(void **)&real[i] = dlsym(RTLD_NEXT, names[i]);
}

static long
make(int call, long a, long b, long c, long d, long e, long f)
{
    Row *row = rows != NULL ? &rows[kind_of(call, a, b, c)] : NULL;

    if (row != NULL &&
        (atomic_fetch_add(&row->n_calls, 1) + 1 == row->fail_at || row->always != 0)) {
        atomic_fetch_add(&row->n_failed, 1);
        errno = (int)row->error;
        return -1;
    }
    if (real[call] == NULL)
        find_real();
    return real[call](a, b, c, d, e, f);
}

__attribute__((constructor)) static void
begin(void)
{
    const char *path = getenv("CH_FAILING_CALLS");
    ch_autofd int fd = -EBADF;
    Row *map;

    find_real();
    if (path == NULL || !g_str_equal(program_invocation_short_name, PROGRAM))
        return;
    fd = open(path, O_RDWR | O_CLOEXEC);
    map = mmap(NULL, N_CALLS * sizeof(Row), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || map == MAP_FAILED)
        abort();
    for (int i = 0; i < N_CALLS; i++)
        (void)g_strlcpy(map[i].name, names[i], sizeof(map[i].name));
    rows = map;
}
