/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hotplug-unmount: takes volumes away that are not wanted any more. Spec: 05 §7.5, §7.6
 */

#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "handler/pod/hotplug-internal.h"
#include "handler/pod/launcher-socket.h"
#include "lib/base/errors.h"

static bool
is_allowed(const ChHotplugPass *pass, uint64_t rdev)
{
    for (guint i = 0; i < pass->allowed->len; i++)
        if (g_array_index(pass->allowed, uint64_t, i) == rdev)
            return true;
    return false;
}

/* The device of a kept volume, which another name of it must not deny. */
static bool
note_kept(ChHotplugPass *pass, const char *pod_uid, const char *name, GError **error)
{
    ChHandsReply reply;

    if (g_str_has_suffix(name, ".img"))
        return true;
    if (!ch_hotplug_ask_node(pass->hotplug, pod_uid, name, NULL, &reply, error))
        return false;
    if (S_ISBLK(reply.target.mode) && !is_allowed(pass, reply.target.rdev)) {
        const uint64_t rdev = reply.target.rdev;

        g_array_append_val(pass->allowed, rdev);
    }
    return true;
}

/* With what is to stay: the list in force may be replaced as a whole. */
static bool
deny(ChHotplugPass *pass, uint64_t rdev, GError **error)
{
    const ChHotplugRule denial = {major(rdev), minor(rdev), false};
    g_autoptr(GArray) rules = g_array_new(FALSE, FALSE, sizeof(ChHotplugRule));

    for (guint i = 0; i < pass->allowed->len; i++) {
        const uint64_t kept = g_array_index(pass->allowed, uint64_t, i);
        const ChHotplugRule rule = {major(kept), minor(kept), true};

        g_array_append_val(rules, rule);
    }
    g_array_append_val(rules, denial);
    return pass->set_rules(
        pass->rules_data, (const ChHotplugRule *)(gpointer)rules->data, rules->len, error);
}

/* The rule first: a node that is still there is found by the next pass, which denies it again. */
static bool
remove_block(
    ChHotplugPass *pass, const char *pod_uid, const char *name, uint64_t rdev, GError **error)
{
    if (!is_allowed(pass, rdev) && pass->set_rules != NULL && !deny(pass, rdev, error))
        return false;
    return ch_hotplug_remove_node(pass->hotplug, pod_uid, name, error);
}

static bool
take_away(ChHotplugPass *pass, const char *path, GError **error)
{
    g_autofree char *pod_uid = NULL;
    g_autofree char *name = NULL;
    ChHandsReply reply;

    if (!ch_hotplug_path_split(path, pass->hotplug->pods_dir, &pod_uid, &name))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "Unable to unmount volume at path %s: it is no path of a volume",
                       path);
    if (!ch_hotplug_ask_node(pass->hotplug, pod_uid, name, NULL, &reply, error)) {
        g_prefix_error(error, "Unable to unmount volume at path %s: ", path);
        return false;
    }
    if (reply.target.mode == 0) {
        ch_log_info(pass->log, "Volume %s is not mounted anymore, continuing", path);
        return true;
    }
    if (S_ISBLK(reply.target.mode)) {
        if (remove_block(pass, pod_uid, name, reply.target.rdev, error))
            return true;
        g_prefix_error(error, "Unable to remove block device at path %s: ", path);
        return false;
    }
    if (ch_hotplug_ask_unmount(pass->hotplug, pod_uid, name, error))
        return true;
    g_prefix_error(error, "Unable to unmount filesystem volume at path %s: ", path);
    return false;
}

/* Whether the target is in the launcher's directory, under a name that is wanted. */
static bool
is_kept(const ChHotplugPass *pass, const char *path, GHashTable *wanted, char **out_name)
{
    g_autofree char *pod_uid = NULL;
    g_autofree char *name = NULL;

    if (!ch_hotplug_path_split(path, pass->hotplug->pods_dir, &pod_uid, &name) ||
        g_strcmp0(pod_uid, pass->pod_uid) != 0 || !g_hash_table_contains(wanted, name))
        return false;
    *out_name = g_steal_pointer(&name);
    return true;
}

/* (transfer full): paths of the record that are to go; NULL: it cannot be told what is to stay */
static GPtrArray *
find_unwanted(ChHotplugPass *pass, const ChMountRecord *record, GError **error)
{
    g_autoptr(GHashTable) wanted = ch_hotplug_keep_set(pass->vmi, pass->hotplug->node);
    g_autoptr(GPtrArray) unwanted = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < record->entries->len; i++) {
        const ChMountEntry *entry = record->entries->pdata[i];
        char *name = NULL;

        if (is_kept(pass, entry->target_file, wanted, &name))
            g_ptr_array_add(kept, name);
        else
            g_ptr_array_add(unwanted, g_strdup(entry->target_file));
    }
    g_array_set_size(pass->allowed, 0); /* from now on: of those that stay */
    for (guint i = 0; unwanted->len > 0 && i < kept->len; i++)
        if (!note_kept(pass, pass->pod_uid, kept->pdata[i], error))
            return NULL;
    return g_steal_pointer(&unwanted);
}

