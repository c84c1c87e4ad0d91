/* SPDX-License-Identifier: Apache-2.0 */

/*
 * status: the new VMI document from the old one and from what a pass saw and did.
 *
 * Pure: what costs I/O comes in as an observation. The old document is copied and edited, so that
 * what this program does not know stays as it is. The spec is never touched (01 trap 5).
 * Thread: the owner of the documents. Spec: 02 §2.2, §3 to §8, §10.
 */

#pragma once

#include "handler/reconcile/event-catalogue.h"
#include "handler/reconcile/guest-agent.h"
#include "handler/reconcile/phase.h"

/* How the action of the pass ended (02 §8.8). All but OK carry a text. */
typedef enum {
    CH_SYNC_OK = 0,
    CH_SYNC_FAILED,           /* will be retried */
    CH_SYNC_CRITICAL_NETWORK, /* this one and the next two end the VMI */
    CH_SYNC_SECURE_BOOT,
    CH_SYNC_IRRECOVERABLE,
    CH_SYNC_N,
} ChSyncOutcome;

/* What the node and the cluster's configuration say. Borrowed, may live for many passes. */
typedef struct {
    const char *name;
    const char *architecture; /* Go's spelling: "amd64" */
    const char *cpu_model;    /* host-model of this host; NULL or "": unknown */
    bool gate_vgpu_live_migration;
    bool gate_cross_architecture;
    bool gate_image_volume;             /* default of v1.9.0: true; then there are no checksums */
    const char *eviction_strategy;      /* the cluster's default; NULL: none */
    const char *const *agent_versions;  /* NULL: KubeVirt's default */
    const char *const *permitted_mdevs; /* resource names; NULL: none */
    const char *const *migratable_plugins; /* network binding plugins with a `migration` section */
} ChStatusNode;

typedef struct {
    const char *volume;
    int64_t size_bytes;
} ChVolumeSize;

typedef struct {
    const char *network;
    const char *ip;         /* NULL or "": none */
    const char *const *ips; /* NULL: none */
} ChPodAddresses;

typedef struct {
    const char *volume;
    uint32_t crc32; /* IEEE, of the image file */
} ChVolumeChecksum;

typedef struct {
    const ChVolumeChecksum *disks;
    gsize n_disks;
    const uint32_t *kernel, *initrd; /* NULL: the VMI boots none */
} ChChecksums;

/* What this pass observed. Everything is borrowed; zero means "not observed: keep". */
typedef struct {
    const ChJson *vmi;      /* as read: the document that a PUT would replace */
    const ChDomain *domain; /* (nullable): as fetched at the start of the pass */
    ChLauncherState launcher;
    ChPhase remembered; /* see ch_phase_decide */
    ChSyncOutcome sync;
    const char *sync_text;         /* of the error */
    const ChGuestInfo *guest_info; /* needed when ch_status_wants_guest_info() */
    const char *selinux_context;   /* NULL: could not be read */
    const ChVolumeSize *iso_sizes; /* of images that the launcher made; only of VMIs that run */
    gsize n_iso_sizes;
    const ChPodAddresses *pod_addresses;
    gsize n_pod_addresses;
    const char *const *mounted_volumes; /* hotplug volumes that are mounted in the pod; NULL: nobody
                                         * looked */
    const ChChecksums *checksums;       /* see ch_status_wants_checksums(); NULL: none */
    bool trackers_marked; /* the patches of ch_status_wants_trackers_marked() were accepted */
    const char *local_timestamp; /* "20260102-030405", local time: names memory dumps */
    int64_t now_us;              /* wall clock */
} ChStatusInput;

typedef struct {
    ChJson *vmi;          /* owned: the body of the PUT */
    bool changed;         /* by the rule of 02 §2.2: PUT only then */
    bool phase_changed;   /* then `phase_event` follows the PUT */
    ChPhase phase;        /* as in @vmi */
    GPtrArray *events;    /* owned: ChEvent, to record before the PUT */
    ChEvent *phase_event; /* owned (nullable): to record after the PUT succeeded */
    int64_t requeue_us;   /* 0: none */
} ChStatusResult;

/**
 * ch_status:
 * @input: a VMI that exists, with a phase that is not final (a final VMI comes back unchanged)
 *
 * The SyncFailed event is the caller's: it is due even when an observation fails and no status can
 * be computed. So is the guest panic metric.
 *
 * Returns: (transfer full) (not nullable)
 */
ChStatusResult *ch_status(const ChStatusInput *input, const ChStatusNode *node);
void ch_status_result_free(ChStatusResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChStatusResult, ch_status_result_free)

/* Whether GetGuestInfo has to be asked; its failure drops the whole status update (02 §8.6). */
bool ch_status_wants_guest_info(const ChDomain *domain);
/* Whether backup trackers have to be marked first (02 §6.9); a failure drops the status update. */
bool ch_status_wants_trackers_marked(const ChVmiView *vmi, const ChDomain *domain);
/* Whether the checksums of container disks and boot images are to be computed (02 §6.10). */
bool ch_status_wants_checksums(const ChVmiView *vmi, const ChStatusNode *node, ChSyncOutcome sync);
