/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/device-labels.h"

#include <errno.h>
#include <sys/stat.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"

#define LABEL "system_u:object_r:container_file_t:s0"

const char *const ch_device_labels_paths[] = {"/dev/net/tun", "/dev/null", NULL};

/* Immutable hosts and odd file systems: VMs may well work, and no restart would help. */
static bool
is_hosts_way(int errnum)
{
    return errnum == EROFS || errnum == EOPNOTSUPP || errnum == EPERM || errnum == EACCES;
}

static bool
label(const char *path, ChSelinuxMode mode, GError **error)
{
    const int errnum = -ch_selinux_label_file(path, LABEL);
    g_autoptr(GError) reason = NULL;

    if (errnum == 0)
        return true;
    (void)ch_fail_errno(&reason, errnum, "label '%s'", path);
    if (mode == CH_SELINUX_PERMISSIVE) {
        ch_log_warning(
            NULL, reason, "ignoring that a device could not be labelled: SELinux is permissive");
        return true;
    }
    if (is_hosts_way(errnum)) {
        ch_log_warning(NULL, reason, "ignoring that a device could not be labelled");
        return true;
    }
    return ch_fail(error, CH_ERROR_FAILED, "error relabeling required files: %s", reason->message);
}

static bool
is_hosts(const char *host_root, const char *path)
{
    g_autofree char *hosts_path = g_strconcat(host_root, path, NULL);
    struct stat own, hosts;

    return stat(path, &own) == 0 && stat(hosts_path, &hosts) == 0 && own.st_dev == hosts.st_dev &&
           own.st_ino == hosts.st_ino;
}

bool
ch_device_labels_set(const char *host_root,
                     const char *const *paths,
                     ChSelinuxMode mode,
                     GError **error)
{
    if (mode == CH_SELINUX_ABSENT)
        return true;
    for (; *paths != NULL; paths++)
        if (!is_hosts(host_root, *paths) && !label(*paths, mode, error))
            return false;
    return true;
}
