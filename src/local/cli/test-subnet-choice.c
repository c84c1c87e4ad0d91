/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/subnet-choice.h"

#include <string.h>

#include "lib/base/errors.h"

static void
add_link(ChNetState *machine, int index, const char *name, guint mtu)
{
    ChLink link = {.index = index, .mtu = mtu};

    g_strlcpy(link.name, name, sizeof(link.name));
    g_strlcpy(link.kind, g_str_has_prefix(name, "chandler") ? "bridge" : "", sizeof(link.kind));
    g_array_append_val(machine->links, link);
}

static void
add_address(ChNetState *machine, int index, const char *ip, uint8_t prefix)
{
    ChAddress address = {.index = index, .prefix = prefix};

    g_assert_true(ch_ip_parse(ip, &address.ip));
    g_array_append_val(machine->addresses, address);
}

static void
add_route(ChNetState *machine, int index, const char *network)
{
    ChRoute route = {.index = index};

    g_assert_true(ch_ip_parse_network(network, &route.destination, &route.prefix));
    g_array_append_val(machine->routes, route);
}

/* A machine with one link to the world. */
static ChNetState *
new_machine(void)
{
    ChNetState *machine = ch_net_state_new();

    add_link(machine, 1, "lo", 65536);
    add_link(machine, 2, "ens3", 1450);
    add_address(machine, 1, "127.0.0.1", 8);
    add_address(machine, 2, "192.168.1.7", 24);
    add_route(machine, 2, "0.0.0.0/0");
    add_route(machine, 2, "192.168.1.0/24");
    return machine;
}

static void
assert_choice(const ChNodeNetwork *network, const char *bridge, const char *subnets)
{
    g_autofree char *text = g_strjoinv(",", network->subnets);

    g_assert_cmpstr(network->bridge, ==, bridge);
    g_assert_cmpstr(text, ==, subnets);
}

static void
test_first_choice(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    g_auto(ChNodeNetwork) network = {0};

    g_assert_true(ch_subnet_choose(machine, NULL, false, NULL, &network, NULL));
    assert_choice(&network, "chandler0", "10.213.0.0/20");
    g_assert_cmpuint(network.mtu, ==, 1450);
}

static void
test_what_is_there_is_avoided(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    g_auto(ChNodeNetwork) network = {0};

    add_link(machine, 3, "chandler0", 1500); /* of another one, which has no VM yet */
    add_link(machine, 4, "vpn", 1400);
    add_route(machine, 4, "10.213.24.0/24");
    add_address(machine, 4, "10.213.40.1", 32);
    g_assert_true(ch_subnet_choose(machine, NULL, false, NULL, &network, NULL));
    assert_choice(&network, "chandler3", "10.213.48.0/20");
}

