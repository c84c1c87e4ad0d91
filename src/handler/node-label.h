/* SPDX-License-Identifier: Apache-2.0 */

/*
 * node-label: the label by which the scheduler leaves this node alone. Spec 08 §4, §5.3.
 *
 * Thread: the loop's.
 */

#pragma once

#include "lib/kube/client.h"

/* @done: called once, unless @kube goes first, which ends the request */
void ch_node_label_unschedulable(ChKubeClient *kube,
                                 const char *node_name,
                                 ChKubeDone done,
                                 gpointer data);
