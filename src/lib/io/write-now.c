/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/io/write-now.h"

#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <stdbool.h>

static bool
is_tls(struct bufferevent *bev)
{
    return bufferevent_openssl_get_ssl(bev) != NULL;
}

void
ch_write_now_init(struct bufferevent *bev)
{
    bufferevent_enable(bev, EV_READ);
    if (is_tls(bev))
        bufferevent_enable(bev, EV_WRITE);
    else
        bufferevent_disable(bev, EV_WRITE); /* it is made enabled */
}

void
ch_write_now(struct bufferevent *bev)
{
    struct evbuffer *output = bufferevent_get_output(bev);

    if (is_tls(bev) || evbuffer_get_length(output) == 0)
        return;
    evbuffer_unfreeze(output, 1); /* as only the bufferevent itself takes from it otherwise */
    (void)evbuffer_write(output, bufferevent_getfd(bev));
    evbuffer_freeze(output, 1);
    if (evbuffer_get_length(output) > 0)
        bufferevent_enable(bev, EV_WRITE);
    else
        bufferevent_disable(bev, EV_WRITE);
}
