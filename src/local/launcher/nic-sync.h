/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nic-sync: gives a running domain the network interfaces whose taps were made in the pod, takes
 * those that are absent, and sets links up and down.
 *
 * A guest may take its time to let go of one: libvirt tells when it did, and the next Sync asks
 * again. Thread: the domain's worker. Blocks: for libvirt. Spec 03 §8.7.
 */

#pragma once

#include <libvirt/libvirt.h>

#include "local/launcher/dhcp-server.h"
#include "local/launcher/domain-xml.h"
#include "local/launcher/virt.h"

/* Borrowed. */
typedef struct {
    const ChJson *vmi;
    const Kubevirt__Cmd__V1__VirtualMachineOptions *options;
    const ChPaths *paths;
    ChDhcpServer *dhcp;
    ChVirt *virt;
    int64_t *quiet_until_us; /* (inout): of the monotonic clock: nothing is plugged in before */
} ChNicSync;

/* Returns: false with CH_VIRT_ERROR, CH_ERROR_EXISTS and the like, the first: libvirt refuses one,
 * or another device has its name; the others are plugged in all the same */
bool ch_nic_sync(virDomainPtr domain, const ChNicSync *sync, GError **error);
