# SPDX-License-Identifier: Apache-2.0
"""CNI plugins that are missing, fail, hang, talk garbage or take the pod runner along; wishes that cannot be fulfilled.

The VMs have nothing to boot: what counts is whether their pods get a network, and give it back.
"""

import json
import os
import re
import signal
import subprocess

import pytest

from chandler import NEEDS, Chandler, manifest, wait

PLUGINS = "/usr/lib/cni"
POD = [{"name": "default", "pod": {}}]
PORT = ("--emulation", "on", "--port", "17446")

pytestmark = NEEDS + [
    pytest.mark.skipif(not os.path.exists(os.path.join(PLUGINS, "bridge")), reason="needs containernetworking-plugins"),
]


class Plugins:
    """A directory of plugins: Debian's, until one is replaced."""

    def __init__(self, folder):
        self.folder = str(folder)
        for name in ("bridge", "host-local", "loopback", "portmap"):
            self.restore(name)

    def _path(self, name):
        path = os.path.join(self.folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        return path

    def restore(self, name):
        os.symlink(os.path.join(PLUGINS, name), self._path(name))

    def remove(self, name):
        self._path(name)

    def replace(self, name, script):
        """The script may use $real."""
        path = self._path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nreal={PLUGINS}/{name}\n{script}\n")
        os.chmod(path, 0o755)


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    return Plugins(tmp_path_factory.mktemp("cni"))


@pytest.fixture(scope="module")
def chandler(plugins):
    made = Chandler()
    made.environment["CNI_PATH"] = plugins.folder
    try:
        assert "10.99.0.0/24 and fd99::/64" in made.ok("up", *PORT, "--pod-network", "10.99.0.0/24,fd99::/64")
        yield made
    finally:
        made.remove()


@pytest.fixture
def healthy(chandler, plugins):
    """Afterwards the plugins are Debian's again, and no VM is left."""
    yield plugins
    for name in ("bridge", "host-local", "loopback", "portmap"):
        plugins.restore(name)
    for vmi in json.loads(chandler.ok("get", "-o", "json"))["items"]:
        chandler.ok("delete", vmi["metadata"]["name"])
    wait(lambda: not leases(chandler), "all leases are given back")


def vm(folder, name, annotations=None, **interface):
    interface = interface or {"masquerade": {}}
    return manifest(folder, name, annotations, devices={"interfaces": [{"name": "default", **interface}]}, networks=POD)


def leases(chandler):
    folder = os.path.join(chandler.state, "podrunner", "leases", "chandler0")
    return {name for name in os.listdir(folder) if re.match(r"[0-9a-f.:]+$", name)} if os.path.isdir(folder) else set()


def links():
    return {link["ifname"]: link for link in
            json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)}


def wait_until_running(chandler, name):
    wait(lambda: chandler.phase(name) == "Running", f"{name} is Running")


def test_both_families(chandler, healthy, tmp_path):
    chandler.ok("apply", vm(tmp_path, "dual"))
    wait_until_running(chandler, "dual")
    interface = chandler.vmi("dual")["status"]["interfaces"][0]
    pod = json.loads(chandler.ok("get", "pods", "-o", "json"))["items"][0]
    ips = [item["ip"] for item in pod["status"]["podIPs"]]
    assert ips[0].startswith("10.99.0.") and ips[1].startswith("fd99::")
    assert interface["ipAddresses"] == ips and interface["ipAddress"] == pod["status"]["podIP"] == ips[0]
    assert leases(chandler) == set(ips)


def test_missing_plugin_is_named_and_found_when_it_comes(chandler, healthy, tmp_path):
    healthy.remove("bridge")
    error = chandler.fails("run", vm(tmp_path, "missing"))
    assert "the CNI plugin 'bridge' is missing" in error and "containernetworking-plugins" in error
    assert chandler.condition("Synchronized", "missing")["reason"] == "FailedCreatePodSandBox"
    assert "FailedCreatePodSandBox" in chandler.ok("get", "pods")
    wait(lambda: re.search("Warning +FailedCreatePodSandBox", chandler.ok("get", "events")), "an event")
    healthy.restore("bridge")
    wait_until_running(chandler, "missing")
    assert chandler.condition("Synchronized", "missing").get("status") != "False"


