/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/inside-look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "handler/hands/reply.h"
#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define CLOUD_INIT "var/run/kubevirt-ephemeral-disks/cloud-init-data"
#define PRIVATE    "var/run/kubevirt-private"

/* Both names were checked: each is one component. Spec: 02 §6.2 */
static int
print_path(char *path, size_t size, ChHandsImage image, const char *namespace_, const char *name)
{
    switch (image) {
    case CH_HANDS_IMAGE_NO_CLOUD:
        return snprintf(path, size, CLOUD_INIT "/%s/%s/noCloud.iso", namespace_, name);
    case CH_HANDS_IMAGE_CONFIG_DRIVE:
        return snprintf(path, size, CLOUD_INIT "/%s/%s/configdrive.iso", namespace_, name);
    case CH_HANDS_IMAGE_CONFIG_MAP:
        return snprintf(path, size, PRIVATE "/config-map-disks/%s.iso", name);
    case CH_HANDS_IMAGE_DOWNWARD_API:
        return snprintf(path, size, PRIVATE "/downwardapi-disks/%s.iso", name);
    case CH_HANDS_IMAGE_SECRET:
        return snprintf(path, size, PRIVATE "/secret-disks/%s.iso", name);
    case CH_HANDS_IMAGE_SYSPREP:
        return snprintf(path, size, PRIVATE "/sysprep-disks/%s.iso", name);
    case CH_HANDS_IMAGE_SERVICE_ACCOUNT:
        return snprintf(path, size, PRIVATE "/service-account-disk/service-account.iso");
    case CH_HANDS_IMAGE_NONE:
    case CH_HANDS_IMAGE_N:
        break;
    }
    return -1;
}

bool
ch_inside_stat_image(
    int root_fd, ChHandsImage image, const char *namespace_, const char *name, ChHandsReply *reply)
{
    char path[512];
    const int length = print_path(path, sizeof(path), image, namespace_, name);
    ch_autofd int fd = -EBADF;
    struct stat st;

    if (length < 0 || (size_t)length >= sizeof(path))
        return ch_reply_fail(reply, ENAMETOOLONG, "image %u", (unsigned)image);
    fd = ch_safe_open(root_fd, path, O_PATH | O_NOFOLLOW, 0, CH_RESOLVE_IN_ROOT);
    if (fd < 0)
        return ch_reply_fail(reply, fd, "open '/%s'", path);
    if (fstat(fd, &st) < 0)
        return ch_reply_fail(reply, errno, "stat '/%s'", path);
    if (!S_ISREG(st.st_mode))
        return ch_reply_fail(reply, EINVAL, "'/%s' is no regular file", path);
    reply->size = (uint64_t)st.st_size;
    return true;
}

bool
ch_inside_read_label(int root_fd, ChHandsReply *reply)
{
    /* An O_PATH descriptor has no attributes to read. */
    ch_autofd int fd = ch_safe_open(root_fd, ".", O_RDONLY | O_DIRECTORY, 0, CH_RESOLVE_NO_LINKS);
    char label[CH_HANDS_TEXT_SIZE];
    ssize_t length;

    if (fd < 0)
        return ch_reply_fail(reply, fd, "open the pod's root");
    length = fgetxattr(fd, "security.selinux", label, sizeof(label));
    if (length < 0)
        return ch_reply_fail(reply, errno, "read the SELinux label of the pod's root");
    if (length < 2) /* a label and its NUL */
        return ch_reply_fail(reply, ENODATA, "SELinux label of the pod's root");
    memcpy(reply->text, label, (size_t)length - 1);
    reply->text[length - 1] = '\0';
    return true;
}
