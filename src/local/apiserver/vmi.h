/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi: what a VirtualMachineInstance must look like to be stored.
 *
 * The shape of known fields is a table; beyond it, names must refer to something. Unknown fields
 * pass. Pure. Thread: any.
 */

#pragma once

#include "local/apiserver/resource.h"

/* A ChResourceValidate. */
void ch_vmi_validate(const ChJson *object, GPtrArray *causes);
