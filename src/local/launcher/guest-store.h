/* SPDX-License-Identifier: Apache-2.0 */

/*
 * guest-store: the last that the guest agent said, kept until it says something else (also while it
 * is gone). Mutex-guarded; values are copied in and out. Thread: any. Spec 03 §12, §5.3.
 */

#pragma once

#include "lib/json/json.h"

typedef enum {
    CH_GUEST_AGENT = 0, /* version and commands */
    CH_GUEST_FILESYSTEMS,
    CH_GUEST_FREEZE,
    CH_GUEST_INTERFACES,
    CH_GUEST_OS,
    CH_GUEST_HOSTNAME,
    CH_GUEST_TIMEZONE,
    CH_GUEST_USERS,
    CH_GUEST_N,
} ChGuestPart;

typedef struct ChGuestStore ChGuestStore;

ChGuestStore *ch_guest_store_new(void);
void ch_guest_store_free(ChGuestStore *store);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChGuestStore, ch_guest_store_free)

/**
 * ch_guest_store_put:
 * @value: (transfer full) (nullable): NULL, and what is longer than any sane guest's, changes
 * nothing
 *
 * Returns: true when the value differs and the domain document shows it (interfaces, OS, freeze
 * status): the agent of the node must be told
 */
bool ch_guest_store_put(ChGuestStore *store, ChGuestPart part, ChJson *value);
/* (transfer full) (nullable) */
ChJson *ch_guest_store_dup(ChGuestStore *store, ChGuestPart part);

/* (transfer full): the documents of GetGuestInfo, GetUsers, GetFilesystems */
char *ch_guest_store_print_info(ChGuestStore *store);
char *ch_guest_store_print_list(ChGuestStore *store, ChGuestPart part);
