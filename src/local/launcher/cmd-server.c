/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/cmd-server.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cmd-info.pb-c.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/time.h"
#include "local/launcher/worker.h"

#define BACKLOG       128
#define MAX_JOBS      256
#define STOP_GRACE_US CH_SECOND_US

typedef enum {
    LANE_MODIFY = 0, /* excludes itself: the domain's lock */
    LANE_CONTROL,    /* passes a modification that hangs */
    LANE_READ,
    LANE_GUEST, /* waits for the guest's own answer */
    LANE_N,
    AT_ONCE, /* on the loop's thread: needs neither libvirt nor the guest */
} Lane;

typedef struct Binding Binding;

struct ChCmdServer {
    ChGrpcServer *grpc;
    ChManager *manager;
    ChReporter reporter;
    ChWorker *lanes[LANE_N];
    Binding *bindings;
};

typedef struct Row Row;
typedef void (*RunFunc)(ChCmdServer *server,
                        ChGrpcServerCall *call,
                        const ProtobufCMessage *request,
                        const Row *row);
struct Row {
    ChGrpcMethod method;
    Lane lane;
    RunFunc run;
    /* What run_act() does. */
    bool (*act)(ChManager *manager, const ChManagerRequest *request, GError **error);
    /* What run_get() answers, and in which message. */
    char *(*print)(const ChReporter *reporter, GError **error);
    const ProtobufCMessageDescriptor *answer;
};

struct Binding {
    ChCmdServer *server;
    const Row *row;
};

/* One request on its way through a worker. */
typedef struct {
    const Binding *binding;
    ChGrpcServerCall *call; /* NULL: answered */
    ProtobufCMessage *request;
} Job;

typedef Kubevirt__Cmd__V1__Response Response;

/* The text that @response borrows. (transfer full) */
static char *
fill_response(Response *response, const GError *error)
{
    char *text = error == NULL ? g_strdup("") : ch_virt_error_text(error);

    kubevirt__cmd__v1__response__init(response);
    response->success = error == NULL;
    response->message = text;
    return text;
}

static void
reply_response(ChGrpcServerCall *call, const GError *error)
{
    Response response;
    g_autofree char *text = fill_response(&response, error);

    ch_grpc_server_call_reply(call, &response.base);
}

static void
run_info(ChCmdServer *server,
         ChGrpcServerCall *call,
         const ProtobufCMessage *request,
         const Row *row)
{
    Kubevirt__Cmd__Info__CmdInfoResponse response = KUBEVIRT__CMD__INFO__CMD_INFO_RESPONSE__INIT;
    uint32_t version = 1;

    response.supported_cmd_versions = &version;
    response.n_supported_cmd_versions = 1;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
run_ping(ChCmdServer *server,
         ChGrpcServerCall *call,
         const ProtobufCMessage *request,
         const Row *row)
{
    reply_response(call, NULL);
}

/* (transfer full) (nullable): the request's VMI */
static ChJson *
parse_vmi(const Kubevirt__Cmd__V1__VMIRequest *request, GError **error)
{
    const ProtobufCBinaryData *text = request->vmi == NULL ? NULL : &request->vmi->vmi_json;
    ChJson *vmi = NULL;

    if (text != NULL && text->len > 0)
        vmi = ch_json_parse((const char *)text->data, (gssize)text->len, NULL);
    if (!ch_json_is_object(vmi)) {
        g_clear_pointer(&vmi, ch_json_unref);
        ch_fail(error, CH_ERROR_INVALID, "No valid vmi object present in command server request");
    }
    return vmi;
}

/* Whatever acts on the domain. */
static void
run_act(ChCmdServer *server,
        ChGrpcServerCall *call,
        const ProtobufCMessage *message,
        const Row *row)
{
    const Kubevirt__Cmd__V1__VMIRequest *wire = (const Kubevirt__Cmd__V1__VMIRequest *)message;
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) vmi = parse_vmi(wire, &error);
    g_autofree char *name = vmi == NULL ? NULL : ch_manager_domain_name(vmi, &error);
    const ChManagerRequest request = {.name = name, .vmi = vmi, .options = wire->options};

    if (name != NULL && !row->act(server->manager, &request, &error))
        ch_log_warning(NULL, error, "%s failed.", row->method.path);
    reply_response(call, error);
}

