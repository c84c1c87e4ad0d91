/* SPDX-License-Identifier: Apache-2.0 */

/* KubeVirt objects, as the API server gives them: what counts, and what of it. */

#include <math.h>
#include <string.h>

#include "handler/config/config-keeper.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every text to its end: a sanitizer sees what is not there. */
static void
touch(const char *text)
{
    g_assert_nonnull(text);
    g_assert_true(strlen(text) < G_MAXINT);
}

static void
touch_all(char **texts)
{
    g_assert_nonnull(texts);
    for (; *texts != NULL; texts++)
        touch(*texts);
}

static void
touch_devices(const ChPermittedDevices *devices)
{
    for (guint i = 0; i < devices->pci->len; i++)
        touch(g_array_index(devices->pci, ChPermittedDevice, i).selector);
    for (guint i = 0; i < devices->mediated->len; i++)
        touch(g_array_index(devices->mediated, ChPermittedDevice, i).resource_name);
    for (guint i = 0; i < devices->usb->len; i++) {
        const ChPermittedUsb *usb = &g_array_index(devices->usb, ChPermittedUsb, i);

        touch(usb->resource_name);
        for (guint j = 0; j < usb->selectors->len; j++)
            touch(g_array_index(usb->selectors, ChUsbSelector, j).vendor);
    }
}

static void
touch_bindings(const ChClusterConfig *config)
{
    GHashTableIter iter;
    gpointer name, binding;

    touch_all(config->migratable_bindings);
    g_hash_table_iter_init(&iter, config->bindings);
    while (g_hash_table_iter_next(&iter, &name, &binding)) {
        g_assert_true(ch_cluster_config_binding(config, name) == binding);
        touch(((const ChBindingPlugin *)binding)->domain_attachment);
        touch(((const ChBindingPlugin *)binding)->migration_method);
    }
}

/* What every user of a configuration relies on, wherever it came from. */
static void
check(const ChClusterConfig *config, const ChJson *labels)
{
    g_auto(GStrv) types = ch_mediated_devices_types(config->mediated_devices, labels);

    g_assert_cmpint(config->verbosity, >, 0);
    g_assert_true(isfinite(config->qps));
    g_assert_cmpint(config->pvc_tolerated_percent, >=, 0);
    g_assert_cmpint(config->pvc_tolerated_percent, <=, 100);
    touch(config->resource_version);
    touch(config->smbios.manufacturer);
    touch(config->smbios.sku);
    touch(config->eviction_strategy);
    touch(config->migrations.drain_taint_key);
    touch(config->tdx.qgs_socket_path);
    touch(ch_cluster_config_hypervisor(config));
    touch_all(config->supported_guest_agent_versions);
    touch_all(config->permitted_mdevs);
    touch_all(types);
    touch_devices(&config->permitted_devices);
    touch_bindings(config);
    g_assert_true(ch_cluster_config_has_gate(config, "LiveMigration"));
    g_assert_false(ch_cluster_config_has_gate(config, "Unheard"));
    (void)ch_cluster_config_has_persistent_reservation(config); /* must only end */
    (void)ch_cluster_config_handles_mediated_devices(config);
}

static void
unref(gpointer json)
{
    ch_json_unref(json);
}

/* The input is one object, or a list of them. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(ChJson) json = ch_json_parse((const char *)data, (gssize)size, NULL);
    g_autoptr(GPtrArray) objects = g_ptr_array_new_with_free_func(unref);
    g_autoptr(ChConfigKeeper) keeper = ch_config_keeper_new("kubevirt", "node01");
    g_autoptr(GError) error = NULL;
    ChConfigOutcome outcome;

    if (json == NULL)
        return 0;
    for (gsize i = 0; ch_json_is_array(json) && i < ch_json_length(json); i++) {
        if (ch_json_item(json, i) != NULL)
            g_ptr_array_add(objects, ch_json_ref(ch_json_item(json, i)));
    }
    if (!ch_json_is_array(json))
        g_ptr_array_add(objects, ch_json_ref(json));
    outcome = ch_config_keeper_look(keeper, objects, &error);
    g_assert_true((outcome == CH_CONFIG_REFUSED) == (error != NULL));
    check(ch_config_keeper_peek(keeper), ch_json_at(json, "metadata", "labels"));
    touch_all(ch_config_keeper_peek_tls(keeper)->ciphers);
    g_assert_cmpint(ch_config_keeper_look(keeper, objects, NULL), ==, CH_CONFIG_UNCHANGED);
    return 0;
}
