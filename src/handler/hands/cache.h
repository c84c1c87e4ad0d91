/* SPDX-License-Identifier: Apache-2.0 */

/*
 * cache: the one thing that the brain cannot do to its own files: give one to 107:107, as which the
 * Go agent leaves what it keeps of a network. Spec: 04 §4.
 *
 * Returns false with the reply filled in when it fails. Thread: the hands' one.
 */

#pragma once

#include <stdbool.h>

#include "handler/hands/protocol.h"

/* @private_dir: static storage, trusted: opened following links. */
void ch_cache_set_dir(const char *private_dir);

/**
 * ch_cache_own: gives network-info-cache/@uid/.@network.new, which must be a regular file with one
 * name, to 107:107. Needs CAP_CHOWN.
 */
bool ch_cache_own(const char *uid, const char *network, ChHandsReply *reply);
