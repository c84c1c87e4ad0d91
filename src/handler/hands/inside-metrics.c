/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/launcher.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define DISK_DIR    "var/run/kubevirt-private/downwardapi-disks"
#define DISK_NAME   "vhostmd0"
#define CHANNEL_DIR "var/run/kubevirt-private/downwardmetrics-channel"
#define SOCKET_NAME "downwardmetrics.sock"

static void
put_uint32(uint8_t *out, uint32_t value)
{
    value = GUINT32_TO_BE(value);
    memcpy(out, &value, sizeof(value));
}

void
ch_inside_metrics_header(uint8_t out_header[CH_METRICS_HEADER_SIZE],
                         const void *body,
                         gsize n_bytes,
                         bool is_changing)
{
    static const uint8_t signature[] = {'m', 'v', 'b', 'd'};
    const uint8_t *bytes = body;
    uint32_t sum = 0;

    for (gsize i = 0; i < n_bytes; i++)
        sum += bytes[i];
    memcpy(out_header, signature, sizeof(signature));
    put_uint32(out_header + 4, is_changing);
    put_uint32(out_header + 8, sum);
    put_uint32(out_header + 12, (uint32_t)n_bytes);
}

/* Returns 0 or -errno. */
static int
write_at(int fd, const void *bytes, gsize n_bytes, off_t offset)
{
    const uint8_t *next = bytes;

    while (n_bytes > 0) {
        const ssize_t n = pwrite(fd, next, n_bytes, offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        next += n;
        offset += n;
        n_bytes -= (gsize)n;
    }
    return 0;
}

static int
write_header(int fd, const void *body, gsize n_bytes, bool is_changing)
{
    uint8_t header[CH_METRICS_HEADER_SIZE];

    ch_inside_metrics_header(header, body, n_bytes, is_changing);
    return write_at(fd, header, sizeof(header), 0);
}

/* Looked at before it is opened: opening a device or a FIFO does something. Returns a descriptor to
 * write to, or -errno. */
static int
open_disk(int root_fd)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, DISK_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    ch_autofd int file_fd =
        dir_fd < 0 ? dir_fd : ch_safe_open(dir_fd, DISK_NAME, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    char path[CH_FD_PATH_SIZE];
    struct stat st;
    int fd;

    if (file_fd < 0)
        return file_fd;
    if (fstat(file_fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return -EINVAL;
    ch_fd_path(path, file_fd);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

bool
ch_inside_write_metrics(int root_fd, const void *body, gsize n_bytes, ChHandsReply *reply)
{
    ch_autofd int fd = -EBADF;
    int result;

    if (n_bytes > CH_METRICS_MAX_BODY)
        return ch_reply_fail(reply, EFBIG, "write '/" DISK_DIR "/" DISK_NAME "'");
    fd = open_disk(root_fd);
    if (fd < 0)
        return ch_reply_fail(reply, fd, "open '/" DISK_DIR "/" DISK_NAME "'");
    result = write_header(fd, body, n_bytes, true);
    if (result == 0 && fsync(fd) < 0)
        result = -errno;
    if (result == 0)
        result = write_at(fd, body, n_bytes, CH_METRICS_HEADER_SIZE);
    if (result == 0)
        result = write_header(fd, body, n_bytes, false);
    return result == 0 || ch_reply_fail(reply, result, "write '/" DISK_DIR "/" DISK_NAME "'");
}

bool
ch_inside_connect_metrics(int root_fd, int *out_fd, ChHandsReply *reply)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, CHANNEL_DIR, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    ChFileId socket;
    const int fd = dir_fd < 0 ? dir_fd : ch_launcher_connect_at(dir_fd, SOCKET_NAME, &socket);

    if (fd < 0)
        return ch_reply_fail(reply, fd, "connect to '/" CHANNEL_DIR "/" SOCKET_NAME "'");
    *out_fd = fd;
    return true;
}
