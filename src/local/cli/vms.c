/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/vms.h"

#include "lib/base/errors.h"
#include "lib/base/time.h"
#include "local/cli/resource.h"

#define POLL_MS 100

ChJson *
ch_vm_get(ChClient *client, const ChCli *cli, const char *name, GError **error)
{
    g_autofree char *path = ch_cli_resource_path(ch_cli_vmis, cli->namespace_, name);
    g_autoptr(GError) failure = NULL;
    ChJson *vmi = ch_client_get(client, path, &failure);

    if (vmi != NULL)
        return vmi;
    if (ch_client_is_not_found(failure))
        ch_fail(error,
                CH_ERROR_NOT_FOUND,
                "there is no VM '%s' in namespace '%s': 'chandler get' lists them",
                name,
                cli->namespace_);
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
}

const char *
ch_vm_phase(const ChJson *vmi)
{
    const char *phase = ch_json_string_at(vmi, "status", "phase");

    return phase != NULL ? phase : "";
}

bool
ch_vm_is_final(const ChJson *vmi)
{
    return g_str_equal(ch_vm_phase(vmi), "Succeeded") || g_str_equal(ch_vm_phase(vmi), "Failed");
}

const char *
ch_vm_pod_uid(const ChJson *vmi)
{
    ChJsonIter iter;
    const char *uid = NULL;
    ChJson *node = NULL;

    ch_json_iter_init(&iter, ch_json_at(vmi, "status", "activePods"));
    return ch_json_iter_next(&iter, &uid, &node) ? uid : NULL;
}

const ChJson *
ch_vm_condition(const ChJson *vmi, const char *type)
{
    return ch_json_find(ch_json_at(vmi, "status", "conditions"), "type", type);
}

bool
ch_vm_delete(
    ChClient *client, const char *path, const char *label, int64_t limit_us, GError **error)
{
    const int64_t deadline_us = ch_time_now_us() + limit_us;
    g_autoptr(ChJson) answer =
        ch_client_request(client, &(ChClientRequest){.method = "DELETE", .path = path}, error);
    g_autoptr(GError) failure = NULL;

    if (answer == NULL)
        return false;
    while (limit_us > 0) {
        g_autoptr(ChJson) object = ch_client_get(client, path, &failure);

        if (ch_client_is_not_found(failure))
            return true;
        if (failure != NULL) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        if (ch_time_now_us() > deadline_us)
            return ch_fail(error,
                           CH_ERROR_TIMEOUT,
                           "%s is still there after %" G_GINT64_FORMAT " s; it goes on ending",
                           label,
                           limit_us / CH_SECOND_US);
        ch_cli_wait_ms(POLL_MS);
    }
    return true;
}
