/* SPDX-License-Identifier: Apache-2.0 */

#include "handler/pod/network-step.h"

#include <errno.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/linux/netlink.h"

static const struct Case {
    const char *path;
    ChNetworkStep step;
    const char *text; /* 04 §9, when the kernel says EEXIST */
} cases[] = {
    {"rename",
     {.kind = CH_NETWORK_STEP_LINK, .link = "eth0", .name = "eth0-nic"},
     "failed to setup link [eth0-nic]: LinkSetName: file exists"},
    {"down",
     {.kind = CH_NETWORK_STEP_LINK, .link = "eth0-nic", .sets_down = true},
     "failed to setup link [eth0-nic]: LinkSetDown: file exists"},
    {"up",
     {.kind = CH_NETWORK_STEP_LINK, .link = "k6t-eth0", .sets_up = true},
     "failed to setup link [k6t-eth0]: LinkSetUp: file exists"},
    {"mac",
     {.kind = CH_NETWORK_STEP_LINK, .link = "k6t-eth0", .has_mac = true},
     "failed to setup link [k6t-eth0]: LinkSetHardwareAddr: file exists"},
    {"mtu",
     {.kind = CH_NETWORK_STEP_LINK, .link = "tap0", .mtu = 1450},
     "failed to setup link [tap0]: LinkSetMTU: file exists"},
    {"master",
     {.kind = CH_NETWORK_STEP_LINK, .link = "tap0", .master = 7},
     "failed to setup link [tap0]: LinkSetMaster: file exists"},
    {"joined",
     {.kind = CH_NETWORK_STEP_LINK,
      .link = "k6t-eth0",
      .has_mac = true,
      .mtu = 1450,
      .sets_route_localnet = true,
      .sets_up = true},
     "failed to setup link [k6t-eth0]: LinkSetHardwareAddr: LinkSetMTU: route_localnet: LinkSetUp: "
     "file exists"},
    {"learning",
     {.kind = CH_NETWORK_STEP_LEARNING_OFF, .link = "eth0-nic"},
     "failed to setup link [eth0-nic]: LinkSetLearningOff: file exists"},
    {"new",
     {.kind = CH_NETWORK_STEP_LINK, .link = "k6t-eth0", .name = "k6t-eth0", .link_kind = "bridge"},
     "LinkAdd: file exists: bridge k6t-eth0"},
    {"delete",
     {.kind = CH_NETWORK_STEP_DELETE_LINK, .link = "k6t-eth0"},
     "failed to delete link [k6t-eth0]: LinkDel: file exists"},
    {"add-address",
     {.kind = CH_NETWORK_STEP_ADD_ADDRESS,
      .link = "k6t-eth0",
      .address = {.ip = {AF_INET, {10, 0, 2, 1}}, .prefix = 24}},
     "failed to setup link [k6t-eth0]: failed to add IP address [10.0.2.1/24] on link k6t-eth0: "
     "file exists"},
    {"delete-address",
     {.kind = CH_NETWORK_STEP_DELETE_ADDRESS,
      .link = "eth0-nic",
      .address = {.ip = {AF_INET, {10, 244, 0, 5}}, .prefix = 24}},
     "failed to setup link [eth0-nic]: failed to delete IP address 10.244.0.5/24 from link "
     "eth0-nic: file exists"},
};

static void
assert_text(const ChNetworkStep *step, GError *reason, const char *text)
{
    g_autoptr(GError) error = NULL;

    g_assert_false(ch_network_step_fail(step, reason, &error));
    g_assert_error(error, CH_ERRNO, EEXIST);
    g_assert_cmpstr(error->message, ==, text);
}

static void
test_refused(gconstpointer data)
{
    const struct Case *test = data;
    GError *reason = NULL;

    (void)ch_fail_errno(&reason, EEXIST, CH_NETLINK_REFUSAL);
    assert_text(&test->step, reason, test->text);
}

/* What the hands say of a tap is the whole text already. */
static void
test_tap(void)
{
    static const char text[] = "failed to create tap device named tap0. Reason: [0]: file exists";
    const ChNetworkStep step = {.kind = CH_NETWORK_STEP_MAKE_TAP, .link = "tap0"};

    assert_text(&step, g_error_new_literal(CH_ERRNO, EEXIST, text), text);
}

/* An error that is not the kernel's answer keeps its words. */
static void
test_other_reason(void)
{
    const ChNetworkStep step = {.kind = CH_NETWORK_STEP_LINK, .link = "tap0", .sets_up = true};

    assert_text(&step,
                g_error_new_literal(CH_ERRNO, EEXIST, "send to the kernel: file exists"),
                "failed to setup link [tap0]: LinkSetUp: send to the kernel: file exists");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/network-step/", cases[i].path, NULL);

        g_test_add_data_func(path, &cases[i], test_refused);
    }
    g_test_add_func("/network-step/tap", test_tap);
    g_test_add_func("/network-step/other-reason", test_other_reason);
    return g_test_run();
}
