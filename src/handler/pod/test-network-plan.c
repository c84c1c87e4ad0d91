/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-plan.h"

#include <errno.h>
#include <string.h>

#include "lib/base/errors.h"

/*
 * The plan against a kernel made of arrays: links get numbers, steps change them, and what is known
 * of the real one happens too (a link that is set down loses its IPv6 addresses, a bridge takes
 * over the lowest MAC of its ports, a link that is up gets a link-local address). The plan is cut
 * off after every number of steps and made anew.
 */

static const uint8_t pod_mac[CH_MAC_BYTES] = {0x0a, 0x58, 0x0a, 0xf4, 0, 5};

typedef struct {
    ChNetState *state;
    int last_index;
} Kernel;

static ChIp
ip(const char *text)
{
    ChIp ip;

    g_assert_true(ch_ip_parse(text, &ip));
    return ip;
}

static ChLink *
link_at(const Kernel *kernel, guint i)
{
    return &g_array_index(kernel->state->links, ChLink, i);
}

static ChLink *
find(const Kernel *kernel, int index)
{
    for (guint i = 0; i < kernel->state->links->len; i++)
        if (link_at(kernel, i)->index == index)
            return link_at(kernel, i);
    g_assert_not_reached();
}

static int
add_link(Kernel *kernel, const char *name, const char *kind, uint8_t mac_end)
{
    ChLink link = {.index = ++kernel->last_index, .mtu = 1500, .has_mac = true};

    g_strlcpy(link.name, name, sizeof(link.name));
    g_strlcpy(link.kind, kind, sizeof(link.kind));
    memcpy(link.mac, (const uint8_t[]){0x1a, 0, 0, 0, 0, mac_end}, CH_MAC_BYTES);
    g_array_append_val(kernel->state->links, link);
    return link.index;
}

static void
add_address(Kernel *kernel, int index, const char *text, uint8_t prefix)
{
    const ChAddress address = {.index = index, .ip = ip(text), .prefix = prefix};

    g_array_append_val(kernel->state->addresses, address);
}

/* As CNI leaves it. */
static void
kernel_init(Kernel *kernel, bool has_v4, bool has_v6)
{
    int index;

    *kernel = (Kernel){.state = ch_net_state_new()};
    (void)add_link(kernel, "lo", "", 1);
    index = add_link(kernel, "eth0", "veth", 2);
    memcpy(find(kernel, index)->mac, pod_mac, CH_MAC_BYTES);
    find(kernel, index)->mtu = 1450;
    find(kernel, index)->flags = IFF_UP;
    if (has_v4)
        add_address(kernel, index, "10.244.0.5", 24);
    if (has_v6)
        add_address(kernel, index, "fd10:244::5", 64);
    add_address(kernel, index, "fe80::858:aff:fef4:5", 64);
}

static void
kernel_clear(Kernel *kernel)
{
    ch_net_state_free(kernel->state);
}

static void
drop_addresses(Kernel *kernel, int index, uint8_t family)
{
    GArray *addresses = kernel->state->addresses;

    for (guint i = addresses->len; i > 0; i--) {
        const ChAddress *address = &g_array_index(addresses, ChAddress, i - 1);

        if (address->index == index && address->ip.family == family)
            g_array_remove_index(addresses, i - 1);
    }
}

static void
set_flags(Kernel *kernel, ChLink *link, bool is_up)
{
    if (!is_up && link->flags & IFF_UP)
        drop_addresses(kernel, link->index, AF_INET6);
    if (is_up && !(link->flags & IFF_UP) && !g_str_equal(link->kind, "tap"))
        add_address(kernel, link->index, "fe80::1", 64);
    link->flags = is_up ? IFF_UP : 0;
}

static void
change_link(Kernel *kernel, const ChNetworkStep *step)
{
    ChLink *link;

    if (step->index == 0) {
        g_assert_null(ch_net_state_find_link(kernel->state, step->name));
        (void)add_link(kernel, step->name, step->link_kind, (uint8_t)(kernel->last_index + 16));
        link = find(kernel, kernel->last_index);
    } else {
        link = find(kernel, step->index);
    }
    if (step->index != 0 && step->name[0] != '\0') {
        g_assert_null(ch_net_state_find_link(kernel->state, step->name));
        g_assert_false(link->flags & IFF_UP); /* old kernels refuse */
        g_strlcpy(link->name, step->name, sizeof(link->name));
    }
    if (step->has_mac)
        memcpy(link->mac, step->mac, CH_MAC_BYTES);
    if (step->mtu != 0)
        link->mtu = step->mtu;
    if (step->master != 0) {
        link->master = step->master;
        link->is_learning = true;
        g_assert_cmpstr(find(kernel, step->master)->kind, ==, "bridge");
    }
    if (step->sets_route_localnet)
        link->route_localnet = true;
    if (step->sets_up || step->sets_down)
        set_flags(kernel, link, step->sets_up);
}

