/* SPDX-License-Identifier: Apache-2.0 */

/* Every command's row, on the wire: the path, the bytes of the request, what becomes of answers.
 * The bytes are written down by hand from spec 03 §2.3. */

#include "handler/launcher/rpc-table.h"

#include "handler/launcher/test-raw-launcher.h"
#include "lib/base/time.h"

#include <string.h>

static const ChLauncherRequest vmi_request = {.vmi_json = "{}", .vmi_length = 2};
#define MEMORY_VMI                                                                                 \
    "{\"spec\":{\"domain\":{\"memory\":{\"guest\":\"1Gi\",\"maxGuest\":\"2Gi\"}}},\"status\":{"    \
    "\"memory\":{\"guestAtBoot\":\"1Gi\"}}}"
static const ChLauncherRequest memory_request = {.vmi_json = MEMORY_VMI,
                                                 .vmi_length = sizeof(MEMORY_VMI) - 1};
static const ChLauncherRequest document_request = {
    .vmi_json = "{}", .vmi_length = 2, .document = "{\"a\":1}"};
static const ChLauncherRequest freeze_request = {.vmi_json = "{}", .vmi_length = 2, .seconds = 300};
static const ChLauncherRequest dump_request = {.vmi_json = "{}", .vmi_length = 2, .path = "/d"};
static const char *const exec_args[] = {"-a", "\xc3\xa9", NULL};
static const ChLauncherRequest exec_request = {
    .domain_name = "ns_vm", .command = "ls", .args = exec_args, .seconds = 7};
static const ChLauncherRequest ping_request = {.domain_name = "ns_vm", .seconds = 7};
static const ChLauncherRequest stats_request = {.stats = 1u << 0 | 1u << 1 | 1u << 15};

#define VMI           BYTES("\x0a\x04\x0a\x02{}\x12\x00")
#define BARE_VMI      BYTES("\x0a\x04\x0a\x02{}")
#define DOCUMENT      BYTES("\x0a\x04\x0a\x02{}\x12\x07{\"a\":1}")
#define OK            BYTES("\x08\x01")
#define REFUSED       BYTES("\x12\x02no")
#define OK_IN         BYTES(SUCCESS)
#define REFUSED_IN    BYTES("\x0a\x04\x12\x02no")
#define SERVER(label) "server error. command " label " failed: \"no\""

