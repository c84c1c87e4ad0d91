/* SPDX-License-Identifier: Apache-2.0 */

/*
 * volume-edit: a VM's volumes as documents: one is added or taken away, and the claim that stands
 * for a file of this machine.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

#define CH_CLAIM_PATH_ANNOTATION "chandler.dev/path"
/* On claims that `attach` made, and `detach` removes. */
#define CH_CLAIM_MAKER_LABEL "chandler.dev/made-by"
#define CH_CLAIM_MAKER       "attach"
/* The pod runner's, in a volume's status: another VM, or this machine, has the disk. */
#define CH_VOLUME_IN_USE_REASON "VolumeInUse"

/* (transfer full): a volume's name for a file: "/srv/My Data.img" -> "my-data"; "volume" when
 * nothing is left. */
char *ch_volume_name_of_path(const char *path);

/* Returns: false with CH_ERROR_INVALID, and the rule */
bool ch_volume_check_name(const char *name, GError **error);

typedef struct {
    const char *name; /* of volume and disk, and the disk's serial number */
    const char *claim;
    const char *bus; /* "virtio", "scsi" */
    bool is_read_only;
    bool is_shareable; /* others may have the disk too, if they say so */
} ChVolumeEdit;

/* Returns: false with CH_ERROR_EXISTS: the VM has a volume, disk or NIC of this name, or loses it
 */
bool ch_vmi_check_name_free(const ChJson *vmi, const char *name, GError **error);

/* Returns: false with CH_ERROR_EXISTS: a volume of the VM stands for it already */
bool ch_vmi_check_claim_free(const ChJson *vmi, const char *claim, GError **error);

/* Borrowed (nullable): the name of a VM of the list that has the claim. */
const char *ch_vmis_find_claim_user(const ChJson *vmis, const char *claim);

/* Returns: as ch_vmi_check_name_free() */
bool ch_vmi_add_volume(ChJson *vmi, const ChVolumeEdit *edit, GError **error);

/**
 * ch_vmi_remove_volume: of one that is just going: nothing.
 * @out_claim: (out) (transfer full) (nullable): NULL: it is going already
 *
 * Returns: false with CH_ERROR_NOT_FOUND, and what there is, or CH_ERROR_INVALID: it was not
 * plugged in
 */
bool ch_vmi_remove_volume(ChJson *vmi, const char *name, char **out_claim, GError **error);

/* Borrowed (nullable): what the VMI's status says of the volume. */
const ChJson *ch_vmi_volume_status(const ChJson *vmi, const char *name);

/**
 * ch_vmi_volume_progress: what a volume waits for that comes (@attaches) or goes.
 *
 * Returns: (transfer full): for people; one line
 */
char *ch_vmi_volume_progress(const ChJson *vmi, const char *name, bool attaches);

/* (transfer full): a PersistentVolumeClaim for @path, a block device or not, of @n_bytes. */
ChJson *ch_claim_new(
    const char *namespace_, const char *name, const char *path, bool is_block, guint64 n_bytes);
