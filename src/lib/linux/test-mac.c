/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/linux/mac.h"

#include <glib.h>

/* spec:04-23.6#6 */
static void
test_there_and_back(void)
{
    static const char *const texts[] = {"02:00:00:AA:bb:01", "02-00-00-aa-BB-01"};
    uint8_t mac[CH_MAC_BYTES];
    char text[CH_MAC_TEXT_SIZE];

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_assert_true(ch_mac_parse(texts[i], mac));
        g_assert_cmpstr(ch_mac_print(mac, text), ==, "02:00:00:aa:bb:01");
    }
}

/* spec:04-23.6#6 */
static void
test_none(void)
{
    static const char *const texts[] = {
        "",
        "02:00:00:aa:bb",
        "02:00:00:aa:bb:01:02",
        "02:00:00-aa:bb:01",
        "02.00.00.aa.bb.01",
        "02:00:00:aa:bb:0g",
        "+2:00:00:aa:bb:01",
        "2:000:00:aa:bb:01",
    };
    uint8_t mac[CH_MAC_BYTES];

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++)
        g_assert_false(ch_mac_parse(texts[i], mac));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mac/there-and-back", test_there_and_back);
    g_test_add_func("/mac/none", test_none);
    return g_test_run();
}
