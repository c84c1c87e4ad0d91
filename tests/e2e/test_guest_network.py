# SPDX-License-Identifier: Apache-2.0
"""Guests on the pod network: masquerade, bridge, ports; reached from this machine, and reaching out through it."""

import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, Chandler, Console, wait

PLUGINS = "/usr/lib/cni"
OUTSIDE = "198.51.100.2"  # a machine beyond this one

pytestmark = NEEDS + [
    pytest.mark.skipif(not os.path.exists(os.path.join(PLUGINS, "bridge")), reason="needs containernetworking-plugins"),
    pytest.mark.skipif(shutil.which("busybox") is None, reason="needs busybox"),
]


@pytest.fixture(scope="module")
def chandler():
    made = Chandler()
    try:
        assert "10.213.0.0/20, on chandler0" in made.ok("up", "--emulation", "on")
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def guests(chandler, tmp_path_factory):
    """All three at once; one of them names no network."""
    folder = tmp_path_factory.mktemp("guests")
    for name in ("masquerade", "bridge", "ports"):
        with open(os.path.join(EXAMPLES, f"{name}.yaml"), encoding="utf-8") as file:
            document = yaml.safe_load(file)
        document["spec"]["terminationGracePeriodSeconds"] = 240
        if name == "bridge":
            del document["spec"]["networks"], document["spec"]["domain"]["devices"]["interfaces"]
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
        chandler.ok("apply", str(folder / f"{name}.yaml"))
    for name in ("masquerade", "bridge", "ports"):
        wait(lambda vm=name: chandler.condition("AgentConnected", vm).get("status") == "True", f"{name} boots")
        wait(lambda vm=name: "login:" in chandler.ok("console", vm, "--log"), f"{name} has its address")
    return chandler


def address(chandler, name):
    return chandler.vmi(name)["status"]["interfaces"][0]["ipAddress"]


def pod_of(chandler, name):
    items = json.loads(chandler.ok("get", "pods", "-o", "json"))["items"]
    return next(pod for pod in items if pod["metadata"]["annotations"]["kubevirt.io/domain"] == name)


def get(ip, port=80):
    """The page of the guest's HTTP server, which says who it is; empty: nobody there."""
    try:
        with urllib.request.urlopen(f"http://{ip}:{port}/", timeout=20) as answer:
            return answer.read().decode().strip()
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return ""


def answers_ping(ip):
    return subprocess.run(["busybox", "ping", "-c", "1", "-W", "5", ip], stdout=subprocess.DEVNULL, check=False).returncode == 0


def leases(chandler):
    folder = os.path.join(chandler.state, "podrunner", "leases", "chandler0")
    return {name for name in os.listdir(folder) if re.match(r"[0-9.]+$", name)}


def links():
    """By netlink: the node's /sys shows another namespace's."""
    return [link["ifname"] for link in json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)]


def veths():
    return [name for name in links() if name.startswith("veth")]


def rules():
    return "".join(subprocess.run(["iptables", "-t", table, "-S"], capture_output=True, text=True, check=True).stdout
                   for table in ("nat", "filter"))


def shell(chandler, name):
    console = Console(chandler, name)
    console.send("\n")
    console.until("login:")
    console.send("root\n")
    console.until("/root #")
    return console


@pytest.fixture(scope="module")
def outside():
    """A machine that knows this one's address and no pod's. Yields a function that starts a listener on it."""
    def run(*words):
        subprocess.run(["ip", *words], check=True)

    run("netns", "add", "outside")
    run("link", "add", "uplink", "type", "veth", "peer", "name", "eth0", "netns", "outside")
    run("addr", "add", "198.51.100.1/24", "dev", "uplink")
    run("link", "set", "uplink", "up")
    run("-n", "outside", "addr", "add", f"{OUTSIDE}/24", "dev", "eth0")
    run("-n", "outside", "link", "set", "eth0", "up")
    script = ("import socket, sys\n"
              "with socket.create_server(('', int(sys.argv[1]))) as server:\n"
              "    print('listening', flush=True)\n"
              "    server.settimeout(120)\n"
              "    peer, where = server.accept()\n"
              "    peer.settimeout(60)\n"
              "    print(where[0], peer.recv(100).decode(), flush=True)\n")

    def listen(port):
        listener = subprocess.Popen(["ip", "netns", "exec", "outside", "/usr/bin/python3", "-c", script, str(port)],
                                    stdout=subprocess.PIPE, text=True)
        assert listener.stdout.readline().strip() == "listening"
        return listener

    yield listen
    run("link", "del", "uplink")
    run("netns", "del", "outside")


