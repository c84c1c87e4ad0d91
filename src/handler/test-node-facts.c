/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/node-facts.h"

#include <errno.h>
#include <glib/gstdio.h>

#include "lib/base/errors.h"

/* 08 §3, trap 36 */
static const struct NamespaceCase {
    const char *path;
    const char *content; /* NULL: there is no file */
    const char *expect;
} namespace_cases[] = {
    {"missing", NULL, "kubevirt"},
    {"empty", "", "kubevirt"},
    {"blank", " \n", "kubevirt"},
    {"plain", "virt", "virt"},
    {"with-newline-and-blanks", " virt \n", "virt"},
};

static void
test_namespace(gconstpointer data)
{
    const struct NamespaceCase *c = data;
    g_autofree char *directory = g_dir_make_tmp(NULL, NULL);
    g_autofree char *path = g_build_filename(directory, "namespace", NULL);
    g_autofree char *name = NULL;
    g_autoptr(GError) error = NULL;

    if (c->content != NULL)
        g_assert_true(g_file_set_contents(path, c->content, -1, NULL));
    name = ch_own_namespace_load(path, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(name, ==, c->expect);
    if (c->content != NULL)
        g_assert_no_errno(g_unlink(path));
    g_assert_no_errno(g_rmdir(directory));
}

static void
test_unreadable_namespace(void)
{
    g_autofree char *directory = g_dir_make_tmp(NULL, NULL);
    g_autofree char *expect = g_strdup_printf("failed to determine namespace from %s: ", directory);
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_own_namespace_load(directory, &error));
    g_assert_error(error, CH_ERRNO, EISDIR);
    g_assert_true(g_str_has_prefix(error->message, expect));
    g_assert_no_errno(g_rmdir(directory));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(namespace_cases); i++) {
        g_autofree char *path =
            g_strconcat("/node-facts/namespace/", namespace_cases[i].path, NULL);

        g_test_add_data_func(path, &namespace_cases[i], test_namespace);
    }
    g_test_add_func("/node-facts/unreadable-namespace", test_unreadable_namespace);
    return g_test_run();
}
