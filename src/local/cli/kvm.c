/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/kvm.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "lib/base/fd.h"
#include "local/cli/cli.h"

#define LIMIT_MS 20000

/* "KVM does not work: REASON" */
static char *
reason_of(int out_fd)
{
    char text[1024] = "";
    const char *colon;

    if (read(out_fd, text, sizeof(text) - 1) <= 0)
        return g_strdup("the probe said nothing");
    g_strdelimit(g_strchomp(text), "\n", ' ');
    colon = strstr(text, ": ");
    return g_utf8_make_valid(colon != NULL ? colon + 2 : text, -1);
}

bool
ch_kvm_works(char **out_reason)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *launcher = ch_cli_find_program("chandler-launcher", &error);
    char *argv[] = {launcher, (char *)"--probe-kvm", NULL};
    ch_autofd int out_fd = -EBADF;
    ch_autofd int pidfd = -EBADF;
    struct pollfd end = {.events = POLLIN};
    GPid pid = 0;
    int status = 0;

    if (launcher == NULL ||
        !g_spawn_async_with_pipes(NULL,
                                  argv,
                                  NULL,
                                  G_SPAWN_DO_NOT_REAP_CHILD | G_SPAWN_STDERR_TO_DEV_NULL,
                                  NULL,
                                  NULL,
                                  &pid,
                                  NULL,
                                  &out_fd,
                                  NULL,
                                  &error)) {
        *out_reason = g_strdup(error->message);
        return false;
    }
    pidfd = end.fd = pidfd_open(pid, 0);
    if (poll(&end, 1, LIMIT_MS) != 1)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        *out_reason = NULL;
        return true;
    }
    *out_reason = WIFEXITED(status) ? reason_of(out_fd) : g_strdup("the probe took too long");
    return false;
}