def test_masquerade_guest_is_reached_by_the_pods_address(guests):
    ip = address(guests, "masquerade")
    status = pod_of(guests, "masquerade")["status"]
    assert status["podIP"] == ip and status["podIPs"] == [{"ip": ip}]
    assert ipaddress.ip_address(ip) in ipaddress.ip_network("10.213.0.0/20")
    assert get(ip) == "masquerade at 10.0.2.2", "the guest itself answers"
    assert answers_ping(ip)
    assert "chandler tiny guest at 10.0.2.2" in guests.ok("console", "masquerade", "--log")


def test_addresses_are_shown(guests):
    row = next(line for line in guests.ok("get").splitlines() if line.startswith("masquerade"))
    assert address(guests, "masquerade") in row.split()
    if shutil.which("kubectl"):
        assert address(guests, "bridge") in guests.kubectl("get", "vmi", "bridge")
        assert address(guests, "bridge") in guests.kubectl("get", "pods", "-o", "wide")


def test_start_shows_the_network(guests):
    timeline = guests.ok("timeline", "masquerade")
    times = [int(re.search(rf"{stage} +(-?\d+) ms", timeline).group(1))
             for stage in ("pod created", "pod has an address", "network set up", "domain started")]
    assert times == sorted(times), timeline


def test_vm_without_networks_gets_the_pods_own_address(guests):
    spec = guests.vmi("bridge")["spec"]
    assert spec["networks"] == [{"name": "default", "pod": {}}]
    assert spec["domain"]["devices"]["interfaces"] == [{"name": "default", "bridge": {}}]
    ip = pod_of(guests, "bridge")["status"]["podIP"]
    assert address(guests, "bridge") == ip
    assert get(ip) == f"bridge at {ip}", "the guest has the pod's address itself"
    assert answers_ping(ip)


def test_only_the_listed_port_reaches_the_guest(guests):
    ip = address(guests, "ports")
    assert get(ip) == "ports at 10.0.2.2"
    assert get(ip, 8080) == ""
    assert get(address(guests, "masquerade"), 8080) == "masquerade at 10.0.2.2", "the guest does serve 8080"


def test_port_of_this_machine_leads_to_the_guest(guests):
    assert get("10.213.0.1", 8888) == "ports at 10.0.2.2"
    assert get("127.0.0.1", 8888) == "ports at 10.0.2.2"


def test_guests_have_addresses_of_their_own(guests):
    ips = {address(guests, name) for name in ("masquerade", "bridge", "ports")}
    assert len(ips) == 3 and leases(guests) == ips and len(veths()) == 3


@pytest.mark.parametrize("name, port", [("masquerade", 9001), ("bridge", 9002)])
def test_guest_reaches_out_through_this_machine(guests, outside, name, port):
    listener = outside(port)
    console = shell(guests, name)
    console.send(f"echo hello | nc -w 60 {OUTSIDE} {port}\n")
    said, _ = listener.communicate(timeout=150)
    assert said.split() == ["198.51.100.1", "hello"], "it came with this machine's address"
    console.send("exit\n\x1d")
    console.status()


def test_guest_reaches_another_by_its_address(guests):
    console = shell(guests, "bridge")
    request = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 60 {address(guests, 'masquerade')} 80\n"
    console.send(request)
    console.until("masquerade at 10.0.2.2")
    console.send("exit\n\x1d")
    console.status()


def test_network_survives_a_restart_of_everything_else(guests):
    ip = address(guests, "masquerade")
    guests.ok("down", "--keep-vms")
    assert get(ip) == "masquerade at 10.0.2.2"
    assert "10.213.0.0/20, on chandler0" in guests.ok("up", "--emulation", "on")
    assert get(ip) == "masquerade at 10.0.2.2"
    assert rules().count("MASQUERADE") - rules().count("HOSTPORT-MASQ -m mark") == 1, rules()


def test_deleted_guest_gives_its_address_back(guests):
    ips = {address(guests, name) for name in ("bridge", "ports")}
    guests.ok("delete", "masquerade")
    wait(lambda: leases(guests) == ips, "the lease goes")
    wait(lambda: len(veths()) == 2, "the link goes")
    guests.ok("delete", "ports")
    assert get("127.0.0.1", 8888) == ""
    assert "8888" not in rules()


def test_down_leaves_nothing_of_it(guests):
    guests.ok("down")
    assert "chandler0" not in links()
    wait(lambda: not veths(), "the links go")
    assert "chandler0" not in rules()
    assert not os.path.exists(os.path.join(guests.state, "podrunner", "leases"))
    assert not os.path.exists(os.path.join(guests.state, "pod-network.json"))
