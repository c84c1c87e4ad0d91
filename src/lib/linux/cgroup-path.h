/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cgroup-path: which cgroup a process is in, and below which mount its directory lies.
 *
 * Works on the texts of /proc/PID/cgroup and /proc/PID/mountinfo. Both are relative to the cgroup
 * namespace of who reads them: what lies outside of it begins with "/..", and is found in no mount
 * by its name. Pure; allocates nothing, errors are -errno: also for the hands. Thread: any.
 * Spec: 05 §8.1.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CH_CGROUP_PATH_SIZE 4096 /* PATH_MAX: of a path, its NUL included */

#define CH_CGROUP_HOUSEKEEPING "housekeeping"

/**
 * ch_cgroup_find: the path of a process's cgroup.
 * @text: of @length bytes, /proc/PID/cgroup as a whole
 * @controller: (nullable): of a v1 hierarchy; NULL: the v2 hierarchy
 *
 * Returns: 0 with @out_path (absolute), -ENOENT (no such hierarchy), -EINVAL (a line that is none),
 * -ENAMETOOLONG
 */
int ch_cgroup_find(const char *text,
                   size_t length,
                   const char *controller,
                   char out_path[CH_CGROUP_PATH_SIZE]);

/* Drops a last component "housekeeping": it is a part of the container, made by this agent. */
void ch_cgroup_strip_housekeeping(char *path);

/* Whether it is a container that crun put into a directory "container" of its scope, which then has
 * a device program of its own. */
bool ch_cgroup_is_in_scope(const char *path);

typedef struct {
    char root[CH_CGROUP_PATH_SIZE];  /* the cgroup that is seen at `point` */
    char point[CH_CGROUP_PATH_SIZE]; /* where it is mounted */
} ChCgroupMount;

/**
 * ch_cgroup_mount_parse: one line of mountinfo, without its newline.
 * @controller: as of ch_cgroup_find()
 *
 * Returns: whether it is a mount of that hierarchy; lines that are malformed are none
 */
bool ch_cgroup_mount_parse(const char *line,
                           size_t length,
                           const char *controller,
                           ChCgroupMount *out_mount);

/* The part of @path below @root, without a leading '/': empty for @root itself. NULL: it is not
 * below it, or cannot be told, as one of them leads out of the reader's cgroup namespace. */
const char *ch_cgroup_below(const char *root, const char *path);
