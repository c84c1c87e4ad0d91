/* SPDX-License-Identifier: Apache-2.0 */

/*
 * tdx: whether this node has room for guests that TDX encrypts, and what is told when the cluster
 * asks for them. Spec: 05 §8.7, 07 §3.4.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t n_guests; /* at a time; not positive: none */
    char *reason;     /* owned; why it is not known, else NULL */
    bool is_asked;    /* the gate was on when it was configured last */
} ChTdx;

/* @host_root: of the host as this process sees it. Thread: while the process has its capabilities.
 */
void ch_tdx_look(ChTdx *out_tdx, const char *host_root);
void ch_tdx_clear(ChTdx *tdx);

/* @is_asked: the gate WorkloadEncryptionTDX. Tells what stands against it, when it was switched on.
 * Thread: one at a time. */
void ch_tdx_configure(ChTdx *tdx, bool is_asked);
