/* SPDX-License-Identifier: Apache-2.0 */

/*
 * device-change: devices of a domain that runs come, go and change, in what runs and in what is
 * defined.
 *
 * Thread: the domain's worker. Blocks: for libvirt, and some seconds for the guest. Each returns
 * false with CH_VIRT_ERROR. Spec 03 §8.7.
 */

#pragma once

#include <glib.h>
#include <libvirt/libvirt.h>
#include <stdbool.h>

bool ch_device_attach(virDomainPtr domain, const char *xml, GError **error);

/* True also while the guest is asked to let go of it, and when it is gone. */
bool ch_device_detach(virDomainPtr domain, const char *xml, GError **error);

/* What is defined may lack it. */
bool ch_device_update(virDomainPtr domain, const char *xml, GError **error);