def test_plugin_that_is_not_executable_is_named(chandler, healthy, tmp_path):
    healthy.replace("bridge", "exit 0")
    os.chmod(os.path.join(healthy.folder, "bridge"), 0o644)
    assert f"'{healthy.folder}/bridge' is not executable" in chandler.fails("run", vm(tmp_path, "not-executable"))


@pytest.mark.parametrize("name, script, sentence", [
    ("says-why", """echo '{"cniVersion":"1.0.0","code":11,"msg":"the moon is","details":"in the wrong house"}'; exit 1""",
     "the CNI plugin 'bridge' failed: the moon is: in the wrong house"),
    ("says-nothing", "exit 3", "the CNI plugin 'bridge' failed: it said nothing"),
    ("crashes", "kill -SEGV $$", "killed by a signal"),
    ("garbage", "cat >/dev/null; echo '<html>'", "it answered with something that is no result"),
    ("no-address", """echo '{"cniVersion":"1.0.0","ips":[]}'""", "its result has no address"),
    ("hostile-address", """echo '{"cniVersion":"1.0.0","ips":[{"address":"$(reboot)/24"}]}'""", "an address that is none"),
    ("endless", "exec cat /dev/zero", "writes too much"),
])
def test_failing_plugin_is_quoted(chandler, healthy, tmp_path, name, script, sentence):
    healthy.replace("bridge", script)
    assert sentence in chandler.fails("run", vm(tmp_path, name))


def test_what_was_half_done_is_taken_back(chandler, healthy, tmp_path):
    healthy.replace("bridge", "$real; exit 1")
    assert "the CNI plugin 'bridge' failed" in chandler.fails("run", vm(tmp_path, "half"))
    healthy.restore("bridge")
    wait_until_running(chandler, "half")
    assert len(leases(chandler)) == 2, leases(chandler)


def test_several_queues(chandler, healthy, tmp_path):
    chandler.ok("apply", manifest(tmp_path, "queues", cpu={"cores": 2}, networks=POD, devices={
        "networkInterfaceMultiqueue": True, "interfaces": [{"name": "default", "masquerade": {}}]}))
    wait_until_running(chandler, "queues")
    assert chandler.vmi("queues")["status"]["interfaces"][0]["queueCount"] == 2


def test_hanging_plugin_holds_up_nobody_else(chandler, healthy, tmp_path):
    healthy.replace("bridge", "sleep 3600 & wait")
    chandler.ok("apply", vm(tmp_path, "hung"))
    wait(lambda: chandler.phase("hung") == "Scheduling", "the pod is made")
    chandler.ok("apply", manifest(tmp_path, "other"))
    wait_until_running(chandler, "other")
    wait(lambda: "took too long" in chandler.condition("Synchronized", "hung").get("message", ""), "the deadline")
    healthy.restore("bridge")
    wait_until_running(chandler, "hung")


def test_pod_runner_killed_in_the_middle_of_it(chandler, healthy, tmp_path):
    """The address is taken, the pod runner dies before it knows: its successor starts anew."""
    done = tmp_path / "done"
    healthy.replace("bridge", f"[ $CNI_COMMAND = ADD ] && [ ! -e {done} ] || exec $real\n"
                              f"$real >/dev/null\ntouch {done}\nkill -KILL $PPID")
    chandler.ok("apply", vm(tmp_path, "killed"))
    wait(done.exists, "the plugin has run")
    wait_until_running(chandler, "killed")
    assert len(leases(chandler)) == 2, leases(chandler)
    interface = chandler.vmi("killed")["status"]["interfaces"][0]
    assert set(interface["ipAddresses"]) == leases(chandler)


def test_port_that_a_program_has_is_not_taken_from_it(chandler, healthy, tmp_path):
    """The rule would win: here chandler would lose its own API server."""
    error = chandler.fails("run", vm(tmp_path, "greedy", {"chandler.dev/host-ports": "17446:80"}))
    assert "port 17446/tcp of this machine" in error and "in use by a program" in error
    assert chandler.phase("greedy") == "Scheduling", "the API server answers"
    assert not leases(chandler)


