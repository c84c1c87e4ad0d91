/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/launch.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>

#include "lib/base/errors.h"
#include "local/podrunner/api.h"
#include "local/podrunner/holder.h"
#include "local/podrunner/pod-layout.h"
#include "local/podrunner/vmi-images.h"

typedef struct {
    const ChPassEnv *env;
    const ChJson *vmi;
    ChRecord *record;
} Launch;

/* Fills @sources and @files, in the order of @needs. */
static bool
find_files(const ChImageStore *images,
           const GArray *needs,
           GPtrArray *sources,
           GArray *files,
           GError **error)
{
    for (guint i = 0; i < needs->len; i++) {
        const ChImageNeed *need = &g_array_index(needs, ChImageNeed, i);
        char *source = ch_image_find_file(images, need->image, need->wanted, error);
        ChPodFile file = {.source = source, .target = need->target};

        if (source == NULL) {
            g_prefix_error(error, "%s: ", need->what);
            return false;
        }
        g_ptr_array_add(sources, source);
        g_array_append_val(files, file);
    }
    return true;
}

/* What kubelet leaves of the init container that pods have whose disks the agent mounts: by it the
 * agent tells them from others (spec 05 §6.3). */
static bool
mark_as_mounted(const Launch *launch, GError **error)
{
    g_autofree char *dir = ch_pod_dir(launch->env->container.state_dir, launch->record->uid);
    g_autofree char *mark = g_build_filename(dir, "containers", "container-disk-binary", NULL);

    return g_mkdir_with_parents(mark, 0755) == 0 ||
           ch_fail_errno(error, errno, "create directory '%s'", mark);
}

/* Of one holder; @needs and @sources from @first on, as long as they are its. */
static bool
start_holder(const Launch *launch,
             const GArray *needs,
             const GPtrArray *sources,
             guint first,
             GError **error)
{
    const char *name = g_array_index(needs, ChImageNeed, first).holder;
    g_autofree char *socket = g_strconcat(name, ".sock", NULL);
    g_autoptr(GArray) files = g_array_new(FALSE, FALSE, sizeof(ChPodFile));
    g_autoptr(GPtrArray) targets = g_ptr_array_new_with_free_func(g_free);

    for (guint i = first; i < needs->len; i++) {
        const ChImageNeed *need = &g_array_index(needs, ChImageNeed, i);
        ChPodFile file = {.source = sources->pdata[i]};

        if (!g_str_equal(need->holder, name))
            break;
        g_ptr_array_add(targets, ch_image_held_path(need, file.source));
        file.target = targets->pdata[targets->len - 1];
        g_array_append_val(files, file);
    }
    return ch_holder_start(&(ChHolder){.state_dir = launch->env->container.state_dir,
                                       .program = launch->env->container.holder,
                                       .pod_uid = launch->record->uid,
                                       .name = name,
                                       .volume = CH_POD_DISKS_VOLUME,
                                       .socket = socket,
                                       .files = (const ChPodFile *)(gpointer)files->data,
                                       .n_files = files->len},
                           NULL,
                           error);
}

static bool
start_holders(const Launch *launch, const GArray *needs, const GPtrArray *sources, GError **error)
{
    const char *last = NULL;

    for (guint i = 0; i < needs->len; i++) {
        const char *name = g_array_index(needs, ChImageNeed, i).holder;

        if (g_strcmp0(last, name) != 0 && !start_holder(launch, needs, sources, i, error))
            return false;
        last = name;
    }
    return true;
}

/* The launcher, and if the agent is to mount its images, who holds them. */
static bool
start_all(const Launch *launch,
          const GArray *needs,
          const GPtrArray *sources,
          const GArray *files,
          GError **error)
{
    g_autoptr(ChJson) kubevirt =
        needs->len > 0 ? ch_api_get_kubevirt(launch->env->kube, error) : NULL;
    const bool are_volumes = ch_images_are_volumes(kubevirt);

    if (needs->len > 0 && kubevirt == NULL)
        return false;
    if (!ch_container_start(&launch->env->container,
                            launch->vmi,
                            (const ChPodFile *)(gpointer)files->data,
                            are_volumes ? files->len : 0,
                            launch->record,
                            error))
        return false;
    if (are_volumes ||
        (mark_as_mounted(launch, error) && start_holders(launch, needs, sources, error)))
        return true;
    (void)ch_container_signal(launch->record, SIGKILL, NULL);
    launch->record->pid = 0; /* the next attempt begins anew */
    return false;
}

bool
ch_launch(const ChPassEnv *env,
          const ChJson *vmi,
          ChRecord *record,
          const char **out_reason,
          GError **error)
{
    const Launch launch = {env, vmi, record};
    g_autoptr(GArray) needs = ch_vmi_images(vmi, error);
    g_autoptr(GPtrArray) sources = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) files = g_array_new(FALSE, FALSE, sizeof(ChPodFile));

    *out_reason = "ErrImagePull";
    if (needs == NULL || !find_files(&env->images, needs, sources, files, error))
        return false;
    *out_reason = "CreateContainerError";
    return start_all(&launch, needs, sources, files, error);
}
