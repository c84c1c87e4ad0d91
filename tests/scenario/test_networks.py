# SPDX-License-Identifier: Apache-2.0
"""Every binding, secondary networks, and networks that come and go while the VM runs: specification 04 §2 to §15 and the end states of §22.

data/end-states.json holds those of §22, (a) to (d), as `ip -d -j` and `nft -j` print them; (b) and (d) come on top of (a).
"""
import collections
import grp
import json
import os
import pathlib
import pwd
import re
import signal
import subprocess

import harness
import podnet
import pytest
import test_network

DATA = pathlib.Path(__file__).parent / "data/end-states.json"
POD_MAC = test_network.POD_MAC
SECOND_MAC = "02:aa:bb:cc:dd:ee"
SECOND = "pod914f438d88d"  # of the network `secondnetwork`
PRIMARY = {"lo", "eth0", "k6t-eth0", "tap0"}
PLUGGED = {"914f438d88d-nic", "k6t-914f438d88d", "tap914f438d88d", SECOND}
OWN_MACS = (POD_MAC, SECOND_MAC, "02:00:00:00:00:00")
OWN_LINK_LOCALS = ("fe80::858:aff:fef4:5", "fe80::aa:bbff:fecc:ddee")
LINK_LOCAL = re.compile(r"fe80::[0-9a-f:]+(?!/)")
ROUTE_KEYS = ("type", "dst", "gateway", "dev", "table", "protocol", "scope", "prefsrc", "flags")


def interface(name, kind="bridge", plugin=None, **more):
    return {"name": name, "model": "virtio", **({kind: {}} if plugin is None else {"binding": {"name": plugin}}), **more}


def secondary(name="secondnetwork"):
    return {"name": name, "multus": {"networkName": f"default/{name}"}}


def document(interfaces, networks, index=1, **changes):
    """A VMI with these interfaces, and the pod network as the first of its networks."""
    vmi = harness.numbered(index, migrationTransport="Unix", **changes)
    vmi["spec"]["domain"]["devices"]["interfaces"] = interfaces
    vmi["spec"]["networks"] = [{"name": "default", "pod": {}}, *networks]
    return vmi


def add_link(launcher, name, mac=None, address=None, v6=None, mtu=1500):
    """What multus has CNI do for a further network."""
    peer = f"w{launcher.popen.pid}{name[-5:]}"
    subprocess.run(["ip", "link", "add", peer, "type", "veth", "peer", "name", "cni1", "netns", str(launcher.popen.pid)], check=True)
    subprocess.run(["ip", "link", "set", peer, "up", "mtu", str(mtu)], check=True)
    if mac:
        launcher.ip("link", "set", "cni1", "address", mac)
    launcher.ip("link", "set", "cni1", "mtu", mtu, "up")
    if address:
        launcher.ip("address", "add", address, "broadcast", "+", "dev", "cni1")
    if v6:
        launcher.ip("address", "add", v6, "dev", "cni1", "nodad")
    launcher.ip("link", "set", "cni1", "name", name)  # last: who waits for it finds it complete


def start(stage, vmi, network=test_network.NET, links=()):
    """A VM that runs in a pod with these further links: (name, arguments of add_link())."""
    launcher = stage.start_launcher(vmi, network)
    for name, arguments in links:
        add_link(launcher, name, **arguments)
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    return launcher


def cache_of(vmi, network):
    return harness.PRIVATE / "network-info-cache" / vmi["metadata"]["uid"] / network


def state_of(vmi, network):
    """Of the network on disk: 0 to 2."""
    path = cache_of(vmi, network)
    return json.loads(path.read_text()).get("networkState", 0) if path.exists() else 0


def dhcp_of(launcher, link):
    return launcher.root / f"run/kubevirt-private/vif-cache-{link}.json"


# --- end states

def expected_state(*parts):
    state = collections.defaultdict(list)
    documents = json.loads(DATA.read_text())
    for part in parts:
        for kind, items in documents[part].items():
            state[kind] = [item for item in state[kind] if "ifname" not in item or item["ifname"] not in {i.get("ifname") for i in items}] + items
    return state


def without_chance(value):
    """Random MACs, and the link-local addresses made of them, become words; accounts numbers; handles and counters nothing."""
    text = json.dumps(podnet.reduce_nft(value))
    text = re.sub(r"\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b", lambda m: m[0] if m[0] in OWN_MACS else "MAC", text)
    text = LINK_LOCAL.sub(lambda m: m[0] if m[0] in OWN_LINK_LOCALS else "LINK-LOCAL", text)
    for key, names in (("user", pwd.getpwall()), ("group", grp.getgrall())):
        for entry in names:
            if entry[2] == 107:
                text = text.replace(f'"{key}": "{entry[0]}"', f'"{key}": 107')
    return json.loads(text)


