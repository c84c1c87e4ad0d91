/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-images.h"

#include "lib/base/errors.h"
#include "local/podrunner/pod-layout.h"

#define DISK_DIR   "/disk/" /* of a containerDisk that names no path */
#define IMAGE_GATE "ImageVolume"

static void
need_clear(gpointer data)
{
    ChImageNeed *need = data;

    g_free(need->what);
    g_free(need->image);
    g_free(need->wanted);
    g_free(need->target);
    g_free(need->holder);
}

static void
add_disks(const ChJson *vmi, GArray *needs)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const ChJson *volume = ch_json_item(volumes, i);
        const ChJson *disk = ch_json_at(volume, "containerDisk");
        const char *image = ch_json_string_at(disk, "image");
        const char *path = ch_json_string_at(disk, "path");

        if (disk == NULL)
            continue;
        const ChImageNeed need = {
            g_strdup_printf("containerDisk '%s'", ch_json_string_at(volume, "name")),
            g_strdup(image != NULL ? image : ""),
            g_strdup(path != NULL && *path != '\0' ? path : DISK_DIR),
            g_strdup_printf(CH_POD_CONTAINER_DISKS "/disk_%zu.img", i),
            g_strdup_printf("disk_%zu", i),
        };
        g_array_append_val(needs, need);
    }
}

static bool
add_kernel_file(const ChJson *container, const char *key, GArray *needs, GError **error)
{
    const char *image = ch_json_string_at(container, "image");
    const char *path = ch_json_string_at(container, key);
    g_autofree char *name = NULL;

    if (path == NULL || *path == '\0')
        return true;
    name = g_path_get_basename(path);
    if (g_str_has_suffix(path, "/") || *name == '.')
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "spec.domain.firmware.kernelBoot.container.%s: '%s' is no file",
                       key,
                       path);
    const ChImageNeed need = {
        g_strdup("kernelBoot"),
        g_strdup(image != NULL ? image : ""),
        g_strdup(path),
        g_build_filename(CH_POD_KERNEL_BOOT, name, NULL),
        g_strdup("kernel-boot"),
    };
    g_array_append_val(needs, need);
    return true;
}

GArray *
ch_vmi_images(const ChJson *vmi, GError **error)
{
    const ChJson *container =
        ch_json_at(vmi, "spec", "domain", "firmware", "kernelBoot", "container");
    g_autoptr(GArray) needs = g_array_new(FALSE, FALSE, sizeof(ChImageNeed));

    g_array_set_clear_func(needs, need_clear);
    add_disks(vmi, needs);
    if (!add_kernel_file(container, "kernelPath", needs, error) ||
        !add_kernel_file(container, "initrdPath", needs, error))
        return NULL;
    return g_steal_pointer(&needs);
}

char *
ch_image_held_path(const ChImageNeed *need, const char *file)
{
    g_autofree char *name = g_path_get_basename(file);

    return g_str_has_suffix(need->wanted, "/") ? g_build_filename(need->wanted, name, NULL)
                                               : g_build_filename("/", need->wanted, NULL);
}

bool
ch_images_are_volumes(const ChJson *kubevirt)
{
    const ChJson *config = ch_json_at(kubevirt, "spec", "configuration", "developerConfiguration");

    return ch_json_contains(ch_json_at(config, "featureGates"), IMAGE_GATE) ||
           !ch_json_contains(ch_json_at(config, "disabledFeatureGates"), IMAGE_GATE);
}
