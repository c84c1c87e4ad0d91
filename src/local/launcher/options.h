/* SPDX-License-Identifier: Apache-2.0 */

/* options: the command line. Spec 03 §6.2, with additions of ours. Thread: main, before others. */

#pragma once

#include "local/launcher/agent-poller.h"

typedef enum {
    CH_EMULATION_AUTO = 0, /* KVM if it works */
    CH_EMULATION_ON,
    CH_EMULATION_OFF, /* KVM, or no guest */
} ChEmulation;

typedef struct {
    char *name;
    char *uid;
    char *namespace_;
    char *share_dir;
    char *private_dir;
    char *ephemeral_dir;
    char *container_disk_dir;
    char *hotplug_disk_dir;
    int64_t grace_us;
    int64_t qemu_timeout_us;
    ChAgentPeriods agent;
    ChEmulation emulation;
    bool probes_kvm; /* print whether KVM works, and end */
    int verbosity;
} ChLauncherOptions;

/* @argv: as main() got it. Returns: false with a text for the person who typed it */
bool
ch_launcher_options_parse(int argc, char **argv, ChLauncherOptions *out_options, GError **error);
void ch_launcher_options_clear(ChLauncherOptions *options);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ChLauncherOptions, ch_launcher_options_clear)