def reduced(found, like):
    """Of a document the members that another has too, at every depth."""
    if isinstance(found, dict) and isinstance(like, dict):
        return {key: reduced(found[key], like[key]) for key in like if key in found}
    return found


def is_momentary(name, address):
    """A bridge has a link-local address from the first time that a port has a carrier, which the tap may have when it is made."""
    return name.startswith("k6t-") and address.startswith(("fe80:", "LINK-LOCAL"))


def is_momentary_route(route):
    """The same, and what the kernel adds to its local table when an IPv6 address is no longer tentative."""
    return is_momentary(route["dev"], route["dst"]) or route.get("table") == "local" and (
        route["dst"] == "LINK-LOCAL" or route["dev"].startswith("k6t-") and ":" in route["dst"])


def reduce_address(entry):
    """The kernel keeps an address tentative for a while, and prints more of it than is fixed."""
    keys = ("family", "local", "prefixlen", "broadcast", "scope", "label")
    return {"ifname": entry["ifname"],
            "addr_info": [{k: i[k] for k in keys if k in i} for i in entry["addr_info"] if not is_momentary(entry["ifname"], i["local"])]}


def reduce_routes(routes):
    """As lines; the metric of IPv6 ones is left out, and so is whether the other end is there."""
    kept = [{k: r[k] for k in ROUTE_KEYS if k in r} for r in routes
            if r.get("dev") != "lo" and r.get("type") != "multicast" and r.get("dst") != "ff00::/8"
            and not is_momentary_route(r)]
    for route in kept:
        route["flags"] = [flag for flag in route["flags"] if flag != "onlink"]
    return sorted({json.dumps(route, sort_keys=True) for route in kept})


def adapt_stand_in(link):
    """A kernel without dummy links gets a bridge for one: what tells them apart is left out."""
    if link["linkinfo"].get("info_kind") in test_network.KINDS and "UP" not in link["flags"]:
        return {key: link[key] for key in ("ifname", "mtu", "operstate", "address")}
    return link


def compare(launcher, *parts):
    """All of the pod's network with an end state; what the kernel does by itself may take a moment."""
    expected = expected_state(*parts)
    links = {link["ifname"]: link for link in without_chance(expected["links"])}

    def look():
        found = without_chance(json.loads(launcher.ip("-d", "-j", "link")))
        addresses = without_chance(json.loads(launcher.ip("-j", "addr")))
        routes = [json.loads(launcher.ip("-j", family, "route", "show", "table", "all")) for family in ("-4", "-6")]
        rules = json.loads(launcher.in_network("nft", "-j", "list", "ruleset"))["nftables"]
        return {
            "links": sorted((adapt_stand_in(reduced(link, links.get(link["ifname"], link))) for link in found if link["ifname"] != "lo"),
                            key=lambda link: link["ifname"]),
            "addresses": sorted((reduce_address(entry) for entry in addresses if entry["ifname"] != "lo"), key=lambda a: a["ifname"]),
            "routes": reduce_routes(without_chance(routes[0] + routes[1])),
            "rules": without_chance([rule for rule in rules if "metainfo" not in rule]),
        }
    wanted = {
        "links": sorted(map(adapt_stand_in, links.values()), key=lambda link: link["ifname"]),
        "addresses": sorted(map(reduce_address, without_chance(expected["addresses"])), key=lambda a: a["ifname"]),
        "routes": reduce_routes(without_chance(expected["routes"])),
        "rules": without_chance(expected["rules"]),
    }
    try:
        harness.wait_for(lambda: look() == wanted, "the end state", 30)
    except AssertionError:
        found = look()
        for kind in wanted:
            assert found[kind] == wanted[kind]
        raise


def sysctls(launcher):
    names = ("ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv4/conf/all/arp_ignore", "ipv4/ping_group_range",
             "ipv4/ip_unprivileged_port_start")
    return [test_network.sysctl(launcher, name) for name in names]


def test_end_state_of_masquerade(stage):
    """spec:04-23.1#6 (a), and spec:04-23.3#2"""
    stage.start_handler()
    launcher = start(stage, document([interface("default", "masquerade")], []))
    compare(launcher, "a")
    assert sysctls(launcher) == ["1", "0", "0", "1\t0", "1024"]


def test_end_state_of_masquerade_with_both_families(stage):
    """spec:04-23.1#6 (b)"""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = stage.start_launcher(vmi, test_network.DUAL)
    launcher.ip("-6", "route", "add", "default", "via", "fd10:244::1", "dev", "eth0")
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    compare(launcher, "a", "b")
    assert sysctls(launcher) == ["1", "1", "0", "1\t0", "1024"]


