# SPDX-License-Identifier: Apache-2.0
"""Pods whose network cannot be read, refuses, or is of an unusual form."""
import json
import subprocess

import pytest

import harness
from test_network import DUAL, NET, POD_MAC, addresses_of, document, links_of, messages, read_cache, run, sysctl

STARTED = "failed to configure vmi network: setup failed, err: "


def feed(launcher, lines, *argv):
    """Runs a program in the pod's network with these lines as its input."""
    subprocess.run(["nsenter", "-t", str(launcher.popen.pid), "-n", "--", *argv], input="\n".join(lines) + "\n", text=True, check=True)


def test_network_that_cannot_be_read(stage):
    """spec:04-23.1#1: a pod with more addresses than anybody reads: nothing is done to it, and it is tried again."""
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi, NET)
    many = [f"addr add 127.1.{i // 250}.{i % 250 + 1}/32 dev lo" for i in range(1100)]
    feed(launcher, many, "ip", "-batch", "-")
    stage.create(vmi)
    harness.wait_for(lambda: STARTED + "read the pod's links, addresses and routes: the pod has more than 1024 of a kind" in messages(stage, "SyncFailed"), "the event")
    assert set(links_of(launcher)) == {"lo", "eth0"}
    assert stage.api.phase(vmi["metadata"]["name"]) == "Scheduled"
    feed(launcher, [line.replace("add ", "del ", 1) for line in many], "ip", "-batch", "-")
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    assert "k6t-eth0" in links_of(launcher)


def test_rules_that_are_refused(stage):
    """spec:04-23.1#4 spec:04-23.3#1 field:FR-H02: a table that somebody made before, in which our chain has no place: the VM fails, and the event says for what."""
    stage.start_handler()
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi, NET)
    launcher.in_network("nft", "add table ip nat; add chain ip nat output { type filter hook output priority 0; }")
    stage.create(vmi)
    stage.api.wait_phase("Failed", vmi["metadata"]["name"])
    harness.wait_for(lambda: messages(stage, "Stopped"), "the last event")
    text, = messages(stage, "SyncFailed")
    assert text.startswith(STARTED + "Critical network error: setup-nat: rules of table ip nat")


def test_primary_link_of_another_name(stage):
    """spec:04-23.1#8: named by the status, as multus tells: all names but the tap's follow."""
    stage.start_handler()
    vmi = document("bridge", interfaces=[{"name": "default", "infoSource": "multus-status", "podInterfaceName": "cust-iface"}])
    launcher = stage.start_launcher(vmi, NET)
    feed(launcher, ["link set eth0 down", "link set eth0 name cust-iface", "link set cust-iface up",
                    "route add default via 10.244.0.1 dev cust-iface onlink"], "ip", "-batch", "-")
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    links = links_of(launcher)
    assert set(links) == {"lo", "cust-iface", "cust-iface-nic", "k6t-cust-iface", "tap0"}
    assert links["cust-iface-nic"]["master"] == links["tap0"]["master"] == "k6t-cust-iface"
    assert links["cust-iface"]["address"] == POD_MAC and "UP" not in links["cust-iface"]["flags"]
    assert addresses_of(launcher, "cust-iface") == ["10.244.0.5/24"]
    config = json.loads((launcher.root / "run/kubevirt-private/vif-cache-cust-iface.json").read_text())
    assert config["Gateway"] == "10.244.0.1" and config["IP"]["IP"] == "10.244.0.5"
    assert read_cache(vmi)["podIP"] == "10.244.0.5"


def test_bridge_of_ipv6_only(stage):
    """spec:04-23.5#1: the stand-in keeps the address, no DHCP server is told one, and the status shows none."""
    stage.start_handler()
    vmi = document("bridge")
    launcher = run(stage, vmi, dict(DUAL, address=None))
    assert addresses_of(launcher, "eth0") == ["fd10:244::5/64"]
    assert addresses_of(launcher, "eth0-nic") == addresses_of(launcher, "k6t-eth0") == []
    assert sysctl(launcher, "ipv4/conf/all/arp_ignore") == "0"
    config = json.loads((launcher.root / "run/kubevirt-private/vif-cache-eth0.json").read_text())
    assert config["IPAMDisabled"] is True and config["Routes"] is None
    assert read_cache(vmi) == {"networkState": 2}


TAKEN = [  # a name that is another link's, of which the plan cannot know
    ("bridge", "eth0-nic", "failed to setup link [eth0-nic]: LinkSetName: file exists"),
    ("masquerade", "k6t-eth0", "LinkAdd: file exists: bridge k6t-eth0"),
    ("masquerade", "tap0", "failed to create tap device named tap0. Reason: [0]: device or resource busy"),
]


@pytest.mark.parametrize("binding, name, text", TAKEN)
def test_name_that_is_taken(stage, binding, name, text):
    """What people look for in event, condition and log: the texts of 04 §9 and §10."""
    stage.start_handler()
    vmi = document(binding)
    launcher = stage.start_launcher(vmi, NET)
    launcher.ip("link", "add", "other0", "type", "veth", "peer", "name", "other1")
    launcher.ip("link", "property", "add", "dev", "other0", "altname", name)
    stage.create(vmi)
    stage.api.wait_phase("Failed", vmi["metadata"]["name"])
    text = "Critical network error: " + text
    harness.wait_for(lambda: messages(stage, "SyncFailed"), "the event")
    assert messages(stage, "SyncFailed") == [STARTED + text]
    assert stage.api.condition("Synchronized", vmi["metadata"]["name"])["message"] == STARTED + text
    line, = [line for line in stage.handler.lines() if line.get("msg") == "failed to configure pod network"]
    assert "Critical network error: " + line["reason"] == text and line["level"] == "error"
    end = f"virt-launcher crashed due to a network error. Updating VMI {vmi['metadata']['name']} status to Failed"
    said = [line["level"] for line in stage.handler.lines() if line.get("msg") == end]
    assert said == ["error"]
