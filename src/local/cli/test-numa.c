/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/numa.h"

#include <glib/gstdio.h>
#include <string.h>

static void
test_lists(void)
{
    static const char *const bad[] = {"a", "3-1", "1-", "-1", "0-9999999", "1,,2"};
    g_autoptr(GArray) list = ch_numa_parse_list("0-2,8\n");

    g_assert_cmpuint(list->len, ==, 4);
    g_assert_cmpuint(g_array_index(list, uint32_t, 2), ==, 2);
    g_assert_cmpuint(g_array_index(list, uint32_t, 3), ==, 8);
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_null(ch_numa_parse_list(bad[i]));
}

/* Below a temporary directory; each with the directories above it. */
static const char *const files[][2] = {
    {"node/online", "0-1\n"},
    {"node/node0/cpulist", "0,2\n"},
    {"node/node0/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree: 1 kB\n"},
    {"node/node1/cpulist", "1\n"},
    {"node/node1/meminfo", "garbage"},
    {"cpu/cpu0/topology/thread_siblings_list", "0,2\n"},
    {"cpu/cpu2/topology/thread_siblings_list", "<'&>\n"},
};

static void
test_two_cells(void)
{
    g_autofree char *dir = g_dir_make_tmp("numa-XXXXXX", NULL);
    g_autoptr(GArray) cells = NULL;
    g_autofree char *xml = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(dir, files[i][0], NULL);
        g_autofree char *parent = g_path_get_dirname(path);

        g_assert_cmpint(g_mkdir_with_parents(parent, 0755), ==, 0);
        g_assert_true(g_file_set_contents(path, files[i][1], -1, NULL));
    }
    cells = ch_numa_load(dir, 7);
    xml = ch_numa_capabilities_xml(cells, "x86_64");
    g_assert_cmpstr(xml,
                    ==,
                    "<capabilities>\n  <host>\n    <cpu>\n      <arch>x86_64</arch>\n    </cpu>\n"
                    "    <topology>\n      <cells num='2'>\n"
                    "        <cell id='0'>\n          <memory unit='KiB'>1024</memory>\n"
                    "          <cpus num='2'>\n            <cpu id='0' siblings='0,2'/>\n"
                    "            <cpu id='2' siblings='2'/>\n          </cpus>\n        </cell>\n"
                    "        <cell id='1'>\n          <memory unit='KiB'>0</memory>\n"
                    "          <cpus num='1'>\n            <cpu id='1' siblings='1'/>\n"
                    "          </cpus>\n        </cell>\n"
                    "      </cells>\n    </topology>\n  </host>\n</capabilities>\n");
    for (gsize i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(dir, files[i][0], NULL);

        g_unlink(path);
        while (strlen(path) > strlen(dir)) {
            *strrchr(path, '/') = '\0';
            g_rmdir(path); /* empty at last */
        }
    }
}

static void
test_kernel_without_cells(void)
{
    g_autoptr(GArray) cells = ch_numa_load("/nonexistent", 7);
    const ChNumaCell *cell = &g_array_index(cells, ChNumaCell, 0);

    g_assert_cmpuint(cells->len, ==, 1);
    g_assert_cmpint(cell->memory_kib, ==, 7);
    g_assert_cmpuint(cell->cpus->len, ==, 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/numa/lists", test_lists);
    g_test_add_func("/numa/two-cells", test_two_cells);
    g_test_add_func("/numa/kernel-without-cells", test_kernel_without_cells);
    return g_test_run();
}
