/* SPDX-License-Identifier: Apache-2.0 */

/* run: up if needed, apply, watch the VMs start, and show how it went. */

#include <stdio.h>

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/apply.h"
#include "local/cli/cli.h"
#include "local/cli/lock.h"
#include "local/cli/resource.h"
#include "local/cli/start-failure.h"
#include "local/cli/timeline.h"
#include "local/cli/vms.h"

#define RUNNING_LIMIT_US (300 * CH_SECOND_US)
#define PATIENCE_US      (15 * CH_SECOND_US)
#define AGENT_LIMIT_S    90
#define POLL_MS          100

/* One VM on its way. */
typedef struct {
    const ChCli *cli;
    ChClient *client;
    const char *name;
    char *uid;
    char *last; /* what was printed last */
    int64_t begin_us;
    int64_t failing_us; /* since when the status shows a failure; 0: it shows none */
} Start;

static bool
ensure_up(ChCli *cli, GError **error)
{
    char *argv[] = {(char *)"up", NULL};

    if (ch_lock_is_held(cli->state_dir, NULL))
        return true;
    return ch_cmd_up(cli, 1, argv, error);
}

/* Prints what is new, with the seconds since the beginning. */
static void
show(Start *start, const char *text)
{
    if (g_strcmp0(start->last, text) == 0)
        return;
    g_free(start->last);
    start->last = g_strdup(text);
    printf("%7.1f s  %s: %s\n",
           (double)(ch_time_now_us() - start->begin_us) / (double)CH_SECOND_US,
           start->name,
           text);
    fflush(stdout);
}

/* What the agent fails at, it tries again at once; what the pod runner misses (an image) has to be
 * brought by somebody. */
static bool
is_lasting(Start *start, const ChJson *vmi)
{
    static const char *const hopeless[] = {
        "ErrImagePull",
        "CreateContainerError",
        "FailedCreate",
        "FailedCreatePodSandBox",
        "VolumeInUse",
    };
    const char *reason = ch_json_string_at(ch_vm_condition(vmi, "Synchronized"), "reason");
    const char *failure = ch_start_failure_now(vmi);
    const int64_t now_us = ch_time_now_us();

    if (failure == NULL) {
        start->failing_us = 0;
        return false;
    }
    if (ch_start_failure_is_final(failure))
        return true;
    for (gsize i = 0; i < G_N_ELEMENTS(hopeless); i++) {
        if (g_strcmp0(reason, hopeless[i]) == 0)
            return true;
    }
    if (start->failing_us == 0)
        start->failing_us = now_us;
    return now_us - start->failing_us > PATIENCE_US;
}

static bool
fail_for_good(const Start *start, const ChJson *vmi, GError **error)
{
    const ChCliResource *resource = ch_cli_resource_by_name("events");
    g_autofree char *path = ch_cli_resource_path(resource, start->cli->namespace_, NULL);
    g_autoptr(ChJson) events = ch_client_get(start->client, path, NULL);
    const char *reason = ch_start_failure_reason(vmi, events);

    return ch_fail(
        error,
        CH_ERROR_FAILED,
        "VM '%s' does not start: %s\n('chandler get events' tells more; 'chandler delete "
        "%s' removes it)",
        start->name,
        reason != NULL ? reason : "it ended",
        start->name);
}

/* The phase, and what is in the way for now. */
static void
show_state(Start *start, const ChJson *vmi)
{
    const char *phase = *ch_vm_phase(vmi) != '\0' ? ch_vm_phase(vmi) : "accepted";
    const char *failure = ch_start_failure_now(vmi);
    g_autofree char *text =
        failure != NULL ? g_strdup_printf("%s, but trying again: %s", phase, failure) : NULL;

    show(start, text != NULL ? text : phase);
}

