/* SPDX-License-Identifier: Apache-2.0 */

#include "local/apiserver/vmi-fields.h"

#include <string.h>

static const struct FieldsCase {
    const char *path, *vmi, *expect; /* by blank */
} cases[] = {
    {"/vmi-fields/typing-error",
     "{\"spec\":{\"domain\":{\"cpus\":{\"guest\":\"1Gi\"}}}}",
     "spec.domain.cpus"},
    {"/vmi-fields/in-a-list",
     "{\"spec\":{\"domain\":{\"devices\":{\"interfaces\":[{\"name\":\"a\",\"masquerade\":{}},"
     "{\"name\":\"b\",\"masqerade\":{}}]}},\"volumes\":[{\"name\":\"v\",\"containerDisk\":{"
     "\"imgae\":1}}]}}",
     "spec.domain.devices.interfaces[1].masqerade spec.volumes[0].containerDisk.imgae"},
    {"/vmi-fields/at-the-top",
     "{\"metadata\":{\"x\":1},\"spc\":1,\"spec\":{\"x\":1,\"domain\":{}},\"status\":{\"y\":1}}",
     "spc spec.x"},
    {"/vmi-fields/in-what-has-no-fields",
     "{\"spec\":{\"domain\":{\"devices\":{\"interfaces\":[{\"bridge\":{\"port\":1}}]}}}}",
     "spec.domain.devices.interfaces[0].bridge.port"},
    {"/vmi-fields/maps-are-anybodys",
     "{\"spec\":{\"nodeSelector\":{\"a\":\"b\"},\"domain\":{\"resources\":{\"requests\":{"
     "\"memory\":1,"
     "\"example.com/x\":2}}}}}",
     ""},
    {"/vmi-fields/part-of-a-name",
     "{\"spec\":{\"domain\":{\"cpu\":{\"core\":1}}}}",
     "spec.domain.cpu.core"},
    {"/vmi-fields/wrong-types-are-no-matter",
     "{\"spec\":{\"domain\":[{\"cpu\":5},null,\"x\"],\"volumes\":7}}",
     ""},
    {"/vmi-fields/no-header-of-ones-own",
     "{\"spec\":{\"a\\r\\nSet-Cookie: \\\"\\u00e4\":1}}",
     "spec.a??Set-Cookie: ??\?"},
    {"/vmi-fields/empty-name", "{\"spec\":{\"\":1}}", "spec."},
    {"/vmi-fields/nothing", "{}", ""},
};

static void
test_case(gconstpointer data)
{
    const struct FieldsCase *c = data;
    g_autoptr(ChJson) vmi = ch_json_parse(c->vmi, -1, NULL);
    g_autoptr(GPtrArray) found = NULL;
    g_autofree char *text = NULL;

    g_assert_nonnull(vmi);
    found = ch_vmi_unknown_fields(vmi);
    g_ptr_array_add(found, NULL);
    text = g_strjoinv(" ", (char **)found->pdata);
    g_assert_cmpstr(text, ==, c->expect);
}

static void
test_limits(void)
{
    g_autoptr(GString) text = g_string_new("{\"spec\":{");
    g_autofree char *name = g_strnfill(100000, 'x');
    g_autoptr(ChJson) vmi = NULL;
    g_autoptr(GPtrArray) found = NULL;

    for (int i = 0; i < 100; i++)
        g_string_append_printf(text, "\"%d%s\":1,", i, name);
    g_string_append(text, "\"domain\":{}}}");
    vmi = ch_json_parse(text->str, -1, NULL);
    found = ch_vmi_unknown_fields(vmi);
    g_assert_cmpuint(found->len, ==, CH_VMI_MAX_UNKNOWN);
    for (guint i = 0; i < found->len; i++)
        g_assert_cmpuint(strlen(found->pdata[i]), <=, CH_VMI_MAX_PATH);
}

static void
test_table_is_whole(void)
{
    g_assert_cmpstr(ch_vmi_fields_broken_link(), ==, NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vmi-fields/table-is-whole", test_table_is_whole);
    g_test_add_func("/vmi-fields/limits", test_limits);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        g_test_add_data_func(cases[i].path, &cases[i], test_case);
    return g_test_run();
}
