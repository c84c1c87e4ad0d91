/* SPDX-License-Identifier: Apache-2.0 */

/*
 * node-network: what this machine has for its pods: the bridge, the rules that let their packets
 * out, and the file that says so.
 *
 * The bridge belongs to one state directory; making it is what claims its name, and its MAC address
 * tells it from another one of that name. Rules are made by
 * `iptables`, which CNI plugins need too, one set for the whole subnet. Thread: the command's.
 * Blocks: for the kernel and iptables. Needs: root.
 */

#pragma once

#include "local/cli/cli.h"
#include "local/cli/subnet-choice.h"

/**
 * ch_node_network_up: idempotent.
 * @wanted: (nullable): --pod-network
 * @has_pods: pods of an earlier run are there, which a change would cut off
 *
 * A machine that cannot have such a network is no failure, unless it was asked for, or pods are on
 * the one of before.
 *
 * Returns: false with a sentence for the person; CH_ERROR_EXISTS also when another one is at it for
 * this state directory
 */
bool ch_node_network_up(const ChCli *cli,
                        const char *wanted,
                        bool has_pods,
                        ChNodeNetwork *out_network,
                        GError **error);

/* What `up` stored. Returns: false: nothing, or it cannot be read */
bool ch_node_network_load(const ChCli *cli, ChNodeNetwork *out_network);

/* Removes bridge, rules, leases and file. What is gone already is fine, and what cannot be removed
 * is left. */
void ch_node_network_down(const ChCli *cli);
