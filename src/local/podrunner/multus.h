/* SPDX-License-Identifier: Apache-2.0 */

/*
 * multus: secondary networks: what a VMI asks for, what a NetworkAttachmentDefinition says, and
 * what is written on the pod about them, as virt-controller and multus do on a cluster.
 *
 * An attachment is a JSON object, as kept in the pod's record:
 * {"network": of the VMI, "definition": "namespace/name", "link": in the pod, "mac": wanted,
 * "plugins": [configurations], "result": what the last plugin said}. Pure. Thread: any.
 * Spec: 04 §7.1 (names); NetworkAttachmentDefinition, k8s.cni.cncf.io/v1.
 */

#pragma once

#include "lib/json/json.h"

#define CH_MULTUS_NETWORKS_ANNOTATION "k8s.v1.cni.cncf.io/networks"
#define CH_MULTUS_STATUS_ANNOTATION   "k8s.v1.cni.cncf.io/network-status"

#define CH_MULTUS_MAX_NETWORKS     8
#define CH_MULTUS_MAX_PLUGINS      8
#define CH_MULTUS_MAX_CONFIG_BYTES (8u << 10)

/**
 * ch_multus_attachments: one for each secondary network that an interface uses; without plugins.
 * @vmi: with namespace
 *
 * Returns: (transfer full): an array, often empty
 */
ChJson *ch_multus_attachments(const ChJson *vmi);

/* Splits "namespace/name", or "name" in @namespace_. Returns: false: it is neither */
bool ch_multus_parse_name(const char *text,
                          const char *namespace_,
                          char **out_namespace,
                          char **out_name);

/**
 * ch_multus_set_plugins: what a NetworkAttachmentDefinition says becomes the attachment's plugins.
 * @lease_dir: where addresses of host-local are kept, whatever the definition says
 *
 * Returns: false with CH_ERROR_INVALID or CH_ERROR_LIMIT and one sentence for people
 */
bool ch_multus_set_plugins(ChJson *attachment,
                           const ChJson *definition,
                           const char *lease_dir,
                           GError **error);

/**
 * ch_multus_config: what plugin number @i is told.
 * @previous: (nullable): a result
 *
 * Returns: (transfer full): text
 */
char *ch_multus_config(const ChJson *attachment, gsize i, const ChJson *previous);

/* (transfer full) (nullable): the annotation of the pod that asks for them; NULL: for none. */
char *ch_multus_networks_text(const ChJson *attachments);

/* The pod's own network, for the annotation. */
typedef struct {
    const char *name;     /* (nullable): the pod has none */
    const ChJson *result; /* (nullable) of its plugin */
} ChMultusPodNetwork;

/* (transfer full): the annotation of the pod that says what came of it. */
char *ch_multus_status_text(const ChMultusPodNetwork *pod, const ChJson *attachments);

/* The VMI's status.interfaces gets what the pod has. */
void ch_multus_set_interfaces(ChJson *vmi, const ChJson *attachments);
