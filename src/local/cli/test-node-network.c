/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/node-network.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"

/* A state directory. */
typedef struct {
    ChCli cli;
    char *file;
} Chandler;

static void
chandler_init(Chandler *chandler)
{
    chandler->cli.state_dir = g_dir_make_tmp("test-node-network-XXXXXX", NULL);
    g_assert_nonnull(chandler->cli.state_dir);
    chandler->file = g_build_filename(chandler->cli.state_dir, "pod-network.json", NULL);
}

static void
chandler_clear(Chandler *chandler)
{
    (void)g_unlink(chandler->file);
    g_assert_cmpint(g_rmdir(chandler->cli.state_dir), ==, 0);
    g_free(chandler->file);
    g_free(chandler->cli.state_dir);
}

static bool
is_there(const char *link)
{
    return if_nametoindex(link) != 0;
}

static void
make_bridge(const char *name, const char *ip, uint8_t prefix)
{
    g_autoptr(ChNetlink) netlink = ch_netlink_open(NETLINK_ROUTE, NULL);
    ChNetlinkMessage message;
    ChAddress address = {.prefix = prefix};

    ch_rtnl_compose_link(&message, &(ChLinkChange){.kind = "bridge", .name = name});
    g_assert_true(ch_netlink_request(netlink, &message, message.header.nlmsg_len, NULL));
    if (ip == NULL)
        return;
    address.index = (int)if_nametoindex(name);
    g_assert_true(ch_ip_parse(ip, &address.ip));
    ch_rtnl_compose_add_address(&message, &address);
    g_assert_true(ch_netlink_request(netlink, &message, message.header.nlmsg_len, NULL));
}

static void
delete_link(const char *name)
{
    g_autoptr(ChNetlink) netlink = ch_netlink_open(NETLINK_ROUTE, NULL);
    ChNetlinkMessage message;

    ch_rtnl_compose_delete_link(&message, (int)if_nametoindex(name));
    g_assert_true(ch_netlink_request(netlink, &message, message.header.nlmsg_len, NULL));
}

static void
assert_up(const Chandler *chandler, bool has_pods, const char *bridge)
{
    g_auto(ChNodeNetwork) network = {0};
    g_autoptr(GError) error = NULL;

    g_assert_true(ch_node_network_up(&chandler->cli, NULL, has_pods, &network, &error));
    g_assert_no_error(error);
    g_assert_cmpstr(network.reason, ==, NULL);
    g_assert_cmpstr(network.bridge, ==, bridge);
    g_assert_true(is_there(bridge));
}

static void
test_each_has_its_own(void)
{
    Chandler first, second;

    chandler_init(&first);
    chandler_init(&second);
    assert_up(&first, false, "chandler0");
    assert_up(&second, false, "chandler1");
    assert_up(&first, false, "chandler0");
    ch_node_network_down(&first.cli);
    g_assert_false(is_there("chandler0"));
    g_assert_true(is_there("chandler1"));
    ch_node_network_down(&second.cli);
    g_assert_false(is_there("chandler1"));
    chandler_clear(&first);
    chandler_clear(&second);
}

/* The machine started anew, and the other one was up first. */
static void
test_name_taken_since(void)
{
    Chandler first, second;

    chandler_init(&first);
    chandler_init(&second);
    assert_up(&first, false, "chandler0");
    delete_link("chandler0");
    assert_up(&second, false, "chandler0");
    ch_node_network_down(&first.cli);
    g_assert_true(is_there("chandler0"));
    assert_up(&first, true, "chandler1");
    ch_node_network_down(&second.cli);
    g_assert_true(is_there("chandler1"));
    ch_node_network_down(&first.cli);
    chandler_clear(&first);
    chandler_clear(&second);
}

/* --- forwarding ------------------------------------------------------------------------------- */

#define FORWARD "/proc/sys/net/ipv4/ip_forward"

static void
set_forwarding(const char *digit)
{
    ch_autofd int fd = g_open(FORWARD, O_WRONLY | O_CLOEXEC, 0);

    g_assert_cmpint(write(fd, digit, 1), ==, 1);
}

static bool
is_forwarding(void)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents(FORWARD, &text, NULL, NULL));
    return *text == '1';
}

