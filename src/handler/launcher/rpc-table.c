/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/launcher/rpc-table.h"

#include <string.h>

#include "lib/base/time.h"

#define CMD        "/kubevirt.cmd.v1.Cmd/"
#define SHORT_CALL (5 * CH_SECOND_US)
#define LONG_CALL  (20 * CH_SECOND_US)
#define FREEZE     (60 * CH_SECOND_US)

#define TYPE(name) &kubevirt__cmd__v1__##name##__descriptor

/* The first columns of a row whose request is KIND and whose answer is a Response and no more. */
#define COMMAND(METHOD, LABEL, KIND)                                                               \
    .method = CMD METHOD, .label = (LABEL), .timeout_us = LONG_CALL,                               \
    .request = CH_RPC_REQUEST_##KIND, .answer = TYPE(response)
/* The same of a question. */
#define QUESTION(METHOD, KIND, ANSWER)                                                             \
    .method = CMD METHOD, .label = (METHOD), .timeout_us = SHORT_CALL,                             \
    .request = CH_RPC_REQUEST_##KIND, .answer = TYPE(ANSWER)

/* clang-format off */
static const ChRpcRow rows[] = {
    [CH_LAUNCHER_RPC_SYNC]                      = {COMMAND("SyncVirtualMachine", "SyncVMI", VMI)},
    [CH_LAUNCHER_RPC_PAUSE]                     = {COMMAND("PauseVirtualMachine", "Pause", VMI)},
    [CH_LAUNCHER_RPC_UNPAUSE]                   = {COMMAND("UnpauseVirtualMachine", "Unpause", VMI)},
    [CH_LAUNCHER_RPC_UNFREEZE]                  = {COMMAND("UnfreezeVirtualMachine", "Unfreeze", VMI)},
    [CH_LAUNCHER_RPC_RESET]                     = {COMMAND("ResetVirtualMachine", "Reset", VMI)},
    [CH_LAUNCHER_RPC_SOFT_REBOOT]               = {COMMAND("SoftRebootVirtualMachine", "SoftReboot", VMI)},
    [CH_LAUNCHER_RPC_SHUTDOWN]                  = {COMMAND("ShutdownVirtualMachine", "Shutdown", VMI)},
    [CH_LAUNCHER_RPC_KILL]                      = {COMMAND("KillVirtualMachine", "Kill", VMI)},
    [CH_LAUNCHER_RPC_DELETE]                    = {COMMAND("DeleteVirtualMachine", "Delete", VMI)},
    [CH_LAUNCHER_RPC_SYNC_MIGRATION_TARGET]     = {COMMAND("SyncMigrationTarget", "SyncMigrationTarget", VMI)},
    [CH_LAUNCHER_RPC_CANCEL_MIGRATION]          = {COMMAND("CancelVirtualMachineMigration", "CancelMigration", VMI)},
    [CH_LAUNCHER_RPC_SIGNAL_TARGET_POD_CLEANUP] = {COMMAND("SignalTargetPodCleanup", "SignalTargetPodCleanup", VMI)},
    [CH_LAUNCHER_RPC_FINALIZE_MIGRATION]        = {COMMAND("FinalizeVirtualMachineMigration",
                                                           "FinalizeVirtualMachineMigration", VMI)},
    [CH_LAUNCHER_RPC_HOTPLUG_HOST_DEVICES]      = {COMMAND("HotplugHostDevices", "HotplugHostDevices", VMI)},
    [CH_LAUNCHER_RPC_SYNC_CPUS]                 = {COMMAND("SyncVirtualMachineCPUs", "SyncVirtualMachineCPUs", VMI)},
    [CH_LAUNCHER_RPC_SYNC_MEMORY]               = {COMMAND("SyncVirtualMachineMemory", "SyncVirtualMachineMemory", VMI)},

    [CH_LAUNCHER_RPC_FREEZE]               = {CMD "FreezeVirtualMachine", "Freeze", FREEZE, CH_RPC_REQUEST_FREEZE,
                                              TYPE(response)},
    [CH_LAUNCHER_RPC_MIGRATE]              = {COMMAND("MigrateVirtualMachine", "Migrate", DOCUMENT)},
    [CH_LAUNCHER_RPC_MEMORY_DUMP]          = {COMMAND("VirtualMachineMemoryDump", "Memorydump", DUMP)},
    [CH_LAUNCHER_RPC_INJECT_LAUNCH_SECRET] = {COMMAND("InjectLaunchSecret", "InjectLaunchSecret", DOCUMENT)},
    [CH_LAUNCHER_RPC_BACKUP]               = {COMMAND("BackupVirtualMachine", "Backup", DOCUMENT)},
    [CH_LAUNCHER_RPC_REDEFINE_CHECKPOINT]  = {CMD "RedefineCheckpoint", "RedefineCheckpoint", LONG_CALL,
                                              CH_RPC_REQUEST_DOCUMENT, TYPE(redefine_checkpoint_response),
                                              .errors = CH_RPC_ERRORS_CHECKPOINT},

    [CH_LAUNCHER_RPC_PING]             = {QUESTION("Ping", EMPTY, response)},
    [CH_LAUNCHER_RPC_GET_DOMAIN]       = {QUESTION("GetDomain", EMPTY, domain_response)},
    [CH_LAUNCHER_RPC_GET_DOMAIN_STATS] = {QUESTION("GetDomainStats", EMPTY, domain_stats_response),
                                          .json = CH_RPC_JSON_OBJECT},
    [CH_LAUNCHER_RPC_GET_DIRTY_RATE]   = {CMD "GetDomainDirtyRateStats", "GetDomainDirtyRateStats", LONG_CALL,
                                          CH_RPC_REQUEST_EMPTY, TYPE(dirty_rate_stats_response)},
    [CH_LAUNCHER_RPC_GET_VM_STATS]     = {QUESTION("GetVMStats", STATS, vmstats_response)},
    [CH_LAUNCHER_RPC_GET_GUEST_INFO]   = {QUESTION("GetGuestInfo", EMPTY, guest_info_response),
                                          .json = CH_RPC_JSON_OBJECT},
    [CH_LAUNCHER_RPC_GET_USERS]        = {QUESTION("GetUsers", EMPTY, guest_user_list_response),
                                          .json = CH_RPC_JSON_ARRAY},
    [CH_LAUNCHER_RPC_GET_FILESYSTEMS]  = {QUESTION("GetFilesystems", EMPTY, guest_filesystems_response),
                                          .json = CH_RPC_JSON_ARRAY},
    [CH_LAUNCHER_RPC_GET_QEMU_VERSION] = {QUESTION("GetQemuVersion", EMPTY, qemu_version_response),
                                          .absent = "error getting the qemu version", .stand_in = "qemu-unknown"},
    [CH_LAUNCHER_RPC_GET_SEV_INFO]     = {QUESTION("GetSEVInfo", EMPTY, sevinfo_response), .json = CH_RPC_JSON_OBJECT,
                                          .absent = "unexpected end of JSON input"},
    [CH_LAUNCHER_RPC_GET_LAUNCH_MEASUREMENT] = {QUESTION("GetLaunchMeasurement", BARE_VMI, launch_measurement_response),
                                          .json = CH_RPC_JSON_OBJECT, .absent = "unexpected end of JSON input"},
    [CH_LAUNCHER_RPC_GET_SCREENSHOT]   = {CMD "GetScreenshot", NULL, SHORT_CALL, CH_RPC_REQUEST_BARE_VMI,
                                          TYPE(screenshot_response), .errors = CH_RPC_ERRORS_RAW},
    [CH_LAUNCHER_RPC_EXEC]             = {CMD "Exec", NULL, SHORT_CALL, CH_RPC_REQUEST_EXEC, TYPE(exec_response),
                                          .errors = CH_RPC_ERRORS_RAW},
    [CH_LAUNCHER_RPC_GUEST_PING]       = {CMD "GuestPing", NULL, SHORT_CALL, CH_RPC_REQUEST_GUEST_PING,
                                          TYPE(guest_ping_response), .errors = CH_RPC_ERRORS_RAW},
};
/* clang-format on */
G_STATIC_ASSERT(G_N_ELEMENTS(rows) == CH_LAUNCHER_RPC_N);

const ChRpcRow *
ch_rpc_row(ChLauncherRpc rpc)
{
    g_assert(rpc > CH_LAUNCHER_RPC_INVALID && rpc < CH_LAUNCHER_RPC_N);
    return &rows[rpc];
}

const char *
ch_launcher_rpc_name(ChLauncherRpc rpc)
{
    return ch_rpc_row(rpc)->method + strlen(CMD);
}

const char *
ch_launcher_rpc_stand_in(ChLauncherRpc rpc)
{
    return ch_rpc_row(rpc)->stand_in;
}

int64_t
ch_launcher_rpc_timeout_us(ChLauncherRpc rpc, const ChLauncherRequest *request)
{
    const ChRpcRow *row = ch_rpc_row(rpc);

    if (row->request != CH_RPC_REQUEST_EXEC && row->request != CH_RPC_REQUEST_GUEST_PING)
        return row->timeout_us;
    return row->timeout_us + MAX(request->seconds, 0) * CH_SECOND_US;
}
