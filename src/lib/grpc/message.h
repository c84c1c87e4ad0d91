/* SPDX-License-Identifier: Apache-2.0 */

/*
 * message: protobuf messages to bytes and back, with the checks that a Go peer makes.
 *
 * Pure. Thread: any. Spec: 03 §2.3. Weaker than Go, all three
 * protobuf-c's doing and never sent by a launcher: a known field with another wire type makes the
 * message invalid, scalars of a sub-message that comes twice do not merge, a string ends at its
 * first NUL.
 */

#pragma once

#include <protobuf-c/protobuf-c.h>

#include "lib/grpc/frame.h"

/**
 * ch_grpc_message_pack:
 *
 * Returns: (transfer full): prefix and message; NULL with CH_GRPC_ERROR INTERNAL when a string is
 * not UTF-8 ("grpc: error while marshaling: ...")
 */
GBytes *ch_grpc_message_pack(const ProtobufCMessage *message, GError **error);

/**
 * ch_grpc_message_unpack:
 * @bytes: without prefix; hostile
 *
 * What the message may allocate is bounded by a multiple of its length, since two bytes of input
 * can ask for a hundred of memory.
 *
 * Returns: (transfer full): free with protobuf_c_message_free_unpacked(message, NULL); NULL with
 * CH_GRPC_ERROR INTERNAL, the text being what grpc-go appends to its own prefix
 */
ProtobufCMessage *
ch_grpc_message_unpack(const ProtobufCMessageDescriptor *type, GBytes *bytes, GError **error);
