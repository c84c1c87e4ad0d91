# SPDX-License-Identifier: Apache-2.0
"""A guest with a second network: a NetworkAttachmentDefinition, multus' words on the pod, the guest's second NIC."""

import hashlib
import json
import os
import subprocess

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, Chandler, wait
from test_guest_network import PLUGINS, get, links, pod_of, veths

LINK = "pod" + hashlib.sha256(b"lab").hexdigest()[:11]

pytestmark = NEEDS + [
    pytest.mark.skipif(not os.path.exists(os.path.join(PLUGINS, "bridge")), reason="needs containernetworking-plugins"),
]


@pytest.fixture(scope="module")
def chandler():
    made = Chandler()
    try:
        made.ok("up", "--emulation", "on")
        yield made
    finally:
        made.remove()


def interface(chandler, name):
    interfaces = chandler.vmi("secondary").get("status", {}).get("interfaces", [])
    return next((item for item in interfaces if item.get("name") == name), {})


def test_guest_brings_up_its_second_network(chandler, tmp_path):
    """The VM waits for its network's definition, as a pod does on a cluster, and says so."""
    with open(os.path.join(EXAMPLES, "secondary.yaml"), encoding="utf-8") as file:
        definition, vm = yaml.safe_load_all(file)
    (tmp_path / "vm.json").write_text(json.dumps(vm))
    (tmp_path / "definition.json").write_text(json.dumps(definition))
    chandler.ok("apply", str(tmp_path / "vm.json"))
    wait(lambda: "there is no NetworkAttachmentDefinition default/lab" in
         chandler.condition("Synchronized", "secondary").get("message", ""), "it says what is missing")
    assert "lab0" not in links()
    chandler.ok("apply", str(tmp_path / "definition.json"))
    wait(lambda: chandler.condition("AgentConnected", "secondary").get("status") == "True", "it boots")
    wait(lambda: interface(chandler, "lab").get("ipAddress") == "10.77.0.2", "its second NIC has the address")
    wait(lambda: "eth1 has 10.77.0.2" in chandler.ok("console", "secondary", "--log"), "the guest was given it")
    assert get("10.77.0.2") != "", "the guest serves on its second NIC"


def test_pod_and_vm_tell_of_it(chandler):
    annotations = pod_of(chandler, "secondary")["metadata"]["annotations"]
    assert json.loads(annotations["k8s.v1.cni.cncf.io/networks"]) == [
        {"name": "lab", "namespace": "default", "interface": LINK}]
    primary, second = json.loads(annotations["k8s.v1.cni.cncf.io/network-status"])
    assert (primary["interface"], primary["default"], primary["name"]) == ("eth0", True, "chandler0")
    assert (second["interface"], second["name"], second["ips"]) == (LINK, "default/lab", ["10.77.0.2"])
    shown = interface(chandler, "lab")
    assert shown["mac"] == second["mac"] and shown["podInterfaceName"] == LINK, shown
    assert set(shown["infoSource"].split(", ")) == {"domain", "guest-agent", "multus-status"}
    assert interface(chandler, "default")["podInterfaceName"] == "eth0"


def test_nothing_of_it_stays(chandler):
    assert "lab0" in links()
    leases = os.path.join(chandler.state, "podrunner", "leases", "lab")
    assert "10.77.0.2" in os.listdir(leases)
    chandler.ok("delete", "secondary")
    wait(lambda: "10.77.0.2" not in os.listdir(leases), "its address is given back")
    chandler.ok("down")
    assert "lab0" not in links() and "chandler0" not in links()
    wait(lambda: not veths(), "the links go")
    assert not os.path.exists(os.path.join(chandler.state, "podrunner", "bridges"))
    assert not os.path.exists(leases)
    assert subprocess.run(["ip", "route", "show", "10.77.0.0/24"], capture_output=True, text=True, check=True).stdout == ""
