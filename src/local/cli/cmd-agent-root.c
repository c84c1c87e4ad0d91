/* SPDX-License-Identifier: Apache-2.0 */

/*
 * agent-root: executes the agent in a root of its own. Run by the supervisor.
 *
 * The agent finds pods below /pods, as its container on a cluster has them, and the node labeller's
 * files below /var/lib. Here these places exist only in the agent's mount namespace, whose root is
 * an overlay over this machine's, so that nothing is left on the machine.
 */

#include <errno.h>
#include <glib/gstdio.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/linux/mount-space.h"
#include "local/cli/cli.h"

#define SCRATCH_SIZE "64m"

/* Where it is in the agent's root, and what it is; a path of the state directory, or absolute. */
static const char *const binds[][2] = {
    {"/proc", "/proc"},
    {"/sys", "/sys"},
    {"/dev", "/dev"},
    {"/pods", CH_PODS_DIR},
    {"/var/lib/kubelet/pods", CH_PODS_DIR},
    {"/var/lib/kubevirt-node-labeller", "agent/labeller"},
};

static bool
check(int result, const char *what, GError **error)
{
    return result >= 0 || ch_fail_errno(error, -result, "%s", what);
}

static bool
make_directory(const char *path, GError **error)
{
    return g_mkdir_with_parents(path, 0755) == 0 ||
           ch_fail_errno(error, errno, "create directory '%s'", path);
}

static bool
bind_into(const char *root, const char *target, const char *source, GError **error)
{
    g_autofree char *path = g_build_filename(root, target, NULL);

    return make_directory(path, error) && check(ch_mount_bind(source, path), path, error);
}

static bool
make_root(const char *scratch, const char *root, GError **error)
{
    g_autofree char *upper = g_build_filename(scratch, "upper", NULL);
    g_autofree char *work = g_build_filename(scratch, "work", NULL);

    return make_directory(scratch, error) && make_directory(root, error) &&
           check(ch_mount_tmpfs(scratch, SCRATCH_SIZE), scratch, error) &&
           make_directory(upper, error) && make_directory(work, error) &&
           check(ch_mount_overlay("/", upper, work, root), root, error);
}

/* What is not on the file system of "/" is not below the overlay: the state and the program are
 * bound in any case. */
static bool
fill_root(const ChCli *cli, const char *root, const char *program, GError **error)
{
    g_autofree char *program_dir = g_path_get_dirname(program);

    if (!bind_into(root, cli->state_dir, cli->state_dir, error) ||
        !bind_into(root, program_dir, program_dir, error))
        return false;
    for (gsize i = 0; i < G_N_ELEMENTS(binds); i++) {
        g_autofree char *source =
            g_path_is_absolute(binds[i][1]) ? g_strdup(binds[i][1]) : ch_cli_path(cli, binds[i][1]);

        if (!bind_into(root, binds[i][0], source, error))
            return false;
    }
    return true;
}

bool
ch_cmd_agent_root(ChCli *cli, int argc, char **argv, GError **error)
{
    g_auto(GStrv) program = NULL;
    g_autofree char *scratch = NULL;
    g_autofree char *root = NULL;

    if (!ch_cli_parse(cli, argc, argv, NULL, 1, -1, &program, error))
        return false;
    scratch = ch_cli_path(cli, "agent/scratch");
    root = ch_cli_path(cli, "agent/root");
    if (!check(ch_mount_space_enter(), "make a mount namespace (root is needed)", error) ||
        !make_root(scratch, root, error) || !fill_root(cli, root, program[0], error) ||
        !check(ch_mount_space_pivot(root), "enter the agent's root", error))
        return false;
    execv(program[0], program);
    return ch_fail_errno(error, errno, "execute '%s'", program[0]);
}
