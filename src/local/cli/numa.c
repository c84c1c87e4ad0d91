/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/numa.h"

#include <string.h>

static void
cpu_clear(gpointer data)
{
    g_free(((ChNumaCpu *)data)->siblings);
}

static void
cell_clear(gpointer data)
{
    g_array_unref(((ChNumaCell *)data)->cpus);
}

static bool
parse_number(const char *text, uint32_t *out_value)
{
    guint64 value = 0;

    if (!g_ascii_string_to_unsigned(text, 10, 0, CH_NUMA_MAX_CPUS - 1, &value, NULL))
        return false;
    *out_value = (uint32_t)value;
    return true;
}

GArray *
ch_numa_parse_list(const char *text)
{
    g_autofree char *copy = g_strstrip(g_strdup(text));
    g_auto(GStrv) parts = g_strsplit(copy, ",", -1);
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (gsize i = 0; parts[i] != NULL; i++) {
        char *dash = strchr(parts[i], '-');
        uint32_t first = 0;
        uint32_t last = 0;

        if (dash != NULL)
            *dash++ = '\0';
        if (!parse_number(parts[i], &first) ||
            !parse_number(dash != NULL ? dash : parts[i], &last) || last < first ||
            numbers->len + (last - first) >= CH_NUMA_MAX_CPUS)
            return NULL;
        for (uint32_t number = first; number <= last; number++)
            g_array_append_val(numbers, number);
    }
    return g_steal_pointer(&numbers);
}

/* (transfer full): a small file's text without the line's end; NULL: it cannot be read */
static char *
read_text(const char *sys_dir, const char *format, uint32_t number)
{
    g_autofree char *name = g_strdup_printf("%u", number);
    g_auto(GStrv) parts = g_strsplit(format, "%", 2);
    g_autofree char *path = g_strconcat(sys_dir, "/", parts[0], name, parts[1], NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strstrip(text);
}

/* Only what a list of numbers is made of gets into the document. */
static char *
read_siblings(const char *sys_dir, uint32_t cpu)
{
    char *text = read_text(sys_dir, "cpu/cpu%/topology/thread_siblings_list", cpu);

    if (text != NULL && *text != '\0' && strspn(text, "0123456789,-") == strlen(text))
        return text;
    g_free(text);
    return g_strdup_printf("%u", cpu);
}

static void
add_cell(GArray *cells, const char *sys_dir, uint32_t id, int64_t memory_kib, const GArray *cpu_ids)
{
    ChNumaCell cell = {id, memory_kib, g_array_new(FALSE, FALSE, sizeof(ChNumaCpu))};

    g_array_set_clear_func(cell.cpus, cpu_clear);
    for (guint i = 0; i < cpu_ids->len; i++) {
        const uint32_t cpu_id = g_array_index(cpu_ids, uint32_t, i);
        const ChNumaCpu cpu = {cpu_id, read_siblings(sys_dir, cpu_id)};

        g_array_append_val(cell.cpus, cpu);
    }
    g_array_append_val(cells, cell);
}

/* "Node 0 MemTotal:  16327008 kB" */
static int64_t
read_memory_kib(const char *sys_dir, uint32_t id)
{
    g_autofree char *text = read_text(sys_dir, "node/node%/meminfo", id);
    const char *total = text != NULL ? strstr(text, "MemTotal:") : NULL;

    return total != NULL ? g_ascii_strtoll(total + strlen("MemTotal:"), NULL, 10) : 0;
}

static GArray *
read_list(const char *sys_dir, const char *name)
{
    g_autofree char *path = g_build_filename(sys_dir, name, NULL);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) ? ch_numa_parse_list(text) : NULL;
}

GArray *
ch_numa_load(const char *sys_dir, int64_t memory_kib)
{
    GArray *cells = g_array_new(FALSE, FALSE, sizeof(ChNumaCell));
    g_autoptr(GArray) nodes = read_list(sys_dir, "node/online");
    g_autoptr(GArray) online = read_list(sys_dir, "cpu/online");

    g_array_set_clear_func(cells, cell_clear);
    for (guint i = 0; nodes != NULL && i < nodes->len; i++) {
        const uint32_t id = g_array_index(nodes, uint32_t, i);
        g_autofree char *text = read_text(sys_dir, "node/node%/cpulist", id);
        g_autoptr(GArray) cpus = text != NULL ? ch_numa_parse_list(text) : NULL;

        if (cpus != NULL)
            add_cell(cells, sys_dir, id, read_memory_kib(sys_dir, id), cpus);
    }
    if (cells->len > 0)
        return cells;
    if (online == NULL)
        online = ch_numa_parse_list("0");
    add_cell(cells, sys_dir, 0, memory_kib, online);
    return cells;
}

static void
append_cell(GString *xml, const ChNumaCell *cell)
{
    g_string_append_printf(xml,
                           "        <cell id='%u'>\n"
                           "          <memory unit='KiB'>%" G_GINT64_FORMAT "</memory>\n"
                           "          <cpus num='%u'>\n",
                           cell->id,
                           cell->memory_kib,
                           cell->cpus->len);
    for (guint i = 0; i < cell->cpus->len; i++) {
        const ChNumaCpu *cpu = &g_array_index(cell->cpus, ChNumaCpu, i);

        g_string_append_printf(
            xml, "            <cpu id='%u' siblings='%s'/>\n", cpu->id, cpu->siblings);
    }
    g_string_append(xml, "          </cpus>\n        </cell>\n");
}

char *
ch_numa_capabilities_xml(const GArray *cells, const char *architecture)
{
    GString *xml = g_string_new("<capabilities>\n  <host>\n");

    g_string_append_printf(xml,
                           "    <cpu>\n      <arch>%s</arch>\n    </cpu>\n"
                           "    <topology>\n      <cells num='%u'>\n",
                           architecture,
                           cells->len);
    for (guint i = 0; i < cells->len; i++)
        append_cell(xml, &g_array_index(cells, ChNumaCell, i));
    g_string_append(xml, "      </cells>\n    </topology>\n  </host>\n</capabilities>\n");
    return g_string_free(xml, FALSE);
}
