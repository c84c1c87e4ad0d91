/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/kube/names.h"

static void
test_subdomains(void)
{
    static const char *const good[] = {"a", "0", "node-01.example.com", "a--b", "x.185f3c"};
    static const char *const bad[] = {
        "",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "a-.b",
        "a.-b",
        "A",
        "a_b",
        "a b",
        "\u00e4",
        "a/b",
    };
    g_autofree char *longest = g_strnfill(253, 'a');
    g_autofree char *too_long = g_strnfill(254, 'a');

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(ch_name_is_dns_subdomain(good[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_test_message("%s", bad[i]);
        g_assert_false(ch_name_is_dns_subdomain(bad[i]));
    }
    g_assert_true(ch_name_is_dns_subdomain(longest));
    g_assert_false(ch_name_is_dns_subdomain(too_long));
}

static void
test_label_keys(void)
{
    static const char *const good[] = {"a", "A_b.c-9", "kubevirt.io/nodeName", "a/b"};
    static const char *const bad[] = {
        "",
        "/",
        "a/",
        "/a",
        "a/b/c",
        "A.io/b",
        "-a",
        "a-",
        "a b",
        "a=b",
        "!a",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(ch_label_key_is_valid(good[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_label_key_is_valid(bad[i]));
}

static void
test_label_values(void)
{
    g_autofree char *longest = g_strnfill(63, 'a');
    g_autofree char *too_long = g_strnfill(64, 'a');

    g_assert_true(ch_label_value_is_valid(""));
    g_assert_true(ch_label_value_is_valid("Node_01.x"));
    g_assert_false(ch_label_value_is_valid("a/b"));
    g_assert_false(ch_label_value_is_valid("a."));
    g_assert_true(ch_label_value_is_valid(longest));
    g_assert_false(ch_label_value_is_valid(too_long));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/names/subdomains", test_subdomains);
    g_test_add_func("/names/label-keys", test_label_keys);
    g_test_add_func("/names/label-values", test_label_values);
    return g_test_run();
}
