/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/cloud-init.h"

#include <string.h>

#include "lib/base/errors.h"

static ChJson *
make_vmi(const char *source)
{
    g_autofree char *text = g_strdup_printf(
        "{'metadata':{'name':'my.vm','namespace':'ns'},'spec':{'volumes':[{'name':'v',%s}]}}",
        source);

    g_strdelimit(text, "'", '"');
    ChJson *vmi = ch_json_parse(text, -1, NULL);
    g_assert_nonnull(vmi);
    return vmi;
}

static GArray *
make_files(const char *source, GError **error)
{
    g_autoptr(ChJson) vmi = make_vmi(source);
    ChVolume volume;

    g_assert_true(ch_volume_find(vmi, "v", &volume, NULL));
    return ch_cloud_init_files(&volume, vmi, error);
}

static void
assert_file(const GArray *files, guint index, const char *path, const char *text)
{
    const ChCloudInitFile *file = &g_array_index(files, ChCloudInitFile, index);

    g_assert_cmpuint(index, <, files->len);
    g_assert_cmpstr(file->path, ==, path);
    g_assert_cmpuint(file->length, ==, strlen(text));
    g_assert_true(memcmp(file->text, text, file->length) == 0);
}

static void
test_no_cloud(void)
{
    g_autoptr(GArray) files = make_files(
        "'cloudInitNoCloud':{'userDataBase64':'aGVsbG8=','networkData':'version: 2'}", NULL);

    g_assert_nonnull(files);
    assert_file(files, 0, "user-data", "hello");
    assert_file(files, 1, "network-config", "version: 2");
    assert_file(files, 2, "meta-data", "{\"instance-id\":\"my.vm.ns\",\"local-hostname\":\"my\"}");
    g_assert_cmpstr(ch_cloud_init_label(CH_VOLUME_CLOUD_INIT_NO_CLOUD), ==, "cidata");
}

static void
test_config_drive(void)
{
    g_autoptr(GArray) files = make_files("'cloudInitConfigDrive':{'userData':'x'}", NULL);

    g_assert_nonnull(files);
    assert_file(files, 0, "openstack/latest/user_data", "x");
    assert_file(files,
                1,
                "openstack/latest/meta_data.json",
                "{\"instance_id\":\"my.vm.ns\",\"local_hostname\":\"my\"}");
    g_assert_cmpstr(ch_cloud_init_label(CH_VOLUME_CLOUD_INIT_CONFIG_DRIVE), ==, "config-2");
}

static const struct Refused {
    const char *path;
    const char *source;
} refused[] = {
    {"/cloud-init/nothing-to-say-is-refused", "'cloudInitNoCloud':{}"},
    {"/cloud-init/empty-text-is-refused", "'cloudInitNoCloud':{'userData':''}"},
    {"/cloud-init/bad-base64-is-refused", "'cloudInitNoCloud':{'userDataBase64':'!'}"},
    {"/cloud-init/secret-is-refused", "'cloudInitNoCloud':{'secretRef':{'name':'s'}}"},
};

static void
test_refused(gconstpointer data)
{
    const struct Refused *c = data;
    g_autoptr(GError) error = NULL;

    g_assert_null(make_files(c->source, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_hostname(void)
{
    g_autoptr(ChJson) vmi = ch_json_parse("{\"metadata\":{\"name\":\"a.b\"}}", -1, NULL);
    g_autofree char *from_name = ch_cloud_init_hostname(vmi);
    g_autofree char *long_name = g_strnfill(100, 'h');

    g_assert_cmpstr(from_name, ==, "a");
    ch_json_set_string(ch_json_ensure_object(vmi, "spec"), "hostname", long_name);
    g_autofree char *from_spec = ch_cloud_init_hostname(vmi);
    g_assert_cmpuint(strlen(from_spec), ==, 63);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cloud-init/no-cloud", test_no_cloud);
    g_test_add_func("/cloud-init/config-drive", test_config_drive);
    g_test_add_func("/cloud-init/hostname", test_hostname);
    for (gsize i = 0; i < G_N_ELEMENTS(refused); i++)
        g_test_add_data_func(refused[i].path, &refused[i], test_refused);
    return g_test_run();
}
