/* SPDX-License-Identifier: Apache-2.0 */

/*
 * shared-mounts: whether what the agent mounts for a pod reaches it.
 *
 * Disks and volumes are mounted in the node's mount namespace. A pod's own one is told of them only
 * if the mount that kubelet's directory lies on is shared, as systemd makes all of them. Elsewhere
 * a guest would find empty files in the place of its disks, with nobody saying why. Spec: 05 §1.3.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool is_shared;
    char *point; /* owned; as mountinfo has it, escaped */
} ChSharedMount;

/* What @mountinfo (a text as of /proc/PID/mountinfo) says of the mount with this number. Returns:
 * whether there is such a line. */
bool ch_shared_mount_find(const char *mountinfo, uint64_t id, ChSharedMount *out_mount);
void ch_shared_mount_clear(ChSharedMount *mount);

/**
 * ch_shared_mounts_check: warns when @dir lies on a mount that is not shared.
 * @host_root: of the host as this process sees it ("/proc/1/root")
 * @mountinfo_file: of the host's init ("/proc/1/mountinfo")
 * @dir: an absolute path on the host; one that is not there yet is not looked at
 *
 * Returns: false when it warned. Thread: while the process has its capabilities.
 */
bool ch_shared_mounts_check(const char *host_root, const char *mountinfo_file, const char *dir);
