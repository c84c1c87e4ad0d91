/* SPDX-License-Identifier: Apache-2.0 */

#include "local/launcher/network.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/base/errors.h"
#include "lib/base/log.h"
#include "lib/base/small-file.h"
#include "lib/linux/link-names.h"
#include "lib/vmi/nics.h"
#include "local/launcher/dhcp-lease.h"

#define SYS_NET        "/sys/class/net"
#define CACHE_NAME     "vif-cache-%s.json" /* of the pod link */
#define MAX_FILE_BYTES (64u << 10)

static char *
read_link(const char *link, const char *file)
{
    g_autofree char *path = g_build_filename(SYS_NET, link, file, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        return NULL;
    return g_strstrip(text);
}

static guint
read_mtu(const char *link)
{
    g_autofree char *text = read_link(link, "mtu");
    guint64 mtu = 0;

    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT16, &mtu, NULL))
        return 0;
    return (guint)mtu;
}

/* The pod's links of this interface: its NIC, and what the agent made for it. Returns: false: its
 * network is of a kind that has none */
static bool
name_links(const ChJson *vmi, const char *interface, ChLinkNames *out_names)
{
    const ChJson *network = ch_json_find(ch_json_at(vmi, "spec", "networks"), "name", interface);
    const bool is_primary = ch_json_is_object(ch_json_at(network, "pod"));

    *out_names = (ChLinkNames){0};
    if (is_primary)
        g_strlcpy(out_names->pod_link, CH_LINK_NAME_PRIMARY, sizeof(out_names->pod_link));
    else if (ch_json_is_object(ch_json_at(network, "multus")))
        ch_link_name_hashed(interface, out_names->pod_link);
    else
        return false;
    ch_link_names_derive(out_names, is_primary);
    return true;
}

static void
facts_clear(gpointer data)
{
    ChNicFacts *facts = data;

    g_free(facts->interface);
    g_free(facts->tap);
    g_free(facts->mac);
}

static bool
examine(const ChJson *vmi, const char *name, GArray *facts, GError **error)
{
    g_autofree char *tap_index = NULL;
    ChLinkNames names;

    if (!name_links(vmi, name, &names))
        return ch_fail(error,
                       CH_ERROR_INVALID,
                       "preparing the pod network failed: interface %s is neither on the pod "
                       "network nor on a secondary one",
                       name);
    tap_index = read_link(names.tap, "ifindex");
    if (tap_index == NULL)
        return ch_fail(error,
                       CH_ERROR_NOT_FOUND,
                       "preparing the pod network failed: interface %s: there is no link %s in the "
                       "pod",
                       name,
                       names.tap);
    const ChNicFacts fact = {
        .interface = g_strdup(name),
        .tap = g_strdup(names.tap),
        .mac = read_link(names.pod_link, "address"),
        .mtu = read_mtu(names.pod_link),
    };
    g_array_append_val(facts, fact);
    return true;
}

static GArray *
new_facts(void)
{
    GArray *facts = g_array_new(FALSE, FALSE, sizeof(ChNicFacts));

    g_array_set_clear_func(facts, facts_clear);
    return facts;
}

static const ChJson *
find_interface(const ChJson *vmi, const char *name)
{
    return ch_json_find(ch_json_at(vmi, "spec", "domain", "devices", "interfaces"), "name", name);
}

/* The agent names the attachments of absent interfaces, too. */
static bool
is_absent(const ChJson *vmi, const char *name)
{
    return ch_nic_is_absent(find_interface(vmi, name));
}

GArray *
ch_network_examine(const ChJson *vmi,
                   const Kubevirt__Cmd__V1__VirtualMachineOptions *options,
                   GError **error)
{
    g_autoptr(GArray) facts = new_facts();

    if (options == NULL)
        return g_steal_pointer(&facts);
    for (size_t i = 0; i < options->n_interface_domain_attachment; i++) {
        const char *name = options->interface_domain_attachment[i]->key;

        if (g_str_equal(options->interface_domain_attachment[i]->value, "tap") &&
            !is_absent(vmi, name) && !examine(vmi, name, facts, error))
            return NULL;
    }
    return g_steal_pointer(&facts);
}

