/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/hands/pod-table.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <unistd.h>

static ChPodEntry
make_entry(void)
{
    const ChPodEntry entry = {
        .pid = 1,
        .pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC),
        .root_fd = open("/dev/null", O_RDONLY | O_CLOEXEC),
    };

    g_assert_cmpint(entry.root_fd, >=, 0);
    return entry;
}

static void
test_release(void)
{
    const ChPodEntry entry = make_entry();
    const uint64_t first = ch_pod_table_add(&entry);
    ChPodEntry next;
    uint64_t second;

    g_assert_cmpuint(first, !=, 0);
    g_assert_cmpint(ch_pod_table_find(first)->root_fd, ==, entry.root_fd);
    g_assert_true(ch_pod_table_release(first));
    g_assert_cmpint(fcntl(entry.root_fd, F_GETFD), ==, -1);
    g_assert_null(ch_pod_table_find(first));
    g_assert_false(ch_pod_table_release(first));

    next = make_entry();
    second = ch_pod_table_add(&next);
    g_assert_cmpuint(second, !=, first);
    g_assert_null(ch_pod_table_find(first)); /* the old handle does not name the new pod */
    g_assert_true(ch_pod_table_release(second));
}

static void
test_unknown(void)
{
    static const uint64_t handles[] = {0, 1, 0x10000, 0x10001, 0xffff, UINT64_MAX};

    for (gsize i = 0; i < G_N_ELEMENTS(handles); i++) {
        g_assert_null(ch_pod_table_find(handles[i]));
        g_assert_false(ch_pod_table_release(handles[i]));
    }
}

static void
test_full(void)
{
    static uint64_t handles[CH_POD_TABLE_SIZE];
    const ChPodEntry entry = {.pidfd = -1, .root_fd = -1};

    for (gsize i = 0; i < CH_POD_TABLE_SIZE; i++) {
        handles[i] = ch_pod_table_add(&entry);
        g_assert_cmpuint(handles[i], !=, 0);
    }
    g_assert_cmpuint(ch_pod_table_add(&entry), ==, 0);
    for (gsize i = 0; i < CH_POD_TABLE_SIZE; i++)
        g_assert_true(ch_pod_table_release(handles[i]));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pod-table/released-handle-stays-dead", test_release);
    g_test_add_func("/pod-table/unknown-handles", test_unknown);
    g_test_add_func("/pod-table/full-table-refuses", test_full);
    return g_test_run();
}
