/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/holder.h"

#include <errno.h>
#include <glib/gstdio.h>

#include "lib/base/errors.h"
#include "local/podrunner/crun.h"
#include "local/podrunner/pod-layout.h"

static char *
make_id(const ChHolder *holder)
{
    return holder->name == NULL ? g_strdup(holder->pod_uid)
                                : g_strjoin("-", holder->pod_uid, holder->name, NULL);
}

/* (transfer full): the bundle, with an empty root in it. */
static char *
make_bundle(const ChHolder *holder, GError **error)
{
    g_autofree char *run_dir = ch_pod_run_dir(holder->state_dir, holder->pod_uid);
    g_autofree char *bundle =
        g_build_filename(run_dir, holder->name != NULL ? holder->name : "holder", NULL);
    g_autofree char *rootfs = g_build_filename(bundle, "rootfs", NULL);

    if (g_mkdir_with_parents(bundle, 0700) < 0 || g_mkdir_with_parents(rootfs, 0755) < 0) {
        ch_fail_errno(error, errno, "create directories in '%s'", run_dir);
        return NULL;
    }
    return g_steal_pointer(&bundle);
}

static bool
write_config(const ChHolder *holder, const char *id, const char *bundle, GError **error)
{
    g_autofree char *rootfs = g_build_filename(bundle, "rootfs", NULL);
    g_autofree char *path = g_build_filename(bundle, "config.json", NULL);
    g_autofree char *shared = ch_pod_volume_dir(holder->state_dir, holder->pod_uid, holder->volume);
    g_autoptr(ChJson) config =
        ch_oci_holder_config_new(&(ChOciHolderSpec){.program = holder->program,
                                                    .rootfs = rootfs,
                                                    .id = id,
                                                    .socket = holder->socket,
                                                    .shared_dir = shared,
                                                    .temporary_dir = holder->temporary_dir,
                                                    .files = holder->files,
                                                    .n_files = holder->n_files});
    g_autofree char *text = ch_json_print_pretty(config);

    return g_file_set_contents(path, text, -1, error);
}

bool
ch_holder_start(const ChHolder *holder, int64_t *out_pid, GError **error)
{
    g_autofree char *id = make_id(holder);
    g_autofree char *bundle = make_bundle(holder, error);
    int64_t pid = 0;

    if (bundle == NULL || !ch_crun_delete(holder->state_dir, id, error) ||
        !write_config(holder, id, bundle, error) ||
        !ch_crun_run(&(ChCrun){holder->state_dir, id, bundle, "output.log"}, &pid, error))
        return false;
    if (out_pid != NULL)
        *out_pid = pid;
    return true;
}

bool
ch_holder_is_ready(const ChHolder *holder)
{
    g_autofree char *dir = ch_pod_volume_dir(holder->state_dir, holder->pod_uid, holder->volume);
    g_autofree char *path = g_build_filename(dir, holder->socket, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}
