# SPDX-License-Identifier: Apache-2.0
"""Networks that are plugged into a guest that runs, and taken out again: the guest sees the NIC come up, and go."""

import hashlib
import json
import os
import re
import signal
import subprocess
import time

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, Chandler, manifest, wait
from test_guest_network import PLUGINS, get, links, pod_of, shell, veths
from test_network_faults import Plugins

DEFINITIONS = {
    "quiet.net": {"cniVersion": "1.0.0", "type": "bridge", "bridge": "quiet0"},
    "slow": {"cniVersion": "1.0.0", "type": "slow", "bridge": "slow0"},
    "stuck": {"cniVersion": "1.0.0", "type": "slow", "bridge": "slow0", "ipam": {"type": "host-local", "subnet": "10.79.0.0/24"}},
}

pytestmark = NEEDS + [
    pytest.mark.skipif(not os.path.exists(os.path.join(PLUGINS, "bridge")), reason="needs containernetworking-plugins"),
]


def define(chandler, folder, name, config):
    (folder / "nad.json").write_text(json.dumps({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": name},
        "spec": {"config": json.dumps(config)}}))
    chandler.ok("apply", str(folder / "nad.json"))


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    return Plugins(tmp_path_factory.mktemp("cni"))


@pytest.fixture(scope="module")
def chandler(plugins, tmp_path_factory):
    """Two guests: one on the pod network, and one that has no NIC at all."""
    made = Chandler()
    made.environment["CNI_PATH"] = plugins.folder
    folder = tmp_path_factory.mktemp("manifests")
    try:
        made.ok("up", "--emulation", "on")
        for name, config in DEFINITIONS.items():
            define(made, folder, name, config)
        made.ok("apply", os.path.join(EXAMPLES, "nic.yaml"))
        with open(os.path.join(EXAMPLES, "hotplug.yaml"), encoding="utf-8") as file:
            vm = next(doc for doc in yaml.safe_load_all(file) if doc["kind"] == "VirtualMachineInstance")
        vm["metadata"]["name"] = "bare"
        (folder / "vm.json").write_text(json.dumps(vm))
        made.ok("apply", str(folder / "vm.json"))
        for name in ("nic", "bare"):
            wait(lambda vm=name: made.condition("AgentConnected", vm).get("status") == "True", f"{name} boots")
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def console(chandler):
    opened = shell(chandler, "nic")
    yield opened
    opened.send("exit\n\x1d")
    opened.status()


def link_of(network):
    return "pod" + hashlib.sha256(network.encode()).hexdigest()[:11]


def interface(chandler, name, vm="nic"):
    return next((item for item in chandler.vmi(vm)["status"].get("interfaces") or [] if item.get("name") == name), {})


def spec_names(chandler, vm="nic"):
    spec = chandler.vmi(vm)["spec"]
    return ([item["name"] for item in spec["domain"]["devices"].get("interfaces", [])],
            [item["name"] for item in spec.get("networks", [])])


def pod_net(chandler, vm, file):
    """Lines of a file in /proc/net, in the namespace of the pod's first process."""
    uid, = chandler.vmi(vm)["status"]["activePods"]
    with open(os.path.join(chandler.state, "podrunner", "run", uid, "record.json"), encoding="utf-8") as record:
        pid = json.load(record)["pid"]
    with open(f"/proc/{pid}/net/{file}", encoding="utf-8") as lines:
        return list(lines)


def pod_links(chandler, vm="nic"):
    return {line.split(":")[0].strip() for line in pod_net(chandler, vm, "dev") if ":" in line}


def n_dhcp_sockets(chandler, vm):
    return sum(line.split()[1].endswith(":0043") for line in pod_net(chandler, vm, "udp"))


def leases(chandler, network="plugged"):
    folder = os.path.join(chandler.state, "podrunner", "leases", network)
    return [name for name in os.listdir(folder) if name[0].isdigit()] if os.path.isdir(folder) else []


def ask(console, command, answer):
    """Waits for what the command prints; "@" in the answer stands for 42, which the command has as $((40+2))."""
    console.send(command + "\n")
    console.until(answer.replace("@", "42"))


