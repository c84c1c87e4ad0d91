/* SPDX-License-Identifier: Apache-2.0 */

/*
 * domain: what the agent needs of the Domain document that a launcher sends.
 *
 * Keys are Go field names and matched by case; unknown members are ignored, null and absent mean
 * "zero"; a wrong type refuses the whole document, as the upstream decoder does. A domain does not
 * change once it is made, and is counted: it is parsed when it comes, and all that look at it later
 * share it. It owns the few texts that it has, and nothing of the document is left. Thread: any.
 * Spec: 01 §9, 02 §11.
 */

#pragma once

#include "lib/json/json.h"

/* The agent's own reason of an Unknown domain: its launcher was not heard yet. */
#define CH_DOMAIN_REASON_AWAITED "Awaited"

/* Status.Status */
typedef enum {
    CH_DOMAIN_OTHER = 0, /* "" and every text that is none of these: not alive when "" */
    CH_DOMAIN_NO_STATE,
    CH_DOMAIN_RUNNING,
    CH_DOMAIN_BLOCKED,
    CH_DOMAIN_PAUSED,
    CH_DOMAIN_SHUTTING_DOWN,
    CH_DOMAIN_SHUTOFF,
    CH_DOMAIN_CRASHED,
    CH_DOMAIN_PM_SUSPENDED,
    CH_DOMAIN_UNKNOWN, /* made by the agent itself: the launcher cannot be reached */
    CH_DOMAIN_N,
} ChDomainStatus;

/* Status.Reason, as far as somebody asks */
typedef enum {
    CH_REASON_OTHER = 0,
    CH_REASON_USER,
    CH_REASON_SHUTDOWN,
    CH_REASON_DESTROYED,
    CH_REASON_MIGRATED,
    CH_REASON_CRASHED,
    CH_REASON_PANICKED,
    CH_REASON_SAVED,
    CH_REASON_FROM_SNAPSHOT,
    CH_REASON_MIGRATION,
    CH_REASON_IO_ERROR,
    CH_REASON_STARTING_UP,
    CH_REASON_POSTCOPY,
    CH_REASON_POSTCOPY_FAILED,
    CH_REASON_N,
} ChDomainReason;

typedef struct {
    bool is_set;
    int64_t wall_us;
} ChDomainTime;

typedef struct {
    bool exists;
    int64_t grace_s;
    ChDomainTime deletion; /* when the first shutdown was signalled */
    bool is_marked;        /* MarkedForGracefulShutdown */
} ChDomainGrace;

typedef struct {
    bool exists;
    const char *uid, *failure_reason, *abort_status, *mode;
    ChDomainTime start, end;
    bool failed;
} ChDomainMigration;

typedef struct {
    bool exists;
    const char *name, *message, *checkpoint, *quiesce_status;
    const char *volumes; /* a JSON array in a string */
    ChDomainTime start, end;
    bool completed, failed;
} ChDomainBackup;

typedef struct {
    bool exists;
    const char *file_name, *failure_reason;
    ChDomainTime start, end;
    bool completed, failed;
} ChDomainMemoryDump;

typedef struct {
    bool exists;
    bool succeeded;
    const char *message;
} ChDomainAccessCredential;

typedef struct {
    const char *name; /* the alias: the volume's name */
    const char *file, *dev;
    bool has_data_store;
    const char *target; /* "vda" */
} ChDomainDisk;

typedef struct {
    const char *name, *mac;
    bool has_queues;
    uint64_t queues;
    const char *link_state; /* NULL when the document has none */
} ChDomainNic;

/* What the guest agent reported. */
typedef struct {
    const char *mac, *ip, *interface_name;
    const char **ips; /* owned by the domain; NULL-terminated */
} ChGuestNic;

typedef struct {
    const char *name, *kernel_release, *version, *pretty_name;
    const char *version_id, *kernel_version, *machine, *id;
} ChGuestOs;

typedef struct {
    bool exists;
    const char *type;
    uint64_t arg1;
} ChGuestPanic;

/* Strings are never NULL unless said so. */
typedef struct {
    GStringChunk *texts; /* owned: all texts of the domain */
    const char *namespace_, *name, *object_uid;
    bool is_deleted; /* ObjectMeta.deletionTimestamp is set: callers treat the domain as gone */

    const char *type;    /* "kvm", "qemu" */
    const char *machine; /* Spec.OS.Type.Machine */
    bool has_acpi;
    bool has_current_memory;
    uint64_t current_memory;
    const char *current_memory_unit;
    const char *emulator_cpuset; /* Spec.CPUTune.EmulatorPin.CPUSet */
    GArray *disks;               /* ChDomainDisk */
    GArray *nics;                /* ChDomainNic */
    GPtrArray *host_devices;     /* alias names, "" without alias */
    bool agent_connected;        /* channel org.qemu.guest_agent.0 */

    const char *uid; /* Spec.Metadata.KubeVirt.UID */
    ChDomainGrace grace;
    ChDomainMigration migration;
    ChDomainBackup backup;
    ChDomainMemoryDump memory_dump;
    ChDomainAccessCredential access_credential;

    ChDomainStatus status;
    ChDomainReason reason;
    const char *status_text, *reason_text;
    GArray *guest_nics; /* ChGuestNic */
    ChGuestOs os;
    const char *freeze_status;
    ChGuestPanic panic;
    int64_t panic_count;
} ChDomain;

/**
 * ch_domain_parse:
 * @text: the JSON document, @length bytes (-1: NUL-terminated)
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID (no JSON, or a member of the wrong type; the
 * message names it) or CH_ERROR_LIMIT (too long, too deep, more than 1024 devices of a kind). Of
 * what a guest says of its interfaces the first 4096 are read
 */
ChDomain *ch_domain_parse(const char *text, gssize length, GError **error);
ChDomain *ch_domain_ref(ChDomain *domain);
void ch_domain_unref(ChDomain *domain);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChDomain, ch_domain_unref)

/* NULL for NULL and for a deleted domain: the domain as decisions see it. */
const ChDomain *ch_domain_live(const ChDomain *domain);
/* False for NULL and for Shutoff, Crashed and ""; NoState and ShuttingDown are alive. */
bool ch_domain_is_alive(const ChDomain *domain);
/* Defined and never run: Shutoff, Unknown. A launcher reports this in each start. Spec 03 §11 */
bool ch_domain_is_unstarted(const ChDomain *domain);
/* Shutoff because it was migrated away. */
bool ch_domain_is_migrated(const ChDomain *domain);
/* The domain's half of "migration in progress": metadata, or paused for a migration. */
bool ch_domain_is_migrating(const ChDomain *domain);
