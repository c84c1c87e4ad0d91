/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi: what a VirtualMachineInstance must look like to be stored.
 *
 * The shape of known fields is a table; beyond it, names must refer to something. Unknown fields
 * pass. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/resource.h"

/* A ChResourceNormalize: a quantity given as a number becomes its text, as KubeVirt stores it. */
void ch_vmi_normalize(ChJson *object);

/* A ChResourceValidate. */
void ch_vmi_validate(const ChJson *object, GPtrArray *causes);
