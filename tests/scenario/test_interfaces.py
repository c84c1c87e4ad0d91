# SPDX-License-Identifier: Apache-2.0
"""The VMI's interfaces as the domain, the guest agent, multus and the pod tell of them; each rule has its unit test beside
src/handler/reconcile/status-interfaces.c."""
import json

import harness

NET = {"address": "10.244.0.5/24", "mac": "0a:58:0a:f4:00:05", "mtu": 1450}
POD_IP = {"ipAddress": "10.244.0.5", "ipAddresses": ["10.244.0.5"]}
IN_POD = {"name": "fast", "infoSource": "multus-status", "podInterfaceName": "pod0a1b"}


def document():
    """A VMI with masquerade on the pod network, and an SR-IOV interface that is in the pod already."""
    vmi = harness.numbered(1, interfaces=[dict(IN_POD)])
    vmi["spec"]["domain"]["devices"]["interfaces"] = [
        {"name": "fast", "sriov": {}, "macAddress": "02:00:00:00:00:FA"}, {"name": "default", "masquerade": {}, "model": "virtio"}]
    vmi["spec"]["networks"] = [{"name": "fast", "multus": {"networkName": "sriov"}}, {"name": "default", "pod": {}}]
    return vmi


def write_domain(stage, name, link="up", has_device=False, guest=()):
    """The file of a domain document."""
    devices = {"Interfaces": [{"Alias": {"Name": "default"}, "MAC": {"MAC": "52:54:00:00:00:01"}, "LinkState": {"State": link}}]}
    if has_device:
        devices["HostDevices"] = [{"Alias": {"Name": "sriov-fast"}}]
    path = stage.directory / name
    path.write_text(json.dumps({"Spec": {"Devices": devices}, "Status": {"Interfaces": list(guest)}}))
    return path


def describe(launcher, path):
    launcher.tell(f"domain {path}")
    launcher.tell("emit MODIFIED Running Unknown")


def wait_interfaces(stage, vmi, expected):
    def shown():
        return stage.api.vmi(vmi["metadata"]["name"])["status"].get("interfaces")
    harness.wait_for(lambda: shown() == expected, f"{expected}")


def entry(link="up", source="domain", **more):
    return dict({"name": "default", "mac": "52:54:00:00:00:01", "infoSource": source, "queueCount": 1, "linkState": link}, **POD_IP, **more)


def start(stage):
    vmi = document()
    launcher = stage.start_launcher(vmi, NET, domain=write_domain(stage, "first.json"))
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    return vmi, launcher


def test_device_is_asked_for_until_it_is_there(stage):
    """What is in the pod and not in the guest: its launcher is told, again after a pause, and no more once it is there."""
    stage.start_handler()
    vmi, launcher = start(stage)
    wait_interfaces(stage, vmi, [entry(), IN_POD])
    harness.wait_for(lambda: launcher.count("HotplugHostDevices") >= 2, "the launcher to be asked again")
    assert not stage.api.event_messages("SyncFailed")
    describe(launcher, write_domain(stage, "second.json", has_device=True))
    plugged = dict(IN_POD, infoSource="domain, multus-status", mac="02:00:00:00:00:FA")
    wait_interfaces(stage, vmi, [entry(), plugged])
    asked = launcher.count("HotplugHostDevices")
    synced = launcher.count("SyncVirtualMachine")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True, vmi["metadata"]["name"])
    launcher.tell("emit MODIFIED Running Unknown")
    stage.api.wait_paused(False, vmi["metadata"]["name"])
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= synced + 2, "two more passes")
    assert launcher.count("HotplugHostDevices") == asked


def test_refusal_to_attach_a_device_is_tolerated(stage):
    handler = stage.start_handler()
    vmi = document()
    launcher = stage.start_launcher(vmi, NET, domain=write_domain(stage, "first.json"))
    launcher.tell("fail HotplugHostDevices no such device")
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    harness.wait_for(lambda: "failed to hot-plug SR-IOV interfaces" in handler.text(), "the log to tell")
    wait_interfaces(stage, vmi, [entry(), IN_POD])
    assert not stage.api.condition("Synchronized", vmi["metadata"]["name"])
    assert not stage.api.event_messages("SyncFailed")


