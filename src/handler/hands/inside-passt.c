/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-passt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "handler/hands/inside-net.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"
#include "lib/linux/clock.h"
#include "lib/linux/safe-path.h"

#define PASST_DIR     "var/run/libvirt/qemu/run/passt"
#define SOURCE_SUFFIX ".socket.repair"
#define TARGET_SUFFIX ".repair"
#define NAME_SIZE     256
#define MAX_ENTRIES   4096 /* of the directory: its owner may fill it */
#define MAX_TRIES     64   /* sockets that refuse */
#define LOOK_AGAIN_MS 20
#define MAX_SOCKETS   253 /* that the kernel takes in one message */

/* --- passt's socket */

typedef struct {
    char name[NAME_SIZE]; /* "": none */
} Found;

static bool
has_suffix(const char *name, const char *suffix)
{
    const size_t length = strlen(name), n = strlen(suffix);

    return length > n && g_str_equal(name + length - n, suffix);
}

/* As the kernel fills it in. */
typedef struct {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
} Entry;

/* The first name, in byte order, behind @after. Returns 0 or a positive errno. */
static int
find_next(int root_fd, const char *suffix, const char *after, Found *out_found)
{
    static char bytes[8192] __attribute__((aligned(8)));
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, PASST_DIR, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    int n_entries = 0;

    *out_found = (Found){""};
    if (dir_fd < 0)
        return -dir_fd;
    for (;;) {
        const long n = syscall(SYS_getdents64, dir_fd, bytes, sizeof(bytes));

        if (n <= 0)
            return n < 0 ? errno : 0;
        for (long at = 0; at < n;) {
            const Entry *entry = (const Entry *)(const void *)(bytes + at);

            at += entry->length;
            if (++n_entries > MAX_ENTRIES)
                return 0;
            if (has_suffix(entry->name, suffix) && strlen(entry->name) < NAME_SIZE &&
                strcmp(entry->name, after) > 0 &&
                (out_found->name[0] == '\0' || strcmp(entry->name, out_found->name) < 0))
                (void)snprintf(out_found->name, NAME_SIZE, "%s", entry->name);
        }
    }
}

/* Returns a connection or -errno. */
static int
connect_to(int root_fd, const char *name)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, PASST_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    ch_autofd int node_fd =
        dir_fd < 0 ? dir_fd
                   : ch_safe_open(dir_fd, name, O_PATH | O_NOFOLLOW, 0, CH_RESOLVE_NO_LINKS);
    ch_autofd int fd = -EBADF;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[CH_FD_PATH_SIZE];

    if (node_fd < 0)
        return node_fd;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    ch_fd_path(path, node_fd);
    memcpy(address.sun_path, path, sizeof(path));
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return g_steal_fd(&fd);
}

/* To the first of passt's sockets that takes it: what an earlier passt left refuses. Returns a
 * connection or -errno. */
static int
connect_once(int root_fd, const char *suffix)
{
    Found found = {""};
    int last = -ENOENT;

    for (int i = 0; i < MAX_TRIES; i++) {
        const Found after = found;
        const int result = find_next(root_fd, suffix, after.name, &found);
        int fd;

        if (result != 0 || found.name[0] == '\0')
            return result != 0 ? -result : last;
        fd = connect_to(root_fd, found.name);
        if (fd >= 0)
            return fd;
        last = fd;
    }
    return last;
}

static bool
is_worth_waiting(int result)
{
    return result == -ENOENT || result == -ECONNREFUSED || result == -EAGAIN;
}

static int
connect_passt(int root_fd, bool is_target, int64_t deadline_us)
{
    for (;;) {
        const int fd = connect_once(root_fd, is_target ? TARGET_SUFFIX : SOURCE_SUFFIX);

        if (fd >= 0 || !is_target || !is_worth_waiting(fd))
            return fd;
        if (ch_clock_us() >= deadline_us)
            return -ETIMEDOUT;
        (void)poll(NULL, 0, LOOK_AGAIN_MS);
    }
}

