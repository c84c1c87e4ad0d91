/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nic-stray: what QEMU has of a network interface that libvirt knows nothing of, as when its daemon
 * died while it plugged it in: the tap is in use, and libvirt would be refused it for ever.
 *
 * Thread: the domain's worker. Blocks: for libvirt.
 */

#pragma once

#include <glib.h>
#include <libvirt/libvirt.h>
#include <stdbool.h>

#include "lib/json/json.h"

/**
 * ch_nic_stray_remove: of an interface that the living domain does not have; what is defined loses
 * it too. What is not there is fine; what libvirt knows, or is no NIC, stays.
 * @name: in the VMI
 * @xml: as it was to be plugged in
 *
 * Returns: whether QEMU had a device, which the guest lets go of in its own time. What is plugged
 * in under the name before libvirt was told of that, libvirt takes for the one that is gone.
 */
bool ch_nic_stray_remove(virDomainPtr domain, const char *name, const char *xml);

/* Whether QEMU's answer to qom-list has the properties of a NIC. For tests. */
bool ch_nic_stray_is_nic(const ChJson *answer);

/* (transfer full): QEMU's command, for tests. @argument: its one argument's name */
char *ch_nic_stray_command(const char *execute, const char *argument, const char *value);
