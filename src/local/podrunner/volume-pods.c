/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/volume-pods.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "lib/kube/names.h"
#include "lib/linux/command.h"
#include "local/podrunner/api.h"
#include "local/podrunner/crun.h"
#include "local/podrunner/holder.h"
#include "local/podrunner/hotplug.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/pod-object.h"
#include "local/podrunner/vmi-volumes.h"
#include "local/podrunner/volume-uses.h"

#define SOCKET        "hp.sock"
#define VOLUME_FILE   "disk.img"
#define RM_TIMEOUT_US (30 * CH_SECOND_US)
#define DIR_MODE      (S_ISGID | 0777)
#define NODE_MODE     (S_IFBLK | 0660)

/* --- the record ------------------------------------------------------------------------------- */

static bool
save_hotplugs(const ChPassEnv *env, ChRecord *record, const ChJson *list, GError **error)
{
    ch_record_set_list(&record->hotplugs, list);
    return ch_record_save(record, env->container.state_dir, error);
}

/* --- the container ---------------------------------------------------------------------------- */

/* A volume's directory in the holder must not hide what is there. */
static bool
is_name_free(const char *volume, GError **error)
{
    static const char *const taken[] = {"dev", "proc", "sys", "usr", "var", NULL};

    if (ch_name_is_dns_subdomain(volume) && !g_strv_contains(taken, volume))
        return true;
    return ch_fail(error,
                   CH_ERROR_INVALID,
                   "a volume that is plugged in cannot be called '%s': its name is at most 63 "
                   "lower-case letters, digits and '-', and not dev, proc, sys, usr or var",
                   volume);
}