def edit(chandler, change):
    """As `kubectl edit` does."""
    path = os.path.join(chandler.state, "edited.json")

    def tried():
        vmi = chandler.vmi("nic")
        change(vmi["spec"]["domain"]["devices"]["interfaces"], vmi["spec"]["networks"])
        with open(path, "w", encoding="utf-8") as file:
            json.dump(vmi, file)
        try:
            return chandler.kubectl("replace", "-f", path)
        except subprocess.CalledProcessError:  # somebody else wrote to it
            return ""

    wait(tried, "it is edited")


def plug_claim(chandler, name, claim):
    """Into a VM without other volumes, as somebody does who does not ask the command."""
    volume = {"name": name, "persistentVolumeClaim": {"claimName": claim, "hotpluggable": True}}
    chandler.kubectl("patch", "vmi", "nic", "--type=json", "-p", json.dumps([
        {"op": "add", "path": "/spec/volumes", "value": [volume]},
        {"op": "add", "path": "/spec/domain/devices/disks", "value": [{"name": name, "disk": {"bus": "virtio"}}]}]))


class Mark:
    n = 0

    @classmethod
    def new(cls):
        cls.n += 1
        return f"m{cls.n}"


def guest_has(console, mac):
    """The name of the NIC with this MAC address, however long it takes to appear; its link is up then."""
    mark = Mark.new()
    console.send(f"until grep -l -i {mac} /sys/class/net/eth*/address; do sleep 1; done >/tmp/f; n=$(cut -d/ -f5 /tmp/f); "
                 f"ip link set $n up; until [ \"$(cat /sys/class/net/$n/carrier)\" = 1 ]; do sleep 1; done; echo {mark}-$((40+2))-$n.\n")
    console.match(rf"{mark}-42-eth\d+\.")
    return re.search(rf"{mark}-42-(eth\d+)\.", console.text).group(1)


def guest_lost(console, mac):
    mark = Mark.new()
    ask(console, f"while grep -q -i {mac} /sys/class/net/*/address; do sleep 1; done; echo {mark}-$((40+2))", f"{mark}-@")


def guest_gets_address(console, nic, ip):
    mark = Mark.new()
    ask(console, f"udhcpc -n -q -t 10 -T 2 -O mtu -O staticroutes -s /etc/udhcpc -i {nic}; ip -4 addr show {nic} | grep -q {ip}/ && "
                 f"echo {mark}-$((40+2))", f"{mark}-@")


def mac_of(chandler, name, vm="nic"):
    return interface(chandler, name, vm)["mac"]


def events(chandler, network):
    return [item for item in json.loads(chandler.ok("get", "events", "-o", "json"))["items"]
            if f"network '{network}': " in item["message"]]


def gone(chandler, name, vm="nic"):
    assert interface(chandler, name, vm) == {}
    assert name not in spec_names(chandler, vm)[0] + spec_names(chandler, vm)[1]
    stem = link_of(name)[3:]
    assert not {link for link in pod_links(chandler, vm) if stem in link}


def test_nic_comes_up(chandler, console):
    """Tap, bridge, address by DHCP: as a network that was there from the start."""
    assert 'network "plugged" attached, with the MAC address' in chandler.ok("attach", "nic", "--network", "plugged")
    shown = interface(chandler, "plugged")
    assert set(shown["infoSource"].split(", ")) >= {"domain", "multus-status"} and shown["podInterfaceName"] == link_of("plugged")
    nic = guest_has(console, shown["mac"])
    address, = leases(chandler)
    guest_gets_address(console, nic, address)
    assert get(address) != "", "this machine reaches the guest by its new NIC"
    wait(lambda: interface(chandler, "plugged").get("ipAddress") == address, "the status shows its address")
    wait(lambda: interface(chandler, "plugged").get("interfaceName") == nic, "and what the guest calls it")
    annotations = pod_of(chandler, "nic")["metadata"]["annotations"]
    assert json.loads(annotations["k8s.v1.cni.cncf.io/networks"]) == [
        {"name": "plugged", "namespace": "default", "interface": link_of("plugged")}]
    primary, second = json.loads(annotations["k8s.v1.cni.cncf.io/network-status"])
    assert (primary["interface"], primary["default"]) == ("eth0", True)
    assert (second["interface"], second["name"], second["ips"], second["mac"]) == (
        link_of("plugged"), "default/plugged", [address], shown["mac"])


