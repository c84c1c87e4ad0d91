/* SPDX-License-Identifier: Apache-2.0 */

/*
 * grpc-echo-server: our gRPC server for foreign clients to talk to.
 * usage: grpc-echo-server SOCKET
 *
 * Serves /test.Echo/Do and /test.Echo/Stream (server streaming) with ExecRequest and ExecResponse
 * of proto/cmd.proto. Do acts as `command` says:
 *
 *     echo  std_out is domain_name
 *     late  the same, by another thread, after a moment
 *     big   std_out of timeout_seconds bytes
 *     fail  status timeout_seconds, message domain_name
 *     hang  no answer; prints "hanging", and "gone" once the call is gone
 *
 * Stream sends timeout_seconds responses, numbered by exit_code, then fails with "enough" if
 * command is "fail". Prints "ready" when it listens. SIGTERM: graceful stop, then "stopped"; only
 * what hangs is soon given up, all else has long.
 */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmd.pb-c.h"
#include "lib/base/time.h"
#include "lib/grpc/server.h"

#define POLL_US          (10 * CH_MS_US)
#define LATE_US          (20 * CH_MS_US)
#define GRACE_US         (60 * CH_SECOND_US)
#define GRACE_TO_HANG_US (500 * CH_MS_US)

typedef struct {
    ChLoop *loop;
    ChGrpcServer *server;
    GPtrArray *hanging; /* owned */
} Program;

typedef struct {
    Program *program;
    ChGrpcServerCall *call;
    ChTimer *timer;
} Hanging;

/* Every call must be ended, whoever is still there to hear it. */
static void
hanging_free(gpointer data)
{
    Hanging *hanging = data;

    ch_grpc_server_call_finish(hanging->call);
    ch_timer_free(hanging->timer);
    g_free(hanging);
}

static void
on_poll(gpointer data)
{
    Hanging *hanging = data;

    if (!ch_grpc_server_call_is_gone(hanging->call)) {
        ch_timer_arm(hanging->timer, POLL_US);
        return;
    }
    puts("gone");
    g_ptr_array_remove(hanging->program->hanging, hanging);
}

static void
hang(Program *program, ChGrpcServerCall *call)
{
    Hanging *hanging = g_new0(Hanging, 1);

    hanging->program = program;
    hanging->call = call;
    hanging->timer = ch_timer_new(program->loop, on_poll, hanging);
    ch_timer_arm(hanging->timer, POLL_US);
    g_ptr_array_add(program->hanging, hanging);
    puts("hanging");
}

static void
reply(ChGrpcServerCall *call, char *text, int32_t exit_code)
{
    Kubevirt__Cmd__V1__Response success = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__ExecResponse response = KUBEVIRT__CMD__V1__EXEC_RESPONSE__INIT;

    success.success = true;
    response.response = &success;
    response.std_out = text;
    response.exit_code = exit_code;
    ch_grpc_server_call_reply(call, &response.base);
}

typedef struct {
    ChGrpcServerCall *call;
    char *text;
} Late;

static void *
answer_late(void *data)
{
    Late *late = data;

    g_usleep(LATE_US);
    reply(late->call, late->text, 0);
    g_free(late->text);
    g_free(late);
    return NULL;
}

static void
start_late(ChGrpcServerCall *call, const char *text)
{
    Late *late = g_new0(Late, 1);
    pthread_t thread;

    late->call = call;
    late->text = g_strdup(text);
    if (pthread_create(&thread, NULL, answer_late, late) != 0)
        g_error("no thread");
    pthread_detach(thread);
}

static void
handle_do(ChGrpcServerCall *call, const ProtobufCMessage *message, gpointer data)
{
    const Kubevirt__Cmd__V1__ExecRequest *request = (const void *)message;

    if (g_str_equal(request->command, "fail")) {
        ch_grpc_server_call_fail(
            call, (ChGrpcStatus)request->timeout_seconds, request->domain_name);
    } else if (g_str_equal(request->command, "hang")) {
        hang(data, call);
    } else if (g_str_equal(request->command, "late")) {
        start_late(call, request->domain_name);
    } else if (g_str_equal(request->command, "big")) {
        g_autofree char *text = g_strnfill((gsize)request->timeout_seconds, 'x');

        reply(call, text, 0);
    } else {
        reply(call, request->domain_name, 0);
    }
}

static void
handle_stream(ChGrpcServerCall *call, const ProtobufCMessage *message, gpointer data)
{
    const Kubevirt__Cmd__V1__ExecRequest *request = (const void *)message;
    Kubevirt__Cmd__V1__ExecResponse response = KUBEVIRT__CMD__V1__EXEC_RESPONSE__INIT;

    for (int32_t i = 0; i < request->timeout_seconds; i++) {
        response.exit_code = i;
        ch_grpc_server_call_send(call, &response.base);
    }
    if (g_str_equal(request->command, "fail"))
        ch_grpc_server_call_fail(call, CH_GRPC_ABORTED, "enough");
    else
        ch_grpc_server_call_finish(call);
}

static const ChGrpcMethod methods[] = {
    {"/test.Echo/Do", &kubevirt__cmd__v1__exec_request__descriptor, handle_do},
    {"/test.Echo/Stream", &kubevirt__cmd__v1__exec_request__descriptor, handle_stream},
};

static void
on_stopped(gpointer data)
{
    const Program *program = data;

    puts("stopped");
    ch_loop_stop(program->loop);
}

static void
on_term(int signo, gpointer data)
{
    Program *program = data;

    ch_grpc_server_stop(program->server,
                        program->hanging->len > 0 ? GRACE_TO_HANG_US : GRACE_US,
                        on_stopped,
                        program);
}

static int
listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, SOMAXCONN) < 0)
        g_error("cannot listen on '%s'", path);
    return fd;
}

int
main(int argc, char **argv)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    g_autoptr(ChGrpcServer) server = ch_grpc_server_new(loop, NULL);
    g_autoptr(GPtrArray) hanging = g_ptr_array_new_with_free_func(hanging_free);
    Program program = {.loop = loop, .server = server, .hanging = hanging};
    g_autoptr(ChSignal) term = ch_signal_new(loop, SIGTERM, on_term, &program);

    if (argc != 2)
        return EXIT_FAILURE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    ch_grpc_server_add(server, methods, G_N_ELEMENTS(methods), &program);
    ch_grpc_server_listen(server, listen_on(argv[1]));
    puts("ready");
    ch_loop_run(loop);
    return EXIT_SUCCESS;
}
