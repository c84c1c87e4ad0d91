/* SPDX-License-Identifier: Apache-2.0 */

#include "local/podrunner/leases.h"

#include "lib/base/errors.h"
#include "lib/linux/command.h"
#include "local/podrunner/record.h"

typedef struct {
    char *root;
} Fixture;

static void
put(const Fixture *fixture, const char *network, const char *name, const char *text)
{
    g_autofree char *dir = g_build_filename(fixture->root, network, NULL);
    g_autofree char *path = g_build_filename(dir, name, NULL);

    g_assert_cmpint(g_mkdir_with_parents(dir, 0755), ==, 0);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static bool
has(const Fixture *fixture, const char *network, const char *name)
{
    g_autofree char *path = g_build_filename(fixture->root, network, name, NULL);

    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->root = g_dir_make_tmp("ch-leases-XXXXXX", NULL);
    put(fixture, "red", "10.0.0.2", "p-1\r\npoda\n");
    put(fixture, "red", "10.0.0.3", "p-1\r\npodb");
    put(fixture, "red", "10.0.0.4", "p-2\r\npoda");
    put(fixture, "red", "last_reserved_ip.0", "p-1\r\npoda");
    put(fixture, "blue", "fd00::2", "p-1\r\npoda");
    put(fixture, "blue", "10.0.1.2", "p-1");
    put(fixture, "blue", "10.0.1.3", "");
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    const char *const argv[] = {"rm", "-rf", "--", fixture->root, NULL};

    g_assert_true(ch_command_run(&(ChCommand){.argv = argv, .timeout_us = 10000000}, NULL, NULL));
    g_free(fixture->root);
}

static void
test_of_a_link(Fixture *fixture, gconstpointer data)
{
    ch_leases_free(fixture->root, "p-1", "poda");
    g_assert_false(has(fixture, "red", "10.0.0.2"));
    g_assert_false(has(fixture, "blue", "fd00::2"));
    g_assert_true(has(fixture, "red", "10.0.0.3"));
    g_assert_true(has(fixture, "red", "10.0.0.4"));
    g_assert_true(has(fixture, "red", "last_reserved_ip.0"));
    g_assert_true(has(fixture, "blue", "10.0.1.2"));
    g_assert_true(has(fixture, "blue", "10.0.1.3"));
}

static void
test_of_a_pod(Fixture *fixture, gconstpointer data)
{
    ch_leases_free(fixture->root, "p-1", NULL);
    g_assert_false(has(fixture, "red", "10.0.0.2"));
    g_assert_false(has(fixture, "red", "10.0.0.3"));
    g_assert_false(has(fixture, "blue", "10.0.1.2"));
    g_assert_true(has(fixture, "red", "10.0.0.4"));
}

static void
test_of_nobody(Fixture *fixture, gconstpointer data)
{
    ChRecord here = {.uid = (char *)"p-1", .network = (char *)CH_RECORD_NETWORK_UP};
    ChRecord disconnected = {.uid = (char *)"p-2"};
    g_autoptr(GPtrArray) records = g_ptr_array_new();

    g_ptr_array_add(records, &here);
    g_ptr_array_add(records, &disconnected);
    ch_leases_sweep(fixture->root, records);
    g_assert_true(has(fixture, "red", "10.0.0.2"));
    g_assert_true(has(fixture, "blue", "10.0.1.2"));
    g_assert_false(has(fixture, "red", "10.0.0.4"));
    g_assert_false(has(fixture, "blue", "10.0.1.3"));
}

static void
test_without_any(Fixture *fixture, gconstpointer data)
{
    g_autofree char *none = g_build_filename(fixture->root, "none", NULL);

    ch_leases_free(none, "p-1", NULL);
}

#define ADD(path, func) g_test_add("/leases/" path, Fixture, NULL, set_up, func, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("of-a-link", test_of_a_link);
    ADD("of-a-pod", test_of_a_pod);
    ADD("of-nobody", test_of_nobody);
    ADD("without-any", test_without_any);
    return g_test_run();
}
