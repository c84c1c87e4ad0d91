/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/vmi/nics.h"

#include "lib/json/test-text.h"

static void
test_names(void)
{
    static const char *const good[] = {"a", "0", "Lab_1-a", "net-b"};
    static const char *const bad[] = {"", "-a", "_a", ".a", "a.b", "a b", "../a", "a/b", "a'b"};
    g_autofree char *longest = g_strnfill(CH_NIC_MAX_NAME_BYTES, 'a');
    g_autofree char *too_long = g_strnfill(CH_NIC_MAX_NAME_BYTES + 1, 'a');

    for (gsize i = 0; i < G_N_ELEMENTS(good); i++)
        g_assert_true(ch_nic_name_is_valid(good[i]));
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        g_assert_false(ch_nic_name_is_valid(bad[i]));
    g_assert_true(ch_nic_name_is_valid(longest));
    g_assert_false(ch_nic_name_is_valid(too_long));
    g_assert_false(ch_nic_name_is_valid(NULL));
}

static void
test_sources(void)
{
    static const struct {
        const char *sources;
        bool has_domain;
    } cases[] = {
        {"domain", true},
        {"domain, guest-agent, multus-status", true},
        {"guest-agent, multus-status", false},
        {"domains", false},
        {"", false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = g_strdup_printf("{'infoSource':'%s'}", cases[i].sources);
        g_autoptr(ChJson) status = parse_json(text);

        g_assert_cmpint(ch_nic_has_source(status, "domain"), ==, cases[i].has_domain);
    }
    g_assert_false(ch_nic_has_source(NULL, "domain"));
}

/* A volume without a disk will have one; one that goes is in the status only. */
static void
test_disks(void)
{
    g_autoptr(ChJson) vmi =
        parse_json("{'spec':{'volumes':[{'name':'v'}],'networks':[{'name':'n'}],"
                   "'domain':{'devices':{'disks':[{'name':'d'}],'interfaces':[{'name':'n'}]}}},"
                   "'status':{'volumeStatus':[{'name':'s'}],'interfaces':[{'name':'n'}]}}");

    g_assert_true(ch_vmi_has_disk(vmi, "v"));
    g_assert_true(ch_vmi_has_disk(vmi, "d"));
    g_assert_true(ch_vmi_has_disk(vmi, "s"));
    g_assert_false(ch_vmi_has_disk(vmi, "n"));
    g_assert_false(ch_vmi_has_disk(NULL, "v"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nics/names", test_names);
    g_test_add_func("/nics/sources", test_sources);
    g_test_add_func("/nics/disks", test_disks);
    return g_test_run();
}
