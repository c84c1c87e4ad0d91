/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define QEMU_ID 107 /* user and group `qemu` of the images */

static const char *private_dir = "/var/run/kubevirt-private";

void
ch_cache_set_dir(const char *new_private_dir)
{
    private_dir = new_private_dir;
}

bool
ch_cache_own(const char *uid, const char *network, ChHandsReply *reply)
{
    ch_autofd int dir_fd = open(private_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ch_autofd int fd = -EBADF;
    char path[sizeof(CH_HANDS_CACHE_DIR) + CH_HANDS_UID_SIZE + CH_HANDS_NAME_SIZE + 16];
    struct stat st;
    int result;

    if (dir_fd < 0)
        return ch_reply_fail(reply, errno, "open '%s'", private_dir);
    (void)snprintf(path, sizeof(path), CH_HANDS_CACHE_DIR "/%s/.%s.new", uid, network);
    fd = ch_safe_open(dir_fd, path, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    if (fd < 0)
        return ch_reply_fail(reply, fd, "open '%s'", path);
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat '%s'", path);
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return ch_reply_fail(reply, EINVAL, "'%s' is no file of ours", path);
    result = ch_safe_chown(fd, QEMU_ID, QEMU_ID);
    return result == 0 || ch_reply_fail(reply, result, "change the owner of '%s'", path);
}
