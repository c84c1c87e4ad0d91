/* SPDX-License-Identifier: Apache-2.0 */

/* launcher: all parts of one launcher, joined, from start to end. Thread: main. Spec 03 §6. */

#pragma once

#include "local/launcher/options.h"

/**
 * ch_launcher_run: serves until the guest has ended and was told of, or nobody defined one in time.
 * @is_emulated: no KVM
 *
 * Returns: the exit status; blocks until then
 */
int ch_launcher_run(const ChLauncherOptions *options, bool is_emulated);
