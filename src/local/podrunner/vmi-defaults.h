/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi-defaults: what admission adds to a VMI on a cluster: metadata and spec.
 *
 * Pure. Thread: any. The default network is vmi-network's.
 */

#pragma once

#include "lib/json/json.h"

#define CH_VMI_FINALIZER "foregroundDeleteVirtualMachine"

/**
 * ch_vmi_set_defaults:
 * @vmi: edited; what is there stays
 * @architecture: Go's name, "amd64"
 * @firmware_uuid: used when the VMI has none
 *
 * Returns: false with CH_ERROR_INVALID when something is missing that has no default; the message
 * names the field
 */
bool ch_vmi_set_defaults(ChJson *vmi,
                         const char *architecture,
                         const char *firmware_uuid,
                         GError **error);