def test_end_state_of_bridge(stage):
    """spec:04-23.1#7 (c)"""
    stage.start_handler()
    vmi = document([interface("default")], [])
    launcher = start(stage, vmi)
    compare(launcher, "c")
    assert sysctls(launcher) == ["0", "0", "1", "1\t0", "1024"]
    test_network.check_dhcp(launcher)
    assert json.loads(cache_of(vmi, "default").read_text())["podIPs"] == ["10.244.0.5"]


def test_end_state_of_secondary_bridge(stage):
    """spec:04-23.1#11 (d)"""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("secondnetwork")], [secondary()])
    launcher = start(stage, vmi, links=[(SECOND, {"mac": SECOND_MAC})])
    compare(launcher, "a", "d")
    assert sysctls(launcher) == ["1", "0", "0", "1\t0", "1024"]
    assert json.loads(dhcp_of(launcher, SECOND).read_text())["IPAMDisabled"] is True
    assert json.loads(cache_of(vmi, "secondnetwork").read_text()) == {"networkState": 2}
    before = launcher.count("SyncVirtualMachine")
    stage.api.patch_vmi({"metadata": {"labels": {"again": "1"}}}, vmi["metadata"]["name"])
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before, "another pass")
    compare(launcher, "a", "d")


# --- other bindings and names

def test_ordinal_names(stage):
    """spec:04-23.1#14 spec:04-23.6#4"""
    stage.start_handler()
    vmi = document([interface("red"), interface("default", "masquerade"), interface("blue", "passtBinding")],
                   [secondary("blue"), secondary("red")])
    launcher = start(stage, vmi, links=[("net1", {"address": "192.168.1.5/24"}), ("net2", {})])
    links = test_network.links_of(launcher)
    assert set(links) == PRIMARY | {"net1", "net1-nic", "k6t-net1", "tap1", "net2"}
    assert links["tap1"]["master"] == links["net1-nic"]["master"] == "k6t-net1"
    assert test_network.addresses_of(launcher, "k6t-net1") == ["169.254.75.10/32"]
    assert json.loads(dhcp_of(launcher, "net1").read_text())["IP"]["IP"] == "192.168.1.5"
    assert json.loads(cache_of(vmi, "red").read_text())["podIP"] == "192.168.1.5"
    assert state_of(vmi, "blue") == 2


def test_secondary_with_both_families(stage):
    """The stand-in has all addresses, the bridge one of its own by the interface's place, the status IPv4 only."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("vf", "sriov"), interface("secondnetwork")],
                   [secondary("vf"), secondary()])
    launcher = start(stage, vmi, links=[(SECOND, {"address": "192.168.1.5/24", "v6": "fd00:1::5/64"})])
    assert test_network.addresses_of(launcher, SECOND) == ["192.168.1.5/24", "fd00:1::5/64"]
    assert test_network.addresses_of(launcher, "k6t-914f438d88d") == ["169.254.75.12/32"]
    assert test_network.addresses_of(launcher, "914f438d88d-nic") == []
    assert test_network.sysctl(launcher, "ipv4/conf/all/arp_ignore") == "1"
    assert json.loads(cache_of(vmi, "secondnetwork").read_text())["podIPs"] == ["192.168.1.5"]
    assert not cache_of(vmi, "vf").exists()


def test_passt(stage):
    """spec:04-23.1#10"""
    stage.start_handler()
    vmi = document([interface("default", "passtBinding")], [])
    launcher = start(stage, vmi, test_network.DUAL)
    assert set(test_network.links_of(launcher)) == {"lo", "eth0"}
    assert sysctls(launcher) == ["0", "0", "0", "107\t107", "0"]
    assert json.loads(cache_of(vmi, "default").read_text())["podIPs"] == ["10.244.0.5", "fd10:244::5"]


def register_plugins(stage):
    binding = {"ours": {"domainAttachmentType": "managedTap"}, "theirs": {"domainAttachmentType": "tap"}}
    stage.api.request("PATCH", harness.KUBEVIRT, {"spec": {"configuration": {"network": {"binding": binding}}}},
                      "application/merge-patch+json")