/* --- what passt asks for */

typedef struct {
    int8_t mode; /* of TCP_REPAIR */
    int fds[MAX_SOCKETS];
    unsigned n_fds;
} Command;

static void
command_clear(Command *command)
{
    for (unsigned i = 0; i < command->n_fds; i++)
        close(command->fds[i]);
    command->n_fds = 0;
}

static void
take_descriptors(Command *command, struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        unsigned n;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        n = MIN(n, MAX_SOCKETS - command->n_fds);
        memcpy(command->fds + command->n_fds, CMSG_DATA(c), n * sizeof(int));
        command->n_fds += n;
    }
}

/* Returns 1, 0 at the end, or -errno. The descriptors are the caller's in any case. */
static int
receive(int fd, int64_t deadline_us, Command *out_command)
{
    static char control[CMSG_SPACE(MAX_SOCKETS * sizeof(int))] __attribute__((aligned(8)));
    struct iovec body = {&out_command->mode, sizeof(out_command->mode)};
    struct msghdr message = {.msg_iov = &body,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    ssize_t n;
    int result;

    out_command->n_fds = 0;
    do {
        result = ch_channel_wait(fd, deadline_us);
        if (result < 0)
            return result;
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n < 0 && (errno == EAGAIN || errno == EINTR));
    if (n < 0)
        return errno == ECONNRESET ? 0 : -errno;
    take_descriptors(out_command, &message);
    if (n == 0)
        return 0;
    return out_command->n_fds == 0 || (message.msg_flags & MSG_CTRUNC) ? -EPROTO : 1;
}

/* Returns 0 or -errno. */
static int
set_mode(int fd, int mode)
{
    ch_autofd int network_fd = ioctl(fd, SIOCGSKNS);
    int result;

    if (network_fd < 0)
        return -errno;
    result = ch_inside_check_away(network_fd);
    if (result < 0)
        return result;
    return setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &mode, sizeof(mode)) < 0 ? -errno : 0;
}

/* Returns 0 or -errno. One byte always fits, for passt waits for it. */
static int
confirm(int fd, int8_t mode)
{
    struct iovec body = {&mode, sizeof(mode)};
    const struct msghdr message = {.msg_iov = &body, .msg_iovlen = 1};

    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

static bool
obey(int fd, Command *command, ChHandsReply *reply)
{
    int result = 0;

    if (command->mode != TCP_REPAIR_ON && command->mode != TCP_REPAIR_OFF &&
        command->mode != TCP_REPAIR_OFF_NO_WP)
        return ch_reply_fail(reply, EPROTO, "passt asks for repair mode %d", command->mode);
    for (unsigned i = 0; result == 0 && i < command->n_fds; i++)
        result = set_mode(command->fds[i], command->mode);
    if (result < 0)
        return ch_reply_fail(reply, -result, "set TCP_REPAIR to %d on a socket", command->mode);
    result = confirm(fd, command->mode);
    return result == 0 || ch_reply_fail(reply, -result, "answer passt");
}

bool
ch_inside_repair_passt(int root_fd, bool is_target, int64_t deadline_us, ChHandsReply *reply)
{
    static Command command;
    ch_autofd int fd = connect_passt(root_fd, is_target, deadline_us);
    bool ok = true;
    int result = 1;

    if (fd == -ENOENT)
        return ch_reply_fail(reply, ENOENT, "passt-repair socket not found in /" PASST_DIR);
    if (fd < 0)
        return ch_reply_fail(reply, -fd, "connect to passt in /" PASST_DIR);
    while (ok && result > 0) {
        result = receive(fd, deadline_us, &command);
        ok = result <= 0 || obey(fd, &command, reply);
        command_clear(&command);
    }
    return ok && (result == 0 || ch_reply_fail(reply, -result, "wait for passt"));
}