static void
delete_address(Kernel *kernel, const ChAddress *deleted)
{
    GArray *addresses = kernel->state->addresses;

    for (guint i = 0; i < addresses->len; i++) {
        const ChAddress *address = &g_array_index(addresses, ChAddress, i);

        if (address->index == deleted->index && ch_ip_equal(&address->ip, &deleted->ip)) {
            g_array_remove_index(addresses, i);
            return;
        }
    }
}

static void
delete_link(Kernel *kernel, int index)
{
    drop_addresses(kernel, index, AF_INET);
    drop_addresses(kernel, index, AF_INET6);
    for (guint i = kernel->state->links->len; i > 0; i--) {
        ChLink *link = link_at(kernel, i - 1);

        if (link->master == index)
            link->master = 0;
        if (link->index == index)
            g_array_remove_index(kernel->state->links, i - 1);
    }
}

static void
take_step(Kernel *kernel, const ChNetworkStep *step)
{
    switch (step->kind) {
    case CH_NETWORK_STEP_LINK:
        change_link(kernel, step);
        break;
    case CH_NETWORK_STEP_LEARNING_OFF:
        g_assert_cmpint(find(kernel, step->index)->master, !=, 0);
        find(kernel, step->index)->is_learning = false;
        break;
    case CH_NETWORK_STEP_ADD_ADDRESS:
        g_array_append_val(kernel->state->addresses, step->address);
        break;
    case CH_NETWORK_STEP_DELETE_ADDRESS:
        delete_address(kernel, &step->address);
        break;
    case CH_NETWORK_STEP_MAKE_TAP:
        find(kernel, add_link(kernel, step->link, "tap", 15))->max_mtu = 65521;
        break;
    case CH_NETWORK_STEP_DELETE_LINK:
        delete_link(kernel, step->index);
        break;
    case CH_NETWORK_STEP_INVALID:
    case CH_NETWORK_STEP_N:
        g_assert_not_reached();
    }
}

/* The kernel as text: links by name with all that is wanted of them, and their addresses. */
static int
compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
append_addresses(GString *line, const Kernel *kernel, int index)
{
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < kernel->state->addresses->len; i++) {
        const ChAddress *address = &g_array_index(kernel->state->addresses, ChAddress, i);
        char text[CH_IP_TEXT_SIZE];

        if (address->index == index)
            g_ptr_array_add(
                texts, g_strdup_printf(" %s/%u", ch_ip_print(&address->ip, text), address->prefix));
    }
    g_ptr_array_sort(texts, compare_lines);
    for (guint i = 0; i < texts->len; i++)
        g_string_append(line, texts->pdata[i]);
}

static char *
describe(const Kernel *kernel)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < kernel->state->links->len; i++) {
        const ChLink *link = link_at(kernel, i);
        GString *line = g_string_new(NULL);

        g_string_append_printf(line,
                               "%s %s%s%s mtu %u master %s%s%s",
                               link->name,
                               link->kind,
                               link->flags & IFF_UP ? " up" : "",
                               memcmp(link->mac, pod_mac, CH_MAC_BYTES) == 0 ? " pod-mac" : "",
                               link->mtu,
                               link->master != 0 ? find(kernel, link->master)->name : "-",
                               link->is_learning ? " learning" : "",
                               link->route_localnet ? " localnet" : "");
        append_addresses(line, kernel, link->index);
        g_ptr_array_add(lines, g_string_free(line, FALSE));
    }
    g_ptr_array_sort(lines, compare_lines);
    g_ptr_array_add(lines, NULL);
    return g_strjoinv("\n", (char **)lines->pdata);
}

/* --- interfaces */

