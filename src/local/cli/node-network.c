/* SPDX-License-Identifier: Apache-2.0 */

#include "local/cli/node-network.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>

#include "lib/base/errors.h"
#include "lib/base/fd.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/base/time.h"
#include "lib/linux/command.h"
#include "local/cli/forwarding.h"

#define FILE_NAME       "pod-network.json"
#define MAX_FILE_BYTES  4096
#define TIMEOUT_US      (20 * CH_SECOND_US)
#define MAX_RULE_WORDS  16
#define MAX_COPIES      8 /* of one rule, to be removed */
#define MAX_WORDS_BYTES 200
#define MAX_CLAIMS      8

/* --- rules ------------------------------------------------------------------------------------ */

/* $B is the bridge, $S the subnet. */
static const struct {
    const char *table, *chain;
    const char *match[MAX_RULE_WORDS];
} rules[] = {
    {"nat",
     "POSTROUTING",
     {"-s", "$S", "!", "-d", "$S", "-m", "comment", "--comment", "$B", "-j", "MASQUERADE"}},
    /* Others (docker, firewalls) let nothing be forwarded but what is named. */
    {"filter", "FORWARD", {"-i", "$B", "-m", "comment", "--comment", "$B", "-j", "ACCEPT"}},
    {"filter",
     "FORWARD",
     {"-o",
      "$B",
      "-m",
      "conntrack",
      "--ctstate",
      "RELATED,ESTABLISHED,DNAT",
      "-m",
      "comment",
      "--comment",
      "$B",
      "-j",
      "ACCEPT"}},
};

static const char *
word_of(const char *word, const ChNodeNetwork *network, const char *subnet)
{
    if (g_str_equal(word, "$B"))
        return network->bridge;
    return g_str_equal(word, "$S") ? subnet : word;
}

/* @action: "-C" (is it there), "-I", "-D" */
static bool
run_rule(
    const char *action, gsize i, const ChNodeNetwork *network, const char *subnet, GError **error)
{
    const char *argv[MAX_RULE_WORDS + 8] = {strchr(subnet, ':') != NULL ? "ip6tables" : "iptables",
                                            "-w",
                                            "10",
                                            "-t",
                                            rules[i].table,
                                            action,
                                            rules[i].chain};

    for (gsize k = 0; rules[i].match[k] != NULL; k++)
        argv[7 + k] = word_of(rules[i].match[k], network, subnet);
    return ch_command_run(&(ChCommand){argv, TIMEOUT_US, 0, 0}, NULL, error);
}

static bool
add_rules(const ChNodeNetwork *network, GError **error)
{
    for (gsize s = 0; network->subnets[s] != NULL; s++) {
        for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
            if (!run_rule("-C", i, network, network->subnets[s], NULL) &&
                !run_rule("-I", i, network, network->subnets[s], error))
                return false;
        }
    }
    return true;
}

static void
remove_rules(const ChNodeNetwork *network)
{
    for (gsize s = 0; network->subnets[s] != NULL; s++) {
        for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
            for (int n = 0; n < MAX_COPIES && run_rule("-D", i, network, network->subnets[s], NULL);
                 n++)
                ;
        }
    }
}

/* --- the bridge ------------------------------------------------------------------------------- */

static bool
request(ChNetlink *netlink, ChNetlinkMessage *message, GError **error)
{
    return ch_netlink_request(netlink, message, message->header.nlmsg_len, error);
}

/* An address of its own: one that it takes from its ports would change with them, and guests
 * remember it. It tells our bridge from another chandler's of that name, too. */
static void
choose_mac(ChNodeNetwork *network)
{
    network->has_mac = true;
    network->mac[0] = 0x02;
    for (gsize i = 1; i < sizeof(network->mac); i++)
        network->mac[i] = (uint8_t)g_random_int_range(0, 256);
}

