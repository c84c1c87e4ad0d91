/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/nic-stray.h"

#include "lib/json/test-text.h"

/* A name is data, whatever is in it. */
static void
test_command(void)
{
    g_autofree char *plain = ch_nic_stray_command("netdev_del", "id", "hostua-red");
    g_autofree char *odd = ch_nic_stray_command("netdev_del", "id", "a\",\"b");

    g_assert_cmpstr(
        plain, ==, "{\"execute\":\"netdev_del\",\"arguments\":{\"id\":\"hostua-red\"}}");
    g_assert_cmpstr(odd, ==, "{\"execute\":\"netdev_del\",\"arguments\":{\"id\":\"a\\\",\\\"b\"}}");
}

static void
test_is_nic(void)
{
    g_autoptr(ChJson) nic = parse_json("{'return':[{'name':'type','type':'string'},"
                                       "{'name':'netdev','type':'str'}]}");
    g_autoptr(ChJson) disk = parse_json("{'return':[{'name':'type','type':'string'},"
                                        "{'name':'drive','type':'str'}]}");

    g_assert_true(ch_nic_stray_is_nic(nic));
    g_assert_false(ch_nic_stray_is_nic(disk));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nic-stray/command", test_command);
    g_test_add_func("/nic-stray/is-nic", test_is_nic);
    return g_test_run();
}
