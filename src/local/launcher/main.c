/* SPDX-License-Identifier: Apache-2.0 */

/* chandler-launcher: the stand-in for virt-launcher on one machine. */

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "local/launcher/kvm-probe.h"
#include "local/launcher/launcher.h"
#include "local/launcher/monitor.h"

#define STATUS_USAGE 1

static int
probe_kvm(void)
{
    g_autoptr(GError) error = NULL;

    if (ch_kvm_probe(&error)) {
        printf("KVM works\n");
        return 0;
    }
    printf("KVM does not work: %s\n", error->message);
    return 1;
}

/* Returns: false when KVM is demanded and does not work. */
static bool
choose_emulation(ChEmulation emulation, bool *out_is_emulated)
{
    g_autoptr(GError) error = NULL;

    if (emulation == CH_EMULATION_ON) {
        *out_is_emulated = true;
        return true;
    }
    *out_is_emulated = !ch_kvm_probe(&error);
    if (!*out_is_emulated)
        return true;
    if (emulation == CH_EMULATION_OFF) {
        ch_log_error(NULL, error, "kvm not present and emulation is not allowed");
        return false;
    }
    ch_log_info_reason(NULL, error, "KVM does not work here: the guest will be emulated.");
    return true;
}

/* What libvirt and GLib derive their directories from. */
static void
set_environment(const ChLauncherOptions *options)
{
    g_setenv("XDG_RUNTIME_DIR", "/var/run", FALSE);
    g_setenv("XDG_CONFIG_HOME", options->private_dir, FALSE);
    g_setenv("XDG_CACHE_HOME", options->private_dir, FALSE);
    g_setenv("HOME", options->private_dir, FALSE);
}

int
main(int argc, char **argv)
{
    g_auto(ChLauncherOptions) options = {0};
    g_autoptr(GError) error = NULL;
    bool is_emulated = false;
    int status = 0;

    if (!ch_launcher_options_parse(argc, argv, &options, &error)) {
        fprintf(stderr, "chandler-launcher: %s\n", error->message);
        return STATUS_USAGE;
    }
    if (options.probes_kvm)
        return probe_kvm();
    if (geteuid() == 0) {
        fprintf(stderr, "chandler-launcher: not as root: run it as the user of QEMU (107)\n");
        return STATUS_USAGE;
    }
    ch_log_init("virt-launcher");
    ch_log_set_verbosity(options.verbosity);
    if (!ch_monitor_fork(options.container_disk_dir, &status))
        return status;

    umask(0022); /* lint: banned-call, no thread exists yet */
    set_environment(&options);
    if (!choose_emulation(options.emulation, &is_emulated))
        return 2;
    return ch_launcher_run(&options, is_emulated);
}
