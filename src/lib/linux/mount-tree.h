/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mount-tree: one mount taken out of one mount namespace and put into another, by descriptor.
 *
 * The order matters: a clone is made in the namespace that holds the original, and attached in that
 * which holds the target; a detached one belongs to neither. No path of a pod is looked up here.
 * Allocates nothing, errors are -errno, safe in a forked child. Needs CAP_SYS_ADMIN. Thread: the
 * only one of its process, as namespaces are joined. Spec: 05 §4.
 */

#pragma once

#include <stdbool.h>
#include <sys/mount.h>

/* The only flags that mount(2) is called with here. */
#define CH_MOUNT_RESTRICT_FLAGS                                                                    \
    ((unsigned long)(MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC))

/**
 * ch_mount_tree_clone: a detached copy of the mount that @fd lies on, with @fd as its root.
 * @fd: a file or directory on a mount of the calling thread's namespace; may be O_PATH
 *
 * Mounts below a directory stay behind. Returns a descriptor, or -errno (-EINVAL: not of this
 * namespace)
 */
int ch_mount_tree_clone(int fd);

/**
 * ch_mount_tree_restrict: cuts a clone off from mount events, and may make it read-only.
 * @is_data: nothing on it is to be written, executed or used as a device
 *
 * Returns: 0, or -errno: -ENOSYS before Linux 5.12, then ch_mount_tree_restrict_attached() does it
 */
int ch_mount_tree_restrict(int tree_fd, bool is_data);

/* The same for kernels before 5.12, once @tree_fd is attached in this namespace; needs /proc. */
int ch_mount_tree_restrict_attached(int tree_fd);

/* Puts a clone onto @target_fd, which lies on a mount of the calling thread's namespace. Both are
 * directories, or neither is. */
int ch_mount_tree_attach(int tree_fd, int target_fd);

/* Whether @fd (may be O_PATH) is the root of a mount. Returns 0 or -errno. */
int ch_mount_is_root(int fd, bool *out_is_root);

/* Takes the mount away whose root @fd is, lazily: @fd itself keeps it busy, and whoever has it open
 * keeps it. Needs /proc. */
int ch_mount_detach_root(int fd);
