# SPDX-License-Identifier: Apache-2.0
"""What a pod's network looks like from inside, in the golden traces' format.

Addresses and MACs that the kernel draws at random become MAC, numbers that only the order of making decides are left out.
"""
import json
import pwd
import grp

SYSCTLS = ["net/ipv4/conf/all/route_localnet", "net/ipv4/conf/eth0/arp_ignore", "net/ipv4/conf/k6t-eth0/route_localnet", "net/ipv4/ip_forward",
           "net/ipv4/ip_unprivileged_port_start", "net/ipv4/ping_group_range"]
LINK_KEYS = ("address", "flags", "group", "ifname", "linkinfo", "master", "mtu", "operstate")
VOLATILE_INFO = ("hello_timer", "tcn_timer", "topology_change_timer", "gc_timer", "root_id", "bridge_id", "root_port", "vlan_protocol",
                 "vlan_default_pvid", "vlan_stats_enabled", "vlan_stats_per_port", "fdb_n_learned", "fdb_max_learned")
FIXED_MACS = ("02:00:00:00:00:00",)


def account(name_of, number, wanted):
    """The recording machine knew 107 as qemu and kvm."""
    try:
        return {name_of(number)[0]: wanted, str(number): wanted, number: wanted}
    except KeyError:
        return {str(number): wanted, number: wanted}


def reduce_link(link):
    link = {key: link[key] for key in LINK_KEYS if key in link}
    if link.get("address") not in FIXED_MACS:
        link["address"] = "MAC"
    info = link.get("linkinfo", {}).get("info_data", {})
    for key in VOLATILE_INFO:
        info.pop(key, None)
    if link.get("linkinfo", {}).get("info_kind") == "tun":
        users, groups = account(pwd.getpwuid, 107, "qemu"), account(grp.getgrgid, 107, "kvm")
        info["user"], info["group"] = users.get(info.get("user"), info.get("user")), groups.get(info.get("group"), info.get("group"))
    return link


def reduce_nft(value):
    """Handles and counters mean nothing."""
    if isinstance(value, dict):
        return {k: (0 if k in ("handle", "packets", "bytes") else reduce_nft(v)) for k, v in value.items()}
    if isinstance(value, list):
        return [reduce_nft(v) for v in value]
    return value


def reduce_route(route):
    return json.dumps({k: v for k, v in route.items() if k not in ("metric", "pref")}, sort_keys=True)


def look(launcher):
    """The pod's links, addresses, routes, rules and sysctls."""
    links = json.loads(launcher.ip("-d", "-j", "link"))
    addresses = json.loads(launcher.ip("-j", "addr"))
    sysctls = {}
    for name in SYSCTLS:
        value = launcher.in_network("sh", "-c", f"cat /proc/sys/{name} 2>/dev/null || true")
        if value:
            sysctls[name] = value.strip()
    return {
        "links": [reduce_link(link) for link in sorted(links, key=lambda link: link["ifname"]) if link["ifname"] != "lo"],
        "addr": sorted([a["ifname"], i["local"], i["prefixlen"]] for a in addresses for i in a["addr_info"]
                       if i["family"] == "inet" and a["ifname"] != "lo"),
        "route": sorted(reduce_route(route) for route in json.loads(launcher.ip("-j", "route"))),
        "nft": reduce_nft(json.loads(launcher.in_network("nft", "-j", "list", "ruleset"))),
        "sysctl": sysctls,
    }


def from_golden(net):
    """A pod's section of a golden trace, with the same reductions."""
    net = dict(net)
    net["nft"] = reduce_nft(json.loads(net["nft"]))
    net["links"] = [reduce_link(link) for link in net["links"]]
    return net
