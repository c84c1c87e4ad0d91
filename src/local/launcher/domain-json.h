/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain-json: the Domain document that GetDomain and the domain events carry.
 *
 * libvirt's XML under the names of KubeVirt's Go structs, every key present, as a Go launcher sends
 * it. Pure. Thread: any. Spec 03 §5.1, §11.3.
 */

#pragma once

#include "lib/json/json.h"
#include "local/launcher/xml.h"

typedef struct {
    const char *status; /* "Running", ...; static */
    const char *reason;
} ChDomainState;

/* libvirt's numbers in words; what is not known gives empty words. */
ChDomainState ch_domain_state(int state, int reason);
extern const ChDomainState ch_domain_state_non_existent;

/* Everything a document is made of; all borrowed. */
typedef struct {
    const char *name;
    const char *namespace_;
    const char *uid;     /* (nullable): events have it, GetDomain has not */
    int64_t deletion_us; /* wall clock; 0: not deleted */
    const xmlNode *xml;  /* (nullable): <domain> */
    const ChJson *metadata;
    ChDomainState state;
    const ChJson *interfaces;  /* (nullable): from the guest agent */
    const ChJson *os_info;     /* (nullable) */
    const char *freeze_status; /* (nullable): "frozen", "thawed" */
} ChDomainView;

/* (transfer full): the document */
ChJson *ch_domain_json_build(const ChDomainView *view);