static ChNetworkIface
make_iface(ChNetworkBinding binding)
{
    return (ChNetworkIface){.name = "default",
                            .binding = binding,
                            .is_primary = true,
                            .cidr_v4 = "10.0.2.0/24",
                            .cidr_v6 = "fd10:0:2::/120",
                            .names = {"eth0", "k6t-eth0", "eth0-nic", "tap0", "eth0-new"}};
}

/* Returns the number of steps until the plan is empty; cut off after @limit of them. */
static guint
run(Kernel *kernel, const ChNetworkIface *iface, guint limit)
{
    guint n = 0;

    for (int round = 0; round < 10; round++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) steps = ch_network_plan(iface, kernel->state, "dummy", &error);

        g_assert_no_error(error);
        if (steps->len == 0)
            return n;
        for (guint i = 0; i < steps->len; i++, n++) {
            if (n == limit)
                return n;
            take_step(kernel, &g_array_index(steps, ChNetworkStep, i));
        }
    }
    g_assert_not_reached();
}

/* The kernel refuses step @lost, counted over all plans, and goes on with those that were sent
 * together with it. Returns whether there was such a step. */
static bool
run_and_lose(Kernel *kernel, const ChNetworkIface *iface, guint lost)
{
    g_autoptr(GArray) steps = NULL;
    guint n = 0;

    for (;;) {
        g_clear_pointer(&steps, g_array_unref);
        steps = ch_network_plan(iface, kernel->state, "dummy", NULL);
        g_assert_nonnull(steps);
        if (steps->len == 0)
            return false;
        if (n + steps->len > lost)
            break;
        for (guint i = 0; i < steps->len; i++, n++)
            take_step(kernel, &g_array_index(steps, ChNetworkStep, i));
    }
    for (guint i = 0; i < steps->len; i++, n++) {
        const ChNetworkStep *step = &g_array_index(steps, ChNetworkStep, i);

        if (n > lost && (step->waits || step->kind == CH_NETWORK_STEP_MAKE_TAP))
            break;
        if (n != lost)
            take_step(kernel, step);
    }
    return true;
}

#define LO "lo  mtu 1500 master -"

static const struct EndState {
    const char *path;
    ChNetworkBinding binding;
    bool has_v4, has_v6;
    const char *end;
} end_states[] = {
    {"/network-plan/masquerade-v4",
     CH_NETWORK_MASQUERADE,
     true,
     false,
     "eth0 veth up pod-mac mtu 1450 master - 10.244.0.5/24 fe80::858:aff:fef4:5/64\n"
     "k6t-eth0 bridge up mtu 1450 master - localnet 10.0.2.1/24 fe80::1/64\n" LO "\n"
     "tap0 tap up mtu 1450 master k6t-eth0 learning"},
    /* spec:04-23.1#6 */
    {"/network-plan/masquerade-both",
     CH_NETWORK_MASQUERADE,
     true,
     true,
     "eth0 veth up pod-mac mtu 1450 master - 10.244.0.5/24 fd10:244::5/64 "
     "fe80::858:aff:fef4:5/64\n"
     "k6t-eth0 bridge up mtu 1450 master - localnet 10.0.2.1/24 fd10:0:2::1/120 fe80::1/64\n" LO
     "\n"
     "tap0 tap up mtu 1450 master k6t-eth0 learning"},
    {"/network-plan/masquerade-v6",
     CH_NETWORK_MASQUERADE,
     false,
     true,
     "eth0 veth up pod-mac mtu 1450 master - fd10:244::5/64 fe80::858:aff:fef4:5/64\n"
     "k6t-eth0 bridge up mtu 1450 master - fd10:0:2::1/120 fe80::1/64\n" LO "\n"
     "tap0 tap up mtu 1450 master k6t-eth0 learning"},
    /* spec:04-23.1#7 */
    {"/network-plan/bridge-both",
     CH_NETWORK_BRIDGE,
     true,
     true,
     "eth0 dummy pod-mac mtu 1450 master - 10.244.0.5/24 fd10:244::5/64 "
     "fe80::858:aff:fef4:5/64\n"
     "eth0-nic veth up mtu 1450 master k6t-eth0 fe80::1/64\n"
     "k6t-eth0 bridge up mtu 1500 master - 169.254.75.10/32 fe80::1/64\n" LO "\n"
     "tap0 tap up mtu 1450 master k6t-eth0 learning"},
    /* spec:04-23.1#24: as a bridge, whose own address it does not get */
    {"/network-plan/managed-tap-both",
     CH_NETWORK_MANAGED_TAP,
     true,
     true,
     "eth0 dummy pod-mac mtu 1450 master - 10.244.0.5/24 fd10:244::5/64 "
     "fe80::858:aff:fef4:5/64\n"
     "eth0-nic veth up mtu 1450 master k6t-eth0 fe80::1/64\n"
     "k6t-eth0 bridge up mtu 1500 master - fe80::1/64\n" LO "\n"
     "tap0 tap up mtu 1450 master k6t-eth0 learning"},
    /* spec:04-23.1#9 */
    {"/network-plan/bridge-without-addresses",
     CH_NETWORK_BRIDGE,
     false,
     false,
     "eth0 dummy pod-mac mtu 1450 master - fe80::858:aff:fef4:5/64\n"
     "eth0-nic veth up mtu 1450 master k6t-eth0 fe80::1/64\n"
     "k6t-eth0 bridge up mtu 1500 master - fe80::1/64\n" LO "\n"
     "tap0 tap up mtu 1450 master k6t-eth0 learning"},
};

