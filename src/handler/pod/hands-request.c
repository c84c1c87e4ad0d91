/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/hands-request.h"

#include "lib/base/errors.h"

bool
ch_hands_request_for_uid(ChHandsRequest *out_request,
                         ChHandsOp op,
                         const char *pod_uid,
                         GError **error)
{
    if (pod_uid == NULL || !ch_hands_uid_is_valid(pod_uid))
        return ch_fail(error, CH_ERROR_INVALID, "'%s' is no pod UID", pod_uid ? pod_uid : "");
    *out_request = (ChHandsRequest){.op = op};
    g_strlcpy(out_request->uid, pod_uid, sizeof(out_request->uid));
    return true;
}
