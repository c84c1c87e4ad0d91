/* SPDX-License-Identifier: Apache-2.0 */

/*
 * inside-look: what is only looked at in a pod, below its root.
 *
 * As inside.h: in a forked child with a deadline, never out of @root_fd, false with the reply
 * filled in when it fails. Nothing is read of a file's content. Spec: 02 §6.2, §6.3.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/**
 * ch_inside_stat_image: the size of an image that the launcher made.
 * @namespace_: of the VMI
 * @name: of the VMI or of the volume, as @image says
 *
 * Links on the way lead where they lead in the pod; one at the end is refused, as is all that is no
 * regular file. Needs CAP_DAC_OVERRIDE.
 *
 * Returns: true with reply->size in bytes
 */
bool ch_inside_stat_image(
    int root_fd, ChHandsImage image, const char *namespace_, const char *name, ChHandsReply *reply);

/* The SELinux label of the root's directory, without its final NUL, in reply->text. */
bool ch_inside_read_label(int root_fd, ChHandsReply *reply);
