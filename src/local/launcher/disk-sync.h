/* SPDX-License-Identifier: Apache-2.0 */

/*
 * disk-sync: gives a running domain the disks that were plugged in, and takes those that are not
 * wanted anymore.
 *
 * A guest may take its time to let go of a disk: libvirt tells when it did, and the next Sync looks
 * again. Thread: the domain's worker. Blocks: for libvirt and the disk. Spec 03 §8.7.
 */

#pragma once

#include <libvirt/libvirt.h>

#include "local/launcher/domain-xml.h"

/* Returns: false with CH_VIRT_ERROR and the like: libvirt refuses a disk */
bool ch_disk_sync(virDomainPtr domain,
                  const ChJson *vmi,
                  const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
                  const ChPaths *paths,
                  GError **error);
