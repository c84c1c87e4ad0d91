/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/cgroup-path.h"
#include "lib/linux/line-reader.h"
#include "lib/linux/pidfd.h"
#include "lib/linux/safe-path.h"

#define TEXT "cannot initialize new cgroup manager. err: "

/* What is looked for. */
typedef struct {
    pid_t pid;
    const char *controller; /* NULL: the v2 hierarchy */
    char path[CH_CGROUP_PATH_SIZE];
    bool is_ours;
} Wanted;

void
ch_cgroup_close(ChCgroup *cgroup)
{
    ch_close_fd(&cgroup->dir_fd);
    ch_close_fd(&cgroup->scope_fd);
}

long
ch_cgroup_read(int dir_fd, const char *name, char *buffer, gsize size)
{
    return ch_read_whole(dir_fd, name, buffer, size);
}

int
ch_cgroup_write(int dir_fd, const char *name, const char *text)
{
    ch_autofd int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    const size_t length = strlen(text);
    ssize_t n;

    if (fd < 0)
        return -errno;
    n = write(fd, text, length);
    if (n < 0)
        return -errno;
    return (size_t)n == length ? 0 : -EIO;
}

/* --- where a process is */

/* Returns 0 with the path of @pid ("self": NULL) in the hierarchy, or -errno. */
static int
read_path(const char *whose, const char *controller, char out_path[CH_CGROUP_PATH_SIZE])
{
    static char text[64 * 1024];
    char file[CH_FD_PATH_SIZE];
    long length;

    (void)snprintf(file, sizeof(file), "/proc/%s/cgroup", whose);
    length = ch_read_whole(AT_FDCWD, file, text, sizeof(text));
    return length < 0 ? (int)length : ch_cgroup_find(text, (size_t)length, controller, out_path);
}

/* Both paths are of one moment and one namespace, so that they can be compared. */
static int
look_up(const char *controller, Wanted *wanted)
{
    static char own_path[CH_CGROUP_PATH_SIZE];
    char number[16];
    int result;

    (void)snprintf(number, sizeof(number), "%d", (int)wanted->pid);
    wanted->controller = controller;
    result = read_path(number, controller, wanted->path);
    if (result == 0)
        result = read_path("self", controller, own_path);
    if (result != 0)
        return result;
    /* The agent's own limits are not a pod's: a pod without a cgroup of its own has the agent's. */
    wanted->is_ours = ch_cgroup_below(wanted->path, own_path) != NULL;
    return 0;
}

/* --- its directory */

/* One reader for all: none is used while another one is. */
static ChLineReader reader;

/* What a lookup that fails says: -ENOENT, or that it says nothing. */
static int
absence_of(int result)
{
    return ch_reply_is_unknown(result) ? result : -ENOENT;
}

/* Whether the thread whose number is the process's is in it: what is mounted where the table of
 * mounts says it is may be hidden, or the path be another namespace's. Returns 0, -ENOENT (it is
 * not) or another -errno. */
