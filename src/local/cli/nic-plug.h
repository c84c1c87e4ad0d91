/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nic-plug: a secondary network for a VM that runs, as `attach --network` and `detach` have it.
 *
 * Theory of operation: an interface and its network are added to the VMI; the pod runner gives the
 * pod a link, the agent a tap, the launcher gives the guest a NIC. The other way round the
 * interface becomes absent, and the pod runner takes it out of the VMI last of all. Thread: the
 * command's. Blocks: for the API server, and until it is done if asked to wait.
 */

#pragma once

#include "local/cli/client.h"
#include "local/cli/network-edit.h"

typedef struct {
    ChClient *client;
    const ChCli *cli;
    const char *vm;
    int limit_s; /* of waiting; 0: do not wait */
} ChNicPlug;

/* Both print what became of it. Returns: false with one sentence that says what to do */
bool ch_nic_plug(const ChNicPlug *plug, const ChNetworkEdit *edit, GError **error);
bool ch_nic_unplug(const ChNicPlug *plug, const char *name, GError **error);
