/* SPDX-License-Identifier: Apache-2.0 */

/*
 * link-names: how the links of a pod are called that belong to one network of a VM.
 *
 * Pure. Thread: any. Spec: 04 §7.1.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

#define CH_LINK_NAME_SIZE    32 /* more than the kernel takes, so that a name can be told */
#define CH_LINK_NAME_PRIMARY "eth0"

typedef struct {
    char pod_link[CH_LINK_NAME_SIZE]; /* what CNI made; with bridge its stand-in in the end */
    char bridge[CH_LINK_NAME_SIZE];
    char nic[CH_LINK_NAME_SIZE]; /* bridge: the renamed pod link */
    char tap[CH_LINK_NAME_SIZE];
} ChLinkNames;

/* Of a secondary network, by its name in the VMI: "pod" and the first digits of its SHA-256. */
void ch_link_name_hashed(const char *network, char name[CH_LINK_NAME_SIZE]);

/* The others, out of pod_link, which is set. */
void ch_link_names_derive(ChLinkNames *names, bool is_primary);