def test_managed_tap(stage):
    """spec:04-23.1#24: links as of a bridge, no address of its own, no DHCP data, both families in the status."""
    register_plugins(stage)
    stage.start_handler()
    vmi = document([interface("default", plugin="ours")], [])
    launcher = start(stage, vmi, test_network.DUAL)
    assert set(test_network.links_of(launcher)) == {"lo", "eth0", "eth0-nic", "k6t-eth0", "tap0"}
    assert test_network.addresses_of(launcher, "k6t-eth0") == []
    assert test_network.addresses_of(launcher, "eth0") == ["10.244.0.5/24", "fd10:244::5/64"]
    assert sysctls(launcher) == ["0", "0", "1", "1\t0", "1024"]
    assert not dhcp_of(launcher, "eth0").exists()
    assert json.loads(cache_of(vmi, "default").read_text())["podIPs"] == ["10.244.0.5", "fd10:244::5"]


def test_other_plugins_make_their_own_links(stage):
    """Not even the pod's link need be there."""
    register_plugins(stage)
    stage.start_handler()
    vmi = document([interface("default", plugin="theirs"), interface("b", plugin="unknown")],
                   [secondary("b")])
    launcher = start(stage, vmi)
    assert set(test_network.links_of(launcher)) == {"lo", "eth0"}
    assert sysctls(launcher) == ["0", "0", "0", "1\t0", "1024"]
    assert json.loads(cache_of(vmi, "default").read_text())["podIP"] == "10.244.0.5"
    assert json.loads(cache_of(vmi, "b").read_text()) == {"networkState": 2}


def test_sriov_alone_asks_nothing(stage):
    """spec:04-23.1#17 spec:04-23.4#5: the pod is not entered."""
    handler = stage.start_handler()
    vmi = document([interface("vf", "sriov")], [])
    vmi["spec"]["networks"] = [secondary("vf")]
    vmi["spec"]["domain"]["devices"]["autoattachPodInterface"] = False
    launcher = start(stage, vmi)
    assert set(test_network.links_of(launcher)) == {"lo", "eth0"}
    assert not cache_of(vmi, "vf").parent.exists()
    assert "network set up" not in handler.text()


def test_port_ranges(stage):
    """spec:04-23.3#5"""
    stage.api.request("PATCH", harness.KUBEVIRT, {"spec": {"configuration": {"developerConfiguration": {"featureGates": ["PortRangesSpec"]}}}},
                      "application/merge-patch+json")
    stage.start_handler()
    vmi = document([interface("default", "masquerade", portRanges=[{"protocol": "TCP", "start": 80, "end": 81}])], [])
    rules = test_network.rules_of(start(stage, vmi))
    assert rules["KUBEVIRT_PREINBOUND"] == ["tcp dport 80-81 counter dnat to 10.0.2.2"]
    assert rules["KUBEVIRT_POSTINBOUND"] == ["tcp dport 80-81 ip saddr 127.0.0.1 counter snat to 10.0.2.1"]
    assert rules["output"] == ["ip daddr 127.0.0.1 tcp dport 80-81 counter dnat to 10.0.2.2"]


def test_link_that_is_to_be_down_in_the_guest(stage):
    """spec:04-23.9#12"""
    stage.start_handler()
    launcher = start(stage, document([interface("default", "masquerade", state="down")], []))
    compare(launcher, "a")


def test_bridge_on_a_primary_link_of_another_name(stage):
    """spec:04-23.1#8 spec:04-23.6#3"""
    stage.start_handler()
    vmi = document([interface("default")], [])
    vmi["status"]["interfaces"] = [{"name": "default", "podInterfaceName": "cust-iface"}]
    launcher = stage.start_launcher(vmi)
    add_link(launcher, "cust-iface", mac=POD_MAC, address="10.244.0.5/24")
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    assert set(test_network.links_of(launcher)) == {"lo", "cust-iface", "cust-iface-nic", "k6t-cust-iface", "tap0"}
    assert json.loads(dhcp_of(launcher, "cust-iface").read_text())["IP"]["IP"] == "10.244.0.5"


def test_each_state_of_a_network(stage):
    """spec:04-23.2#2: the finished is left alone, those that are started and pending are set up, a state of a later version is left alone."""
    stage.start_handler()
    names = ("blue", "red", "secondnetwork", "network1")
    vmi = document([interface("default", "masquerade"), *map(interface, names)], list(map(secondary, names)))
    cache_of(vmi, "blue").parent.mkdir(parents=True)
    for name, state in (("blue", 2), ("red", 1), ("network1", 7)):
        cache_of(vmi, name).write_text(json.dumps({"networkState": state}))
    launcher = start(stage, vmi, links=[("pod16477688c0e", {}), ("podb1f51a511f1", {}), (SECOND, {}), ("poda7662f44d65", {})])
    red = {"b1f51a511f1-nic", "k6t-b1f51a511f1", "tapb1f51a511f1", "podb1f51a511f1"}
    assert set(test_network.links_of(launcher)) == PRIMARY | PLUGGED | red | {"pod16477688c0e", "poda7662f44d65"}
    assert [state_of(vmi, name) for name in names] == [2, 2, 2, 7]


