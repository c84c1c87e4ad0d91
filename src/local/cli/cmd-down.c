/* SPDX-License-Identifier: Apache-2.0 */

/* down: VMs first, as their guests need the agent to shut down; then everything else. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/linux/mount-space.h"
#include "lib/linux/pidfd.h"
#include "local/cli/cli.h"
#include "local/cli/lock.h"
#include "local/cli/node-network.h"
#include "local/cli/pod-bridges.h"
#include "local/cli/resource.h"
#include "local/cli/vms.h"

#define VM_LIMIT_US  (180 * CH_SECOND_US)
#define END_LIMIT_US (45 * CH_SECOND_US)
#define POLL_MS      50

/* All at once, then one after the other is waited for. */
static bool
delete_vms(ChClient *client, GError **error)
{
    g_autofree char *path = ch_cli_resource_path(ch_cli_vmis, NULL, NULL);
    g_autoptr(ChJson) list = ch_client_get(client, path, error);
    const ChJson *items = ch_json_at(list, "items");

    for (int is_waiting = 0; list != NULL && is_waiting < 2; is_waiting++) {
        for (gsize i = 0; i < ch_json_length(items); i++) {
            const ChJson *vmi = ch_json_item(items, i);
            const char *name = ch_json_string_at(vmi, "metadata", "name");
            g_autofree char *vm_path = ch_cli_resource_path(
                ch_cli_vmis, ch_json_string_at(vmi, "metadata", "namespace"), name);
            g_autoptr(GError) failure = NULL;

            if (is_waiting == 0)
                printf("stopping VM %s\n", name);
            fflush(stdout);
            if (!ch_vm_delete(client, vm_path, name, is_waiting ? VM_LIMIT_US : 0, &failure) &&
                !ch_client_is_not_found(failure)) {
                g_propagate_error(error, g_steal_pointer(&failure));
                return false;
            }
        }
    }
    return list != NULL;
}

static bool
stop_supervisor(const ChCli *cli, pid_t pid, GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + END_LIMIT_US;
    ch_autofd int pidfd = pidfd_open(pid, 0);
    pid_t holder = 0;
    int result;

    /* The descriptor pins the process; that it still holds the lock proves that it is the one. */
    if (pidfd < 0 || !ch_lock_is_held(cli->state_dir, &holder) || holder != pid)
        return true;
    result = ch_pidfd_kill(pidfd, SIGTERM);
    if (result < 0)
        return ch_fail_errno(error, -result, "stop process %d", (int)pid);
    while (ch_lock_is_held(cli->state_dir, NULL)) {
        if (ch_time_now_us() > deadline_us)
            return ch_fail(error,
                           CH_ERROR_TIMEOUT,
                           "process %d does not end: see %s/log/supervisor.log",
                           (int)pid,
                           cli->state_dir);
        ch_cli_wait_ms(POLL_MS);
    }
    return true;
}

/* What `up` and the pods made on this machine. */
static void
tidy_node(const ChCli *cli)
{
    g_autofree char *pods = ch_cli_path(cli, CH_PODS_DIR);
    const int result = ch_mount_unshare(pods);

    if (result < 0 && result != -ENOENT)
        ch_log_warning(NULL, NULL, "ignoring that '%s' stays mounted", pods);
    ch_pod_bridges_remove(cli); /* first: bridges of others keep forwarding on */
    ch_node_network_down(cli);
}

bool
ch_cmd_down(ChCli *cli, int argc, char **argv, GError **error)
{
    gboolean keeps_vms = FALSE;
    const GOptionEntry entries[] = {{"keep-vms", 0, 0, G_OPTION_ARG_NONE, &keeps_vms, NULL, NULL},
                                    G_OPTION_ENTRY_NULL};
    g_auto(GStrv) arguments = NULL;
    g_autoptr(ChClient) client = NULL;
    pid_t pid = 0;

    if (!ch_cli_parse(cli, argc, argv, entries, 0, 0, &arguments, error))
        return false;
    if (!ch_lock_is_held(cli->state_dir, &pid)) {
        printf("chandler is not up (state %s)%s\n",
               cli->state_dir,
               ch_cli_has_pods(cli) && !keeps_vms
                   ? "; VMs are left: 'chandler up', then 'chandler down' ends them"
                   : "");
        if (!ch_cli_has_pods(cli))
            tidy_node(cli);
        return true;
    }
    if (!keeps_vms) {
        client = ch_client_new(cli, error);
        if (client == NULL || !delete_vms(client, error)) {
            g_prefix_error(error, "the VMs cannot be stopped ('--keep-vms' leaves them): ");
            return false;
        }
    }
    if (!stop_supervisor(cli, pid, error))
        return false;
    if (!keeps_vms) /* with the VMs went their pods, who need it */
        tidy_node(cli);
    puts(keeps_vms ? "chandler is down; its VMs run on, and are found again by 'chandler up'"
                   : "chandler is down");
    return true;
}
