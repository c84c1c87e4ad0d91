/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-volumes.h"

#include <string.h>

#include "lib/base/errors.h"
#include "lib/json/test-text.h"

static const struct Case {
    const char *name, *volume;
    const char *sentence; /* NULL: it is possible */
} cases[] = {
    {"container-disk", "\"containerDisk\":{\"image\":\"x\"}", NULL},
    {"empty-disk", "\"emptyDisk\":{}", NULL},
    {"cloud-init", "\"cloudInitConfigDrive\":{}", NULL},
    {"metrics", "\"downwardMetrics\":{}", NULL},
    {"plugged", "\"persistentVolumeClaim\":{\"claimName\":\"c\",\"hotpluggable\":true}", NULL},
    {"claim",
     "\"persistentVolumeClaim\":{\"claimName\":\"c\"}",
     "'v': a persistentVolumeClaim needs 'hotpluggable: true'"},
    {"host-disk",
     "\"hostDisk\":{\"path\":\"/x\"}",
     "'v': a hostDisk is not possible on one machine, only containerDisk, "},
    {"config-map", "\"configMap\":{\"name\":\"x\"}", "'v': a configMap is not possible"},
};

static void
test_case(gconstpointer data)
{
    const struct Case *c = data;
    g_autofree char *text = g_strdup_printf(
        "{\"spec\":{\"volumes\":[{\"name\":\"ok\",\"emptyDisk\":{}},{\"name\":\"v\",%s}],"
        "\"domain\":{\"devices\":{\"interfaces\":[{\"name\":\"nic\"}]}}}}",
        c->volume);
    g_autoptr(ChJson) vmi = parse_json(text);
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(ch_vmi_check_volumes(vmi, &error), ==, c->sentence == NULL);
    if (c->sentence == NULL)
        return;
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_nonnull(strstr(error->message, c->sentence));
}

static void
test_name_of_an_interface(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{'spec':{'volumes':[{'name':'red','emptyDisk':{}}],"
                   "'domain':{'devices':{'interfaces':[{'name':'red','bridge':{}}]}}}}");
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_vmi_check_volumes(vmi, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    g_assert_cmpstr(error->message,
                    ==,
                    "volume 'red': the VM has an interface of this name, and its devices' names "
                    "are of one set");
    g_assert_true(ch_vmi_check_volume_name(vmi, "blue", NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/vmi-volumes/", cases[i].name, NULL);

        g_test_add_data_func(path, &cases[i], test_case);
    }
    g_test_add_func("/vmi-volumes/name-of-an-interface", test_name_of_an_interface);
    return g_test_run();
}
