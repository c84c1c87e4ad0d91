/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/mount-tree.h"
#include "lib/linux/safe-path.h"

#define DISKS_DIR   "volumes/kubernetes.io~empty-dir/container-disks"
#define HOTPLUG_DIR "volumes/kubernetes.io~empty-dir/hotplug-disks"

static const struct {
    const char *dir;
    mode_t mode; /* of a new one, less the umask */
    bool is_dir;
} kinds[] = {
    [CH_HANDS_MOUNT_DISK] = {DISKS_DIR, 0777, false},
    [CH_HANDS_MOUNT_BOOT] = {DISKS_DIR, 0655, false},
    [CH_HANDS_MOUNT_HOTPLUG_FILE] = {HOTPLUG_DIR, 0666, false},
    [CH_HANDS_MOUNT_HOTPLUG_DIR] = {HOTPLUG_DIR, 0750, true},
};
G_STATIC_ASSERT(G_N_ELEMENTS(kinds) == CH_HANDS_MOUNT_N);

static const char *node_pods_dir = "/var/lib/kubelet/pods";

void
ch_target_set_pods_dir(const char *pods_dir)
{
    node_pods_dir = pods_dir;
}

const char *
ch_target_dir(ChHandsMount mount)
{
    return kinds[mount].dir;
}

void
ch_target_socket_name(char name[CH_TARGET_NAME_SIZE], ChHandsMount mount, unsigned index)
{
    if (mount == CH_HANDS_MOUNT_DISK)
        (void)snprintf(name, CH_TARGET_NAME_SIZE, "disk_%u.sock", index);
    else
        (void)snprintf(name,
                       CH_TARGET_NAME_SIZE,
                       "%s.sock",
                       mount == CH_HANDS_MOUNT_BOOT ? CH_TARGET_BOOT_NAME : "hp");
}

void
ch_target_name(char name[CH_TARGET_NAME_SIZE], const ChHandsRequest *request, const char *path)
{
    const char *slash;

    switch ((ChHandsMount)request->mount) {
    case CH_HANDS_MOUNT_DISK:
        (void)snprintf(name, CH_TARGET_NAME_SIZE, "disk_%u.img", request->index);
        break;
    case CH_HANDS_MOUNT_BOOT: /* the path was checked: its last component is a name that fits */
        slash = memrchr(path, '/', request->n_bytes);
        slash = slash == NULL ? path : slash + 1;
        (void)snprintf(
            name, CH_TARGET_NAME_SIZE, "%.*s", (int)(path + request->n_bytes - slash), slash);
        break;
    case CH_HANDS_MOUNT_HOTPLUG_FILE:
        (void)snprintf(name, CH_TARGET_NAME_SIZE, "%s.img", request->name);
        break;
    case CH_HANDS_MOUNT_HOTPLUG_DIR:
        (void)snprintf(name, CH_TARGET_NAME_SIZE, "%s", request->name);
        break;
    case CH_HANDS_MOUNT_NONE:
    case CH_HANDS_MOUNT_N:
        name[0] = '\0';
    }
}

