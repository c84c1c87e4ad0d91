/* SPDX-License-Identifier: Apache-2.0 */

/*
 * forwarding: IP forwarding of this machine, which pods need, is on while chandler is up, and off
 * again after it if it was off before.
 *
 * What is going to be turned on is in the stored network first. Nobody can see who else came to
 * rely on it meanwhile; another bridge, tunnel or the like on this machine is taken as a sign of
 * somebody, and so is a sysctl.d file that turns it on: then it stays on. Thread: the command's.
 */

#pragma once

#include "local/cli/subnet-choice.h"

/* Fills in what of @network has to be turned on. @stored: (nullable): what of it `up` noted before
 * and did not take back: if it is of this boot, it counts, as the kernel shows our own doing. */
void ch_forwarding_note(const ChNodeNetwork *stored, ChNodeNetwork *network);

/* What cannot be turned on is told by the plugin that needs it. */
void ch_forwarding_turn_on(const ChNodeNetwork *network);

/* @machine: its links, without what was ours */
void ch_forwarding_take_back(const ChNodeNetwork *network, const ChNetState *machine);
