/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oci-config: what crun is asked to run: a launcher's container, and those that hold its disks.
 *
 * Pure. Thread: any. Spec: OCI runtime specification 1.0; 03 §6.2 (the launcher's flags and paths).
 */

#pragma once

#include "lib/json/json.h"

/* A file of an image or a volume, and where it is looked for. */
typedef struct {
    const char *source; /* on this machine */
    const char *target; /* in the pod */
    bool is_writable;
} ChPodFile;

typedef struct {
    const ChJson *vmi; /* with uid and defaults */
    const char *state_dir;
    const char *pod_uid;
    const char *pod_name; /* becomes the host name */
    const char *rootfs;
    const char *launcher;                 /* the program, on this machine */
    bool is_emulated;                     /* else the pod gets /dev/kvm */
    bool has_kvm, has_tun, has_vhost_net; /* devices that this machine has */
    int verbosity;
    const ChPodFile *files;
    gsize n_files;
} ChOciSpec;

/* (transfer full): config.json */
ChJson *ch_oci_config_new(const ChOciSpec *spec);

/* A container that holds files for the agent to find (chandler-container-disk). */
typedef struct {
    const char *program; /* on this machine */
    const char *rootfs;
    const char *id;            /* of the container; names its cgroup too */
    const char *socket;        /* in @shared_dir: its file's name */
    const char *shared_dir;    /* on this machine: the emptyDir */
    const char *temporary_dir; /* (nullable): in the container, empty, in memory */
    const ChPodFile *files;    /* also directories */
    gsize n_files;
} ChOciHolderSpec;

/* (transfer full): config.json */
ChJson *ch_oci_holder_config_new(const ChOciHolderSpec *spec);
