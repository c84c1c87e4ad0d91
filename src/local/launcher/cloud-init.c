/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/cloud-init.h"

#include <string.h>

#include "lib/base/errors.h"

#define MAX_HOSTNAME_BYTES 63

/* The two data sources differ in names only. */
typedef struct {
    const char *label;
    const char *user_data;
    const char *network_data;
    const char *meta_data;
    const char *instance_id_key;
    const char *hostname_key;
} Layout;

static const Layout no_cloud = {
    .label = "cidata",
    .user_data = "user-data",
    .network_data = "network-config",
    .meta_data = "meta-data",
    .instance_id_key = "instance-id",
    .hostname_key = "local-hostname",
};

static const Layout config_drive = {
    .label = "config-2",
    .user_data = "openstack/latest/user_data",
    .network_data = "openstack/latest/network_data.json",
    .meta_data = "openstack/latest/meta_data.json",
    .instance_id_key = "instance_id",
    .hostname_key = "local_hostname",
};

static const Layout *
layout_of(ChVolumeKind kind)
{
    return kind == CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE ? &config_drive : &no_cloud;
}

const char *
ch_cloud_init_label(ChVolumeKind kind)
{
    return layout_of(kind)->label;
}

char *
ch_cloud_init_hostname(const ChJson *vmi)
{
    const char *hostname = ch_json_string_at(vmi, "spec", "hostname");

    if (hostname != NULL && *hostname != '\0')
        return g_strndup(hostname, MAX_HOSTNAME_BYTES);
    const char *name = ch_json_string_at(vmi, "metadata", "name");
    return g_strndup(name, MIN(strcspn(name, "."), MAX_HOSTNAME_BYTES));
}

static void
file_clear(gpointer data)
{
    ChCloudInitFile *file = data;

    g_free(file->text);
}

static void
add_file(GArray *files, const char *path, const char *text, gsize length)
{
    const ChCloudInitFile file = {.path = path, .text = g_memdup2(text, length), .length = length};

    g_array_append_val(files, file);
}

/* "userData" as it is, else "userDataBase64" decoded. */
static bool
add_data(GArray *files, const char *path, const ChJson *source, const char *key, GError **error)
{
    g_autofree char *base64_key = g_strconcat(key, "Base64", NULL);
    const char *text = ch_json_string_at(source, key);
    const char *encoded = ch_json_string_at(source, base64_key);
    gsize length = 0;

    if (text != NULL && *text != '\0') {
        add_file(files, path, text, strlen(text));
    } else if (encoded != NULL && *encoded != '\0') {
        g_autofree guchar *decoded = g_base64_decode(encoded, &length);

        if (length == 0)
            return ch_fail(error, CH_ERROR_INVALID, "%s is no base64 text", base64_key);
        add_file(files, path, (const char *)decoded, length);
    }
    return true;
}

static void
add_meta_data(GArray *files, const Layout *layout, const ChJson *vmi)
{
    g_autoptr(ChJson) meta = ch_json_new_object();
    g_autofree char *hostname = ch_cloud_init_hostname(vmi);
    g_autofree char *id = g_strdup_printf("%s.%s",
                                          ch_json_string_at(vmi, "metadata", "name"),
                                          ch_json_string_at(vmi, "metadata", "namespace"));
    gsize length = 0;

    ch_json_set_string(meta, layout->instance_id_key, id);
    ch_json_set_string(meta, layout->hostname_key, hostname);
    g_autofree char *text = ch_json_print(meta, &length);
    add_file(files, layout->meta_data, text, length);
}

GArray *
ch_cloud_init_files(const ChVolume *volume, const ChJson *vmi, GError **error)
{
    static const char *const references[] = {"secretRef", "networkDataSecretRef"};
    const Layout *layout = layout_of(volume->kind);
    g_autoptr(GArray) files = g_array_new(FALSE, FALSE, sizeof(ChCloudInitFile));

    g_array_set_clear_func(files, file_clear);
    for (gsize i = 0; i < G_N_ELEMENTS(references); i++)
        if (ch_json_at(volume->source, references[i]) != NULL) {
            ch_fail(error,
                    CH_ERROR_INVALID,
                    "volume %s: this launcher does not support %s",
                    volume->name,
                    references[i]);
            return NULL;
        }
    if (!add_data(files, layout->user_data, volume->source, "userData", error) ||
        !add_data(files, layout->network_data, volume->source, "networkData", error))
        return NULL;
    if (files->len == 0) {
        ch_fail(error,
                CH_ERROR_INVALID,
                "UserData or NetworkData is required for cloud-init data source");
        return NULL;
    }
    add_meta_data(files, layout, vmi);
    return g_steal_pointer(&files);
}
