/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stranger's bytes on a server connection. The first byte of the input: bit 0: the client's
 * preface and SETTINGS go before the rest; bit 1: half of it is sent first, so that answers go out
 * in between.
 */

#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/grpc/server.h"
#include "notify.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* More than what a connection needs to come to its end. */
#define MAX_TURNS 200

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"

static void
handle_echo(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    ch_grpc_server_call_send(call, request);
    ch_grpc_server_call_reply(call, request);
}

static void
handle_fail(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    ch_grpc_server_call_fail(call, CH_GRPC_NOT_FOUND, "100% n\xc3\xb6");
}

static const ChGrpcMethod methods[] = {
    {"/a.A/Echo", &kubevirt__notify__v1__domain_event_request__descriptor, handle_echo},
    {"/a.A/Fail", &kubevirt__notify__v1__domain_event_request__descriptor, handle_fail},
};

static void
on_peer_gone(gpointer data)
{
    *(bool *)data = true;
}

static void
send_bytes(int fd, const uint8_t *bytes, size_t size)
{
    (void)!send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void
turn(ChLoop *loop, int fd)
{
    char answer[4096];

    event_base_loop(ch_loop_peek_base(loop), EVLOOP_NONBLOCK);
    while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
        ;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(ChLoop) loop = NULL;
    g_autoptr(ChGrpcServer) server = NULL;
    bool is_gone = false;
    size_t half;
    int fds[2];

    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return 0;
    loop = ch_loop_new();
    server = ch_grpc_server_new(loop, NULL);
    ch_grpc_server_add(server, methods, G_N_ELEMENTS(methods), NULL);
    ch_grpc_server_accept(server, fds[0], &is_gone, on_peer_gone);

    if (data[0] & 1)
        send_bytes(fds[1], (const uint8_t *)PREFACE, sizeof(PREFACE) - 1);
    half = data[0] & 2 ? size / 2 : 0;
    if (half > 1) {
        send_bytes(fds[1], data + 1, half - 1);
        for (int i = 0; i < 4; i++)
            turn(loop, fds[1]);
    }
    half = MAX(half, 1);
    send_bytes(fds[1], data + half, size - half);
    for (int i = 0; i < 4; i++)
        turn(loop, fds[1]);
    shutdown(fds[1], SHUT_WR);
    for (int i = 0; i < MAX_TURNS && !is_gone; i++)
        turn(loop, fds[1]);
    g_assert_true(is_gone);
    close(fds[1]);
    return 0;
}
