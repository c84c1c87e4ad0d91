# SPDX-License-Identifier: Apache-2.0
"""The pod network: end states of specification 04 §22, errors, and that a set-up which is cut off anywhere is finished later."""
import base64
import json
import os
import pathlib
import signal
import time

import harness
import pytest

POD_MAC = "0a:58:0a:f4:00:05"
NET = {"address": "10.244.0.5/24", "mac": POD_MAC, "mtu": 1450}
DUAL = dict(NET, v6="fd10:244::5/64")
KINDS = ("dummy", "bridge")  # a kernel without dummy links gets a bridge for one


def document(binding, ports=(), index=1, **changes):
    """VMI number index with one interface on the pod network."""
    vmi = harness.numbered(index, **changes)
    vmi["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", binding: {}, "model": "virtio"}]
    if ports:
        vmi["spec"]["domain"]["devices"]["interfaces"][0]["ports"] = list(ports)
    vmi["spec"]["networks"] = [{"name": "default", "pod": {}}]
    return vmi


def cache_of(vmi):
    return harness.PRIVATE / "network-info-cache" / vmi["metadata"]["uid"] / "default"


def read_cache(vmi):
    return json.loads(cache_of(vmi).read_text())


def links_of(launcher):
    return {link["ifname"]: link for link in json.loads(launcher.ip("-d", "-j", "link"))}


def addresses_of(launcher, name):
    """What is not the kernel's own link-local address."""
    entries = [e for e in json.loads(launcher.ip("-j", "addr")) if e["ifname"] == name]
    return sorted(f"{i['local']}/{i['prefixlen']}" for i in entries[0]["addr_info"] if i["scope"] == "global")


def rules_of(launcher, family="ip"):
    """Each chain's rules as text, without counters."""
    text = launcher.in_network("nft", "list", "table", family, "nat")
    chains, name = {}, None
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["chain"]:
            name = words[1]
            chains[name] = []
        elif name and words and words[0] not in ("type", "}"):
            for key in ("packets", "bytes"):
                while key in words:
                    del words[words.index(key):words.index(key) + 2]
            chains[name].append(" ".join(words))
    return chains


def sysctl(launcher, name):
    return launcher.in_network("cat", f"/proc/sys/net/{name}").strip()


def run(stage, vmi, network):
    return stage.run_vm(vmi=vmi, network=network)[1]


MASQUERADED = {
    "prerouting": ['iifname "eth0" counter jump KUBEVIRT_PREINBOUND'],
    "input": [],
    "output": ["ip daddr 127.0.0.1 counter dnat to 10.0.2.2"],
    "postrouting": ["ip saddr 10.0.2.2 counter masquerade", 'oifname "k6t-eth0" counter jump KUBEVIRT_POSTINBOUND'],
    "KUBEVIRT_PREINBOUND": ["counter dnat to 10.0.2.2"],
    "KUBEVIRT_POSTINBOUND": ["ip saddr 127.0.0.1 counter snat to 10.0.2.1"],
}


def check_masquerade(launcher):
    """Specification 04 §22 (a), with migrationTransport Unix."""
    links = links_of(launcher)
    assert set(links) == {"lo", "eth0", "k6t-eth0", "tap0"}
    assert links["eth0"]["address"] == POD_MAC
    assert links["k6t-eth0"]["address"] == "02:00:00:00:00:00"
    assert links["tap0"]["master"] == "k6t-eth0"
    assert links["tap0"]["linkinfo"]["info_slave_data"]["learning"] is True
    assert {link["mtu"] for name, link in links.items() if name != "lo"} == {1450}
    assert all("UP" in links[name]["flags"] for name in ("eth0", "k6t-eth0", "tap0"))
    assert "10.244.0.5/24" in addresses_of(launcher, "eth0")
    assert "10.0.2.1/24" in addresses_of(launcher, "k6t-eth0")
    assert rules_of(launcher) == MASQUERADED
    assert sysctl(launcher, "ipv4/ip_forward") == "1"
    assert sysctl(launcher, "ipv4/conf/k6t-eth0/route_localnet") == "1"
    assert sysctl(launcher, "ipv4/conf/all/route_localnet") == "0"
    assert sysctl(launcher, "ipv4/conf/all/arp_ignore") == "0"


