/* SPDX-License-Identifier: Apache-2.0 */

/*
 * content: the file or volume that a source serves, below its root.
 *
 * In the source's mount namespace, where it is mounted, or by the descriptor of its root. The image
 * is a stranger's: paths are looked up with that root as root, and of what is found only regular
 * files count, of volumes their directories. Spec: 05 §6.1, §6.5, §6.6, §7.4.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/**
 * ch_content_open: opens what a request names.
 * @path: request->n_bytes of it
 *
 * Returns: a descriptor, O_PATH, or -EBADF with the reply and its step filled in
 */
int
ch_content_open(const ChHandsRequest *request, const char *path, int root_fd, ChHandsReply *reply);

/* Whether it is an image's: read-only, and with its socket in the pod itself. */
bool ch_content_is_data(ChHandsMount mount);