@pytest.mark.parametrize("own_ip,expected", [(None, ["10.244.0.5", "fd10:244::5"]), ("10.0.0.1", ["10.244.0.5", "fd10:244::5"]),
                                             ("fd00::1", ["fd10:244::5", "10.244.0.5"])])
def test_order_of_the_families(stage, own_ip, expected):
    """spec:04-23.9#7: that of the agent's own address; nobody says which: IPv4 first."""
    env = {key: value for key, value in os.environ.items() if key != "MY_POD_IP"}
    stage.start_handler(env=env if own_ip is None else dict(env, MY_POD_IP=own_ip))
    vmi = document([interface("default", "masquerade")], [])
    start(stage, vmi, test_network.DUAL)
    cache = json.loads(cache_of(vmi, "default").read_text())
    assert (cache["podIP"], cache["podIPs"]) == (expected[0], expected)


# --- a running VM

def put_spec(stage, vmi, interfaces, networks, sources):
    """What virt-controller does: the new spec, and what multus says of the pod. @sources: infoSource by interface"""
    name = vmi["metadata"]["name"]
    status = {entry.get("name"): entry for entry in stage.api.vmi(name)["status"].get("interfaces", [])}
    for key, source in sources.items():
        status[key] = {**status.get(key, {"name": key}), "infoSource": source}
    stage.api.patch_vmi({"spec": {"domain": {"devices": {"interfaces": interfaces}}, "networks": [{"name": "default", "pod": {}}, *networks]},
                         "status": {"interfaces": [entry for entry in status.values() if entry]}}, name)


def plug(stage, vmi, *names):
    put_spec(stage, vmi, [interface("default", "masquerade"), *map(interface, names)], [secondary(name) for name in names],
             {name: "multus-status" for name in names})


def unplug(stage, vmi, *names):
    put_spec(stage, vmi, [interface("default", "masquerade"), *(interface(name, state="absent") for name in names)],
             [secondary(name) for name in names], {name: "multus-status" for name in names})


def wait_state(vmi, network, state):
    harness.wait_for(lambda: state_of(vmi, network) == state, f"state {state} of {network}")


def test_plugged_into_a_running_vm(stage):
    """spec:04-23.1#12: the primary's rules are not made twice; the launcher hears of it afterwards."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = start(stage, vmi)
    add_link(launcher, SECOND, mac=SECOND_MAC)
    before = launcher.count("SyncVirtualMachine")
    plug(stage, vmi, "secondnetwork")
    wait_state(vmi, "secondnetwork", 2)
    compare(launcher, "a", "d")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before, "the launcher to be told")
    assert test_network.messages(stage, "NicHotplug") == []
    assert state_of(vmi, "default") == 2


def test_plug_waits_for_the_link(stage):
    """spec:04-23.1#5 field:FR-H04: told, tolerated, done when the link is there; the condition says so meanwhile."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    name = vmi["metadata"]["name"]
    launcher = start(stage, vmi)
    plug(stage, vmi, "secondnetwork")
    text = f"setup failed, err: pod link ({SECOND}) is missing: network secondnetwork has neither {SECOND} nor net1 in the pod"
    harness.wait_for(lambda: text in test_network.messages(stage, "NicHotplug"), "the event")
    harness.wait_for(lambda: stage.api.condition("Synchronized", name).get("message") == text, "the condition")
    before = launcher.count("SyncVirtualMachine")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before, "the launcher to be told all the same")
    assert not cache_of(vmi, "secondnetwork").exists()
    add_link(launcher, SECOND, mac=SECOND_MAC)
    wait_state(vmi, "secondnetwork", 2)
    compare(launcher, "a", "d")
    harness.wait_for(lambda: not stage.api.condition("Synchronized", name), "the condition to go")
    assert stage.api.phase(name) == "Running"


