/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-bridges: bridges that CNI plugins made for the secondary networks of pods.
 *
 * The pod runner notes each in <state>/podrunner/bridges: a file of the bridge's name with
 * "INDEX BOOT-ID". With both it is the very link; index 0: the note was made before the bridge.
 * Thread: the command's. Blocks: for netlink.
 */

#pragma once

#include "local/cli/cli.h"

/* When no pod is there anymore: removes those that are still ours and have no ports, and the notes.
 */
void ch_pod_bridges_remove(const ChCli *cli);