/* clang-format off */
static const struct RpcCase {
    ChLauncherRpc rpc;
    const char *name;
    guint seconds;                     /* of its time-out */
    const ChLauncherRequest *request;  /* NULL: none */
    Bytes sent;
    Bytes answer;                      /* what the launcher says to it */
    const char *text, *data;           /* what of that the caller gets; NULL: no such field */
    int64_t number;
    Bytes refusal;
    const char *refused;               /* how that reads; NULL: it is none */
} cases[] = {
#define COMMAND(ID, NAME, LABEL) \
    {CH_LAUNCHER_RPC_##ID, NAME, 20, &vmi_request, VMI, OK, NULL, NULL, 0, REFUSED, SERVER(LABEL)}
    COMMAND(SYNC, "SyncVirtualMachine", "SyncVMI"),
    COMMAND(PAUSE, "PauseVirtualMachine", "Pause"),
    COMMAND(UNPAUSE, "UnpauseVirtualMachine", "Unpause"),
    COMMAND(UNFREEZE, "UnfreezeVirtualMachine", "Unfreeze"),
    COMMAND(RESET, "ResetVirtualMachine", "Reset"),
    COMMAND(SOFT_REBOOT, "SoftRebootVirtualMachine", "SoftReboot"),
    COMMAND(SHUTDOWN, "ShutdownVirtualMachine", "Shutdown"),
    COMMAND(KILL, "KillVirtualMachine", "Kill"),
    COMMAND(DELETE, "DeleteVirtualMachine", "Delete"),
    COMMAND(SYNC_MIGRATION_TARGET, "SyncMigrationTarget", "SyncMigrationTarget"),
    COMMAND(CANCEL_MIGRATION, "CancelVirtualMachineMigration", "CancelMigration"),
    COMMAND(SIGNAL_TARGET_POD_CLEANUP, "SignalTargetPodCleanup", "SignalTargetPodCleanup"),
    COMMAND(FINALIZE_MIGRATION, "FinalizeVirtualMachineMigration", "FinalizeVirtualMachineMigration"),
    COMMAND(HOTPLUG_HOST_DEVICES, "HotplugHostDevices", "HotplugHostDevices"),
    COMMAND(SYNC_CPUS, "SyncVirtualMachineCPUs", "SyncVirtualMachineCPUs"),
    {CH_LAUNCHER_RPC_SYNC_MEMORY, "SyncVirtualMachineMemory", 20, &memory_request,
     BYTES("\x0a\x6b\x0a\x69" MEMORY_VMI "\x12\x00"), OK, NULL, NULL, 0, REFUSED, SERVER("SyncVirtualMachineMemory")},

    {CH_LAUNCHER_RPC_FREEZE, "FreezeVirtualMachine", 60, &freeze_request, BYTES("\x0a\x04\x0a\x02{}\x10\xac\x02"),
     OK, NULL, NULL, 0, REFUSED, SERVER("Freeze")},
    {CH_LAUNCHER_RPC_MIGRATE, "MigrateVirtualMachine", 20, &document_request, DOCUMENT, OK, NULL, NULL, 0,
     REFUSED, SERVER("Migrate")},
    {CH_LAUNCHER_RPC_MEMORY_DUMP, "VirtualMachineMemoryDump", 20, &dump_request,
     BYTES("\x0a\x04\x0a\x02{}\x12\x02/d"), OK, NULL, NULL, 0, REFUSED, SERVER("Memorydump")},
    {CH_LAUNCHER_RPC_INJECT_LAUNCH_SECRET, "InjectLaunchSecret", 20, &document_request, DOCUMENT, OK, NULL, NULL, 0,
     REFUSED, SERVER("InjectLaunchSecret")},
    {CH_LAUNCHER_RPC_BACKUP, "BackupVirtualMachine", 20, &document_request, DOCUMENT, OK, NULL, NULL, 0,
     REFUSED, SERVER("Backup")},
    {CH_LAUNCHER_RPC_REDEFINE_CHECKPOINT, "RedefineCheckpoint", 20, &document_request, DOCUMENT, OK_IN, NULL, NULL, 0,
     REFUSED_IN, "RedefineCheckpoint failed: no"},

    {CH_LAUNCHER_RPC_PING, "Ping", 5, NULL, BYTES(""), OK, NULL, NULL, 0, REFUSED, SERVER("Ping")},
    {CH_LAUNCHER_RPC_GET_DOMAIN, "GetDomain", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x02{}"), "{}", NULL, 0,
     REFUSED_IN, SERVER("GetDomain")},
    {CH_LAUNCHER_RPC_GET_DOMAIN_STATS, "GetDomainStats", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x02{}"), "{}", NULL,
     0, REFUSED_IN, SERVER("GetDomainStats")},
    {CH_LAUNCHER_RPC_GET_DIRTY_RATE, "GetDomainDirtyRateStats", 20, NULL, BYTES(""),
     BYTES(SUCCESS "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), NULL, NULL, -1,
     REFUSED_IN, SERVER("GetDomainDirtyRateStats")},
    {CH_LAUNCHER_RPC_GET_VM_STATS, "GetVMStats", 5, &stats_request, BYTES("\x0a\x00\x12\x00\x82\x01\x00"), OK_IN, NULL,
     NULL, 0, REFUSED_IN, SERVER("GetVMStats")},
    {CH_LAUNCHER_RPC_GET_GUEST_INFO, "GetGuestInfo", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x02{}"), "{}", NULL, 0,
     REFUSED_IN, SERVER("GetGuestInfo")},
    {CH_LAUNCHER_RPC_GET_USERS, "GetUsers", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x02[]"), "[]", NULL, 0,
     REFUSED_IN, SERVER("GetUsers")},
    {CH_LAUNCHER_RPC_GET_FILESYSTEMS, "GetFilesystems", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x02[]"), "[]", NULL, 0,
     REFUSED_IN, SERVER("GetFilesystems")},
    {CH_LAUNCHER_RPC_GET_QEMU_VERSION, "GetQemuVersion", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x03" "9.1"), "9.1",
     NULL, 0, REFUSED_IN, SERVER("GetQemuVersion")},
    {CH_LAUNCHER_RPC_GET_SEV_INFO, "GetSEVInfo", 5, NULL, BYTES(""), BYTES(SUCCESS "\x12\x02{}"), NULL, "{}", 0,
     REFUSED_IN, SERVER("GetSEVInfo")},
    {CH_LAUNCHER_RPC_GET_LAUNCH_MEASUREMENT, "GetLaunchMeasurement", 5, &vmi_request, BARE_VMI,
     BYTES(SUCCESS "\x12\x02{}"), NULL, "{}", 0, REFUSED_IN, SERVER("GetLaunchMeasurement")},
    {CH_LAUNCHER_RPC_GET_SCREENSHOT, "GetScreenshot", 5, &vmi_request, BARE_VMI,
     BYTES(SUCCESS "\x12\x01m\x1a\x02\x00\xff"), "m", "\0\xff", 0, REFUSED_IN, NULL},
    {CH_LAUNCHER_RPC_EXEC, "Exec", 12, &exec_request, BYTES("\x0a\x05ns_vm\x12\x02ls\x1a\x02-a\x1a\x02\xc3\xa9 \x07"),
     BYTES(SUCCESS "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a\x02ok"), "ok", NULL, -1, REFUSED_IN, NULL},
    {CH_LAUNCHER_RPC_GUEST_PING, "GuestPing", 12, &ping_request, BYTES("\x0a\x05ns_vm\x10\x07"), OK_IN, NULL, NULL, 0,
     REFUSED_IN, NULL},
};
/* clang-format on */
G_STATIC_ASSERT(G_N_ELEMENTS(cases) == CH_LAUNCHER_RPC_N - 1);

/* --- what each command must do */

static void
test_request_and_answer(RawLauncher *f, gconstpointer data)
{
    const struct RpcCase *c = data;
    g_auto(ChLauncherAnswer) answer = {0};
    g_autoptr(GError) error = NULL;

    raw_launcher_reply(f, c->answer);
    ch_launcher_call(f->channel, c->rpc, c->request, &answer, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(f->asked, ==, c->name);
    g_assert_cmpstr(ch_launcher_rpc_name(c->rpc), ==, c->name);
    assert_bytes(f->request->data, f->request->len, c->sent);
    g_assert_cmpstr(answer.text, ==, c->text);
    if (c->data != NULL)
        assert_bytes(answer.data, answer.length, (Bytes){c->data, 2});
    else
        g_assert_cmpuint(answer.length, ==, 0);
    g_assert_cmpint(answer.number, ==, c->number);
    g_assert_cmpint(ch_launcher_rpc_timeout_us(c->rpc, c->request), ==, c->seconds * CH_SECOND_US);
}

static void
test_refusal(RawLauncher *f, gconstpointer data)
{
    const struct RpcCase *c = data;
    g_autoptr(GError) error = NULL;

    raw_launcher_reply(f, c->refusal);
    if (c->refused == NULL) {
        g_assert_true(ch_launcher_call(f->channel, c->rpc, c->request, NULL, &error));
        return;
    }
    g_assert_false(ch_launcher_call(f->channel, c->rpc, c->request, NULL, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_REFUSED);
    g_assert_cmpstr(error->message, ==, c->refused);
}

/* (transfer full): how a failed call of @c reads whose gRPC error is @raw */
static char *
failure_text(const struct RpcCase *c, const char *raw, bool is_labelled)
{
    const ChRpcRow *row = ch_rpc_row(c->rpc);

    if (row->errors == CH_RPC_ERRORS_CHECKPOINT)
        return g_strdup_printf("RedefineCheckpoint call failed: %s", raw);
    if (row->errors == CH_RPC_ERRORS_RAW || !is_labelled)
        return g_strdup(raw);
    return g_strdup_printf("unknown error encountered sending command %s: %s", row->label, raw);
}

static void
expect_failure(RawLauncher *f,
               const struct RpcCase *c,
               ChGrpcStatus status,
               ChLauncherErrorCode code,
               bool is_labelled)
{
    g_autofree char *raw =
        g_strdup_printf("rpc error: code = %s desc = some text", ch_grpc_status_name(status));
    g_autofree char *text = failure_text(c, raw, is_labelled);
    g_autoptr(GError) error = NULL;

    fake_launcher_answer(&f->fake, status, "some text");
    g_assert_false(ch_launcher_call(f->channel, c->rpc, c->request, NULL, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, (int)code);
    g_assert_cmpstr(error->message, ==, text);
}

static void
test_failures(RawLauncher *f, gconstpointer data)
{
    const struct RpcCase *c = data;

    expect_failure(f, c, CH_GRPC_UNIMPLEMENTED, CH_LAUNCHER_ERROR_UNIMPLEMENTED, false);
    expect_failure(f, c, CH_GRPC_CANCELED, CH_LAUNCHER_ERROR_DISCONNECTED, false);
    expect_failure(f, c, CH_GRPC_DEADLINE_EXCEEDED, CH_LAUNCHER_ERROR_CALL, true);
    expect_failure(f, c, CH_GRPC_UNAVAILABLE, CH_LAUNCHER_ERROR_CALL, true);
    expect_failure(f, c, CH_GRPC_UNKNOWN, CH_LAUNCHER_ERROR_CALL, true);
}

static void
expect_error(RawLauncher *f, const struct RpcCase *c, Bytes reply, const char *grpc_error)
{
    g_autofree char *text = failure_text(c, grpc_error, true);
    g_auto(ChLauncherAnswer) answer = {0};
    g_autoptr(GError) error = NULL;

    raw_launcher_reply(f, reply);
    g_assert_false(ch_launcher_call(f->channel, c->rpc, c->request, &answer, &error));
    g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_CALL);
    g_assert_cmpstr(error->message, ==, text);
    g_assert_null(answer.message);
}

static void
test_garbage(RawLauncher *f, gconstpointer data)
{
    const struct RpcCase *c = data;
    const Bytes cut = BYTES("\x0a\x7f\x08\x01"), no_wire_type = BYTES("\x0f\x01");
    const char *text = "rpc error: code = Internal desc = grpc: failed to unmarshal the received "
                       "message: proto: cannot parse invalid wire-format data";

    expect_error(f, c, cut, text);
    expect_error(f, c, no_wire_type, text);
}

/* 4 MiB are fine, a byte more is too much. */
static void
test_limit(RawLauncher *f, gconstpointer data)
{
    const struct RpcCase *c = data;
    const gsize limit = 4u << 20;
    g_autofree char *large = g_malloc0(limit + 1);
    g_autoptr(GError) error = NULL;

    /* field 31, which nobody knows, of `limit` bytes with its own head of 6 */
    memcpy(large, "\xfa\x01\xfa\xff\xff\x01", 6);
    raw_launcher_reply(f, (Bytes){large, limit});
    if (c->rpc != CH_LAUNCHER_RPC_GET_QEMU_VERSION && c->rpc != CH_LAUNCHER_RPC_GET_SEV_INFO &&
        c->rpc != CH_LAUNCHER_RPC_GET_LAUNCH_MEASUREMENT)
        ch_launcher_call(f->channel, c->rpc, c->request, NULL, &error);
    if (error != NULL)
        g_assert_error(error, CH_LAUNCHER_ERROR, CH_LAUNCHER_ERROR_REFUSED);
    memcpy(large, "\xfa\x01\xfb\xff\xff\x01", 6);
    expect_error(
        f,
        c,
        (Bytes){large, limit + 1},
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max "
        "(4194305 vs. 4194304)");
}

/* 03 §2.4: one command has something that stands in for it. */
static void
test_stand_in(void)
{
    for (ChLauncherRpc rpc = CH_LAUNCHER_RPC_INVALID + 1; rpc < CH_LAUNCHER_RPC_N; rpc++)
        g_assert_cmpstr(ch_launcher_rpc_stand_in(rpc),
                        ==,
                        rpc == CH_LAUNCHER_RPC_GET_QEMU_VERSION ? "qemu-unknown" : NULL);
}

static void
test_rows_are_whole(void)
{
    for (ChLauncherRpc rpc = CH_LAUNCHER_RPC_INVALID + 1; rpc < CH_LAUNCHER_RPC_N; rpc++) {
        const ChRpcRow *row = ch_rpc_row(rpc);

        g_assert_true(g_str_has_prefix(row->method, "/kubevirt.cmd.v1.Cmd/"));
        g_assert_cmpint(row->timeout_us, >, 0);
        g_assert_cmpint(row->request, !=, CH_RPC_REQUEST_INVALID);
        g_assert_nonnull(row->answer);
        g_assert_true((row->label == NULL) == (row->errors == CH_RPC_ERRORS_RAW));
        g_assert_cmpint(cases[rpc - 1].rpc, ==, rpc);
    }
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(RawLauncher *f, gconstpointer data);
    } each[] = {
        {"request-and-answer", test_request_and_answer},
        {"refusal", test_refusal},
        {"failures", test_failures},
        {"garbage", test_garbage},
        {"limit", test_limit},
    };

    g_test_init(&argc, &argv, NULL);
#define ADD(path, data, func)                                                                      \
    g_test_add(path, RawLauncher, data, raw_launcher_set_up, func, raw_launcher_tear_down)
    for (gsize i = 0; i < G_N_ELEMENTS(each); i++) {
        for (gsize j = 0; j < G_N_ELEMENTS(cases); j++) {
            g_autofree char *path =
                g_strdup_printf("/rpc-table/%s/%s", each[i].name, cases[j].name);

            ADD(path, &cases[j], each[i].run);
        }
    }
    g_test_add_func("/rpc-table/stand-in", test_stand_in);
    g_test_add_func("/rpc-table/rows-are-whole", test_rows_are_whole);
    return g_test_run();
}
