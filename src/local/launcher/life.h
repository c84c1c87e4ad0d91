/* SPDX-License-Identifier: Apache-2.0 */

/*
 * life: when this launcher kills its guest, and when it ends.
 *
 * Pure state machine; the owner feeds it facts every second and on every change, and carries out
 * what it says. Spec 03 §6.4 to §6.6.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    CH_LIFE_INVALID = 0,
    CH_LIFE_WAITING,  /* no domain yet */
    CH_LIFE_WATCHING, /* a domain is defined; its QEMU may run */
    CH_LIFE_LEAVING,  /* QEMU is gone; the deletion event is awaited */
    CH_LIFE_KILLING,  /* nobody deleted the domain; any further event is awaited */
    CH_LIFE_ENDED,
} ChLifePhase;

typedef enum {
    CH_LIFE_NOTHING = 0,
    CH_LIFE_MARK, /* tell the agent that this pod shall go: the agent shuts the guest down */
    CH_LIFE_KILL, /* destroy the domain; repeated until QEMU is gone */
    CH_LIFE_EXIT, /* with exit_status */
} ChLifeAction;

/* What is known at one moment. */
typedef struct {
    bool has_domain;        /* one is defined */
    bool has_pid;           /* QEMU's pid was found once */
    bool is_running;        /* ... and that process lives */
    bool is_stop_requested; /* a signal came */
    bool is_deletion_sent;  /* the event with the deletion timestamp went out */
    guint64 n_events;       /* events sent so far */
} ChLifeFacts;

typedef struct {
    ChLifePhase phase;
    int64_t qemu_timeout_us;
    int64_t grace_us;
    int64_t since_us; /* start of the phase */
    int64_t stop_us;  /* when the stop was first seen; 0: not yet */
    guint64 n_events; /* at the start of the phase */
    int exit_status;  /* meaningful with CH_LIFE_EXIT */
} ChLife;

void ch_life_init(ChLife *life, int64_t qemu_timeout_us, int64_t grace_us, int64_t now_us);
/* @now_us: monotonic */
ChLifeAction ch_life_step(ChLife *life, const ChLifeFacts *facts, int64_t now_us);
