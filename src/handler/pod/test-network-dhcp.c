/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-dhcp.h"

#include <string.h>

#include "lib/base/errors.h"

typedef struct {
    ChNetworkIface iface;
    ChNetState *seen;
} Fixture;

static ChIp
ip(const char *text)
{
    ChIp ip;

    g_assert_true(ch_ip_parse(text, &ip));
    return ip;
}

static void
add_route(Fixture *f, const char *destination, uint8_t prefix, const char *gateway)
{
    ChRoute route = {.index = 2, .destination = ip(destination), .prefix = prefix};

    if (gateway != NULL)
        route.gateway = ip(gateway);
    g_array_append_val(f->seen->routes, route);
}

static void
set_up(Fixture *f, gconstpointer data)
{
    const ChLink link = {
        .index = 2, .name = "eth0", .has_mac = true, .mac = {0x0a, 0x58, 0x0a, 0xf4, 0, 5}};
    const ChAddress address = {.index = 2, .ip = ip("10.244.0.5"), .prefix = 24};

    *f = (Fixture){.iface = {.name = "default", .names = {.pod_link = "eth0"}},
                   .seen = ch_net_state_new()};
    g_array_append_val(f->seen->links, link);
    g_array_append_val(f->seen->addresses, address);
}

static void
tear_down(Fixture *f, gconstpointer data)
{
    ch_net_state_free(f->seen);
}

static ChJson *
print(const Fixture *f)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = ch_network_dhcp_print(&f->iface, f->seen, &error);
    ChJson *json;

    g_assert_no_error(error);
    json = ch_json_parse(text, -1, NULL);
    g_assert_nonnull(json);
    return json;
}

/* The example of 04 §4.2 with a wider route and one without gateway; the connected one is left out.
 */
static void
test_routes(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) json = NULL;
    const ChJson *routes;

    add_route(f, "0.0.0.0", 0, "10.244.0.1");
    add_route(f, "10.244.0.0", 24, NULL);
    add_route(f, "192.168.1.0", 24, "10.244.0.254");
    add_route(f, "10.244.0.0", 16, NULL);
    json = print(f);
    routes = ch_json_at(json, "Routes");
    g_assert_cmpstr(ch_json_string_at(json, "Gateway"), ==, "10.244.0.1");
    g_assert_cmpstr(ch_json_string_at(json, "MAC"), ==, "ClgK9AAF");
    g_assert_cmpstr(ch_json_string_at(json, "IP", "IP"), ==, "10.244.0.5");
    g_assert_cmpstr(ch_json_string_at(json, "IP", "Mask"), ==, "////AA==");
    g_assert_false(ch_json_has(ch_json_at(json, "IPv6"), "IP"));
    g_assert_cmpuint(ch_json_length(routes), ==, 3);
    g_assert_true(ch_json_has(ch_json_item(routes, 0), "Dst"));
    g_assert_null(ch_json_at(ch_json_item(routes, 0), "Dst"));
    g_assert_cmpstr(ch_json_string_at(ch_json_item(routes, 1), "Dst", "IP"), ==, "192.168.1.0");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(routes, 1), "Gw"), ==, "10.244.0.254");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(routes, 2), "Dst", "Mask"), ==, "//8AAA==");
    g_assert_cmpstr(ch_json_string_at(ch_json_item(routes, 2), "Gw"), ==, "");
    g_assert_cmpuint(ch_json_length(ch_json_item(routes, 2)), ==, 37);
}

static void
test_only_connected(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) json = NULL;

    add_route(f, "10.244.0.0", 24, NULL);
    json = print(f);
    g_assert_cmpstr(ch_json_string_at(json, "Gateway"), ==, "");
    g_assert_true(ch_json_has(json, "Routes"));
    g_assert_null(ch_json_at(json, "Routes"));
}

static void
test_without_address(Fixture *f, gconstpointer data)
{
    g_autoptr(ChJson) json = NULL;

    g_array_set_size(f->seen->addresses, 0);
    json = print(f);
    g_assert_true(ch_json_bool_at(json, false, "IPAMDisabled"));
    g_assert_null(ch_json_at(json, "MAC"));
    g_assert_cmpuint(ch_json_length(json), ==, 11);
}

/* spec:04-23.6#6 */
static void
test_macs(Fixture *f, gconstpointer data)
{
    static const char *const good[] = {"02:11:22:33:44:ff", "02-11-22-33-44-FF"};
    static const char *const bad[] = {"",
                                      "02:11:22:33:44",
                                      "02:11:22:33:44:gg",
                                      "02:11-22:33:44:55",
                                      "021122334455",
                                      "0211.2233.4455"};

    add_route(f, "0.0.0.0", 0, "10.244.0.1");
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        g_autoptr(ChJson) json = NULL;

        f->iface.mac = good[i];
        json = print(f);
        g_assert_cmpstr(ch_json_string_at(json, "MAC"), ==, "AhEiM0T/");
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        f->iface.mac = bad[i];
        g_assert_null(ch_network_dhcp_print(&f->iface, f->seen, &error));
        g_assert_error(error, CH_ERROR, CH_ERROR_FAILED);
        g_assert_nonnull(strstr(error->message, "invalid MAC address"));
    }
}

static void
test_failures(Fixture *f, gconstpointer data)
{
    g_autoptr(GError) no_route = NULL;
    g_autoptr(GError) no_link = NULL;

    g_assert_null(ch_network_dhcp_print(&f->iface, f->seen, &no_route));
    g_assert_cmpstr(no_route->message, ==, "no gateway address found in routes for eth0");
    g_array_set_size(f->seen->links, 0);
    g_assert_null(ch_network_dhcp_print(&f->iface, f->seen, &no_link));
    g_assert_cmpstr(no_link->message, ==, "pod link (eth0) is missing");
}

#define ADD(path, test) g_test_add(path, Fixture, NULL, set_up, test, tear_down)

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    ADD("/network-dhcp/routes", test_routes);
    ADD("/network-dhcp/only-the-connected-route", test_only_connected);
    ADD("/network-dhcp/no-address", test_without_address);
    ADD("/network-dhcp/macs", test_macs);
    ADD("/network-dhcp/failures", test_failures);
    return g_test_run();
}