def check_bridge(launcher):
    """Specification 04 §22 (c)."""
    links = links_of(launcher)
    nic, bridge, tap, stand_in = (links[name] for name in ("eth0-nic", "k6t-eth0", "tap0", "eth0"))
    assert set(links) == {"lo", "eth0", "eth0-nic", "k6t-eth0", "tap0"}
    assert nic["linkinfo"]["info_kind"] == "veth" and nic["master"] == "k6t-eth0"
    assert nic["linkinfo"]["info_slave_data"]["learning"] is False
    assert nic["linkinfo"]["info_slave_data"]["state"] == "forwarding"
    assert nic["address"] != POD_MAC and "UP" in nic["flags"] and nic["mtu"] == 1450
    assert "UP" in bridge["flags"] and bridge["mtu"] == 1450
    assert tap["master"] == "k6t-eth0" and "UP" in tap["flags"] and tap["mtu"] == 1450
    assert tap["linkinfo"]["info_slave_data"]["learning"] is True
    assert stand_in["linkinfo"]["info_kind"] in KINDS and "UP" not in stand_in["flags"]
    assert stand_in["address"] == POD_MAC and stand_in["mtu"] == 1450
    assert addresses_of(launcher, "eth0-nic") == []
    assert addresses_of(launcher, "k6t-eth0") == ["169.254.75.10/32"]
    assert "10.244.0.5/24" in addresses_of(launcher, "eth0")
    local = [r["dst"] for r in json.loads(launcher.ip("-j", "-4", "route", "show", "table", "all")) if r["dev"] != "lo"]
    assert sorted(local) == ["10.244.0.5", "169.254.75.10"]
    nft = json.loads(launcher.in_network("nft", "-j", "list", "ruleset"))["nftables"]
    assert [list(entry)[0] for entry in nft] == ["metainfo"]
    assert sysctl(launcher, "ipv4/conf/all/arp_ignore") == "1"
    assert sysctl(launcher, "ipv4/ip_forward") == "0"


def check_dhcp(launcher):
    path = launcher.root / "run/kubevirt-private/vif-cache-eth0.json"
    config = json.loads(path.read_text())
    assert list(config) == ["Name", "IP", "IPv6", "MAC", "AdvertisingIPAddr", "AdvertisingIPv6Addr", "Routes", "Mtu", "IPAMDisabled",
                            "Gateway", "Subdomain"]
    assert config["IP"] == {"IP": "10.244.0.5", "Mask": "////AA==", "Label": "", "Flags": 0, "Scope": 0, "Peer": None, "Broadcast": "",
                            "PreferedLft": 0, "ValidLft": 0, "LinkIndex": 0}
    assert "IP" not in config["IPv6"]
    assert base64.b64decode(config["MAC"]).hex(":") == POD_MAC
    assert config["Gateway"] == "10.244.0.1" and config["IPAMDisabled"] is False
    assert [(r["Dst"], r["Gw"]) for r in config["Routes"]] == [(None, "10.244.0.1")]
    assert len(config["Routes"][0]) == 37
    info = path.stat()
    assert (oct(info.st_mode & 0o777), info.st_uid, info.st_gid) == ("0o604", 107, 107)


def test_masquerade(stage):
    """spec:04-23.5#4 field:FR-H18"""
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = run(stage, vmi, NET)
    check_masquerade(launcher)
    assert "ip6" not in launcher.in_network("nft", "list", "tables")
    cache = read_cache(vmi)
    assert cache == {"iface": vmi["spec"]["domain"]["devices"]["interfaces"][0], "podIP": "10.244.0.5", "podIPs": ["10.244.0.5"],
                     "networkState": 2}


