/* SPDX-License-Identifier: Apache-2.0 */

/*
 * pass-internal: what the steps of a pass share: start (pass-start.c), while the VM is there
 * (pass-sync.c), end (pass-end.c). Each step returns false with one sentence for people.
 */

#pragma once

#include "lib/base/log.h"
#include "local/podrunner/handover.h"
#include "local/podrunner/pass.h"
#include "local/podrunner/pod-object.h"

#define CH_PASS_PORTS "host ports" /* a purpose of uses */

typedef struct {
    const ChPassEnv *env;
    const ChPassInput *input;
    ChJson *vmi; /* (nullable) owned, as are the next two: as they are now */
    ChJson *pod;
    ChRecord *record;
    ChContainerPhase container;
    int64_t delay_us;
    bool is_over; /* nothing more before something changes */
    ChStep failed_step;
} ChPass;

ChLogContext ch_pass_log_context(const ChPass *pass);

/* An event of the VMI. */
void ch_pass_tell(const ChPass *pass, const char *type, const char *reason, const char *message);

/* For the waterfall of `chandler run`: what went before the agent. */
void ch_pass_log_stage(const ChPass *pass, const char *stage, int64_t wall_us);

/* Stores @vmi, which becomes the current one. */
bool ch_pass_put_vmi(ChPass *pass, ChJson *vmi /* (transfer full) */, GError **error);
bool ch_pass_save_record(const ChPass *pass, GError **error);
bool ch_pass_set_pod_state(
    ChPass *pass, ChPodPhase phase, const char *reason, const char *message, GError **error);
ChPodSeen ch_pass_seen_pod(const ChPass *pass);

/* (transfer full) */
ChRecord *ch_pass_new_record(const ChPass *pass, const ChJson *pod);

/* The VMI and its pod say why there is no container. What cannot be stored is tried again with the
 * next attempt. */
void ch_pass_show_failure(ChPass *pass, const char *reason, const char *message);

bool ch_pass_step_accept(ChPass *pass, GError **error);
bool ch_pass_step_create_pod(ChPass *pass, GError **error);
bool ch_pass_step_start(ChPass *pass, GError **error);
bool ch_pass_step_connect(ChPass *pass, GError **error);
bool ch_pass_step_hand_over(ChPass *pass, GError **error);
bool ch_pass_step_fail(ChPass *pass, GError **error);
bool ch_pass_step_sync_ready(ChPass *pass, GError **error);
bool ch_pass_step_delete_pod(ChPass *pass, GError **error);
bool ch_pass_step_stop(ChPass *pass, GError **error);
bool ch_pass_step_tidy(ChPass *pass, GError **error);
bool ch_pass_step_forget_pod(ChPass *pass, GError **error);
bool ch_pass_step_release(ChPass *pass, GError **error);
bool ch_pass_step_rest(ChPass *pass, GError **error);
