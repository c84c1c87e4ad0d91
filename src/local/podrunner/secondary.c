/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/secondary.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/vmi/nics.h"
#include "local/podrunner/api.h"
#include "local/podrunner/leases.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/pod-attach.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/secondary-plan.h"
#include "local/podrunner/troubles.h"
#include "local/podrunner/vmi-network.h"

#define MAX_DEVICES_BYTES (256u << 10)
#define PRIVATE_VOLUME    "private"           /* where the agent leaves the launcher something */
#define AGENTS_FILE       "vif-cache-%s.json" /* of a link; the last that goes */

/* --- definitions ------------------------------------------------------------------------------ */

static bool
define(const ChPassEnv *env, ChJson *attachment, GError **error)
{
    const char *full = ch_json_string_at(attachment, "definition");
    g_auto(GStrv) names = g_strsplit(full, "/", 2);
    g_autoptr(GError) failure = NULL;
    g_autoptr(ChJson) definition = ch_api_get_network(env->kube, names[0], names[1], &failure);

    if (ch_api_is_not_found(failure))
        return ch_fail(
            error, CH_ERROR_NOT_FOUND, "there is no NetworkAttachmentDefinition %s", full);
    if (definition == NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    return ch_multus_set_plugins(attachment, definition, env->network.lease_dir, error);
}

bool
ch_secondary_define(const ChPassEnv *env, ChJson *attachments, GError **error)
{
    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        ChJson *attachment = ch_json_item(attachments, i);

        if (define(env, attachment, error))
            continue;
        g_prefix_error(error, "network '%s': ", ch_json_string_at(attachment, "network"));
        return false;
    }
    return true;
}

/* --- annotations ------------------------------------------------------------------------------ */

static bool
annotate(const ChPassEnv *env, ChJson **pod, const char *key, const char *text, GError **error)
{
    ChJson *stored;

    if (g_strcmp0(ch_json_string_at(*pod, "metadata", "annotations", key), text) == 0)
        return true;
    stored = ch_api_annotate_pod(env->kube, *pod, key, text, error);
    if (stored == NULL)
        return false;
    ch_json_unref(*pod);
    *pod = stored;
    return true;
}

bool
ch_secondary_annotate(const ChPassEnv *env, const ChRecord *record, ChJson **pod, GError **error)
{
    const ChPodNetworkEnv *network = &env->network;
    const bool has_pod_network = network->network != NULL && !record->has_no_pod_network;
    g_autoptr(ChJson) attachments = ch_record_list(record->attachments);
    g_autoptr(ChJson) made = ch_secondary_made(attachments);
    g_autoptr(ChJson) result =
        record->cni_result != NULL ? ch_json_parse(record->cni_result, -1, NULL) : NULL;
    g_autofree char *wanted = ch_multus_networks_text(attachments);
    g_autofree char *status = ch_multus_status_text(
        &(ChMultusPodNetwork){has_pod_network ? network->network->bridge : NULL, result}, made);

    if (*pod == NULL ||
        (wanted == NULL &&
         ch_json_at(*pod, "metadata", "annotations", CH_MULTUS_STATUS_ANNOTATION) == NULL))
        return true;
    return annotate(env, pod, CH_MULTUS_NETWORKS_ANNOTATION, wanted, error) &&
           annotate(env, pod, CH_MULTUS_STATUS_ANNOTATION, status, error);
}

/* --- what the pod has of a network ------------------------------------------------------------ */

/* (transfer full) (nullable): /proc/PID/net/dev; NULL: the container has ended */
static char *
read_devices(const ChRecord *record)
{
    ch_autofd int pidfd = ch_container_open(record); /* the pid is this process's meanwhile */
    g_autofree char *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/net/dev", record->pid);

    return pidfd >= 0 ? ch_small_file_read(path, MAX_DEVICES_BYTES, NULL, NULL) : NULL;
}

