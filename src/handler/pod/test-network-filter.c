/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-filter.h"

/* %s: interfaces, networks, interfaces of the status */
#define VMI                                                                                        \
    "{\"spec\":{\"domain\":{\"devices\":{\"interfaces\":[%s]}},\"networks\":[%s]},"                \
    "\"status\":{\"interfaces\":[%s]}}"
#define NET(name)           "{\"name\":\"" name "\",\"multus\":{}}"
#define IFACE(name)         "{\"name\":\"" name "\",\"bridge\":{}}"
#define ABSENT(name)        "{\"name\":\"" name "\",\"bridge\":{},\"state\":\"absent\"}"
#define STATUS(name, token) "{\"name\":\"" name "\",\"infoSource\":\"" token "\"}"

/* The names in order, "!" with those that have no interface. */
static void
check(ChNetworkRun run,
      const char *ifaces,
      const char *networks,
      const char *status,
      const char *expected)
{
    g_autofree char *text = g_strdup_printf(VMI, ifaces, networks, status);
    g_autoptr(ChJson) vmi = ch_json_parse(text, -1, NULL);
    g_autoptr(GArray) choices = ch_network_filter(vmi, run);
    g_autoptr(GString) found = g_string_new(NULL);

    for (guint i = 0; i < choices->len; i++) {
        const ChNetworkChoice *choice = &g_array_index(choices, ChNetworkChoice, i);

        g_string_append_printf(found,
                               "%s%s%s",
                               i > 0 ? " " : "",
                               ch_json_string_at(choice->network, "name"),
                               choice->iface == NULL ? "!" : "");
    }
    g_assert_cmpstr(found->str, ==, expected);
}

/* spec:04-23.4#1 spec:04-23.9#10 The order is that of the interfaces; one without a network is
 * passed over. */
static void
test_start(void)
{
    check(CH_NETWORK_RUN_START,
          ABSENT("gone") "," IFACE("b") "," IFACE("none") "," IFACE("a"),
          NET("a") "," NET("gone") "," NET("b") "," NET("spare"),
          "",
          "b a");
}

/* spec:04-23.4#2 */
static void
test_update_nothing(void)
{
    check(CH_NETWORK_RUN_UPDATE, "", "", "", "");
    check(CH_NETWORK_RUN_UPDATE, IFACE("a"), NET("a"), "", "");
    check(CH_NETWORK_RUN_UPDATE,
          IFACE("a"),
          NET("a"),
          STATUS("a", "domain, guest-agent, multus-status"),
          "");
    check(CH_NETWORK_RUN_UPDATE, ABSENT("a"), NET("a"), "", "");
}

/* spec:04-23.4#3 A token counts whole; of several entries with a name the last. */
static void
test_update(void)
{
    check(CH_NETWORK_RUN_UPDATE, IFACE("a"), NET("a"), STATUS("a", "multus-status"), "a");
    check(CH_NETWORK_RUN_UPDATE, IFACE("a"), NET("a"), STATUS("a", "multus-status,domain"), "");
    check(CH_NETWORK_RUN_UPDATE, IFACE("a"), NET("a"), STATUS("a", "multus-status-x"), "");
    check(CH_NETWORK_RUN_UPDATE,
          ABSENT("a") "," ABSENT("b"),
          NET("a") "," NET("b"),
          STATUS("a", "domain") "," STATUS("b", "multus-status"),
          "b");
    check(CH_NETWORK_RUN_UPDATE,
          ABSENT("old") "," IFACE("new"),
          NET("old") "," NET("new"),
          STATUS("old", "multus-status") "," STATUS("new", "multus-status"),
          "new old");
    check(CH_NETWORK_RUN_UPDATE,
          IFACE("a"),
          NET("a"),
          STATUS("a", "domain, multus-status") "," STATUS("a", "multus-status"),
          "a");
}

/* spec:04-23.4#4 In the order of the networks. */
static void
test_target(void)
{
    check(CH_NETWORK_RUN_TARGET,
          IFACE("b") "," ABSENT("a"),
          NET("a") "," NET("b") "," NET("c"),
          "",
          "a b c!");
}

static void
test_what_the_guest_keeps(void)
{
    static const struct {
        const char *iface, *network, *status;
        bool is_awaited;
    } cases[] = {
        {ABSENT("a"), NET("a"), STATUS("a", "domain, multus-status"), true},
        {IFACE("a"), NET("a"), STATUS("a", "domain, multus-status"), false},
        {ABSENT("a"), NET("a"), STATUS("a", "multus-status"), false},
        {ABSENT("a"), NET("a"), "", false},
        {ABSENT("a"), NET("b"), STATUS("a", "domain"), false},
        {ABSENT("a"), "{\"name\":\"a\",\"pod\":{}}", STATUS("a", "domain"), false},
        {ABSENT("a"),
         "{\"name\":\"a\",\"multus\":{\"default\":true}}",
         STATUS("a", "domain"),
         false},
        {"{\"name\":\"a\",\"sriov\":{},\"state\":\"absent\"}",
         NET("a"),
         STATUS("a", "domain"),
         false},
    };

    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf(VMI, cases[i].iface, cases[i].network, cases[i].status);
        g_autoptr(ChJson) vmi = ch_json_parse(text, -1, NULL);

        g_assert_cmpint(ch_network_awaits_guest(vmi), ==, cases[i].is_awaited);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network-filter/a-start-takes-all-that-stay", test_start);
    g_test_add_func("/network-filter/an-update-of-nothing", test_update_nothing);
    g_test_add_func("/network-filter/an-update-plugs-then-unplugs", test_update);
    g_test_add_func("/network-filter/a-target-takes-all-networks", test_target);
    g_test_add_func("/network-filter/what-the-guest-keeps", test_what_the_guest_keeps);
    return g_test_run();
}
