/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define MISC_MAJOR  10
#define ANY_MINOR   (-1)
#define VFIO_DIR    "dev/vfio"
#define VFIO_NODE   VFIO_DIR "/vfio"
#define VFIO_MINOR  196
#define VIRTIOFS    "var/run/kubevirt/virtiofs-containers"
#define NODE_ACCESS (S_IROTH | S_IWOTH)

static const char *sysfs_dir = "/sys";

void
ch_inside_set_sysfs(const char *dir)
{
    sysfs_dir = dir;
}

/* --- owners */

/* What 107:107 may do with it, as bits of "others". */
static mode_t
access_of(const struct stat *st)
{
    if (st->st_uid == CH_INSIDE_UID)
        return st->st_mode >> 6 & 7;
    return (st->st_gid == CH_INSIDE_GID ? st->st_mode >> 3 : st->st_mode) & 7;
}

bool
ch_inside_own(int fd, const char *what, mode_t access, ChHandsReply *reply)
{
    const int result = ch_safe_chown(fd, CH_INSIDE_UID, CH_INSIDE_GID);
    struct stat st;

    if (result == 0)
        return true;
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat %s", what);
    if ((result == -EPERM || result == -EROFS) && (access_of(&st) & access) == access)
        return true;
    return ch_reply_fail(reply,
                         result,
                         "change ownership of %s (%u:%u, mode 0%o)",
                         what,
                         st.st_uid,
                         st.st_gid,
                         st.st_mode & 07777);
}

/* --- the fixed devices */

/* Whether sysfs has the character device under this name, such as "misc/sev": the kernel gives out
 * their numbers. With a number that nothing has, a node is nobody's, and harms nobody. Returns 1, 0
 * or -errno. */
static int
is_named(dev_t rdev, const char *subsystem, const char *name)
{
    char path[256];
    char target[256];
    char wanted[64];
    ssize_t n;
    size_t length;

    (void)snprintf(path, sizeof(path), "%s/dev/char/%u:%u", sysfs_dir, major(rdev), minor(rdev));
    length = (size_t)snprintf(wanted, sizeof(wanted), "/%s/%s", subsystem, name);
    n = readlinkat(AT_FDCWD, path, target, sizeof(target));
    if (n < 0 && ch_reply_is_unknown(-errno))
        return -errno;
    if (n < 0 && errno == ENOENT)
        return 1;
    return length < sizeof(wanted) && n >= (ssize_t)length && (size_t)n < sizeof(target) &&
           memcmp(target + n - length, wanted, length) == 0;
}

typedef struct {
    const char *path;
    const char *name; /* in sysfs, below "misc" */
    int minor_number; /* ANY_MINOR: drawn by the kernel */
} Device;

/* Returns as is_named(). */
static int
is_device(const struct stat *st, const Device *device)
{
    if (!S_ISCHR(st->st_mode) || major(st->st_rdev) != MISC_MAJOR)
        return 0;
    return device->minor_number == ANY_MINOR ? is_named(st->st_rdev, "misc", device->name)
                                             : minor(st->st_rdev) == (unsigned)device->minor_number;
}

static bool
fail_device(const Device *device, ChHandsReply *reply)
{
    if (device->minor_number == ANY_MINOR)
        return ch_reply_fail(
            reply, ENODEV, "/%s is not the device misc/%s", device->path, device->name);
    return ch_reply_fail(reply,
                         ENODEV,
                         "/%s is not the character device %d:%d",
                         device->path,
                         MISC_MAJOR,
                         device->minor_number);
}

