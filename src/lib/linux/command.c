/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/command.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/small-file.h"
#include "lib/base/time.h"

#define MAX_LAST_WORDS 400
#define MAX_REAP_US    (5 * CH_SECOND_US)
#define REAP_PAUSE_MS  2

enum { OUT, ERR, N_PIPES };

typedef struct {
    const ChCommand *command;
    GPid pid;
    int pidfd;
    int input_fd;       /* negative: /dev/null */
    int pipes[N_PIPES]; /* negative: not collected, or at its end */
    GString *texts[N_PIPES];
    bool is_too_much;
} Run;

/* Runs between fork and exec: system calls only. Workers block all signals; the program shall not.
 */
static void
child_setup(gpointer data)
{
    const Run *run = data;
    const ChCommand *command = run->command;
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (command->is_group)
        setpgid(0, 0);
    if (run->input_fd >= 0)
        dup2(run->input_fd, STDIN_FILENO);
    if (command->out_fd > 0)
        dup2(command->out_fd, STDOUT_FILENO);
    if (command->err_fd > 0)
        dup2(command->err_fd, STDERR_FILENO);
    if (command->reads_hostile_input) {
        const struct rlimit memory = {1u << 30, 1u << 30};
        const struct rlimit cpu = {30, 30};

        (void)setrlimit(RLIMIT_AS, &memory); /* lowering one's own limits cannot fail */
        (void)setrlimit(RLIMIT_CPU, &cpu);
    }
}

/* A file in memory: nobody has to feed a pipe while the program writes. */
static bool
open_input(Run *run, GError **error)
{
    const char *text = run->command->input;

    if (text == NULL)
        return true;
    run->input_fd = memfd_create("input", MFD_CLOEXEC);
    if (run->input_fd < 0)
        return ch_fail_errno(error, errno, "make a file in memory");
    return ch_small_file_write_fd(run->input_fd, "input", text, error) &&
           (lseek(run->input_fd, 0, SEEK_SET) == 0 || ch_fail_errno(error, errno, "seek"));
}

static bool
start(Run *run, GError **error)
{
    const ChCommand *command = run->command;
    g_auto(GStrv) argv = g_strdupv((char **)command->argv);
    g_auto(GStrv) environment = g_strdupv((char **)command->environment);

    if (!open_input(run, error))
        return false;
    if (!g_spawn_async_with_pipes(NULL,
                                  argv,
                                  environment,
                                  G_SPAWN_SEARCH_PATH | G_SPAWN_DO_NOT_REAP_CHILD |
                                      G_SPAWN_CLOEXEC_PIPES,
                                  child_setup,
                                  run,
                                  &run->pid,
                                  NULL,
                                  command->out_fd > 0 ? NULL : &run->pipes[OUT],
                                  command->err_fd > 0 ? NULL : &run->pipes[ERR],
                                  error))
        return false;
    for (int i = 0; i < N_PIPES; i++) {
        if (run->pipes[i] >= 0)
            (void)g_unix_set_fd_nonblocking(run->pipes[i], TRUE, NULL);
    }
    run->pidfd = pidfd_open(run->pid, 0); /* not reaped yet, so it is there */
    return true;
}

static void
read_pipe(Run *run, int i)
{
    char buffer[16384];
    ssize_t n_bytes;

    while (run->pipes[i] >= 0 && (n_bytes = read(run->pipes[i], buffer, sizeof(buffer))) != 0) {
        if (n_bytes < 0 && errno == EINTR)
            continue;
        if (n_bytes < 0)
            return; /* EAGAIN: that is all for now */
        if (run->texts[i]->len + (gsize)n_bytes > CH_COMMAND_MAX_TEXT_BYTES) {
            run->is_too_much = true;
            return;
        }
        g_string_append_len(run->texts[i], buffer, n_bytes);
    }
    ch_close_fd(&run->pipes[i]);
}

