/* SPDX-License-Identifier: Apache-2.0 */

/*
 * device-labels: lets containers use the device nodes of the agent's own /dev, which the launchers'
 * taps are made with, where SELinux labels files. Spec: 05 §11.2.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#include "lib/linux/selinux.h"

/* /dev/net/tun and /dev/null; NULL-terminated. */
extern const char *const ch_device_labels_paths[];

/**
 * ch_device_labels_set: labels the files `system_u:object_r:container_file_t:s0`.
 * @host_root: of the host as this process sees it. Its own nodes are left alone, where the agent
 * has no /dev of its own: other programs of the host need the labels that they have
 * @paths: NULL-terminated
 *
 * A label that cannot be set is only told where SELinux does not enforce it, or where the file
 * system or the host does not let it be set (EROFS, EOPNOTSUPP, EPERM, EACCES). Thread: while the
 * process has its capabilities.
 *
 * Returns: false with "error relabeling required files: ..."
 */
bool ch_device_labels_set(const char *host_root,
                          const char *const *paths,
                          ChSelinuxMode mode,
                          GError **error);