def test_wishes_that_cannot_be(chandler):
    error = chandler.fails("attach", "nic", "--network", "moon")
    assert "there is no NetworkAttachmentDefinition 'moon' in namespace 'default'" in error and "chandler get nad" in error
    assert "has a network 'plugged' already: choose another name by --name" in chandler.fails("attach", "nic", "--network", "plugged")
    assert "is the MAC address of a NIC" in chandler.fails("attach", "nic", "--network", "plugged", "--name", "x", "--mac", "01:00:00:00:00:00")
    assert "another NIC of the VM has the MAC address" in chandler.fails(
        "attach", "nic", "--network", "plugged", "--name", "x", "--mac", mac_of(chandler, "plugged"))
    assert "has a network 'plugged', and its devices' names are of one set" in chandler.fails("attach", "nic", "/tmp/x.img", "--name", "plugged")
    assert "cannot be called '../x'" in chandler.fails("attach", "nic", "--network", "plugged", "--name", "../x")
    assert "NAME or NAMESPACE/NAME" in chandler.fails("attach", "nic", "--network", "a/b/c")
    assert "one at a time" in chandler.fails("attach", "nic", "/tmp/x.img", "--network", "plugged")
    assert "say what to attach" in chandler.fails("attach", "nic")
    assert "--bus, --read-only and --shareable are for volumes" in chandler.fails("attach", "nic", "--network", "plugged", "--bus", "scsi")
    assert "is the pod's own" in chandler.fails("detach", "nic", "default")
    assert "has no volume or network 'moon'" in chandler.fails("detach", "nic", "moon")
    assert "there is no VM 'nobody'" in chandler.fails("attach", "nobody", "--network", "plugged")
    assert spec_names(chandler) == (["default", "plugged"], ["default", "plugged"])


def test_second_one_with_a_mac(chandler, console):
    """Beside the first, on another bridge, without addresses: the guest's link-local one answers."""
    mac = "02:5a:00:00:00:07"
    assert f'network "quiet" attached, with the MAC address {mac}' in chandler.ok(
        "attach", "nic", "--network", "default/quiet.net", "--name", "quiet", "--mac", mac.upper())
    guest_has(console, mac)
    ping = ["ping", "-6", "-c", "1", "-W", "2", "fe80::5a:ff:fe00:7%quiet0"]
    wait(lambda: subprocess.run(["busybox", *ping], capture_output=True, check=False).returncode == 0, "it answers")
    assert {"plugged0", "quiet0"} <= set(links())


def test_nic_goes(chandler, console):
    mac = mac_of(chandler, "plugged")
    n_veths = len(veths())
    assert 'network "plugged" detached' in chandler.ok("detach", "nic", "plugged")
    guest_lost(console, mac)
    gone(chandler, "plugged")
    assert len(veths()) == n_veths - 1 and not leases(chandler)
    assert "has no volume or network 'plugged'" in chandler.fails("detach", "nic", "plugged")
    networks = json.loads(pod_of(chandler, "nic")["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"])
    assert [item["interface"] for item in networks] == [link_of("quiet")]
    assert interface(chandler, "quiet")["infoSource"].startswith("domain"), "the other one stays"


def test_again_under_the_same_name(chandler, console):
    """All links are new ones: the guest's address comes all the same. Asked twice to go, it goes once."""
    chandler.ok("attach", "nic", "--network", "plugged")
    nic = guest_has(console, mac_of(chandler, "plugged"))
    address, = leases(chandler)
    guest_gets_address(console, nic, address)
    assert get(address) != ""
    mac = mac_of(chandler, "plugged")
    assert 'network "plugged" is being detached' in chandler.ok("detach", "nic", "plugged", "--no-wait")
    result = chandler("detach", "nic", "plugged")
    assert result.status == 0 or "has no volume or network" in result.err, result
    guest_lost(console, mac)
    gone(chandler, "plugged")


