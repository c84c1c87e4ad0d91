/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/nic-stray.h"

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

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nic-stray/command", test_command);
    return g_test_run();
}
