/* SPDX-License-Identifier: Apache-2.0 */

/*
 * act-sync: prepares the pod of a VM that starts, and tells its launcher what the VM shall be. Spec
 * 01 §22.
 */

#include <string.h>

#include "handler/launcher/options.h"
#include "handler/launcher/rpc.h"
#include "handler/pod/container-disks.h"
#include "handler/pod/host-disk.h"
#include "handler/pod/network-filter.h"
#include "handler/pod/network.h"
#include "handler/pod/ownership.h"
#include "handler/pod/pod.h"
#include "handler/reconcile/act-hotplug.h"
#include "handler/reconcile/pass.h"
#include "handler/reconcile/sriov-plug.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/time.h"

#define DISKS_RETRY_US CH_SECOND_US
#define NIC_RETRY_US   (5 * CH_SECOND_US) /* QEMU takes no second request before */

static ChPodNetworkOutcome
change_network(const ChPass *pass, ChPod *pod, ChNetworkRun run, GError **error)
{
    const ChPodNetworkOptions options = {
        .private_dir = pass->env->private_dir,
        .own_ip = pass->env->own_ip,
        .config = pass->config,
    };

    return ch_pod_network_set_up(pod, pass->document, run, &options, error);
}

/* Spec 01 §22.2 step 6. */
static ChActResult
set_up_network(const ChPass *pass, ChPod *pod)
{
    static const ChSyncOutcome outcomes[] = {
        [CH_POD_NETWORK_OK] = CH_SYNC_OK,
        [CH_POD_NETWORK_RETRY] = CH_SYNC_FAILED,
        [CH_POD_NETWORK_CRITICAL] = CH_SYNC_CRITICAL_NETWORK,
    };
    ChActResult result = {CH_SYNC_OK, NULL};

    result.outcome = outcomes[change_network(pass, pod, CH_NETWORK_RUN_START, &result.error)];
    if (result.error != NULL)
        g_prefix_error(&result.error, "failed to configure vmi network: ");
    return result;
}

/* Spec 01 §22.1 step 6: networks come and go while the VM runs. What fails is told, and the VM goes
 * on, with a critical error too. Returns: (transfer full) (nullable): it */
static GError *
update_network(const ChPass *pass, ChPod *pod)
{
    GError *error = NULL;

    if (change_network(pass, pod, CH_NETWORK_RUN_UPDATE, &error) == CH_POD_NETWORK_OK)
        return NULL;
    ch_pass_record(pass, ch_event_new(CH_EVENT_NIC_HOTPLUG, error->message));
    return error;
}

/* Spec 01 §22.2 step 7. */
static ChActResult
take_ownership(const ChPass *pass, ChPod *pod, bool is_nonroot)
{
    static const ChSyncOutcome outcomes[] = {
        [CH_OWNERSHIP_OK] = CH_SYNC_OK,
        [CH_OWNERSHIP_RETRY] = CH_SYNC_FAILED,
        [CH_OWNERSHIP_CRITICAL] = CH_SYNC_CRITICAL_NETWORK,
    };
    const ChOwnershipOptions options = {
        .is_nonroot = is_nonroot,
        .use_emulation = pass->config->use_emulation,
        .is_mshv = g_str_equal(ch_cluster_config_hypervisor(pass->config), "hyperv-direct"),
        .disk_reserve = pass->config->reserved_pvc_bytes,
        .disk_tolerated_percent = (int)pass->config->pvc_tolerated_percent,
    };
    const ChLogContext context = ch_pass_log_context(pass);
    g_autoptr(GPtrArray) tolerated = g_ptr_array_new_with_free_func(g_free);
    ChActResult result = {CH_SYNC_OK, NULL};

    result.outcome = outcomes[ch_ownership_apply(
        pod, ch_pass_launcher_document(pass), &options, tolerated, &result.error)];
    for (guint i = 0; i < tolerated->len; i++) {
        ch_log_info(&context, "%s", (const char *)tolerated->pdata[i]);
        ch_pass_record(pass, ch_event_new(CH_EVENT_SMALL_VOLUME, tolerated->pdata[i]));
    }
    return result;
}

/* Step 9 of §22. A launcher that answers before it reports its domain has defined it once. */
static void
note_sync(const ChPass *pass, bool is_complete)
{
    bool is_first;

    if (pass->decision.action == CH_ACTION_UPDATE) {
        ch_controller_forget_sync(pass->controller, pass->vmi.uid);
        return;
    }
    is_first = ch_controller_note_sync(pass->controller, pass->vmi.uid, is_complete);
    if (is_first && ch_domain_live(pass->domain) == NULL)
        ch_pass_record(pass, ch_event_new(CH_EVENT_CREATED, NULL));
}

