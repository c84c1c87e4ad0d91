/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/rpc.h"

#include "cmd-info.pb-c.h"
#include "handler/launcher/rpc-answer.h"
#include "handler/launcher/rpc-error.h"
#include "lib/base/time.h"

#include <string.h>

G_DEFINE_QUARK(ch_launcher_error, ch_launcher_error)

#define INFO            "/kubevirt.cmd.info.CmdInfo/Info"
#define INFO_TIMEOUT_US (5 * CH_SECOND_US)
#define VERSION         1

/* --- requests */

/* A request with all that it points to. */
typedef struct {
    union {
        ProtobufCMessage base;
        Kubevirt__Cmd__V1__EmptyRequest empty;
        Kubevirt__Cmd__V1__VMIRequest vmi;
        Kubevirt__Cmd__V1__MigrationRequest document;
        Kubevirt__Cmd__V1__FreezeRequest freeze;
        Kubevirt__Cmd__V1__MemoryDumpRequest dump;
        Kubevirt__Cmd__V1__VMStatsRequest stats;
        Kubevirt__Cmd__V1__ExecRequest exec;
        Kubevirt__Cmd__V1__GuestPingRequest guest_ping;
    };
    Kubevirt__Cmd__V1__VMI vmi_part;
    Kubevirt__Cmd__V1__VirtualMachineOptions no_options;
    Kubevirt__Cmd__V1__EmptyRequest asked;
} Message;

static bool
fail_request(GError **error, ChLauncherRpc rpc, const char *reason)
{
    g_set_error(error,
                CH_LAUNCHER_ERROR,
                CH_LAUNCHER_ERROR_REQUEST,
                "%s was not sent: %s",
                ch_launcher_rpc_name(rpc),
                reason);
    return false;
}

static bool
takes_vmi(ChRpcRequestKind kind)
{
    return kind == CH_RPC_REQUEST_VMI || kind == CH_RPC_REQUEST_BARE_VMI ||
           kind == CH_RPC_REQUEST_DOCUMENT || kind == CH_RPC_REQUEST_FREEZE ||
           kind == CH_RPC_REQUEST_DUMP;
}

/* (transfer none): the text to send for @document; NULL: it is no object */
static const char *
object_of(const char *document)
{
    if (document == NULL)
        return "{}";
    document += strspn(document, " \t\r\n");
    if (document[0] == '{')
        return document;
    return strncmp(document, "null", 4) == 0 &&
                   document[4 + strspn(document + 4, " \t\r\n")] == '\0'
               ? "{}"
               : NULL;
}

/* What it looks at to find out whether there is anything to do. */
static bool
has_memory_to_sync(const ChLauncherRequest *request)
{
    g_autoptr(ChJson) vmi = ch_json_parse(request->vmi_json, (gssize)request->vmi_length, NULL);
    const ChJson *memory = ch_json_at(vmi, "spec", "domain", "memory");

    return ch_json_at(memory, "maxGuest") != NULL && ch_json_at(memory, "guest") != NULL &&
           ch_json_at(vmi, "status", "memory", "guestAtBoot") != NULL;
}

/* A launcher in Go ends with its VM when it gets one of these: spec 03 §3.4. */
static bool
check_request(ChLauncherRpc rpc, const ChLauncherRequest *request, GError **error)
{
    const ChRpcRequestKind kind = ch_rpc_row(rpc)->request;

    if (takes_vmi(kind) && request->vmi_json == NULL)
        return fail_request(error, rpc, "it has no VMI");
    if (rpc == CH_LAUNCHER_RPC_SYNC_MEMORY && !has_memory_to_sync(request))
        return fail_request(error, rpc, "its VMI lacks maxGuest, guest or guestAtBoot");
    if (kind == CH_RPC_REQUEST_DOCUMENT && object_of(request->document) == NULL)
        return fail_request(error, rpc, "its options are no JSON object");
    if (kind == CH_RPC_REQUEST_EXEC && request->seconds <= 0)
        return fail_request(error, rpc, "its time-out is not positive");
    return true;
}

