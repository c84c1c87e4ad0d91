/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nics: what a VMI says of its NICs, for those who add them and take them away.
 *
 * Pure. Thread: any. Spec: 04 §13.
 */

#pragma once

#include "lib/json/json.h"

#define CH_NIC_MAX_NAME_BYTES 63

/* What an interface may be called (NULL: not): letters, digits, '-' and '_', as the guest's device
 * takes it. */
bool ch_nic_name_is_valid(const char *name);

#define CH_NIC_NAME_CHARACTERS G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_"

/* Reasons of the events that tell why a network is not plugged in, or not taken out. */
#define CH_NIC_ATTACH_FAILED "FailedAttachNetwork"
#define CH_NIC_DETACH_FAILED "FailedDetachNetwork"

#define CH_NIC_ABSENT "absent" /* the state of an interface of the spec that is to go */

/* Whether it is. @interface: (nullable) */
bool ch_nic_is_absent(const ChJson *interface);

/**
 * ch_nic_has_source:
 * @status: (nullable): an item of status.interfaces
 *
 * Returns: whether @source is among those that its infoSource lists
 */
bool ch_nic_has_source(const ChJson *status, const char *source);

/* Whether a volume or disk is called so, be it one that is just going: NICs and disks of a domain
 * have their names of one set. */
bool ch_vmi_has_disk(const ChJson *vmi, const char *name);
