/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/mount-list.h"

#include <errno.h>
#include <glib.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#define MOUNT_POINT_FIELD 4 /* of id, parent, device, root, mount point, ... */

/* Takes "\040" and the like out of @text. False: what follows a backslash is no such number. */
static bool
unescape(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++) {
        unsigned value = 0;

        if (*in != '\\') {
            *out++ = *in;
            continue;
        }
        for (int i = 1; i <= 3; i++) {
            if (in[i] < '0' || in[i] > '7')
                return false;
            value = value * 8 + (unsigned)(in[i] - '0');
        }
        if (value == 0 || value > UCHAR_MAX)
            return false;
        *out++ = (char)value;
        in += 3;
    }
    *out = '\0';
    return true;
}

static bool
ask(char *line, ChMountListFunc func, void *data)
{
    char *field = line;
    char *end;

    for (int i = 0; i < MOUNT_POINT_FIELD; i++) {
        field = strchr(field, ' ');
        if (field == NULL)
            return false;
        field++;
    }
    end = strchr(field, ' ');
    if (end == NULL)
        return false;
    *end = '\0';
    return field[0] == '/' && unescape(field) && func(field, data);
}

/* Asks of the whole lines in @buffer. Returns how many bytes they took; @out_is_found */
static size_t
ask_lines(char *buffer, size_t n_bytes, ChMountListFunc func, void *data, bool *out_is_found)
{
    size_t taken = 0;

    while (!*out_is_found) {
        char *newline = memchr(buffer + taken, '\n', n_bytes - taken);

        if (newline == NULL)
            break;
        *newline = '\0';
        *out_is_found = ask(buffer + taken, func, data);
        taken = (size_t)(newline - buffer) + 1;
    }
    return taken;
}

int
ch_mount_list_find(int fd, size_t max_bytes, ChMountListFunc func, void *data)
{
    static char buffer[3 * PATH_MAX + 1024]; /* a line: two paths and what overlayfs is made of */
    size_t n_bytes = 0;
    size_t n_read = 0;
    bool is_found = false;

    while (n_read < max_bytes) {
        const ssize_t n = read(fd, buffer + n_bytes, sizeof(buffer) - n_bytes);
        size_t taken;

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENOENT;
        n_read += (size_t)n;
        n_bytes += (size_t)n;
        taken = ask_lines(buffer, n_bytes, func, data, &is_found);
        if (is_found)
            return 0;
        if (taken == 0 && n_bytes == sizeof(buffer))
            taken =
                n_bytes; /* the beginning of a line that is too long is none, and so is its end */
        n_bytes -= taken;
        memmove(buffer, buffer + taken, n_bytes);
    }
    return -E2BIG;
}
