/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pod-attach: a pod's secondary networks, by the plugins that their definitions name.
 *
 * What is begun is on record before (pod-network.h). A bridge that a plugin makes on this machine
 * stays when the pod is gone: it is noted as ours in <state>/bridges, and removed by `chandler
 * down`. Thread: a worker's. Blocks: for plugins (cni-call.h), and the disk.
 */

#pragma once

#include "local/podrunner/pod-network.h"

/**
 * ch_pod_attach:
 * @attachments: with plugins; each gets its result
 *
 * Returns: false with one sentence for people
 */
bool ch_pod_attach(const ChPodNetworkEnv *env,
                   const ChRecord *record,
                   ChJson *attachments,
                   GError **error);

/* Whether the programs are there that its plugins name: else what is begun could not be undone. */
bool ch_pod_attach_check(const ChPodNetworkEnv *env, const ChJson *attachment, GError **error);

/* One of them. */
bool ch_pod_attach_one(const ChPodNetworkEnv *env,
                       const ChRecord *record,
                       ChJson *attachment,
                       GError **error);

/* Takes back what is on record. Every plugin is asked, whatever the others said. */
bool ch_pod_detach(const ChPodNetworkEnv *env, const ChRecord *record, GError **error);

/**
 * ch_pod_detach_one: from a pod that lives on. Idempotent.
 *
 * The agent renames what CNI made, and plugins know their link by its name only: the first of them,
 * whose it is, is asked under both names. Every plugin is asked, whatever the others said.
 */
bool ch_pod_detach_one(const ChPodNetworkEnv *env,
                       const ChRecord *record,
                       const ChJson *attachment,
                       GError **error);
