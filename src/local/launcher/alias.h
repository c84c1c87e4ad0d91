/* SPDX-License-Identifier: Apache-2.0 */

/*
 * alias: what a domain's devices are called. Those of the VMI have their name of it behind a
 * prefix, by which libvirt knows that it is not its own.
 *
 * Thread: any. Spec 03 §13.
 */

#pragma once

#include <glib.h>
#include <string.h>

#define CH_ALIAS_PREFIX "ua-"

/* (nullable): the VMI's name of a device, within @alias (nullable); NULL: libvirt named it. */
static inline const char *
ch_alias_user_name(const char *alias)
{
    return alias != NULL && g_str_has_prefix(alias, CH_ALIAS_PREFIX)
               ? alias + strlen(CH_ALIAS_PREFIX)
               : NULL;
}
