/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup-threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/cgroup-path.h"
#include "lib/linux/line-reader.h"
#include "lib/linux/proc-stat.h"
#include "lib/linux/safe-path.h"

#define LIST_SIZE 4096 /* of CPUs as text */

/* v1: a new cpuset has neither CPUs nor memory, and takes no thread without. */
static int
copy_from_parent(int parent_fd, int child_fd, const char *file)
{
    static char text[LIST_SIZE];
    const long n = ch_cgroup_read(parent_fd, file, text, sizeof(text));

    return n < 0 ? (int)n : ch_cgroup_write(child_fd, file, text);
}

/* Returns 0 or -errno. */
static int
furnish(const ChCgroup *cgroup, int child_fd)
{
    int result;

    if (cgroup->is_unified) {
        result = ch_cgroup_write(child_fd, "cgroup.type", "threaded");
        return result < 0 ? result : ch_cgroup_write(child_fd, "cgroup.subtree_control", "+cpuset");
    }
    result = copy_from_parent(cgroup->dir_fd, child_fd, "cpuset.mems");
    return result < 0 ? result : copy_from_parent(cgroup->dir_fd, child_fd, "cpuset.cpus");
}

static int
open_child(const ChCgroup *cgroup)
{
    return ch_safe_open(
        cgroup->dir_fd, CH_CGROUP_HOUSEKEEPING, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
}

/* Whether an earlier attempt got as far as to make the directory, and no further. */
static bool
is_furnished(const ChCgroup *cgroup, int child_fd)
{
    char text[LIST_SIZE];

    if (cgroup->is_unified)
        return ch_cgroup_read(child_fd, "cgroup.type", text, sizeof(text)) > 0 &&
               g_str_has_prefix(text, "threaded");
    return ch_cgroup_read(child_fd, "cpuset.mems", text, sizeof(text)) > 0 && text[0] != '\n' &&
           ch_cgroup_read(child_fd, "cpuset.cpus", text, sizeof(text)) > 0 && text[0] != '\n';
}

/* Returns a descriptor or -errno. */
static int
make_child(const ChCgroup *cgroup)
{
    ch_autofd int fd = open_child(cgroup);
    int result = 0;

    if (fd == -ENOENT) {
        if (cgroup->is_unified)
            result = ch_cgroup_write(cgroup->dir_fd, "cgroup.subtree_control", "+cpuset");
        if (result == 0 && mkdirat(cgroup->dir_fd, CH_CGROUP_HOUSEKEEPING, 0755) < 0)
            result = -errno;
        fd = result < 0 ? result : open_child(cgroup);
    }
    if (fd >= 0 && !is_furnished(cgroup, fd))
        result = furnish(cgroup, fd);
    return result < 0 ? result : g_steal_fd(&fd);
}

/* "0,2,3"; false when it does not fit. */
static bool
print_cpus(const uint8_t *cpus, gsize n_bytes, char text[LIST_SIZE])
{
    gsize length = 0;

    text[0] = '\0';
    for (gsize cpu = 0; cpu < n_bytes * 8; cpu++) {
        int n;

        if (!(cpus[cpu / 8] & 1u << cpu % 8))
            continue;
        n = snprintf(text + length, LIST_SIZE - length, "%s%zu", length > 0 ? "," : "", cpu);
        if (n < 0 || (gsize)n >= LIST_SIZE - length)
            return false;
        length += (gsize)n;
    }
    return true;
}

/* Whether it runs a virtual CPU, or has ended. Returns 1, 0 or -errno. */
static int
stays(pid_t tid, const char *hypervisor)
{
    char path[64], text[1024];
    ChProcStat stat;
    long n;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
    n = ch_read_whole(AT_FDCWD, path, text, sizeof(text));
    if (ch_reply_is_unknown(n))
        return (int)n;
    if (n < 0 || !ch_proc_stat_parse(text, &stat))
        return 1;
    return strstr(stat.name, "CPU ") != NULL && strstr(stat.name, hypervisor) != NULL;
}

/* Returns 0 or -errno. */
static int
move_threads(const ChCgroup *cgroup, int child_fd, const char *hypervisor)
{
    static ChLineReader reader;
    const char *file = cgroup->is_unified ? "cgroup.threads" : "tasks";
    ch_autofd int fd = openat(cgroup->dir_fd, file, O_RDONLY | O_CLOEXEC);
    const char *line;
    int result;
    gsize n;

    if (fd < 0)
        return -errno;
    ch_line_reader_init(&reader, fd);
    while ((result = ch_line_reader_next(&reader, &line, &n)) == 1) {
        char number[16];
        pid_t tid = 0;

        for (gsize i = 0; i < n && line[i] >= '0' && line[i] <= '9' && n < sizeof(number) - 1; i++)
            tid = tid * 10 + (line[i] - '0');
        if (tid <= 0)
            return -EINVAL;
        (void)snprintf(number, sizeof(number), "%d", (int)tid);
        result = stays(tid, hypervisor);
        if (result < 0)
            return result;
        if (result > 0)
            continue;
        result = ch_cgroup_write(child_fd, file, number);
        if (result < 0 && result != -ESRCH) /* it ended meanwhile */
            return result;
    }
    return result;
}

bool
ch_cgroup_keep_house(const ChCgroup *cgroup,
                     const uint8_t *cpus,
                     gsize n_bytes,
                     const char *hypervisor,
                     ChHandsReply *reply)
{
    static char list[LIST_SIZE];
    ch_autofd int child_fd = -EBADF;
    int result;

    if (!print_cpus(cpus, n_bytes, list))
        return ch_reply_fail(reply, E2BIG, "CPUs for housekeeping");
    child_fd = make_child(cgroup);
    if (child_fd < 0)
        return ch_reply_fail(reply, child_fd, "make the cgroup '%s'", CH_CGROUP_HOUSEKEEPING);
    if (list[0] == '\0')
        return true;
    result = ch_cgroup_write(child_fd, "cpuset.cpus", list);
    if (result < 0)
        return ch_reply_fail(reply, result, "set cpuset.cpus of '%s'", CH_CGROUP_HOUSEKEEPING);
    result = move_threads(cgroup, child_fd, hypervisor);
    return result == 0 ||
           ch_reply_fail(reply, result, "move threads into '%s'", CH_CGROUP_HOUSEKEEPING);
}