/* @out_fd: -EBADF when it fails */
static bool
open_device(int root_fd, const Device *device, int *out_fd, ChHandsReply *reply)
{
    ch_autofd int fd = ch_safe_open(root_fd, device->path, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    struct stat st;
    int result;

    if (fd < 0)
        return ch_reply_fail(reply, fd, "failed opening /%s", device->path);
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat /%s", device->path);
    result = is_device(&st, device);
    if (result < 0)
        return ch_reply_fail(reply, result, "look up what /%s is", device->path);
    if (result == 0)
        return fail_device(device, reply);
    *out_fd = g_steal_fd(&fd);
    return true;
}

/* @may_lack: then what is not there, or cannot be opened, is left alone */
static bool
own_device(int root_fd, const Device *device, bool may_lack, ChHandsReply *reply)
{
    ch_autofd int fd = -EBADF;
    char what[64];

    if (!open_device(root_fd, device, &fd, reply)) {
        if (!may_lack || ch_reply_is_unknown(-reply->errnum))
            return false;
        reply->errnum = 0;
        reply->text[0] = '\0';
        return true;
    }
    (void)snprintf(what, sizeof(what), "/%s", device->path);
    return ch_inside_own(fd, what, NODE_ACCESS, reply);
}

/* --- VFIO */

/* A group's node. Other entries (directories, what is no VFIO device) are nobody's to need. */
static bool
own_group(int dir_fd, const char *name, ChHandsReply *reply)
{
    ch_autofd int fd = ch_safe_open(dir_fd, name, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    char what[64];
    struct stat st;
    int result;

    if (fd < 0)
        return ch_reply_fail(reply, fd, "failed opening /" VFIO_DIR "/%.32s", name);
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat /" VFIO_DIR "/%.32s", name);
    result = S_ISCHR(st.st_mode) ? is_named(st.st_rdev, "vfio", name) : 0;
    if (result <= 0)
        return result == 0 ||
               ch_reply_fail(reply, result, "look up what /" VFIO_DIR "/%.32s is", name);
    (void)snprintf(what, sizeof(what), "/" VFIO_DIR "/%.32s", name);
    return ch_inside_own(fd, what, NODE_ACCESS, reply);
}

static bool
own_groups(int dir_fd, ChHandsReply *reply)
{
    char buffer[4096] __attribute__((aligned(8)));
    ssize_t n;

    while ((n = getdents64(dir_fd, buffer, sizeof(buffer))) > 0) {
        for (ssize_t at = 0; at < n;) {
            const struct dirent64 *entry = (const struct dirent64 *)(const void *)(buffer + at);
            const char *name = entry->d_name;

            at += entry->d_reclen;
            if (name[0] != '.' && !g_str_equal(name, "vfio") && !own_group(dir_fd, name, reply))
                return false;
        }
    }
    return n == 0 || ch_reply_fail(reply, errno, "list /" VFIO_DIR);
}

static bool
own_vfio(int root_fd, ChHandsReply *reply)
{
    static const Device container = {VFIO_NODE, NULL, VFIO_MINOR};
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, VFIO_DIR, O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    ch_autofd int fd = -EBADF;
    int result;

    if (dir_fd == -ENOENT)
        return true;
    if (dir_fd < 0)
        return ch_reply_fail(reply, dir_fd, "failed opening /" VFIO_DIR);
    if (!open_device(root_fd, &container, &fd, reply)) {
        if (reply->errnum == ENOENT) {
            reply->errnum = 0;
            reply->text[0] = '\0';
        }
        return reply->errnum == 0;
    }
    result = ch_safe_chmod(fd, 0666);
    if (result < 0)
        return ch_reply_fail(reply, result, "change mode of /" VFIO_NODE);
    return own_groups(dir_fd, reply);
}

/* --- what is asked for */

static const struct {
    ChHandsDevice device;
    Device node;
    bool is_hypervisor;
} devices[] = {
    {CH_HANDS_DEVICE_KVM, {"dev/kvm", NULL, 232}, true},
    {CH_HANDS_DEVICE_MSHV, {"dev/mshv", "mshv", ANY_MINOR}, true},
    {CH_HANDS_DEVICE_VHOST_VSOCK, {"dev/vhost-vsock", NULL, 241}, false},
    {CH_HANDS_DEVICE_SEV, {"dev/sev", "sev", ANY_MINOR}, false},
    {CH_HANDS_DEVICE_VFIO, {NULL, NULL, 0}, false},
    {CH_HANDS_DEVICE_VHOST_NET, {"dev/vhost-net", NULL, 238}, false},
    {CH_HANDS_DEVICE_TUN, {"dev/net/tun", NULL, 200}, false},
};

bool
ch_inside_own_devices(int root_fd, uint32_t wanted, bool may_lack_kvm, ChHandsReply *reply)
{
    for (gsize i = 0; i < G_N_ELEMENTS(devices); i++) {
        const bool may_lack = devices[i].is_hypervisor && may_lack_kvm;

        if (!(wanted & devices[i].device))
            continue;
        if (devices[i].device == CH_HANDS_DEVICE_VFIO
                ? own_vfio(root_fd, reply)
                : own_device(root_fd, &devices[i].node, may_lack, reply))
            continue;
        reply->device = devices[i].device;
        return false;
    }
    return true;
}

bool
ch_inside_own_block(int root_fd, const char *volume, ChHandsReply *reply)
{
    ch_autofd int dir_fd =
        ch_safe_open(root_fd, "dev", O_PATH | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    ch_autofd int fd =
        dir_fd < 0 ? dir_fd : ch_safe_open(dir_fd, volume, O_PATH, 0, CH_RESOLVE_NO_LINKS);
    char what[CH_HANDS_NAME_SIZE + 8];
    struct stat st;

    if (fd == -ENOENT)
        return true;
    if (fd < 0)
        return ch_reply_fail(reply, fd, "failed opening /dev/%s", volume);
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat /dev/%s", volume);
    if (!S_ISBLK(st.st_mode))
        return ch_reply_fail(reply, ENOTBLK, "/dev/%s", volume);
    (void)snprintf(what, sizeof(what), "/dev/%s", volume);
    return ch_inside_own(fd, what, NODE_ACCESS, reply);
}

bool
ch_inside_own_virtiofs(int root_fd, const char *filesystem, ChHandsReply *reply)
{
    char path[sizeof(VIRTIOFS) + CH_HANDS_NAME_SIZE + 8];
    ch_autofd int fd = -EBADF;
    struct stat st;

    (void)snprintf(path, sizeof(path), VIRTIOFS "/%s.sock", filesystem);
    fd = ch_safe_open(root_fd, path, O_PATH, 0, CH_RESOLVE_IN_ROOT);
    if (fd < 0)
        return ch_reply_fail(reply, fd, "failed opening /%s", path);
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat /%s", path);
    if (!S_ISSOCK(st.st_mode))
        return ch_reply_fail(reply, ENOTSOCK, "/%s", path);
    return ch_inside_own(fd, path, NODE_ACCESS, reply);
}
