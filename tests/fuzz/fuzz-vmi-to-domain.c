/* SPDX-License-Identifier: Apache-2.0 */

/* The VMI, as the agent sends it: whatever it says, there is a document or an error. */

#include "local/launcher/cloud-init.h"
#include "local/launcher/domain-xml.h"
#include "local/launcher/xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
convert(const ChJson *vmi)
{
    g_autoptr(GError) error = NULL;
    const ChDomainInput input = {
        .vmi = vmi,
        .paths = {"/private", "/ephemeral", "/container-disks", "/empty-disks"},
        .is_emulated = true,
    };
    g_autofree char *text = ch_domain_xml_build(&input, &error);

    g_assert_true((text == NULL) == (error != NULL));
}

static void
read_volumes(const ChJson *vmi)
{
    const ChJson *volumes = ch_json_at(vmi, "spec", "volumes");

    for (gsize i = 0; i < ch_json_length(volumes); i++) {
        const char *name = ch_json_string_at(ch_json_item(volumes, i), "name");
        ChVolume volume;

        if (name == NULL || !ch_volume_find(vmi, name, &volume, NULL) ||
            (volume.kind != CH_VOLUME_CLOUD_INIT_NO_CLOUD &&
             volume.kind != CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE) ||
            ch_json_string_at(vmi, "metadata", "name") == NULL)
            continue;
        g_autoptr(GArray) files = ch_cloud_init_files(&volume, vmi, NULL);
        g_assert_true(files == NULL || files->len >= 2);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gsize is_initialized = 0;
    g_autoptr(ChJson) vmi = ch_json_parse((const char *)data, (gssize)size, NULL);

    if (g_once_init_enter(&is_initialized)) {
        ch_xml_init();
        g_once_init_leave(&is_initialized, 1);
    }
    if (vmi != NULL) {
        convert(vmi);
        read_volumes(vmi);
    }
    return 0;
}