/* Steps 3, 8 and 9 of §22. */
static ChActResult
sync_vmi(ChPass *pass, const ChLauncherClient *client)
{
    g_autofree char *json = ch_act_vmi_json(pass, pass->vmi.uid);
    Kubevirt__Cmd__V1__VirtualMachineOptions *options = ch_launcher_options_new(
        pass->config, pass->env->capabilities, pass->plugins, pass->document);
    GError *error = NULL;
    bool ok = ch_launcher_send_vmi(
        client->channel, CH_LAUNCHER_RPC_SYNC, json, strlen(json), options, &error);

    ch_launcher_options_free(options);
    CH_CRASH_POINT("sync/sent");
    if (!ok && strstr(error->message, "EFI OVMF rom missing") != NULL) {
        g_prefix_error(&error, "mismatch of Secure Boot setting and bootloaders: ");
        return (ChActResult){CH_SYNC_SECURE_BOOT, error};
    }
    if (ok) {
        ch_controller_stage(pass->controller, pass, CH_STAGE_SYNCED);
        ok = ch_act_keep_house(pass, client->pod, &error); /* step 10 */
        note_sync(pass, ok);
    }
    return ch_act_result(ok, error);
}

/* Spec 01 §22.2 steps 2 and 3. @out_is_ready: whether the start goes on */
static ChActResult
mount_disks(ChPass *pass, const ChLauncherClient *client, bool *out_is_ready)
{
    const ChContainerDiskEnv env = {
        .hands = pass->env->hands,
        .private_dir = pass->env->private_dir,
        .pods_dir = pass->env->pods_dir,
    };
    const bool image_volume = ch_cluster_config_has_gate(pass->config, "ImageVolume");
    GError *error = NULL;
    const ChContainerDisksOutcome outcome = ch_container_disks_prepare(
        &env, pass->document, image_volume, ch_time_now_us() - client->since_us, &error);

    if (outcome == CH_CONTAINER_DISKS_WAIT)
        ch_pass_requeue_after(pass, DISKS_RETRY_US);
    *out_is_ready = outcome == CH_CONTAINER_DISKS_OK;
    return ch_act_result(outcome != CH_CONTAINER_DISKS_FAILED, error);
}

/* Spec 01 §22.2 and §22 step 7: the pod before the guest starts. @out_is_ready: with CH_SYNC_OK:
 * false: it has to wait, and will be tried again */
static ChActResult
prepare_start(ChPass *pass,
              const ChLauncherClient *client,
              ChActHotplug *hotplug,
              bool is_nonroot,
              bool *out_is_ready)
{
    ChPod *pod = client->pod;
    ChActResult result = mount_disks(pass, client, out_is_ready);

    if (result.outcome != CH_SYNC_OK || !*out_is_ready)
        return result;
    CH_CRASH_POINT("sync/disks");
    result = ch_act_hotplug_mount(hotplug);
    if (result.outcome != CH_SYNC_OK)
        return result;
    CH_CRASH_POINT("sync/volumes");
    *out_is_ready = ch_act_hotplug_is_ready(pass);
    if (!*out_is_ready)
        return result;
    result = set_up_network(pass, pod);
    if (result.outcome != CH_SYNC_OK)
        return result;
    ch_controller_stage(pass->controller, pass, CH_STAGE_NETWORK);
    CH_CRASH_POINT("sync/network");
    result = take_ownership(pass, pod, is_nonroot);
    if (result.outcome != CH_SYNC_OK)
        return result;
    if (!ch_act_adjust_resources(pass, pod, &result.error)) {
        g_prefix_error(&result.error, "failed to adjust resources: ");
        result.outcome = CH_SYNC_FAILED;
    }
    return result;
}

/* Steps 7 to 9 of §22, when all that the guest needs is there. */
static ChActResult
start_vmi(ChPass *pass, const ChLauncherClient *client)
{
    const ChLogContext context = ch_pass_log_context(pass);
    GError *error = NULL;

    CH_CRASH_POINT("sync/devices");
    if (ch_vmi_awaits_sev_session(&pass->vmi)) { /* its update brings the next pass */
        ch_log_info(&context, "waiting for the SEV session of %s", pass->name);
        return (ChActResult){CH_SYNC_OK, NULL};
    }
    if (!ch_act_run_hooks(pass, CH_HOOK_PRE_VM_START, pass->vmi.uid, &error))
        return ch_act_result(false, error);
    return sync_vmi(pass, client);
}

#define DUMP_DIR "/var/run/kubevirt/hotplug-disks/"

/* Until the dump is done each pass asks for it: the launcher knows whether it is under way. */
static bool
dump_memory(const ChPass *pass,
            const ChLauncherClient *client,
            const char *volume,
            const char *file,
            GError **error)
{
    g_autofree char *json = ch_act_vmi_json(pass, pass->vmi.uid);
    g_autofree char *path = g_strconcat(DUMP_DIR, volume, "/", file, NULL);
    const ChLauncherRequest request = {.vmi_json = json, .vmi_length = strlen(json), .path = path};

    if (ch_launcher_ping(client->channel, error) &&
        ch_launcher_call(client->channel, CH_LAUNCHER_RPC_MEMORY_DUMP, &request, NULL, error))
        return true;
    g_prefix_error(error, "failed to getting memory dump: ");
    return false;
}

