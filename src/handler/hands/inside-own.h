/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-own: gives what a VM needs of its pod to the VM's user.
 *
 * As inside.h: in a child, idempotent, below the pod's root only. What a name leads to is looked at
 * before its owner changes: a pod must not choose what is given away. Spec: 05 §10, traps 49 to 58.
 */

#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "handler/hands/protocol.h"

/* The user `qemu` of every launcher image. */
#define CH_INSIDE_UID 107
#define CH_INSIDE_GID 107

/* Where the numbers of devices that the kernel numbers as it likes are looked up: "/sys", but in
 * tests. */
void ch_inside_set_sysfs(const char *dir);

/**
 * ch_inside_own: gives the file behind @fd (may be O_PATH) to 107:107.
 * @what: for the reply
 * @access: S_IROTH, S_IWOTH, S_IXOTH: where the owner cannot be changed (a root-squashed NFS, a
 *   read-only mount) it does when 107:107 may all of this
 *
 * Needs CAP_CHOWN.
 */
bool ch_inside_own(int fd, const char *what, mode_t access, ChHandsReply *reply);

/**
 * ch_inside_own_devices: the fixed devices, in the order of their bits, up to the first that fails.
 * @devices: of ChHandsDevice
 * @may_lack_kvm: KVM and MSHV need not be there
 *
 * VFIO: what is in /dev/vfio, if it is there. Needs CAP_CHOWN, CAP_FOWNER.
 *
 * Returns: false with the reply's `device` set
 */
bool ch_inside_own_devices(int root_fd, uint32_t devices, bool may_lack_kvm, ChHandsReply *reply);

/* /dev/@volume, a block device. A node that is not there is no failure. */
bool ch_inside_own_block(int root_fd, const char *volume, ChHandsReply *reply);

/* The socket that virtiofsd serves @filesystem at. */
bool ch_inside_own_virtiofs(int root_fd, const char *filesystem, ChHandsReply *reply);
