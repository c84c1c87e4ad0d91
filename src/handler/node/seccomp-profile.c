/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/seccomp-profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/small-file.h"

#define MAX_BYTES (64u << 10) /* of a file that may be the profile */
#define MODE      0700

/* @out_same: whether the file holds the profile. What cannot be it is replaced. */
static bool
compare(const char *path, bool *out_same, GError **error)
{
    g_autoptr(GError) reason = NULL;
    gsize length = 0;
    g_autofree char *text = ch_small_file_read(path, MAX_BYTES, &length, &reason);

    *out_same = text != NULL && g_str_equal(text, ch_seccomp_profile_text);
    if (text != NULL || g_error_matches(reason, CH_ERRNO, ENOENT) ||
        g_error_matches(reason, CH_ERROR, CH_ERROR_LIMIT) ||
        g_error_matches(reason, CH_ERROR, CH_ERROR_INVALID))
        return true;
    g_propagate_error(error, g_steal_pointer(&reason));
    return false;
}

static bool
write_profile(const char *path, GError **error)
{
    g_autofree char *temporary = g_strconcat(path, ".XXXXXX", NULL);
    ch_autofd int fd = mkostemp(temporary, O_CLOEXEC);

    if (fd < 0)
        return ch_fail_errno(error, errno, "create '%s'", temporary);
    if (!ch_small_file_write_fd(fd, temporary, ch_seccomp_profile_text, error)) {
        (void)unlink(temporary);
        return false;
    }
    if (fchmod(fd, MODE) < 0 || rename(temporary, path) < 0) {
        const int errnum = errno;

        (void)unlink(temporary);
        return ch_fail_errno(error, errnum, "write '%s'", path);
    }
    return true;
}

bool
ch_seccomp_profile_install(const char *kubelet_root, GError **error)
{
    g_autofree char *dir = g_build_filename(kubelet_root, "seccomp", "kubevirt", NULL);
    g_autofree char *path = g_build_filename(dir, "kubevirt.json", NULL);
    bool is_same = false;
    bool ok;

    if (g_mkdir_with_parents(dir, MODE) < 0)
        ok = ch_fail_errno(error, errno, "make '%s'", dir);
    else
        ok = compare(path, &is_same, error) && (is_same || write_profile(path, error));
    if (!ok)
        g_prefix_error(error, "failed to install default seccomp profile: ");
    return ok;
}