def test_masquerade_of_both_families(stage):
    """spec:04-23.9#7 field:FR-H17: nobody told the agent its own address: IPv4 comes first"""
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = run(stage, vmi, DUAL)
    check_masquerade(launcher)
    assert addresses_of(launcher, "k6t-eth0") == ["10.0.2.1/24", "fd10:0:2::1/120"]
    text = json.dumps(MASQUERADED).replace("ip saddr", "ip6 saddr").replace("ip daddr", "ip6 daddr")
    for v4, v6 in (("127.0.0.1", "::1"), ("10.0.2.1", "fd10:0:2::1"), ("10.0.2.2", "fd10:0:2::2")):
        text = text.replace(v4, v6)
    assert rules_of(launcher, "ip6") == json.loads(text)
    assert sysctl(launcher, "ipv6/conf/all/forwarding") == "1"
    assert read_cache(vmi)["podIPs"] == ["10.244.0.5", "fd10:244::5"]


def test_masquerade_of_ipv6_only(stage):
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = run(stage, vmi, dict(DUAL, address=None))
    assert addresses_of(launcher, "k6t-eth0") == ["fd10:0:2::1/120"]
    assert launcher.in_network("nft", "list", "tables").split() == ["table", "ip6", "nat"]
    assert sysctl(launcher, "ipv4/ip_forward") == "0"
    assert read_cache(vmi)["podIP"] == "fd10:244::5"


def test_masquerade_without_ipv6_in_the_pod(stage):
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi)
    launcher.in_network("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
    launcher.give_network(**NET)
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    check_masquerade(launcher)


def test_own_networks_queues_and_root(stage):
    """spec:04-23.5#7"""
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix", runtimeUser=0)
    vmi["spec"]["networks"][0]["pod"] = {"vmNetworkCIDR": "192.168.7.0/30", "vmIPv6NetworkCIDR": "fd00:7::/64"}
    vmi["spec"]["domain"]["devices"]["networkInterfaceMultiqueue"] = True
    vmi["spec"]["domain"]["cpu"] = {"cores": 2}
    launcher = run(stage, vmi, DUAL)
    assert addresses_of(launcher, "k6t-eth0") == ["192.168.7.1/30", "fd00:7::1/64"]
    assert rules_of(launcher)["KUBEVIRT_PREINBOUND"] == ["counter dnat to 192.168.7.2"]
    tap = links_of(launcher)["tap0"]
    assert tap["linkinfo"]["info_data"]["multi_queue"] is True and tap["linkinfo"]["info_data"]["pi"] is False
    assert tap["linkinfo"]["info_data"]["user"] in ("root", 0, "0") and tap["num_tx_queues"] == 256


def test_istio(stage):
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    vmi["metadata"].setdefault("annotations", {})["sidecar.istio.io/inject"] = "True"
    rules = rules_of(run(stage, vmi, NET))
    ports = "tcp dport { 15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090 } ip saddr 127.0.0.1 counter return"
    assert rules["output"] == [ports, "ip daddr { 10.244.0.5, 127.0.0.1 } counter dnat to 10.0.2.2"]
    assert rules["KUBEVIRT_PREINBOUND"] == ["tcp dport 22 counter dnat to 10.0.2.2"]
    assert rules["KUBEVIRT_POSTINBOUND"] == [ports, "ip saddr { 127.0.0.1, 127.0.0.6 } counter snat to 10.0.2.1"]


def test_node_without_ipv6(stage):
    """field:FR-H01: neither a file nor a rule of IPv6 is missed."""
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi)
    launcher.in_network("mount", "-t", "tmpfs", "none", "/proc/sys/net/ipv6")
    try:
        launcher.give_network(**NET)
        stage.create(vmi)
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        assert rules_of(launcher) == MASQUERADED
        assert [table["table"]["family"] for table in json.loads(launcher.in_network("nft", "-j", "list", "tables"))["nftables"]
                if "table" in table] == ["ip"]
        assert os.listdir("/proc/sys/net/ipv6") != []
    finally:
        launcher.in_network("umount", "/proc/sys/net/ipv6")


