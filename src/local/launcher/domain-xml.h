/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-xml: from the VMI to the libvirt document that is defined.
 *
 * Pure: what had to be looked up (does KVM work, which cache mode suits a file, what is the tap
 * called) comes in as facts. What this launcher cannot give a guest is refused by name, never left
 * out silently. Thread: any. Spec 03 §13.
 */

#pragma once

#include "cmd.pb-c.h"
#include "local/launcher/volume.h"

/* What was found out about one disk's file. */
typedef struct {
    char *volume;
    const char *cache; /* "none" or "writethrough"; static */
} ChDiskFacts;

/* What the pod's network holds for one interface of the VMI. */
typedef struct {
    char *interface; /* its name in the VMI */
    char *tap;
    char *mac; /* (nullable): the pod interface's, for a VMI that asks for none */
    guint mtu; /* 0: leave it to libvirt */
} ChNicFacts;

typedef struct {
    const ChJson *vmi;
    const Kubevirt__Cmd__V1__VirtualMachineOptions *options; /* (nullable) */
    ChPaths paths;
    bool is_emulated;
    const ChDiskFacts *disks;
    gsize n_disks;
    const ChNicFacts *nics;
    gsize n_nics;
} ChDomainInput;

/**
 * ch_domain_xml_build:
 *
 * Returns: (transfer full): the document; NULL with CH_ERROR_INVALID or CH_ERROR_NOT_FOUND when the
 * VMI asks for what cannot be
 */
char *ch_domain_xml_build(const ChDomainInput *input, GError **error);

/* (transfer full): the disks alone, as children of <devices>; NULL as above */
char *ch_domain_disks_build(const ChDomainInput *input, GError **error);

/* (transfer full): one of the interfaces alone; NULL as above */
char *ch_domain_interface_build(const ChDomainInput *input, const char *name, GError **error);

/* (transfer full): "<namespace>_<name>" (spec 03 §11.1) */
char *ch_domain_name(const char *namespace_, const char *name);
