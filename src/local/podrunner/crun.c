/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/crun.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"

#define TIMEOUT_US     (30 * CH_SECOND_US)
#define MAX_WORDS      400
#define START_TIME_POS 22 /* of the fields of /proc/PID/stat, from 1 */

static char *
crun_root(const char *state_dir)
{
    return g_build_filename(state_dir, "crun", NULL);
}

bool
ch_crun_delete(const char *state_dir, const char *id, GError **error)
{
    g_autofree char *root = crun_root(state_dir);
    g_autofree char *state = g_build_filename(root, id, NULL);
    const char *const argv[] = {
        "crun", "--root", root, "--cgroup-manager=cgroupfs", "delete", "--force", id, NULL};

    if (!g_file_test(state, G_FILE_TEST_EXISTS))
        return true;
    return ch_command_run(&(ChCommand){argv, TIMEOUT_US, 0, 0}, NULL, error);
}

bool
ch_crun_delete_all(const char *state_dir, const char *pod_uid, GError **error)
{
    g_autofree char *root = crun_root(state_dir);
    g_autofree char *prefix = g_strconcat(pod_uid, "-", NULL);
    g_autoptr(GDir) dir = g_dir_open(root, 0, NULL);
    const char *id = NULL;

    while (dir != NULL && (id = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_prefix(id, prefix) && !ch_crun_delete(state_dir, id, error))
            return false;
    }
    return ch_crun_delete(state_dir, pod_uid, error);
}

/* The end of what crun said. */
static void
prefix_words(GError **error, const char *log_path)
{
    g_autofree char *text = NULL;
    gsize length = 0;

    if (error == NULL || !g_file_get_contents(log_path, &text, &length, NULL))
        return;
    g_autofree char *words =
        g_utf8_make_valid(length > MAX_WORDS ? text + length - MAX_WORDS : text, -1);
    g_prefix_error(error, "crun: %s: ", g_strstrip(words));
}

static bool
run(const ChCrun *crun, const char *pid_file, GError **error)
{
    g_autofree char *root = crun_root(crun->state_dir);
    g_autofree char *crun_log = g_build_filename(crun->bundle, "crun.log", NULL);
    g_autofree char *log_path = g_build_filename(crun->bundle, crun->log_name, NULL);
    ch_autofd int log_fd = g_open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    const char *const argv[] = {"crun",
                                "--root",
                                root,
                                "--cgroup-manager=cgroupfs",
                                "--log",
                                crun_log,
                                "run",
                                "--detach",
                                "--bundle",
                                crun->bundle,
                                "--pid-file",
                                pid_file,
                                crun->id,
                                NULL};

    if (log_fd < 0)
        return ch_fail_errno(error, errno, "open '%s'", log_path);
    (void)g_unlink(crun_log); /* only what is said now counts */
    if (ch_command_run(&(ChCommand){argv, TIMEOUT_US, log_fd, log_fd}, NULL, error))
        return true;
    prefix_words(error, crun_log);
    return false;
}

bool
ch_crun_run(const ChCrun *crun, int64_t *out_pid, GError **error)
{
    g_autofree char *pid_file = g_build_filename(crun->bundle, "pid", NULL);
    g_autofree char *text = NULL;

    return run(crun, pid_file, error) && g_file_get_contents(pid_file, &text, NULL, error) &&
           g_ascii_string_to_signed(g_strstrip(text), 10, 2, G_MAXINT, out_pid, error);
}

bool
ch_crun_start_time(int64_t pid, int64_t *out_start_time)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/stat", pid);
    g_autofree char *text = NULL;
    g_auto(GStrv) fields = NULL;
    const char *rest;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return false;
    rest = strrchr(text, ')'); /* the end of field 2, in which anything may be */
    fields = rest != NULL ? g_strsplit(rest, " ", -1) : NULL;
    if (fields == NULL || g_strv_length(fields) <= START_TIME_POS - 2)
        return false;
    return g_ascii_string_to_signed(
        fields[START_TIME_POS - 2], 10, 0, G_MAXINT64, out_start_time, NULL);
}
