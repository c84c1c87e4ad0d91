/* SPDX-License-Identifier: Apache-2.0 */

/*
 * kvm: does KVM run guests on this machine? The launcher knows how to find out. Thread: any.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/**
 * ch_kvm_works:
 * @out_reason: (out) (transfer full): why it does not; NULL when it does
 *
 * Blocks: 20 s at most.
 */
bool ch_kvm_works(char **out_reason);
