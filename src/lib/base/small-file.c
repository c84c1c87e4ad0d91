/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/base/small-file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"

/* Appends all of it. */
static bool
read_all(int fd, const char *path, gsize max_bytes, GString *text, GError **error)
{
    char buffer[4096];
    gssize n = 1;

    while (n != 0) {
        n = read(fd, buffer, sizeof buffer);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return ch_fail_errno(error, errno, "read '%s'", path);
        g_string_append_len(text, buffer, n);
        if (text->len > max_bytes)
            return ch_fail(error, CH_ERROR_LIMIT, "'%s' has more than %zu bytes", path, max_bytes);
    }
    if (memchr(text->str, '\0', text->len) != NULL)
        return ch_fail(error, CH_ERROR_INVALID, "'%s' holds a NUL byte", path);
    return true;
}

char *
ch_small_file_read_fd(int fd, const char *path, gsize max_bytes, gsize *out_length, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (!read_all(fd, path, max_bytes, text, error))
        return NULL;
    if (out_length != NULL)
        *out_length = text->len;
    return g_string_free(g_steal_pointer(&text), FALSE);
}

char *
ch_small_file_read(const char *path, gsize max_bytes, gsize *out_length, GError **error)
{
    ch_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0) {
        ch_fail_errno(error, errno, "open '%s'", path);
        return NULL;
    }
    return ch_small_file_read_fd(fd, path, max_bytes, out_length, error);
}

bool
ch_small_file_write_fd(int fd, const char *path, const char *text, GError **error)
{
    gsize left = strlen(text);

    while (left > 0) {
        const ssize_t n = write(fd, text, left);

        if (n < 0 && errno != EINTR)
            return ch_fail_errno(error, errno, "write '%s'", path);
        if (n > 0) {
            text += n;
            left -= (gsize)n;
        }
    }
    return true;
}
