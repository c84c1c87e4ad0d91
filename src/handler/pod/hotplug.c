/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/hotplug.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "handler/pod/hotplug-internal.h"
#include "lib/base/errors.h"

#define MAX_TOLD 16384 /* texts; more than there are volumes, many times over */

/* --- the object --- */

ChHotplug *
ch_hotplug_new(ChHands *hands, const char *private_dir, const char *pods_dir, const char *node)
{
    ChHotplug *hotplug = g_new0(ChHotplug, 1);

    hotplug->hands = hands;
    hotplug->private_dir = g_strdup(private_dir);
    hotplug->pods_dir = g_canonicalize_filename(pods_dir, "/"); /* without '/' at its end */
    hotplug->node = g_strdup(node);
    pthread_mutex_init(&hotplug->mutex, NULL);
    hotplug->told = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return hotplug;
}

void
ch_hotplug_free(ChHotplug *hotplug)
{
    if (hotplug == NULL)
        return;
    g_hash_table_unref(hotplug->told);
    pthread_mutex_destroy(&hotplug->mutex);
    g_free(hotplug->private_dir);
    g_free(hotplug->pods_dir);
    g_free(hotplug->node);
    g_free(hotplug);
}

/* What is told is no part of what the object is made of: it may change in a constant one. */
static pthread_mutex_t *
mutex_of(const ChHotplug *hotplug)
{
    return (pthread_mutex_t *)&hotplug->mutex;
}

bool
ch_hotplug_is_news(const ChHotplug *hotplug, const char *uid, const char *volume, const char *text)
{
    g_autofree char *key = g_strconcat(uid, "/", volume, NULL);
    bool is_news;

    pthread_mutex_lock(mutex_of(hotplug));
    is_news = g_strcmp0(g_hash_table_lookup(hotplug->told, key), text) != 0;
    if (g_hash_table_size(hotplug->told) >= MAX_TOLD)
        g_hash_table_remove_all(hotplug->told); /* some is then told again */
    if (is_news)
        g_hash_table_replace(hotplug->told, g_steal_pointer(&key), g_strdup(text));
    pthread_mutex_unlock(mutex_of(hotplug));
    return is_news;
}

void
ch_hotplug_forget_volume(const ChHotplug *hotplug, const char *uid, const char *volume)
{
    g_autofree char *key = g_strconcat(uid, "/", volume, NULL);

    pthread_mutex_lock(mutex_of(hotplug));
    g_hash_table_remove(hotplug->told, key);
    pthread_mutex_unlock(mutex_of(hotplug));
}

static gboolean
is_of(gpointer key, gpointer value, gpointer prefix)
{
    return g_str_has_prefix(key, prefix);
}

void
ch_hotplug_forget(const ChHotplug *hotplug, const char *uid)
{
    g_autofree char *prefix = g_strconcat(uid, "/", NULL);

    pthread_mutex_lock(mutex_of(hotplug));
    (void)g_hash_table_foreach_remove(hotplug->told, is_of, prefix);
    pthread_mutex_unlock(mutex_of(hotplug));
}

void
ch_hotplug_pass_clear(ChHotplugPass *pass)
{
    g_clear_pointer(&pass->pod_uid, g_free);
    g_clear_pointer(&pass->allowed, g_array_unref);
}

bool
ch_hotplug_find_pod(ChHotplugPass *pass, GError **error)
{
    const char *pod_uid, *found = NULL;
    ChJsonIter iter;
    ChJson *node;

    if (pass->has_looked)
        return true;
    ch_json_iter_init(&iter, ch_json_at(pass->vmi, "status", "activePods"));
    while (ch_json_iter_next(&iter, &pod_uid, &node)) {
        bool exists = false;

        if (!ch_hands_uid_is_valid(pod_uid))
            continue;
        if (!ch_hotplug_ask_dir(pass->hotplug, pod_uid, &exists, error))
            return false;
        pass->is_several = exists && found != NULL;
        if (pass->is_several)
            break;
        if (exists)
            found = pod_uid;
    }
    pass->pod_uid = pass->is_several ? NULL : g_strdup(found);
    pass->has_looked = true;
    return true;
}

