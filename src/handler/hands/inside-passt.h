/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-passt: helps passt, the network of some VMs, through a migration.
 *
 * Theory of operation: passt takes its guest's TCP connections along, for which it must switch
 * their sockets into repair mode and back, and that needs CAP_NET_ADMIN. So it listens on
 * "NAME.socket.repair" in the pod's /var/run/libvirt/qemu/run/passt, sends sockets with what is to
 * be set on them, and waits for the echo of that before it goes on. This is what the program
 * `passt-repair` does; no program of the image is executed. Runs in a child of the hands, see
 * inside.h. Spec: 04 §19.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "handler/hands/protocol.h"

/**
 * ch_inside_repair_passt:
 * @is_target: of the migration: passt may not be there yet, and is waited for
 * @deadline_us: of the monotonic clock
 *
 * Needs CAP_NET_ADMIN, CAP_DAC_OVERRIDE. Mustn't: touch a socket of the node's own network. Blocks:
 * until passt closes the connection, or the deadline.
 *
 * Returns: false with the reply filled in: ENOENT (no directory; at the source also: no socket),
 * ECONNREFUSED, ETIMEDOUT, EPROTO (passt's message makes no sense), or what setting failed with
 */
bool ch_inside_repair_passt(int root_fd, bool is_target, int64_t deadline_us, ChHandsReply *reply);
