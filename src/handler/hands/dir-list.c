/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/dir-list.h"

#include <dirent.h>
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

static bool
is_dot(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

int
ch_dir_list(int dir_fd, char names[][CH_DIR_NAME_SIZE], int size)
{
    static char buffer[8192] __attribute__((aligned(__alignof__(struct dirent64))));
    int n_names = 0;

    for (;;) {
        const ssize_t n = getdents64(dir_fd, buffer, sizeof(buffer));
        const struct dirent64 *entry;

        if (n <= 0)
            return n < 0 ? -errno : n_names;
        for (ssize_t at = 0; at < n; at += entry->d_reclen) {
            entry = (const void *)(buffer + at); /* aligned, as all its lengths are */
            if (is_dot(entry->d_name))
                continue;
            if (n_names == size)
                return n_names;
            (void)g_strlcpy(names[n_names++], entry->d_name, CH_DIR_NAME_SIZE);
        }
    }
}
