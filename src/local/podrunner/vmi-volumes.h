/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi-volumes: which volumes a VMI can have on one machine: their kinds and names.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

/* Returns: false with CH_ERROR_INVALID: an interface of the VM has the name */
bool ch_vmi_check_volume_name(const ChJson *vmi, const char *name, GError **error);

/* Returns: false with CH_ERROR_INVALID and one sentence for people: the volume, and what is
 * possible instead */
bool ch_vmi_check_volumes(const ChJson *vmi, GError **error);
