/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/linux/channel.h"

void
ch_reply_init(ChHandsReply *reply, const ChHandsRequest *request)
{
    *reply = (ChHandsReply){
        .version = CH_HANDS_VERSION, .op = request->op, .sequence = request->sequence};
}

bool
ch_reply_fail(ChHandsReply *reply, int errnum, const char *format, ...)
{
    const int positive = abs(errnum);
    char description[CH_ERRNO_TEXT_SIZE];
    va_list args;
    size_t n;

    reply->errnum = positive;
    va_start(args, format);
    (void)vsnprintf(reply->text, sizeof(reply->text), format, args);
    va_end(args);

    n = strlen(reply->text);
    (void)snprintf(
        reply->text + n, sizeof(reply->text) - n, ": %s", ch_errno_print(positive, description));
    return false;
}

bool
ch_reply_fail_step(ChHandsReply *reply, ChHandsMountStep step, int errnum, const char *what)
{
    reply->step = step;
    return ch_reply_fail(reply, errnum, "%s", what);
}

bool
ch_reply_take_failure(ChHandsReply *reply, const ChHandsReply *failed)
{
    reply->step = failed->step;
    reply->errnum = failed->errnum;
    memcpy(reply->text, failed->text, sizeof(reply->text));
    return false;
}

bool
ch_reply_send(ChHandsReply *reply, int channel_fd, int fd)
{
    reply->has_fd = fd >= 0;
    return ch_channel_send(channel_fd, reply, sizeof(*reply), fd) == 0;
}

bool
ch_reply_is_shortage(int errnum)
{
    const int positive = abs(errnum);

    return positive == ENOMEM || positive == ENOBUFS || positive == EMFILE || positive == ENFILE ||
           positive == EAGAIN || positive == EINTR;
}

bool
ch_reply_is_unknown(long result)
{
    return result == -EIO || (result < 0 && ch_reply_is_shortage((int)result));
}
