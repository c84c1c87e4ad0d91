/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/line-reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

void
ch_line_reader_init(ChLineReader *reader, int fd)
{
    reader->fd = fd;
    reader->start = reader->end = 0;
    reader->is_skipping = false;
}

/* Returns how many bytes came, 0 at the end, or -errno. */
static long
fill(ChLineReader *reader)
{
    ssize_t n;

    if (reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    if (reader->end == sizeof(reader->buffer)) {
        reader->is_skipping = true;
        reader->end = 0;
    }
    do
        n = read(reader->fd, reader->buffer + reader->end, sizeof(reader->buffer) - reader->end);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    reader->end += (size_t)n;
    return n;
}

/* At the end of the file: what is left without a newline. */
static int
take_last(ChLineReader *reader, const char **out_line, size_t *out_length)
{
    if (reader->start == reader->end || reader->is_skipping)
        return 0;
    *out_line = reader->buffer + reader->start;
    *out_length = reader->end - reader->start;
    reader->start = reader->end;
    return 1;
}

int
ch_line_reader_next(ChLineReader *reader, const char **out_line, size_t *out_length)
{
    for (;;) {
        char *line = reader->buffer + reader->start;
        const size_t n_left = reader->end - reader->start;
        const char *newline = n_left > 0 ? memchr(line, '\n', n_left) : NULL;
        const bool is_rest = reader->is_skipping;
        long n;

        if (newline == NULL) {
            n = fill(reader);
            if (n < 0)
                return (int)n;
            if (n == 0)
                return take_last(reader, out_line, out_length);
            continue;
        }
        *out_line = line;
        *out_length = (size_t)(newline - line);
        reader->start += *out_length + 1;
        reader->is_skipping = false;
        if (!is_rest) /* else of one that was too long */
            return 1;
    }
}

long
ch_read_whole(int dir_fd, const char *path, char *buffer, size_t size)
{
    const int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t n = 1;

    if (fd < 0)
        return -errno;
    while (n != 0 && length < size) {
        n = read(fd, buffer + length, size - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        length += (size_t)n;
    }
    n = n < 0 ? -errno : n;
    close(fd);
    if (n < 0)
        return (long)n;
    if (length >= size)
        return -EFBIG;
    buffer[length] = '\0';
    return (long)length;
}
