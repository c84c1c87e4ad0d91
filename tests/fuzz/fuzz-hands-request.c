/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The hands' first line: what it lets through must be in the table's terms, whatever the brain
 * sent.
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "handler/hands/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ChHandsRequest request;
    const int result = ch_hands_request_check(data, size, &request);

    if (result == EBADMSG) { /* only when the length is not what the record says */
        g_assert(size < sizeof(request) || (memcpy(&request, data, sizeof(request)),
                                            size - sizeof(request) != request.n_bytes));
        return 0;
    }
    g_assert(size - sizeof(request) == request.n_bytes);
    g_assert(memcmp(&request, data, sizeof(request)) == 0);
    (void)ch_hands_op_name(request.op);
    (void)ch_hands_op_is_silent(request.op);
    if (result != 0)
        return 0;
    g_assert(request.version == CH_HANDS_VERSION);
    g_assert(request.op > CH_HANDS_OP_INVALID && request.op < CH_HANDS_OP_N);
    g_assert(request.devices <= CH_HANDS_DEVICES);
    g_assert(request.n_bytes <= CH_HANDS_MAX_BYTES);
    g_assert(memchr(request.uid, '\0', sizeof(request.uid)) != NULL);
    g_assert(strpbrk(request.uid, "/.%\n") == NULL);
    g_assert((request.uid[0] != '\0') + (request.handle != 0) <= 1);
    return 0;
}
