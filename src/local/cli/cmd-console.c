/* SPDX-License-Identifier: Apache-2.0 */

/*
 * console: the terminal on the guest's serial port.
 *
 * The socket lies in the pod's private directory, which is reached through the pod's files on this
 * machine, as kubelet lays them out.
 */

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"
#include "local/cli/cli.h"
#include "local/cli/vms.h"

#define LEAVE 0x1d /* Ctrl-] */

/* (transfer full): the directory of the VM's sockets on this machine */
static char *
find_directory(const ChCli *cli, const char *name, GError **error)
{
    g_autoptr(ChClient) client = ch_client_new(cli, error);
    g_autoptr(ChJson) vmi = client != NULL ? ch_vm_get(client, cli, name, error) : NULL;
    const char *pod_uid = ch_vm_pod_uid(vmi);

    if (vmi == NULL)
        return NULL;
    if (pod_uid == NULL || ch_vm_is_final(vmi)) {
        ch_fail(error,
                CH_ERROR_NOT_FOUND,
                "VM '%s' does not run (it is %s)",
                name,
                *ch_vm_phase(vmi) != '\0' ? ch_vm_phase(vmi) : "new");
        return NULL;
    }
    return g_build_filename(cli->state_dir,
                            "podrunner/pods",
                            pod_uid,
                            "volumes/kubernetes.io~empty-dir/private",
                            ch_json_string_at(vmi, "metadata", "uid"),
                            NULL);
}

/* Paths of sockets are short, so the directory is entered by descriptor. */
static int
connect_socket(const char *dir, GError **error)
{
    ch_autofd int dir_fd = g_open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    ch_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char dir_path[CH_FD_PATH_SIZE];

    if (dir_fd < 0) {
        ch_fail_errno(error, errno, "open '%s' (root is needed)", dir);
        return -1;
    }
    ch_fd_path(dir_path, dir_fd);
    g_snprintf(address.sun_path, sizeof(address.sun_path), "%s/virt-serial0", dir_path);
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        if (errno == ENOENT || errno == ECONNREFUSED)
            ch_fail(
                error,
                CH_ERROR_NOT_FOUND,
                "the VM has no serial console now: it is starting or ending, or was made without");
        else
            ch_fail_errno(error, errno, "connect to the console in '%s'", dir);
        return -1;
    }
    return g_steal_fd(&fd);
}

static bool
write_all(int fd, const char *bytes, gsize length)
{
    while (length > 0) {
        const ssize_t n_written = write(fd, bytes, length);

        if (n_written < 0 && errno == EINTR)
            continue;
        if (n_written <= 0)
            return false;
        bytes += n_written;
        length -= (gsize)n_written;
    }
    return true;
}

/* Returns: false at the end. @leave: a byte that ends it; negative: none */
static bool
copy(int from, int to, int leave)
{
    char buffer[4096];
    const ssize_t n_bytes = read(from, buffer, sizeof(buffer));
    const char *end;

    if (n_bytes < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (n_bytes <= 0)
        return false;
    end = leave >= 0 ? memchr(buffer, leave, (gsize)n_bytes) : NULL;
    return write_all(to, buffer, end != NULL ? (gsize)(end - buffer) : (gsize)n_bytes) &&
           end == NULL;
}

/* Returns: true: the VM's side ended it */
static bool
exchange(int socket_fd, int signal_fd)
{
    struct pollfd fds[] = {
        {STDIN_FILENO, POLLIN, 0}, {socket_fd, POLLIN, 0}, {signal_fd, POLLIN, 0}};

    for (;;) {
        if (poll(fds, G_N_ELEMENTS(fds), -1) < 0)
            continue; /* EINTR */
        if (fds[2].revents != 0)
            return false;
        if (fds[1].revents != 0 && !copy(socket_fd, STDOUT_FILENO, -1))
            return true;
        if (fds[0].revents != 0 && !copy(STDIN_FILENO, socket_fd, LEAVE))
            return false;
    }
}

/* The terminal is given back whatever ends the conversation, signals too. Returns: as exchange() */
static bool
converse(int socket_fd)
{
    struct termios before, raw;
    const bool is_terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    ch_autofd int signal_fd = -EBADF;
    sigset_t signals;
    bool is_ended;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (is_terminal) {
        raw = before;
        cfmakeraw(&raw);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    is_ended = exchange(socket_fd, signal_fd);
    if (is_terminal)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return is_ended;
}

static bool
print_log(const char *dir, GError **error)
{
    g_autofree char *path = g_build_filename(dir, "virt-serial0-log", NULL);
    ch_autofd int fd = g_open(path, O_RDONLY | O_CLOEXEC, 0);

    if (fd < 0)
        return ch_fail_errno(error, errno, "open '%s'", path);
    while (copy(fd, STDOUT_FILENO, -1))
        ;
    return true;
}

bool
ch_cmd_console(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean wants_log = FALSE;
    const GOptionEntry entries[] = {{"log", 0, 0, G_OPTION_ARG_NONE, &wants_log, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autofree char *dir = NULL;
    ch_autofd int socket_fd = -EBADF;

    if (!ch_cli_parse(cli, argc, argv, entries, 1, 1, &arguments, error))
        return false;
    dir = find_directory(cli, arguments[0], error);
    if (dir == NULL)
        return false;
    if (wants_log)
        return print_log(dir, error);
    socket_fd = connect_socket(dir, error);
    if (socket_fd < 0)
        return false;
    fprintf(stderr, "Connected to %s; Ctrl-] leaves.\r\n", arguments[0]);
    if (converse(socket_fd))
        fprintf(stderr,
                "\r\nThe VM closed its console: it has ended, or somebody else connected.\n");
    else
        fputs("\r\n", stderr);
    return true;
}