/* spec:04-23.5#1 spec:04-23.5#3 spec:04-23.5#4 */
static void
test_end_state(gconstpointer data)
{
    const struct EndState *c = data;
    const ChNetworkIface iface = make_iface(c->binding);
    g_autofree char *got = NULL;
    Kernel kernel;

    kernel_init(&kernel, c->has_v4, c->has_v6);
    g_assert_cmpuint(run(&kernel, &iface, G_MAXUINT), >, 4);
    got = describe(&kernel);
    g_assert_cmpstr(got, ==, c->end);
    g_assert_cmpuint(run(&kernel, &iface, G_MAXUINT), ==, 0);
    kernel_clear(&kernel);
}

/* Each step fails once while what was sent with it is done. */
static void
test_lost_step(gconstpointer data)
{
    const struct EndState *c = data;
    const ChNetworkIface iface = make_iface(c->binding);
    bool was_there = true;

    for (guint lost = 0; was_there; lost++) {
        g_autofree char *got = NULL;
        Kernel kernel;

        kernel_init(&kernel, c->has_v4, c->has_v6);
        was_there = run_and_lose(&kernel, &iface, lost);
        (void)run(&kernel, &iface, G_MAXUINT);
        got = describe(&kernel);
        g_assert_cmpstr(got, ==, c->end);
        kernel_clear(&kernel);
    }
}

/* spec:04-23.5#7 Cut off after each number of steps, once and twice. */
static void
test_cut_off(gconstpointer data)
{
    const struct EndState *c = data;
    const ChNetworkIface iface = make_iface(c->binding);

    for (guint first = 0; first < 40; first++) {
        for (guint second = 0; second < 40; second += 3) {
            g_autofree char *got = NULL;
            Kernel kernel;

            kernel_init(&kernel, c->has_v4, c->has_v6);
            (void)run(&kernel, &iface, first);
            (void)run(&kernel, &iface, second);
            (void)run(&kernel, &iface, G_MAXUINT);
            got = describe(&kernel);
            g_assert_cmpstr(got, ==, c->end);
            kernel_clear(&kernel);
        }
    }
}

/* --- details */

static char *
first_plan(const ChNetworkIface *iface, const Kernel *kernel)
{
    g_autoptr(GArray) steps = ch_network_plan(iface, kernel->state, "dummy", NULL);
    GString *text = g_string_new(NULL);

    g_assert_nonnull(steps);
    for (guint i = 0; i < steps->len; i++) {
        g_autofree char *line = ch_network_step_text(&g_array_index(steps, ChNetworkStep, i));

        g_string_append_printf(text, "%s%s", i > 0 ? "; " : "", line);
    }
    return g_string_free(text, FALSE);
}

static void
test_first_steps(void)
{
    ChNetworkIface iface = make_iface(CH_NETWORK_MASQUERADE);
    g_autofree char *masquerade = NULL;
    g_autofree char *bridge = NULL;
    Kernel kernel;

    kernel_init(&kernel, true, false);
    iface.is_multi_queue = true;
    masquerade = first_plan(&iface, &kernel);
    g_assert_cmpstr(masquerade,
                    ==,
                    "k6t-eth0: new bridge, mac 02:00:00:00:00:00, mtu 1450; tap0: new tap, queues");
    iface.binding = CH_NETWORK_BRIDGE;
    bridge = first_plan(&iface, &kernel);
    g_assert_cmpstr(bridge,
                    ==,
                    "k6t-eth0: new bridge; eth0-new: new dummy, mac 0a:58:0a:f4:00:05, mtu 1450; "
                    "tap0: new tap, queues");
    kernel_clear(&kernel);
}