def test_port_of_another_vm_is_refused(chandler, healthy, tmp_path):
    """One of the two rules would lead nowhere. A pod runner that comes later knows whose the port is; it is free when that VM is gone.
    Who waits for one port keeps no other."""
    chandler.ok("apply", vm(tmp_path, "owner", {"chandler.dev/host-ports": "7778:80"}))
    wait_until_running(chandler, "owner")
    pid = chandler.pid_of("chandler-podrunner")
    os.kill(pid, signal.SIGKILL)
    wait(lambda: chandler.pid_of("chandler-podrunner") not in (0, pid), "it is started anew")
    error = chandler.fails("run", vm(tmp_path, "rival", {"chandler.dev/host-ports": "7779:80, 7778:81"}))
    assert "port 7778/tcp of this machine" in error and "is in use by the VM default/owner (host ports)" in error
    assert chandler.condition("Synchronized", "rival")["reason"] == "FailedCreatePodSandBox"
    wait(lambda: re.search("Warning +FailedCreatePodSandBox .*7778", chandler.ok("get", "events")), "an event")
    chandler.ok("apply", vm(tmp_path, "third", {"chandler.dev/host-ports": "7779:80"}))
    wait_until_running(chandler, "third")
    chandler.ok("delete", "third")
    chandler.ok("delete", "owner")
    wait_until_running(chandler, "rival")


def test_pod_that_ends_while_no_pod_runner_is_there(chandler, healthy, tmp_path):
    """Its namespace is gone by the time anybody asks the plugins to take it back."""
    chandler.ok("apply", vm(tmp_path, "lost", {"chandler.dev/host-ports": "7777:80"}))
    wait_until_running(chandler, "lost")
    record = next(os.path.join(folder, "record.json") for folder, _, files in
                  os.walk(os.path.join(chandler.state, "podrunner", "run")) if "record.json" in files)
    with open(record, encoding="utf-8") as file:
        pid = json.load(file)["pid"]
    chandler.ok("down", "--keep-vms")
    os.kill(pid, signal.SIGKILL)
    chandler.ok("up", *PORT)
    wait(lambda: not leases(chandler), "the addresses are given back")
    rules = subprocess.run(["iptables", "-t", "nat", "-S"], capture_output=True, text=True, check=True).stdout
    assert "7777" not in rules


def test_plugin_that_never_lets_go_is_given_up(chandler, healthy, tmp_path):
    chandler.ok("apply", vm(tmp_path, "stuck"))
    wait_until_running(chandler, "stuck")
    healthy.replace("bridge", """echo '{"code":99,"msg":"no"}'; exit 1""")
    chandler.ok("delete", "stuck")
    assert not leases(chandler)
    assert re.search("Warning +FailedKillPod", chandler.ok("get", "events"))


def test_stray_lease_goes_at_the_next_start(chandler, healthy, tmp_path):
    chandler.ok("apply", vm(tmp_path, "honest"))
    wait_until_running(chandler, "honest")
    before = leases(chandler)
    stray = os.path.join(chandler.state, "podrunner", "leases", "chandler0", "10.99.0.77")
    with open(stray, "w", encoding="utf-8") as file:
        file.write("00000000-0000-0000-0000-000000000000\r\neth0")
    os.kill(chandler.pid_of("chandler-podrunner"), signal.SIGKILL)
    wait(lambda: leases(chandler) == before, "only the stray one goes")


@pytest.mark.parametrize("name, arguments, sentence", [
    ("multus", {"devices": {"interfaces": [{"name": "a", "bridge": {}}]},
                "networks": [{"name": "a", "multus": {"networkName": "x", "default": True}}]},
     "network 'a' is neither the pod network"),
    ("sriov", {"devices": {"interfaces": [{"name": "default", "sriov": {}}]}, "networks": POD}, "neither masquerade nor bridge"),
    ("second", {"devices": {"interfaces": [{"name": "a", "bridge": {}}, {"name": "b", "bridge": {}}]},
                "networks": [{"name": "a", "pod": {}}, {"name": "b", "pod": {}}]}, "network 'b' is a second pod network"),
    ("badports", {"annotations": {"chandler.dev/host-ports": "http"},
                  "devices": {"interfaces": [{"name": "default", "bridge": {}}]}, "networks": POD}, "'http' is no HOST-PORT"),
])
def test_what_cannot_be_had_is_refused_by_name(chandler, healthy, tmp_path, name, arguments, sentence):
    assert sentence in chandler.fails("run", manifest(tmp_path, name, **arguments))