static char *
print_guest_info(const ChReporter *reporter, GError **error)
{
    return ch_guest_store_print_info(reporter->guest);
}

static char *
print_users(const ChReporter *reporter, GError **error)
{
    return ch_guest_store_print_list(reporter->guest, CH_GUEST_USERS);
}

static char *
print_filesystems(const ChReporter *reporter, GError **error)
{
    return ch_guest_store_print_list(reporter->guest, CH_GUEST_FILESYSTEMS);
}

/* All answers with one text look alike: field 1 is the Response, field 2 the text. */
static void
run_get(ChCmdServer *server,
        ChGrpcServerCall *call,
        const ProtobufCMessage *request,
        const Row *row)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = row->print(&server->reporter, &error);
    g_autofree ProtobufCMessage *answer = g_malloc0(row->answer->sizeof_message);
    Response response;
    g_autofree char *message = fill_response(&response, error);

    protobuf_c_message_init(row->answer, answer);
    G_STRUCT_MEMBER(Response *, answer, row->answer->fields[0].offset) = &response;
    if (text != NULL)
        G_STRUCT_MEMBER(char *, answer, row->answer->fields[1].offset) = text;
    ch_grpc_server_call_reply(call, answer);
}

static void on_call(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data);

/* clang-format off */
#define CMD(name)   { "/kubevirt.cmd.v1.Cmd/" name, &kubevirt__cmd__v1__vmirequest__descriptor, on_call }
#define EMPTY(name) { "/kubevirt.cmd.v1.Cmd/" name, &kubevirt__cmd__v1__empty_request__descriptor, on_call }
#define ACT(func) run_act, .act = (func)
#define GET(func, message) run_get, .print = (func), .answer = &kubevirt__cmd__v1__##message##__descriptor

static const Row rows[] = {
    { { "/kubevirt.cmd.info.CmdInfo/Info", &kubevirt__cmd__info__cmd_info_request__descriptor, on_call },
                                       AT_ONCE,      run_info },
    { EMPTY("Ping"),                   AT_ONCE,      run_ping },
    { CMD("SyncVirtualMachine"),       LANE_MODIFY,  ACT(ch_manager_sync) },
    { CMD("PauseVirtualMachine"),      LANE_MODIFY,  ACT(ch_manager_pause) },
    { CMD("UnpauseVirtualMachine"),    LANE_MODIFY,  ACT(ch_manager_unpause) },
    { CMD("ShutdownVirtualMachine"),   LANE_MODIFY,  ACT(ch_manager_shutdown) },
    { CMD("KillVirtualMachine"),       LANE_CONTROL, ACT(ch_manager_kill) },
    { CMD("DeleteVirtualMachine"),     LANE_CONTROL, ACT(ch_manager_delete) },
    { CMD("ResetVirtualMachine"),      LANE_CONTROL, ACT(ch_manager_reset) },
    { CMD("SoftRebootVirtualMachine"), LANE_GUEST,   ACT(ch_manager_soft_reboot) },
    { EMPTY("GetDomain"),              LANE_READ,    GET(ch_report_domain,       domain_response) },
    { EMPTY("GetDomainStats"),         LANE_READ,    GET(ch_report_stats,        domain_stats_response) },
    { EMPTY("GetQemuVersion"),         LANE_READ,    GET(ch_report_qemu_version, qemu_version_response) },
    { EMPTY("GetGuestInfo"),           AT_ONCE,      GET(print_guest_info,       guest_info_response) },
    { EMPTY("GetUsers"),               AT_ONCE,      GET(print_users,            guest_user_list_response) },
    { EMPTY("GetFilesystems"),         AT_ONCE,      GET(print_filesystems,      guest_filesystems_response) },
};
/* clang-format on */

