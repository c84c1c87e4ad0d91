/* SPDX-License-Identifier: Apache-2.0 */

/*
 * frame: gRPC's own encodings on top of HTTP/2: message prefix, grpc-timeout, grpc-message.
 *
 * Pure. Thread: any (a reader has one owner). Spec: 03 §3.2.
 */

#pragma once

#include "lib/grpc/status.h"

#define CH_GRPC_PREFIX_BYTES 5

#define CH_GRPC_MAX_MESSAGE_BYTES (4u << 20) /* inwards */

/* Writes the prefix of an uncompressed message of @length bytes. */
void ch_grpc_prefix_write(uint8_t out_prefix[static CH_GRPC_PREFIX_BYTES], gsize length);

/* Joins DATA frames to messages. All zeroes is an empty reader. The body grows with what arrived,
 * not with what the prefix announces. */
typedef struct {
    uint8_t prefix[CH_GRPC_PREFIX_BYTES];
    guint n_prefix;
    GByteArray *body;  /* (nullable): owned; NULL while the prefix is incomplete */
    gsize body_length; /* announced; valid with body */
} ChGrpcReader;

typedef enum {
    CH_GRPC_READ_INVALID = 0, /* never returned */
    CH_GRPC_READ_MORE,        /* all input taken, no message complete */
    CH_GRPC_READ_MESSAGE,     /* one message; there may be input left */
    CH_GRPC_READ_ERROR,       /* the stream is unusable */
} ChGrpcRead;

/**
 * ch_grpc_reader_feed:
 * @bytes: (inout): advanced past what was taken
 * @length: (inout): what is left
 * @out_message: (out) (transfer full): with CH_GRPC_READ_MESSAGE
 * @error: CH_GRPC_ERROR, grpc-go's status and text: RESOURCE_EXHAUSTED above
 *   CH_GRPC_MAX_MESSAGE_BYTES, INTERNAL for a compressed message (no compressor is ever offered)
 */
ChGrpcRead ch_grpc_reader_feed(ChGrpcReader *reader,
                               const uint8_t **bytes,
                               gsize *length,
                               GBytes **out_message,
                               GError **error);
/* True between two messages: a stream that ends elsewhere was cut. */
bool ch_grpc_reader_is_between(const ChGrpcReader *reader);
gsize ch_grpc_reader_n_held(const ChGrpcReader *reader); /* bytes kept */
void ch_grpc_reader_clear(ChGrpcReader *reader);

#define CH_GRPC_TIMEOUT_SIZE 16 /* "99999999u" and some air */

/* @timeout_us rounded up to what eight digits and one unit can say; "0n" when it passed. */
void ch_grpc_timeout_format(int64_t timeout_us, char out_text[static CH_GRPC_TIMEOUT_SIZE]);
/* Returns: false with CH_GRPC_ERROR INTERNAL "malformed grpc-timeout: ..." */
bool ch_grpc_timeout_parse(const char *text, int64_t *out_timeout_us, GError **error);

/**
 * ch_grpc_percent_encode: for grpc-message.
 * @max_bytes: of the result; a longer text is cut between two characters
 * Returns: (transfer full): bytes outside 0x20...0x7e and '%' as %XX
 */
char *ch_grpc_percent_encode(const char *text, gsize max_bytes);
/* (transfer full): an invalid escape stays as it is; what is not UTF-8 afterwards becomes U+FFFD */
char *ch_grpc_percent_decode(const char *text);
