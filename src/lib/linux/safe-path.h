/* SPDX-License-Identifier: Apache-2.0 */

/*
 * safe-path: files below a directory that a hostile workload owns.
 *
 * Every name is resolved by openat2 against a directory held open, then acted on through the
 * descriptor; no path is resolved twice. Nothing here allocates, logs or takes a lock, and errors
 * are returned as -errno: the functions also serve in a forked child. Thread: any. Blocks: for the
 * file system (a hung one blocks for ever). Spec: 05 §3.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef enum {
    CH_RESOLVE_NO_LINKS, /* below the directory; any symbolic link is ELOOP, leaving it EXDEV */
    CH_RESOLVE_IN_ROOT,  /* the directory is the root that links and ".." lead to */
} ChResolve;

/* Which file it is, whatever its name: unchanged by renames and bind mounts. */
typedef struct {
    uint64_t dev;
    uint64_t ino;
} ChFileId;

/**
 * ch_safe_open: opens @path below @dir_fd, close-on-exec.
 * @dir_fd: a directory; may be O_PATH
 * @path: not empty
 * @flags: as of open(2)
 * @mode: of a file that O_CREAT makes, less the umask; 0 without O_CREAT
 *
 * Magic links (/proc/PID/fd, ...) are refused in both ways. With O_PATH | O_NOFOLLOW and
 * CH_RESOLVE_IN_ROOT a link at the end is opened itself.
 *
 * Returns: a descriptor, or -errno (-EAGAIN: somebody kept renaming on the way)
 */
int ch_safe_open(int dir_fd, const char *path, int flags, mode_t mode, ChResolve how);

/* 0, or the -errno of looking @path up without following links; a link is -ELOOP. */
int ch_safe_lookup(int dir_fd, const char *path);

/**
 * ch_safe_identify:
 * @fd: may be O_PATH
 * @out_id: (optional)
 * @out_mode: (optional): type and permissions
 *
 * Returns: 0 or -errno
 */
int ch_safe_identify(int fd, ChFileId *out_id, mode_t *out_mode);

/**
 * ch_safe_remove: removes @name from @dir_fd: a file of any kind, or an empty directory.
 * @name: a single component
 *
 * A symbolic link is refused with -ELOOP.
 *
 * Returns: 0 (also when there is no such name) or -errno
 */
int ch_safe_remove(int dir_fd, const char *name);

/* Gives the file behind @fd (may be O_PATH) to uid:gid unless it is theirs. Needs CAP_CHOWN.
 * Returns 0 or -errno. */
int ch_safe_chown(int fd, uid_t uid, gid_t gid);

/* Gives the file behind @fd (may be O_PATH) this mode unless it has it. Needs CAP_FOWNER. Returns 0
 * or -errno. */
int ch_safe_chmod(int fd, mode_t mode);

/* "/proc/self/fd/N": a path for calls that take no descriptor (bind, connect). */
#define CH_FD_PATH_SIZE 64
void ch_fd_path(char buffer[CH_FD_PATH_SIZE], int fd);