/* --- mounting --- */

/* What is being done for one pass. */
typedef struct {
    ChHotplugPass *pass;
    ChMountRecord *record;   /* owned */
    GArray *rules;           /* owned; ChHotplugRule */
    GPtrArray *failures;     /* ChHotplugFailure */
    const char *first_block; /* (nullable): whose rule is in the list */
    bool is_incomplete;      /* the devices of a volume are not known: no list can be complete */
} Mounting;

static void
failure_free(gpointer data)
{
    ChHotplugFailure *failure = data;

    g_free(failure->volume);
    g_clear_error(&failure->error);
    g_free(failure);
}

/* Returns: always false. @error: (transfer full) */
static bool
fail(Mounting *mounting, ChHotplugTrouble trouble, const char *volume, GError *error)
{
    ChHotplugFailure *failure = g_new0(ChHotplugFailure, 1);

    *failure = (ChHotplugFailure){trouble, g_strdup(volume), error};
    g_ptr_array_add(mounting->failures, failure);
    return false;
}

/* What is not there may come: the VM goes on without it. */
static ChHotplugTrouble
trouble_of(const GError *error)
{
    return g_error_matches(error, CH_ERRNO, ENOENT) ? CH_HOTPLUG_MISSES : CH_HOTPLUG_FAILS;
}

static void
allow(Mounting *mounting, const ChHotplugVolume *volume, uint64_t rdev, bool is_allowed)
{
    const ChHotplugRule rule = {major(rdev), minor(rdev), is_allowed};

    for (guint i = 0; i < mounting->rules->len; i++) {
        const ChHotplugRule *other = &g_array_index(mounting->rules, ChHotplugRule, i);

        if (other->major_number == rule.major_number && other->minor_number == rule.minor_number) {
            if (!is_allowed)
                return; /* another volume has it */
            g_array_remove_index(mounting->rules, i);
            break;
        }
    }
    g_array_append_val(mounting->rules, rule);
    if (mounting->first_block == NULL)
        mounting->first_block = volume->name;
    if (is_allowed)
        g_array_append_val(mounting->pass->allowed, rdev);
}

/* Before anything is made of it. */
static bool
note(Mounting *mounting, const char *path, GError **error)
{
    return !ch_mount_record_add(mounting->record, path, NULL) ||
           ch_mount_record_store(CH_MOUNT_RECORD_HOTPLUG,
                                 mounting->pass->hotplug->private_dir,
                                 mounting->pass->uid,
                                 mounting->record,
                                 error);
}

static bool
fail_without_device(const ChHotplugPass *pass, const ChHotplugVolume *volume, GError **error)
{
    g_autofree char *dir =
        ch_hotplug_path(pass->hotplug->pods_dir, volume->source_uid, volume->name);

    return ch_fail(error, CH_ERROR_FAILED, "no device in %s", dir);
}

/* Whether there is something to make a node from, or a node. */
static bool
check_node(Mounting *mounting, const ChHotplugVolume *volume, GError **error)
{
    const ChHotplugPass *pass = mounting->pass;
    ChHandsReply reply;

    if (!ch_hotplug_ask_node(
            pass->hotplug, pass->pod_uid, volume->name, volume->source_uid, &reply, error))
        return false;
    if (reply.target.mode != 0 || reply.source.errnum == 0)
        return true;
    if (reply.source.errnum == ENODEV)
        return fail_without_device(pass, volume, error);
    return ch_fail_errno(error,
                         reply.source.errnum,
                         "find the device of '%s' in pod %s",
                         volume->name,
                         volume->source_uid);
}

