/* SPDX-License-Identifier: Apache-2.0 */

/*
 * scripted-launcher: a launcher without libvirt, for scenarios and for the bench.
 *
 *   scripted-launcher --sockets DIR --uid UID [--namespace NS] [--name NAME] [--log FILE]
 *                     [--delay-ms N] [--retry-ms N] [--exit-ms N] [--domain FILE]
 *
 * Lives in a mount and network namespace of its own, with DIR (the pod's emptyDir on the node) at
 * /var/run/kubevirt/sockets. Does what `golden/README.md` says of the launcher that the golden
 * traces were recorded with: answers every RPC with success, reports a domain after the first
 * SyncVirtualMachine, and goes through shutdown, kill and delete. Writes each RPC as a line of JSON
 * to FILE. With --domain the document that it reports is this one, with identity and state of the
 * VM put in; without, a small one.
 *
 * Commands come as lines on standard input; its end ends the launcher:
 *   emit TYPE STATUS REASON   report the domain in this state
 *   state STATUS REASON       be in this state, and report nothing
 *   event TYPE REASON TEXT    report an event of the VM, once
 *   agent                     the guest agent connects: OS, interface, then a report
 *   fail METHOD TEXT          answer this RPC with success=false from now on; GetQemuVersion and
 *                             GetDomainStats as a launcher that does not know them
 *   hang METHOD               never answer this RPC again
 *   heal METHOD               answer it with success again
 *   domain FILE               describe the domain by this document from now on
 *   undefine                  there is no domain any more, which nobody is told
 *   stubborn                  the guest does not react to a shutdown
 *   die METHOD                end at once when this RPC comes, leaving the socket behind
 *   pad N                     descriptions of the domain are N bytes longer
 *   show                      note the VMI of each request, too
 *   exit                      end at once, leaving the socket behind
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cmd-info.pb-c.h"
#include "cmd.pb-c.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/grpc/client.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"
#include "notify.pb-c.h"

#define RUN_DIR       "/run/kubevirt"
#define PRIVATE_DIR   "/run/kubevirt-private"
#define SOCKET        RUN_DIR "/sockets/launcher-sock"
#define PIPE          RUN_DIR "/domain-notify-pipe.sock"
#define SEND_TIMEOUT  (5 * CH_SECOND_US)
#define MAX_TRIES     20
#define NOTIFY_METHOD "/kubevirt.notify.v1.Notify/HandleDomainEvent"
#define EVENT_METHOD  "/kubevirt.notify.v1.Notify/HandleK8sEvent"

typedef struct {
    char *type;
    char *domain;
    guint tries;
} Event;

typedef struct {
    ChLoop *loop;
    ChGrpcServer *server;
    FILE *log;
    int64_t started_delay_us, retry_us, exit_delay_us;
    char *namespace_, *name, *uid;
    ChJson *domain; /* --domain, or NULL */

    /* The domain: nothing before the first sync. */
    bool has_domain, is_shut_down, is_deleted, has_agent, is_stubborn;
    bool shows_vmi;
    bool has_mute_agent; /* it tells nothing of itself */
    const char *status, *reason;
    char *deletion; /* RFC 3339, of the grace period */
    gsize padding;
    GHashTable *failures, *hanging, *deadly;

    /* Reports, in order, one under way. */
    ChGrpcChannel *channel;
    GQueue events;
    bool is_sending;
    ChTimer *retry;
    ChGrpcServerCall *starting; /* the first sync, until its report was taken, or was not */

    GArray *script; /* Step, by time */
    ChTimer *script_timer;
    GString *input;
} Launcher;

static Launcher launcher = {.status = "", .reason = ""};

static void
die(const char *what)
{
    fprintf(stderr, "scripted-launcher: %s: %s\n", what, g_strerror(errno));
    exit(1);
}

/* --- the domain
 * ------------------------------------------------------------------------------------ */

