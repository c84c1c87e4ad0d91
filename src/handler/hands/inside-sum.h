/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-sum: checksums of what container disks and kernels are mounted from.
 *
 * In the process's own namespaces, a part at a time, in a child with a deadline. Needs
 * CAP_SYS_PTRACE, CAP_DAC_OVERRIDE. Spec: 05 §6.8.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/**
 * ch_inside_sum_image: goes on with the checksum of what MOUNT would mount.
 * @request: in its uid the pod that serves it; identity, offset and crc as the last part's reply
 * had them (target.dev and .ino, end, crc), 0 for the first
 *
 * Reads at most CH_HANDS_SUM_BYTES.
 *
 * Returns: true with target, size, end, crc; ESTALE: it is another file by now; false with the
 * reply and its step filled in
 */
bool ch_inside_sum_image(const ChHandsRequest *request, const char *path, ChHandsReply *reply);