static bool
make_node(Mounting *mounting, const ChHotplugVolume *volume, const char *path, GError **error)
{
    const ChHotplugPass *pass = mounting->pass;
    const bool is_known = ch_mount_record_find(mounting->record, path) != NULL;
    g_autoptr(GError) reason = NULL;
    ChHandsReply reply;

    if (!is_known && (!check_node(mounting, volume, error) || !note(mounting, path, error)))
        return false;
    if (!ch_hotplug_make_node(
            pass->hotplug, pass->pod_uid, volume->name, volume->source_uid, &reply, &reason)) {
        /* Recorded, it may be in use: no list without it is put into force. */
        mounting->is_incomplete |= is_known && !g_error_matches(reason, CH_ERRNO, ENOENT);
        if (g_error_matches(reason, CH_ERRNO, ENOTBLK))
            return ch_fail(error,
                           CH_ERROR_FAILED,
                           "target device %s exists but it is not a block device",
                           path);
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    if (reply.dev != 0) /* its device has other numbers than before */
        allow(mounting, volume, reply.dev, false);
    allow(mounting, volume, reply.target.rdev, true);
    return true;
}

/* One that is about to go: the guest may have it still, until it is taken away. */
static bool
keep_node(Mounting *mounting, const ChHotplugVolume *volume, const char *path)
{
    const ChHotplugPass *pass = mounting->pass;
    g_autoptr(GError) reason = NULL;
    ChHandsReply reply;

    if (ch_mount_record_find(mounting->record, path) == NULL)
        return true;
    if (!ch_hotplug_ask_node(pass->hotplug, pass->pod_uid, volume->name, NULL, &reply, &reason)) {
        GError *error = NULL;

        mounting->is_incomplete = true;
        g_propagate_prefixed_error(&error,
                                   g_steal_pointer(&reason),
                                   "failed to look at block hotplug volume %s: ",
                                   volume->name);
        return fail(mounting, CH_HOTPLUG_FAILS, volume->name, error);
    } else if (S_ISBLK(reply.target.mode)) {
        allow(mounting, volume, reply.target.rdev, true);
    }
    return true;
}

static bool
mount_block(Mounting *mounting, const ChHotplugVolume *volume, const char *path)
{
    GError *error = NULL;

    if (!volume->is_wanted || volume->source_uid[0] == '\0')
        return keep_node(mounting, volume, path);
    if (make_node(mounting, volume, path, &error))
        return true;
    g_prefix_error(&error, "failed to mount block hotplug volume %s: ", volume->name);
    return fail(mounting, trouble_of(error), volume->name, error);
}

/* Whether the launcher's user may do with it what it wants although it is not its own, as on an NFS
 * export that squashes root. */
static bool
is_open_to_all(const ChHandsReply *reply)
{
    const mode_t needed = S_IROTH | S_IWOTH | (S_ISDIR(reply->target.mode) ? S_IXOTH : 0);

    return reply->step == CH_HANDS_STEP_OWN && reply->errnum == EPERM &&
           (reply->target.mode & needed) == needed;
}

static bool
is_source_step(uint32_t step)
{
    return step == CH_HANDS_STEP_SOCKET || step == CH_HANDS_STEP_PROCESS ||
           step == CH_HANDS_STEP_ROOT || step == CH_HANDS_STEP_NO_IMAGE;
}

static GError *
waiting(const ChHotplugVolume *volume, const GError *reason)
{
    GError *error = NULL;

    (void)ch_fail(&error,
                  CH_ERROR_FAILED,
                  "failed to get source path for volume %s from source pod %s: %s: waiting for "
                  "hotplug mount",
                  volume->name,
                  volume->source_uid,
                  reason->message);
    return error;
}

/* Returns: whether it can be mounted, or is; a failure is noted. */
static bool
check_source(Mounting *mounting, const ChHotplugVolume *volume, GError **error, bool *out_waits)
{
    const ChHotplugPass *pass = mounting->pass;
    g_autoptr(GError) reason = NULL;
    ChHandsReply reply;

    if (ch_hotplug_ask_source(pass->hotplug, volume->source_uid, &reason))
        return true;
    if (ch_hands_is_silence(reason)) {
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    /* A record was lost, and the pod it came from is gone: what is mounted stays. */
    if (ch_hotplug_ask_target(pass->hotplug, pass->pod_uid, volume, &reply, NULL) &&
        reply.target.is_mounted)
        return true;
    *out_waits = true;
    g_propagate_error(error, waiting(volume, reason));
    return false;
}

static bool
mount_tree(Mounting *mounting,
           const ChHotplugVolume *volume,
           const char *path,
           ChHotplugTrouble *out_trouble,
           GError **error)
{
    const ChHotplugPass *pass = mounting->pass;
    g_autoptr(GError) reason = NULL;
    bool waits = false;
    ChHandsReply reply;

    if (ch_mount_record_find(mounting->record, path) == NULL &&
        (!check_source(mounting, volume, error, &waits) || !note(mounting, path, error))) {
        *out_trouble = waits ? CH_HOTPLUG_WAITS : CH_HOTPLUG_FAILS;
        return false;
    }
    if (ch_hotplug_ask_mount(pass->hotplug, pass->pod_uid, volume, &reply, &reason))
        return true;
    if (is_open_to_all(&reply)) {
        ch_log_warning(pass->log,
                       reason,
                       "the owner of volume %s cannot be changed, ignoring as all may write to it",
                       volume->name);
        return true;
    }
    if (is_source_step(reply.step)) {
        *out_trouble = CH_HOTPLUG_WAITS;
        g_propagate_error(error, waiting(volume, reason));
        return false;
    }
    *out_trouble = trouble_of(reason);
    g_propagate_prefixed_error(error,
                               g_steal_pointer(&reason),
                               "failed to bindmount hotplug volume source from %s:/%s%s to %s: ",
                               volume->source_uid, /* its place in the attachment pod */
                               volume->name,
                               volume->kind == CH_HOTPLUG_FILE ? "/disk.img" : "",
                               path);
    return false;
}

static bool
mount_other(Mounting *mounting, const ChHotplugVolume *volume, const char *path)
{
    ChHotplugTrouble trouble = CH_HOTPLUG_FAILS;
    GError *error = NULL;

    if (!volume->is_wanted || volume->source_uid[0] == '\0' ||
        mount_tree(mounting, volume, path, &trouble, &error))
        return true;
    g_prefix_error(&error, "failed to mount filesystem hotplug volume %s: ", volume->name);
    return fail(mounting, trouble, volume->name, error);
}

static void
mount_volume(Mounting *mounting, const ChHotplugVolume *volume)
{
    ChHotplugPass *pass = mounting->pass;
    g_autofree char *name = ch_hotplug_target_name(volume->name, volume->kind);
    g_autofree char *path = ch_hotplug_path(pass->hotplug->pods_dir, pass->pod_uid, name);
    bool is_done;

    if (volume->is_refused) {
        ch_log_warning(pass->log,
                       NULL,
                       "Skipping mount for utility volume %s: configured with block mode PVC, "
                       "utility volumes require filesystem mode",
                       volume->name);
        return;
    }
    is_done = volume->kind == CH_HOTPLUG_BLOCK ? mount_block(mounting, volume, path)
                                               : mount_other(mounting, volume, path);
    if (is_done)
        ch_hotplug_forget_volume(pass->hotplug, pass->uid, volume->name);
}

/* All in one call: between two the devices of the others would be denied. */
static void
set_rules(Mounting *mounting)
{
    const ChHotplugPass *pass = mounting->pass;
    GError *error = NULL;

    if (mounting->rules->len == 0 || mounting->is_incomplete)
        return;
    if (pass->set_rules == NULL)
        (void)ch_fail(&error, CH_ERROR_FAILED, "cgroup manager is nil");
    else if (pass->set_rules(pass->rules_data,
                             (const ChHotplugRule *)(gpointer)mounting->rules->data,
                             mounting->rules->len,
                             &error))
        return;
    g_prefix_error(&error,
                   "failed to mount block hotplug volume %s: failed to apply device rules: ",
                   mounting->first_block);
    /* Whatever its reason was: it is no missing volume. */
    (void)fail(mounting, CH_HOTPLUG_FAILS, mounting->first_block, error);
}

static void
mount_list(Mounting *mounting, const GArray *volumes)
{
    const ChHotplugPass *pass = mounting->pass;
    GError *error = NULL;

    if (!ch_hotplug_find_pod(mounting->pass, &error)) {
        (void)fail(mounting, CH_HOTPLUG_FAILS, "", error);
        return;
    }
    if (pass->pod_uid == NULL)
        return; /* not here */
    mounting->record = ch_mount_record_load(
        CH_MOUNT_RECORD_HOTPLUG, pass->hotplug->private_dir, pass->uid, &error);
    if (mounting->record == NULL) {
        (void)fail(mounting, CH_HOTPLUG_FAILS, "", error);
        return;
    }
    for (guint i = 0; i < volumes->len; i++)
        mount_volume(mounting, &g_array_index(volumes, ChHotplugVolume, i));
    set_rules(mounting);
}

static void
tell_left_out(Mounting *mounting)
{
    g_autofree char *text = ch_hotplug_left_out(mounting->pass->vmi);

    if (text != NULL)
        (void)fail(
            mounting, CH_HOTPLUG_MISSES, "", g_error_new_literal(CH_ERROR, CH_ERROR_LIMIT, text));
}

GPtrArray *
ch_hotplug_mount(ChHotplugPass *pass)
{
    g_autoptr(GArray) volumes = ch_hotplug_list(pass->vmi, pass->hotplug->node, pass->source_uid);
    Mounting mounting = {.pass = pass, .failures = g_ptr_array_new_with_free_func(failure_free)};

    tell_left_out(&mounting);
    if (volumes->len == 0)
        return mounting.failures;
    if (pass->allowed == NULL)
        pass->allowed = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    mounting.rules = g_array_new(FALSE, FALSE, sizeof(ChHotplugRule));
    mount_list(&mounting, volumes);
    g_array_unref(mounting.rules);
    ch_mount_record_free(mounting.record);
    return mounting.failures;
}

/* --- looking --- */

static void
log_look(const ChHotplugPass *pass, const GError *error)
{
    ch_log_error(
        pass->log, NULL, "error occurred while checking if volume is mounted: %s", error->message);
}

/* Returns: false when it cannot be said. */
static bool
look_at(const ChHotplugPass *pass, const ChHotplugVolume *volume, bool *out_is_mounted)
{
    g_autoptr(GError) error = NULL;
    ChHandsReply reply;
    bool is_known;

    if (volume->kind == CH_HOTPLUG_BLOCK)
        is_known =
            ch_hotplug_ask_node(pass->hotplug, pass->pod_uid, volume->name, NULL, &reply, &error);
    else
        is_known = ch_hotplug_ask_target(pass->hotplug, pass->pod_uid, volume, &reply, &error);
    if (is_known)
        *out_is_mounted = volume->kind == CH_HOTPLUG_BLOCK ? S_ISBLK(reply.target.mode)
                                                           : reply.target.is_mounted != 0;
    else if (!g_error_matches(error, CH_ERRNO, ENOENT))
        log_look(pass, error);
    return is_known || !ch_hands_is_passing(error);
}

char **
ch_hotplug_look(ChHotplugPass *pass)
{
    g_autoptr(GArray) volumes = ch_hotplug_list(pass->vmi, pass->hotplug->node, pass->source_uid);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < volumes->len; i++) {
        const ChHotplugVolume *volume = &g_array_index(volumes, ChHotplugVolume, i);
        bool is_mounted = false;

        if (!ch_hotplug_wants_look(volume))
            continue;
        if (!ch_hotplug_find_pod(pass, &error)) {
            log_look(pass, error);
            return NULL;
        }
        if (pass->pod_uid != NULL && !look_at(pass, volume, &is_mounted))
            return NULL;
        if (is_mounted)
            g_ptr_array_add(names, g_strdup(volume->name));
    }
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&names), FALSE);
}
