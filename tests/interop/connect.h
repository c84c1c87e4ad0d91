/* SPDX-License-Identifier: Apache-2.0 */

/* connect: a stream to the UNIX socket that a client is told of. */

#pragma once

#include <glib.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Ends the program when nobody listens at @path. */
static inline int
connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        g_error("cannot connect to '%s'", path);
    return fd;
}
