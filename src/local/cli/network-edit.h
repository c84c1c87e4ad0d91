/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-edit: a VM's secondary networks as documents: one is added, or is to go; and what is said
 * of it.
 *
 * Pure. Thread: any.
 */

#pragma once

#include "lib/json/json.h"

/* (transfer full): a network's name for its definition: "lab/net.b" -> "net-b". */
char *ch_network_name_of_definition(const char *definition);

typedef struct {
    const char *name;       /* of network and interface */
    const char *definition; /* "NAME" or "NAMESPACE/NAME" */
    const char *mac;        /* (nullable) */
} ChNetworkEdit;

/* Whether they can be: no more than syntax. Returns: false with CH_ERROR_INVALID */
bool ch_network_edit_check(const ChNetworkEdit *edit, GError **error);

/* Returns: false with CH_ERROR_EXISTS: the VM has a network or a volume of this name, or the MAC
 * address */
bool ch_vmi_add_network(ChJson *vmi, const ChNetworkEdit *edit, GError **error);

/* Whether the VM has an interface or a network of this name. */
bool ch_vmi_has_network(const ChJson *vmi, const char *name);

/**
 * ch_vmi_remove_network: its interface becomes absent; again: nothing.
 *
 * Returns: false with CH_ERROR_NOT_FOUND, or CH_ERROR_INVALID: it cannot go
 */
bool ch_vmi_remove_network(ChJson *vmi, const char *name, GError **error);

/* Borrowed (nullable): what the VMI's status says of it, once the guest has it. */
const ChJson *ch_vmi_plugged_network(const ChJson *vmi, const char *name);

typedef struct {
    const char *name;
    bool attaches; /* false: it is to go */
    int64_t since; /* events that are older are of something else; see ch_events_revision() */
} ChNetworkQuestion;

/**
 * ch_network_trouble: why it neither comes nor goes.
 * @events: a list
 *
 * Returns: (nullable): borrowed from @events: what the newest event says of it
 */
const char *
ch_network_trouble(const ChJson *vmi, const ChJson *events, const ChNetworkQuestion *question);

/* How new a list of events is. */
int64_t ch_events_revision(const ChJson *events);