static bool
wait_until_running(Start *start, GError **error)
{
    const int64_t deadline_us = start->begin_us + RUNNING_LIMIT_US;

    while (ch_time_now_us() < deadline_us) {
        g_autoptr(ChJson) vmi = ch_vm_get(start->client, start->cli, start->name, error);
        const char *phase = ch_vm_phase(vmi);

        if (vmi == NULL)
            return false;
        if (start->uid == NULL)
            start->uid = g_strdup(ch_json_string_at(vmi, "metadata", "uid"));
        if (ch_vm_is_final(vmi) || is_lasting(start, vmi))
            return fail_for_good(start, vmi, error);
        show_state(start, vmi);
        if (g_str_equal(phase, "Running"))
            return true;
        ch_cli_wait_ms(POLL_MS);
    }
    return ch_fail(error,
                   CH_ERROR_TIMEOUT,
                   "VM '%s' does not run yet; 'chandler get' and %s/log show where it is",
                   start->name,
                   start->cli->state_dir);
}

/* A guest need not have an agent, so that nothing fails here. */
static void
wait_for_guest_agent(Start *start, int limit_s)
{
    const int64_t deadline_us = ch_time_now_us() + limit_s * CH_SECOND_US;

    show(start, "the guest boots; waiting for its agent (Ctrl-C: do not wait)");
    while (ch_time_now_us() < deadline_us) {
        g_autoptr(ChJson) vmi = ch_vm_get(start->client, start->cli, start->name, NULL);
        const ChJson *connected = ch_vm_condition(vmi, "AgentConnected");

        if (vmi == NULL || ch_vm_is_final(vmi))
            return;
        if (g_strcmp0(ch_json_string_at(connected, "status"), "True") == 0) {
            show(start, "guest agent connected");
            ch_cli_wait_ms(POLL_MS); /* the agent's log line comes after what it tells of */
            return;
        }
        ch_cli_wait_ms(POLL_MS);
    }
    show(start, "no guest agent yet");
}

static bool
watch_start(ChClient *client, const ChCli *cli, const char *name, int agent_limit_s, GError **error)
{
    Start start = {.cli = cli, .client = client, .name = name, .begin_us = ch_time_now_us()};
    const bool is_running = wait_until_running(&start, error);

    if (is_running) {
        g_autofree char *text = NULL;

        wait_for_guest_agent(&start, agent_limit_s);
        text = ch_timeline_text(cli, cli->namespace_, name, start.uid);
        printf(
            "\nThe start of %s, in milliseconds since the agent first saw it:\n%s\n", name, text);
        printf("try: chandler console %s     chandler get     chandler delete %s\n", name, name);
    }
    g_free(start.uid);
    g_free(start.last);
    return is_running;
}

static bool
is_vmi(const ChManifest *manifest)
{
    return g_strcmp0(ch_json_string_at(manifest->object, "kind"), "VirtualMachineInstance") == 0;
}

bool
ch_cmd_run(ChCli *cli, int argc, char **argv, GError **error)
{
    int agent_limit_s = AGENT_LIMIT_S;
    gboolean ignored = FALSE;
    const GOptionEntry entries[] = {
        {"agent-timeout", 0, 0, G_OPTION_ARG_INT, &agent_limit_s, NULL, NULL},
        CH_APPLY_FILE_OPTION(&ignored),
        G_OPTION_ENTRY_NULL,
    };
    g_auto(GStrv) paths = NULL;
    g_autoptr(GArray) manifests = NULL;
    g_autoptr(ChClient) client = NULL;

    if (!ch_cli_parse(cli, argc, argv, entries, 1, -1, &paths, error))
        return false;
    manifests = ch_apply_load(paths, error);
    if (manifests == NULL || !ensure_up(cli, error))
        return false;
    client = ch_client_new(cli, error);
    if (client == NULL || !ch_apply_store(client, cli, manifests, error))
        return false;
    for (guint i = 0; i < manifests->len; i++) {
        const ChManifest *manifest = &g_array_index(manifests, ChManifest, i);
        const char *space = ch_json_string_at(manifest->object, "metadata", "namespace");
        ChCli there = *cli;

        there.namespace_ = space != NULL ? (char *)space : cli->namespace_;
        if (is_vmi(manifest) &&
            !watch_start(client,
                         &there,
                         ch_json_string_at(manifest->object, "metadata", "name"),
                         agent_limit_s,
                         error))
            return false;
    }
    return true;
}
