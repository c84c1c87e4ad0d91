/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "handler/hands/dir-list.h"
#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/safe-path.h"

#define IMAGE_DIR   "disk"
#define VOLUME_FILE "disk.img"

/* The one file in the image's directory /disk. Returns a descriptor or -errno; @out_step: which
 * rule it broke */
static int
open_only_image(int root_fd, ChHandsMountStep *out_step)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, IMAGE_DIR, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_IN_ROOT);
    char names[2][CH_DIR_NAME_SIZE];
    char path[sizeof(IMAGE_DIR "/") + CH_DIR_NAME_SIZE];
    int n;

    if (dir_fd < 0)
        return dir_fd;
    n = ch_dir_list(dir_fd, names, G_N_ELEMENTS(names));
    if (n != 1) {
        *out_step = n < 0    ? CH_HANDS_STEP_IMAGE
                    : n == 0 ? CH_HANDS_STEP_NO_IMAGE
                             : CH_HANDS_STEP_IMAGES;
        return n < 0 ? n : -ENOENT;
    }
    /* Again from the root, which a link is confined to. */
    (void)snprintf(path, sizeof(path), IMAGE_DIR "/%s", names[0]);
    return ch_safe_open(root_fd, path, O_PATH, 0, CH_RESOLVE_IN_ROOT);
}

static int
open_path(int root_fd, const char *path, gsize n_bytes)
{
    char text[CH_HANDS_PATH_SIZE];

    memcpy(text, path, n_bytes);
    text[n_bytes] = '\0';
    return ch_safe_open(root_fd, text, O_PATH, 0, CH_RESOLVE_IN_ROOT);
}

/* A volume is mounted at a directory of its name. */
static int
open_volume(int root_fd, const char *name)
{
    ch_autofd int fd = ch_safe_open(root_fd, name, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    bool is_root = false;
    int result;

    if (fd < 0)
        return fd;
    result = ch_mount_is_root(fd, &is_root);
    if (result == 0 && !is_root)
        result = -ENOENT;
    return result < 0 ? result : g_steal_fd(&fd);
}

static int
open_volume_file(int root_fd, const char *name, ChHandsMountStep *out_step)
{
    ch_autofd int dir_fd = open_volume(root_fd, name);

    if (dir_fd < 0) {
        *out_step = CH_HANDS_STEP_NO_IMAGE;
        return dir_fd;
    }
    return ch_safe_open(dir_fd, VOLUME_FILE, O_PATH, 0, CH_RESOLVE_IN_ROOT);
}

int
ch_content_open(const ChHandsRequest *request, const char *path, int root_fd, ChHandsReply *reply)
{
    ChHandsMountStep step = CH_HANDS_STEP_IMAGE;
    ch_autofd int fd = -EBADF;
    bool is_dir = false;
    mode_t mode = 0;
    int result;

    switch ((ChHandsMount)request->mount) {
    case CH_HANDS_MOUNT_DISK:
        fd = request->n_bytes == 0 ? open_only_image(root_fd, &step)
                                   : open_path(root_fd, path, request->n_bytes);
        break;
    case CH_HANDS_MOUNT_BOOT:
        fd = open_path(root_fd, path, request->n_bytes);
        break;
    case CH_HANDS_MOUNT_HOTPLUG_FILE:
        fd = open_volume_file(root_fd, request->name, &step);
        break;
    case CH_HANDS_MOUNT_HOTPLUG_DIR:
        step = CH_HANDS_STEP_NO_IMAGE;
        fd = open_volume(root_fd, request->name);
        is_dir = true;
        break;
    case CH_HANDS_MOUNT_NONE:
    case CH_HANDS_MOUNT_N:
        break;
    }
    result = fd < 0 ? fd : ch_safe_identify(fd, NULL, &mode);
    if (result < 0)
        (void)ch_reply_fail_step(reply, step, result, "find what is to be mounted");
    else if (is_dir ? !S_ISDIR(mode) : !S_ISREG(mode))
        (void)ch_reply_fail_step(
            reply, CH_HANDS_STEP_IMAGE, EINVAL, "what is to be mounted is no regular file");
    else
        return g_steal_fd(&fd);
    return -EBADF;
}

bool
ch_content_is_data(ChHandsMount mount)
{
    return mount == CH_HANDS_MOUNT_DISK || mount == CH_HANDS_MOUNT_BOOT;
}
