/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node/shared-mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/linux/safe-path.h"

/* Of a line: number, parent, device, root, mount point, options; then tags until "-". */
enum { FIELD_ID, FIELD_POINT = 4, FIELD_TAGS = 6 };

static bool
has_number(char **fields, uint64_t id)
{
    char *end = NULL;
    const uint64_t number = g_ascii_strtoull(fields[FIELD_ID], &end, 10);

    return end != fields[FIELD_ID] && *end == '\0' && number == id;
}

static bool
is_shared(char **tags)
{
    for (gsize i = 0; tags[i] != NULL && !g_str_equal(tags[i], "-"); i++)
        if (g_str_has_prefix(tags[i], "shared:"))
            return true;
    return false;
}

bool
ch_shared_mount_find(const char *mountinfo, uint64_t id, ChSharedMount *out_mount)
{
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);

    for (gsize i = 0; lines[i] != NULL; i++) {
        g_auto(GStrv) fields = g_strsplit(lines[i], " ", -1);

        if (g_strv_length(fields) <= FIELD_TAGS || !has_number(fields, id))
            continue;
        *out_mount = (ChSharedMount){is_shared(fields + FIELD_TAGS), g_strdup(fields[FIELD_POINT])};
        return true;
    }
    return false;
}

void
ch_shared_mount_clear(ChSharedMount *mount)
{
    g_clear_pointer(&mount->point, g_free);
}

/* The number of the mount that @dir lies on. Links are followed, as kubelet's directory may be
 * one. */
static bool
find_mount_id(const char *host_root, const char *dir, uint64_t *out_id)
{
    ch_autofd int root_fd = open(host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ch_autofd int fd =
        root_fd < 0 ? -errno : ch_safe_open(root_fd, dir, O_PATH, 0, CH_RESOLVE_IN_ROOT);
    struct statx stx;

    if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) < 0 ||
        !(stx.stx_mask & STATX_MNT_ID))
        return false;
    *out_id = stx.stx_mnt_id;
    return true;
}

bool
ch_shared_mounts_check(const char *host_root, const char *mountinfo_file, const char *dir)
{
    g_autofree char *text = NULL;
    ChSharedMount mount = {0};
    uint64_t id = 0;
    bool is_fine;

    if (!find_mount_id(host_root, dir, &id) ||
        !g_file_get_contents(mountinfo_file, &text, NULL, NULL) ||
        !ch_shared_mount_find(text, id, &mount))
        return true;
    is_fine = mount.is_shared;
    if (!is_fine)
        ch_log_warning(NULL,
                       NULL,
                       "the node's mount at %s, which has %s, is not shared: pods cannot see what "
                       "is mounted for them there, such as hotplugged volumes; 'mount "
                       "--make-rshared %s' on the node changes it for new pods",
                       mount.point,
                       dir,
                       mount.point);
    ch_shared_mount_clear(&mount);
    return is_fine;
}
