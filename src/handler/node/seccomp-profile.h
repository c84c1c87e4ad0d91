/* SPDX-License-Identifier: Apache-2.0 */

/*
 * seccomp-profile: the seccomp profile of VMs' pods, below kubelet's root. Spec: 05 §12.1.
 *
 * Thread: a worker's. Blocks: for local files.
 */

#pragma once

#include <glib.h>
#include <stdbool.h>

/* What kubelet reads: the default of containers/common v0.64.2, with `userfaultfd` allowed. */
extern const char ch_seccomp_profile_text[];

/**
 * ch_seccomp_profile_install: writes `seccomp/kubevirt/kubevirt.json` unless it is there, byte by
 * byte.
 * @kubelet_root: absolute
 *
 * The file is there whole or as it was. Nothing ever removes it. Two at a time do no harm.
 *
 * Returns: false with an error: "failed to install default seccomp profile: ..."
 */
bool ch_seccomp_profile_install(const char *kubelet_root, GError **error);
