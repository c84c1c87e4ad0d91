/* SPDX-License-Identifier: Apache-2.0 */

/*
 * small-file: the text of a file, which is not trusted to be small, nor to be a file. Thread: any.
 * Blocks: reads the file.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/**
 * ch_small_file_read: opens it, following links, and reads all of it.
 * @max_bytes: what the file may have
 * @out_length: (out) (optional)
 *
 * A FIFO without a writer is an empty file, a directory is CH_ERRNO (EISDIR).
 *
 * Returns: (transfer full): NUL-terminated; NULL with CH_ERRNO, CH_ERROR_LIMIT or, where it holds a
 * NUL, CH_ERROR_INVALID
 */
char *ch_small_file_read(const char *path, gsize max_bytes, gsize *out_length, GError **error);

/* The same of an open file. @fd: borrowed, best non-blocking, as it may be a FIFO; @path: for
 * messages. */
char *
ch_small_file_read_fd(int fd, const char *path, gsize max_bytes, gsize *out_length, GError **error);

/* Writes all of @text to an open file. @fd: borrowed, blocking; @path: for messages. Returns: false
 * with CH_ERRNO, the file is then a part. */
bool ch_small_file_write_fd(int fd, const char *path, const char *text, GError **error);
