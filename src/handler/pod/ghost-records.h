/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ghost-records: which VMs this node ever connected to, kept on disk.
 *
 * One file a VM, `<private-dir>/ghost-records/<VMI UID>`, in the format of the Go agent, which must
 * be able to take over. Files are replaced whole; a temporary file lies in the private directory,
 * so that a left-over one is never taken for a record.
 *
 * Thread: any but the loop's for load, add and remove (they block for file I/O), any for the rest.
 * A mutex guards the map, never held across I/O. Two calls that add or remove under the same
 * namespace/name must not overlap: the work queue gives a key to one worker at a time. Spec: 01
 * §10, §28.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct ChGhostRecords ChGhostRecords;

typedef struct {
    char *name;
    char *namespace_;
    char *socket_file; /* absolute path, as written */
    char *uid;         /* of the VMI */
} ChGhostRecord;

ChGhostRecord *ch_ghost_record_copy(const ChGhostRecord *record); /* (transfer full) */
void ch_ghost_record_free(ChGhostRecord *record);                 /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGhostRecord, ch_ghost_record_free)

/**
 * ch_ghost_records_load: makes the private directories that are missing (ghost-records 0755,
 * container-disk-mount-state and hotplug-volume-mount-state 0700) and reads the records.
 *
 * Entries that are no record are logged and left alone.
 *
 * Returns: (transfer full): NULL with CH_ERRNO when a directory cannot be made
 */
ChGhostRecords *ch_ghost_records_load(const char *private_dir, GError **error);
void ch_ghost_records_free(ChGhostRecords *records); /* the files stay; NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGhostRecords, ch_ghost_records_free)

/**
 * ch_ghost_records_add: writes the record, then remembers it; the identical record is success.
 *
 * Returns: false with CH_ERROR_INVALID (an argument is empty), CH_ERROR_EXISTS (another UID or
 * socket is recorded under this name), or CH_ERRNO (writing); the texts are those of spec 01 §10
 */
bool ch_ghost_records_add(ChGhostRecords *records,
                          const char *namespace_,
                          const char *name,
                          const char *socket_file,
                          const char *uid,
                          GError **error);

/**
 * ch_ghost_records_remove: deletes the file, then forgets the record; no record and no file are
 * success.
 *
 * Returns: false with CH_ERRNO, and the record is kept, when the file cannot be deleted
 */
bool ch_ghost_records_remove(ChGhostRecords *records,
                             const char *namespace_,
                             const char *name,
                             GError **error);

/* (transfer full) (nullable): the record of namespace/name */
ChGhostRecord *
ch_ghost_records_find(ChGhostRecords *records, const char *namespace_, const char *name);
/* (transfer full) (nullable): the record of this socket (the stored path normalised) */
ChGhostRecord *ch_ghost_records_find_by_socket(ChGhostRecords *records, const char *socket_file);
/* (transfer full): array of ChGhostRecord, a copy, ordered by namespace/name */
GPtrArray *ch_ghost_records_list(ChGhostRecords *records);
