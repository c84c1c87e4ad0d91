/* SPDX-License-Identifier: Apache-2.0 */

/*
 * chandler-container-disk SOCKET: stands for a disk, or a hot-plugged volume, in its container.
 *
 * The agent finds the container's files by asking who listens on the socket. Nothing is said on
 * it: whoever connects is let go at once. The program ends when the socket's name is gone, with
 * status 0, or with SIGTERM. Linked statically, and with nothing of ours: it runs in a root that
 * holds nothing but an image's files. Spec: 05 §1.1, §6.2 (the end).
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_EVERY_MS 1000
#define BACKLOG       16

static int
fail(const char *what)
{
    fprintf(stderr, "chandler-container-disk: %s: %m\n", what);
    return 1;
}

static int
listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (strlen(path) >= sizeof(address.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    if (unlink(path) < 0 && errno != ENOENT) /* of a container before this one */
        return -1;
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
        return -1;
    return fd;
}

static int
catch_signals(void)
{
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return -1;
    return signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool
is_there(const char *path, const struct stat *ours)
{
    struct stat now;

    return lstat(path, &now) == 0 && now.st_dev == ours->st_dev && now.st_ino == ours->st_ino;
}

static int
serve(int fd, int signals, const char *path, const struct stat *ours)
{
    struct pollfd waits[] = {{.fd = fd, .events = POLLIN}, {.fd = signals, .events = POLLIN}};

    while (is_there(path, ours)) {
        if (poll(waits, 2, LOOK_EVERY_MS) < 0 && errno != EINTR)
            return fail("poll");
        if ((waits[1].revents & POLLIN) != 0) {
            (void)unlink(path);
            return 0;
        }
        if ((waits[0].revents & POLLIN) != 0) {
            const int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

            if (peer >= 0)
                (void)close(peer);
        }
    }
    return 0;
}

int
main(int argc, char **argv)
{
    struct stat ours;
    int signals, fd;

    if (argc != 2) {
        fputs("usage: chandler-container-disk SOCKET\n", stderr);
        return 2;
    }
    signals = catch_signals();
    if (signals < 0)
        return fail("catch signals");
    fd = listen_on(argv[1]);
    if (fd < 0 || lstat(argv[1], &ours) < 0)
        return fail(argv[1]);
    return serve(fd, signals, argv[1], &ours);
}
