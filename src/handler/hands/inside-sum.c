/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-sum.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/content.h"
#include "handler/hands/mount-spaces.h"
#include "handler/hands/reply.h"
#include "handler/hands/source.h"
#include "lib/base/crc32.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

/* @path_fd: O_PATH. Returns a descriptor to read from, or -errno. */
static int
reopen_to_read(int path_fd)
{
    char path[CH_FD_PATH_SIZE];
    int fd;

    ch_fd_path(path, path_fd);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a regular file */
    return fd < 0 ? -errno : fd;
}

/* Returns 0 or -errno. */
static int
sum_part(int fd, uint64_t offset, ChHandsReply *reply)
{
    static uint8_t buffer[256 * 1024];
    const uint64_t end = MIN(reply->size, offset + CH_HANDS_SUM_BYTES);

    while (offset < end) {
        const ssize_t n = pread(fd, buffer, MIN(sizeof(buffer), end - offset), (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ESTALE; /* shorter than it was */
        reply->crc = ch_crc32(reply->crc, buffer, (size_t)n);
        offset += (uint64_t)n;
    }
    reply->end = offset;
    return 0;
}

static bool
sum_content(const ChHandsRequest *request, int content_fd, ChHandsReply *reply)
{
    ch_autofd int fd = reopen_to_read(content_fd);
    struct stat st;
    int result = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

    if (result < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_IMAGE, result, "open the image");
    if (request->offset > 0 && (st.st_dev != request->dev || st.st_ino != request->ino ||
                                request->offset > (uint64_t)st.st_size))
        return ch_reply_fail_step(reply, CH_HANDS_STEP_IMAGE, ESTALE, "read the image");
    reply->target = (ChHandsTarget){.dev = st.st_dev, .ino = st.st_ino, .mode = st.st_mode};
    reply->size = (uint64_t)st.st_size;
    reply->crc = request->crc;
    result = sum_part(fd, request->offset, reply);
    return result == 0 || ch_reply_fail_step(reply, CH_HANDS_STEP_IMAGE, result, "read the image");
}

bool
ch_inside_sum_image(const ChHandsRequest *request, const char *path, ChHandsReply *reply)
{
    const ChSourceName name = {request->uid, request->mount, request->index};
    ChSource source = {-EBADF, -EBADF};
    ChMountSpaces spaces = CH_MOUNT_SPACES_INIT;
    ch_autofd int content_fd = -EBADF;
    bool is_done = false;

    if (ch_mount_spaces_open(&spaces, reply) &&
        ch_source_open(&name, spaces.node_fd, &source, reply)) {
        content_fd = ch_content_open(request, path, source.root_fd, reply);
        is_done = content_fd >= 0 && sum_content(request, content_fd, reply);
    }
    ch_source_clear(&source);
    ch_mount_spaces_clear(&spaces);
    return is_done;
}