def test_critical_error_leaves_a_running_vm_alone(stage):
    """spec:04-23.9#6 spec:04-23.1#22: with us it is finished when what was in the way is gone."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    name = vmi["metadata"]["name"]
    launcher = start(stage, vmi)
    add_link(launcher, SECOND, mac=SECOND_MAC)
    launcher.ip("link", "add", "k6t-914f438d88d", "type", "veth", "peer", "name", "other")
    plug(stage, vmi, "secondnetwork")
    text = "setup failed, err: Critical network error: type collision on link k6t-914f438d88d: actual veth, requested bridge"
    harness.wait_for(lambda: text in test_network.messages(stage, "NicHotplug"), "the event")
    assert [state_of(vmi, network) for network in ("default", "secondnetwork")] == [2, 1]
    assert stage.api.phase(name) == "Running" and test_network.messages(stage, "Stopped") == []
    launcher.ip("link", "delete", "k6t-914f438d88d")
    wait_state(vmi, "secondnetwork", 2)
    compare(launcher, "a", "d")
    assert stage.api.phase(name) == "Running"


def test_unplugged_and_plugged_again(stage):
    """spec:04-23.1#13 spec:04-23.1#20 spec:04-23.5#2 field:FR-H12: the nic stays for CNI; before that is done the network cannot come back."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("secondnetwork")], [secondary()])
    launcher = start(stage, vmi, links=[(SECOND, {"address": "192.168.1.5/24"})])
    assert set(test_network.links_of(launcher)) == PRIMARY | PLUGGED
    assert dhcp_of(launcher, SECOND).exists()
    unplug(stage, vmi, "secondnetwork")
    harness.wait_for(lambda: not cache_of(vmi, "secondnetwork").exists(), "the state to go")
    assert set(test_network.links_of(launcher)) == PRIMARY | {"914f438d88d-nic"}
    assert not dhcp_of(launcher, SECOND).exists()
    assert test_network.rules_of(launcher) == test_network.MASQUERADED
    assert state_of(vmi, "default") == 2
    plug(stage, vmi, "secondnetwork")
    text = f"setup failed, err: pod link ({SECOND}) is missing: network secondnetwork has neither {SECOND} nor net1 in the pod"
    harness.wait_for(lambda: text in test_network.messages(stage, "NicHotplug"), "the event")
    launcher.ip("link", "delete", "914f438d88d-nic")
    add_link(launcher, SECOND, mac=SECOND_MAC)
    wait_state(vmi, "secondnetwork", 2)
    compare(launcher, "a", "d")


def test_unplugged_beside_others(stage):
    """spec:04-23.1#18 spec:04-23.1#19"""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("blue"), interface("red")], [secondary("blue"), secondary("red")])
    launcher = start(stage, vmi, links=[("pod16477688c0e", {}), ("podb1f51a511f1", {})])
    red = {"b1f51a511f1-nic", "k6t-b1f51a511f1", "tapb1f51a511f1", "podb1f51a511f1"}
    put_spec(stage, vmi, [interface("default", "masquerade"), interface("blue", state="absent"), interface("red")],
             [secondary("blue"), secondary("red")], {"blue": "multus-status", "red": "domain, multus-status"})
    harness.wait_for(lambda: not cache_of(vmi, "blue").exists(), "the state of blue to go")
    assert set(test_network.links_of(launcher)) == PRIMARY | {"16477688c0e-nic"} | red
    assert [state_of(vmi, network) for network in ("default", "red")] == [2, 2]
    unplug(stage, vmi, "blue", "red")
    harness.wait_for(lambda: not cache_of(vmi, "red").exists(), "the state of red to go")
    assert set(test_network.links_of(launcher)) == PRIMARY | {"16477688c0e-nic", "b1f51a511f1-nic"}
    assert [path.name for path in cache_of(vmi, "default").parent.iterdir()] == ["default"]


def test_unplugged_while_half_made(stage):
    """spec:04-23.1#21: what an agent left that died in between; and the right one of two with ordinal names."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("blue"), interface("red")], [secondary("blue"), secondary("red")])
    launcher = start(stage, vmi, links=[("net1", {}), ("net2", {})])
    cache_of(vmi, "red").write_text('{"networkState": 1}')
    launcher.ip("link", "delete", "net2")
    launcher.ip("link", "set", "net2-nic", "nomaster")
    put_spec(stage, vmi, [interface("default", "masquerade"), interface("blue"), interface("red", state="absent")],
             [secondary("blue"), secondary("red")], {"red": "multus-status", "blue": "domain, multus-status"})
    harness.wait_for(lambda: not cache_of(vmi, "red").exists(), "the state to go")
    assert set(test_network.links_of(launcher)) == PRIMARY | {"net1", "net1-nic", "k6t-net1", "tap1", "net2-nic"}


def test_unplug_that_fails(stage):
    """field:FR-H13: each time, until what is in the way is gone; told, and other changes reach the launcher meanwhile."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("secondnetwork")], [secondary()])
    name = vmi["metadata"]["name"]
    launcher = start(stage, vmi, links=[(SECOND, {})])
    obstacle = dhcp_of(launcher, SECOND)
    obstacle.unlink(missing_ok=True)
    (obstacle / "in-the-way").mkdir(parents=True)
    unplug(stage, vmi, "secondnetwork")
    harness.wait_for(lambda: test_network.messages(stage, "NicHotplug"), "the event")
    harness.wait_for(lambda: SECOND in stage.api.condition("Synchronized", name).get("message", ""), "the condition")
    before = launcher.count("SyncVirtualMachine")
    stage.api.patch_vmi({"spec": {"terminationGracePeriodSeconds": 7}}, name)
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before, "the launcher to be told of another change")
    assert cache_of(vmi, "secondnetwork").exists() and stage.api.phase(name) == "Running"
    (obstacle / "in-the-way").rmdir()
    obstacle.rmdir()
    harness.wait_for(lambda: not cache_of(vmi, "secondnetwork").exists(), "the state to go")
    harness.wait_for(lambda: not stage.api.condition("Synchronized", name), "the condition to go")


