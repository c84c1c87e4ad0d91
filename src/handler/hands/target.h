/* SPDX-License-Identifier: Apache-2.0 */

/*
 * target: where in a pod's emptyDirs things are mounted, and what has the name there.
 *
 * The directory is kubelet's, its content the pod's: names are looked up without following links,
 * and what is found is only acted on through its descriptor. Runs in a child that has joined the
 * node's mount namespace. Spec: 05 §1.3, §3.2.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

#define CH_TARGET_NAME_SIZE 256 /* NAME_MAX and a NUL */
#define CH_TARGET_BOOT_NAME "kernel-boot"

/* Below the pod's directory; the same for its socket. */
const char *ch_target_dir(ChHandsMount mount);
void ch_target_socket_name(char name[CH_TARGET_NAME_SIZE], ChHandsMount mount, unsigned index);

/* What it is called there, of CH_HANDS_MOUNT_BOOT in kernel-boot. @path: as of ch_target_open() */
void
ch_target_name(char name[CH_TARGET_NAME_SIZE], const ChHandsRequest *request, const char *path);

/* Opens that directory, which is kubelet's, and nothing in it, O_PATH: whatever the pod put there
 * does not matter. Returns a descriptor or -errno. */
int ch_target_open_dir(const char *uid, ChHandsMount mount);

/* kubelet's pods directory as the node sees it: static storage, trusted: opened following links. */
void ch_target_set_pods_dir(const char *pods_dir);

typedef struct {
    int dir_fd; /* owned; the directory of the target */
    int fd;     /* owned; the target, O_PATH; -EBADF: there is none */
    char name[CH_TARGET_NAME_SIZE];
    ChHandsTarget facts; /* of fd */
} ChTarget;
#define CH_TARGET_INIT                                                                             \
    {                                                                                              \
        .dir_fd = -EBADF, .fd = -EBADF                                                             \
    }

/**
 * ch_target_open: opens the target of a request.
 * @path: of the request, @request->n_bytes of it
 * @makes: whether a file or directory is made when nothing has the name, and the directory
 *   kernel-boot becomes root's
 * @out_target: without @makes its fd may be left unset; of CH_HANDS_MOUNT_BOOT without a path the
 *   name is empty, and nothing but the directory is opened
 *
 * Returns: false with the reply and its step filled in; then there is nothing to clear
 */
bool ch_target_open(const ChHandsRequest *request,
                    const char *path,
                    bool makes,
                    ChTarget *out_target,
                    ChHandsReply *reply);

/* Opens the name again, after something was mounted or unmounted. Returns as ch_target_open(). */
bool ch_target_reopen(ChTarget *target, ChHandsReply *reply);

void ch_target_clear(ChTarget *target);
