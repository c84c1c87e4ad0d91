/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/metadata.h"

#include <pthread.h>

#include "lib/base/time.h"

struct ChMetadata {
    pthread_mutex_t lock; /* guards all below */
    char *uid;
    bool has_grace_period;
    int64_t grace_seconds;       /* -1: not told */
    int64_t deletion_us;         /* wall clock; 0: not asked to shut down yet */
    bool is_marked_for_shutdown; /* by a signal */
    ChMetadataChanged changed;
    gpointer data;
};

ChMetadata *
ch_metadata_new(ChMetadataChanged changed, gpointer data)
{
    ChMetadata *metadata = g_new0(ChMetadata, 1);

    pthread_mutex_init(&metadata->lock, NULL);
    metadata->uid = g_strdup("");
    metadata->grace_seconds = -1;
    metadata->changed = changed;
    metadata->data = data;
    return metadata;
}

void
ch_metadata_free(ChMetadata *metadata)
{
    if (metadata == NULL)
        return;
    pthread_mutex_destroy(&metadata->lock);
    g_free(metadata->uid);
    g_free(metadata);
}

/* Ends a change: the listener may take locks of its own, so it runs outside of ours. */
static void
unlock_and_tell(ChMetadata *metadata, bool has_changed)
{
    pthread_mutex_unlock(&metadata->lock);
    if (has_changed && metadata->changed != NULL)
        metadata->changed(metadata->data);
}

void
ch_metadata_set_uid(ChMetadata *metadata, const char *uid)
{
    pthread_mutex_lock(&metadata->lock);
    g_free(metadata->uid);
    metadata->uid = g_strdup(uid);
    pthread_mutex_unlock(&metadata->lock);
}

static bool
set_grace_period(ChMetadata *metadata, int64_t seconds)
{
    const bool differs = !metadata->has_grace_period || metadata->grace_seconds != seconds;

    metadata->has_grace_period = true;
    metadata->grace_seconds = seconds;
    return differs;
}

void
ch_metadata_init_grace_period(ChMetadata *metadata, int64_t seconds)
{
    pthread_mutex_lock(&metadata->lock);
    set_grace_period(metadata, seconds);
    pthread_mutex_unlock(&metadata->lock);
}

void
ch_metadata_update_grace_period(ChMetadata *metadata, int64_t seconds)
{
    pthread_mutex_lock(&metadata->lock);
    unlock_and_tell(metadata, set_grace_period(metadata, seconds));
}

void
ch_metadata_mark_shutdown(ChMetadata *metadata, int64_t wall_us)
{
    pthread_mutex_lock(&metadata->lock);
    const bool is_first = metadata->deletion_us == 0;

    if (is_first) {
        metadata->has_grace_period = true;
        metadata->deletion_us = wall_us;
    }
    unlock_and_tell(metadata, is_first);
}

void
ch_metadata_mark_graceful(ChMetadata *metadata)
{
    pthread_mutex_lock(&metadata->lock);
    const bool is_first = !metadata->is_marked_for_shutdown;

    metadata->has_grace_period = true;
    metadata->is_marked_for_shutdown = true;
    unlock_and_tell(metadata, is_first);
}

static ChJson *
grace_period_to_json(const ChMetadata *metadata)
{
    if (!metadata->has_grace_period)
        return NULL;
    ChJson *json = ch_json_new_object();
    ch_json_set_int(json, "DeletionGracePeriodSeconds", MAX(metadata->grace_seconds, 0));
    if (metadata->deletion_us == 0) {
        ch_json_set(json, "DeletionTimestamp", NULL);
    } else {
        g_autofree char *time = ch_time_format(metadata->deletion_us);

        ch_json_set_string(json, "DeletionTimestamp", time);
    }
    ch_json_set(json,
                "MarkedForGracefulShutdown",
                metadata->is_marked_for_shutdown ? ch_json_new_bool(true) : NULL);
    return json;
}

ChJson *
ch_metadata_to_json(ChMetadata *metadata)
{
    static const char *const unused[] = {"Migration", "Backup", "AccessCredential", "MemoryDump"};
    ChJson *json = ch_json_new_object();
    ChJson *kubevirt = ch_json_ensure_object(json, "KubeVirt");

    pthread_mutex_lock(&metadata->lock);
    ch_json_set_string(kubevirt, "UID", metadata->uid);
    ch_json_set(kubevirt, "GracePeriod", grace_period_to_json(metadata));
    pthread_mutex_unlock(&metadata->lock);
    for (gsize i = 0; i < G_N_ELEMENTS(unused); i++)
        ch_json_set(kubevirt, unused[i], NULL);
    return json;
}