def test_link_goes_down_and_up(chandler, console):
    nic = guest_has(console, mac_of(chandler, "quiet"))
    for state, carrier in (("down", "0"), ("up", "1")):
        edit(chandler, lambda interfaces, _, to=state: interfaces[1].update(state=to))
        mark = Mark.new()
        ask(console, f"until [ $(cat /sys/class/net/{nic}/carrier) = {carrier} ]; do sleep 1; done; echo {mark}-$((40+2))", f"{mark}-@")
        wait(lambda to=state: interface(chandler, "quiet")["linkState"] == to, "the status shows it")


def test_definition_that_comes_late(chandler, console, tmp_path):
    """Of an edited VMI nobody asks beforehand. The guest that runs goes on meanwhile."""
    def add(interfaces, networks):
        interfaces.append({"name": "late", "bridge": {}})
        networks.append({"name": "late", "multus": {"networkName": "late"}})

    edit(chandler, add)
    wait(lambda: "network 'late': there is no NetworkAttachmentDefinition default/late" in chandler.ok("get", "events"), "an event says so")
    assert interface(chandler, "late") == {} and chandler.phase("nic") == "Running"
    define(chandler, tmp_path, "late", DEFINITIONS["quiet.net"])
    wait(lambda: "domain" in interface(chandler, "late").get("infoSource", "").split(", "), "the guest has it")
    guest_has(console, mac_of(chandler, "late"))
    chandler.ok("detach", "nic", "late")
    gone(chandler, "late")


def test_name_of_a_volume(chandler, tmp_path):
    """libvirt knows disks and NICs by names of one set. What the command refuses, an edited VMI may have."""
    def add(interfaces, networks):
        interfaces.append({"name": "data", "bridge": {}})
        networks.append({"name": "data", "multus": {"networkName": "quiet.net"}})

    def drop(interfaces, networks):
        for parent in (interfaces, networks):
            parent[:] = [item for item in parent if item["name"] != "data"]

    with open(tmp_path / "data.img", "wb") as file:
        file.truncate(1 << 20)
    chandler.ok("attach", "nic", str(tmp_path / "data.img"))
    assert "the VM has a volume 'data'" in chandler.fails("attach", "nic", "--network", "quiet.net", "--name", "data")
    edit(chandler, add)
    wait(lambda: any("the VM has a volume of this name" in event["message"] for event in events(chandler, "data")), "an event says so")
    assert interface(chandler, "data") == {}
    edit(chandler, drop)
    assert 'volume "data" detached' in chandler.ok("detach", "nic", "data")


def test_volume_with_the_name_of_a_nic(chandler, tmp_path):
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
             "metadata": {"name": "clash", "annotations": {"chandler.dev/path": str(tmp_path / "clash.img")}},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    with open(tmp_path / "clash.img", "wb") as file:
        file.truncate(1 << 20)
    (tmp_path / "claim.yaml").write_text(yaml.safe_dump(claim))
    chandler.ok("apply", str(tmp_path / "claim.yaml"))
    nic = spec_names(chandler)[0][0]
    plug_claim(chandler, nic, "clash")
    wait(lambda: f"volume '{nic}': the VM has an interface of this name" in chandler.ok("get", "events"), "an event says so")
    assert 'volume "' + nic in chandler.ok("detach", "nic", nic)


def test_no_room_for_more(chandler):
    """A domain has so many PCIe ports."""
    names = [f"more{n}" for n in range(8)]
    for n, name in enumerate(names):
        result = chandler("attach", "nic", "--network", "quiet.net", "--name", name)
        if result.status != 0:
            break
    assert n >= 2, result
    assert f"network '{name}' is not attached: " in result.err and "No more available PCI slots" in result.err, result
    assert f"until 'chandler detach nic {name}'" in result.err
    for plugged in reversed(names[:n + 1]):
        chandler.ok("detach", "nic", plugged)
        gone(chandler, plugged)