def test_mtu_beyond_what_a_tap_takes(stage):
    """field:FR-H03"""
    stage.start_handler()
    launcher = run(stage, document("masquerade"), dict(NET, mtu=65535))
    links = links_of(launcher)
    assert links["eth0"]["mtu"] == links["k6t-eth0"]["mtu"] == 65535
    assert links["tap0"]["mtu"] == 65521


def test_bridge(stage):
    """spec:04-23.5#1 spec:04-23.5#3 spec:04-23.5#4"""
    stage.start_handler()
    vmi = document("bridge")
    launcher = run(stage, vmi, DUAL)
    check_bridge(launcher)
    assert addresses_of(launcher, "eth0") == ["10.244.0.5/24", "fd10:244::5/64"]
    check_dhcp(launcher)
    assert read_cache(vmi)["podIPs"] == ["10.244.0.5"]


def test_bridge_without_addresses(stage):
    """spec:04-23.5#1"""
    stage.start_handler()
    vmi = document("bridge")
    launcher = run(stage, vmi, dict(NET, address=None))
    assert addresses_of(launcher, "k6t-eth0") == []
    assert sysctl(launcher, "ipv4/conf/all/arp_ignore") == "0"
    config = json.loads((launcher.root / "run/kubevirt-private/vif-cache-eth0.json").read_text())
    assert config["IPAMDisabled"] is True and config["MAC"] is None and config["Routes"] is None
    assert read_cache(vmi) == {"networkState": 2}


def test_bridge_with_two_addresses_of_a_subnet(stage):
    """spec:04-23.9#3: deleting the first removes the second too, which is fine with us."""
    stage.start_handler()
    vmi = document("bridge")
    launcher = stage.start_launcher(vmi, NET)
    launcher.ip("address", "add", "10.244.0.6/24", "dev", "eth0")
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    assert addresses_of(launcher, "eth0-nic") == []
    assert addresses_of(launcher, "eth0") == ["10.244.0.5/24", "10.244.0.6/24"]


def messages(stage, reason):
    return [event["message"] for event in stage.api.events() if event["reason"] == reason]


def test_missing_pod_link_is_waited_for(stage):
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    text = "failed to configure vmi network: setup failed, err: pod link (eth0) is missing"
    harness.wait_for(lambda: text in messages(stage, "SyncFailed"), "the event")
    assert stage.api.phase(vmi["metadata"]["name"]) == "Scheduled"
    launcher.give_network(**NET)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    check_masquerade(launcher)


def test_critical_error_ends_the_vm(stage):
    """spec:01#25 spec:02-14.1#22 spec:04-23.8#5 spec:04-23.5#7"""
    stage.start_handler()
    vmi = document("masquerade")
    launcher = stage.start_launcher(vmi, NET)
    launcher.ip("link", "add", "k6t-eth0", "type", "veth", "peer", "name", "other")
    stage.create(vmi)
    stage.api.wait_phase("Failed", vmi["metadata"]["name"])
    text = ("failed to configure vmi network: setup failed, err: Critical network error: type collision on link k6t-eth0: actual veth, "
            "requested bridge")
    harness.wait_for(lambda: messages(stage, "Stopped"), "the last event")
    assert messages(stage, "SyncFailed") == [text]
    assert messages(stage, "Stopped") == ["The VirtualMachineInstance crashed."]


def test_cache_goes_with_the_vm(stage):
    stage.start_handler()
    vmi = document("masquerade", grace=0)
    launcher = run(stage, vmi, NET)
    assert cache_of(vmi).exists()
    stage.api.request("DELETE", f"{harness.VMIS}/{vmi['metadata']['name']}")
    launcher.wait()
    harness.wait_for(lambda: not cache_of(vmi).parent.exists(), "the cache to go")
    assert (harness.PRIVATE / "network-info-cache").is_dir()


