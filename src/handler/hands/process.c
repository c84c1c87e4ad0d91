/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"
#include "lib/linux/clock.h"
#include "lib/linux/line-reader.h"
#include "lib/linux/pidfd.h"

#define INSIDE_TIMEOUT_US INT64_C(3000000) /* less than a step has */

static bool has_left;

bool
ch_process_has_left(void)
{
    return has_left;
}

/* --- finding */

/* What the system call gives: readdir() would want heap. */
typedef struct {
    uint64_t ino;
    int64_t off;
    uint16_t size;
    uint8_t type;
    char name[];
} Entry;

/* 0: no number. */
static pid_t
number_of(const char *name)
{
    long number = 0;

    for (const char *at = name; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || number > 1 << 28)
            return 0;
        number = number * 10 + (*at - '0');
    }
    return (pid_t)number;
}

int
ch_process_list(pid_t pid, bool (*visit)(pid_t tid, void *data), void *data)
{
    char buffer[4096] __attribute__((aligned(8)));
    ch_autofd int fd = -EBADF;
    char path[64] = "/proc";

    if (pid > 0)
        (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (;;) {
        const long n = syscall(SYS_getdents64, fd, buffer, sizeof(buffer));

        if (n <= 0)
            return n < 0 ? -errno : 0;
        for (long at = 0; at < n;) {
            const Entry *entry = (const Entry *)(const void *)(buffer + at);
            const pid_t number = number_of(entry->name);

            at += entry->size;
            if (number > 0 && !visit(number, data))
                return 0;
        }
    }
}

static int
read_stat(pid_t pid, ChProcStat *out_stat)
{
    char path[64], text[1024];
    long n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    n = ch_read_whole(AT_FDCWD, path, text, sizeof(text));
    if (n < 0)
        return (int)n;
    return ch_proc_stat_parse(text, out_stat) ? 0 : -EINVAL;
}

typedef struct {
    ChProcessMatch match;
    const void *data;
    ChProcess *out;
    bool is_found;
    int trouble; /* -errno: an entry could not be looked at */
} Search;

static bool
look_at(pid_t pid, void *data)
{
    Search *search = data;
    ChProcStat stat;
    ChProcess process = {.pid = pid};
    const int result = read_stat(pid, &stat);

    if (ch_reply_is_unknown(result)) {
        search->trouble = result;
        return false;
    }
    if (result < 0) /* it vanished */
        return true;
    process.parent = stat.parent;
    (void)snprintf(process.name, sizeof(process.name), "%s", stat.name);
    if (!search->match(&process, stat.is_kernel_thread, search->data))
        return true;
    *search->out = process;
    search->is_found = true;
    return false;
}

int
ch_process_find(ChProcessMatch match, const void *data, ChProcess *out_process)
{
    Search search = {match, data, out_process, false, 0};
    const int result = ch_process_list(0, look_at, &search);

    if (result < 0 || search.trouble < 0)
        return result < 0 ? result : search.trouble;
    return search.is_found ? 0 : -ENOENT;
}

/* A child of somebody by its name; the kernel cuts names to 15 bytes. */
typedef struct {
    pid_t parent;
    const char *name;
    bool is_prefix;
} Child;

static bool
is_child(const ChProcess *process, bool is_kernel_thread, const void *data)
{
    const Child *child = data;

    return process->parent == child->parent &&
           (child->is_prefix ? strncmp(process->name, child->name, strlen(child->name)) == 0
                             : g_str_equal(process->name, child->name));
}

int
ch_process_find_qemu(pid_t launcher, ChProcess *out_process)
{
    static const char *const prefixes[] = {"qemu-system", "qemu-kvm"};
    ChProcStat stat;
    int result = read_stat(launcher, &stat);

    if (result == 0 && stat.parent == 0) /* nobody's child: the whole node would be its family */
        result = -ENOENT;
    for (gsize i = 0; i < G_N_ELEMENTS(prefixes); i++) {
        const Child child = {stat.parent, prefixes[i], true};

        if (result < 0)
            break;
        result = ch_process_find(is_child, &child, out_process);
        if (result != -ENOENT)
            return result;
        result = i + 1 < G_N_ELEMENTS(prefixes) ? 0 : -ENOENT;
    }
    return result;
}

/* --- acting inside the pod's pid namespace */

static int
read_inner_pid(pid_t pid, size_t level, size_t *out_n_levels)
{
    static char text[16 * 1024];
    char path[64];
    long n;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    n = ch_read_whole(AT_FDCWD, path, text, sizeof(text));
    return n < 0 ? (int)n : ch_proc_inner_pid(text, level, out_n_levels);
}

int
ch_process_inner_pid(pid_t launcher, pid_t pid)
{
    size_t n_levels = 0;
    const int outer = read_inner_pid(launcher, 0, &n_levels);
    const int inner = outer < 0 ? outer : read_inner_pid(pid, n_levels - 1, NULL);

    return inner > 0 || ch_reply_is_unknown(inner) ? inner : -ESRCH;
}

/* Returns as ch_process_run_inside(). */
static int
run_in_child(int pidfd, ChProcessJob job, const void *data)
{
    ch_autofd int ours = -EBADF;
    ch_autofd int theirs = -EBADF;
    int pair[2], answer = ECHILD, result;
    pid_t pid;

    result = -ch_channel_pair(pair);
    if (result != 0)
        return result;
    ours = pair[0];
    theirs = pair[1];
    has_left = true;
    if (setns(pidfd, CLONE_NEWPID) < 0)
        return errno;
    pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        answer = job(data);
        (void)ch_channel_send(theirs, &answer, sizeof(answer), -1);
        _exit(0);
    }
    ch_close_fd(&theirs); /* an end without an answer is seen */
    result = -ch_channel_wait(ours, ch_clock_us() + INSIDE_TIMEOUT_US);
    if (result == 0 &&
        ch_channel_receive(ours, &answer, sizeof(answer), NULL) != (ssize_t)sizeof(answer))
        result = ECHILD;
    return result != 0 ? result : answer;
}