static bool
has_agents_file(const ChPassEnv *env, const ChRecord *record, const ChJson *attachment)
{
    g_autofree char *dir = ch_pod_volume_dir(env->container.state_dir, record->uid, PRIVATE_VOLUME);
    g_autofree char *name = g_strdup_printf(AGENTS_FILE, ch_json_string_at(attachment, "link"));
    g_autofree char *path = g_build_filename(dir, name, NULL);
    struct stat st;

    return fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

typedef struct {
    bool is_free; /* the agent has nothing of it any more, or not yet */
    bool is_lost; /* nor is CNI's link there: it went by itself, or somebody wants it again after
                     the agent took its part away */
} Sight;

/* One look, since the agent renames links meanwhile; its file comes first and goes last. */
static Sight
look(const ChSecondary *secondary, const ChJson *attachment)
{
    g_autofree char *devices = read_devices(secondary->record);
    ChSecondaryLinks links;

    if (devices == NULL ||
        ch_secondary_is_in_guest(secondary->vmi, ch_json_string_at(attachment, "network")))
        return (Sight){false, false};
    links = ch_secondary_look(attachment, devices);
    if (links.has_links || has_agents_file(secondary->env, secondary->record, attachment))
        return (Sight){false, false};
    return (Sight){.is_free = true, .is_lost = !links.has_pod_link};
}

/* --- coming and going ------------------------------------------------------------------------- */

typedef struct {
    const ChSecondary *secondary;
    ChJson *list;     /* owned: the attachments */
    ChJson *troubles; /* owned */
    bool is_waiting;
} Work;

static void
note(Work *work, const char *network, const char *reason, GError *failure /* (transfer full) */)
{
    ch_json_append(work->troubles, ch_trouble_new(network, reason, failure->message));
    g_error_free(failure);
}

static bool
save(const Work *work, GError **error)
{
    ChRecord *record = work->secondary->record;

    ch_record_set_list(&record->attachments, work->list);
    return ch_record_save(record, work->secondary->env->container.state_dir, error);
}

static void
tell(const Work *work, const ChJson *attachment, const char *what)
{
    const ChRecord *record = work->secondary->record;
    const ChLogContext context = {.namespace_ = record->namespace_,
                                  .name = record->vmi_name,
                                  .kind = "VirtualMachineInstance",
                                  .uid = record->vmi_uid};

    ch_log_info(&context,
                "network %s: link %s of pod %s %s",
                ch_json_string_at(attachment, "network"),
                ch_json_string_at(attachment, "link"),
                record->name,
                what);
}

/* Plugins that fail are asked some times, then it goes without them. */
static bool
detach(Work *work, ChJson *attachment, GError **error)
{
    const ChPodNetworkEnv *env = &work->secondary->env->network;
    const ChRecord *record = work->secondary->record;
    GError *failure = NULL;

    if (ch_pod_detach_one(env, record, attachment, &failure))
        return true;
    if (ch_secondary_count_failure(attachment) < CH_POD_NETWORK_MAX_FAILED_DELS) {
        (void)save(work, NULL); /* only counts */
        g_propagate_error(error, failure);
        return false;
    }
    g_prefix_error(&failure, "given up, with its addresses freed: ");
    note(work, ch_json_string_at(attachment, "network"), CH_NIC_DETACH_FAILED, failure);
    ch_leases_free(env->lease_dir, record->uid, ch_json_string_at(attachment, "link"));
    return true;
}

static bool
take_back(Work *work, gsize index, GError **error)
{
    ChJson *attachment = ch_json_item(work->list, index);

    if (!detach(work, attachment, error))
        return false;
    /* The agent might have begun to plug it in just before it was to go. */
    if (ch_secondary_is_made(attachment) && !look(work->secondary, attachment).is_free) {
        work->is_waiting = true;
        return true;
    }
    tell(work, attachment, "removed");
    ch_json_remove_item(work->list, index);
    return save(work, error);
}

static bool
unplug(Work *work, gsize index, GError **error)
{
    const ChJson *attachment = ch_json_item(work->list, index);

    if (ch_secondary_is_made(attachment) && !look(work->secondary, attachment).is_free) {
        work->is_waiting = true;
        return true;
    }
    return take_back(work, index, error);
}

/* The agent would take what plugins did not take back for the new link. */
static bool
has_rest(const Work *work, const ChJson *wish)
{
    g_autofree char *devices = read_devices(work->secondary->record);

    return devices != NULL && ch_secondary_look(wish, devices).has_renamed;
}

static bool
check_new(const Work *work, const ChJson *wish, GError **error)
{
    const ChJson *vmi = work->secondary->vmi;

    return ch_vmi_check_networks(vmi, error) &&
           (!ch_vmi_has_disk(vmi, ch_json_string_at(wish, "network")) ||
            ch_fail(error,
                    CH_ERROR_EXISTS,
                    "the VM has a volume of this name, and its devices' names are of one set")) &&
           (!has_rest(work, wish) ||
            ch_fail(error,
                    CH_ERROR_EXISTS,
                    "the pod still has the link of an earlier network of this name, whose plugins "
                    "did not take it back: choose another name")) &&
           (ch_json_length(work->list) < CH_MULTUS_MAX_NETWORKS ||
            ch_fail(error,
                    CH_ERROR_LIMIT,
                    "there are more than %d secondary networks",
                    CH_MULTUS_MAX_NETWORKS));
}

/* (nullable): on record before CNI knows of it. */
static ChJson *
begin(Work *work, const ChJson *wish, GError **error)
{
    const ChPassEnv *env = work->secondary->env;
    ChRecord *record = work->secondary->record;
    g_autoptr(ChJson) defined = ch_json_dup(wish);
    ChJson *attachment;

    if (!check_new(work, wish, error) || !define(env, defined, error) ||
        !ch_pod_attach_check(&env->network, defined, error))
        return NULL;
    attachment = g_steal_pointer(&defined);
    ch_json_set_bool(attachment, CH_SECONDARY_PENDING, true);
    ch_json_append(work->list, attachment);
    if (record->network == NULL) {
        record->has_no_pod_network = true;
        record->network = g_strdup(CH_RECORD_NETWORK_UP);
    }
    return save(work, error) ? attachment : NULL;
}

/* What a failed attempt left goes at once: the next one asks for the definition again. */
static bool
plug(Work *work, const ChJson *wish, GError **error)
{
    const ChSecondary *secondary = work->secondary;
    ChJson *attachment = begin(work, wish, error);
    g_autoptr(GError) failure = NULL;

    if (attachment == NULL)
        return false;
    if (ch_pod_attach_one(&secondary->env->network, secondary->record, attachment, error)) {
        ch_json_remove(attachment, CH_SECONDARY_PENDING);
        tell(work, attachment, "made");
        return save(work, error);
    }
    if (!take_back(work, ch_json_length(work->list) - 1, &failure))
        ch_log_warning(NULL, failure, "what is left of it is taken back later");
    return false;
}

/* An attachment that is wanted: made again if it is lost, or was being made by somebody who died.
 */
static bool
keep(Work *work, gsize index, const ChJson *wish, GError **error)
{
    ChJson *attachment = ch_json_item(work->list, index);

    if (ch_secondary_is_made(attachment) && !look(work->secondary, attachment).is_lost)
        return true;
    tell(work, attachment, "is gone, and is made anew");
    ch_json_set_bool(attachment, CH_SECONDARY_PENDING, true);
    return take_back(work, index, error) && plug(work, wish, error);
}

static void
remove_unwanted(Work *work)
{
    for (gsize i = ch_json_length(work->list); i > 0; i--) {
        g_autofree char *network =
            g_strdup(ch_json_string_at(ch_json_item(work->list, i - 1), "network"));
        GError *failure = NULL;

        if (!ch_troubles_have(work->secondary->resting, network) &&
            !ch_secondary_is_wanted(work->secondary->vmi, network) &&
            !unplug(work, i - 1, &failure))
            note(work, network, CH_NIC_DETACH_FAILED, failure);
    }
}

static void
add_missing(Work *work)
{
    g_autoptr(ChJson) wishes = ch_multus_attachments(work->secondary->vmi);

    for (gsize i = 0; i < ch_json_length(wishes); i++) {
        const ChJson *wish = ch_json_item(wishes, i);
        const char *network = ch_json_string_at(wish, "network");
        gsize index = 0;
        GError *failure = NULL;

        if (ch_troubles_have(work->secondary->resting, network))
            continue;
        if (ch_json_find_index(work->list, "network", network, &index) != NULL
                ? !keep(work, index, wish, &failure)
                : !plug(work, wish, &failure))
            note(work, network, CH_NIC_ATTACH_FAILED, failure);
    }
}

/* Addresses and ports of the pod network are given at the start only. */
static void
check_pod_network(Work *work)
{
    const ChRecord *record = work->secondary->record;
    const char *network = ch_vmi_pod_network(work->secondary->vmi);
    GError *failure = NULL;

    if ((record->network != NULL && !record->has_no_pod_network) || network == NULL ||
        ch_troubles_have(work->secondary->resting, network))
        return;
    ch_fail(&failure,
            CH_ERROR_INVALID,
            "the pod network cannot be plugged into a VM that runs, only secondary ones can");
    note(work, network, CH_NIC_ATTACH_FAILED, failure);
}

ChJson *
ch_secondary_update(const ChSecondary *secondary, bool *out_is_waiting)
{
    g_autoptr(ChJson) list = ch_record_list(secondary->record->attachments);
    Work work = {.secondary = secondary, .list = list, .troubles = ch_json_new_array()};

    if (g_strcmp0(secondary->record->network, CH_RECORD_NETWORK_BEGUN) == 0)
        return work.troubles; /* not connected yet */
    remove_unwanted(&work);
    add_missing(&work);
    check_pod_network(&work);
    *out_is_waiting = work.is_waiting;
    return work.troubles;
}