def test_guest_and_link(stage):
    """spec:04-23.8#6: what the guest tells is shown, what only it knows too; the link as the domain has it."""
    stage.start_handler()
    vmi, launcher = start(stage)
    guest = [{"Mac": "52:54:00:00:00:01", "InterfaceName": "eth0", "Ip": "10.0.2.2", "IPs": ["10.0.2.2", "fe80::1"]},
             {"Mac": "02:00:00:00:00:fa", "InterfaceName": "eth1", "Ip": "192.168.7.7", "IPs": ["192.168.7.7", "fd00::7"]},
             {"Mac": "12:34:56:78:9a:bc", "InterfaceName": "br0", "Ip": "172.17.0.1", "IPs": ["172.17.0.1", "fe80::2"]}]
    both = "domain, guest-agent"
    device = dict(IN_POD, infoSource=f"{both}, multus-status", mac="02:00:00:00:00:FA", interfaceName="eth1", ipAddress="192.168.7.7",
                  ipAddresses=["192.168.7.7", "fd00::7"])
    bridge = {"mac": "12:34:56:78:9a:bc", "interfaceName": "br0", "infoSource": "guest-agent", "ipAddress": "172.17.0.1",
              "ipAddresses": ["172.17.0.1", "fe80::2"]}
    describe(launcher, write_domain(stage, "second.json", has_device=True, guest=guest))
    wait_interfaces(stage, vmi, [entry(source=both, interfaceName="eth0"), device, bridge])
    describe(launcher, write_domain(stage, "third.json", has_device=True, guest=guest, link="down"))
    wait_interfaces(stage, vmi, [entry(link="down", source=both, interfaceName="eth0"), device, bridge])
    describe(launcher, write_domain(stage, "fourth.json"))  # the device and the agent left
    wait_interfaces(stage, vmi, [entry(), IN_POD])


def test_restart_is_no_news(stage):
    """What the pod's addresses are is on disk: an agent that comes back writes nothing."""
    handler = stage.start_handler()
    vmi, launcher = start(stage)
    describe(launcher, write_domain(stage, "second.json", has_device=True))
    plugged = dict(IN_POD, infoSource="domain, multus-status", mac="02:00:00:00:00:FA")
    wait_interfaces(stage, vmi, [entry(), plugged])
    assert handler.stop() == 0
    version = stage.api.vmi(vmi["metadata"]["name"])["metadata"]["resourceVersion"]
    synced = launcher.count("SyncVirtualMachine")
    stage.start_handler()
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > synced, "a pass of the new agent")
    launcher.tell("emit MODIFIED Running Unknown")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > synced + 1, "another pass")
    assert stage.api.vmi(vmi["metadata"]["name"])["metadata"]["resourceVersion"] == version


def test_namesake_of_before_is_another(stage):
    """field:FR-H14: what was kept of a VM of the same name, which is gone, says nothing about this one."""
    stage.start_handler()
    vmi = document()
    old = harness.PRIVATE / "network-info-cache" / "1111bbbb-0000-4000-8000-0000000000ff" / "default"
    old.parent.mkdir(parents=True)
    text = json.dumps({"iface": {"name": "default", "masquerade": {}}, "podIP": "9.9.9.9", "podIPs": ["9.9.9.9"], "networkState": 2})
    old.write_text(text)
    launcher = stage.start_launcher(vmi, NET, domain=write_domain(stage, "first.json"))
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    wait_interfaces(stage, vmi, [entry(), IN_POD])
    assert "k6t-eth0" in launcher.ip("link")
    assert old.read_text() == text


def test_guest_is_asked_again_for_a_nic_that_is_to_go(stage):
    """It may not have heard of it while it booted: its launcher is told until the domain has lost the NIC."""
    stage.start_handler()
    vmi = harness.numbered(1, interfaces=[{"name": "blue", "infoSource": "multus-status"}])
    vmi["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}, "model": "virtio"},
                                                      {"name": "blue", "bridge": {}, "state": "absent"}]
    vmi["spec"]["networks"] = [{"name": "default", "pod": {}}, {"name": "blue", "multus": {"networkName": "blue"}}]
    path = write_domain(stage, "first.json")
    domain = json.loads(path.read_text())
    domain["Spec"]["Devices"]["Interfaces"].append({"Alias": {"Name": "blue"}, "MAC": {"MAC": "52:54:00:00:00:02"}})
    path.write_text(json.dumps(domain))
    launcher = stage.start_launcher(vmi, NET, domain=path)
    stage.create(vmi)
    name = vmi["metadata"]["name"]
    stage.api.wait_phase("Running", name)
    harness.wait_for(lambda: "domain, multus-status" in json.dumps(stage.api.vmi(name)["status"]), "the status to show it")
    asked = launcher.count("SyncVirtualMachine")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= asked + 2, "the launcher to be asked twice more")
    describe(launcher, write_domain(stage, "second.json"))
    harness.wait_for(lambda: '"domain, multus-status"' not in json.dumps(stage.api.vmi(name)["status"]), "the guest to have lost it")
