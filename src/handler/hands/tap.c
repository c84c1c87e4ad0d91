/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "handler/hands/protocol.h"
#include "lib/base/fd.h"

#define NON_ROOT_ID 107ul /* user and group `qemu` of every launcher image */

int
ch_tap_make(const char *name, uint32_t flags)
{
    ch_autofd int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC); /* ours, for this namespace */
    const bool is_multi_queue = flags & CH_HANDS_MULTI_QUEUE;
    const unsigned long owner = flags & CH_HANDS_NON_ROOT ? NON_ROOT_ID : 0;
    struct ifreq request = {0};

    if (fd < 0)
        return errno;
    /* An existing one must not be taken for a new one; the kernel knows EXCL for one queue only. */
    request.ifr_flags = (short)(is_multi_queue ? IFF_TAP | IFF_MULTI_QUEUE | IFF_NO_PI
                                               : IFF_TAP | IFF_ONE_QUEUE | IFF_TUN_EXCL);
    (void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
    if (ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETOWNER, owner) < 0 ||
        ioctl(fd, TUNSETGROUP, owner) < 0 || ioctl(fd, TUNSETPERSIST, 1ul) < 0)
        return errno;
    return 0;
}

int
ch_tap_main(char *const argv[CH_TAP_N_ARGS])
{
    char *end = NULL;
    const unsigned long flags = strtoul(argv[3], &end, 10);

    /* A change of label takes it away. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!ch_hands_link_name_is_valid(argv[2]) || end == argv[3] || *end != '\0' ||
        (flags & ~(unsigned long)(CH_HANDS_NON_ROOT | CH_HANDS_MULTI_QUEUE)) != 0)
        return EINVAL;
    return ch_tap_make(argv[2], (uint32_t)flags);
}
