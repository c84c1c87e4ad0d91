/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cmd-client: the agent's commands to a foreign launcher, told by its input.
 * usage: cmd-client SOCKET
 *
 * Reads a JSON object a line: "rpc" names the command, the other members are those of
 * ChLauncherRequest ("options" in base64); "Info" is the version handshake. Prints one a line: the
 * answer ("text", or "textLength" when it is long, "data" in base64, "number", "json"), or "code"
 * and "message" of what failed.
 */

#include "handler/launcher/rpc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"

#define MAX_TEXT (1u << 20) /* bytes that are printed */

static ChLauncherRpc
find_rpc(const char *name)
{
    for (ChLauncherRpc rpc = CH_LAUNCHER_RPC_INVALID + 1; rpc < CH_LAUNCHER_RPC_N; rpc++) {
        if (g_str_equal(ch_launcher_rpc_name(rpc), name))
            return rpc;
    }
    g_error("no such command: %s", name);
}

static void
say_error(ChJson *out, const GError *error)
{
    ch_json_set_int(out, "code", error->code);
    ch_json_set_string(out, "message", error->message);
}

static void
say_answer(ChJson *out, const ChLauncherAnswer *answer)
{
    g_autofree char *data = g_base64_encode(answer->data, answer->length);
    g_autoptr(GError) error = NULL;
    ChJson *json = NULL;

    if (answer->text != NULL && strlen(answer->text) > MAX_TEXT) {
        ch_json_set_int(out, "textLength", (int64_t)strlen(answer->text));
        return;
    }
    if (answer->text != NULL)
        ch_json_set_string(out, "text", answer->text);
    ch_json_set_string(out, "data", data);
    ch_json_set_int(out, "number", answer->number);
    if (answer->rpc == CH_LAUNCHER_RPC_GET_VM_STATS) {
        const Kubevirt__Cmd__V1__VMStatsResponse *stats = ch_launcher_answer_stats(answer);

        ch_json_set_string(out, "text", stats->domain_stats->domain_stats);
        ch_json_set_int(out, "number", stats->dirty_rate_stats->dirty_rate_mbs);
    } else if (answer->rpc != CH_LAUNCHER_RPC_GET_QEMU_VERSION &&
               answer->rpc != CH_LAUNCHER_RPC_EXEC &&
               answer->rpc != CH_LAUNCHER_RPC_GET_SCREENSHOT) {
        if (!ch_launcher_answer_decode(answer, &json, &error))
            g_error("%s", error->message);
        ch_json_set(out, "json", json);
    }
}

static void
read_request(const ChJson *in,
             GPtrArray *args,
             Kubevirt__Cmd__V1__VirtualMachineOptions **out_options,
             ChLauncherRequest *out_request)
{
    const char *options = ch_json_string_at(in, "options");
    int64_t seconds = 0, stats = 0;

    (void)ch_json_int_at(in, &seconds, "seconds"); /* 0 without */
    (void)ch_json_int_at(in, &stats, "stats");
    for (gsize i = 0; i < ch_json_length(ch_json_at(in, "args")); i++)
        g_ptr_array_add(args, (char *)ch_json_as_string(ch_json_item(ch_json_at(in, "args"), i)));
    g_ptr_array_add(args, NULL);
    if (options != NULL) {
        gsize length;
        g_autofree guchar *bytes = g_base64_decode(options, &length);

        *out_options = kubevirt__cmd__v1__virtual_machine_options__unpack(NULL, length, bytes);
    }
    *out_request = (ChLauncherRequest){
        .vmi_json = ch_json_string_at(in, "vmi"),
        .options = *out_options,
        .document = ch_json_string_at(in, "document"),
        .path = ch_json_string_at(in, "path"),
        .domain_name = ch_json_string_at(in, "domainName"),
        .command = ch_json_string_at(in, "command"),
        .args = (const char *const *)args->pdata,
        .seconds = (int32_t)seconds,
        .stats = (guint)stats,
    };
    if (out_request->vmi_json != NULL)
        out_request->vmi_length = strlen(out_request->vmi_json);
}

static ChJson *
obey(ChGrpcChannel *channel, const ChJson *in)
{
    const char *name = ch_json_string_at(in, "rpc");
    ChJson *out = ch_json_new_object();
    Kubevirt__Cmd__V1__VirtualMachineOptions *options = NULL;
    g_autoptr(GPtrArray) args = g_ptr_array_new();
    g_auto(ChLauncherAnswer) answer = {0};
    g_autoptr(GError) error = NULL;
    ChLauncherRequest request;

    read_request(in, args, &options, &request);
    if (g_str_equal(name, "Info"))
        (void)ch_launcher_check_version(channel, &error); /* told below */
    else if (ch_launcher_call(channel, find_rpc(name), &request, &answer, &error))
        say_answer(out, &answer);
    if (error != NULL)
        say_error(out, error);
    if (options != NULL)
        kubevirt__cmd__v1__virtual_machine_options__free_unpacked(options, NULL);
    return out;
}

int
main(int argc, char **argv)
{
    ChLoop *loop = ch_loop_new();
    ChGrpcChannel *channel = ch_grpc_channel_new(loop, connect_to(argv[1]), "localhost");
    g_autofree char *line = NULL;
    size_t capacity = 0;
    ssize_t length;

    ch_loop_start(loop, "loop");
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        g_autoptr(ChJson) in = ch_json_parse(line, length, NULL);
        g_autoptr(ChJson) out = obey(channel, in);
        g_autofree char *text = ch_json_print(out, NULL);

        puts(text);
        fflush(stdout);
    }
    ch_grpc_channel_close(channel);
    ch_grpc_channel_unref(channel);
    ch_loop_stop(loop);
    ch_loop_join(loop);
    ch_loop_free(loop);
    return 0;
}