GArray *
ch_network_examine_one(const ChJson *vmi, const char *interface, GError **error)
{
    g_autoptr(GArray) facts = new_facts();

    if (!examine(vmi, interface, facts, error))
        return NULL;
    if (g_array_index(facts, ChNicFacts, 0).mac == NULL) { /* while the links change their names */
        ch_fail(
            error, CH_ERROR_NOT_FOUND, "interface %s: its link is not in the pod yet", interface);
        return NULL;
    }
    return g_steal_pointer(&facts);
}

/* --- addresses -------------------------------------------------------------------------------- */

static bool
is_bridge(const ChJson *vmi, const char *name)
{
    return ch_json_has(find_interface(vmi, name), "bridge");
}

/* Which addresses of a link are meant. */
typedef bool (*IsMeant)(const struct in_addr *address, const ChIp *server);

static bool
is_same(const struct in_addr *address, const ChIp *server)
{
    return memcmp(address, server->bytes, sizeof(*address)) == 0;
}

/* With the bridge binding it ends with a number that agent and launcher count each on their own:
 * what the link has is right. */
static bool
is_neighbour(const struct in_addr *address, const ChIp *server)
{
    return memcmp(address, server->bytes, sizeof(*address) - 1) == 0;
}

/* Whether @link has an IPv4 address that is meant; @server becomes that. */
static bool
find_server(const char *link, IsMeant is_meant, ChIp *server)
{
    struct ifaddrs *list = NULL;
    bool is_found = false;

    if (getifaddrs(&list) < 0)
        return false;
    for (const struct ifaddrs *item = list; item != NULL && !is_found; item = item->ifa_next) {
        struct sockaddr_in address;

        if (item->ifa_addr == NULL || item->ifa_addr->sa_family != AF_INET ||
            !g_str_equal(item->ifa_name, link))
            continue;
        memcpy(&address, item->ifa_addr, sizeof(address));
        is_found = is_meant(&address.sin_addr, server);
        if (is_found)
            memcpy(server->bytes, &address.sin_addr, sizeof(address.sin_addr));
    }
    freeifaddrs(list);
    return is_found;
}

static bool
serve_one(ChDhcpServer *dhcp,
          const ChJson *vmi,
          const ChNicFacts *nic,
          const char *private_dir,
          GError **error)
{
    const bool bridges = is_bridge(vmi, nic->interface);
    ChLinkNames names;
    const bool has_names = name_links(vmi, nic->interface, &names); /* as examined */
    g_autofree char *cache_name = g_strdup_printf(CACHE_NAME, names.pod_link);
    g_autofree char *cache_path = g_build_filename(private_dir, cache_name, NULL);
    g_autofree char *cache =
        bridges ? ch_small_file_read(cache_path, MAX_FILE_BYTES, NULL, NULL) : NULL;
    g_autofree char *resolv_conf =
        ch_small_file_read("/etc/resolv.conf", MAX_FILE_BYTES, NULL, NULL);
    const ChDhcpFacts facts = {
        .vmi = vmi,
        .interface = nic->interface,
        .pod_mac = nic->mac,
        .mtu = bridges ? read_mtu(names.nic) : nic->mtu,
        .cache = cache,
        .resolv_conf = resolv_conf,
    };
    ChDhcpLease lease = {0};
    char text[CH_IP_TEXT_SIZE];

    if (!has_names)
        return true;
    if (!ch_dhcp_lease_fill(&facts, &lease, error))
        return false;
    /* A pod without IPv4 has no guest with it. */
    if (lease.address.family == 0 ||
        !find_server(names.bridge, bridges ? is_neighbour : is_same, &lease.server))
        return true;
    ch_log_info(NULL,
                "DHCP gives interface %s the address %s.",
                nic->interface,
                ch_ip_print(&lease.address, text));
    return ch_dhcp_server_serve(dhcp, names.bridge, &lease, error);
}

bool
ch_network_serve(ChDhcpServer *dhcp,
                 const ChJson *vmi,
                 const GArray *nics,
                 const char *private_dir,
                 GError **error)
{
    for (guint i = 0; i < nics->len; i++) {
        if (!serve_one(dhcp, vmi, &g_array_index(nics, ChNicFacts, i), private_dir, error)) {
            g_prefix_error(error, "preparing the pod network failed: ");
            return false;
        }
    }
    return true;
}
