/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/link-names.h"

#include <string.h>

/* The table of spec 04 §7.1. */
static const struct NameCase {
    const char *pod_link;
    bool is_primary;
    const char *bridge, *nic, *tap;
} cases[] = {
    {"eth0", true, "k6t-eth0", "eth0-nic", "tap0"},
    {"podlink", true, "k6t-link", "link-nic", "tap0"},
    {"pod914f438d88d", false, "k6t-914f438d88d", "914f438d88d-nic", "tap914f438d88d"},
    {"net1", false, "k6t-net1", "net1-nic", "tap1"},
    {"ab", false, "k6t-ab", "ab-nic", "tap"},
    {"", false, "k6t-", "-nic", "tap"},
};

static void
test_derived(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        ChLinkNames names = {0};

        g_strlcpy(names.pod_link, cases[i].pod_link, sizeof(names.pod_link));
        ch_link_names_derive(&names, cases[i].is_primary);
        g_assert_cmpstr(names.bridge, ==, cases[i].bridge);
        g_assert_cmpstr(names.nic, ==, cases[i].nic);
        g_assert_cmpstr(names.tap, ==, cases[i].tap);
    }
}

static void
test_hashed(void)
{
    static const char *const known[][2] = {{"secondnetwork", "pod914f438d88d"},
                                           {"blue", "pod16477688c0e"},
                                           {"red", "podb1f51a511f1"},
                                           {"network1", "poda7662f44d65"}};

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        char name[CH_LINK_NAME_SIZE];

        ch_link_name_hashed(known[i][0], name);
        g_assert_cmpstr(name, ==, known[i][1]);
    }
}

static void
test_names_too_long_stay_inside(void)
{
    ChLinkNames names = {0};

    memset(names.pod_link, 'x', sizeof(names.pod_link) - 1);
    ch_link_names_derive(&names, false);
    g_assert_cmpuint(strlen(names.bridge), ==, CH_LINK_NAME_SIZE - 1);
    g_assert_cmpuint(strlen(names.nic), ==, CH_LINK_NAME_SIZE - 1);
    g_assert_cmpuint(strlen(names.tap), ==, CH_LINK_NAME_SIZE - 1);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/link-names/derived", test_derived);
    g_test_add_func("/link-names/hashed", test_hashed);
    g_test_add_func("/link-names/names-too-long-stay-inside", test_names_too_long_stay_inside);
    return g_test_run();
}
