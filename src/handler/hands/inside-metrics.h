/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-metrics: where a guest finds metrics of its node: a small disk, or a channel of QEMU's.
 *
 * As inside.h: in a child, idempotent, below the pod's root only. The disk's format is vhostmd's: a
 * header of 16 bytes in big-endian order ("mvbd", a flag that is 1 while the body changes, the sum
 * of the body's bytes, its length), then the body. Spec: 05 §14, traps 05 §17 #5 and 07 #39, #40.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

#define CH_METRICS_HEADER_SIZE 16u
#define CH_METRICS_MAX_BODY    262120u /* bytes; the disk has 256 KiB */

/* Pure. @is_changing: the flag. */
void ch_inside_metrics_header(uint8_t out_header[CH_METRICS_HEADER_SIZE],
                              const void *body,
                              gsize n_bytes,
                              bool is_changing);

/**
 * ch_inside_write_metrics: writes @body to the disk that the launcher made.
 *
 * A reader in the guest sees the flag before it can see a part of the body: first the header goes
 * to the disk, then the body, then the header without the flag. What lies behind the body stays.
 * Refuses links (ELOOP), what is no regular file, and one that has another name besides (EINVAL).
 * Needs CAP_DAC_OVERRIDE.
 */
bool ch_inside_write_metrics(int root_fd, const void *body, gsize n_bytes, ChHandsReply *reply);

/* Connects to the socket on which QEMU listens for who serves its channel; does not wait. *out_fd:
 * non-blocking. Fails with ENOENT, ECONNREFUSED (it is not there yet), EAGAIN (somebody else is
 * connected), ... Needs CAP_DAC_OVERRIDE. */
bool ch_inside_connect_metrics(int root_fd, int *out_fd, ChHandsReply *reply);
