/* SPDX-License-Identifier: Apache-2.0 */

/*
 * qemu-watch: finds the guest's QEMU by libvirt's pid file and notices its end at once.
 *
 * Thread: the loop's. Spec 03 §6.5.
 */

#pragma once

#include "lib/io/loop.h"

typedef struct ChQemuWatch ChQemuWatch;

/* @on_end: once, when a QEMU that was found is gone */
ChQemuWatch *
ch_qemu_watch_new(ChLoop *loop, const char *pid_path, ChLoopFunc on_end, gpointer data);
void ch_qemu_watch_free(ChQemuWatch *watch);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChQemuWatch, ch_qemu_watch_free)

/* Looks for the pid file unless QEMU was found before; cheap. Returns: whether it was ever found.
 */
bool ch_qemu_watch_look(ChQemuWatch *watch);
bool ch_qemu_watch_is_running(const ChQemuWatch *watch);
/* SIGTERM, past libvirt; nothing when it is not running. */
void ch_qemu_watch_terminate(ChQemuWatch *watch);

/* Strict: digits alone, as libvirt writes them; a newline is no number (spec 03, trap 22). */
bool ch_qemu_watch_parse_pid(const char *text, gsize length, int *out_pid);
