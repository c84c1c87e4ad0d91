/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-ports: room for devices that are plugged in while the guest runs.
 *
 * libvirt gives a domain as many PCIe root ports as its devices need, each for one. What comes
 * later needs a free one. Pure. Thread: any. Spec 03 §8.3 (define).
 */

#pragma once

#include <glib.h>

/**
 * ch_domain_add_ports:
 * @defined: the document as libvirt gives it back, with the ports that are in use
 *
 * Returns: (transfer full): the document with free ports; NULL without @error when it needs none;
 * NULL with CH_ERROR_INVALID when it is no document
 */
char *ch_domain_add_ports(const char *defined, GError **error);
