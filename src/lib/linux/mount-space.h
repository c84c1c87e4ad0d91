/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mount-space: a mount namespace of one's own, and the few mounts that local mode makes in it.
 *
 * Errors are -errno. Needs CAP_SYS_ADMIN. Call while the process has one thread.
 * Thread: any, but enter and pivot.
 */

#pragma once

#include <stdbool.h>

/* A copy of the mounts, from which nothing propagates back; what is mounted outside in a shared
 * directory appears in it. Idempotent. Returns 0 or -errno. */
int ch_mount_space_enter(void);

/* A hybrid cgroup layout (v1 with v2 below it) is refused by crun: takes the v2 part away, in this
 * namespace only. Returns 0 (also when there is none) or -errno. */
int ch_mount_space_hide_hybrid_cgroup(void);

/* @path becomes the root, the old one goes. @path must be a mount point. Returns 0 or -errno. */
int ch_mount_space_pivot(const char *path);

int ch_mount_bind(const char *source, const char *target); /* with all mounts below it */
/* @size: as tmpfs's option, e.g. "64m" */
int ch_mount_tmpfs(const char *target, const char *size);
/* @upper and @work: directories of one file system that overlayfs can write to, not an overlay.
 * Paths must not contain ',' or ':'. */
int ch_mount_overlay(const char *lower, const char *upper, const char *work, const char *target);
/* Lazily: what is open below it stays usable. */
int ch_mount_detach(const char *target);

/* @path, absolute, becomes a mount of its own, if it is none; what is mounted below it appears in
 * namespaces that have a copy of it. Returns 0 or -errno */
int ch_mount_share(const char *path);
/* Takes that back, with all that is mounted below it. Idempotent. Returns 0 or -errno */
int ch_mount_unshare(const char *path);

/* Lazily, in this namespace: all that is mounted below @path. Returns 0 or -errno. */
int ch_mount_detach_below(const char *path);