static bool
make_shared_dir(const char *path, GError **error)
{
    if (g_mkdir_with_parents(path, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", path);
    if (chown(path, 0, CH_POD_USER) < 0 || chmod(path, DIR_MODE) < 0)
        return ch_fail_errno(error, errno, "set mode of '%s'", path);
    return true;
}

/* As kubelet gives a container a block volume: a device node named by the claim's UID. */
static bool
make_node(const char *shared_dir,
          const char *volume,
          const ChClaim *claim,
          const struct stat *st,
          GError **error)
{
    g_autofree char *dir = g_build_filename(shared_dir, volume, NULL);
    g_autofree char *node = g_build_filename(dir, claim->uid, NULL);

    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    if (mknod(node, NODE_MODE, st->st_rdev) < 0 && errno != EEXIST)
        return ch_fail_errno(error, errno, "make the device node '%s'", node);
    return true;
}

/* What the holder has at /VOLUME: the claim's directory, or an empty one with its file in it. */
static bool
start_holder(const ChPassEnv *env,
             const char *pod_uid,
             const char *volume,
             const ChClaim *claim,
             int64_t *out_pid,
             GError **error)
{
    g_autofree char *shared_dir =
        ch_pod_volume_dir(env->container.state_dir, pod_uid, CH_POD_HOTPLUG_VOLUME);
    g_autofree char *dir = g_strconcat("/", volume, NULL);
    g_autofree char *file = g_build_filename(dir, VOLUME_FILE, NULL);
    struct stat st;
    ChPodFile data = {claim->path, dir, true};
    ChHolder holder = {.state_dir = env->container.state_dir,
                       .program = env->container.holder,
                       .pod_uid = pod_uid,
                       .volume = CH_POD_HOTPLUG_VOLUME,
                       .socket = SOCKET,
                       .files = &data,
                       .n_files = claim->is_block ? 0 : 1};

    if (stat(claim->path, &st) < 0)
        return ch_fail_errno(error, errno, "look at '%s'", claim->path);
    if (!is_name_free(volume, error) || !make_shared_dir(shared_dir, error) ||
        (claim->is_block && !make_node(shared_dir, volume, claim, &st, error)))
        return false;
    if (S_ISREG(st.st_mode)) {
        holder.temporary_dir = dir;
        data.target = file;
    }
    return ch_holder_start(&holder, out_pid, error);
}

static ChRecord
as_container(const ChJson *attachment)
{
    ChRecord record = {0};

    (void)ch_json_int_at(attachment, &record.pid, "pid");
    (void)ch_json_int_at(attachment, &record.start_time, "startTime");
    return record;
}

static bool
is_running(const ChJson *attachment)
{
    const ChRecord record = as_container(attachment);
    ch_autofd int pidfd = ch_container_open(&record);

    return pidfd >= 0;
}

/* --- Pods ------------------------------------------------------------------------------------- */

static bool
set_pod_running(const ChPassEnv *env, const char *namespace_, ChJson *attachment, GError **error)
{
    const char *name = ch_json_string_at(attachment, "podName");
    g_autoptr(GError) failure = NULL;
    g_autoptr(ChJson) pod = ch_api_get_pod(env->kube, namespace_, name, &failure);
    g_autoptr(ChJson) stored = NULL;

    if (ch_api_is_not_found(failure))
        return true; /* somebody deleted it: nothing but the show is lost */
    if (pod == NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    ch_pod_object_set_state(pod,
                            &(ChPodState){.phase = CH_POD_PHASE_RUNNING,
                                          .container = CH_POD_HOTPLUG_CONTAINER,
                                          .image = env->version,
                                          .wall_us = ch_time_wall_us()});
    stored = ch_api_put_pod_status(env->kube, pod, error);
    return stored != NULL;
}

/* As storage's own controllers do when a claim finds what it wants. */
static bool
bind_claim(const ChPassEnv *env, const ChJson *claim, GError **error)
{
    g_autoptr(ChJson) bound = ch_json_dup(claim);
    g_autoptr(ChJson) stored = NULL;

    if (!ch_claim_bind(bound))
        return true;
    stored = ch_api_put_claim_status(env->kube, bound, error);
    return stored != NULL;
}

/* The same for the same launcher and volume: one that was made, but did not come on record, is
 * found again. (transfer full) */
static char *
make_name(const ChRecord *record, const char *volume)
{
    g_autofree char *text = g_strjoin("/", record->uid, volume, NULL);
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, text, -1);

    return g_strdup_printf("hp-volume-%.10s", hash);
}

/* (transfer full): as stored */
static ChJson *
make_pod(const ChVolumePods *pods,
         const ChJson *claim,
         const char *name,
         const char *volume,
         GError **error)
{
    g_autoptr(ChJson) pod = ch_hotplug_pod_new(
        pods->pod, claim, name, volume, pods->env->node_name, pods->env->version);
    g_autoptr(GError) failure = NULL;
    ChJson *stored = ch_api_create_pod(pods->env->kube, pod, &failure);

    if (stored != NULL)
        return stored;
    if (ch_api_is_conflict(failure))
        return ch_api_get_pod(pods->env->kube, pods->record->namespace_, name, error);
    g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
}

/* Made in the API, and then on record, before there is a container. */
static bool
create_pod(
    const ChVolumePods *pods, const ChJson *claim, const char *volume, ChJson *list, GError **error)
{
    g_autofree char *name = make_name(pods->record, volume);
    g_autoptr(ChJson) stored = NULL;
    ChJson *attachment;

    if (!bind_claim(pods->env, claim, error))
        return false;
    stored = make_pod(pods, claim, name, volume, error);
    if (stored == NULL)
        return false;
    attachment = ch_json_new_object();
    ch_json_set_string(attachment, "volume", volume);
    ch_json_set_string(attachment, "claim", ch_json_string_at(claim, "metadata", "name"));
    ch_json_set_string(attachment, "podName", name);
    ch_json_set_string(attachment, "podUID", ch_json_string_at(stored, "metadata", "uid"));
    ch_json_append(list, attachment);
    return save_hotplugs(pods->env, pods->record, list, error);
}

/* All but the entry itself. */
static bool
remove_pod(const ChPassEnv *env, const char *namespace_, const ChJson *attachment, GError **error)
{
    const char *uid = ch_json_string_at(attachment, "podUID");
    g_autofree char *run_dir = NULL;

    if (uid != NULL && *uid != '\0' && strchr(uid, '/') == NULL && *uid != '.') {
        run_dir = ch_pod_run_dir(env->container.state_dir, uid);
        const char *const argv[] = {"rm", "-rf", "--one-file-system", "--", run_dir, NULL};

        if (!ch_container_remove(env->container.state_dir, uid, error) ||
            !ch_command_run(&(ChCommand){argv, RM_TIMEOUT_US, 0, 0}, NULL, error))
            return false;
    }
    return ch_api_delete_pod(
        env->kube, namespace_, ch_json_string_at(attachment, "podName"), true, error);
}

/* --- all of a VMI ----------------------------------------------------------------------------- */

static bool
start(const ChVolumePods *pods, const ChJson *claim, ChJson *attachment, GError **error)
{
    const char *volume = ch_json_string_at(attachment, "volume");
    ChClaim facts = {0};
    int64_t pid = 0;
    int64_t start_time = 0;

    if (!ch_claim_read(claim, &facts, error) ||
        !start_holder(
            pods->env, ch_json_string_at(attachment, "podUID"), volume, &facts, &pid, error))
        return false;
    (void)ch_crun_start_time(pid, &start_time);
    ch_json_set_int(attachment, "pid", pid);
    ch_json_set_int(attachment, "startTime", start_time);
    ch_json_remove(attachment, "ready");
    return true;
}

static bool
is_serving(const ChPassEnv *env, const ChJson *attachment)
{
    return ch_holder_is_ready(&(ChHolder){.state_dir = env->container.state_dir,
                                          .pod_uid = ch_json_string_at(attachment, "podUID"),
                                          .volume = CH_POD_HOTPLUG_VOLUME,
                                          .socket = SOCKET});
}

/* One step on the way to a pod that serves. @out_is_waiting: set when there is another */
static bool
bring_up(const ChVolumePods *pods,
         const ChJson *claim,
         ChJson *list,
         ChJson *attachment,
         bool *out_is_waiting,
         GError **error)
{
    const char *volume = ch_json_string_at(attachment, "volume");
    const bool is_up = is_running(attachment);

    /* One that an earlier version plugged in has no use on record. */
    if ((!is_up || !ch_volume_use_is_taken(pods, volume)) &&
        !ch_volume_use_take(pods, claim, volume, error))
        return false;
    if (!is_up) {
        if (!start(pods, claim, attachment, error))
            return false;
        *out_is_waiting = true;
        return save_hotplugs(pods->env, pods->record, list, error);
    }
    if (ch_json_bool_at(attachment, false, "ready"))
        return true;
    if (!is_serving(pods->env, attachment)) {
        *out_is_waiting = true;
        return true;
    }
    ch_json_set_bool(attachment, "ready", true);
    return set_pod_running(pods->env, pods->record->namespace_, attachment, error) &&
           save_hotplugs(pods->env, pods->record, list, error);
}

/* (transfer full) (nullable): NULL without @error: there is none */
static ChJson *
get_claim(const ChVolumePods *pods, const char *name, GError **error)
{
    g_autoptr(GError) failure = NULL;
    ChJson *claim = NULL;

    if (!ch_name_is_dns_subdomain(name))
        return NULL;
    claim = ch_api_get_claim(pods->env->kube, pods->record->namespace_, name, &failure);
    if (claim == NULL && !ch_api_is_not_found(failure))
        g_propagate_error(error, g_steal_pointer(&failure));
    return claim;
}

static bool
read_claims(const ChVolumePods *pods, ChJson *claims, GError **error)
{
    const ChJson *volumes = ch_json_at(pods->vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const char *name =
            ch_json_string_at(ch_json_item(volumes, i), "persistentVolumeClaim", "claimName");
        g_autoptr(GError) failure = NULL;
        ChJson *claim = name != NULL ? get_claim(pods, name, &failure) : NULL;

        if (failure != NULL) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        if (claim != NULL)
            ch_json_set(claims, name, claim);
    }
    return true;
}

/* One that is new has its disk for itself before anything is made. */
static bool
add_volume(const ChVolumePods *pods,
           const ChJson *claim,
           const char *volume,
           ChJson *list,
           bool *out_is_waiting,
           GError **error)
{
    if (ch_hotplug_find(list, volume) == NULL) {
        if (ch_json_length(list) >= CH_HOTPLUG_MAX_VOLUMES)
            return ch_fail(error, CH_ERROR_LIMIT, "too many volumes are plugged in");
        if (!is_name_free(volume, error) || !ch_vmi_check_volume_name(pods->vmi, volume, error) ||
            !ch_volume_use_take(pods, claim, volume, error) ||
            !create_pod(pods, claim, volume, list, error))
            return false;
    }
    return bring_up(pods, claim, list, ch_hotplug_find(list, volume), out_is_waiting, error);
}

static void
note_failure(ChJson *failures, const char *volume, const GError *failure)
{
    ChJson *item = ch_json_new_object();
    const bool is_in_use = g_error_matches(failure, CH_ERROR, CH_ERROR_EXISTS);

    ch_json_set_string(item, "reason", is_in_use ? CH_VOLUME_IN_USE : CH_VOLUME_FAILED);
    ch_json_set_string(item, "message", failure->message);
    ch_json_set(failures, volume, item);
}

static bool
add_missing(const ChVolumePods *pods,
            const ChJson *claims,
            ChJson *list,
            ChJson *failures,
            bool *out_is_waiting,
            GError **error)
{
    const ChJson *volumes = ch_json_at(pods->vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const char *name = ch_json_string_at(volume, "name");
        g_autoptr(GError) failure = NULL;
        const ChJson *claim;

        if (!ch_hotplug_is_hotpluggable(volume))
            continue;
        claim = ch_json_at(claims, ch_json_string_at(volume, "persistentVolumeClaim", "claimName"));
        if (claim == NULL) {
            *out_is_waiting = true;
            continue;
        }
        if (add_volume(pods, claim, name, list, out_is_waiting, &failure))
            continue;
        if (ch_api_is_conflict(failure)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        note_failure(failures, name, failure);
    }
    return true;
}

static bool
remove_unwanted(const ChVolumePods *pods, ChJson *list, GError **error)
{
    for (gsize i = ch_json_length(list); i > 0; i--) {
        const ChJson *attachment = ch_json_item(list, i - 1);
        const ChLogContext context = {.namespace_ = pods->record->namespace_,
                                      .name = pods->record->vmi_name,
                                      .kind = "VirtualMachineInstance",
                                      .uid = pods->record->vmi_uid};

        if (!ch_hotplug_may_go(pods->vmi, ch_json_string_at(attachment, "volume")))
            continue;
        ch_log_info(&context,
                    "Removing the pod %s of a volume that is plugged in no more",
                    ch_json_string_at(attachment, "podName"));
        if (!remove_pod(pods->env, pods->record->namespace_, attachment, error))
            return false;
        ch_json_remove_item(list, i - 1);
        if (!save_hotplugs(pods->env, pods->record, list, error))
            return false;
    }
    return true;
}

bool
ch_volume_pods_update(const ChVolumePods *pods,
                      ChJson **out_claims,
                      ChJson **out_failures,
                      bool *out_is_waiting,
                      GError **error)
{
    g_autoptr(ChJson) list = ch_record_list(pods->record->hotplugs);
    g_autoptr(ChJson) claims = ch_json_new_object();
    g_autoptr(ChJson) failures = ch_json_new_object();
    bool is_waiting = false;

    if (!read_claims(pods, claims, error) || !remove_unwanted(pods, list, error) ||
        (ch_volume_uses_trim(pods, list) && !save_hotplugs(pods->env, pods->record, list, error)) ||
        !add_missing(pods, claims, list, failures, &is_waiting, error))
        return false;
    *out_claims = g_steal_pointer(&claims);
    *out_failures = g_steal_pointer(&failures);
    *out_is_waiting = is_waiting;
    return true;
}

bool
ch_volume_pods_remove_all(const ChPassEnv *env, ChRecord *record, GError **error)
{
    g_autoptr(ChJson) list = ch_record_list(record->hotplugs);

    if (ch_json_length(list) == 0 && record->uses == NULL)
        return true;
    for (gsize i = ch_json_length(list); i > 0; i--) {
        if (!remove_pod(env, record->namespace_, ch_json_item(list, i - 1), error))
            return false;
        ch_json_remove_item(list, i - 1);
    }
    ch_volume_uses_forget(env, record);
    return save_hotplugs(env, record, list, error);
}
