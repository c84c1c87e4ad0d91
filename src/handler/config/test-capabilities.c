/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/config/capabilities.h"

#include "lib/base/errors.h"

#include <string.h>

#define CELLS(text)                                                                                \
    "<capabilities><host><topology><cells>" text "</cells></topology></host></capabilities>"

static ChCapabilities *
parse(const char *xml)
{
    g_autoptr(GError) error = NULL;
    ChCapabilities *capabilities = ch_capabilities_parse(xml, strlen(xml), &error);

    g_assert_no_error(error);
    return capabilities;
}

/* spec:01#57: 01 §30.6 no. 57. */
static void
test_cell_is_copied(void)
{
    g_autoptr(ChCapabilities) capabilities = parse(
        CELLS("<cell id='3'><memory unit='KiB'>1048576</memory>"
              "<pages unit='KiB' size='4'>262144</pages><pages unit='KiB' size='2048'>7</pages>"
              "<distances><sibling id='0' value='10'/><sibling id='1' value='21'/></distances>"
              "<cpus num='1'><cpu id='4' socket_id='0' siblings='0,4'/></cpus></cell>"));
    const ChNumaCell *cell;

    g_assert_cmpuint(capabilities->cells->len, ==, 1);
    cell = &g_array_index(capabilities->cells, ChNumaCell, 0);
    g_assert_cmpuint(cell->id, ==, 3);
    g_assert_true(cell->has_memory);
    g_assert_cmpuint(cell->memory_amount, ==, 1048576);
    g_assert_cmpstr(cell->memory_unit, ==, "KiB");
    g_assert_cmpuint(cell->pages->len, ==, 2);
    g_assert_cmpuint(g_array_index(cell->pages, ChNumaPages, 1).count, ==, 7);
    g_assert_cmpuint(g_array_index(cell->pages, ChNumaPages, 1).size, ==, 2048);
    g_assert_cmpuint(cell->distances->len, ==, 2);
    g_assert_cmpuint(g_array_index(cell->distances, ChNumaDistance, 1).value, ==, 21);
    g_assert_cmpuint(cell->cpus->len, ==, 1);
    g_assert_cmpuint(g_array_index(cell->cpus, ChNumaCpu, 0).id, ==, 4);
}

static const struct SiblingCase {
    const char *path;
    const char *text;
    guint n;
    uint32_t values[3];
} sibling_cases[] = {
    {"pair", "0,4", 2, {0, 4}},
    {"range-is-dropped", "0-3", 0, {0}},
    {"mixed", "1,2-3,,x,4294967295,4294967296", 2, {1, 4294967295}},
    {"empty", "", 0, {0}},
    {"signs-are-dropped", "+1,-1", 0, {0}},
};

/* spec:01#57 spec:01#58 */
static void
test_siblings(gconstpointer data)
{
    const struct SiblingCase *c = data;
    g_autofree char *xml = g_strdup_printf(
        CELLS("<cell id='0'><cpus><cpu id='0' siblings='%s'/></cpus></cell>"), c->text);
    g_autoptr(ChCapabilities) capabilities = parse(xml);
    const ChNumaCell *cell = &g_array_index(capabilities->cells, ChNumaCell, 0);
    GArray *siblings = g_array_index(cell->cpus, ChNumaCpu, 0).siblings;

    g_assert_cmpuint(siblings->len, ==, c->n);
    for (guint i = 0; i < c->n; i++)
        g_assert_cmpuint(g_array_index(siblings, uint32_t, i), ==, c->values[i]);
}

/* spec:01#58: 01 §30.6 no. 55 and 58: what is absent counts as zero or empty. */
static void
test_absent_members(void)
{
    g_autoptr(ChCapabilities) none = parse("<capabilities><host/></capabilities>");
    g_autoptr(ChCapabilities) bare =
        parse(CELLS("<cell/><cell id='x'><pages/><cpus><cpu/></cpus></cell>"));
    const ChNumaCell *cells = (const ChNumaCell *)(gpointer)bare->cells->data;

    g_assert_cmpuint(none->cells->len, ==, 0);
    g_assert_cmpuint(bare->cells->len, ==, 2);
    g_assert_false(cells[0].has_memory);
    g_assert_cmpuint(cells[1].id, ==, 0);
    g_assert_cmpstr(g_array_index(cells[1].pages, ChNumaPages, 0).unit, ==, "");
    g_assert_cmpuint(g_array_index(cells[1].cpus, ChNumaCpu, 0).siblings->len, ==, 0);
}

/* Only the host's cells are cells; a guest's or a deeper one's are not. */
static void
test_cells_elsewhere(void)
{
    g_autoptr(ChCapabilities) capabilities =
        parse("<capabilities><guest><topology><cells><cell "
              "id='1'/></cells></topology></guest><cell/></capabilities>");

    g_assert_cmpuint(capabilities->cells->len, ==, 0);
}

static void
test_limits(void)
{
    g_autoptr(GString) deep = g_string_new(NULL);
    g_autoptr(GString) many = g_string_new("<capabilities><host><topology><cells>");
    g_autofree char *large = g_strnfill((4u << 20) + 1, ' ');
    g_autoptr(GError) deep_error = NULL;
    g_autoptr(GError) many_error = NULL;
    g_autoptr(GError) large_error = NULL;

    for (int i = 0; i < 40; i++)
        g_string_append(deep, "<a>");
    for (int i = 0; i < 5000; i++)
        g_string_append(many, "<cell/>");
    g_assert_null(ch_capabilities_parse(deep->str, deep->len, &deep_error));
    g_assert_error(deep_error, CH_ERROR, CH_ERROR_LIMIT);
    g_assert_null(ch_capabilities_parse(many->str, many->len, &many_error));
    g_assert_error(many_error, CH_ERROR, CH_ERROR_LIMIT);
    g_assert_null(ch_capabilities_parse(large, strlen(large), &large_error));
    g_assert_error(large_error, CH_ERROR, CH_ERROR_LIMIT);
}

static void
test_no_xml(void)
{
    static const char *const texts[] = {"", "<capabilities>", "garbage"};

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(ch_capabilities_parse(texts[i], strlen(texts[i]), &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/capabilities/cell-is-copied", test_cell_is_copied);
    for (gsize i = 0; i < G_N_ELEMENTS(sibling_cases); i++) {
        g_autofree char *path = g_strconcat("/capabilities/siblings/", sibling_cases[i].path, NULL);

        g_test_add_data_func(path, &sibling_cases[i], test_siblings);
    }
    g_test_add_func("/capabilities/absent-members", test_absent_members);
    g_test_add_func("/capabilities/cells-elsewhere", test_cells_elsewhere);
    g_test_add_func("/capabilities/limits", test_limits);
    g_test_add_func("/capabilities/no-xml", test_no_xml);
    return g_test_run();
}
