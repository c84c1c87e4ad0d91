/* SPDX-License-Identifier: Apache-2.0 */

/*
 * status-internal: what the steps of ch_status() share. Included by status*.c only.
 *
 * A step edits `status`, the object of the new document, in place and only where the spec of the
 * step says so: an untouched member keeps its text. Pure. Spec: 02 §3.
 */

#pragma once

#include "handler/reconcile/status.h"

typedef struct {
    const ChStatusInput *input;
    const ChStatusNode *node;
    ChVmiView old;          /* of the document as read */
    const ChDomain *domain; /* (nullable): live */
    ChJson *vmi;            /* the new document, borrowed */
    ChJson *status;         /* its status, borrowed */
    ChPhase phase;          /* new phase, from step 3 on */
    GPtrArray *events;      /* ChEvent */
    int64_t requeue_us;
} ChStatusPass;

/* --- the steps, in the order of 02 §3 --- */

void ch_status_volume_sizes(ChStatusPass *pass);      /* 2a */
void ch_status_selinux_context(ChStatusPass *pass);   /* 2b */
void ch_status_guest_os(ChStatusPass *pass);          /* 2c */
void ch_status_volumes(ChStatusPass *pass);           /* 2d */
void ch_status_freeze(ChStatusPass *pass);            /* 2e */
void ch_status_backup(ChStatusPass *pass);            /* 2f */
void ch_status_machine(ChStatusPass *pass);           /* 2g */
void ch_status_memory(ChStatusPass *pass);            /* 2h */
void ch_status_block_tracking(ChStatusPass *pass);    /* 2i */
void ch_status_interfaces(ChStatusPass *pass);        /* 2j */
void ch_status_access_credential(ChStatusPass *pass); /* 5a */
void ch_status_migratable(ChStatusPass *pass);        /* 5b */
void ch_status_agent(ChStatusPass *pass);             /* 5c */
void ch_status_paused(ChStatusPass *pass);            /* 5d */
void ch_status_emulation(ChStatusPass *pass);         /* 5e */
void ch_status_checksums(ChStatusPass *pass);         /* 6 */
void ch_status_synchronized(ChStatusPass *pass);      /* 7, the condition */

/* --- conditions (02 §8.1) --- */

/* NULL for what the condition does not have; times are `now` or null. */
typedef struct {
    const char *type;
    const char *status;
    const char *reason;
    const char *message;
    bool has_probe_time, has_transition_time;
} ChCondition;

/* First entry of the type, borrowed; NULL when there is none. */
ChJson *ch_condition_find(const ChJson *status, const char *type);
/* Whether the entry says what @condition says, which has no times: an entry with times differs. */
bool ch_condition_equals(const ChJson *entry, const ChCondition *condition);
/* Appends. */
void ch_condition_add(ChStatusPass *pass, const ChCondition *condition);
/* All entries of the type. */
void ch_condition_remove(ChStatusPass *pass, const char *type);
/* Absent: append. Other status or reason: replaced in place. Else left alone, message included. */
void ch_condition_update(ChStatusPass *pass, const ChCondition *condition);

/* --- addresses (02 §7) --- */

typedef enum { CH_IP_NONE, CH_IP_V4, CH_IP_V6 } ChIpFamily;

/* NONE for all but a plain address: one with prefix length or zone too. A v4-mapped one is IPv4. */
ChIpFamily ch_status_ip_family(const char *text);
/* Whether an address of a guest behind masquerade means nothing outside: a link-local one, one of
 * the network between guest and pod, and what is none. @network: (nullable): of spec.networks */
bool ch_status_ip_is_of_guest_only(const char *text, const ChJson *network);

/* --- small helpers --- */

/* The member's text, borrowed; "" when absent. */
const char *ch_status_text(const ChJson *object, const char *key);
/* Sets the member to a copy of @text; removes it when empty (Go's omitempty). */
void ch_status_set_text(ChJson *object, const char *key, const char *text);
/* "2026-11-29T16:19:40Z" */
void ch_status_set_time(ChJson *object, const char *key, int64_t wall_us);
/* False when absent or no time. */
bool ch_status_get_time(const ChJson *object, const char *key, int64_t *out_wall_us);
void ch_status_record(ChStatusPass *pass, ChEvent *event /* (transfer full) */);

/* By the rule of 02 §2.2: nil and empty lists and maps are equal, times by instant, quantities by
 * value, member order does not count. */
bool ch_status_is_equal(const ChJson *old_status, const ChJson *new_status);
