/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/observe.h"

#include <time.h>

#include "handler/launcher/client.h"
#include "handler/launcher/rpc.h"
#include "handler/pod/pod.h"
#include "handler/reconcile/act-hotplug.h"
#include "handler/reconcile/trackers.h"
#include "lib/base/errors.h"
#include "lib/base/time.h"

static ChGuestInfo *
fetch_guest_info(const ChPass *pass, GError **error)
{
    g_autoptr(GArray) pods = NULL;
    const ChLauncherVmi vmi = ch_pass_launcher_vmi(pass, pass->vmi.uid, &pods);
    g_autoptr(ChLauncherClient) client = ch_launcher_clients_get(pass->env->clients, &vmi, error);
    g_autofree char *text = NULL;

    if (client == NULL || !ch_launcher_get_guest_info(client->channel, &text, error))
        return NULL;
    return ch_guest_info_parse(text, -1, error);
}

/* Names a memory dump: in the time of where the agent runs (02 trap 11). */
static void
print_local_time(char *text, gsize size)
{
    const time_t now = (time_t)(ch_time_wall_us() / CH_SECOND_US);
    struct tm parts;

    if (localtime_r(&now, &parts) == NULL || strftime(text, size, "%Y%m%d-%H%M%S", &parts) == 0)
        text[0] = '\0';
}

/* --- the pod's files (02 §6.2, §6.3): what cannot be seen is only logged --- */

/* The first member that a volume has says what the launcher made of it. */
static const struct {
    const char *source;
    ChPodImage image;
    bool is_of_vmi;
} images[] = {
    {"cloudInitNoCloud", CH_POD_IMAGE_NO_CLOUD, true},
    {"cloudInitConfigDrive", CH_POD_IMAGE_CONFIG_DRIVE, true},
    {"configMap", CH_POD_IMAGE_CONFIG_MAP, false},
    {"downwardAPI", CH_POD_IMAGE_DOWNWARD_API, false},
    {"secret", CH_POD_IMAGE_SECRET, false},
    {"serviceAccount", CH_POD_IMAGE_SERVICE_ACCOUNT, false},
    {"sysprep", CH_POD_IMAGE_SYSPREP, false},
};

static void
see_size(const ChPass *pass, ChPod *pod, const ChJson *volume, ChObservations *out)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const char *name = ch_json_string_at(volume, "name");
    g_autoptr(GError) reason = NULL;
    int64_t size;

    for (gsize i = 0; i < G_N_ELEMENTS(images); i++) {
        ChVolumeSize seen = {.volume = name};

        if (ch_json_at(volume, images[i].source) == NULL)
            continue;
        if (!ch_pod_stat_image(pod,
                               images[i].image,
                               pass->namespace_,
                               images[i].is_of_vmi ? pass->name : name,
                               &size,
                               &reason)) {
            ch_log_warning(&context, reason, "failed to determine file size for volume %s", name);
            return;
        }
        seen.size_bytes = size;
        if (size >= 0)
            g_array_append_val(out->sizes, seen);
        return;
    }
}

/* One of the VMI's pods is on its node. */
static bool
has_pod_here(const ChPass *pass)
{
    const char *uid;
    ChJson *node;
    ChJsonIter iter;

    ch_json_iter_init(&iter, ch_json_at(pass->document, "status", "activePods"));
    while (ch_json_iter_next(&iter, &uid, &node))
        if (g_strcmp0(ch_json_as_string(node), pass->env->node_name) == 0)
            return true;
    return false;
}

static void
see_sizes(const ChPass *pass, ChPod *pod, ChObservations *out)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const bool is_told = pass->is_news || ch_log_wants(3); /* not with each pass */
    const ChJson *disks = ch_json_at(pass->document, "spec", "domain", "devices", "disks");
    const ChJson *volumes = ch_json_at(pass->document, "spec", "volumes");

    out->sizes = g_array_new(FALSE, FALSE, sizeof(ChVolumeSize));
    if (!has_pod_here(pass)) {
        if (is_told)
            ch_log_warning(&context, NULL, "failed to find pod UID for VMI %s", pass->name);
        return;
    }
    for (gsize i = 0; i < ch_json_length(disks); i++) {
        const char *name = ch_json_string_at(ch_json_item(disks, i), "name");
        const ChJson *volume = name != NULL ? ch_json_find(volumes, "name", name) : NULL;

        if (volume != NULL)
            see_size(pass, pod, volume, out);
        else if (is_told)
            ch_log_warning(
                &context, NULL, "No matching volume with name %s found", name != NULL ? name : "");
    }
}

static void
see_label(const ChPass *pass, ChPod *pod, ChObservations *out)
{
    const ChLogContext context = ch_pass_log_context(pass);
    g_autoptr(GError) reason = NULL;

    out->selinux_context = g_strdup(ch_pod_peek_label(pod, &reason));
    if (out->selinux_context == NULL)
        ch_log_error(&context, reason, "couldn't find the SELinux context for %s", pass->name);
}

