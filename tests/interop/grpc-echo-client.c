/* SPDX-License-Identifier: Apache-2.0 */

/*
 * grpc-echo-client: our gRPC client, told by its input what to ask of a foreign server.
 * usage: grpc-echo-client SOCKET
 *
 * Reads a command a line, prints an answer a line:
 *   ready MS                          wait for the peer's SETTINGS
 *   call COMMAND NUMBER LENGTH MS     /test.Echo/Do with domain_name of LENGTH bytes
 *   threads N                         N threads with one "echo" each, at once
 *   stream NUMBER                     /test.Echo/Stream
 *   other                             /test.Echo/Nope
 *   close                             closes the channel
 * Answers: "ok ..." or "error CODE TEXT".
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.pb-c.h"
#include "connect.h"
#include "lib/base/time.h"
#include "lib/grpc/client.h"

#define DEFAULT_TIMEOUT_US (60 * CH_SECOND_US)
#define MAX_THREADS        200

typedef struct {
    ChLoop *loop;
    ChGrpcChannel *channel;
} Program;

static int
number_after(const char *line, const char *word)
{
    gint64 number = 0;

    if (!g_ascii_string_to_signed(line + strlen(word), 10, 0, G_MAXINT, &number, NULL))
        g_error("no number in: %s", line);
    return (int)number;
}

static void
print_error(const GError *error)
{
    g_autofree char *text = g_strescape(error->message, NULL);

    g_assert(error->domain == CH_GRPC_ERROR);
    printf("error %d %s\n", error->code, text);
}

/* Returns: the length of std_out; -1 with an error */
static gssize
call(ChGrpcChannel *channel,
     const char *method,
     const char *command,
     int number,
     gsize length,
     int64_t timeout_us,
     GError **error)
{
    Kubevirt__Cmd__V1__ExecRequest request = KUBEVIRT__CMD__V1__EXEC_REQUEST__INIT;
    g_autofree char *name = g_strnfill(length, 'x');
    g_autofree char *command_copy = g_strdup(command);
    Kubevirt__Cmd__V1__ExecResponse *response;
    ProtobufCMessage *message;
    gssize answered;

    request.domain_name = name;
    request.command = command_copy;
    request.timeout_seconds = number;
    if (!ch_grpc_call(channel,
                      method,
                      &request.base,
                      &kubevirt__cmd__v1__exec_response__descriptor,
                      timeout_us,
                      &message,
                      error))
        return -1;
    response = (void *)message;
    answered = (gssize)strlen(response->std_out);
    protobuf_c_message_free_unpacked(message, NULL);
    return answered;
}

static void
do_call(Program *program, const char *line)
{
    char command[32];
    int number, timeout_ms;
    unsigned length;
    g_autoptr(GError) error = NULL;
    gssize answered;

    if (sscanf(line, "call %31s %d %u %d", command, &number, &length, &timeout_ms) != 4)
        g_error("bad line: %s", line);
    answered = call(
        program->channel, "/test.Echo/Do", command, number, length, timeout_ms * CH_MS_US, &error);
    if (error != NULL)
        print_error(error);
    else
        printf("ok %" G_GSSIZE_FORMAT "\n", answered);
}

static void *
echo_once(void *data)
{
    g_autoptr(GError) error = NULL;
    const gssize answered =
        call(data, "/test.Echo/Do", "echo", 0, 1000, DEFAULT_TIMEOUT_US, &error);

    return GINT_TO_POINTER(answered == 1000 ? 1 : 0);
}

static void
do_threads(Program *program, const char *line)
{
    const int n = MIN(number_after(line, "threads "), MAX_THREADS);
    pthread_t threads[MAX_THREADS];
    int n_good = 0;

    for (int i = 0; i < n; i++) {
        if (pthread_create(&threads[i], NULL, echo_once, program->channel) != 0)
            g_error("no thread");
    }
    for (int i = 0; i < n; i++) {
        void *result;

        pthread_join(threads[i], &result);
        n_good += GPOINTER_TO_INT(result);
    }
    printf("ok %d\n", n_good);
}