/* The real document, with this VM's identity and state. */
static char *
real_domain_json(void)
{
    ChJson *meta = ch_json_ensure_object(launcher.domain, "ObjectMeta");
    ChJson *spec = ch_json_ensure_object(launcher.domain, "Spec");
    ChJson *kubevirt = ch_json_ensure_object(ch_json_ensure_object(spec, "Metadata"), "KubeVirt");
    ChJson *status = ch_json_ensure_object(launcher.domain, "Status");
    g_autofree char *spec_name = g_strdup_printf("%s_%s", launcher.namespace_, launcher.name);

    ch_json_set_string(meta, "name", launcher.name);
    ch_json_set_string(meta, "namespace", launcher.namespace_);
    ch_json_set_string(meta, "uid", launcher.uid);
    ch_json_set_string(spec, "Name", spec_name);
    ch_json_set_string(kubevirt, "UID", launcher.uid);
    if (launcher.deletion != NULL)
        ch_json_set_string(
            ch_json_ensure_object(kubevirt, "GracePeriod"), "DeletionTimestamp", launcher.deletion);
    ch_json_set_string(status, "Status", launcher.status);
    ch_json_set_string(status, "Reason", launcher.reason);
    return ch_json_print(launcher.domain, NULL);
}

static char *
domain_json(void)
{
    g_autofree char *deletion =
        launcher.deletion != NULL
            ? g_strdup_printf(",\"DeletionTimestamp\":\"%s\"", launcher.deletion)
            : g_strdup("");
    g_autofree char *padding = g_strnfill(launcher.padding, 'x');

    if (launcher.domain != NULL)
        return real_domain_json();
    return g_strdup_printf(
        "{\"kind\":\"Domain\",\"apiVersion\":\"\",\"ObjectMeta\":{\"name\":\"%s\",\"namespace\":\"%"
        "s\",\"uid\":\"%s\"},"
        "\"Padding\":\"%s\",\"Spec\":{\"XMLName\":{\"Space\":\"\",\"Local\":\"\"},\"Name\":\"%s_%"
        "s\",\"Type\":"
        "\"qemu\","
        "\"Metadata\":{\"KubeVirt\":{\"UID\":\"%s\",\"GracePeriod\":{"
        "\"DeletionGracePeriodSeconds\":5%s}}},"
        "\"Devices\":{\"Channels\":[{\"Type\":\"unix\",\"Target\":{\"Name\":\"org.qemu.guest_agent."
        "0\",\"State\":\"%s\"}}]}},"
        "\"Status\":{\"Status\":\"%s\",\"Reason\":\"%s\",\"Interfaces\":%s,\"OSInfo\":%s,"
        "\"FSFreezeStatus\":{\"Status\":\"\"}}}",
        launcher.name,
        launcher.namespace_,
        launcher.uid,
        padding,
        launcher.namespace_,
        launcher.name,
        launcher.uid,
        deletion,
        launcher.has_agent ? "connected" : "disconnected",
        launcher.status,
        launcher.reason,
        launcher.has_agent ? "[{\"Name\":\"default\",\"Mac\":\"02:00:00:00:00:01\",\"Ip\":\"10.0.2."
                             "2\",\"IPs\":[\"10.0.2.2\"],"
                             "\"InterfaceName\":\"eth0\",\"infoSource\":\"domain, guest-agent\"}]"
                           : "null",
        launcher.has_agent
            ? "{\"Name\":\"Debian "
              "GNU/Linux\",\"KernelRelease\":\"6.1.0-40-cloud-amd64\",\"Version\":\"12 "
              "(bookworm)\",\"PrettyName\":\"Debian "
              "GNU/Linux 12 (bookworm)\",\"VersionId\":\"12\",\"KernelVersion\":\"#1 "
              "SMP\",\"Machine\":\"x86_64\",\"Id\":\"debian\"}"
            : "{}");
}

/* --- reporting
 * ------------------------------------------------------------------------------------- */

static void send_next(void);

static void
retry_send(gpointer data)
{
    launcher.is_sending = false;
    send_next();
}

