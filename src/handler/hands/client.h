/* SPDX-License-Identifier: Apache-2.0 */

/*
 * client: the brain's side of the hands: starting them and asking them.
 *
 * Theory of operation: ch_hands_start() makes CH_HANDS_N_CHANNELS socketpairs and executes
 * `virt-handler-hands` with one end of each. A call checks a channel out, sends, waits for the
 * reply (of the hands, or of the child that did it) until its deadline and puts the channel back;
 * the mutex guards the list of idle channels, and that of what could not be told at once. A reply
 * that comes after its caller gave up is told by its sequence number and dropped. The hands end
 * when the brain ends. When the hands end first, calls fail with CH_ERROR_CLOSED and the death
 * descriptor becomes readable: the agent must then end too (a pod's identity is gone with them).
 * The typed operations are in handler/pod. Thread: any. Spec: DESIGN.md §4.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "handler/hands/protocol.h"

typedef struct ChHands ChHands;

/* Where the hands find what they work on; absolute paths, borrowed. */
typedef struct {
    const char *pods_dir;      /* kubelet's, as the hands see it ("/pods") */
    const char *private_dir;   /* the agent's own, as the hands see it */
    const char *node_pods_dir; /* kubelet's, as the node sees it; NULL: pods_dir */
    pid_t node_pid;            /* whose mount namespace is the node's; 0: 1 */
} ChHandsPlaces;

/**
 * ch_hands_start:
 * @program: (nullable): path of `virt-handler-hands`; NULL: beside the running program, else in its
 *   ../libexec
 *
 * Returns as soon as the program is executed; a program that does not come up is seen by the first
 * call. Thread: any. Blocks: for the exec.
 *
 * Returns: (transfer full): NULL with CH_ERRNO, or CH_ERROR_NOT_FOUND (no program)
 */
ChHands *ch_hands_start(const char *program, const ChHandsPlaces *places, GError **error);

/* Ends the hands (they see their channels close), reaps them, kills them after a second. No call
 * may be under way. NULL is fine. */
void ch_hands_stop(ChHands *hands);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChHands, ch_hands_stop)

/* Borrowed pidfd: readable once the hands have ended. For the loop's watch, or poll(2). */
int ch_hands_peek_death_fd(const ChHands *hands);

/**
 * ch_hands_on_end:
 * @end: called by the thread whose request finds that the hands have ended, before it is told; once
 *   in each such thread
 *
 * Without hands nothing that the brain sees of a pod is true: no pass should get as far as to write
 * it down. Set before other threads ask.
 */
void ch_hands_on_end(ChHands *hands, void (*end)(void));

/* The pods directory given at start. */
const char *ch_hands_peek_pods_dir(const ChHands *hands);

/**
 * ch_hands_call:
 * @request: `op` and its arguments; version and sequence are filled in here
 * @out_reply: (optional): also when the hands report an error; untouched when they do not answer
 * @out_fd: (optional): the descriptor of the reply, close-on-exec, or -EBADF
 *
 * Thread: any but the loop's. Blocks: normally for 20 to 300 us, at most 8 s (waiting for an idle
 * channel included); PASST_REPAIR up to 66 s.
 *
 * Returns: false with CH_ERRNO and the hands' text when they report an error, CH_ERROR_TIMEOUT, or
 * CH_ERROR_CLOSED when they are gone
 */
bool ch_hands_call(ChHands *hands,
                   const ChHandsRequest *request,
                   ChHandsReply *out_reply,
                   int *out_fd,
                   GError **error);

/* The same with @bytes after the record: request->n_bytes of them. */
bool ch_hands_call_with(ChHands *hands,
                        const ChHandsRequest *request,
                        const void *bytes,
                        ChHandsReply *out_reply,
                        int *out_fd,
                        GError **error);

/* Whether the hands have ended or do not answer: such an error says nothing about what they were
 * asked, and must not decide about a VM. */
bool ch_hands_is_silence(const GError *error);

/* Whether this error of a call says nothing about the pod, so that the same call may do later: the
 * hands are silent, they or the kernel lack something for the moment (a process, memory,
 * descriptors, earlier steps hang), or the launcher is gone. Thread: any. */
bool ch_hands_is_passing(const GError *error);

/**
 * ch_hands_tell: sends a request that is never answered; those of one thread arrive in order.
 *
 * Never blocks: while the hands do not keep up it is kept, and sent with a later one or after a
 * call. Thread: any, the loop's included.
 *
 * Returns: false with CH_ERROR_CLOSED, or CH_ERRNO (EAGAIN: the hands do not move at all)
 */
bool ch_hands_tell(ChHands *hands, const ChHandsRequest *request, GError **error);