static bool
make_bridge(ChNetlink *netlink, const ChNodeNetwork *network, GError **error)
{
    ChNetlinkMessage message;

    ch_rtnl_compose_link(
        &message, &(ChLinkChange){.kind = "bridge", .name = network->bridge, .mac = network->mac});
    if (request(netlink, &message, error))
        return true;
    g_prefix_error(error, "make the bridge %s: ", network->bridge);
    return false;
}

static void
delete_bridge(const ChNodeNetwork *network, int index)
{
    g_autoptr(ChNetlink) netlink = ch_netlink_open(NETLINK_ROUTE, NULL);
    g_autoptr(GError) failure = NULL;
    ChNetlinkMessage message;

    if (netlink == NULL)
        return;
    ch_rtnl_compose_delete_link(&message, index);
    if (!request(netlink, &message, &failure))
        ch_log_warning(
            NULL, failure, "ignoring that the bridge %s cannot be removed", network->bridge);
}

/* Whose the link of the bridge's name is: 0: there is none; negative: not ours; else its index. */
static int
find_ours(const ChNodeNetwork *network)
{
    g_autoptr(ChNetlink) netlink = ch_netlink_open(NETLINK_ROUTE, NULL);
    g_autoptr(ChNetState) machine = netlink != NULL ? ch_rtnl_read(netlink, false, NULL) : NULL;
    const ChLink *link = NULL;

    if (machine == NULL || ch_net_state_find_link(machine, network->bridge) == NULL)
        return 0;
    link = ch_node_network_find_bridge(network, machine);
    return link != NULL ? link->index : -1;
}

/* --- the file --------------------------------------------------------------------------------- */

bool
ch_node_network_load(const ChCli *cli, ChNodeNetwork *out_network)
{
    g_autofree char *path = ch_cli_path(cli, FILE_NAME);
    g_autofree char *text = ch_small_file_read(path, MAX_FILE_BYTES, NULL, NULL);

    return text != NULL && ch_node_network_parse(text, out_network, NULL);
}

static bool
store(const ChCli *cli, const ChNodeNetwork *network, GError **error)
{
    g_autofree char *path = ch_cli_path(cli, FILE_NAME);
    g_autofree char *text = ch_node_network_print(network);

    return g_file_set_contents(path, text, -1, error);
}

/* --- both ways -------------------------------------------------------------------------------- */

static bool
is_change(const ChNodeNetwork *stored, const ChNodeNetwork *network)
{
    return stored != NULL && stored->bridge != NULL &&
           (!g_str_equal(stored->bridge, network->bridge) ||
            !g_strv_equal((const char *const *)stored->subnets,
                          (const char *const *)network->subnets));
}

/* Finds the bridge, or makes it. */
static bool
claim(const ChCli *cli,
      const ChNodeNetwork *stored,
      const char *wanted,
      bool is_in_use,
      ChNodeNetwork *network,
      GError **error)
{
    g_autoptr(ChNetlink) netlink = ch_netlink_open(NETLINK_ROUTE, error);
    g_autoptr(ChNetState) machine = netlink != NULL ? ch_rtnl_read(netlink, true, error) : NULL;

    ch_node_network_clear(network);
    if (machine == NULL || !ch_subnet_choose(machine, stored, is_in_use, wanted, network, error))
        return false;
    if (is_change(stored, network)) {
        if (is_in_use)
            return ch_fail(error,
                           CH_ERROR_EXISTS,
                           "VMs are connected to %s, which cannot be changed under them: end them "
                           "first",
                           stored->subnets[0]);
        ch_node_network_down(cli);
        stored = NULL; /* and with it what it had turned on */
    }
    ch_forwarding_note(stored, network);
    if (ch_net_state_find_link(machine, network->bridge) != NULL)
        return store(cli, network, error);
    /* Stored first: what is made is found again, whatever happens. */
    choose_mac(network);
    return store(cli, network, error) && make_bridge(netlink, network, error);
}