def test_unplug_that_an_agent_left_half_done(stage):
    """04 §13.2: the first of the two files was gone, and the network left the VMI meanwhile: one of its name can come back."""
    handler = stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("secondnetwork")], [secondary()])
    launcher = start(stage, vmi, links=[(SECOND, {"address": "192.168.1.5/24"})])
    state = cache_of(vmi, "secondnetwork").read_text()
    unplug(stage, vmi, "secondnetwork")
    harness.wait_for(lambda: not cache_of(vmi, "secondnetwork").exists(), "the state to go")
    handler.stop()
    cache_of(vmi, "secondnetwork").write_text(state)
    launcher.ip("link", "delete", "914f438d88d-nic")
    put_spec(stage, vmi, [interface("default", "masquerade")], [], {})
    stage.start_handler()
    add_link(launcher, SECOND, mac=SECOND_MAC, address="192.168.1.6/24")
    plug(stage, vmi, "secondnetwork")
    harness.wait_for(lambda: PLUGGED <= set(test_network.links_of(launcher)), "the links")
    wait_state(vmi, "secondnetwork", 2)
    assert "192.168.1.6" in cache_of(vmi, "secondnetwork").read_text() and dhcp_of(launcher, SECOND).exists()


def test_unplug_of_what_was_only_prepared(stage):
    """An agent that ends after it wrote the DHCP server's file, and before the state, leaves the file."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = start(stage, vmi)
    dhcp_of(launcher, SECOND).write_text("{}")
    unplug(stage, vmi, "secondnetwork")
    harness.wait_for(lambda: not dhcp_of(launcher, SECOND).exists(), "the file to go")
    assert not cache_of(vmi, "secondnetwork").exists()


def test_absent_from_the_start(stage):
    """spec:04-23.9#9 spec:04-23.5#2"""
    stage.start_handler()
    vmi = document([interface("default", "masquerade"), interface("secondnetwork", state="absent")], [secondary()])
    launcher = start(stage, vmi)
    compare(launcher, "a")
    assert not cache_of(vmi, "secondnetwork").exists()


# --- errors at the start

def test_pod_that_cannot_be_read(stage):
    """spec:04-23.1#1 spec:04-23.4#5: more addresses than anybody has; nothing is done meanwhile."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = stage.start_launcher(vmi, test_network.NET)
    many = "".join(f"address add 10.77.{i // 250}.{i % 250 + 1}/32 dev lo\n" for i in range(1100))
    subprocess.run(["nsenter", "-t", str(launcher.popen.pid), "-n", "--", "ip", "-batch", "-"], input=many, text=True, check=True)
    stage.create(vmi)
    harness.wait_for(lambda: any("more than 1024 of a kind" in m for m in test_network.messages(stage, "SyncFailed")), "the event")
    assert set(test_network.links_of(launcher)) == {"lo", "eth0"}
    assert not cache_of(vmi, "default").exists()
    launcher.ip("address", "flush", "dev", "lo")
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    compare(launcher, "a")


def test_rules_that_cannot_be_set(stage):
    """spec:04-23.1#4 spec:04-23.3#1: the table belongs to another program."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = stage.start_launcher(vmi, test_network.NET)
    owner = subprocess.Popen(["nsenter", "-t", str(launcher.popen.pid), "-n", "--", "nft", "-i"], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, text=True)
    owner.stdin.write("add table ip nat { flags owner; }\n")
    owner.stdin.flush()
    harness.wait_for(lambda: "nat" in launcher.in_network("nft", "list", "tables"), "the table")
    stage.create(vmi)
    stage.api.wait_phase("Failed", vmi["metadata"]["name"])
    start_of = "failed to configure vmi network: setup failed, err: Critical network error: setup-nat: rules of table ip nat"
    harness.wait_for(lambda: any(m.startswith(start_of) for m in test_network.messages(stage, "SyncFailed")), "the event")
    owner.kill()
    owner.wait()


