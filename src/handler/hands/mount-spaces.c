/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/mount-spaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

static pid_t node_pid = 1;

void
ch_mount_spaces_set_node(pid_t pid)
{
    node_pid = pid;
}

void
ch_mount_spaces_clear(ChMountSpaces *spaces)
{
    ch_close_fd(&spaces->home_fd);
    ch_close_fd(&spaces->node_fd);
}

bool
ch_mount_spaces_open(ChMountSpaces *out_spaces, ChHandsReply *reply)
{
    char path[CH_FD_PATH_SIZE];

    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)node_pid);
    out_spaces->node_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out_spaces->node_fd < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_NONE, errno, "failed to open mount namespace");
    out_spaces->home_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return out_spaces->home_fd >= 0 ||
           ch_reply_fail_step(reply, CH_HANDS_STEP_NONE, errno, "open the mount namespace");
}

bool
ch_mount_spaces_join(int fd, ChHandsReply *reply)
{
    return setns(fd, CLONE_NEWNS) == 0 ||
           ch_reply_fail_step(
               reply, CH_HANDS_STEP_NONE, errno, "failed to join the mount namespace");
}
