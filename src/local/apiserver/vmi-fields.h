/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vmi-fields: which fields of a VMI nobody knows: typing errors, mostly.
 *
 * They are stored all the same, as on a cluster; whoever wrote them is warned. Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

#define CH_VMI_MAX_UNKNOWN 16
#define CH_VMI_MAX_PATH    160 /* bytes of one path */

/* Returns: (transfer full) (element-type utf8): paths such as "spec.domain.cpus", in the
 * document's order; printable ASCII without quotes */
GPtrArray *ch_vmi_unknown_fields(const ChJson *vmi);

/* For the test of the table: a type with a field whose type is missing; NULL: none. */
const char *ch_vmi_fields_broken_link(void);
