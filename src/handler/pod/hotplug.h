/* SPDX-License-Identifier: Apache-2.0 */

/*
 * hotplug: mounts and unmounts a VM's hotplugged volumes.
 *
 * Theory of operation: the volumes come from the VMI's status (hotplug-plan.h), their content from
 * attachment pods, and they go into the directory `hotplug-disks` of the launcher's pod, whence
 * mounts propagate into it. What is there is written down first (mount-record.h); the file, not
 * this object, knows it. Each function is idempotent, so that the next pass finishes what one that
 * was cut off began. Volumes do not wait for each other: what is wrong with one is told, and the
 * others go on. Thread: workers; a VM's volumes are with one at a time. Blocks: for the hands and
 * for files. Spec: 05 §7, §15.
 */

#pragma once

#include "handler/hands/client.h"
#include "handler/pod/hotplug-plan.h"
#include "lib/base/log.h"

typedef struct ChHotplug ChHotplug;

/**
 * ch_hotplug_new:
 * @hands: borrowed, outlives it
 * @private_dir: the agent's, --kubevirt-private-dir
 * @pods_dir: kubelet's, as the node has it: --kubelet-pods-dir
 * @node: the name of this node
 */
ChHotplug *
ch_hotplug_new(ChHands *hands, const char *private_dir, const char *pods_dir, const char *node);
void ch_hotplug_free(ChHotplug *hotplug);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChHotplug, ch_hotplug_free)

/* Which block device a pod may use, or may use no more. */
typedef struct {
    unsigned major_number, minor_number;
    bool is_allowed;
} ChHotplugRule;

/**
 * ChHotplugSetRules: puts rules into force, all at once.
 * @rules: @n_rules of them; those of earlier calls in the same pass hold unless these say otherwise
 *
 * Returns: false with why not; nothing has changed then
 */
typedef bool (*ChHotplugSetRules)(gpointer data,
                                  const ChHotplugRule *rules,
                                  gsize n_rules,
                                  GError **error);

/* A VM in one pass. What the functions below find out in the pass is kept in it. */
typedef struct {
    const ChHotplug *hotplug;
    const ChLogContext *log;
    const char *uid, *name; /* of the VMI */
    const ChJson *vmi;
    const char *source_uid;      /* (nullable): see ch_hotplug_list() */
    ChHotplugSetRules set_rules; /* (nullable): nobody can */
    gpointer rules_data;

    char *pod_uid;   /* owned (nullable): of the launcher's pod on this node */
    bool has_looked; /* for that pod */
    bool is_several; /* pods are there, so that none of them is the launcher's */
    GArray *allowed; /* owned (nullable): uint64_t, numbers of devices that are to be allowed */
} ChHotplugPass;

void ch_hotplug_pass_clear(ChHotplugPass *pass);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChHotplugPass, ch_hotplug_pass_clear)

typedef enum {
    CH_HOTPLUG_TROUBLE_INVALID = 0,
    CH_HOTPLUG_WAITS,  /* nobody serves the volume yet: to be tried again soon */
    CH_HOTPLUG_MISSES, /* something is not there: to be told, the VM goes on */
    CH_HOTPLUG_FAILS,  /* the pass fails */
    CH_HOTPLUG_TROUBLE_N,
} ChHotplugTrouble;

typedef struct {
    ChHotplugTrouble trouble;
    char *volume;  /* owned; "": all */
    GError *error; /* owned */
} ChHotplugFailure;

/**
 * ch_hotplug_mount: mounts what the VMI's status lists and its spec wants.
 *
 * Without a launcher's pod nothing is done. No device that a volume had is denied, not even for a
 * moment, as long as the volume is recorded. Spec: 05 §7.2
 *
 * Returns: (transfer full): ChHotplugFailure, of as many volumes; empty: all is done
 */
GPtrArray *ch_hotplug_mount(ChHotplugPass *pass);

/**
 * ch_hotplug_unmount: takes away what is recorded and not wanted. Spec: 05 §7.5
 *
 * Returns: false: "failed to cleanup hotplug mounts for VMI N: ..."; what failed stays recorded
 */
bool ch_hotplug_unmount(ChHotplugPass *pass, GError **error);

/**
 * ch_hotplug_unmount_all: takes away everything, recorded or not, as far as it is possible.
 * @uid: of the VMI
 * @pod_uids: (nullable): NULL-terminated: pods of the VM to look into besides those of the record
 * @socket: (nullable): of its launcher: another such pod
 *
 * What does not succeed is only logged. Spec: 05 §7.6
 *
 * Returns: false when the record could not be removed, or what failed may succeed later: see
 * ch_hands_is_passing(); then the record stays
 */
bool ch_hotplug_unmount_all(const ChHotplug *hotplug,
                            const char *uid,
                            const char *const *pod_uids,
                            const char *socket,
                            const ChLogContext *log,
                            GError **error);

/**
 * ch_hotplug_look: which volumes are mounted, of those whose status depends on it.
 *
 * Spec: 05 §7.7, 02 §6.5
 *
 * Returns: (transfer full): NULL-terminated names; NULL: nothing can be said now
 */
char **ch_hotplug_look(ChHotplugPass *pass);

/* Whether this text about a volume was not told since the volume was last mounted or forgotten;
 * it counts as told from now on. Volume "" stands for all. */
bool
ch_hotplug_is_news(const ChHotplug *hotplug, const char *uid, const char *volume, const char *text);
/* Forgets what was told about the VMI. */
void ch_hotplug_forget(const ChHotplug *hotplug, const char *uid);