def test_finished_network_is_left_alone(stage):
    """spec:04-23.4#5: what the Go agent finished, too: nobody enters the pod again."""
    handler = stage.start_handler()
    vmi = document("masquerade")
    cache_of(vmi).parent.mkdir(parents=True)
    cache_of(vmi).write_text('{"networkState": 2}')
    launcher = run(stage, vmi, NET)
    assert set(links_of(launcher)) == {"lo", "eth0"}
    assert "network set up" not in handler.text()


def test_what_a_killed_go_agent_left_is_finished(stage):
    """It makes links and rules one by one, and its own next start fails the VM."""
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi, NET)
    launcher.ip("link", "add", "k6t-eth0", "type", "bridge")
    launcher.ip("address", "add", "10.0.2.1/24", "brd", "+", "dev", "k6t-eth0")
    for command in ("add table ip nat", "add chain ip nat prerouting { type nat hook prerouting priority -100; }",
                    "add chain ip nat input { type nat hook input priority 100; }",
                    "add chain ip nat output { type nat hook output priority -100; }",
                    "add chain ip nat postrouting { type nat hook postrouting priority 100; }",
                    "add chain ip nat KUBEVIRT_PREINBOUND", "add rule ip nat postrouting ip saddr 10.0.2.2 counter masquerade"):
        launcher.in_network("nft", command)
    cache_of(vmi).parent.mkdir(parents=True)
    cache_of(vmi).write_text('{"iface": {"name": "default"}, "podIP": "10.244.0.5", "podIPs": ["10.244.0.5"], "networkState": 1}')
    stage.start_handler()
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    check_masquerade(launcher)
    assert read_cache(vmi)["networkState"] == 2


def test_the_hands_keep_no_socket(stage):
    handler = stage.start_handler()
    children = pathlib.Path(f"/proc/{handler.popen.pid}/task/{handler.popen.pid}/children").read_text().split()

    def n_sockets():
        return sum(1 for fd in pathlib.Path(f"/proc/{children[0]}/fd").iterdir() if os.readlink(fd).startswith("socket:"))

    before = n_sockets()
    run(stage, document("masquerade"), NET)
    harness.wait_for(lambda: n_sockets() == before, "the sockets to be closed")


def kill_after(handler, text, pid, seconds):
    """Busy, since a sleep would be longer than what it waits for."""
    deadline = time.monotonic() + harness.DEADLINE
    while text not in handler.text():
        assert time.monotonic() < deadline, handler.text()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("binding,check", [("masquerade", check_masquerade), ("bridge", check_bridge)])
@pytest.mark.parametrize("victim", ["agent", "hands"])
def test_killed_during_the_set_up(stage, binding, check, victim):
    """At moments 0.3 ms apart, from the connection to the launcher on."""
    n_cut = 0
    for index in range(1, 25):
        handler = stage.start_handler()
        vmi = document(binding, index=index, migrationTransport="Unix")
        launcher = stage.start_launcher(vmi, NET)
        pid = handler.popen.pid
        if victim == "hands":
            pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        stage.create(vmi)
        kill_after(handler, '"stage":"connected"', pid, (index - 1) * 0.0003)
        handler.wait()
        state = read_cache(vmi).get("networkState", 0) if cache_of(vmi).exists() else 0
        n_cut += state == 1
        stage.start_handler()
        harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > 0, "the VM to be started")
        check(launcher)
        assert read_cache(vmi)["networkState"] == 2
        assert stage.handler.stop() == 0
        launcher.stop(signal.SIGKILL)
    assert n_cut > 0, "no kill hit the set-up"


def test_twenty_at_once(stage):
    stage.start_handler()
    vmis = [document("masquerade", index=i, migrationTransport="Unix") for i in range(1, 21)]
    launchers = [stage.start_launcher(vmi, NET) for vmi in vmis]
    for vmi in vmis:
        stage.create(vmi)
    for vmi, launcher in zip(vmis, launchers):
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        check_masquerade(launcher)
