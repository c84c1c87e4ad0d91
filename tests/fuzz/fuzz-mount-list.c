/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the reading of a container's mountinfo, in which the container chooses the names. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handler/hands/mount-list.h"
#include "lib/base/fd.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#define MAX_BYTES 65536u

/* A ChMountListFunc: a name is a path, and ends. */
static bool
check(const char *mount_point, void *n_calls)
{
    if (mount_point[0] != '/' || strlen(mount_point) > MAX_BYTES)
        __builtin_trap();
    return ++*(unsigned *)n_calls > 1000;
}

int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    ch_autofd int fd = memfd_create("mountinfo", MFD_CLOEXEC);
    unsigned n_calls = 0;

    if (fd < 0 || size > MAX_BYTES || write(fd, data, size) != (ssize_t)size ||
        lseek(fd, 0, SEEK_SET) != 0)
        return 0;
    (void)ch_mount_list_find(fd, CH_MOUNT_LIST_MAX_BYTES, check, &n_calls);
    return 0;
}
