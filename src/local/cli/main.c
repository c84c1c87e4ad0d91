/* SPDX-License-Identifier: Apache-2.0 */

/* chandler: virtual machines on one machine. The table of commands. */

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "local/cli/cli.h"

#define VERSION "0.1.0"

/* clang-format off */
static const ChCliCommand commands[] = {
    {"up",         "[--port N] [--emulation auto|on|off] [--pod-network CIDR[,CIDR]]", "start the API server, the agent and the pod runner", ch_cmd_up},
    {"down",       "[--keep-vms]", "shut the VMs down and delete them, then stop everything else", ch_cmd_down},
    {"run",        "FILE...",      "apply manifests and watch their VMs start", ch_cmd_run},
    {"apply",      "FILE...",      "create or change what the manifests describe", ch_cmd_apply},
    {"get",        "[TYPE [NAME]] [-A] [-o json]", "list VMs, or pods, nodes, events, ...; -A: of all namespaces", ch_cmd_get},
    {"delete",     "[TYPE] NAME... [--no-wait]", "shut a VM down and remove it", ch_cmd_delete},
    {"attach",     "VM CLAIM|PATH|--network DEFINITION [--name NAME] [--bus virtio|scsi] [--read-only] [--shareable] [--mac MAC] [--no-wait] [--timeout SECONDS]", "plug something into a running VM: a volume (a PersistentVolumeClaim, or a raw image, block device or directory of this machine), or a network (a NetworkAttachmentDefinition)", ch_cmd_attach},
    {"detach",     "VM NAME [--network] [--no-wait] [--timeout SECONDS]", "take the volume or network of that name out again", ch_cmd_detach},
    {"console",    "NAME [--log]", "the guest's serial console (Ctrl-] leaves); --log: what it said so far", ch_cmd_console},
    {"timeline",   "NAME",         "how the start of a VM went", ch_cmd_timeline},
    {"supervise",  "", NULL, ch_cmd_supervise},
    {"bootstrap",  "", NULL, ch_cmd_bootstrap},
    {"agent-root", "", NULL, ch_cmd_agent_root},
};
/* clang-format on */

static void
print_command(FILE *file, const ChCliCommand *command)
{
    fprintf(file, "  %s %s\n      %s\n", command->name, command->arguments, command->help);
}

static void
print_help(FILE *file)
{
    fputs("usage: chandler COMMAND [--state DIR] [--namespace NAME] ...\n\n", file);
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (commands[i].help != NULL)
            print_command(file, &commands[i]);
    }
    fputs("  version\n  help\n\n"
          "Everything is kept below --state, or $CHANDLER_STATE, or " CH_DEFAULT_STATE ".\n",
          file);
}

static const ChCliCommand *
find_command(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (g_str_equal(commands[i].name, name))
            return &commands[i];
    }
    return NULL;
}

static bool
is_one_of(const char *text, const char *a, const char *b, const char *c)
{
    return g_str_equal(text, a) || g_str_equal(text, b) || g_str_equal(text, c);
}

/* What follows "--" is no option of ours. */
static bool
wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && !g_str_equal(argv[i], "--"); i++) {
        if (is_one_of(argv[i], "--help", "-h", "-?"))
            return true;
    }
    return false;
}

static int
run(const ChCliCommand *command, int argc, char **argv)
{
    const char *state = g_getenv("CHANDLER_STATE");
    ChCli cli = {.state_dir = g_canonicalize_filename(
                     state != NULL && *state != '\0' ? state : CH_DEFAULT_STATE, NULL),
                 .namespace_ = g_strdup(CH_DEFAULT_NAMESPACE),
                 .arguments = command->arguments};
    g_autoptr(GError) error = NULL;
    const bool is_done = command->run(&cli, argc, argv, &error);

    if (!is_done)
        fprintf(stderr, "chandler: %s\n", error->message);
    g_free(cli.state_dir);
    g_free(cli.namespace_);
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* What somebody means who knows kubectl, virtctl or docker. */
static const char *
hint_for(const char *name)
{
    static const char *const hints[][2] = {
        {"list", "get"},
        {"ls", "get"},
        {"ps", "get"},
        {"create", "apply FILE"},
        {"start", "run FILE"},
        {"stop", "delete NAME"},
        {"rm", "delete NAME"},
        {"destroy", "delete NAME"},
        {"describe", "get events' and 'chandler get vmi NAME -o json"},
        {"logs", "console NAME --log"},
        {"addvolume", "attach VM PATH"},
        {"removevolume", "detach VM VOLUME"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(hints); i++) {
        if (g_str_equal(hints[i][0], name))
            return hints[i][1];
    }
    return "help";
}

int
main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    const ChCliCommand *command = find_command(name);

    ch_log_init("chandler");
    ch_log_set_verbosity(1);
    if (command != NULL && command->help != NULL && wants_help(argc - 1, argv + 1)) {
        print_command(stdout, command);
        return EXIT_SUCCESS;
    }
    if (command != NULL)
        return run(command, argc - 1, argv + 1);
    if (is_one_of(name, "version", "--version", "-V")) {
        puts("chandler " VERSION);
        return EXIT_SUCCESS;
    }
    if (is_one_of(name, "help", "--help", "-h")) {
        command = argc > 2 ? find_command(argv[2]) : NULL;
        if (command != NULL && command->help != NULL) {
            print_command(stdout, command);
            return EXIT_SUCCESS;
        }
        print_help(stdout);
        return EXIT_SUCCESS;
    }
    if (*name == '-')
        fprintf(stderr,
                "chandler: the command comes before options such as '%s': see 'chandler help'\n",
                name);
    else
        fprintf(stderr,
                "chandler: there is no command '%s': see 'chandler %s'\n",
                name,
                hint_for(name));
    return EXIT_FAILURE;
}
