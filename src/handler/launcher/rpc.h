/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rpc: the 36 commands that the agent gives to a launcher, and what their failures mean. Spec 03
 * §4.5, §4.6, 01 §14.6.
 *
 * What is special about a command is its row in rpc-table.c; its answer is read by the answer's
 * protobuf descriptor. So there is one function to call them all, ch_launcher_call(), and some
 * short ones for what most callers want.
 *
 * Thread: workers; every call blocks up to the deadline of its row. A launcher goes on with what it
 * was told after the deadline: who asks again overlaps with the first call.
 */

#pragma once

#include <stdbool.h>

#include "cmd.pb-c.h"
#include "lib/grpc/client.h"
#include "lib/json/json.h"

#define CH_LAUNCHER_ERROR (ch_launcher_error_quark())
GQuark ch_launcher_error_quark(void);

typedef enum {
    CH_LAUNCHER_ERROR_DISCONNECTED =
        1, /* the launcher went away in mid-call: success for stop and kill */
    CH_LAUNCHER_ERROR_UNIMPLEMENTED, /* an older launcher; see ch_launcher_rpc_stand_in() */
    CH_LAUNCHER_ERROR_CALL,          /* any other failure of the call */
    CH_LAUNCHER_ERROR_REFUSED,       /* the launcher answered success=false */
    CH_LAUNCHER_ERROR_CHECKPOINT,    /* the same, and the checkpoint is of no use any more */
    CH_LAUNCHER_ERROR_PAYLOAD,       /* the answer is not what it must be */
    CH_LAUNCHER_ERROR_REQUEST,       /* nothing was sent: it would have ended a launcher in Go */
} ChLauncherErrorCode;

typedef enum {
    CH_LAUNCHER_RPC_INVALID = 0,

    /* a VMI with options (empty ones when there are none); no answer beyond success */
    CH_LAUNCHER_RPC_SYNC,
    CH_LAUNCHER_RPC_PAUSE,
    CH_LAUNCHER_RPC_UNPAUSE,
    CH_LAUNCHER_RPC_UNFREEZE,
    CH_LAUNCHER_RPC_RESET,
    CH_LAUNCHER_RPC_SOFT_REBOOT,
    CH_LAUNCHER_RPC_SHUTDOWN,
    CH_LAUNCHER_RPC_KILL,
    CH_LAUNCHER_RPC_DELETE,
    CH_LAUNCHER_RPC_SYNC_MIGRATION_TARGET,
    CH_LAUNCHER_RPC_CANCEL_MIGRATION,
    CH_LAUNCHER_RPC_SIGNAL_TARGET_POD_CLEANUP,
    CH_LAUNCHER_RPC_FINALIZE_MIGRATION,
    CH_LAUNCHER_RPC_HOTPLUG_HOST_DEVICES,
    CH_LAUNCHER_RPC_SYNC_CPUS,
    CH_LAUNCHER_RPC_SYNC_MEMORY, /* not for a VMI without maxGuest, guest and guestAtBoot */

    /* a VMI and something else; no answer beyond success */
    CH_LAUNCHER_RPC_FREEZE,               /* `seconds` until the launcher thaws by itself */
    CH_LAUNCHER_RPC_MIGRATE,              /* `document`: spec 03 §5.5 */
    CH_LAUNCHER_RPC_MEMORY_DUMP,          /* `path` */
    CH_LAUNCHER_RPC_INJECT_LAUNCH_SECRET, /* `document`: spec 03 §5.4 */
    CH_LAUNCHER_RPC_BACKUP,               /* `document`: spec 03 §5.6 */
    CH_LAUNCHER_RPC_REDEFINE_CHECKPOINT,  /* `document`: spec 03 §5.6 */

    /* questions */
    CH_LAUNCHER_RPC_PING,
    CH_LAUNCHER_RPC_GET_DOMAIN,             /* `text`: a Domain, "": none */
    CH_LAUNCHER_RPC_GET_DOMAIN_STATS,       /* `text`: spec 03 §5.2, "": none */
    CH_LAUNCHER_RPC_GET_DIRTY_RATE,         /* `number`: MB/s, -1: unknown */
    CH_LAUNCHER_RPC_GET_VM_STATS,           /* `stats` asks; ch_launcher_answer_stats() */
    CH_LAUNCHER_RPC_GET_GUEST_INFO,         /* `text`: an object, spec 03 §5.3 */
    CH_LAUNCHER_RPC_GET_USERS,              /* `text`: an array */
    CH_LAUNCHER_RPC_GET_FILESYSTEMS,        /* `text`: an array */
    CH_LAUNCHER_RPC_GET_QEMU_VERSION,       /* `text`, never "" */
    CH_LAUNCHER_RPC_GET_SEV_INFO,           /* `data`: an object, spec 03 §5.4 */
    CH_LAUNCHER_RPC_GET_LAUNCH_MEASUREMENT, /* a VMI; `data`: an object */
    CH_LAUNCHER_RPC_GET_SCREENSHOT,         /* a VMI; `text`: MIME type, `data`: the picture */
    CH_LAUNCHER_RPC_EXEC,                   /* `number`: exit code, `text`: standard output */
    CH_LAUNCHER_RPC_GUEST_PING,
    CH_LAUNCHER_RPC_N,
} ChLauncherRpc;

