/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vms: what several commands do with VMIs. Thread: the command's. Blocks: for the API server.
 */

#pragma once

#include "local/cli/client.h"

/* (transfer full): NULL with a sentence when there is none of this name */
ChJson *ch_vm_get(ChClient *client, const ChCli *cli, const char *name, GError **error);

const char *ch_vm_phase(const ChJson *vmi); /* "" before the first; borrowed */
bool ch_vm_is_final(const ChJson *vmi);
/* The UID of the one pod; NULL: none yet. Borrowed. */
const char *ch_vm_pod_uid(const ChJson *vmi);
/* The condition of @type; NULL when there is none. Borrowed. */
const ChJson *ch_vm_condition(const ChJson *vmi, const char *type);

/* Deletes it, and waits until it is gone if @limit_us > 0. */
bool ch_vm_delete(
    ChClient *client, const char *path, const char *label, int64_t limit_us, GError **error);
