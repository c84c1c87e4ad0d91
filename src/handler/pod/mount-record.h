/* SPDX-License-Identifier: Apache-2.0 */

/*
 * mount-record: what the agent mounted into a VM's pod, on disk in the Go agent's format:
 * PRIVATE-DIR/container-disk-mount-state/VMI-UID and
 * PRIVATE-DIR/hotplug-volume-mount-state/VMI-UID.
 *
 * The file is the truth: nothing is kept in memory. It is replaced whole. A record is written
 * before what it tells of is done, so that there may be less than it says, never more. Thread: any
 * but the loop's, one at a time for a VMI. Blocks: for the disk. Spec: 05 §6.2, §7.3, §15.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef enum {
    CH_MOUNT_RECORD_INVALID = 0,
    CH_MOUNT_RECORD_DISKS,   /* container disks and kernels */
    CH_MOUNT_RECORD_HOTPLUG, /* hotplugged volumes */
    CH_MOUNT_RECORD_N,
} ChMountRecordKind;

#define CH_MOUNT_RECORD_MAX_ENTRIES 4096u

typedef struct {
    char *target_file; /* owned; an absolute path as the agent sees it */
    char *socket_file; /* owned; NULL: none is told, as of hotplugged volumes */
} ChMountEntry;

typedef struct {
    GPtrArray *entries; /* owned; ChMountEntry */
    bool is_stored;     /* there is a file */
} ChMountRecord;

void ch_mount_record_free(ChMountRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChMountRecord, ch_mount_record_free)

/**
 * ch_mount_record_load:
 * @uid: of the VMI
 *
 * Paths in a record of old, from before Go had safe paths, are told without "/proc/1/root".
 *
 * Returns: (transfer full): without entries when there is no file; NULL with CH_ERRNO,
 * CH_ERROR_INVALID or CH_ERROR_LIMIT
 */
ChMountRecord *ch_mount_record_load(ChMountRecordKind kind,
                                    const char *private_dir,
                                    const char *uid,
                                    GError **error);

/* Borrowed; NULL: it has none with this target. */
const ChMountEntry *ch_mount_record_find(const ChMountRecord *record, const char *target_file);

/* Appends an entry, unless there is one with this target. @socket_file: (nullable). Returns:
 * whether it is a new one. */
bool ch_mount_record_add(ChMountRecord *record, const char *target_file, const char *socket_file);

/* Drops the entry with this target. Returns: whether there was one. */
bool ch_mount_record_drop(ChMountRecord *record, const char *target_file);

/* Writes it, as it is now. A record without entries is written too, with `null` for them. */
bool ch_mount_record_store(ChMountRecordKind kind,
                           const char *private_dir,
                           const char *uid,
                           ChMountRecord *record,
                           GError **error);

/* Removes the file, nothing else. None there: true. */
bool ch_mount_record_remove(ChMountRecordKind kind,
                            const char *private_dir,
                            const char *uid,
                            GError **error);
