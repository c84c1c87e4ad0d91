/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/mount-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "lib/linux/safe-path.h"

int
ch_mount_tree_clone(int fd)
{
    const int tree_fd = open_tree(fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

    return tree_fd < 0 ? -errno : tree_fd;
}

int
ch_mount_tree_restrict(int tree_fd, bool is_data)
{
    struct mount_attr attributes = {
        .attr_set =
            is_data ? MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC
                    : 0,
        .propagation = MS_PRIVATE,
    };

    return mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0 ? -errno
                                                                                          : 0;
}

int
ch_mount_tree_restrict_attached(int tree_fd)
{
    char path[CH_FD_PATH_SIZE];

    ch_fd_path(path, tree_fd);
    return mount(NULL, path, NULL, CH_MOUNT_RESTRICT_FLAGS, NULL) < 0 ? -errno : 0;
}

int
ch_mount_tree_attach(int tree_fd, int target_fd)
{
    return move_mount(
               tree_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
               ? -errno
               : 0;
}

int
ch_mount_is_root(int fd, bool *out_is_root)
{
    struct statx stx;

    if (statx(fd, "", AT_EMPTY_PATH, 0, &stx) < 0)
        return -errno;
    if (!(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return -ENOSYS; /* a kernel before 5.8 */
    *out_is_root = stx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
    return 0;
}

int
ch_mount_detach_root(int fd)
{
    char path[CH_FD_PATH_SIZE];

    ch_fd_path(path, fd);
    return umount2(path, MNT_DETACH) < 0 ? -errno : 0;
}