def test_interface_that_left_the_spec(chandler, console):
    """As `kubectl edit` would have it: it goes the same way."""
    mac = mac_of(chandler, "quiet")

    def drop(interfaces, networks):
        for parent in (interfaces, networks):
            parent[:] = [item for item in parent if item["name"] != "quiet"]

    edit(chandler, drop)
    guest_lost(console, mac)
    wait(lambda: interface(chandler, "quiet") == {} and "quiet" not in spec_names(chandler)[0], "all of it goes")
    gone(chandler, "quiet")


def test_guest_without_any(chandler):
    """Its pod had no network at all."""
    chandler.ok("attach", "bare", "--network", "plugged", "--name", "first")
    console = shell(chandler, "bare")
    nic = guest_has(console, mac_of(chandler, "first", "bare"))
    address, = leases(chandler)
    guest_gets_address(console, nic, address)
    assert get(address) != ""
    chandler.ok("detach", "bare", "first")
    console.send("exit\n\x1d")
    console.status()
    gone(chandler, "first", "bare")
    chandler.ok("attach", "bare", "--network", "plugged", "--name", "second")  # for the end
    assert n_dhcp_sockets(chandler, "bare") == 1, "the first one's is closed"


def test_plugin_that_fails_is_told_at_once(chandler, plugins):
    plugins.replace("slow", """echo '{"cniVersion":"1.0.0","code":11,"msg":"the moon is","details":"in the wrong house"}'; exit 1""")
    error = chandler.fails("attach", "nic", "--network", "slow", timeout=60)
    assert "network 'slow' is not attached: the CNI plugin 'slow' failed: the moon is: in the wrong house" in error
    assert "until 'chandler detach nic slow'" in error
    assert "just being detached" not in error
    plugins.replace("slow", "[ $CNI_COMMAND = DEL ] || exec /usr/lib/cni/bridge")
    assert 'network "slow" detached' in chandler.ok("detach", "nic", "slow")
    gone(chandler, "slow")


def test_definition_with_a_mistake_is_mended(chandler, tmp_path):
    """A plugin that is not there could not take anything back either: nothing is begun. What is wrong is told once."""
    define(chandler, tmp_path, "mistaken", dict(DEFINITIONS["quiet.net"], type="brdige"))
    assert "the CNI plugin 'brdige' is missing" in chandler.fails("attach", "nic", "--network", "mistaken")
    assert 'network "mistaken" detached' in chandler.ok("detach", "nic", "mistaken")
    assert "the CNI plugin 'brdige' is missing" in chandler.fails("attach", "nic", "--network", "mistaken")
    time.sleep(4)  # some attempts
    assert sum(event.get("count", 1) for event in events(chandler, "mistaken")) == 2
    define(chandler, tmp_path, "mistaken", DEFINITIONS["quiet.net"])
    wait(lambda: "domain" in interface(chandler, "mistaken").get("infoSource", "").split(", "), "the guest has it")
    chandler.ok("detach", "nic", "mistaken")
    gone(chandler, "mistaken")


def test_claim_that_is_missing_does_not_hurry_it(chandler, plugins, tmp_path):
    """What is waited for is looked at twice a second; plugins that fail are asked less and less often meanwhile."""
    asked = tmp_path / "asked"
    plugins.replace("slow", f"[ $CNI_COMMAND = DEL ] || {{ echo >>{asked}; exit 1; }}")
    plug_claim(chandler, "none", "none")
    assert "the CNI plugin 'slow' failed" in chandler.fails("attach", "nic", "--network", "slow")
    time.sleep(10)
    assert 2 <= len(asked.read_text()) <= 8
    chandler.ok("detach", "nic", "slow")
    chandler.ok("detach", "nic", "none")


