/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libvirtd: the session daemon that this launcher starts beside itself and keeps running.
 *
 * It runs as this process's user, without privilege, with its state below XDG_RUNTIME_DIR and its
 * configuration below XDG_CONFIG_HOME. Thread: the loop's. Spec 03 §6.3 step 7.
 */

#pragma once

#include "lib/io/loop.h"

typedef struct ChLibvirtd ChLibvirtd;

/**
 * ch_libvirtd_start: writes the configuration and starts the daemon; started anew a second after
 * its end for as long as the object lives.
 */
ChLibvirtd *ch_libvirtd_start(ChLoop *loop, GError **error);
/* For one that hangs: it is started anew. */
void ch_libvirtd_kill(ChLibvirtd *libvirtd);
/* Ends the daemon, not the guest: the guest's QEMU is no child of it any more. Blocks: 5 s at most.
 */
void ch_libvirtd_stop(ChLibvirtd *libvirtd);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChLibvirtd, ch_libvirtd_stop)

/* Where it listens, and where it notes a guest's pid: below XDG_RUNTIME_DIR. (transfer full) */
char *ch_libvirtd_uri(void);
char *ch_libvirtd_pid_path(const char *domain_name);