/* Returns: false: it shall be killed, at the deadline or because it writes too much. */
static bool
wait_for_end(Run *run, int64_t deadline_us)
{
    for (;;) {
        const int64_t left_us = deadline_us - ch_time_now_us();
        struct pollfd fds[] = {
            {run->pidfd, POLLIN, 0}, {run->pipes[OUT], POLLIN, 0}, {run->pipes[ERR], POLLIN, 0}};
        bool has_ended;

        if (left_us <= 0)
            return false;
        if (poll(fds, G_N_ELEMENTS(fds), (int)(left_us / CH_MS_US) + 1) < 0)
            continue;
        has_ended = fds[0].revents != 0; /* seen before the last bytes are read */
        for (int i = 0; i < N_PIPES; i++)
            read_pipe(run, i);
        if (run->is_too_much || has_ended)
            return !run->is_too_much;
    }
}

static int
reap(GPid pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void
kill_all(const Run *run)
{
    if (!run->command->is_group) {
        kill(run->pid, SIGKILL);
        return;
    }
    kill(-run->pid, SIGKILL);
    kill(run->pid, SIGKILL); /* it may not have made its group yet */
}

/* What it started became ours when it ended, if orphans come to this process. What was killed takes
 * a moment to end, or for ever, in the kernel. */
static void
reap_rest(const Run *run, bool was_killed)
{
    const int64_t deadline_us = ch_time_now_us() + MAX_REAP_US;
    pid_t pid = run->command->is_group ? 1 : -1;

    while (pid >= 0) {
        pid = waitpid(-run->pid, NULL, WNOHANG);
        if (pid == 0 && (!was_killed || ch_time_now_us() > deadline_us))
            return;
        if (pid == 0)
            (void)poll(NULL, 0, REAP_PAUSE_MS);
    }
}

static void
run_clear(Run *run)
{
    for (int i = 0; i < N_PIPES; i++) {
        ch_close_fd(&run->pipes[i]);
        if (run->texts[i] != NULL)
            g_string_free(run->texts[i], TRUE);
    }
    ch_close_fd(&run->input_fd);
    ch_close_fd(&run->pidfd);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

void
ch_command_end_clear(ChCommandEnd *end)
{
    g_clear_pointer(&end->out, g_free);
    g_clear_pointer(&end->err, g_free);
}

bool
ch_command_run_to_end(const ChCommand *command, ChCommandEnd *out_end, GError **error)
{
    g_auto(Run)
        run = {.command = command, .pidfd = -EBADF, .input_fd = -EBADF, .pipes = {-EBADF, -EBADF}};
    bool has_ended;
    int status;

    for (int i = 0; i < N_PIPES; i++)
        run.texts[i] = g_string_new(NULL);
    if (!start(&run, error))
        return false;
    has_ended = wait_for_end(&run, ch_time_now_us() + command->timeout_us);
    if (!has_ended)
        kill_all(&run);
    status = reap(run.pid);
    reap_rest(&run, !has_ended);
    if (run.is_too_much)
        return ch_fail(error, CH_ERROR_LIMIT, "%s writes too much", command->argv[0]);
    if (!has_ended)
        return ch_fail(error, CH_ERROR_TIMEOUT, "%s took too long", command->argv[0]);
    *out_end =
        (ChCommandEnd){.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                       .out = g_string_free(g_steal_pointer(&run.texts[OUT]), FALSE),
                       .err = g_string_free(g_steal_pointer(&run.texts[ERR]), FALSE)};
    return true;
}

bool
ch_command_run(const ChCommand *command, char **out_text, GError **error)
{
    g_auto(ChCommandEnd) end = {0};
    g_autofree char *words = NULL;
    gsize length;

    if (!ch_command_run_to_end(command, &end, error))
        return false;
    if (end.status == 0) {
        if (out_text != NULL)
            *out_text = g_steal_pointer(&end.out);
        return true;
    }
    length = strlen(end.err);
    words =
        g_utf8_make_valid(end.err + (length > MAX_LAST_WORDS ? length - MAX_LAST_WORDS : 0), -1);
    return ch_fail(error,
                   CH_ERROR_FAILED,
                   "%s ended with status %d: %s",
                   command->argv[0],
                   end.status,
                   g_strstrip(words));
}
