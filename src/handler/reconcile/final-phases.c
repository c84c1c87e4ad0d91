/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/reconcile/final-phases.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"

#define DIRECTORY "final-phases"

struct ChFinalPhases {
    char *dir;             /* owned */
    pthread_mutex_t mutex; /* guards by_uid; never held across I/O */
    GHashTable *by_uid;    /* UID (owned) -> ChPhase */
};

/* (transfer full) (nullable): NULL for a UID that names no file */
static char *
make_path(const ChFinalPhases *phases, const char *uid, ChPhase phase)
{
    g_autofree char *name = g_strconcat(uid, ".", ch_phase_text(phase), NULL);

    if (uid[0] == '\0' || uid[0] == '.' || strchr(uid, '/') != NULL || strlen(name) > NAME_MAX)
        return NULL;
    return g_build_filename(phases->dir, name, NULL);
}

/* What has another name is nobody's. */
static void
load_file(ChFinalPhases *phases, const char *name)
{
    const char *dot = strrchr(name, '.');
    const ChPhase phase = dot != NULL ? ch_phase_from_text(dot + 1) : CH_PHASE_UNSET;

    if (dot == NULL || dot == name || !ch_phase_is_final(phase))
        return;
    g_hash_table_replace(
        phases->by_uid, g_strndup(name, (gsize)(dot - name)), GUINT_TO_POINTER(phase));
}

ChFinalPhases *
ch_final_phases_load(const char *private_dir)
{
    ChFinalPhases *phases = g_new0(ChFinalPhases, 1);
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) dir = NULL;
    const char *name;

    phases->dir = g_build_filename(private_dir, DIRECTORY, NULL);
    phases->by_uid = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    pthread_mutex_init(&phases->mutex, NULL);
    dir = g_dir_open(phases->dir, 0, &error);
    if (dir == NULL && !g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT))
        ch_log_warning(NULL, error, "ignoring the final phases that an earlier agent left");
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL)
        load_file(phases, name);
    if (dir != NULL) /* it may be empty: an agent died between directory and file */
        (void)rmdir(phases->dir);
    return phases;
}

void
ch_final_phases_free(ChFinalPhases *phases)
{
    if (phases == NULL)
        return;
    pthread_mutex_destroy(&phases->mutex);
    g_hash_table_unref(phases->by_uid);
    g_free(phases->dir);
    g_free(phases);
}

/* The directory is there while there are files in it. Returns: false with errno */
static bool
make_file(const ChFinalPhases *phases, const char *path)
{
    for (int i = 0; i < 2; i++) { /* another thread may take away the directory in between */
        ch_autofd int fd = -EBADF;

        if (g_mkdir_with_parents(phases->dir, 0700) < 0)
            return false;
        fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            return true;
        if (errno != ENOENT)
            return false;
    }
    return false;
}

void
ch_final_phases_remove_file(const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);

    (void)unlink(path); /* what is left is read and dropped by the next start */
    (void)rmdir(dir);   /* others may be in it */
}

/* The next start must not find two for one VM. */
static void
remove_other(ChFinalPhases *phases, const char *uid, ChPhase phase)
{
    const ChPhase before = ch_final_phases_find(phases, uid);
    g_autofree char *path =
        before != CH_PHASE_UNSET && before != phase ? make_path(phases, uid, before) : NULL;

    if (path != NULL)
        ch_final_phases_remove_file(path);
}

void
ch_final_phases_keep(ChFinalPhases *phases, const char *uid, ChPhase phase)
{
    g_autofree char *path = make_path(phases, uid, phase);
    g_autoptr(GError) error = NULL;

    remove_other(phases, uid, phase);
    pthread_mutex_lock(&phases->mutex);
    g_hash_table_replace(phases->by_uid, g_strdup(uid), GUINT_TO_POINTER(phase));
    pthread_mutex_unlock(&phases->mutex);
    if (path != NULL && !make_file(phases, path)) {
        ch_fail_errno(&error, errno, "create '%s'", path);
        ch_log_warning(NULL,
                       error,
                       "ignoring that the final phase of %s does not survive an end of this agent",
                       uid);
    }
}

ChPhase
ch_final_phases_find(ChFinalPhases *phases, const char *uid)
{
    ChPhase phase;

    pthread_mutex_lock(&phases->mutex);
    phase = GPOINTER_TO_UINT(g_hash_table_lookup(phases->by_uid, uid));
    pthread_mutex_unlock(&phases->mutex);
    return phase;
}

char *
ch_final_phases_forget(ChFinalPhases *phases, const char *uid)
{
    const ChPhase phase = ch_final_phases_find(phases, uid);

    if (phase == CH_PHASE_UNSET)
        return NULL;
    pthread_mutex_lock(&phases->mutex);
    g_hash_table_remove(phases->by_uid, uid);
    pthread_mutex_unlock(&phases->mutex);
    return make_path(phases, uid, phase);
}

GPtrArray *
ch_final_phases_list(ChFinalPhases *phases)
{
    GPtrArray *uids = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer uid;

    pthread_mutex_lock(&phases->mutex);
    g_hash_table_iter_init(&iter, phases->by_uid);
    while (g_hash_table_iter_next(&iter, &uid, NULL))
        g_ptr_array_add(uids, g_strdup(uid));
    pthread_mutex_unlock(&phases->mutex);
    return uids;
}