/* Only of a launcher that is connected to: nobody connects to one in order to look at it. */
static void
see_pod(const ChPass *pass, ChObservations *out)
{
    const bool wants_label = pass->env->selinux_context == NULL;
    const bool wants_sizes = pass->vmi.phase == CH_PHASE_RUNNING;
    g_autoptr(ChLauncherPeer) peer =
        wants_label || wants_sizes
            ? ch_launcher_clients_find_peer(pass->env->clients, pass->vmi.uid)
            : NULL;
    ChPod *pod = peer != NULL ? ch_launcher_peer_pod(peer) : NULL;

    if (pod != NULL && wants_sizes)
        see_sizes(pass, pod, out);
    if (pod != NULL && wants_label)
        see_label(pass, pod, out);
}

/* In the order of 02 §3: what an earlier step did is not taken back when a later one fails. */
bool
ch_observe(ChPass *pass, const ChDomain *domain, ChObservations *out, GError **error)
{
    const ChReconcileEnv *env = pass->env;

    *out = (ChObservations){0};
    see_pod(pass, out);
    out->mounted = ch_act_hotplug_look(pass);
    print_local_time(out->local_timestamp, sizeof(out->local_timestamp));
    if (ch_status_wants_trackers_marked(&pass->vmi, domain)) {
        if (!ch_trackers_mark(env->kube, pass->namespace_, pass->name, error))
            return false;
        out->trackers_marked = true;
    }
    if (domain != NULL)
        out->addresses = ch_pod_address_list_load(env->private_dir, pass->document);
    ch_guest_panics_note(env->panics, pass->namespace_, pass->name, pass->vmi.uid, domain);
    if (ch_status_wants_guest_info(domain)) {
        out->guest_info = fetch_guest_info(pass, error);
        return out->guest_info != NULL;
    }
    return true;
}

/* As the status wants them. */
static void
take_sums(ChObservations *out)
{
    const ChContainerDiskSums *sums = out->sums;

    out->disk_sums = g_array_new(FALSE, FALSE, sizeof(ChVolumeChecksum));
    for (guint i = 0; i < sums->disks->len; i++) {
        const ChContainerDiskSum *sum = &g_array_index(sums->disks, ChContainerDiskSum, i);
        const ChVolumeChecksum taken = {sum->volume, sum->crc32};

        g_array_append_val(out->disk_sums, taken);
    }
    out->checksums = (ChChecksums){
        .disks = (const ChVolumeChecksum *)(gpointer)out->disk_sums->data,
        .n_disks = out->disk_sums->len,
        .kernel = sums->has_kernel ? &sums->kernel : NULL,
        .initrd = sums->has_initrd ? &sums->initrd : NULL,
    };
}

bool
ch_observe_checksums(const ChPass *pass, ChObservations *out, GError **error)
{
    const ChLogContext context = ch_pass_log_context(pass);
    const ChContainerDiskEnv env = {
        .hands = pass->env->hands,
        .private_dir = pass->env->private_dir,
        .pods_dir = pass->env->pods_dir,
    };
    g_autoptr(GError) reason = NULL;
    bool is_gone = false;

    out->sums = ch_container_disks_sum(&env, pass->document, &is_gone, &reason);
    if (out->sums == NULL && !is_gone) {
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    if (out->sums != NULL)
        take_sums(out);
    else
        ch_log_warning(&context,
                       reason,
                       "cannot compute checksums as containerdisk/kernelboot containers seem to "
                       "have been terminated");
    return true;
}

void
ch_observations_clear(ChObservations *observations)
{
    g_clear_pointer(&observations->addresses, ch_pod_address_list_free);
    g_clear_pointer(&observations->guest_info, ch_guest_info_free);
    g_clear_pointer(&observations->selinux_context, g_free);
    g_clear_pointer(&observations->sizes, g_array_unref);
    g_clear_pointer(&observations->mounted, g_strfreev);
    g_clear_pointer(&observations->disk_sums, g_array_unref);
    g_clear_pointer(&observations->sums, ch_container_disk_sums_free);
}

void
ch_observations_fill(const ChObservations *observations, ChStatusInput *input)
{
    input->guest_info = observations->guest_info;
    input->trackers_marked = observations->trackers_marked;
    input->mounted_volumes = (const char *const *)observations->mounted;
    if (observations->selinux_context != NULL)
        input->selinux_context = observations->selinux_context;
    input->checksums = observations->sums != NULL ? &observations->checksums : NULL;
    if (observations->sizes != NULL) {
        input->iso_sizes = (const ChVolumeSize *)(gpointer)observations->sizes->data;
        input->n_iso_sizes = observations->sizes->len;
    }
    if (observations->local_timestamp[0] != '\0')
        input->local_timestamp = observations->local_timestamp;
    if (observations->addresses != NULL)
        input->pod_addresses =
            ch_pod_address_list_peek(observations->addresses, &input->n_pod_addresses);
}