static void
drop_first_event(void)
{
    Event *event = g_queue_pop_head(&launcher.events);

    g_free(event->type);
    g_free(event->domain);
    g_free(event);
}

static void
succeed(ChGrpcServerCall *call)
{
    Kubevirt__Cmd__V1__Response response = KUBEVIRT__CMD__V1__RESPONSE__INIT;

    response.success = true;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
on_sent(gpointer data, const GError *error)
{
    Event *event = g_queue_peek_head(&launcher.events);

    if (launcher.starting != NULL)
        succeed(g_steal_pointer(&launcher.starting));
    if (error != NULL)
        fprintf(stderr, "scripted-launcher: report not taken: %s\n", error->message);
    if (error != NULL && ++event->tries < MAX_TRIES) {
        ch_grpc_channel_close(launcher.channel);
        g_clear_pointer(&launcher.channel, ch_grpc_channel_unref);
        ch_timer_arm(launcher.retry, launcher.retry_us);
        return;
    }
    drop_first_event();
    launcher.is_sending = false;
    send_next();
}

static void
on_answer(gpointer data, ProtobufCMessage *message)
{
}

static bool
connect_pipe(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = PIPE};
    ch_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return false;
    launcher.channel = ch_grpc_channel_new(launcher.loop, g_steal_fd(&fd), "localhost");
    return true;
}

static void
send_next(void)
{
    static const ChGrpcSink sink = {on_answer, on_sent};
    Kubevirt__Notify__V1__DomainEventRequest request =
        KUBEVIRT__NOTIFY__V1__DOMAIN_EVENT_REQUEST__INIT;
    Event *event = g_queue_peek_head(&launcher.events);

    if (launcher.is_sending || event == NULL)
        return;
    launcher.is_sending = true;
    if (launcher.channel == NULL && !connect_pipe()) {
        if (++event->tries >= MAX_TRIES)
            drop_first_event();
        ch_timer_arm(launcher.retry, launcher.retry_us);
        return;
    }
    request.domain_json = (ProtobufCBinaryData){strlen(event->domain), (uint8_t *)event->domain};
    request.event_type = event->type;
    (void)ch_grpc_call_start(launcher.channel,
                             NOTIFY_METHOD,
                             &request.base,
                             &kubevirt__notify__v1__response__descriptor,
                             SEND_TIMEOUT,
                             &sink,
                             NULL); /* on_sent ends it */
}

static void
on_event_sent(gpointer data, const GError *error)
{
    if (error != NULL)
        fprintf(stderr, "scripted-launcher: event not taken: %s\n", error->message);
}

/* Through the connection that reports go through. */
static void
send_event(const char *type, const char *reason, const char *text)
{
    static const ChGrpcSink sink = {on_answer, on_event_sent};
    Kubevirt__Notify__V1__K8sEventRequest request = KUBEVIRT__NOTIFY__V1__K8S_EVENT_REQUEST__INIT;
    g_autofree char *json = g_strdup_printf(
        "{\"involvedObject\":{\"kind\":\"VirtualMachineInstance\",\"namespace\":\"%s\","
        "\"name\":\"%s\",\"uid\":\"%s\"},\"type\":\"%s\",\"reason\":\"%s\","
        "\"message\":\"%s\"}",
        launcher.namespace_,
        launcher.name,
        launcher.uid,
        type,
        reason,
        text);

    if (launcher.channel == NULL && !connect_pipe()) {
        fprintf(stderr, "scripted-launcher: event not taken: no pipe\n");
        return;
    }
    request.event_json = (ProtobufCBinaryData){strlen(json), (uint8_t *)json};
    (void)ch_grpc_call_start(launcher.channel,
                             EVENT_METHOD,
                             &request.base,
                             &kubevirt__notify__v1__response__descriptor,
                             SEND_TIMEOUT,
                             &sink,
                             NULL); /* on_event_sent ends it */
}