def test_second_chandler_takes_the_next_network(chandler):
    other = Chandler()
    try:
        assert "10.213.16.0/20, on chandler1" in other.ok("up", "--emulation", "on", "--port", "17447")
        assert "chandler0" in links() and "chandler1" in links()
    finally:
        other.remove()
    assert "chandler0" in links() and "chandler1" not in links()


def test_network_that_came_up_since_leaves_vms_alone(chandler, tmp_path):
    """`up` finds VMs on a bridge that it would choose no more: it stays, their ports on it."""
    other = Chandler()
    again = ("up", "--emulation", "on", "--port", "17450")
    try:
        assert "10.213.16.0/20, on chandler1" in other.ok(*again)
        other.ok("apply", vm(tmp_path, "stays"))
        wait_until_running(other, "stays")
        address = other.vmi("stays")["status"]["interfaces"][0]["ipAddress"]
        bridge = links()["chandler1"]
        other.ok("down", "--keep-vms")
        subprocess.run(["ip", "link", "add", "vpn0", "type", "bridge"], check=True)
        subprocess.run(["ip", "address", "add", "10.213.17.1/24", "dev", "vpn0"], check=True)
        assert "10.213.16.0/20, on chandler1" in other.ok(*again)
        assert links()["chandler1"]["ifindex"] == bridge["ifindex"]
        assert other.vmi("stays")["status"]["interfaces"][0]["ipAddress"] == address
        other.ok("down", "--keep-vms")
        assert "VMs are connected to 10.213.16.0/20" in other.fails(*again, "--pod-network", "172.30.0.0/24")
        assert links()["chandler1"]["ifindex"] == bridge["ifindex"]
        other.ok(*again)
    finally:
        subprocess.run(["ip", "link", "delete", "vpn0"], check=False)
        other.remove()
    assert "chandler1" not in links()


def test_wrong_pod_network_is_refused(chandler):
    """The bridge has its address since the first pod was there."""
    other = Chandler()
    try:
        for wanted, sentence in (("10.99.0.128/25", "overlaps one of this machine's own (link chandler0)"),
                                 ("10.0.2.0/24", "the network that guests see"),
                                 ("224.0.0.0/16", "has no addresses for pods"),
                                 ("pods", "is no subnet"),
                                 ("fd98::/64", "needs an IPv4 subnet")):
            assert sentence in other.fails("up", "--port", "17448", "--pod-network", wanted)
            assert "was never started" in other.fails("get")
    finally:
        other.remove()


def test_machine_without_packet_filter_says_so(chandler, tmp_path):
    """VMs without a network start all the same."""
    iptables = tmp_path / "iptables"
    iptables.write_text("#!/bin/sh\necho 'the kernel has no such table' >&2\nexit 3\n")
    iptables.chmod(0o755)
    other = Chandler()
    other.environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    try:
        said = other.ok("up", "--emulation", "on", "--port", "17449")
        assert re.search("have no network: .*the kernel has no such table", said)
        assert "the kernel has no such table" in other.fails("run", vm(tmp_path, "wants"))
        other.ok("apply", manifest(tmp_path, "plain"))
        wait_until_running(other, "plain")
    finally:
        other.remove()
    assert "chandler1" not in links()


def test_down_takes_both_families_along(chandler):
    chandler.ok("down")
    assert "chandler0" not in links()
    for program in ("iptables", "ip6tables"):
        for table in ("nat", "filter"):
            assert "chandler0" not in subprocess.run([program, "-t", table, "-S"], capture_output=True, text=True,
                                                     check=True).stdout
    assert not leases(chandler)
