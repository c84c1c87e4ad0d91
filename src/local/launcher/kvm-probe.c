/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/kvm-probe.h"

#include <errno.h>
#include <fcntl.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"

#define DEVICE "/dev/kvm"

bool
ch_kvm_probe(GError **error)
{
    /* The firmware finds no disk, reboots at once, and -no-reboot makes that the end. */
    static const char *const argv[] = {"qemu-system-x86_64",
                                       "-machine",
                                       "q35,accel=kvm",
                                       "-cpu",
                                       "qemu64,enforce",
                                       "-m",
                                       "16",
                                       "-nodefaults",
                                       "-display",
                                       "none",
                                       "-boot",
                                       "reboot-timeout=1",
                                       "-no-reboot",
                                       NULL};
    const ChCommand command = {.argv = argv, .timeout_us = 10 * CH_SECOND_US};
    ch_autofd int fd = open(DEVICE, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return ch_fail_errno(error, errno, "open '%s'", DEVICE);
    return ch_command_run(&command, NULL, error);
}