def test_what_failed_half_way_is_defined_anew(chandler, plugins, tmp_path):
    plugins.replace("slow", "[ $CNI_COMMAND != ADD ] || { /usr/lib/cni/bridge >/dev/null; exit 1; }; exec /usr/lib/cni/bridge")
    define(chandler, tmp_path, "half", DEFINITIONS["stuck"])
    assert "the CNI plugin 'slow' failed" in chandler.fails("attach", "nic", "--network", "half")
    define(chandler, tmp_path, "half", dict(DEFINITIONS["stuck"], type="bridge"))
    wait(lambda: "domain" in interface(chandler, "half").get("infoSource", "").split(", "), "the guest has it")
    assert len(leases(chandler, "half")) == 1
    chandler.ok("detach", "nic", "half")
    gone(chandler, "half")
    assert not leases(chandler, "half")


def test_plugin_that_never_lets_go_is_given_up(chandler, plugins):
    plugins.replace("slow", "exec /usr/lib/cni/bridge")
    chandler.ok("attach", "nic", "--network", "stuck")
    assert len(leases(chandler, "stuck")) == 1
    plugins.replace("slow", """[ $CNI_COMMAND = ADD ] || { echo '{"code":99,"msg":"never"}'; exit 1; }""")
    assert "network 'stuck' is not detached: the CNI plugin 'slow' failed: never" in chandler.fails("detach", "nic", "stuck")
    wait(lambda: interface(chandler, "stuck") == {} and "stuck" not in spec_names(chandler)[0], "it is given up")
    assert not leases(chandler, "stuck")
    assert {event["reason"] for event in events(chandler, "stuck")} == {"FailedDetachNetwork"}
    assert any("given up, with its addresses freed" in event["message"] for event in events(chandler, "stuck"))
    assert "the pod still has the link of an earlier network of this name" in chandler.fails("attach", "nic", "--network", "stuck")
    assert 'network "stuck" detached' in chandler.ok("detach", "nic", "stuck")


def test_patience_is_limited(chandler, plugins, tmp_path):
    plugins.replace("slow", SLOW.replace("FOLDER", str(tmp_path)))
    begin = time.monotonic()
    error = chandler.fails("attach", "nic", "--network", "slow", "--timeout", "2")
    assert "network 'slow' is not attached" in error and time.monotonic() - begin < 15
    (tmp_path / "go").touch()
    wait(lambda: "domain" in interface(chandler, "slow").get("infoSource", "").split(", "), "it went on trying")
    chandler.ok("detach", "nic", "slow")
    gone(chandler, "slow")


def test_detached_while_the_pod_is_connected(chandler, plugins, tmp_path):
    """The only network of a VM leaves it after it failed: the VM starts without, and can have another."""
    plugins.replace("slow", "exit 1")
    chandler.ok("apply", manifest(tmp_path, "begun", devices={"interfaces": [{"name": "slow", "bridge": {}}]},
                                  networks=[{"name": "slow", "multus": {"networkName": "slow"}}]))
    wait(lambda: chandler.condition("Synchronized", "begun").get("reason") == "FailedCreatePodSandBox", "the plugin fails")
    plugins.replace("slow", "[ $CNI_COMMAND = DEL ]")
    chandler.ok("detach", "begun", "slow")
    assert chandler.phase("begun") in ("Scheduled", "Running")
    chandler.ok("attach", "begun", "--network", "quiet.net")
    chandler.ok("delete", "begun")


SLOW = """
[ $CNI_COMMAND != ADD ] || { touch FOLDER/asked; until [ -e FOLDER/go ]; do sleep 0.1; done; }
exec /usr/lib/cni/bridge
"""