static void
emit(const char *type, const char *status, const char *reason)
{
    Event *event = g_new0(Event, 1);

    launcher.status = g_intern_string(status);
    launcher.reason = g_intern_string(reason);
    *event = (Event){g_strdup(type), domain_json(), 0};
    g_queue_push_tail(&launcher.events, event);
    send_next();
}

/* --- the script: things that happen a little later
 * ----------------------------------------------------- */

typedef struct {
    int64_t at_us;
    const char *type, *status, *reason; /* type NULL: end */
} Step;

static void
arm_script(void)
{
    if (launcher.script->len > 0)
        ch_timer_arm(launcher.script_timer,
                     g_array_index(launcher.script, Step, 0).at_us - ch_time_now_us());
}

static void
run_script(gpointer data)
{
    Step step = g_array_index(launcher.script, Step, 0);

    g_array_remove_index(launcher.script, 0);
    if (step.type == NULL) {
        ch_loop_stop(launcher.loop);
        return;
    }
    emit(step.type, step.status, step.reason);
    arm_script();
}

static void
later(int64_t delay_us, const char *type, const char *status, const char *reason)
{
    Step step = {ch_time_now_us() + delay_us, type, status, reason};

    g_array_append_val(launcher.script, step);
    arm_script();
}

/* --- the Cmd service
 * ------------------------------------------------------------------------------- */

static void
log_rpc(const char *method, const Kubevirt__Cmd__V1__VMIRequest *request)
{
    if (g_hash_table_contains(launcher.deadly, method))
        _exit(0);
    if (launcher.log == NULL)
        return;
    fprintf(
        launcher.log, "{\"method\":\"%s\",\"timeUs\":%" G_GINT64_FORMAT, method, ch_time_now_us());
    if (request != NULL && request->options != NULL) {
        gsize n = protobuf_c_message_get_packed_size(&request->options->base);
        g_autofree uint8_t *packed = g_malloc(n + 1);

        protobuf_c_message_pack(&request->options->base, packed);
        fputs(",\"options\":\"", launcher.log);
        for (gsize i = 0; i < n; i++)
            fprintf(launcher.log, "%02x", packed[i]);
        fputc('"', launcher.log);
    }
    if (launcher.shows_vmi && request != NULL && request->vmi != NULL)
        fprintf(launcher.log,
                ",\"vmi\":%.*s",
                (int)request->vmi->vmi_json.len,
                (const char *)request->vmi->vmi_json.data);
    fputs("}\n", launcher.log);
    fflush(launcher.log);
}

/* Returns: true when the RPC is not to be answered with success; it was dealt with then */
static bool
misbehave(ChGrpcServerCall *call, const char *method)
{
    const char *text = g_hash_table_lookup(launcher.failures, method);
    Kubevirt__Cmd__V1__Response response = KUBEVIRT__CMD__V1__RESPONSE__INIT;

    if (g_hash_table_contains(launcher.hanging, method))
        return true;
    if (text == NULL)
        return false;
    response.message = (char *)text;
    ch_grpc_server_call_reply(call, &response.base);
    return true;
}

static void
act_on(const char *method)
{
    if (g_str_equal(method, "SyncVirtualMachine") && !launcher.has_domain) {
        launcher.has_domain = true;
        emit("ADDED", "Paused", "StartingUp");
        later(launcher.started_delay_us, "MODIFIED", "Running", "Unknown");
    } else if (g_str_equal(method, "ShutdownVirtualMachine") && !launcher.is_shut_down) {
        launcher.is_shut_down = true;
        launcher.deletion = ch_time_format(ch_time_wall_us());
        if (launcher.is_stubborn) {
            emit("MODIFIED", "Running", "Unknown");
            return;
        }
        emit("MODIFIED", "Shutdown", "Unknown");
        later(300 * CH_MS_US, "MODIFIED", "Shutoff", "Shutdown");
    } else if (g_str_equal(method, "KillVirtualMachine")) {
        emit("MODIFIED", "Shutoff", "Destroyed");
    } else if (g_str_equal(method, "DeleteVirtualMachine") && !launcher.is_deleted) {
        launcher.is_deleted = true;
        emit("DELETED", launcher.status, launcher.reason);
        later(launcher.exit_delay_us, NULL, NULL, NULL);
    }
}