/* On while it is up, and as it was before after it: also when `up` crashed, or was called again. */
static void
test_forwarding_is_taken_back(void)
{
    Chandler chandler;

    chandler_init(&chandler);
    for (int n_ups = 1; n_ups <= 2; n_ups++) {
        set_forwarding("0");
        for (int i = 0; i < n_ups; i++)
            assert_up(&chandler, false, "chandler0");
        g_assert_true(is_forwarding());
        ch_node_network_down(&chandler.cli);
        g_assert_false(is_forwarding());
    }
    set_forwarding("1");
    assert_up(&chandler, false, "chandler0");
    ch_node_network_down(&chandler.cli);
    g_assert_true(is_forwarding());
    set_forwarding("0");
    chandler_clear(&chandler);
}

/* Who came later may need it. */
static void
test_forwarding_of_others_stays(void)
{
    Chandler chandler;

    chandler_init(&chandler);
    set_forwarding("0");
    assert_up(&chandler, false, "chandler0");
    make_bridge("docker0", NULL, 0);
    ch_node_network_down(&chandler.cli);
    g_assert_true(is_forwarding());
    delete_link("docker0");
    set_forwarding("0");
    chandler_clear(&chandler);
}

/* What was noted at an earlier boot says nothing of this one. */
static void
test_forwarding_of_this_boot(void)
{
    g_auto(ChNodeNetwork) network = {0};
    Chandler chandler;
    g_autofree char *text = NULL;

    chandler_init(&chandler);
    set_forwarding("0");
    assert_up(&chandler, false, "chandler0");
    g_assert_true(ch_node_network_load(&chandler.cli, &network));
    g_assert_true(network.turns_on[CH_FORWARDING_IPV4]);
    g_assert_false(network.turns_on[CH_FORWARDING_IPV6]);
    g_free(network.boot);
    network.boot = g_strdup("another");
    text = ch_node_network_print(&network);
    g_assert_true(g_file_set_contents(chandler.file, text, -1, NULL));
    ch_node_network_down(&chandler.cli);
    g_assert_true(is_forwarding());
    set_forwarding("0");
    chandler_clear(&chandler);
}

/* A network that came up since is no reason to take the bridge from under VMs; without VMs it is.
 */
