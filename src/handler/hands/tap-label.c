/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/tap-label.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handler/hands/inside-net.h"
#include "handler/hands/reply.h"
#include "handler/hands/tap.h"
#include "lib/base/fd.h"
#include "lib/linux/channel.h"
#include "lib/linux/line-reader.h"
#include "lib/linux/pidfd.h"

#define LABEL_SIZE 4096 /* its NUL included; the kernel reads a page */

/* --- labels */

/* Cuts the NUL or newline that the kernel ends it with. Returns 0 or -errno. */
static int
check_label(char *label, long n)
{
    if (n > 0 && (label[n - 1] == '\0' || label[n - 1] == '\n'))
        label[--n] = '\0';
    for (long i = 0; i < n; i++)
        if (label[i] <= ' ' || label[i] > '~')
            return -EBADMSG;
    return n > 0 ? 0 : -EBADMSG;
}

/* @whose: a directory of @proc. Returns 0 or -errno. */
static int
read_label(const char *proc, const char *whose, char label[LABEL_SIZE])
{
    char path[PATH_MAX];
    long n;

    if (snprintf(path, sizeof(path), "%s/%s/attr/current", proc, whose) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    n = ch_read_whole(AT_FDCWD, path, label, LABEL_SIZE);
    return n < 0 ? (int)n : check_label(label, n);
}

/* The number is that process's own as long as it lives. */
static int
read_launchers(const char *proc, const ChTapOrder *order, int pidfd, char label[LABEL_SIZE])
{
    char whose[16];
    int result;

    (void)snprintf(whose, sizeof(whose), "%d", (int)order->pid);
    result = read_label(proc, whose, label);
    return ch_pidfd_is_alive(pidfd) ? result : -ESRCH;
}

/* Returns 0 or a positive errno. */
static int
write_label(const char *proc, const char *label)
{
    char path[PATH_MAX];
    ch_autofd int fd = -EBADF;

    if (snprintf(path, sizeof(path), "%s/thread-self/attr/exec", proc) >= (int)sizeof(path))
        return ENAMETOOLONG;
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    return write(fd, label, strlen(label)) < 0 ? errno : 0;
}

/* --- the helper */

typedef enum {
    STAGE_LABEL = 1,
    STAGE_EXEC,
} Stage;

/* What failed before there was another program to report by its exit. */
typedef struct {
    Stage stage;
    int errnum;
} Failure;

typedef struct {
    pid_t pid;
    int pidfd;     /* owned */
    int status_fd; /* owned; brings a Failure */
} Helper;

static void
report(int status_fd, Stage stage, int errnum)
{
    const Failure failure = {stage, errnum};

    (void)ch_channel_send(status_fd, &failure, sizeof(failure), -1);
    _exit(EXIT_FAILURE);
}

/* What root gets by an exec is what the bounding set has. A container that may not shrink it gave
 * little to begin with. */
static void
leave_capabilities(void)
{
    static const int unused[] = {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SETPCAP};

    for (gsize i = 0; i < G_N_ELEMENTS(unused); i++)
        (void)prctl(PR_CAPBSET_DROP, unused[i], 0, 0, 0);
}

static void
become_helper(const ChTapLabelPlaces *places,
              const ChTapOrder *order,
              const char *label,
              int status_fd)
{
    static char command[] = CH_TAP_COMMAND;
    static char program_name[] = "virt-handler-hands";
    char *const no_environment[] = {NULL};
    char name[CH_HANDS_NAME_SIZE];
    char flags[16];
    char *const argv[CH_TAP_N_ARGS + 1] = {program_name, command, name, flags, NULL};
    int result;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    memcpy(name, order->name, sizeof(name));
    (void)snprintf(flags, sizeof(flags), "%u", order->flags);
    result = write_label(places->proc, label);
    if (result != 0)
        report(status_fd, STAGE_LABEL, result);
    leave_capabilities();
    (void)execve(places->program, argv, no_environment);
    report(status_fd, STAGE_EXEC, errno);
}

/* Returns 0 or a positive errno. */
static int
start_helper(const ChTapLabelPlaces *places,
             const ChTapOrder *order,
             const char *label,
             Helper *out_helper)
{
    int pair[2];
    int result = ch_channel_pair(pair);
    pid_t pid;

    if (result < 0)
        return -result;
    pid = fork();
    if (pid == 0)
        become_helper(places, order, label, pair[1]);
    result = pid < 0 ? errno : 0;
    close(pair[1]);
    *out_helper = (Helper){pid, -EBADF, pair[0]};
    if (result == 0)
        out_helper->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* it waits for us to reap it */
    return result == 0 && out_helper->pidfd < 0 ? errno : result;
}

/* Returns 0 or a positive errno: ECANCELED: nobody waits for it any more. */
static int
wait_for_end(const Helper *helper, int caller_fd)
{
    struct pollfd fds[] = {{.fd = helper->pidfd, .events = POLLIN}, {.fd = caller_fd}};

    while (fds[0].revents == 0) {
        if (poll(fds, G_N_ELEMENTS(fds), -1) < 0 && errno != EINTR)
            return errno;
        if (fds[0].revents == 0 && fds[1].revents != 0) {
            (void)ch_pidfd_kill(helper->pidfd, SIGKILL);
            return ECANCELED;
        }
    }
    return 0;
}

static bool
tell_failure(const Failure *failure,
             const ChTapOrder *order,
             const char *label,
             ChHandsReply *reply)
{
    if (failure->stage == STAGE_LABEL)
        return ch_reply_fail(
            reply, failure->errnum, "failed to switch selinux context to %.100s. Reason", label);
    return ch_reply_fail(reply,
                         failure->errnum,
                         "failed to execute command in launcher namespace %d",
                         (int)order->pid);
}

/* Says what became of the helper. */
static bool
judge(const Helper *helper, const ChTapOrder *order, const char *label, ChHandsReply *reply)
{
    Failure failure = {STAGE_EXEC, ECHILD};
    int status = 0;

    if (ch_channel_receive(helper->status_fd, &failure, sizeof(failure), NULL) == sizeof(failure))
        return tell_failure(&failure, order, label, reply);
    if (waitpid(helper->pid, &status, 0) != helper->pid || !WIFEXITED(status))
        return tell_failure(&failure, order, label, reply);
    return WEXITSTATUS(status) == 0 ||
           ch_reply_fail(reply,
                         WEXITSTATUS(status),
                         "failed to create tap device named %s. Reason: [0]",
                         order->name);
}

static bool
run_helper(const ChTapLabelPlaces *places,
           const ChTapOrder *order,
           const char *label,
           int caller_fd,
           ChHandsReply *reply)
{
    Helper helper = {.pidfd = -EBADF, .status_fd = -EBADF};
    int result = start_helper(places, order, label, &helper);
    bool ok;

    if (result == 0)
        result = wait_for_end(&helper, caller_fd);
    ok = result == 0 ? judge(&helper, order, label, reply)
                     : tell_failure(&(Failure){STAGE_EXEC, result}, order, label, reply);
    ch_close_fd(&helper.pidfd);
    ch_close_fd(&helper.status_fd);
    return ok;
}

bool
ch_tap_label_make(const ChTapLabelPlaces *places,
                  const ChTapOrder *order,
                  int pidfd,
                  int caller_fd,
                  ChHandsReply *reply)
{
    static char wanted[LABEL_SIZE], own[LABEL_SIZE];
    int result;

    if (!ch_inside_join_net(pidfd, reply))
        return false;
    result = read_launchers(places->proc, order, pidfd, wanted);
    if (result == 0 && read_label(places->proc, "thread-self", own) == 0 &&
        g_str_equal(own, wanted)) {
        result = ch_tap_make(order->name, order->flags);
        return result == 0 ||
               ch_reply_fail(
                   reply, result, "failed to create tap device named %s. Reason: [0]", order->name);
    }
    if (result < 0)
        return ch_reply_fail(
            reply, result, "could not retrieve pid %d selinux label", (int)order->pid);
    return run_helper(places, order, wanted, caller_fd, reply);
}
