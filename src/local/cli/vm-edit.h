/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vm-edit: changes a VM that others write to at the same time. Thread: the command's. Blocks: for
 * the API server.
 */

#pragma once

#include "local/cli/client.h"

/* Changes the document. May be called again, with a newer one. */
typedef bool (*ChVmEditFunc)(ChJson *vmi, gpointer data, GError **error);

/**
 * ch_vm_edit: of a VM that has not ended.
 *
 * Returns: false with the function's error, or one sentence
 */
bool ch_vm_edit(ChClient *client,
                const ChCli *cli,
                const char *vm,
                ChVmEditFunc func,
                gpointer data,
                GError **error);
