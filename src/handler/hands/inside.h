/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside: what is done to files in a pod, below its root.
 *
 * These run in a forked child of the hands with a deadline, since the pod decides what is mounted
 * where they look. Each is idempotent and returns false with the reply filled in when it fails.
 * Mustn't: follow a link out of @root_fd, act on a name twice. Spec: 01 §13, 04 §4.2.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"
#include "lib/linux/safe-path.h"

/**
 * ch_inside_open_pipe: puts a listening socket at /var/run/kubevirt/domain-notify-pipe.sock.
 *
 * What has the name is removed first, a link is refused. Needs CAP_DAC_OVERRIDE, CAP_FOWNER,
 * CAP_CHOWN.
 *
 * Returns: true with the identity of the socket's file in the reply and *out_listen_fd
 */
bool ch_inside_open_pipe(int root_fd, bool is_non_root, int *out_listen_fd, ChHandsReply *reply);

/* Removes that name if it still holds @pipe. */
bool ch_inside_close_pipe(int root_fd, const ChFileId *pipe, ChHandsReply *reply);

/**
 * ch_inside_store_dhcp: writes /var/run/kubevirt-private/vif-cache-@link.json, which the launcher's
 * DHCP server reads, as 107:107 with mode 0604.
 * @bytes: @n_bytes of it, not looked into
 *
 * The directory is made when there is none. The file is there whole or not at all. Needs
 * CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER. Spec: 04 §4.2
 */
bool ch_inside_store_dhcp(
    int root_fd, const char *link, const void *bytes, gsize n_bytes, ChHandsReply *reply);

/* Removes that file. None there: fine. Needs CAP_DAC_OVERRIDE, CAP_FOWNER. Spec: 04 §13.2 */
bool ch_inside_remove_dhcp(int root_fd, const char *link, ChHandsReply *reply);
