/* SPDX-License-Identifier: Apache-2.0 */

/*
 * line-reader: a text file of any length, line by line, in memory of fixed size.
 *
 * For what the kernel prints: /proc/PID/mountinfo, lists of threads. Allocates nothing, errors are
 * -errno: also for the hands. A reader is large (64 KiB): static storage. Thread: any. Blocks: for
 * the file.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CH_LINE_MAX 65536 /* bytes; longer lines are passed over */

typedef struct {
    int fd; /* borrowed */
    size_t start, end;
    bool is_skipping; /* in a line that is too long */
    char buffer[CH_LINE_MAX];
} ChLineReader;

void ch_line_reader_init(ChLineReader *reader, int fd);

/**
 * ch_line_reader_next:
 * @out_line: (out) (transfer none): not terminated, without its newline, until the next call
 *
 * A last line needs no newline.
 *
 * Returns: 1: a line; 0: the end; or -errno
 */
int ch_line_reader_next(ChLineReader *reader, const char **out_line, size_t *out_length);

/**
 * ch_read_whole: a small file as a whole.
 * @dir_fd: where @path begins, or AT_FDCWD
 * @buffer: of @size bytes; terminated with a NUL
 *
 * Returns: the length, or -errno: -EFBIG (@size or more bytes)
 */
long ch_read_whole(int dir_fd, const char *path, char *buffer, size_t size);