def test_launcher_dies_before_its_network_is_there(stage):
    """spec:04-23.9#5: nothing that could be said of the network; the next launcher of the pod is as good."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    harness.wait_for(lambda: test_network.messages(stage, "SyncFailed"), "the first attempt")
    launcher.stop(signal.SIGKILL)
    launcher = stage.start_launcher(vmi, test_network.NET)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    compare(launcher, "a")
    assert test_network.messages(stage, "Stopped") == []

@pytest.mark.parametrize("binding", ["bridge", "masquerade", "passtBinding"])
def test_other_link_only(stage, binding):
    """spec:04-23.1#5"""
    stage.start_handler()
    vmi = document([interface("default", binding)], [])
    launcher = stage.start_launcher(vmi)
    launcher.ip("link", "add", "other0", "type", "veth", "peer", "name", "other1")
    stage.create(vmi)
    text = "failed to configure vmi network: setup failed, err: pod link (eth0) is missing"
    stage.api.wait_event("SyncFailed", text)
    assert stage.api.phase(vmi["metadata"]["name"]) == "Scheduled"


def test_no_binding(stage):
    """spec:04-23.1#3: not critical."""
    stage.start_handler()
    vmi = document([interface("default", "slirp")], [])
    stage.start_launcher(vmi, test_network.NET)
    stage.create(vmi)
    harness.wait_for(lambda: any("undefined binding method" in m for m in test_network.messages(stage, "SyncFailed")), "the event")
    assert stage.api.phase(vmi["metadata"]["name"]) == "Scheduled"


def test_damaged_cache_file(stage):
    """spec:04-23.9#11: told on each attempt, until the file is gone."""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    cache_of(vmi, "default").parent.mkdir(parents=True)
    cache_of(vmi, "default").write_text('{"networkState":')
    launcher = stage.start_launcher(vmi, test_network.NET)
    stage.create(vmi)
    harness.wait_for(lambda: any("error unmarshaling cached object" in m for m in test_network.messages(stage, "SyncFailed")), "the event")
    assert set(test_network.links_of(launcher)) == {"lo", "eth0"}
    cache_of(vmi, "default").unlink()
    stage.api.wait_phase("Running", vmi["metadata"]["name"])


@pytest.mark.parametrize("what,text", [
    ({"vmNetworkCIDR": "10.0.2.0/31"}, "VM CIDR subnet is too small, at least 2 host addresses are required: 10.0.2.0/31"),
    ({"vmNetworkCIDR": "nonsense"}, "failed to parse VM CIDR: nonsense, invalid CIDR address: nonsense"),
    ("podInterfaceName", "LinkAdd: numerical result out of range: a link cannot be named k6t-cust-iface-1"),
])
def test_what_cannot_be_made(stage, what, text):
    """spec:04-23.9#2 spec:04-23.1#2"""
    stage.start_handler()
    vmi = document([interface("default", "masquerade")], [])
    launcher = stage.start_launcher(vmi, test_network.NET)
    if what == "podInterfaceName":
        launcher.ip("link", "set", "eth0", "down")
        launcher.ip("link", "set", "eth0", "name", "cust-iface-1")
        vmi["status"]["interfaces"] = [{"name": "default", "podInterfaceName": "cust-iface-1"}]
    else:
        vmi["spec"]["networks"][0]["pod"] = what
    stage.create(vmi)
    stage.api.wait_phase("Failed", vmi["metadata"]["name"])
    stage.api.wait_event("SyncFailed", f"failed to configure vmi network: setup failed, err: Critical network error: {text}")


@pytest.mark.parametrize("routes,text", [
    ((), "no gateway address found in routes for eth0"),
    ((("blackhole", "10.9.0.0/16"),), "no gateway address found in routes for eth0"),
])
def test_bridge_without_routes(stage, routes, text):
    """spec:04-23.9#1: a route to nowhere is none."""
    stage.start_handler()
    vmi = document([interface("default")], [])
    launcher = stage.start_launcher(vmi, test_network.NET)
    launcher.ip("-4", "route", "flush", "dev", "eth0")
    for route in routes:
        launcher.ip("route", "add", *route)
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", f"failed to configure vmi network: setup failed, err: {text}")
    assert stage.api.phase(vmi["metadata"]["name"]) == "Scheduled"
    launcher.ip("route", "add", "10.244.0.0/24", "dev", "eth0")
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    config = json.loads(dhcp_of(launcher, "eth0").read_text())
    assert config["Gateway"] == "" and config["Routes"] is None
