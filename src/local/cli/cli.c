/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/cli.h"

#include <poll.h>

#include "lib/base/errors.h"

static void
take_string(char **target, char **given)
{
    if (*given == NULL)
        return;
    g_free(*target);
    *target = g_steal_pointer(given);
}

static void
drop_first(char **strings)
{
    g_free(strings[0]);
    for (gsize i = 0; strings[i] != NULL || i == 0; i++)
        strings[i] = strings[i + 1];
}

static bool
check_count(
    const ChCli *cli, const char *command, char **arguments, int min, int max, GError **error)
{
    const int n_arguments = (int)g_strv_length(arguments);

    if (n_arguments < min)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "an argument is missing; usage: chandler %s %s",
                       command,
                       cli->arguments);
    if (max >= 0 && n_arguments > max)
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "unexpected argument '%s': see 'chandler help %s'",
                       arguments[max],
                       command);
    return true;
}

bool
ch_cli_parse(ChCli *cli,
             int argc,
             char **argv,
             const GOptionEntry *entries,
             int min,
             int max,
             char ***out_arguments,
             GError **error)
{
    g_autofree char *state = NULL;
    g_autofree char *namespace_ = NULL;
    g_auto(GStrv) rest = g_new0(char *, (gsize)argc + 1);
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    const GOptionEntry common[] = {
        {"state", 0, 0, G_OPTION_ARG_FILENAME, &state, NULL, NULL},
        {"namespace", 'n', 0, G_OPTION_ARG_STRING, &namespace_, NULL, NULL},
        G_OPTION_ENTRY_NULL,
    };

    for (int i = 0; i < argc; i++)
        rest[i] = g_strdup(argv[i]);
    g_option_context_set_help_enabled(context, FALSE);
    if (entries != NULL)
        g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, common, NULL);
    if (!g_option_context_parse_strv(context, &rest, error))
        return false;
    take_string(&cli->namespace_, &namespace_);
    if (state != NULL) {
        g_free(cli->state_dir);
        cli->state_dir = g_canonicalize_filename(state, NULL);
    }
    drop_first(rest); /* the command's name */
    if (rest[0] != NULL && g_str_equal(rest[0], "--"))
        drop_first(rest);
    if (!check_count(cli, argv[0], rest, min, max, error))
        return false;
    *out_arguments = g_steal_pointer(&rest);
    return true;
}

char *
ch_cli_path(const ChCli *cli, const char *name)
{
    return g_build_filename(cli->state_dir, name, NULL);
}

bool
ch_cli_has_pods(const ChCli *cli)
{
    g_autofree char *path = ch_cli_path(cli, "podrunner/run");
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);

    return dir != NULL && g_dir_read_name(dir) != NULL;
}

char *
ch_cli_find_program(const char *name, GError **error)
{
    static const char *const places[] = {".", "../libexec/chandler", "../libexec"};
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = self != NULL ? g_path_get_dirname(self) : g_strdup("/");
    char *found;

    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *path = g_build_filename(dir, places[i], name, NULL);

        if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
            return g_canonicalize_filename(path, NULL);
    }
    found = g_find_program_in_path(name);
    if (found == NULL)
        ch_fail(error,
                CH_ERROR_NOT_FOUND,
                "the program %s is missing: it belongs beside %s, or into PATH",
                name,
                self != NULL ? self : "chandler");
    return found;
}

void
ch_cli_wait_ms(int ms)
{
    (void)poll(NULL, 0, ms); /* EINTR is as good as the time's end */
}