int
ch_target_open_dir(const char *uid, ChHandsMount mount)
{
    ch_autofd int pods_fd = open(node_pods_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[CH_HANDS_UID_SIZE + sizeof("/" DISKS_DIR)];

    if (pods_fd < 0)
        return -errno;
    (void)snprintf(path, sizeof(path), "%s/%s", uid, ch_target_dir(mount));
    return ch_safe_open(pods_fd, path, O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
}

/* The directory for the kernel's files. Whatever pod made it before: it is root's. Returns a
 * descriptor or -errno. */
static int
open_boot_dir(int dir_fd, bool makes)
{
    ch_autofd int fd = -EBADF;
    int result;

    if (makes && mkdirat(dir_fd, CH_TARGET_BOOT_NAME, 0755) < 0 && errno != EEXIST)
        return -errno;
    fd = ch_safe_open(dir_fd,
                      CH_TARGET_BOOT_NAME,
                      makes ? O_RDONLY | O_DIRECTORY : O_PATH | O_DIRECTORY,
                      0,
                      CH_RESOLVE_NO_LINKS);
    if (fd < 0)
        return fd;
    if (makes) {
        result = ch_safe_chown(fd, 0, 0);
        if (result == 0 && fchmod(fd, 0755) < 0)
            result = -errno;
        if (result < 0)
            return result;
    }
    return g_steal_fd(&fd);
}

/* Makes what will be hidden by the mount. Returns 0 or -errno; something that exists is fine. */
static int
make(const ChTarget *target, ChHandsMount mount)
{
    ch_autofd int fd = -EBADF;

    if (kinds[mount].is_dir)
        return mkdirat(target->dir_fd, target->name, kinds[mount].mode) < 0 && errno != EEXIST
                   ? -errno
                   : 0;
    fd = ch_safe_open(target->dir_fd,
                      target->name,
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                      kinds[mount].mode,
                      CH_RESOLVE_NO_LINKS);
    return fd >= 0 || fd == -EEXIST ? 0 : fd;
}

bool
ch_target_reopen(ChTarget *target, ChHandsReply *reply)
{
    struct stat st;
    bool is_mounted = false;
    int result;

    ch_close_fd(&target->fd);
    target->facts = (ChHandsTarget){0};
    result = ch_safe_open(target->dir_fd, target->name, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    if (result == -ENOENT)
        return true;
    if (result < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, result, "open the target");
    target->fd = result;
    result = fstat(target->fd, &st) < 0 ? -errno : ch_mount_is_root(target->fd, &is_mounted);
    if (result < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_IS_ROOT, result, "look at the target");
    target->facts = (ChHandsTarget){st.st_dev, st.st_ino, st.st_rdev, st.st_mode, is_mounted};
    return true;
}

static bool
open_name(const ChHandsRequest *request,
          const char *path,
          bool makes,
          ChTarget *target,
          ChHandsReply *reply)
{
    int result = 0;

    ch_target_name(target->name, request, path);
    if (target->name[0] == '\0')
        return true;
    if (makes)
        result = make(target, request->mount);
    if (result < 0)
        return ch_reply_fail_step(reply, CH_HANDS_STEP_TARGET, result, "create the target");
    if (!ch_target_reopen(target, reply))
        return false;
    if (!makes || (target->fd >= 0 && (kinds[request->mount].is_dir ? S_ISDIR(target->facts.mode)
                                                                    : S_ISREG(target->facts.mode))))
        return true;
    return ch_reply_fail_step(
        reply, CH_HANDS_STEP_TARGET, ESTALE, "something else has the target's name");
}

bool
ch_target_open(const ChHandsRequest *request,
               const char *path,
               bool makes,
               ChTarget *out_target,
               ChHandsReply *reply)
{
    ChTarget target = CH_TARGET_INIT;

    target.dir_fd = ch_target_open_dir(request->uid, request->mount);
    if (target.dir_fd < 0)
        return ch_reply_fail_step(
            reply, CH_HANDS_STEP_DIR, target.dir_fd, "open the pod's directory");
    if (request->mount == CH_HANDS_MOUNT_BOOT) {
        ch_autofd int parent_fd = target.dir_fd;

        target.dir_fd = open_boot_dir(parent_fd, makes);
        if (target.dir_fd < 0)
            return ch_reply_fail_step(reply,
                                      makes ? CH_HANDS_STEP_TARGET : CH_HANDS_STEP_DIR,
                                      target.dir_fd,
                                      "open the directory " CH_TARGET_BOOT_NAME);
    }
    if (!open_name(request, path, makes, &target, reply)) {
        ch_target_clear(&target);
        return false;
    }
    *out_target = target;
    return true;
}

void
ch_target_clear(ChTarget *target)
{
    ch_close_fd(&target->dir_fd);
    ch_close_fd(&target->fd);
}