static void
test_in_use(void)
{
    Chandler chandler;
    g_auto(ChNodeNetwork) network = {0};
    g_autoptr(GError) error = NULL;

    chandler_init(&chandler);
    assert_up(&chandler, false, "chandler0");
    make_bridge("vpn0", "10.213.1.1", 24);
    assert_up(&chandler, true, "chandler0");
    g_assert_false(ch_node_network_up(&chandler.cli, "172.30.0.0/24", true, &network, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_true(is_there("chandler0"));
    assert_up(&chandler, false, "chandler1");
    g_assert_false(is_there("chandler0"));
    ch_node_network_down(&chandler.cli);
    delete_link("vpn0");
    chandler_clear(&chandler);
}

/* The bridge of before, which nobody will know of anymore, goes. */
static void
test_nothing_is_free_anymore(void)
{
    Chandler chandler;
    g_auto(ChNodeNetwork) network = {0};

    chandler_init(&chandler);
    assert_up(&chandler, false, "chandler0");
    make_bridge("vpn0", "10.0.0.1", 8);
    g_assert_true(ch_node_network_up(&chandler.cli, NULL, false, &network, NULL));
    g_assert_null(network.bridge);
    g_assert_nonnull(strstr(network.reason, "vpn0"));
    g_assert_false(is_there("chandler0"));
    ch_node_network_down(&chandler.cli);
    delete_link("vpn0");
    chandler_clear(&chandler);
}

static void
test_two_at_once(void)
{
    Chandler chandler;
    g_auto(ChNodeNetwork) network = {0};
    g_autoptr(GError) error = NULL;
    int fd;

    chandler_init(&chandler);
    fd = open(chandler.cli.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    g_assert_cmpint(flock(fd, LOCK_EX | LOCK_NB), ==, 0);
    g_assert_false(ch_node_network_up(&chandler.cli, NULL, false, &network, &error));
    g_assert_error(error, CH_ERROR, CH_ERROR_EXISTS);
    g_assert_false(is_there("chandler0"));
    close(fd);
    assert_up(&chandler, false, "chandler0");
    ch_node_network_down(&chandler.cli);
    chandler_clear(&chandler);
}

/* Rules that cannot be made now do not cost VMs their bridge either. */
static void
test_rules_fail(void)
{
    Chandler chandler;
    g_auto(ChNodeNetwork) network = {0};
    g_auto(ChNodeNetwork) none = {0};
    g_autofree char *path = g_strdup(g_getenv("PATH"));
    g_autoptr(GError) error = NULL;

    chandler_init(&chandler);
    assert_up(&chandler, false, "chandler0");
    g_setenv("PATH", "/nonexistent", TRUE);
    g_assert_false(ch_node_network_up(&chandler.cli, NULL, true, &network, &error));
    g_assert_nonnull(error);
    g_assert_true(is_there("chandler0"));
    g_assert_true(ch_node_network_up(&chandler.cli, NULL, false, &none, NULL));
    g_assert_null(none.bridge);
    g_assert_nonnull(none.reason);
    g_assert_false(is_there("chandler0"));
    g_setenv("PATH", path, TRUE);
    ch_node_network_down(&chandler.cli);
    chandler_clear(&chandler);
}

/* A bridge of somebody else is left alone, whatever its name is. */
static void
test_foreign_bridge(void)
{
    Chandler chandler;

    chandler_init(&chandler);
    make_bridge("chandler0", NULL, 0);
    assert_up(&chandler, false, "chandler1");
    ch_node_network_down(&chandler.cli);
    g_assert_true(is_there("chandler0"));
    delete_link("chandler0");
    chandler_clear(&chandler);
}

/* An iptables that says yes: rules are the kernel's, and tests/e2e has them. */
static char *
make_programs(void)
{
    char *dir = g_dir_make_tmp("test-node-network-XXXXXX", NULL);
    g_autofree char *iptables = g_build_filename(dir, "iptables", NULL);
    g_autofree char *path = g_strconcat(dir, ":", g_getenv("PATH"), NULL);

    g_assert_cmpint(symlink("/bin/true", iptables), ==, 0);
    g_setenv("PATH", path, TRUE);
    return dir;
}

/* What this machine's administrator wants of forwarding is not for the tests. */
static void
hide_sysctl_files(void)
{
    static const char *const dirs[] = {
        "/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"};

    g_assert_cmpint(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), ==, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(dirs); i++)
        if (g_file_test(dirs[i], G_FILE_TEST_IS_DIR))
            g_assert_cmpint(mount("tmpfs", dirs[i], "tmpfs", 0, NULL), ==, 0);
    if (g_file_test("/etc/sysctl.conf", G_FILE_TEST_EXISTS))
        g_assert_cmpint(mount("/dev/null", "/etc/sysctl.conf", NULL, MS_BIND, NULL), ==, 0);
}

int
main(int argc, char **argv)
{
    const int namespaces = CLONE_NEWNET | CLONE_NEWNS;
    g_autofree char *programs = NULL;
    g_autofree char *iptables = NULL;
    int status;

    if (unshare(geteuid() == 0 ? namespaces : CLONE_NEWUSER | namespaces) < 0)
        return 77; /* no namespaces here */
    hide_sysctl_files();
    g_test_init(&argc, &argv, NULL);
    programs = make_programs();
    iptables = g_build_filename(programs, "iptables", NULL);
    g_test_add_func("/node-network/each-has-its-own", test_each_has_its_own);
    g_test_add_func("/node-network/name-taken-since", test_name_taken_since);
    g_test_add_func("/node-network/forwarding-is-taken-back", test_forwarding_is_taken_back);
    g_test_add_func("/node-network/forwarding-of-others-stays", test_forwarding_of_others_stays);
    g_test_add_func("/node-network/forwarding-of-this-boot", test_forwarding_of_this_boot);
    g_test_add_func("/node-network/in-use", test_in_use);
    g_test_add_func("/node-network/nothing-is-free-anymore", test_nothing_is_free_anymore);
    g_test_add_func("/node-network/two-at-once", test_two_at_once);
    g_test_add_func("/node-network/rules-fail", test_rules_fail);
    g_test_add_func("/node-network/foreign-bridge", test_foreign_bridge);
    status = g_test_run();
    (void)g_unlink(iptables);
    (void)g_rmdir(programs);
    return status;
}
