/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cli: what all commands of `chandler` share: their table, the global options, paths.
 *
 * Thread: the command's, which is the only one that sees these.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_DEFAULT_STATE     "/var/lib/chandler"
#define CH_DEFAULT_NAMESPACE "default"
#define CH_DEFAULT_PORT      7443
#define CH_PODS_DIR          "podrunner/pods" /* below the state directory, as kubelet's */

/* What the person asked for besides the command's own arguments. */
typedef struct {
    char *state_dir;       /* absolute */
    char *namespace_;      /* --namespace */
    const char *arguments; /* those that the command takes, for messages */
} ChCli;

/* @argv: the command's name first. Returns: false with a sentence for the person */
typedef bool (*ChCommandFunc)(ChCli *cli, int argc, char **argv, GError **error);

typedef struct {
    const char *name;
    const char *arguments; /* for help */
    const char *help;      /* NULL: not for people, not listed */
    ChCommandFunc run;
} ChCliCommand;

/* The commands, each in a file of its own. */
bool ch_cmd_up(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_down(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_run(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_apply(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_get(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_delete(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_attach(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_detach(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_console(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_timeline(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_supervise(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_bootstrap(ChCli *cli, int argc, char **argv, GError **error);
bool ch_cmd_agent_root(ChCli *cli, int argc, char **argv, GError **error);

/**
 * ch_cli_parse: the command's options, and --state and --namespace anywhere among them.
 * @entries: (nullable): the command's own
 * @min, @max: how many other arguments there must be; @max < 0: any number
 * @out_arguments: (out) (transfer full): these, NULL-terminated
 */
bool ch_cli_parse(ChCli *cli,
                  int argc,
                  char **argv,
                  const GOptionEntry *entries,
                  int min,
                  int max,
                  char ***out_arguments,
                  GError **error);

/* (transfer full): a path below the state directory. */
char *ch_cli_path(const ChCli *cli, const char *name);

/* Whether pods are there, or were: they outlive a crash, and `down --keep-vms`. */
bool ch_cli_has_pods(const ChCli *cli);

/* (transfer full): one of our programs: beside this one, in ../libexec/chandler, or in PATH. */
char *ch_cli_find_program(const char *name, GError **error);

/* Sleeps that long; a signal ends it early. */
void ch_cli_wait_ms(int ms);