static void
handle_vmi(ChGrpcServerCall *call, const char *method, const ProtobufCMessage *request)
{
    const bool had_domain = launcher.has_domain;

    log_rpc(method, (const Kubevirt__Cmd__V1__VMIRequest *)request);
    if (misbehave(call, method))
        return;
    act_on(method);
    /* A real one tells of the domain while it starts it, which takes longer than telling. */
    if (launcher.has_domain && !had_domain && launcher.channel != NULL)
        launcher.starting = call;
    else
        succeed(call);
}

static void
handle_ping(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    log_rpc("Ping", NULL);
    if (!misbehave(call, "Ping"))
        succeed(call);
}

static void
handle_info(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Cmd__Info__CmdInfoResponse response = KUBEVIRT__CMD__INFO__CMD_INFO_RESPONSE__INIT;
    uint32_t versions[] = {1};

    log_rpc("Info", NULL);
    if (g_hash_table_contains(launcher.hanging, "Info"))
        return;
    response.n_supported_cmd_versions = 1;
    response.supported_cmd_versions = versions;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
handle_get_domain(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Cmd__V1__Response inner = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__DomainResponse response = KUBEVIRT__CMD__V1__DOMAIN_RESPONSE__INIT;
    g_autofree char *domain = domain_json();

    log_rpc("GetDomain", NULL);
    if (g_hash_table_contains(launcher.hanging, "GetDomain"))
        return;
    inner.success = true;
    response.response = &inner;
    if (launcher.has_domain)
        response.domain = domain;
    ch_grpc_server_call_reply(call, &response.base);
}

static void
handle_guest_info(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    static const char info[] =
        "{\"guestAgentVersion\":\"7.2.0\",\"supportedCommands\":["
        "{\"name\":\"guest-ping\",\"enabled\":true},{\"name\":\"guest-get-time\",\"enabled\":true},"
        "{\"name\":\"guest-info\",\"enabled\":true},{\"name\":\"guest-shutdown\",\"enabled\":true},"
        "{\"name\":\"guest-network-get-interfaces\",\"enabled\":true},{\"name\":\"guest-get-"
        "fsinfo\",\"enabled\":true},"
        "{\"name\":\"guest-get-host-name\",\"enabled\":true},{\"name\":\"guest-get-users\","
        "\"enabled\":true},"
        "{\"name\":\"guest-get-timezone\",\"enabled\":true},{\"name\":\"guest-get-osinfo\","
        "\"enabled\":true}]}";
    Kubevirt__Cmd__V1__Response inner = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__GuestInfoResponse response = KUBEVIRT__CMD__V1__GUEST_INFO_RESPONSE__INIT;

    log_rpc("GetGuestInfo", NULL);
    inner.success = true;
    response.response = &inner;
    response.guest_info_response = launcher.has_mute_agent ? (char *)"{}" : (char *)info;
    ch_grpc_server_call_reply(call, &response.base);
}

/* Returns: true: it was dealt with */
static bool
misbehave_as_old(ChGrpcServerCall *call, const char *method)
{
    const char *text = g_hash_table_lookup(launcher.failures, method);

    log_rpc(method, NULL);
    if (g_hash_table_contains(launcher.hanging, method))
        return true;
    if (text != NULL)
        ch_grpc_server_call_fail(call, CH_GRPC_UNIMPLEMENTED, text);
    return text != NULL;
}

static void
handle_qemu_version(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Cmd__V1__Response inner = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__QemuVersionResponse response =
        KUBEVIRT__CMD__V1__QEMU_VERSION_RESPONSE__INIT;

    if (misbehave_as_old(call, "GetQemuVersion"))
        return;
    inner.success = true;
    response.response = &inner;
    response.version = (char *)"QEMU 7.2.0";
    ch_grpc_server_call_reply(call, &response.base);
}

/* Two virtual CPUs, one of them off. */
static void
handle_domain_stats(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)
{
    Kubevirt__Cmd__V1__Response inner = KUBEVIRT__CMD__V1__RESPONSE__INIT;
    Kubevirt__Cmd__V1__DomainStatsResponse response =
        KUBEVIRT__CMD__V1__DOMAIN_STATS_RESPONSE__INIT;
    g_autofree char *stats =
        g_strdup_printf("{\"Name\":\"%s_%s\",\"UUID\":\"\",\"Memory\":{\"ActualBalloonSet\":true,"
                        "\"ActualBalloon\":65536},\"Vcpu\":[{\"StateSet\":true,\"State\":1,"
                        "\"TimeSet\":true,\"Time\":1500000000},{\"StateSet\":true,\"State\":0,"
                        "\"TimeSet\":true,\"Time\":250000000}]}",
                        launcher.namespace_,
                        launcher.name);

    if (misbehave_as_old(call, "GetDomainStats"))
        return;
    inner.success = true;
    response.response = &inner;
    if (launcher.has_domain)
        response.domain_stats = stats;
    ch_grpc_server_call_reply(call, &response.base);
}

#define VMI_HANDLER(function, method)                                                              \
    static void function(ChGrpcServerCall *call, const ProtobufCMessage *request, gpointer data)   \
    {                                                                                              \
        handle_vmi(call, method, request);                                                         \
    }

VMI_HANDLER(handle_sync, "SyncVirtualMachine")
VMI_HANDLER(handle_shutdown, "ShutdownVirtualMachine")
VMI_HANDLER(handle_kill, "KillVirtualMachine")
VMI_HANDLER(handle_delete, "DeleteVirtualMachine")
VMI_HANDLER(handle_pause, "PauseVirtualMachine")
VMI_HANDLER(handle_unpause, "UnpauseVirtualMachine")
VMI_HANDLER(handle_host_devices, "HotplugHostDevices")

#define CMD(method) "/kubevirt.cmd.v1.Cmd/" method

static const ChGrpcMethod methods[] = {
    {"/kubevirt.cmd.info.CmdInfo/Info",
     &kubevirt__cmd__info__cmd_info_request__descriptor,
     handle_info},
    {CMD("Ping"), &kubevirt__cmd__v1__empty_request__descriptor, handle_ping},
    {CMD("GetDomain"), &kubevirt__cmd__v1__empty_request__descriptor, handle_get_domain},
    {CMD("GetGuestInfo"), &kubevirt__cmd__v1__empty_request__descriptor, handle_guest_info},
    {CMD("GetQemuVersion"), &kubevirt__cmd__v1__empty_request__descriptor, handle_qemu_version},
    {CMD("GetDomainStats"), &kubevirt__cmd__v1__empty_request__descriptor, handle_domain_stats},
    {CMD("SyncVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_sync},
    {CMD("ShutdownVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_shutdown},
    {CMD("KillVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_kill},
    {CMD("DeleteVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_delete},
    {CMD("PauseVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_pause},
    {CMD("UnpauseVirtualMachine"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_unpause},
    {CMD("HotplugHostDevices"), &kubevirt__cmd__v1__vmirequest__descriptor, handle_host_devices},
};

static ChJson *
load_domain(const char *path)
{
    g_autofree char *text = NULL;
    gsize length;

    return g_file_get_contents(path, &text, &length, NULL)
               ? ch_json_parse(text, (gssize)length, NULL)
               : NULL;
}

/* --- commands
 * -------------------------------------------------------------------------------------- */

static void
run_command(const char *line)
{
    g_auto(GStrv) words = g_strsplit(line, " ", 4);
    guint n = g_strv_length(words);

    if (n == 4 && g_str_equal(words[0], "emit")) {
        launcher.has_domain = true;
        emit(words[1], words[2], words[3]);
    } else if (n == 3 && g_str_equal(words[0], "state")) {
        launcher.status = g_intern_string(words[1]);
        launcher.reason = g_intern_string(words[2]);
    } else if (n == 4 && g_str_equal(words[0], "event")) {
        send_event(words[1], words[2], words[3]);
    } else if ((n == 1 || n == 2) && g_str_equal(words[0], "agent")) {
        launcher.has_agent = true;
        launcher.has_mute_agent = n == 2 && g_str_equal(words[1], "mute");
        emit("MODIFIED", launcher.status, launcher.reason);
    } else if (n >= 3 && g_str_equal(words[0], "fail")) {
        g_hash_table_replace(
            launcher.failures, g_strdup(words[1]), g_strdup(strstr(line, words[2])));
    } else if (n == 2 && g_str_equal(words[0], "hang")) {
        g_hash_table_add(launcher.hanging, g_strdup(words[1]));
    } else if (n == 2 && g_str_equal(words[0], "die")) {
        g_hash_table_add(launcher.deadly, g_strdup(words[1]));
    } else if (n == 2 && g_str_equal(words[0], "pad")) {
        launcher.padding = (gsize)g_ascii_strtoull(words[1], NULL, 10);
    } else if (n == 2 && g_str_equal(words[0], "heal")) {
        (void)g_hash_table_remove(launcher.failures, words[1]);
        (void)g_hash_table_remove(launcher.hanging, words[1]);
    } else if (n == 2 && g_str_equal(words[0], "domain")) {
        ch_json_unref(launcher.domain);
        launcher.domain = load_domain(words[1]);
        if (launcher.domain == NULL)
            die(words[1]);
    } else if (n == 1 && g_str_equal(words[0], "undefine")) {
        launcher.has_domain = false;
    } else if (n == 1 && g_str_equal(words[0], "show")) {
        launcher.shows_vmi = true;
    } else if (n == 1 && g_str_equal(words[0], "stubborn")) {
        launcher.is_stubborn = true;
    } else if (n == 1 && g_str_equal(words[0], "exit")) {
        _exit(0);
    } else {
        fprintf(stderr, "scripted-launcher: no such command: %s\n", line);
    }
}

static void
on_input(int fd, short what, gpointer data)
{
    char bytes[4096], *end;
    ssize_t n = read(fd, bytes, sizeof(bytes));

    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        ch_loop_stop(launcher.loop);
        return;
    }
    g_string_append_len(launcher.input, bytes, n);
    while ((end = strchr(launcher.input->str, '\n')) != NULL) {
        g_autofree char *line = g_strndup(launcher.input->str, (gsize)(end - launcher.input->str));

        g_string_erase(launcher.input, 0, end - launcher.input->str + 1);
        run_command(line);
    }
}

/* --- the pod
 * --------------------------------------------------------------------------------------- */

/* A new network takes over what the machine has. */
static void
forbid_forwarding(void)
{
    ch_autofd int fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, "0", 1) != 1)
        die("switch IP forwarding off");
}

static void
enter_pod(const char *sockets)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die("make namespaces");
    forbid_forwarding();
    if (g_mkdir_with_parents(RUN_DIR, 0755) < 0 || g_mkdir_with_parents(PRIVATE_DIR, 0755) < 0)
        die("make " RUN_DIR);
    {
        ch_autofd int source =
            open(sockets, O_PATH | O_DIRECTORY | O_CLOEXEC); /* RUN_DIR may hide it */
        g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", source);

        if (source < 0 || mount("pod", RUN_DIR, "tmpfs", 0, "mode=0755,size=1m") < 0 ||
            mount("pod", PRIVATE_DIR, "tmpfs", 0, "mode=0755,size=1m") < 0 ||
            mkdir(RUN_DIR "/sockets", 0755) < 0 ||
            mount(path, RUN_DIR "/sockets", NULL, MS_BIND, NULL) < 0)
            die("mount the pod's directories");
    }
}

static int
listen_for_commands(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    (void)unlink(SOCKET); /* of an earlier launcher */
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0)
        die("listen at " SOCKET);
    return fd;
}

static void
parse_arguments(int argc, char **argv, char **out_sockets)
{
    g_autofree char *log = NULL;
    g_autofree char *domain = NULL;
    gint64 delay_ms = 100;
    gint64 retry_ms = 1000;
    gint64 exit_ms = 100;
    const GOptionEntry entries[] = {
        {"sockets",
         0,
         0,
         G_OPTION_ARG_FILENAME,
         out_sockets,
         "the pod's socket directory on the node",
         "DIR"},
        {"uid", 0, 0, G_OPTION_ARG_STRING, &launcher.uid, "UID of the VMI", "UID"},
        {"namespace", 0, 0, G_OPTION_ARG_STRING, &launcher.namespace_, "of the VMI", "NS"},
        {"name", 0, 0, G_OPTION_ARG_STRING, &launcher.name, "of the VMI", "NAME"},
        {"log", 0, 0, G_OPTION_ARG_FILENAME, &log, "where each RPC is noted", "FILE"},
        {"delay-ms", 0, 0, G_OPTION_ARG_INT64, &delay_ms, "from defined to running", "N"},
        {"retry-ms", 0, 0, G_OPTION_ARG_INT64, &retry_ms, "before a report is sent again", "N"},
        {"exit-ms", 0, 0, G_OPTION_ARG_INT64, &exit_ms, "from deleted to the end", "N"},
        {"domain", 0, 0, G_OPTION_ARG_FILENAME, &domain, "the domain to report", "FILE"},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || *out_sockets == NULL ||
        launcher.uid == NULL) {
        fprintf(stderr,
                "scripted-launcher: %s\n",
                error != NULL ? error->message : "--sockets and --uid are needed");
        exit(2);
    }
    launcher.started_delay_us = delay_ms * CH_MS_US;
    launcher.retry_us = retry_ms * CH_MS_US;
    launcher.exit_delay_us = exit_ms * CH_MS_US;
    if (launcher.namespace_ == NULL)
        launcher.namespace_ = g_strdup("default");
    if (launcher.name == NULL)
        launcher.name = g_strdup("vm");
    if (log != NULL && (launcher.log = fopen(log, "ae")) == NULL)
        die(log);
    if (domain != NULL && (launcher.domain = load_domain(domain)) == NULL)
        die(domain);
}

int
main(int argc, char **argv)
{
    g_autofree char *sockets = NULL;
    ChFdWatch *input;

    parse_arguments(argc, argv, &sockets);
    signal(SIGPIPE, SIG_IGN);
    enter_pod(sockets);
    launcher.failures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    launcher.hanging = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    launcher.deadly = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    launcher.script = g_array_new(FALSE, FALSE, sizeof(Step));
    launcher.input = g_string_new(NULL);
    launcher.loop = ch_loop_new();
    launcher.retry = ch_timer_new(launcher.loop, retry_send, NULL);
    launcher.script_timer = ch_timer_new(launcher.loop, run_script, NULL);
    launcher.server = ch_grpc_server_new(launcher.loop, NULL);
    ch_grpc_server_add(launcher.server, methods, G_N_ELEMENTS(methods), NULL);
    ch_grpc_server_listen(launcher.server, listen_for_commands());
    input = ch_fd_watch_new(launcher.loop, STDIN_FILENO, EV_READ, on_input, NULL);
    puts("ready");
    fflush(stdout);
    ch_loop_run(launcher.loop);

    ch_fd_watch_free(input);
    ch_grpc_server_free(launcher.server);
    if (launcher.channel != NULL) {
        ch_grpc_channel_close(launcher.channel);
        ch_grpc_channel_unref(launcher.channel);
    }
    _exit(0); /* the namespaces, and all that lies in them, go with the process */
}