static void
test_nothing_is_free(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    g_autoptr(GError) error = NULL;
    g_auto(ChNodeNetwork) network = {0};

    add_route(machine, 2, "10.0.0.0/8");
    g_assert_false(ch_subnet_choose(machine, NULL, false, NULL, &network, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_nonnull(strstr(error->message, "ens3"));
}

static const struct WantedCase {
    const char *wanted, *expect; /* NULL: refused */
} wanted_cases[] = {
    {"172.30.0.0/24", "172.30.0.0/24"},
    {"172.30.0.0/24, fd12:3456::/64", "172.30.0.0/24,fd12:3456::/64"},
    {"fd12:3456::/64,172.30.0.0/24", "fd12:3456::/64,172.30.0.0/24"},
    {"172.30.0.9/24,fd12:3456::1/64", "172.30.0.0/24,fd12:3456::/64"}, /* host bits are cleared */
    {"fd12:3456::/64", NULL},
    {"0.0.0.0/8", NULL},
    {"127.8.0.0/16", NULL},
    {"169.254.0.0/16", NULL},
    {"224.0.0.0/16", NULL},
    {"172.30.0.0/24,fe80::/64", NULL},
    {"172.30.0.0/24,172.31.0.0/24", NULL},
    {"172.30.0.0/24,fd12::/64,fd13::/64", NULL},
    {"172.30.0.0", NULL},
    {"172.30.0.0/30", NULL},
    {"0.0.0.0/0", NULL},
    {"192.168.0.0/16", NULL}, /* this machine's */
    {"10.0.0.0/8", NULL},     /* the guests' */
    {"", NULL},
    {"$(reboot)", NULL},
};

static void
test_wanted(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(wanted_cases); i++) {
        g_autoptr(ChNetState) machine = new_machine();
        g_autoptr(GError) error = NULL;
        g_auto(ChNodeNetwork) network = {0};
        const bool is_good =
            ch_subnet_choose(machine, NULL, false, wanted_cases[i].wanted, &network, &error);

        g_assert_cmpint(is_good, ==, wanted_cases[i].expect != NULL);
        if (is_good)
            assert_choice(&network, "chandler0", wanted_cases[i].expect);
        else
            g_assert_nonnull(error);
    }
}

static void
test_stored_choice_stays(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    static char *subnets[] = {(char *)"10.213.32.0/20", NULL};
    const ChNodeNetwork stored = {.bridge = (char *)"chandler2", .subnets = subnets};
    g_auto(ChNodeNetwork) network = {0};
    g_auto(ChNodeNetwork) other = {0};

    add_link(machine, 3, "chandler2", 1500);
    add_address(machine, 3, "10.213.32.1", 20);
    add_route(machine, 3, "10.213.32.0/20");
    g_assert_true(ch_subnet_choose(machine, &stored, false, NULL, &network, NULL));
    assert_choice(&network, "chandler2", "10.213.32.0/20");
    /* asked for another one */
    g_assert_true(ch_subnet_choose(machine, &stored, false, "172.30.0.0/24", &other, NULL));
    assert_choice(&other, "chandler0", "172.30.0.0/24");
}

static void
test_stored_choice_that_is_taken_is_made_anew(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    static char *subnets[] = {(char *)"10.213.0.0/20", NULL};
    const ChNodeNetwork stored = {.bridge = (char *)"chandler0", .subnets = subnets};
    g_auto(ChNodeNetwork) network = {0};

    add_route(machine, 2, "10.213.1.0/24"); /* a VPN that came up since */
    g_assert_true(ch_subnet_choose(machine, &stored, false, NULL, &network, NULL));
    assert_choice(&network, "chandler1", "10.213.16.0/20");
}

/* Pods are on it: it stays, though a new one would be made otherwise. */
static void
test_stored_choice_in_use_stays(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    static char *subnets[] = {(char *)"10.213.0.0/20", NULL};
    const ChNodeNetwork stored = {
        .bridge = (char *)"chandler0", .subnets = subnets, .has_mac = true, .mac = {2, 1}};
    g_auto(ChNodeNetwork) network = {0};

    add_link(machine, 3, "chandler0", 1500);
    g_array_index(machine->links, ChLink, 2).has_mac = true;
    memcpy(g_array_index(machine->links, ChLink, 2).mac, stored.mac, CH_MAC_BYTES);
    add_route(machine, 2, "10.213.1.0/24");
    g_assert_true(ch_subnet_choose(machine, &stored, true, NULL, &network, NULL));
    assert_choice(&network, "chandler0", "10.213.0.0/20");
    g_assert_true(network.has_mac);
    g_assert_cmpint(memcmp(network.mac, stored.mac, CH_MAC_BYTES), ==, 0);
}

/* The machine started anew, and another chandler was up first. */
static void
test_bridge_of_another_one_is_not_taken(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    static char *subnets[] = {(char *)"10.213.0.0/20", NULL};
    const ChNodeNetwork stored = {
        .bridge = (char *)"chandler0", .subnets = subnets, .has_mac = true, .mac = {2, 1}};
    g_auto(ChNodeNetwork) network = {0};
    g_auto(ChNodeNetwork) again = {0};
    g_autoptr(GError) error = NULL;

    add_link(machine, 3, "chandler0", 1500);
    g_array_index(machine->links, ChLink, 2).has_mac = true; /* all zero */
    add_address(machine, 3, "10.213.0.1", 20);
    g_assert_null(ch_node_network_find_bridge(&stored, machine));
    g_assert_true(ch_subnet_choose(machine, &stored, false, NULL, &network, NULL));
    assert_choice(&network, "chandler1", "10.213.16.0/20");
    g_assert_false(network.has_mac);
    g_assert_false(ch_subnet_choose(machine, &stored, false, "10.213.0.0/20", &again, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
}

/* One error, not two on top of each other. */
static void
test_stored_choice_asked_for_again_is_refused(void)
{
    g_autoptr(ChNetState) machine = new_machine();
    static char *subnets[] = {(char *)"172.30.0.0/24", NULL};
    const ChNodeNetwork stored = {.bridge = (char *)"chandler0", .subnets = subnets};
    g_auto(ChNodeNetwork) network = {0};
    g_autoptr(GError) error = NULL;

    add_route(machine, 2, "172.30.0.0/16");
    g_assert_false(ch_subnet_choose(machine, &stored, false, "172.30.0.0/24", &network, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_null(network.bridge);
}

static void
test_round_trip(void)
{
    static char *subnets[] = {(char *)"10.213.0.0/20", (char *)"fd00::/64", NULL};
    const ChNodeNetwork network = {.bridge = (char *)"chandler0",
                                   .subnets = subnets,
                                   .mtu = 1450,
                                   .has_mac = true,
                                   .mac = {2, 0, 0, 10, 11, 12}};
    const ChNodeNetwork none = {.reason = (char *)"no bridges here"};
    g_autofree char *text = ch_node_network_print(&network);
    g_autofree char *none_text = ch_node_network_print(&none);
    g_auto(ChNodeNetwork) read = {0};
    g_auto(ChNodeNetwork) none_read = {0};

    g_assert_true(ch_node_network_parse(text, &read, NULL));
    assert_choice(&read, "chandler0", "10.213.0.0/20,fd00::/64");
    g_assert_cmpuint(read.mtu, ==, 1450);
    g_assert_true(read.has_mac);
    g_assert_cmpint(memcmp(read.mac, network.mac, CH_MAC_BYTES), ==, 0);
    g_assert_false(none_read.has_mac);
    g_assert_true(ch_node_network_parse(none_text, &none_read, NULL));
    g_assert_null(none_read.bridge);
    g_assert_cmpstr(none_read.reason, ==, "no bridges here");
}

static void
test_bad_files(void)
{
    static const char *const texts[] = {
        "{\"bridge\":\"chandler0\",\"subnets\":[],\"mtu\":0}",
        "{\"bridge\":\"\",\"subnets\":[\"10.0.0.0/8\"]}",
        "{\"bridge\":\"a-name-that-is-long\",\"subnets\":[\"10.0.0.0/8\"]}",
        "{\"bridge\":\"chandler0\",\"subnets\":[\"10.0.0.0/8\"],\"mtu\":-1}",
        "{\"bridge\":\"chandler0\",\"subnets\":[\"10.0.0.0/8\"],\"mac\":\"02:00\"}",
        "garbage",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(ChNodeNetwork) network = {0};

        g_assert_false(ch_node_network_parse(texts[i], &network, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_INVALID);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/subnet-choice/first-choice", test_first_choice);
    g_test_add_func("/subnet-choice/what-is-there-is-avoided", test_what_is_there_is_avoided);
    g_test_add_func("/subnet-choice/nothing-is-free", test_nothing_is_free);
    g_test_add_func("/subnet-choice/wanted", test_wanted);
    g_test_add_func("/subnet-choice/stored-choice-stays", test_stored_choice_stays);
    g_test_add_func("/subnet-choice/stored-choice-that-is-taken-is-made-anew",
                    test_stored_choice_that_is_taken_is_made_anew);
    g_test_add_func("/subnet-choice/stored-choice-in-use-stays", test_stored_choice_in_use_stays);
    g_test_add_func("/subnet-choice/bridge-of-another-one-is-not-taken",
                    test_bridge_of_another_one_is_not_taken);
    g_test_add_func("/subnet-choice/stored-choice-asked-for-again-is-refused",
                    test_stored_choice_asked_for_again_is_refused);
    g_test_add_func("/subnet-choice/round-trip", test_round_trip);
    g_test_add_func("/subnet-choice/bad-files", test_bad_files);
    return g_test_run();
}
