/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/secondary.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "local/podrunner/api.h"
#include "local/podrunner/multus.h"
#include "local/podrunner/pod-attach.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/secondary-plan.h"
#include "local/podrunner/vmi-network.h"

#define ATTACH_FAILED     "FailedAttachNetwork"
#define DETACH_FAILED     "FailedDetachNetwork"
#define MAX_DEVICES_BYTES (256u << 10)
#define PRIVATE_VOLUME    "private"           /* where the agent leaves the launcher something */
#define AGENTS_FILE       "vif-cache-%s.json" /* of a link; the last that goes */

/* (transfer full): an array */
static ChJson *
parse_attachments(const ChRecord *record)
{
    ChJson *list =
        record->attachments != NULL ? ch_json_parse(record->attachments, -1, NULL) : NULL;

    return list != NULL ? list : ch_json_new_array();
}

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

static bool
define_one(const ChPassEnv *env, ChJson *attachment, GError **error)
{
    if (define(env, attachment, error))
        return true;
    g_prefix_error(error, "network '%s': ", ch_json_string_at(attachment, "network"));
    return false;
}

bool
ch_secondary_define(const ChPassEnv *env, ChJson *attachments, GError **error)
{
    for (gsize i = 0; i < ch_json_length(attachments); i++) {
        if (!define_one(env, ch_json_item(attachments, i), error))
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
    g_autoptr(ChJson) attachments = parse_attachments(record);
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

/* Returns: false: the container has ended */
static bool
look(const ChRecord *record, const ChJson *attachment, ChSecondaryLinks *out_links)
{
    ch_autofd int pidfd = ch_container_open(record); /* the pid is this process's meanwhile */
    g_autofree char *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/net/dev", record->pid);
    g_autofree char *devices =
        pidfd >= 0 ? ch_small_file_read(path, MAX_DEVICES_BYTES, NULL, NULL) : NULL;

    if (devices == NULL)
        return false;
    *out_links = ch_secondary_look(attachment, devices);
    return true;
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

/* Whether the agent has nothing of it any more, or not yet. */
static bool
is_free(const ChSecondary *secondary, const ChJson *attachment)
{
    ChSecondaryLinks links;

    return !ch_secondary_is_in_guest(secondary->vmi, ch_json_string_at(attachment, "network")) &&
           look(secondary->record, attachment, &links) && !links.has_links &&
           !has_agents_file(secondary->env, secondary->record, attachment);
}

/* Somebody wants it again after the agent took its part away, or CNI's link went by itself. */
static bool
is_lost(const ChSecondary *secondary, const ChJson *attachment)
{
    ChSecondaryLinks links;

    return ch_secondary_is_made(attachment) && is_free(secondary, attachment) &&
           look(secondary->record, attachment, &links) && !links.has_pod_link;
}

/* --- coming and going ------------------------------------------------------------------------- */

typedef struct {
    const ChSecondary *secondary;
    ChJson *list; /* owned: the attachments */
    bool is_waiting;
    const char *reason;
    GError *failure; /* owned: the first */
} Work;

static void
note(Work *work, const char *reason, GError *failure /* (transfer full) */)
{
    if (work->failure == NULL) {
        work->failure = failure;
        work->reason = reason;
        return;
    }
    ch_log_warning(NULL, failure, "another network failed, too");
    g_error_free(failure);
}

static bool
save(const Work *work, GError **error)
{
    ChRecord *record = work->secondary->record;

    g_free(record->attachments);
    record->attachments = ch_json_length(work->list) > 0 ? ch_json_print(work->list, NULL) : NULL;
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

/* The agent might have begun to plug it in just before it was to go: looked at once more after. */
static bool
unplug(Work *work, gsize index, GError **error)
{
    const ChSecondary *secondary = work->secondary;
    const ChJson *attachment = ch_json_item(work->list, index);
    const bool is_made = ch_secondary_is_made(attachment);

    if (is_made && !is_free(secondary, attachment)) {
        work->is_waiting = true;
        return true;
    }
    if (!ch_pod_detach_one(&secondary->env->network, secondary->record, attachment, error))
        return false;
    if (is_made && !is_free(secondary, attachment)) {
        work->is_waiting = true;
        return true;
    }
    tell(work, attachment, "removed");
    ch_json_remove_item(work->list, index);
    return save(work, error);
}

static bool
make(Work *work, ChJson *attachment, bool is_new, GError **error)
{
    const ChSecondary *secondary = work->secondary;
    const ChPodNetworkEnv *env = &secondary->env->network;

    if ((!is_new && !ch_pod_detach_one(env, secondary->record, attachment, error)) ||
        !ch_pod_attach_one(env, secondary->record, attachment, error))
        return false;
    ch_json_remove(attachment, CH_SECONDARY_PENDING);
    tell(work, attachment, "made");
    return save(work, error);
}

static bool
check_new(const Work *work, GError **error)
{
    return ch_vmi_check_networks(work->secondary->vmi, error) &&
           (ch_json_length(work->list) < CH_MULTUS_MAX_NETWORKS ||
            ch_fail(error,
                    CH_ERROR_LIMIT,
                    "there are more than %d secondary networks",
                    CH_MULTUS_MAX_NETWORKS));
}

/* On record before CNI knows of it. */
static bool
plug_new(Work *work, const ChJson *wish, GError **error)
{
    ChRecord *record = work->secondary->record;
    ChJson *attachment;
    g_autoptr(ChJson) defined = ch_json_dup(wish);

    if (!check_new(work, error) || !define_one(work->secondary->env, defined, error))
        return false;
    attachment = ch_json_dup(defined);
    ch_json_set_bool(attachment, CH_SECONDARY_PENDING, true);
    ch_json_append(work->list, attachment);
    if (record->network == NULL) {
        record->has_no_pod_network = true;
        record->network = g_strdup(CH_RECORD_NETWORK_UP);
    }
    return save(work, error) && make(work, attachment, true, error);
}

/* An attachment that is there and wanted. */
static bool
keep(Work *work, ChJson *attachment, GError **error)
{
    if (is_lost(work->secondary, attachment)) {
        tell(work, attachment, "is gone, and is made anew");
        ch_json_set_bool(attachment, CH_SECONDARY_PENDING, true);
        if (!save(work, error))
            return false;
    }
    return ch_secondary_is_made(attachment) || make(work, attachment, false, error);
}

static void
remove_unwanted(Work *work)
{
    for (gsize i = ch_json_length(work->list); i > 0; i--) {
        GError *failure = NULL;
        const char *network = ch_json_string_at(ch_json_item(work->list, i - 1), "network");

        if (!ch_secondary_is_wanted(work->secondary->vmi, network) &&
            !unplug(work, i - 1, &failure))
            note(work, DETACH_FAILED, failure);
    }
}

static void
add_missing(Work *work)
{
    g_autoptr(ChJson) wishes = ch_multus_attachments(work->secondary->vmi);

    for (gsize i = 0; i < ch_json_length(wishes); i++) {
        const ChJson *wish = ch_json_item(wishes, i);
        ChJson *attachment =
            ch_json_find(work->list, "network", ch_json_string_at(wish, "network"));
        GError *failure = NULL;

        if (attachment != NULL ? !keep(work, attachment, &failure)
                               : !plug_new(work, wish, &failure))
            note(work, ATTACH_FAILED, failure);
    }
}

/* Addresses and ports of the pod network are given at the start only. */
static void
check_pod_network(Work *work)
{
    const ChRecord *record = work->secondary->record;
    GError *failure = NULL;

    if ((record->network != NULL && !record->has_no_pod_network) ||
        !ch_vmi_has_pod_network(work->secondary->vmi))
        return;
    ch_fail(&failure,
            CH_ERROR_INVALID,
            "the pod network cannot be plugged into a VM that runs, only secondary ones can");
    note(work, ATTACH_FAILED, failure);
}

bool
ch_secondary_update(const ChSecondary *secondary,
                    bool *out_is_waiting,
                    const char **out_reason,
                    GError **error)
{
    g_autoptr(ChJson) list = parse_attachments(secondary->record);
    Work work = {.secondary = secondary, .list = list};

    if (g_strcmp0(secondary->record->network, CH_RECORD_NETWORK_BEGUN) == 0)
        return true; /* not connected yet */
    remove_unwanted(&work);
    add_missing(&work);
    check_pod_network(&work);
    *out_is_waiting = work.is_waiting;
    if (work.failure == NULL)
        return true;
    *out_reason = work.reason;
    g_propagate_error(error, work.failure);
    return false;
}
