/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/vmi-defaults.h"

#include <string.h>

#include "lib/base/errors.h"

#define UUID "5d307ca9-b3ef-428c-8861-06e72d69f223"

static ChJson *
with_defaults(const char *text)
{
    g_autoptr(GError) error = NULL;
    ChJson *vmi = ch_json_parse(text, -1, &error);

    g_assert_no_error(error);
    g_assert_true(ch_vmi_set_defaults(vmi, "amd64", UUID, &error));
    g_assert_no_error(error);
    return vmi;
}

static void
test_smallest(void)
{
    g_autoptr(ChJson) vmi = with_defaults(
        "{\"metadata\":{\"name\":\"vm\"},\"spec\":{\"domain\":{\"memory\":{\"guest\":\"64Mi\"}}}}");
    g_autoptr(ChJson) expected = ch_json_parse(
        "{\"architecture\":\"amd64\",\"domain\":{\"memory\":{\"guest\":\"64Mi\"},\"cpu\":{"
        "\"cores\":1,\"sockets\":1,\"threads\":1,\"model\":\"host-model\"},\"features\":{\"acpi\":"
        "{\"enabled\":true}},\"machine\":{\"type\":\"q35\"},\"firmware\":{\"uuid\":\"" UUID "\"},"
        "\"resources\":{\"requests\":{\"memory\":\"64Mi\"}},\"devices\":{\"disks\":[],"
        "\"interfaces\":[]}},\"networks\":[]}",
        -1,
        NULL);

    g_assert_true(ch_json_equal(ch_json_at(vmi, "spec"), expected));
    g_assert_cmpstr(ch_json_as_string(ch_json_item(ch_json_at(vmi, "metadata", "finalizers"), 0)),
                    ==,
                    CH_VMI_FINALIZER);
}

static void
test_given_values_stay(void)
{
    static const char text[] =
        "{\"metadata\":{\"finalizers\":[\"" CH_VMI_FINALIZER "\"],\"annotations\":{\"a\":\"b\"}},"
        "\"spec\":{\"unknown\":1e400,\"architecture\":\"arm64\",\"domain\":{\"cpu\":{\"cores\":4,"
        "\"model\":\"Skylake\"},\"features\":{\"acpi\":{\"enabled\":false}},\"machine\":{\"type\":"
        "\"virt\"},\"firmware\":{\"uuid\":\"x\"},\"resources\":{\"requests\":{\"memory\":\"1Gi\"}"
        "}}}}";
    g_autoptr(ChJson) vmi = with_defaults(text);
    g_autofree char *printed = ch_json_print(vmi, NULL);
    int64_t cores = 0;

    g_assert_nonnull(strstr(printed, "\"unknown\":1e400"));
    g_assert_true(ch_json_int_at(vmi, &cores, "spec", "domain", "cpu", "cores"));
    g_assert_cmpint(cores, ==, 4);
    g_assert_cmpstr(ch_json_string_at(vmi, "spec", "domain", "machine", "type"), ==, "virt");
    g_assert_cmpstr(ch_json_string_at(vmi, "spec", "domain", "firmware", "uuid"), ==, "x");
    g_assert_cmpstr(ch_json_string_at(vmi, "spec", "domain", "memory", "guest"), ==, "1Gi");
    g_assert_false(ch_json_bool_at(vmi, true, "spec", "domain", "features", "acpi", "enabled"));
    g_assert_cmpuint(ch_json_length(ch_json_at(vmi, "metadata", "finalizers")), ==, 1);
}

static void
test_volumes_become_disks(void)
{
    g_autoptr(ChJson) vmi = with_defaults(
        "{\"spec\":{\"domain\":{\"memory\":{\"guest\":\"1Gi\"},\"devices\":{\"disks\":["
        "{\"name\":\"a\"},{\"name\":\"b\",\"cdrom\":{}},{\"name\":\"c\",\"disk\":{\"bus\":"
        "\"scsi\"}}],\"filesystems\":[{\"name\":\"e\"}]}},\"volumes\":[{\"name\":\"d\"},{\"name\":"
        "\"e\"},{\"name\":\"a\"}]}}");
    const ChJson *disks = ch_json_at(vmi, "spec", "domain", "devices", "disks");

    g_assert_cmpuint(ch_json_length(disks), ==, 4);
    g_assert_cmpstr(ch_json_string_at(ch_json_item(disks, 0), "disk", "bus"), ==, "sata");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(disks, 1), "cdrom", "bus"), ==, "sata");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(disks, 2), "disk", "bus"), ==, "scsi");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(disks, 3), "name"), ==, "d");
}

static void
test_memory_is_needed(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ChJson) vmi = ch_json_parse("{\"spec\":{\"domain\":{}}}", -1, NULL);

    g_assert_false(ch_vmi_set_defaults(vmi, "amd64", UUID, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
}

static void
test_memory_is_more_than_none(void)
{
    static const char *const texts[][2] = {
        {"{\"memory\":{\"guest\":\"0\"}}", "spec.domain.memory.guest is '0'"},
        {"{\"resources\":{\"requests\":{\"memory\":\"-1\"}}}",
         "spec.domain.resources.requests.memory is '-1'"},
        {"{\"resources\":{\"limits\":{\"memory\":\"1e30\"}}}",
         "spec.domain.resources.limits.memory is '1e30'"},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autofree char *text = g_strdup_printf("{\"spec\":{\"domain\":%s}}", texts[i][0]);
        g_autoptr(ChJson) vmi = ch_json_parse(text, -1, NULL);
        g_autoptr(GError) error = NULL;

        g_assert_false(ch_vmi_set_defaults(vmi, "amd64", UUID, &error));
        g_assert_true(g_str_has_prefix(error->message, texts[i][1]));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vmi-defaults/smallest", test_smallest);
    g_test_add_func("/vmi-defaults/given-values-stay", test_given_values_stay);
    g_test_add_func("/vmi-defaults/volumes-become-disks", test_volumes_become_disks);
    g_test_add_func("/vmi-defaults/memory-is-needed", test_memory_is_needed);
    g_test_add_func("/vmi-defaults/memory-is-more-than-none", test_memory_is_more_than_none);
    return g_test_run();
}