/* --- removal */

/* Returns the number of steps until the plan is empty. */
static guint
remove_all(Kernel *kernel, const ChNetworkIface *iface)
{
    guint n = 0;

    for (int round = 0; round < 10; round++) {
        g_autoptr(GArray) steps = ch_network_plan_removal(iface, kernel->state);

        if (steps->len == 0)
            return n;
        for (guint i = 0; i < steps->len; i++, n++)
            take_step(kernel, &g_array_index(steps, ChNetworkStep, i));
    }
    g_assert_not_reached();
}

/* spec:04-23.1#13 spec:04-23.1#21 After each number of steps: what was made goes, what CNI made
 * stays, under either name. */
static void
test_removal(void)
{
    const ChNetworkIface iface = make_iface(CH_NETWORK_BRIDGE);

    for (guint n = 0; n < 40; n++) {
        const ChLink *pod_link;
        Kernel kernel;

        kernel_init(&kernel, true, true);
        (void)run(&kernel, &iface, n);
        (void)remove_all(&kernel, &iface);
        g_assert_cmpuint(kernel.state->links->len, ==, 2);
        pod_link = link_at(&kernel, 1);
        g_assert_cmpstr(pod_link->kind, ==, "veth");
        g_assert_cmpint(pod_link->master, ==, 0);
        g_assert_true(g_str_equal(pod_link->name, "eth0") ||
                      g_str_equal(pod_link->name, "eth0-nic"));
        kernel_clear(&kernel);
    }
}

/* spec:04-23.9#9 spec:04-23.5#2 A foreign link is no trace of ours, whatever its name; other
 * bindings keep theirs until the pod ends. */
static void
test_removal_of_nothing(void)
{
    ChNetworkIface iface = make_iface(CH_NETWORK_BRIDGE);
    static const ChNetworkBinding others[] = {
        CH_NETWORK_MASQUERADE, CH_NETWORK_MANAGED_TAP, CH_NETWORK_PLUGIN, CH_NETWORK_PASST};
    Kernel kernel;

    kernel_init(&kernel, true, true);
    (void)add_link(&kernel, "tap0", "veth", 9);
    g_assert_cmpuint(remove_all(&kernel, &iface), ==, 0);
    kernel_clear(&kernel);
    kernel_init(&kernel, true, true);
    (void)run(&kernel, &iface, G_MAXUINT);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        iface.binding = others[i];
        g_assert_cmpuint(remove_all(&kernel, &iface), ==, 0);
    }
    kernel_clear(&kernel);
}

/* spec:04-23.1#10 Nor does a name that no link can have matter. */
static void
test_no_links(void)
{
    static const ChNetworkBinding bindings[] = {CH_NETWORK_PASST, CH_NETWORK_PLUGIN};
    Kernel kernel;

    kernel_init(&kernel, true, true);
    for (gsize i = 0; i < G_N_ELEMENTS(bindings); i++) {
        ChNetworkIface iface = make_iface(bindings[i]);

        g_strlcpy(iface.names.bridge, "k6t-cust-iface-1", sizeof(iface.names.bridge));
        g_assert_cmpuint(run(&kernel, &iface, G_MAXUINT), ==, 0);
    }
    kernel_clear(&kernel);
}

static void
test_large_mtu(void)
{
    const ChNetworkIface iface = make_iface(CH_NETWORK_MASQUERADE);
    Kernel kernel;

    kernel_init(&kernel, true, false);
    link_at(&kernel, 1)->mtu = 65535;
    (void)run(&kernel, &iface, G_MAXUINT);
    g_assert_cmpuint(ch_net_state_find_link(kernel.state, "tap0")->mtu, ==, 65521);
    g_assert_cmpuint(ch_net_state_find_link(kernel.state, "k6t-eth0")->mtu, ==, 65535);
    kernel_clear(&kernel);
}