static void
fill_vmi(Message *message, const ChLauncherRequest *request, bool has_options)
{
    kubevirt__cmd__v1__vmirequest__init(&message->vmi);
    message->vmi.vmi = &message->vmi_part;
    if (has_options)
        message->vmi.options =
            request->options != NULL
                ? (Kubevirt__Cmd__V1__VirtualMachineOptions *)request->options /* not written to */
                : &message->no_options;
}

/* InjectLaunchSecretRequest, BackupRequest and RedefineCheckpointRequest have the same two fields,
 * and so the same bytes. */
static void
fill_document(Message *message, const ChLauncherRequest *request)
{
    const char *text = object_of(request->document);

    kubevirt__cmd__v1__migration_request__init(&message->document);
    message->document.vmi = &message->vmi_part;
    message->document.options = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static void
fill_stats(Message *message, const ChLauncherRequest *request)
{
    const ProtobufCMessageDescriptor *type = &kubevirt__cmd__v1__vmstats_request__descriptor;

    g_assert(type->n_fields == CH_LAUNCHER_STATS_N);
    kubevirt__cmd__v1__vmstats_request__init(&message->stats);
    for (guint i = 0; i < type->n_fields; i++) {
        if ((request->stats & (1u << i)) != 0)
            G_STRUCT_MEMBER(Kubevirt__Cmd__V1__EmptyRequest *,
                            &message->stats,
                            type->fields[i].offset) = &message->asked;
    }
}

static char *
text_of(const char *text)
{
    return (char *)(text != NULL ? text : ""); /* packing does not write to it */
}

static void
fill_exec(Message *message, const ChLauncherRequest *request)
{
    kubevirt__cmd__v1__exec_request__init(&message->exec);
    message->exec.domain_name = text_of(request->domain_name);
    message->exec.command = text_of(request->command);
    message->exec.args = (char **)request->args;
    message->exec.n_args = request->args != NULL ? g_strv_length((char **)request->args) : 0;
    message->exec.timeout_seconds = request->seconds;
}

/* @message: packed before @request goes */
static void
fill_message(Message *message, ChRpcRequestKind kind, const ChLauncherRequest *request)
{
    kubevirt__cmd__v1__vmi__init(&message->vmi_part);
    message->vmi_part.vmi_json =
        (ProtobufCBinaryData){request->vmi_length, (uint8_t *)request->vmi_json};
    kubevirt__cmd__v1__virtual_machine_options__init(&message->no_options);
    kubevirt__cmd__v1__empty_request__init(&message->asked);
    switch (kind) {
    case CH_RPC_REQUEST_VMI:
    case CH_RPC_REQUEST_BARE_VMI:
        fill_vmi(message, request, kind == CH_RPC_REQUEST_VMI);
        break;
    case CH_RPC_REQUEST_DOCUMENT:
        fill_document(message, request);
        break;
    case CH_RPC_REQUEST_FREEZE:
        kubevirt__cmd__v1__freeze_request__init(&message->freeze);
        message->freeze.vmi = &message->vmi_part;
        message->freeze.unfreeze_timeout_seconds = request->seconds;
        break;
    case CH_RPC_REQUEST_DUMP:
        kubevirt__cmd__v1__memory_dump_request__init(&message->dump);
        message->dump.vmi = &message->vmi_part;
        message->dump.dump_path = text_of(request->path);
        break;
    case CH_RPC_REQUEST_STATS:
        fill_stats(message, request);
        break;
    case CH_RPC_REQUEST_EXEC:
        fill_exec(message, request);
        break;
    case CH_RPC_REQUEST_GUEST_PING:
        kubevirt__cmd__v1__guest_ping_request__init(&message->guest_ping);
        message->guest_ping.domain_name = text_of(request->domain_name);
        message->guest_ping.timeout_seconds = request->seconds;
        break;
    case CH_RPC_REQUEST_INVALID:
    case CH_RPC_REQUEST_EMPTY:
        kubevirt__cmd__v1__empty_request__init(&message->empty);
    }
}

/* --- calls */

bool
ch_launcher_call(ChGrpcChannel *channel,
                 ChLauncherRpc rpc,
                 const ChLauncherRequest *request,
                 ChLauncherAnswer *out_answer,
                 GError **error)
{
    static const ChLauncherRequest nothing;
    const ChRpcRow *row = ch_rpc_row(rpc);
    g_auto(ChLauncherAnswer) answer = {.rpc = rpc};
    g_autoptr(GError) reason = NULL;
    Message message;

    if (request == NULL)
        request = &nothing;
    if (!check_request(rpc, request, error))
        return false;
    fill_message(&message, row->request, request);
    if (!ch_grpc_call(channel,
                      row->method,
                      &message.base,
                      row->answer,
                      ch_launcher_rpc_timeout_us(rpc, request),
                      &answer.message,
                      &reason))
        return ch_rpc_fail_call(error, row, reason);
    if (!ch_rpc_answer_read(&answer, error))
        return false;
    if (out_answer != NULL) {
        *out_answer = answer;
        answer.message = NULL;
    }
    return true;
}

bool
ch_launcher_send_vmi(ChGrpcChannel *channel,
                     ChLauncherRpc rpc,
                     const char *vmi_json,
                     gsize length,
                     const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
                     GError **error)
{
    const ChLauncherRequest request = {
        .vmi_json = vmi_json, .vmi_length = length, .options = options};

    return ch_launcher_call(channel, rpc, &request, NULL, error);
}

bool
ch_launcher_ping(ChGrpcChannel *channel, GError **error)
{
    return ch_launcher_call(channel, CH_LAUNCHER_RPC_PING, NULL, NULL, error);
}

bool
ch_launcher_get_domain(ChGrpcChannel *channel, char **out_domain, GError **error)
{
    g_auto(ChLauncherAnswer) answer = {0};

    if (!ch_launcher_call(channel, CH_LAUNCHER_RPC_GET_DOMAIN, NULL, &answer, error))
        return false;
    *out_domain = answer.text[0] != '\0' ? g_strdup(answer.text) : NULL;
    return true;
}

bool
ch_launcher_get_guest_info(ChGrpcChannel *channel, char **out_info, GError **error)
{
    g_auto(ChLauncherAnswer) answer = {0};

    if (!ch_launcher_call(channel, CH_LAUNCHER_RPC_GET_GUEST_INFO, NULL, &answer, error))
        return false;
    *out_info = g_strdup(answer.text);
    return true;
}

/* --- the version */

/* (transfer full): "[1 2]", as Go prints a list */
static char *
print_versions(const uint32_t *versions, gsize n)
{
    GString *text = g_string_new("[");

    for (gsize i = 0; i < n; i++)
        g_string_append_printf(text, "%s%u", i > 0 ? " " : "", versions[i]);
    g_string_append_c(text, ']');
    return g_string_free(text, FALSE);
}

bool
ch_launcher_check_version(ChGrpcChannel *channel, GError **error)
{
    const Kubevirt__Cmd__Info__CmdInfoRequest request = KUBEVIRT__CMD__INFO__CMD_INFO_REQUEST__INIT;
    Kubevirt__Cmd__Info__CmdInfoResponse *info;
    ProtobufCMessage *response = NULL;
    g_autoptr(GError) reason = NULL;
    bool found = false;

    if (!ch_grpc_call(channel,
                      INFO,
                      &request.base,
                      &kubevirt__cmd__info__cmd_info_response__descriptor,
                      INFO_TIMEOUT_US,
                      &response,
                      &reason)) {
        g_set_error(error,
                    CH_LAUNCHER_ERROR,
                    CH_LAUNCHER_ERROR_CALL,
                    "could not check cmd server version: rpc error: code = %s desc = %s",
                    ch_grpc_status_name((ChGrpcStatus)reason->code),
                    reason->message);
        return false;
    }
    info = (Kubevirt__Cmd__Info__CmdInfoResponse *)response;
    for (gsize i = 0; i < info->n_supported_cmd_versions; i++)
        found = found || info->supported_cmd_versions[i] == VERSION;
    if (!found) {
        g_autofree char *versions =
            print_versions(info->supported_cmd_versions, MIN(info->n_supported_cmd_versions, 64));

        g_set_error(error,
                    CH_LAUNCHER_ERROR,
                    CH_LAUNCHER_ERROR_PAYLOAD,
                    "no compatible version found, server: %s, client: [%d]",
                    versions,
                    VERSION);
    }
    protobuf_c_message_free_unpacked(response, NULL);
    return found;
}
