/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/selinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib/base/fd.h"
#include "lib/linux/safe-path.h"

#define ENFORCE_FILE "sys/fs/selinux/enforce"
#define ATTRIBUTE    "security.selinux"
#define NO_POLICY    "kernel" /* what every process is labelled then */

/* Whether the file behind @fd begins with @text, and has nothing but white space behind it. */
static bool
says(int fd, const char *text)
{
    const size_t length = strlen(text);
    char buffer[64];
    const ssize_t n = read(fd, buffer, sizeof(buffer) - 1);

    if (n < (ssize_t)length || memcmp(buffer, text, length) != 0)
        return false;
    buffer[n] = '\0';
    return strspn(buffer + length, " \n") == strlen(buffer + length);
}

/* Whether a lookup that fails with it says nothing about what is there. */
static bool
is_shortage(int errnum)
{
    return errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE || errnum == EINTR ||
           errnum == EIO;
}

ChSelinuxMode
ch_selinux_mode(const char *root, const char *label_file)
{
    ch_autofd int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int root_errno = errno;
    ch_autofd int label_fd = open(label_file, O_RDONLY | O_CLOEXEC);
    ch_autofd int fd = -EBADF;

    if (root_fd < 0 && !is_shortage(root_errno))
        root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return CH_SELINUX_UNKNOWN;
    fd = openat(root_fd, ENFORCE_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && is_shortage(errno))
        return CH_SELINUX_UNKNOWN;
    if (fd < 0 && errno != EACCES && errno != EPERM)
        return CH_SELINUX_ABSENT;
    if (label_fd >= 0 && says(label_fd, NO_POLICY))
        return CH_SELINUX_ABSENT;
    return fd >= 0 && says(fd, "1") ? CH_SELINUX_ENFORCING : CH_SELINUX_PERMISSIVE;
}

static bool
has_label(const char *path, const char *label)
{
    char text[256];
    const ssize_t n = getxattr(path, ATTRIBUTE, text, sizeof(text));

    return n >= 0 && (size_t)n == strlen(label) + 1 && memcmp(text, label, (size_t)n) == 0;
}

int
ch_selinux_label_fd(int fd, const char *label)
{
    char path[CH_FD_PATH_SIZE];

    ch_fd_path(path, fd); /* an O_PATH descriptor takes no attributes itself */
    if (has_label(path, label))
        return 0;
    return setxattr(path, ATTRIBUTE, label, strlen(label) + 1, 0) < 0 ? -errno : 0;
}

int
ch_selinux_label_file(const char *path, const char *label)
{
    ch_autofd int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    mode_t mode = 0;
    int result = fd < 0 ? -errno : ch_safe_identify(fd, NULL, &mode);

    if (result < 0)
        return result;
    return S_ISLNK(mode) ? -ELOOP : ch_selinux_label_fd(fd, label);
}
