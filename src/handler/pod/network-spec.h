/* SPDX-License-Identifier: Apache-2.0 */

/*
 * network-spec: what a VMI wants of its pod's network, read once from the document.
 *
 * Pure. SR-IOV asks nothing of the node agent here: such an interface is left out. Thread: the
 * document's owner. Spec: 04 §2, §7.1, §8.
 */

#pragma once

#include "handler/config/cluster-config.h"
#include "handler/pod/network-filter.h"
#include "lib/json/json.h"
#include "lib/linux/ip.h"
#include "lib/linux/rtnetlink.h"

#define CH_NETWORK_NAME_SIZE                                                                       \
    32 /* of a link: more than the kernel takes, so that it can be told                            \
        */

typedef enum {
    CH_NETWORK_BINDING_INVALID = 0,
    CH_NETWORK_MASQUERADE,
    CH_NETWORK_BRIDGE,
    CH_NETWORK_MANAGED_TAP, /* a plugin whose tap is made here: links as of BRIDGE */
    CH_NETWORK_PLUGIN,      /* any other: it makes its devices itself */
    CH_NETWORK_PASST,       /* sysctls only */
} ChNetworkBinding;

typedef struct {
    char pod_link[CH_NETWORK_NAME_SIZE]; /* what CNI made; with bridge its stand-in in the end */
    char bridge[CH_NETWORK_NAME_SIZE];
    char nic[CH_NETWORK_NAME_SIZE]; /* bridge: the renamed pod link */
    char tap[CH_NETWORK_NAME_SIZE];
    char spare[CH_NETWORK_NAME_SIZE]; /* bridge: the stand-in while it is made */
} ChNetworkNames;

typedef struct {
    uint8_t protocol; /* IPPROTO_* */
    uint16_t port;
    uint16_t last; /* of a range that begins at `port`; 0: none */
} ChNetworkPort;

typedef struct {
    const char *name;   /* of interface and network; borrowed from the VMI */
    const ChJson *json; /* the interface; borrowed from the VMI */
    ChNetworkBinding binding;
    bool is_absent;   /* it goes */
    unsigned index;   /* among all interfaces of this run, those that are left out included */
    unsigned ordinal; /* from 1, among the secondary ones; 0: neither primary nor secondary */
    bool is_primary;  /* on the pod network, or multus' default */
    const char *custom_name;       /* of the pod link, from the status; NULL: by the scheme */
    const char *cidr_v4, *cidr_v6; /* masquerade: of the guest's networks */
    const char *mac;               /* bridge: what DHCP is to give to; NULL: the pod link's */
    bool is_multi_queue;
    GArray *ports;        /* owned; ChNetworkPort */
    ChNetworkNames names; /* set by ch_network_spec_name() */
} ChNetworkIface;

typedef struct {
    GArray *ifaces;               /* owned; ChNetworkIface, in the order of the run */
    unsigned n_seen, n_secondary; /* those that are left out included */
    bool has_primary;
    bool is_non_root;
    bool is_istio;
    bool reserves_migration_ports;
} ChNetworkSpec;

/**
 * ch_network_spec_new:
 * @vmi: borrowed, outlives the result
 * @config: (nullable): for the binding plugins and the gate PortRangesSpec
 *
 * Returns: (transfer full): NULL with CH_ERROR_INVALID: "undefined binding method: ...", a name
 * that cannot be a file's, a port or protocol that there is not; "no iface matching with network
 * ..."
 */
ChNetworkSpec *ch_network_spec_new(const ChJson *vmi,
                                   ChNetworkRun run,
                                   const ChClusterConfig *config,
                                   GError **error);
void ch_network_spec_free(ChNetworkSpec *spec);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ChNetworkSpec, ch_network_spec_free)

/* The interface with this index. */
ChNetworkIface *ch_network_spec_iface(const ChNetworkSpec *spec, guint index);

/* Whether the pod link becomes a bridge's port, and a stand-in takes its name. */
static inline bool
ch_network_iface_bridges(const ChNetworkIface *iface)
{
    return iface->binding == CH_NETWORK_BRIDGE || iface->binding == CH_NETWORK_MANAGED_TAP;
}

/* Names the links of all interfaces: by hash, or net1, net2, ... when the pod has such links. */
void ch_network_spec_name(ChNetworkSpec *spec, const ChNetState *seen);

/* Fails with CH_ERROR_FAILED: the pod has no link of this name; of a secondary network both names
 * are told that it can have. Returns: always false. */
bool ch_network_fail_missing(const ChNetworkIface *iface, GError **error);
