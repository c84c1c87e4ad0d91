/* SPDX-License-Identifier: Apache-2.0 */

/*
 * dir-list: a few names of a directory that may hold anything. Allocates nothing, for a child.
 */

#pragma once

#define CH_DIR_NAME_SIZE 256 /* NAME_MAX and a NUL */

/**
 * ch_dir_list: the first names, without "." and "..".
 * @dir_fd: opened for reading
 * @names: room for @size of them
 *
 * Returns: how many there are, at most @size, or -errno
 */
int ch_dir_list(int dir_fd, char names[][CH_DIR_NAME_SIZE], int size);
