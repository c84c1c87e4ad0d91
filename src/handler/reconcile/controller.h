/* SPDX-License-Identifier: Apache-2.0 */

/*
 * controller: the work queue and the passes that empty it. Spec 01 §6, §7, §16, §25; DESIGN.md §4.
 *
 * Theory of operation: somebody says "look at this key"; when no worker has it, the loop takes a
 * snapshot (VMI text, domain text, configuration) and gives it to a worker, which runs one pass
 * (pass.c): decide, act, status, one PUT. The pass returns only "done", "failed" or "again after";
 * it holds no pointer into the loop's objects. What a pass must tell at once (expectations, the I/O
 * retry record, a final phase that could not be stored, finished stages) is behind one lock that is
 * never held across I/O. Thread: the loop's, unless said otherwise.
 */

#pragma once

#include "handler/config/capabilities.h"
#include "handler/config/cluster-config.h"
#include "handler/downward-metrics/downward-metrics.h"
#include "handler/launcher/clients.h"
#include "handler/pod/ghost-records.h"
#include "handler/pod/hotplug.h"
#include "handler/pod/pod.h"
#include "handler/reconcile/guest-panics.h"
#include "lib/io/worker-pool.h"
#include "lib/kube/informer.h"
#include "lib/kube/recorder.h"

/* Where plugins may take part in the life of a VM. Spec 01 §24.7, 07 §10.2 */
typedef enum {
    CH_HOOK_PRE_VM_START,  /* before each Sync of a VM that does not run yet */
    CH_HOOK_POST_VM_START, /* the phase Running is stored */
    CH_HOOK_PRE_VM_STOP,   /* before each attempt to shut down or to destroy */
    CH_HOOK_POST_VM_STOP,  /* in each pass over a final VMI without live domain */
    CH_HOOK_N,
} ChHook;

const char *ch_hook_text(ChHook hook); /* "PreVMStart", ...; static storage */

/* Where snapshots come from; called on the loop's thread, but run_hooks. */
typedef struct {
    ChObject *(*lookup_vmi)(gpointer data, const char *key);    /* borrowed (nullable) */
    ChDomain *(*lookup_domain)(gpointer data, const char *key); /* (transfer full) (nullable) */
    /* silently: the clean-up of VM @uid; another VM's domain stays */
    void (*forget_domain)(gpointer data, const char *key, const char *uid);
    ChClusterConfig *(*peek_config)(gpointer data); /* borrowed */
    /* (nullable): no plugins. (transfer full) (nullable): the Plugin objects as a JSON array */
    GBytes *(*list_plugins)(gpointer data);
    bool (*knows_uid)(gpointer data, const char *uid); /* whether a VMI of this node has it */
    /* (nullable): no plugin hooks. @vmi_json: the VMI as it is held at that moment. Thread:
     * workers; may block. Returns: false with the error that stops what the hook is about */
    bool (*run_hooks)(gpointer data, ChHook hook, const char *vmi_json, GError **error);
} ChReconcileSeam;

/* All borrowed and used as long as the controller lives. */
typedef struct {
    ChLoop *loop;
    ChWorkerPool *pool;
    ChKubeClient *kube;
    ChRecorder *recorder;
    ChLauncherClients *clients;
    ChHands *hands;
    ChGhostRecords *records;
    ChGuestPanics *panics;
    const ChHotplug *hotplug;           /* (nullable): volumes are left alone */
    ChDownwardMetrics *metrics;         /* (nullable): guests are told none */
    ChCounter *syncs;                   /* of ch_controller_sync_counter_new() */
    const ChCapabilities *capabilities; /* (nullable) */
    int64_t echo_timeout_us;            /* of a write's echo; 0: CH_EXPECTATION_TIMEOUT_US */
    const char *node_name;
    const char *architecture;    /* Go's spelling: "amd64" */
    const char *cpu_model;       /* what `host-model` means here; "": unknown */
    const char *selinux_context; /* of every pod: "none"; NULL: each pod has its own */
    const char *private_dir;     /* what outlives the agent: --kubevirt-private-dir */
    const char *pods_dir;        /* kubelet's, as records of mounts name it: --kubelet-pods-dir */
    const char *own_ip;          /* of this agent's pod (MY_POD_IP); NULL: not told */
    ChReconcileSeam seam;
    gpointer seam_data;
} ChReconcileEnv;

typedef struct ChController ChController;

/* (transfer full): kubevirt_vmi_sync_total, the number of times that a VMI was written (02 §13) */
ChCounter *ch_controller_sync_counter_new(void);

ChController *ch_controller_new(const ChReconcileEnv *env);
/* The pool has to be freed first: then no pass runs any more. */
void ch_controller_free(ChController *controller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChController, ch_controller_free)

/* Nothing is taken from the queue before this. */
void ch_controller_start(ChController *controller);
/* No new pass starts; those that run go on. */
void ch_controller_stop(ChController *controller);
guint ch_controller_n_running(const ChController *controller);

/* Something about the key changed: a domain, a restart. */
void ch_controller_enqueue(ChController *controller, const char *key);
/* A watch event of the VMI came: its expectation is met, and it is looked at. */
void ch_controller_vmi_changed(ChController *controller, const ChObject *vmi);
/* The VMI left the watch: besides, what was kept about it is forgotten. */
void ch_controller_vmi_deleted(ChController *controller, const ChObject *vmi);
/* The launcher told about a domain of VMI @uid; @status as libvirt has it ("Running"). For the
 * stages only. */
void ch_controller_domain_seen(ChController *controller,
                               const char *key,
                               const char *uid,
                               const char *status);
