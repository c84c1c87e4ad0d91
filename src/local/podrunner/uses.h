/* SPDX-License-Identifier: Apache-2.0 */

/*
 * uses: which VM has what of this machine for itself: disks that guests write to, ports.
 *
 * On a cluster storage and scheduler keep VMs apart; here this table does. Who asks first has it,
 * until the use is given back. What a VM has is on its pod's record, so that the next pod runner
 * knows it. Thread: any; does not block.
 */

#pragma once

#include "local/podrunner/record.h"

typedef struct ChUses ChUses;

ChUses *ch_uses_new(void);
void ch_uses_free(ChUses *uses);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChUses, ch_uses_free)

typedef struct {
    const char *what;   /* "block 8:1", "file 2049:131", "port 8080/tcp" */
    const char *within; /* (nullable): what it is a part of: "block 8:0"; parts collide with it */
    bool is_shared;     /* several may have it, if each says so */
} ChUse;

/**
 * ch_uses_take: idempotent.
 * @record: of the VM's pod: its `uses` change; the caller stores it before the use begins
 * @purpose: for people and ch_uses_release(): "volume data"
 * @out_user: (out) (transfer full): set on failure: "the VM lab/b (volume data)"
 *
 * Returns: false: somebody has it, maybe the same VM for another purpose
 */
bool ch_uses_take(
    ChUses *uses, ChRecord *record, const char *purpose, const ChUse *use, char **out_user);

/* @purpose: NULL: all of this VM. Returns: whether @record changed */
bool ch_uses_release(ChUses *uses, ChRecord *record, const char *purpose);

/* At the start: what is on record counts, even if it collides by now. */
void ch_uses_adopt(ChUses *uses, const ChRecord *record);

/* (transfer full): a strv: for what this VM has something */
char **ch_uses_purposes(ChUses *uses, const ChRecord *record);
