/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/vm-edit.h"

#include "lib/base/errors.h"
#include "local/cli/resource.h"
#include "local/cli/vms.h"

#define POLL_MS       100
#define MAX_CONFLICTS 20
#define HTTP_CONFLICT 409

static bool
edit_once(ChClient *client,
          const ChCli *cli,
          const char *vm,
          ChVmEditFunc func,
          gpointer data,
          GError **error)
{
    g_autofree char *path = ch_cli_resource_path(ch_cli_vmis, cli->namespace_, vm);
    g_autoptr(ChJson) vmi = ch_vm_get(client, cli, vm, error);
    g_autoptr(ChJson) stored = NULL;

    if (vmi == NULL)
        return false;
    if (ch_vm_is_final(vmi) || ch_json_at(vmi, "metadata", "deletionTimestamp") != NULL)
        return ch_fail(error, CH_ERROR_INVALID, "the VM '%s' has ended", vm);
    if (!func(vmi, data, error))
        return false;
    stored = ch_client_request(
        client, &(ChClientRequest){.method = "PUT", .path = path, .body = vmi}, error);
    return stored != NULL;
}

/* The agent and the pod runner write to it too. */
bool
ch_vm_edit(ChClient *client,
           const ChCli *cli,
           const char *vm,
           ChVmEditFunc func,
           gpointer data,
           GError **error)
{
    for (int i = 0;; i++) {
        g_autoptr(GError) failure = NULL;

        if (edit_once(client, cli, vm, func, data, &failure))
            return true;
        if (i == MAX_CONFLICTS || !g_error_matches(failure, CH_KUBE_ERROR, HTTP_CONFLICT)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        ch_cli_wait_ms(POLL_MS);
    }
}
