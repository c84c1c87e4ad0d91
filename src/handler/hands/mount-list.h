/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mount-list: the mount points in a process's mountinfo.
 *
 * Pods decide what theirs contains, so only the mount point is looked at, a line that is not as the
 * kernel writes them is passed over, and the list is read to a limit. Allocates nothing, for a
 * child. Spec: 05 §5.4.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CH_MOUNT_LIST_MAX_BYTES  (512u * 1024)       /* of a pod's */
#define CH_MOUNT_LIST_NODE_BYTES (16u * 1024 * 1024) /* of the node's, which has all pods' */

/* Whether this is the mount that is looked for. @mount_point: without escapes; borrowed */
typedef bool (*ChMountListFunc)(const char *mount_point, void *data);

/**
 * ch_mount_list_find: asks @func of one mount point after the other, until it says yes.
 * @fd: mountinfo, opened for reading
 * @max_bytes: that are read of it
 *
 * Returns: 0, -ENOENT (never said yes), -E2BIG, or another -errno of reading
 */
int ch_mount_list_find(int fd, size_t max_bytes, ChMountListFunc func, void *data);