/* Spec 01 §22.1 row 3. */
static bool
dump_memories(const ChPass *pass, const ChLauncherClient *client, GError **error)
{
    const ChJson *volumes = ch_json_at(pass->document, "status", "volumeStatus");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const char *name = ch_json_string_at(volume, "name");
        const char *file = ch_json_string_at(volume, "memoryDumpVolume", "targetFileName");

        if (name == NULL || file == NULL ||
            g_strcmp0(ch_json_string_at(volume, "phase"), "MemoryDumpInProgress") != 0)
            continue;
        if (!dump_memory(pass, client, name, file, error))
            return false;
    }
    return true;
}

/* Before devices are passed through to a guest that runs. A failure is told, and the devices are
 * tried all the same. */
static void
lock_memory(const ChPass *pass, ChPod *pod)
{
    g_autoptr(GError) error = NULL;

    if (!ch_act_adjust_resources(pass, pod, &error))
        ch_pass_record(pass, ch_event_new_custom("Warning", error->message, error->message));
}

static bool
send_devices(const ChPass *pass, const ChLauncherClient *client, GError **error)
{
    g_autofree char *json = ch_act_vmi_json(pass, pass->vmi.uid);

    if (!ch_launcher_ping(client->channel, error))
        return false;
    lock_memory(pass, client->pod);
    return ch_launcher_send_vmi(
        client->channel, CH_LAUNCHER_RPC_HOTPLUG_HOST_DEVICES, json, strlen(json), NULL, error);
}

/* Spec 01 §22.1 row 1, 04 §18: an error is no more than logged. The launcher answers before it has
 * done anything; the status of a later pass shows whether it has. */
static void
plug_sriov(ChPass *pass, const ChLauncherClient *client)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const char *uid = pass->vmi.uid;
    g_autoptr(GError) reason = NULL;
    int64_t delay_us;

    if (!ch_sriov_plug_is_due(pass->document)) {
        ch_controller_forget_sriov_plug(pass->controller, uid);
        return;
    }
    delay_us = ch_controller_ask_sriov_plug(pass->controller, uid);
    if (delay_us == 0) {
        if (!send_devices(pass, client, &reason))
            ch_log_error(&context, reason, "failed to hot-plug SR-IOV interfaces");
        delay_us = ch_controller_sriov_plug_tried(pass->controller, uid);
    }
    ch_pass_requeue_after(pass, MAX(delay_us, 0));
}

static ChActResult
update_vmi(ChPass *pass, const ChLauncherClient *client, ChActHotplug *hotplug)
{
    g_autoptr(GError) tolerated = NULL;
    ChActResult result;

    plug_sriov(pass, client);
    result = ch_act_hotplug_mount(hotplug);
    if (result.outcome != CH_SYNC_OK)
        return result;
    if (!dump_memories(pass, client, &result.error) ||
        !ch_downward_metrics_begin(pass->env->metrics, pass->document, &result.error))
        return ch_act_result(false, result.error);
    tolerated = update_network(pass, client->pod);
    if (ch_network_awaits_guest(pass->document))
        ch_pass_requeue_after(pass, NIC_RETRY_US);
    result = sync_vmi(pass, client);
    if (result.outcome == CH_SYNC_OK)
        result = ch_act_hotplug_unmount(hotplug);
    if (result.outcome == CH_SYNC_OK && tolerated != NULL)
        return ch_act_result(false, g_steal_pointer(&tolerated));
    return result;
}

ChActResult
ch_act_sync(ChPass *pass)
{
    g_autoptr(GArray) pods = NULL;
    const ChLauncherVmi vmi = ch_pass_launcher_vmi(pass, pass->vmi.uid, &pods);
    ChActResult result = {CH_SYNC_OK, NULL};
    g_autoptr(ChPodCgroup) cgroup = NULL;
    g_autoptr(ChLauncherClient) client =
        ch_launcher_clients_get(pass->env->clients, &vmi, &result.error);
    g_auto(ChActHotplug) hotplug = {0};
    bool is_ready = false;

    if (client == NULL) {
        g_prefix_error(&result.error, "unable to create virt-launcher client connection: ");
        result.outcome = CH_SYNC_FAILED;
        return result;
    }
    ch_controller_stage(pass->controller, pass, CH_STAGE_CONNECTED);
    CH_CRASH_POINT("sync/connected");
    if (!ch_host_disk_replace_claims(pass->document, &pass->launcher_document, &result.error)) {
        result.outcome = CH_SYNC_FAILED;
        return result;
    }
    cgroup = ch_act_open_cgroup(pass, client->pod, &result.error);
    if (cgroup == NULL) {
        result.outcome = CH_SYNC_FAILED;
        return result;
    }
    ch_act_hotplug_init(&hotplug, pass, cgroup);
    if (pass->decision.action == CH_ACTION_UPDATE)
        return update_vmi(pass, client, &hotplug);
    result = prepare_start(pass, client, &hotplug, vmi.is_nonroot, &is_ready);
    return result.outcome == CH_SYNC_OK && is_ready ? start_vmi(pass, client) : result;
}