static int
find_process(int dir_fd, bool is_unified, pid_t pid)
{
    ch_autofd int fd =
        openat(dir_fd, is_unified ? "cgroup.threads" : "tasks", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    char number[16];
    const int length = snprintf(number, sizeof(number), "%d", (int)pid);
    const char *line;
    int result;
    size_t n;

    if (fd < 0)
        return absence_of(-errno);
    ch_line_reader_init(&reader, fd);
    while ((result = ch_line_reader_next(&reader, &line, &n)) == 1)
        if (n == (size_t)length && memcmp(line, number, n) == 0)
            return 0;
    return absence_of(result);
}

static int
open_below(int mount_fd, const char *path)
{
    return ch_safe_open(
        mount_fd, path[0] != '\0' ? path : ".", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
}

/* The container that the process's cgroup is, or is a part of. Returns 0 or -errno. */
static int
open_container(int mount_fd, const char *below, ChCgroup *out_cgroup)
{
    static char container[CH_CGROUP_PATH_SIZE];
    const bool is_unified = out_cgroup->is_unified;
    char *slash;

    container[0] = '/';
    (void)snprintf(container + 1, sizeof(container) - 1, "%s", below);
    ch_cgroup_strip_housekeeping(container);
    out_cgroup->dir_fd = open_below(mount_fd, container + 1);
    if (out_cgroup->dir_fd < 0)
        return out_cgroup->dir_fd;
    slash = strrchr(container, '/');
    if (!is_unified || !ch_cgroup_is_in_scope(container) || slash == container)
        return 0;
    *slash = '\0';
    out_cgroup->scope_fd = open_below(mount_fd, container + 1);
    return out_cgroup->scope_fd < 0 ? out_cgroup->scope_fd : 0;
}

/* One mount that may show it. Returns 0, -ENOENT (it does not) or another -errno. */
static int
try_mount(const char *prefix, const ChCgroupMount *mount, const Wanted *wanted, ChCgroup *out)
{
    static char point[CH_CGROUP_PATH_SIZE + CH_FD_PATH_SIZE];
    const char *below = ch_cgroup_below(mount->root, wanted->path);
    ch_autofd int mount_fd = -EBADF;
    ch_autofd int dir_fd = -EBADF;
    int result;

    if (below == NULL)
        return -ENOENT;
    (void)snprintf(point, sizeof(point), "%s%s", prefix, mount->point);
    mount_fd = open(point, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mount_fd < 0)
        return absence_of(-errno);
    dir_fd = open_below(mount_fd, below);
    if (dir_fd < 0)
        return absence_of(dir_fd);
    out->is_unified = wanted->controller == NULL;
    result = find_process(dir_fd, out->is_unified, wanted->pid);
    if (result < 0)
        return result;
    return open_container(mount_fd, below, out);
}

/* @whose: as /proc names it. @prefix: what leads to its mounts. Returns as try_mount(). */
static int
look_through(const char *whose, const char *prefix, const Wanted *wanted, ChCgroup *out)
{
    static ChCgroupMount mounts[8]; /* of one hierarchy: mostly one, the hosts of tests have two */
    size_t n_mounts = 0;
    char file[CH_FD_PATH_SIZE];
    ch_autofd int fd = -EBADF;
    int result = -ENOENT;
    int is_line = 0;
    const char *line;
    size_t n;

    (void)snprintf(file, sizeof(file), "/proc/%s/mountinfo", whose);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ch_line_reader_init(&reader, fd);
    while (n_mounts < G_N_ELEMENTS(mounts) &&
           (is_line = ch_line_reader_next(&reader, &line, &n)) == 1)
        n_mounts += ch_cgroup_mount_parse(line, n, wanted->controller, &mounts[n_mounts]);
    if (is_line < 0)
        return is_line;
    for (size_t i = 0; i < n_mounts && result == -ENOENT; i++)
        result = try_mount(prefix, &mounts[i], wanted, out);
    return result;
}

static int
join_node(void)
{
    ch_autofd int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);

    if (pidfd < 0 || setns(pidfd, CLONE_NEWCGROUP) < 0)
        return -errno;
    return 0;
}

/* Returns 0 or -errno. */
static int
find(const char *controller, Wanted *wanted, ChCgroup *out)
{
    int result = look_up(controller, wanted);

    if (result == -ENOENT) { /* no such v1 hierarchy */
        controller = NULL;
        result = look_up(controller, wanted);
    }
    if (result == 0)
        result = look_through("self", "", wanted, out);
    /* Init is asked only where we do not see it ourselves. */
    if (result == -ENOENT)
        result = look_through("1", "/proc/1/root", wanted, out);
    if (result != -ENOENT)
        return result;
    result = join_node();
    if (result < 0)
        return absence_of(result);
    result = look_up(controller, wanted);
    return result == 0 ? look_through("1", "/proc/1/root", wanted, out) : result;
}

bool
ch_cgroup_open(
    pid_t pid, int pidfd, const char *controller, ChCgroup *out_cgroup, ChHandsReply *reply)
{
    static Wanted wanted;
    ch_autocgroup ChCgroup cgroup = CH_CGROUP_INIT;
    int result;

    wanted.pid = pid;
    result = ch_pidfd_is_alive(pidfd) ? find(controller, &wanted, &cgroup) : -ESRCH;
    if (result == 0 && !ch_pidfd_is_alive(pidfd)) /* the number was another one's meanwhile */
        result = -ESRCH;
    if (result != 0)
        return ch_reply_fail(reply, result, TEXT "cgroup of process %d", (int)pid);
    cgroup.is_ours = wanted.is_ours;
    *out_cgroup = cgroup;
    cgroup = CH_CGROUP_INIT;
    return true;
}