def test_crashes_in_the_middle(chandler, console, plugins, tmp_path):
    """The pod runner while a plugin works, the agent while it waits for it; both when the guest is to let go."""
    plugins.replace("slow", SLOW.replace("FOLDER", str(tmp_path)))
    chandler.ok("attach", "nic", "--network", "slow", "--no-wait")
    wait(lambda: os.path.exists(tmp_path / "asked"), "the plugin works")
    for program in ("chandler-podrunner", "virt-handler"):
        pid = chandler.pid_of(program)
        os.kill(pid, signal.SIGKILL)
        wait(lambda old=pid, name=program: chandler.pid_of(name) not in (0, old), f"{program} is started anew")
    (tmp_path / "go").touch()
    wait(lambda: "domain" in interface(chandler, "slow").get("infoSource", "").split(", "), "the guest has it")
    mac = mac_of(chandler, "slow")
    guest_has(console, mac)
    assert len([link for link in pod_links(chandler) if link.startswith("tap")]) == 2
    chandler.ok("detach", "nic", "slow", "--no-wait")
    for program in ("chandler-podrunner", "virt-handler"):
        os.kill(chandler.pid_of(program), signal.SIGKILL)
    guest_lost(console, mac)
    wait(lambda: interface(chandler, "slow") == {} and "slow" not in spec_names(chandler)[0], "all of it goes")
    gone(chandler, "slow")


def process_of(chandler, names, vm="nic"):
    """The process of the VM's pod that is called so."""
    uid, = chandler.vmi(vm)["status"]["activePods"]
    with open(os.path.join(chandler.state, "podrunner", "run", uid, "record.json"), encoding="utf-8") as file:
        namespace = os.readlink(f"/proc/{json.load(file)['pid']}/ns/net")
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/comm", encoding="utf-8") as file:
                name = file.read().strip()
            if name in names and os.readlink(f"/proc/{entry}/ns/net") == namespace:
                return int(entry)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return 0


def test_libvirt_dies_while_it_plugs_it_in(chandler, console):
    """Its daemon is killed when QEMU has got the tap, and a little later: what QEMU has by then, the next daemon does not know.

    Not while it takes one out: libvirt 9.0 then may end the guest as it connects to it again.
    """
    qemu = process_of(chandler, ("qemu-system-x86", "qemu-system-x86_64"))
    for n in range(5):
        name = f"hurt{n}"
        daemon = wait(lambda: process_of(chandler, ("libvirtd", "rpc-libvirtd")), "libvirtd runs")
        before = len(os.listdir(f"/proc/{qemu}/fd"))
        chandler.ok("attach", "nic", "--network", "quiet.net", "--name", name, "--no-wait")
        wait(lambda n_fds=before: len(os.listdir(f"/proc/{qemu}/fd")) > n_fds, "QEMU gets the tap", pause=0)
        time.sleep(n * 0.002)
        os.kill(daemon, signal.SIGKILL)
        wait(lambda vm=name: "domain" in interface(chandler, vm).get("infoSource", "").split(", "), "the guest has it")
        mac = mac_of(chandler, name)
        guest_has(console, mac)
        chandler.ok("detach", "nic", name)
        guest_lost(console, mac)
        gone(chandler, name)


def test_guest_that_boots(chandler, tmp_path):
    """It does not hear that it is asked to let go, and is asked again."""
    vmi = chandler.vmi("nic")
    vmi = {"apiVersion": vmi["apiVersion"], "kind": vmi["kind"], "metadata": {"name": "early"}, "spec": vmi["spec"]}
    del vmi["spec"]["domain"]["firmware"]["uuid"]
    (tmp_path / "vm.json").write_text(json.dumps(vmi))
    chandler.ok("apply", str(tmp_path / "vm.json"))
    wait(lambda: chandler.phase("early") == "Running", "it runs")
    chandler.ok("attach", "early", "--network", "quiet.net")
    time.sleep(1)
    chandler.ok("detach", "early", "quiet-net")
    gone(chandler, "quiet-net", "early")
    chandler.ok("delete", "early")


def test_the_end_with_one_plugged_in(chandler):
    assert leases(chandler)
    for name in ("nic", "bare"):
        chandler.ok("delete", name)
    wait(lambda: not leases(chandler), "the address is given back")
    chandler.ok("down")
    assert not {"plugged0", "quiet0", "chandler0"} & set(links()) and "slow0" in links(), "only what is known as a bridge is ours"
    subprocess.run(["ip", "link", "del", "slow0"], check=True)
    wait(lambda: not veths(), "the links go")