static void
assert_fails(const ChNetworkIface *iface, const Kernel *kernel, const char *text)
{
    g_autoptr(GError) error = NULL;

    g_assert_null(ch_network_plan(iface, kernel->state, "dummy", &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_FAILED);
    g_assert_nonnull(strstr(error->message, text));
}

/* spec:04-23.9#2 spec:04-23.6#5 spec:04-23.1#5 spec:04-23.1#2 */
static void
test_failures(void)
{
    ChNetworkIface iface = make_iface(CH_NETWORK_MASQUERADE);
    Kernel kernel;

    kernel_init(&kernel, true, true);
    iface.cidr_v4 = "10.0.2.0/31";
    assert_fails(&iface, &kernel, "VM CIDR subnet is too small");
    iface.cidr_v4 = "10.0.2.0";
    assert_fails(
        &iface, &kernel, "failed to parse VM CIDR: 10.0.2.0, invalid CIDR address: 10.0.2.0");
    iface.cidr_v4 = "fd10::/120"; /* of the other family */
    assert_fails(&iface, &kernel, "failed to parse VM CIDR: fd10::/120, it is not of IPv4");
    iface = make_iface(CH_NETWORK_MASQUERADE);
    iface.cidr_v6 = "fd10:0:2::/127";
    assert_fails(&iface, &kernel, "VM CIDR subnet is too small");
    iface = make_iface(CH_NETWORK_MASQUERADE);
    g_strlcpy(iface.names.bridge, "k6t-cust-iface-1", sizeof(iface.names.bridge));
    assert_fails(&iface, &kernel, "numerical result out of range");
    iface = make_iface(CH_NETWORK_MASQUERADE);
    g_strlcpy(iface.names.pod_link, "net0", sizeof(iface.names.pod_link));
    assert_fails(&iface, &kernel, "pod link (net0) is missing");
    iface = make_iface(CH_NETWORK_MANAGED_TAP);
    g_strlcpy(iface.names.pod_link, "net0", sizeof(iface.names.pod_link));
    assert_fails(&iface, &kernel, "pod link (net0) is missing"); /* spec:04-23.1#23 */
    iface = make_iface(CH_NETWORK_BRIDGE);
    (void)add_link(&kernel, "tap0", "veth", 9);
    assert_fails(&iface, &kernel, "type collision on link tap0: actual veth, requested tap");
    kernel_clear(&kernel);
}

/* The hands of an agent that was killed may still have it open, and take it along when they end. */
static void
test_transient_tap(void)
{
    const ChNetworkIface iface = make_iface(CH_NETWORK_MASQUERADE);
    g_autoptr(GError) error = NULL;
    Kernel kernel;

    kernel_init(&kernel, true, true);
    find(&kernel, add_link(&kernel, "tap0", "tap", 9))->is_transient = true;
    g_assert_null(ch_network_plan(&iface, kernel.state, "dummy", &error));
    g_assert_error(error, CH_ERRNO, EAGAIN); /* which is tried again */
    kernel_clear(&kernel);
}

/* What a Go agent leaves that was killed after the renaming: the addresses are lost. */
static void
test_lost_addresses(void)
{
    const ChNetworkIface iface = make_iface(CH_NETWORK_BRIDGE);
    Kernel kernel;

    kernel_init(&kernel, true, false);
    g_strlcpy(link_at(&kernel, 1)->name, "eth0-nic", IFNAMSIZ);
    assert_fails(&iface, &kernel, "cannot be restarted");
    kernel_clear(&kernel);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(end_states); i++) {
        g_autofree char *path = g_strconcat(end_states[i].path, "-cut-off-anywhere", NULL);
        g_autofree char *lost = g_strconcat(end_states[i].path, "-any-step-lost", NULL);

        g_test_add_data_func(end_states[i].path, &end_states[i], test_end_state);
        g_test_add_data_func(path, &end_states[i], test_cut_off);
        g_test_add_data_func(lost, &end_states[i], test_lost_step);
    }
    g_test_add_func("/network-plan/first-steps", test_first_steps);
    g_test_add_func("/network-plan/removes-what-was-made", test_removal);
    g_test_add_func("/network-plan/removes-nothing-else", test_removal_of_nothing);
    g_test_add_func("/network-plan/bindings-without-links", test_no_links);
    g_test_add_func("/network-plan/caps-the-taps-mtu", test_large_mtu);
    g_test_add_func("/network-plan/says-what-cannot-be", test_failures);
    g_test_add_func("/network-plan/transient-tap", test_transient_tap);
    g_test_add_func("/network-plan/says-when-addresses-are-lost", test_lost_addresses);
    return g_test_run();
}