/* A stream runs on the loop; the main thread waits for its end. */
typedef struct {
    Program *program;
    int number;
    int n_messages;
    bool is_in_order;
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    GError *error;
} Stream;

static void
on_message(gpointer data, ProtobufCMessage *message)
{
    Stream *stream = data;
    const Kubevirt__Cmd__V1__ExecResponse *response = (const void *)message;

    stream->is_in_order &= response->exit_code == stream->n_messages;
    stream->n_messages++;
}

static void
on_done(gpointer data, const GError *error)
{
    Stream *stream = data;

    pthread_mutex_lock(&stream->lock);
    stream->error = error != NULL ? g_error_copy(error) : NULL;
    stream->is_done = true;
    pthread_cond_signal(&stream->done);
    pthread_mutex_unlock(&stream->lock);
}

static void
start_stream(gpointer data)
{
    static const ChGrpcSink sink = {on_message, on_done};
    Stream *stream = data;
    Kubevirt__Cmd__V1__ExecRequest request = KUBEVIRT__CMD__V1__EXEC_REQUEST__INIT;

    request.timeout_seconds = stream->number;
    ch_grpc_call_start(stream->program->channel,
                       "/test.Echo/Stream",
                       &request.base,
                       &kubevirt__cmd__v1__exec_response__descriptor,
                       DEFAULT_TIMEOUT_US,
                       &sink,
                       stream);
}

static void
do_stream(Program *program, const char *line)
{
    Stream stream = {
        .program = program,
        .number = number_after(line, "stream "),
        .is_in_order = true,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .done = PTHREAD_COND_INITIALIZER,
    };

    ch_loop_post(program->loop, start_stream, &stream, NULL);
    pthread_mutex_lock(&stream.lock);
    while (!stream.is_done)
        pthread_cond_wait(&stream.done, &stream.lock); /* the call has a deadline */
    pthread_mutex_unlock(&stream.lock);
    if (stream.error != NULL)
        print_error(stream.error);
    else
        printf("ok %d %s\n", stream.n_messages, stream.is_in_order ? "in order" : "mixed up");
    g_clear_error(&stream.error);
}

static void
do_other(Program *program)
{
    g_autoptr(GError) error = NULL;

    (void)call(program->channel, "/test.Echo/Nope", "", 0, 1, DEFAULT_TIMEOUT_US, &error);
    if (error != NULL)
        print_error(error);
    else
        puts("ok");
}

static void
do_ready(Program *program, const char *line)
{
    g_autoptr(GError) error = NULL;

    if (ch_grpc_channel_wait_ready(
            program->channel, number_after(line, "ready ") * CH_MS_US, &error))
        puts("ok");
    else
        print_error(error);
}

static void
obey(Program *program, const char *line)
{
    if (g_str_has_prefix(line, "ready "))
        do_ready(program, line);
    else if (g_str_has_prefix(line, "call "))
        do_call(program, line);
    else if (g_str_has_prefix(line, "threads "))
        do_threads(program, line);
    else if (g_str_has_prefix(line, "stream "))
        do_stream(program, line);
    else if (g_str_has_prefix(line, "other"))
        do_other(program);
    else if (g_str_has_prefix(line, "close")) {
        ch_grpc_channel_close(program->channel);
        puts("ok");
    } else {
        g_error("unknown command: %s", line);
    }
}

int
main(int argc, char **argv)
{
    g_autoptr(ChLoop) loop = ch_loop_new();
    Program program = {.loop = loop};
    char line[256];

    if (argc != 2)
        return EXIT_FAILURE;
    setvbuf(stdout, NULL, _IOLBF, 0);
    program.channel = ch_grpc_channel_new(loop, connect_to(argv[1]), "localhost");
    ch_loop_start(loop, "echo-client");
    while (fgets(line, sizeof(line), stdin) != NULL)
        obey(&program, g_strchomp(line));
    ch_grpc_channel_unref(program.channel);
    ch_loop_stop(loop);
    ch_loop_join(loop);
    return EXIT_SUCCESS;
}
