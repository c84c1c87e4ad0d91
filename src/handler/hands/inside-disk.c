/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "handler/hands/inside-own.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define DISKS_DIR "var/run/kubevirt-private/vmi-disks"
#define TEXT      "preparing host-disks failed: "
#define NEW_NAME  ".chandler-new-image"

int64_t
ch_inside_disk_size(int64_t capacity, int64_t available, int tolerated_percent)
{
    const __int128 tolerated = (__int128)capacity * (100 - tolerated_percent) / 100;

    if (capacity <= 0 || available <= 0)
        return 0;
    if (capacity <= available)
        return capacity;
    return tolerated > available ? 0 : available;
}

static int64_t
available_in(const struct statfs *fs, uint64_t reserve)
{
    const __int128 bytes = (__int128)fs->f_bavail * fs->f_bsize - reserve;

    return (int64_t)CLAMP(bytes, G_MININT64, G_MAXINT64);
}

/* Never over a name that is taken, which another node may do at the same time; NFS has no rename of
 * that kind. Returns 0 or -errno */
static int
move_to(int dir_fd, const char *name)
{
    if (renameat2(dir_fd, NEW_NAME, dir_fd, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
        return -errno;
    return linkat(dir_fd, NEW_NAME, dir_fd, name, 0) < 0 ? -errno : 0;
}

/* The last byte makes it sparse, and shows that the file system can have it. */
static bool
fill_image(int fd, const char *what, int64_t size, ChHandsReply *reply)
{
    if (pwrite(fd, "", 1, size - 1) != 1)
        return ch_reply_fail(reply, errno, TEXT "write %s", what);
    return ch_inside_own(fd, what, S_IROTH | S_IWOTH, reply);
}

static bool
make_sized(int dir_fd, const char *dir, const char *name, int64_t size, ChHandsReply *reply)
{
    ch_autofd int fd = -EBADF;
    char what[512];
    int result = ch_safe_remove(dir_fd, NEW_NAME); /* of one that was interrupted */
    bool ok;

    if (result == 0)
        result = fd = ch_safe_open(
            dir_fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666, CH_RESOLVE_NO_LINKS);
    if (result < 0)
        return ch_reply_fail(reply, result, TEXT "Failed touch /%s,%s ", dir, name);
    (void)snprintf(what, sizeof(what), "/%s/%s", dir, name);
    ok = fill_image(fd, what, size, reply);
    result = ok ? move_to(dir_fd, name) : 0;
    (void)unlinkat(dir_fd, NEW_NAME, 0); /* not there any more if it was renamed */
    if (result == -EEXIST)
        return true; /* somebody else's came first */
    if (result < 0)
        return ch_reply_fail(reply, result, TEXT "Failed touch /%s,%s ", dir, name);
    reply->size = ok ? (uint64_t)size : 0;
    return ok;
}

static bool
make_image(int dir_fd, const char *dir, const ChHandsDisk *disk, ChHandsReply *reply)
{
    struct statfs fs;
    int64_t available;
    int64_t size;

    if (disk->capacity == 0)
        return ch_reply_fail(reply, EINVAL, TEXT "the capacity of %s is no size", disk->file);
    if (fstatfs(dir_fd, &fs) < 0)
        return ch_reply_fail(reply, errno, TEXT "look at the space in /%s", dir);
    available = available_in(&fs, disk->reserve);
    size = ch_inside_disk_size((int64_t)disk->capacity, available, (int)disk->tolerated_percent);
    if (size == 0) {
        reply->size = (uint64_t)available;
        return ch_reply_fail(reply, EFBIG, TEXT "/%s", dir);
    }
    return make_sized(dir_fd, dir, disk->file, size, reply);
}

static bool
own_dir(int dir_fd, const char *dir, const char *volume, ChHandsReply *reply)
{
    char what[CH_HANDS_NAME_SIZE + 64];

    (void)snprintf(what, sizeof(what), "HostDisk dir %s, /%s", volume, dir);
    return ch_inside_own(dir_fd, what, S_IXOTH, reply);
}

bool
ch_inside_prepare_disk(
    int root_fd, const char *volume, const ChHandsDisk *disk, bool is_non_root, ChHandsReply *reply)
{
    char dir[sizeof(DISKS_DIR) + CH_HANDS_NAME_SIZE + 1];
    ch_autofd int dir_fd = -EBADF;
    ch_autofd int fd = -EBADF;

    (void)snprintf(dir, sizeof(dir), DISKS_DIR "/%s", volume);
    dir_fd = ch_safe_open(root_fd, dir, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    if (dir_fd < 0)
        return disk->makes_image
                   ? ch_reply_fail(reply, dir_fd, TEXT "Resolve diskdir : /%s", dir)
                   : ch_reply_fail(reply,
                                   dir_fd,
                                   "Failed to change ownership of HostDisk dir %s, /%s",
                                   volume,
                                   dir);
    if (disk->makes_image) {
        fd = ch_safe_open(dir_fd, disk->file, O_PATH, 0, CH_RESOLVE_NO_LINKS);
        if (fd < 0 && fd != -ENOENT)
            return ch_reply_fail(reply, fd, TEXT "Resolve diskPath :/%s/%s", dir, disk->file);
        if (fd < 0 && !make_image(dir_fd, dir, disk, reply))
            return false;
    }
    return !is_non_root || own_dir(dir_fd, dir, volume, reply);
}
