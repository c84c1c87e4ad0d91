/* SPDX-License-Identifier: Apache-2.0 */

/*
 * record: what the pod runner remembers of a pod on disk, so that its successor finds the
 * container.
 *
 * <state>/run/<pod uid>/record.json. Thread: any, one writer per record. Blocks: for the disk.
 */

#pragma once

#include "lib/json/json.h"

#define CH_RECORD_MAX_BYTES (1u << 20)

typedef struct {
    char *uid; /* the pod's */
    char *name;
    char *namespace_; /* the VMI's too */
    char *vmi_name;
    char *vmi_uid;
    int64_t pid;           /* of the container's first process; 0: not started */
    int64_t start_time;    /* of that process, in clock ticks since boot */
    int64_t stop_us;       /* wall clock: SIGTERM was sent; 0: not yet */
    int64_t grace_s;       /* from SIGTERM to SIGKILL */
    bool is_tidied;        /* nothing is left of the container */
    char *hotplugs;        /* (nullable): pods of plugged volumes, as JSON (hotplug.h) */
    char *volume_troubles; /* (nullable): told of these, as JSON (troubles.h) */
    char *uses; /* (nullable): what of this machine it has for itself, as JSON (uses.h) */
    /* The pod's network. */
    char *network;           /* (nullable): nothing was asked of a plugin; else as below */
    char *ips;               /* (nullable): its addresses, by comma */
    char *cni_result;        /* (nullable): what the plugin said, for those that come after it */
    char *attachments;       /* (nullable): to secondary networks, as JSON (multus.h) */
    char *troubles;          /* (nullable): told of networks, as JSON (troubles.h) */
    bool has_no_pod_network; /* only secondary ones */
    bool has_host_ports;     /* the plugin portmap was asked too */
    int64_t n_failed_dels;   /* in a row */
} ChRecord;

#define CH_RECORD_NETWORK_BEGUN "begun"
#define CH_RECORD_NETWORK_UP    "up"

ChRecord *ch_record_dup(const ChRecord *record);
void ch_record_free(ChRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChRecord, ch_record_free)

/* Pure halves, for tests. parse: NULL with CH_ERROR_INVALID */
char *ch_record_print(const ChRecord *record);
ChRecord *ch_record_parse(const char *text, GError **error);

/* (transfer full): a member that is an array as JSON; empty: it is NULL. */
ChJson *ch_record_list(const char *member);
/* @member: (inout): owned */
void ch_record_set_list(char **member, const ChJson *list);

bool ch_record_save(const ChRecord *record, const char *state_dir, GError **error);
ChRecord *ch_record_load(const char *state_dir, const char *pod_uid, GError **error);
/* (transfer full) (element-type ChRecord): all that can be read; the others are logged */
GPtrArray *ch_record_load_all(const char *state_dir);
