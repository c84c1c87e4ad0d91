/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/block-device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>

#include "lib/base/fd.h"

#define PAUSE_MS 20

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The kernel lets nobody have it alone while somebody has it so: a mount, another device, us. */
static bool
can_be_had_alone(const char *path)
{
    ch_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_EXCL);

    return fd >= 0 || errno != EBUSY;
}

bool
ch_block_device_is_idle(const char *path)
{
    bool is_idle;

    (void)pthread_mutex_lock(&mutex); /* other processes are not kept out */
    is_idle = can_be_had_alone(path);
    if (!is_idle) {
        (void)poll(NULL, 0, PAUSE_MS);
        is_idle = can_be_had_alone(path);
    }
    (void)pthread_mutex_unlock(&mutex);
    return is_idle;
}
