/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "handler/hands/protocol.h"
#include "lib/base/crash-point.h"
#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/small-file.h"

#define MAX_FILE_BYTES 262144 /* of one network: its interface as in the VMI */
#define STATE          "networkState"

static bool
is_component(const char *name)
{
    return name[0] != '\0' && name[0] != '.' && strchr(name, '/') == NULL;
}

/* (transfer full): of the VMI's files; NULL: an empty UID would mean all VMIs */
static char *
vmi_dir(const char *private_dir, const char *uid, GError **error)
{
    if (is_component(uid))
        return g_build_filename(private_dir, CH_HANDS_CACHE_DIR, uid, NULL);
    ch_fail(error, CH_ERROR_INVALID, "'%s' is no UID", uid);
    return NULL;
}

static char *
file_path(const char *private_dir, const char *uid, const char *network, GError **error)
{
    g_autofree char *dir = vmi_dir(private_dir, uid, error);

    if (dir == NULL)
        return NULL;
    if (is_component(network))
        return g_build_filename(dir, network, NULL);
    ch_fail(error, CH_ERROR_INVALID, "'%s' cannot be a network's name", network);
    return NULL;
}

ChJson *
ch_network_cache_load(const char *private_dir, const char *uid, const char *network, GError **error)
{
    g_autofree char *path = file_path(private_dir, uid, network, error);
    g_autofree char *text = NULL;
    ch_autofd int fd = -EBADF;
    gsize length = 0;
    ChJson *document;

    if (path == NULL)
        return NULL;
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return ch_json_new_object();
    if (fd < 0) {
        ch_fail_errno(error, errno, "open '%s'", path);
        return NULL;
    }
    text = ch_small_file_read_fd(fd, path, MAX_FILE_BYTES, &length, error);
    if (text == NULL)
        return NULL;
    document = ch_json_parse(text, (gssize)length, error);
    if (document != NULL && !ch_json_is_object(document)) {
        g_clear_pointer(&document, ch_json_unref);
        ch_fail(error, CH_ERROR_INVALID, "no object");
    }
    if (document == NULL)
        g_prefix_error(error, "error unmarshaling cached object: '%s': ", path);
    return document;
}

static bool
write_file(const char *path, const char *text, GError **error)
{
    ch_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0604);

    if (fd < 0)
        return ch_fail_errno(error, errno, "create '%s'", path);
    return ch_small_file_write_fd(fd, path, text, error);
}

bool
ch_network_cache_store(const char *private_dir,
                       const char *uid,
                       const char *network,
                       const ChJson *document,
                       ChNetworkCacheOwn own,
                       gpointer data,
                       GError **error)
{
    g_autofree char *dir = vmi_dir(private_dir, uid, error);
    g_autofree char *path = dir != NULL ? file_path(private_dir, uid, network, error) : NULL;
    g_autofree char *temporary = NULL;
    g_autofree char *text = NULL;

    if (path == NULL)
        return false;
    if (g_mkdir_with_parents(dir, 0750) < 0)
        return ch_fail_errno(error, errno, "unable to define entry: create '%s'", dir);
    CH_CRASH_POINT("network-cache/directory");
    temporary = g_strconcat(dir, "/.", network, ".new", NULL);
    text = ch_json_print_pretty(document);
    (void)unlink(temporary); /* of a write that was interrupted */
    if (write_file(temporary, text, error) && own(data, uid, network, error)) {
        CH_CRASH_POINT("network-cache/written");
        if (rename(temporary, path) == 0)
            return true;
        ch_fail_errno(error, errno, "rename '%s'", temporary);
    }
    (void)unlink(temporary);
    g_prefix_error(error, "error writing cached object: ");
    return false;
}

int64_t
ch_network_cache_state(const ChJson *document)
{
    int64_t state = CH_NETWORK_PENDING;

    (void)ch_json_int_at(document, &state, STATE);
    return state;
}

void
ch_network_cache_set_state(ChJson *document, ChNetworkState state)
{
    if (state == CH_NETWORK_PENDING)
        ch_json_remove(document, STATE); /* zero is never printed */
    else
        ch_json_set_int(document, STATE, state);
}

bool
ch_network_cache_forget(const char *private_dir,
                        const char *uid,
                        const char *network,
                        GError **error)
{
    g_autofree char *path = file_path(private_dir, uid, network, error);

    if (path == NULL)
        return false;
    if (unlink(path) < 0 && errno != ENOENT)
        return ch_fail_errno(error, errno, "remove '%s'", path);
    CH_CRASH_POINT("network-cache/forgotten");
    return true;
}

bool
ch_network_cache_remove(const char *private_dir, const char *uid, GError **error)
{
    g_autofree char *path = vmi_dir(private_dir, uid, error);
    g_autoptr(GDir) dir = path != NULL ? g_dir_open(path, 0, NULL) : NULL;
    const char *name;

    if (path == NULL)
        return false;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(path, name, NULL);

        if (unlink(file) < 0 && errno != ENOENT)
            return ch_fail_errno(error, errno, "teardown failed, err: remove '%s'", file);
        CH_CRASH_POINT("network-cache/removed");
    }
    if (rmdir(path) < 0 && errno != ENOENT)
        return ch_fail_errno(error, errno, "teardown failed, err: remove '%s'", path);
    return true;
}