static bool
make(const ChCli *cli,
     const ChNodeNetwork *stored,
     const char *wanted,
     bool is_in_use,
     ChNodeNetwork *network,
     GError **error)
{
    for (int i = 1;; i++) {
        g_autoptr(GError) failure = NULL;

        if (claim(cli, stored, wanted, is_in_use, network, &failure)) {
            ch_forwarding_turn_on(network);
            return add_rules(network, error);
        }
        /* Another chandler was faster: it has that name now. */
        if (i < MAX_CLAIMS && g_error_matches(failure, CH_ERRNO, EEXIST))
            continue;
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
}

/* (transfer full): one line that fits into a summary. */
static char *
short_reason(const GError *failure)
{
    g_autofree char *words = g_strndup(failure->message, MAX_WORDS_BYTES);
    char *valid = g_utf8_make_valid(words, -1);

    valid[strcspn(valid, "\r\n")] = '\0';
    return valid;
}

static bool
make_or_tell(
    const ChCli *cli, const char *wanted, bool has_pods, ChNodeNetwork *out_network, GError **error)
{
    g_auto(ChNodeNetwork) stored = {0};
    g_auto(ChNodeNetwork) network = {0};
    g_autoptr(GError) failure = NULL;
    const bool has_stored = ch_node_network_load(cli, &stored);
    /* Pods of before the machine's start are none anymore, nor is their bridge. */
    const bool is_in_use = has_pods && stored.bridge != NULL && find_ours(&stored) > 0;

    if (!make(cli, has_stored ? &stored : NULL, wanted, is_in_use, &network, &failure)) {
        if (wanted != NULL || is_in_use) { /* what pods are on stays as it is */
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        ch_node_network_down(cli); /* what is half made, or of before: the file forgets it */
        ch_node_network_clear(&network);
        network.reason = short_reason(failure);
        if (!store(cli, &network, error))
            return false;
    }
    *out_network = network;
    network = (ChNodeNetwork){0};
    return true;
}

/* One `up` at a time for a state directory: the second would find half of what the first makes. */
static bool
lock(const ChCli *cli, int *out_fd, GError **error)
{
    ch_autofd int fd = g_open(cli->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

    if (fd < 0)
        return ch_fail_errno(error, errno, "open '%s'", cli->state_dir);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return ch_fail(
            error, CH_ERROR_EXISTS, "another 'chandler up' is under way in %s", cli->state_dir);
    *out_fd = g_steal_fd(&fd);
    return true;
}

bool
ch_node_network_up(
    const ChCli *cli, const char *wanted, bool has_pods, ChNodeNetwork *out_network, GError **error)
{
    ch_autofd int fd = -EBADF;

    return lock(cli, &fd, error) && make_or_tell(cli, wanted, has_pods, out_network, error);
}

void
ch_node_network_down(const ChCli *cli)
{
    g_auto(ChNodeNetwork) network = {0};
    g_autofree char *path = ch_cli_path(cli, FILE_NAME);
    g_autofree char *leases = ch_cli_path(cli, "podrunner/leases");
    const char *const argv[] = {"rm", "-rf", "--one-file-system", "--", leases, NULL};
    g_autoptr(ChNetlink) netlink = NULL;
    g_autoptr(ChNetState) machine = NULL;
    int index;

    if (!ch_node_network_load(cli, &network))
        return;
    index = network.bridge != NULL ? find_ours(&network) : -1;
    if (index >= 0) /* else another chandler has this name by now, and with it such rules */
        remove_rules(&network);
    if (index > 0)
        delete_bridge(&network, index);
    netlink = ch_netlink_open(NETLINK_ROUTE, NULL);
    machine = netlink != NULL ? ch_rtnl_read(netlink, false, NULL) : NULL;
    if (network.bridge != NULL && machine != NULL)
        ch_forwarding_take_back(&network, machine);
    (void)ch_command_run(&(ChCommand){argv, TIMEOUT_US, 0, 0}, NULL, NULL); /* made again */
    (void)g_unlink(path);
}