/* Also for jobs that are dropped: every call must be ended. */
static void
job_free(gpointer data)
{
    Job *job = data;

    if (job->call != NULL)
        ch_grpc_server_call_fail(job->call, CH_GRPC_UNAVAILABLE, "the launcher is busy or ending");
    protobuf_c_message_free_unpacked(job->request, NULL);
    g_free(job);
}

static void
run_job(gpointer data)
{
    Job *job = data;

    const Row *row = job->binding->row;

    row->run(job->binding->server, g_steal_pointer(&job->call), job->request, row);
}

/* The request is the server's: what the worker gets is a copy. */
static ProtobufCMessage *
copy_message(const ProtobufCMessage *message)
{
    const size_t length = protobuf_c_message_get_packed_size(message);
    g_autofree uint8_t *bytes = g_malloc(MAX(length, 1));

    protobuf_c_message_pack(message, bytes);
    return protobuf_c_message_unpack(message->descriptor, NULL, length, bytes);
}

static void
on_call(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    const Binding *binding = data;
    const Row *row = binding->row;

    if (row->lane == AT_ONCE) {
        row->run(binding->server, call, request, row);
        return;
    }
    Job *job = g_new0(Job, 1);
    job->binding = binding;
    job->call = call;
    job->request = copy_message(request);
    ch_worker_push(binding->server->lanes[row->lane], run_job, job, job_free);
}

ChCmdServer *
ch_cmd_server_new(ChLoop *loop, ChManager *manager, const ChReporter *reporter)
{
    static const char *const names[LANE_N] = {"modify", "control", "read", "guest"};
    ChCmdServer *server = g_new0(ChCmdServer, 1);

    server->manager = manager;
    server->reporter = *reporter;
    for (guint i = 0; i < LANE_N; i++)
        server->lanes[i] = ch_worker_new(names[i], MAX_JOBS);
    server->grpc = ch_grpc_server_new(loop, NULL);
    server->bindings = g_new0(Binding, G_N_ELEMENTS(rows));
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        server->bindings[i] = (Binding){server, &rows[i]};
        ch_grpc_server_add(server->grpc, &rows[i].method, 1, &server->bindings[i]);
    }
    return server;
}

void
ch_cmd_server_free(ChCmdServer *server)
{
    if (server == NULL)
        return;
    for (guint i = 0; i < LANE_N; i++)
        ch_worker_free(server->lanes[i]);
    ch_grpc_server_free(server->grpc);
    g_free(server->bindings);
    g_free(server);
}

bool
ch_cmd_server_listen(ChCmdServer *server, const char *init_path, GError **error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_autofree char *dir = g_path_get_dirname(init_path);
    ch_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return ch_fail_errno(error, errno, "create a socket");
    if (g_strlcpy(address.sun_path, init_path, sizeof(address.sun_path)) >=
        sizeof(address.sun_path))
        return ch_fail(error, CH_ERROR_INVALID, "socket path '%s' is too long", init_path);
    if (g_mkdir_with_parents(dir, 0755) < 0)
        return ch_fail_errno(error, errno, "create directory '%s'", dir);
    if (g_unlink(init_path) < 0 && errno != ENOENT)
        return ch_fail_errno(error, errno, "remove '%s'", init_path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return ch_fail_errno(error, errno, "bind '%s'", init_path);
    if (listen(fd, BACKLOG) < 0)
        return ch_fail_errno(error, errno, "listen on '%s'", init_path);
    ch_grpc_server_listen(server->grpc, g_steal_fd(&fd));
    return true;
}

void
ch_cmd_server_stop(ChCmdServer *server, ChLoopFunc done, gpointer data)
{
    ch_grpc_server_stop(server->grpc, STOP_GRACE_US, done, data);
}