int
ch_process_run_inside(pid_t launcher, int pidfd, ChProcessJob job, const void *data)
{
    size_t n_levels = 0;
    const int outer = read_inner_pid(launcher, 0, &n_levels);

    if (ch_reply_is_unknown(outer))
        return -outer;
    if (outer < 0 || !ch_pidfd_is_alive(pidfd))
        return ESRCH;
    return n_levels > 1 ? run_in_child(pidfd, job, data) : job(data);
}

typedef struct {
    pid_t pid; /* inside */
    uint64_t bytes;
} Memlock;

static int
set_memlock(const void *data)
{
    const Memlock *memlock = data;
    const struct rlimit limit = {memlock->bytes, memlock->bytes};

    return prlimit(memlock->pid, RLIMIT_MEMLOCK, &limit, NULL) < 0 ? errno : 0;
}

/* Returns 0 or a positive errno. */
static int
set_memlock_of(pid_t launcher, int pidfd, pid_t pid, uint64_t bytes)
{
    ch_autofd int target_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    Memlock memlock = {.bytes = bytes};
    int result;

    if (target_fd < 0)
        return errno;
    memlock.pid = ch_process_inner_pid(launcher, pid);
    if (memlock.pid < 0)
        return -memlock.pid;
    /* As long as it runs it is who was found, and has the number that was read. */
    if (!ch_pidfd_is_alive(target_fd))
        return ESRCH;
    result = ch_process_run_inside(launcher, pidfd, set_memlock, &memlock);
    return result == 0 && !ch_pidfd_is_alive(target_fd) ? ESRCH : result;
}

bool
ch_process_set_memlock(pid_t launcher, int pidfd, bool is_qemu, uint64_t bytes, ChHandsReply *reply)
{
    const Child virtqemud = {launcher, "virtqemud", false};
    ChProcess process;
    int result = is_qemu ? ch_process_find_qemu(launcher, &process)
                         : ch_process_find(is_child, &virtqemud, &process);

    if (!ch_pidfd_is_alive(pidfd))
        return ch_reply_fail(reply, ESRCH, "launcher process %d", (int)launcher);
    if (result == -ENOENT && !is_qemu)
        return true;
    if (result < 0)
        return ch_reply_fail(
            reply, result, "no QEMU process found under process %d child processes", (int)launcher);
    result = set_memlock_of(launcher, pidfd, process.pid, bytes);
    return result == 0 || ch_reply_fail(reply,
                                        result,
                                        "failed to set process %d memlock rlimit to %llu: error "
                                        "setting prlimit",
                                        (int)process.pid,
                                        (unsigned long long)bytes);
}
