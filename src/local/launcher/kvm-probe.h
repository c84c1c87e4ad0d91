/* SPDX-License-Identifier: Apache-2.0 */

/*
 * kvm-probe: does KVM really run guests here?
 *
 * A device that opens proves nothing: some nested hypervisors offer one on which guests hang, or
 * lack processor features that every guest relies on. So QEMU is asked to run its own firmware on
 * KVM, with a processor whose features must all be there, until that gives up for want of a disk.
 * Thread: any. Blocks: 10 s at most.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/* Returns: false with the reason */
bool ch_kvm_probe(GError **error);