/* The parts of a GetVMStats question, bit n being field n + 1. */
#define CH_LAUNCHER_STATS_N   16
#define CH_LAUNCHER_STATS_ALL ((1u << CH_LAUNCHER_STATS_N) - 1)

/* What a command carries: each takes the members that its row asks for. All borrowed for the call.
 */
typedef struct {
    const char *vmi_json; /* the whole VMI object, vmi_length bytes */
    gsize vmi_length;
    const Kubevirt__Cmd__V1__VirtualMachineOptions *options; /* (nullable) */
    const char *document; /* (nullable): a JSON object; NULL and "null" are sent as "{}" */
    const char *path;
    const char *domain_name, *command; /* Exec, GuestPing */
    const char *const *args;           /* (nullable): Exec; NULL-terminated */
    int32_t seconds;                   /* Freeze, Exec, GuestPing */
    guint stats;                       /* 1u << n each */
} ChLauncherRequest;

/* An answer, and what most of them hold, which lies in it. */
typedef struct {
    ChLauncherRpc rpc;
    ProtobufCMessage *message; /* owned; NULL: none */
    const char *text;          /* a string field; "" when it is absent; NULL: no such field */
    const uint8_t *data;       /* a bytes field */
    gsize length;              /* of data */
    int64_t number;            /* an integer field */
} ChLauncherAnswer;

void ch_launcher_answer_clear(ChLauncherAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChLauncherAnswer, ch_launcher_answer_clear)

/**
 * ch_launcher_call:
 * @request: (nullable): what the row does not ask for is not looked at
 * @out_answer: (out caller-allocates) (nullable): cleared by the caller; written on success only
 *
 * Texts of failures are those that v1.9.0 puts into events and conditions.
 *
 * Returns: false with CH_LAUNCHER_ERROR
 */
bool ch_launcher_call(ChGrpcChannel *channel,
                      ChLauncherRpc rpc,
                      const ChLauncherRequest *request,
                      ChLauncherAnswer *out_answer,
                      GError **error);

/**
 * ch_launcher_answer_decode:
 * @out_json: (out) (transfer full): the answer's JSON; NULL: the launcher had nothing to say
 *
 * Returns: false with CH_LAUNCHER_ERROR_PAYLOAD for what is no JSON, or no object or array where it
 * must be one
 */
bool ch_launcher_answer_decode(const ChLauncherAnswer *answer, ChJson **out_json, GError **error);

/* Borrowed: the answer of GetVMStats. Any member may be NULL, which is "not asked for". */
const Kubevirt__Cmd__V1__VMStatsResponse *ch_launcher_answer_stats(const ChLauncherAnswer *answer);

/* "SyncVirtualMachine". Static. */
const char *ch_launcher_rpc_name(ChLauncherRpc rpc);

/* How long a call may take, in microseconds. */
int64_t ch_launcher_rpc_timeout_us(ChLauncherRpc rpc, const ChLauncherRequest *request);

/* Static: what stands for the answer of a launcher that is too old for the command; NULL: there is
 * no such thing, its error counts. Spec 03 §2.4 */
const char *ch_launcher_rpc_stand_in(ChLauncherRpc rpc);

/* --- what most callers want */

/* A command that carries a VMI and options. Returns: false with CH_LAUNCHER_ERROR */
bool ch_launcher_send_vmi(ChGrpcChannel *channel,
                          ChLauncherRpc rpc,
                          const char *vmi_json,
                          gsize length,
                          const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
                          GError **error);

bool ch_launcher_ping(ChGrpcChannel *channel, GError **error);

/* CmdInfo/Info, and that version 1 is among the launcher's. Spec 03 §2.1 */
bool ch_launcher_check_version(ChGrpcChannel *channel, GError **error);

/**
 * ch_launcher_get_domain:
 * @out_domain: (out) (transfer full): the Domain's JSON text; NULL: the launcher has none
 */
bool ch_launcher_get_domain(ChGrpcChannel *channel, char **out_domain, GError **error);

/* @out_info: (out) (transfer full): the guest info's JSON text */
bool ch_launcher_get_guest_info(ChGrpcChannel *channel, char **out_info, GError **error);
