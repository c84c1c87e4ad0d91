/* SPDX-License-Identifier: Apache-2.0 */

/* domain-internal: what the parts of the conversion share. Included by domain-*.c only. */

#pragma once

#include "local/launcher/domain-xml.h"
#include "local/launcher/xml.h"

/* The whole conversion of one VMI. */
typedef struct {
    const ChDomainInput *input;
    const ChJson *spec;    /* spec.domain */
    const ChJson *devices; /* spec.domain.devices */
    const char *virtio;    /* "virtio-non-transitional" or "virtio-transitional" */
    guint64 n_vcpus;
    guint64 memory_bytes;
    xmlNode *root;
} ChDomainBuild;

bool ch_domain_build_disks(ChDomainBuild *build, xmlNode *devices, GError **error);
bool ch_domain_build_devices(ChDomainBuild *build, xmlNode *devices, GError **error);
bool ch_domain_build_interfaces(ChDomainBuild *build, xmlNode *devices, GError **error);
/* Nothing for an interface that is absent. */
bool ch_domain_build_interface(const ChDomainBuild *build,
                               xmlNode *devices,
                               const ChJson *interface,
                               GError **error);
void ch_domain_build_clock(ChDomainBuild *build);
void ch_domain_build_features(ChDomainBuild *build);

/* Adds <alias name='ua-NAME'/>. */
void ch_domain_add_alias(xmlNode *node, const char *name);
bool ch_domain_annotation_is(const ChDomainBuild *build, const char *key, const char *value);
/* True when any disk of the VMI has that bus. */
bool ch_domain_has_disk_bus(const ChDomainBuild *build, const char *bus);