static bool
write_down(const ChHotplugPass *pass, ChMountRecord *record, GError **error)
{
    const char *private_dir = pass->hotplug->private_dir;

    if (record->entries->len == 0)
        return ch_mount_record_remove(CH_MOUNT_RECORD_HOTPLUG, private_dir, pass->uid, error);
    return ch_mount_record_store(CH_MOUNT_RECORD_HOTPLUG, private_dir, pass->uid, record, error);
}

/* Each by itself: one that is busy does not keep the others. */
static bool
unmount_unwanted(ChHotplugPass *pass, ChMountRecord *record, GError **error)
{
    g_autoptr(GPtrArray) unwanted = find_unwanted(pass, record, error);
    g_autoptr(GString) texts = g_string_new(NULL);

    if (unwanted == NULL)
        return false;
    if (unwanted->len == 0)
        return true;
    for (guint i = 0; i < unwanted->len; i++) {
        const char *path = unwanted->pdata[i];
        g_autoptr(GError) reason = NULL;

        if (take_away(pass, path, &reason)) {
            (void)ch_mount_record_drop(record, path);
            continue;
        }
        ch_log_error(pass->log, reason, "taking a hotplugged volume away failed");
        g_string_append_printf(texts, "%s%s", texts->len > 0 ? "\n" : "", reason->message);
    }
    if (!write_down(pass, record, error))
        return false;
    return texts->len == 0 || ch_fail(error,
                                      CH_ERROR_FAILED,
                                      "failed to cleanup hotplug mounts for VMI %s: %s",
                                      pass->name,
                                      texts->str);
}

bool
ch_hotplug_unmount(ChHotplugPass *pass, GError **error)
{
    g_autoptr(ChMountRecord) record = NULL;

    if (pass->uid[0] == '\0')
        return true;
    record =
        ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, pass->hotplug->private_dir, pass->uid, error);
    if (record == NULL)
        return false;
    if (record->entries->len == 0)
        return !record->is_stored || write_down(pass, record, error);
    if (!ch_hotplug_find_pod(pass, error))
        return false;
    if (pass->is_several) /* which is the launcher's will turn out */
        return true;
    if (pass->pod_uid == NULL) { /* with the directory, all that was in it went */
        g_ptr_array_set_size(record->entries, 0);
        if (write_down(pass, record, error))
            return true;
        g_prefix_error(error, "failed to delete mount target records: ");
        return false;
    }
    if (pass->allowed == NULL)
        pass->allowed = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    return unmount_unwanted(pass, record, error);
}

/* --- all --- */

/* The pods that a record tells of. */
static void
add_recorded_pods(const ChHotplug *hotplug, const ChMountRecord *record, GHashTable *pods)
{
    for (guint i = 0; i < record->entries->len; i++) {
        const ChMountEntry *entry = record->entries->pdata[i];
        g_autofree char *name = NULL;
        char *pod_uid = NULL;

        if (ch_hotplug_path_split(entry->target_file, hotplug->pods_dir, &pod_uid, &name))
            g_hash_table_add(pods, pod_uid);
    }
}

/* Returns: false when it may succeed later. */
static bool
sweep(const ChHotplug *hotplug, const char *pod_uid, const ChLogContext *log, GError **error)
{
    g_autoptr(GError) reason = NULL;

    if (ch_hotplug_sweep(hotplug, pod_uid, &reason))
        return true;
    if (ch_hands_is_passing(reason)) {
        g_propagate_error(error, g_steal_pointer(&reason));
        return false;
    }
    ch_log_warning(log, reason, "Unable to unmount all hotplugged volumes of pod %s", pod_uid);
    return true;
}

bool
ch_hotplug_unmount_all(const ChHotplug *hotplug,
                       const char *uid,
                       const char *const *pod_uids,
                       const char *socket,
                       const ChLogContext *log,
                       GError **error)
{
    g_autoptr(GHashTable) pods = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(ChMountRecord) record = NULL;
    g_autoptr(GError) reason = NULL;
    GHashTableIter iter;
    gpointer pod_uid;
    bool is_done = true;
    char *own_uid;

    if (uid[0] == '\0')
        return true;
    ch_hotplug_forget(hotplug, uid);
    record = ch_mount_record_load(CH_MOUNT_RECORD_HOTPLUG, hotplug->private_dir, uid, &reason);
    if (record != NULL)
        add_recorded_pods(hotplug, record, pods);
    else /* what there is is found without it */
        ch_log_warning(log, reason, "removing a record of hotplugged volumes that cannot be read");
    for (gsize i = 0; pod_uids != NULL && pod_uids[i] != NULL; i++)
        g_hash_table_add(pods, g_strdup(pod_uids[i]));
    own_uid = socket != NULL
                  ? ch_launcher_socket_pod_uid(ch_hands_peek_pods_dir(hotplug->hands), socket)
                  : NULL;
    if (own_uid != NULL)
        g_hash_table_add(pods, own_uid);
    g_hash_table_iter_init(&iter, pods);
    while (g_hash_table_iter_next(&iter, &pod_uid, NULL))
        is_done = sweep(hotplug, pod_uid, log, is_done ? error : NULL) && is_done;
    return is_done &&
           ch_mount_record_remove(CH_MOUNT_RECORD_HOTPLUG, hotplug->private_dir, uid, error);
}
