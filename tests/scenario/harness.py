# SPDX-License-Identifier: Apache-2.0
"""The parts of a node that scenarios are made of: API server, agent, launchers, and what can be seen of them.

Runs inside tests/in-node. Nothing here sleeps for a fixed time to be sure: every wait has a condition and a deadline.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import inputs

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CH_BUILD", ROOT / "build"))
SHARED = pathlib.Path(os.environ.get("CH_SHARED", ROOT.parent / "shared"))
GOLDEN = SHARED / "golden"

API = "http://127.0.0.1:8001"
PODS = pathlib.Path("/pods")
SHARE = pathlib.Path("/var/run/kubevirt")
PRIVATE = pathlib.Path("/var/run/kubevirt-private")
LABELLER = pathlib.Path("/var/lib/kubevirt-node-labeller")
SOCKETS = "volumes/kubernetes.io~empty-dir/sockets"
KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"

TSAN = BUILD.name.endswith("tsan")
SANITIZED = BUILD.name.endswith("san")
DEADLINE = 90  # seconds; generous, since sanitizers and a busy machine are slow


def wait_for(condition, what, deadline=DEADLINE):
    """The first true value of condition(); fails the test when the deadline passes."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline} s for {what}")
        time.sleep(0.02)


def whole_lines(text):
    """But for the last one while it is being written."""
    return text.split("\n")[:-1]


class Process:
    """A program of ours, with its output in a file, ended at the latest with the test."""

    def __init__(self, name, argv, log, **kwargs):
        self.name, self.log = name, pathlib.Path(log)
        self.out = open(self.log, "ab")
        self.start = self.out.tell()  # a program that is started again adds to the same file
        self.popen = subprocess.Popen([str(a) for a in argv], stderr=self.out, **kwargs)

    def text(self):
        return self.log.read_bytes()[self.start:].decode(errors="replace")

    def send(self, signo):
        self.popen.send_signal(signo)

    def tell(self, command):
        """A line for those that take commands on stdin."""
        self.popen.stdin.write(command.encode() + b"\n")
        self.popen.stdin.flush()

    def wait(self, deadline=DEADLINE):
        return self.popen.wait(deadline)

    def stop(self, signo=signal.SIGTERM, deadline=DEADLINE):
        """Its exit status."""
        if self.popen.poll() is None:
            self.popen.send_signal(signo)
            try:
                self.popen.wait(deadline)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
                raise AssertionError(f"{self.name} did not end within {deadline} s of signal {signo}")
        self.out.close()
        return self.popen.returncode


class ApiServer(Process):
    def __init__(self, directory):
        self.record = directory / "writes.jsonl"
        self.record.touch()
        super().__init__(
            "apiserver",
            [BUILD / "src/chandler-apiserver", "--state", directory / "api", "--port", "0", "--insecure-http", "8001",
             "--keep-uid", "--record", self.record],
            directory / "apiserver.log", stdout=subprocess.DEVNULL)
        wait_for(self.is_up, "the API server")

    def is_up(self):
        assert self.popen.poll() is None, self.text()
        with contextlib.suppress(OSError):
            return self.request("GET", "/version")
        return None

    @staticmethod
    def request(method, path, body=None, content_type="application/json"):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(API + path, data, {"Content-Type": content_type, "User-Agent": "scenario"}, method=method)
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            return json.loads(answer.read() or b"null")

    def get(self, path):
        """The object, or None when there is none."""
        try:
            return self.request("GET", path)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def vmi(self, name="vm"):
        return self.get(f"{VMIS}/{name}")

    def phase(self, name="vm"):
        return ((self.vmi(name) or {}).get("status") or {}).get("phase")

    def wait_phase(self, phase, name="vm", deadline=DEADLINE):
        wait_for(lambda: self.phase(name) == phase, f"{name} to be {phase} (is {self.phase(name)})", deadline)

    def writes(self):
        """All write requests so far, the harness's own left out."""
        records = [json.loads(line) for line in whole_lines(self.record.read_text())]
        return [r for r in records if r.get("userAgent") != "scenario"]

    def patch_vmi(self, patch, name="vm"):
        return self.request("PATCH", f"{VMIS}/{name}", patch, "application/merge-patch+json")

    def delete_vmi(self, name="vm"):
        return self.request("DELETE", f"{VMIS}/{name}")

    def condition(self, kind, name="vm"):
        """The condition of this type, or {}."""
        conditions = ((self.vmi(name) or {}).get("status") or {}).get("conditions") or []
        return next((c for c in conditions if c["type"] == kind), {})

    def wait_paused(self, paused, name="vm"):
        wait_for(lambda: (self.condition("Paused", name).get("status") == "True") == paused, f"{name} paused: {paused}")

    def events(self, namespace="default"):
        return self.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]

    def event_messages(self, reason):
        return [event["message"] for event in self.events() if event["reason"] == reason]

    def wait_event(self, reason, message):
        wait_for(lambda: message in self.event_messages(reason), f"event {reason}: {message}")

    def lift_rate_limit(self):
        """At the default of 50 writes a second a load test would wait most of the time."""
        limit = {"tokenBucketRateLimiter": {"qps": 2000, "burst": 4000}}
        self.request("PATCH", KUBEVIRT, {"spec": {"configuration": {"handlerConfiguration": {"restClient": {"rateLimiter": limit}}}}},
                     "application/merge-patch+json")

    def say_more(self, verbosity):
        """Of the agent's log; its flag holds only until it has read the cluster's configuration."""
        log = {"developerConfiguration": {"logVerbosity": {"virtHandler": verbosity}}}
        self.request("PATCH", KUBEVIRT, {"spec": {"configuration": log}}, "application/merge-patch+json")

    def create_cluster(self):
        for path, document in inputs.CLUSTER:
            try:
                self.request("POST", path, document)
            except urllib.error.HTTPError as error:
                if error.code != 409:  # some namespaces exist from the start
                    raise


class WriteTail:
    """The agent's write requests, each read once: for loads of which the API server should not be asked all the time."""

    def __init__(self, api):
        self.lines, self.rest = open(api.record), ""
        self.writes = []
        self.running = {}  # name -> the API server's time of the first PUT with phase Running
        self.last = time.monotonic()

    def read(self):
        *lines, self.rest = (self.rest + self.lines.read()).split("\n")
        for line in lines:
            self.note(json.loads(line))

    def note(self, write):
        if write.get("userAgent") == "scenario":
            return
        self.writes.append(write)
        self.last = time.monotonic()
        if write["method"] == "PUT" and write["body"].get("status", {}).get("phase") == "Running":
            self.running.setdefault(write["body"]["metadata"]["name"], write["time"])

    def wait_running(self, names, deadline):
        names = set(names)
        wait_for(lambda: self.read() or names <= self.running.keys(), f"{len(names)} VMs to run", deadline)

    def wait_quiet(self, seconds, deadline):
        """No write for so long: all that was on its way has been written."""
        self.last = time.monotonic()
        wait_for(lambda: self.read() or time.monotonic() - self.last > seconds, "the last write", deadline)


class Handler(Process):
    def __init__(self, directory, *flags, wait=True, master=API, prefix=(), env=None, program=BUILD / "src/virt-handler"):
        super().__init__(
            "virt-handler",
            [*prefix, program, "--master", master, "--hostname-override", "node01", "--pod-ip-address", "127.0.0.1",
             "--graceful-shutdown-seconds", "1", "-v", "2", *flags],
            directory / "handler.log", stdout=subprocess.DEVNULL, env=env)
        if wait:
            wait_for(self.is_up, "the agent's caches to be filled")

    def is_up(self):
        assert self.popen.poll() is None, self.text()
        return "Starting virt-handler vms controller." in self.text()

    def lines(self):
        """The log as documents; a line that is none fails, unless it is being written."""
        return [json.loads(line) for line in whole_lines(self.text()) if not line.startswith("panic:")]


class Level:
    """What the agent and its hands hold: descriptors, threads, anonymous memory (kB). Idle threads may take a while to end."""

    MEMORY_SLACK = 512  # kB; malloc keeps some of what a burst needed

    def __init__(self, handler):
        self.look_at(handler)
        self.before = self.read()

    def look_at(self, handler):
        """From now on; it may be another agent, which is to hold no more than the one before."""
        self.pids = [handler.popen.pid, *children(handler.popen.pid)]

    def read(self):
        return [(descriptors(pid), len(os.listdir(f"/proc/{pid}/task")), anonymous_kb(pid)) for pid in self.pids]

    def is_back(self, vms):
        return all(now[0] <= before[0] + 2 + 4 * vms and now[1] <= max(before[1], 4)
                   for now, before in zip(self.read(), self.before))

    def check(self, vms=0, slack=MEMORY_SLACK):
        """@vms: how many run now and did not before."""
        wait_for(lambda: self.is_back(vms), f"descriptors and threads to be back: {self.read()}, before {self.before}")
        if not SANITIZED:  # they keep freed memory on purpose
            grown = [now[2] - before[2] for now, before in zip(self.read(), self.before)]
            assert max(grown) <= slack + 32 * vms, f"memory grew by {grown} kB"


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def status(pid):
    """Empty when there is no such process."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/status").read_text()
    return ""


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def anonymous_kb(pid):
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line.split()[1] for line in rollup.splitlines() if line.startswith("Anonymous:")))


class Launcher(Process):
    """A scripted launcher in its pod."""

    def __init__(self, directory, pod_uid, uid, name="vm", delay_ms=100, retry_ms=1000, exit_ms=100, domain=None):
        self.pod_uid, self.uid, self.vm = pod_uid, uid, name
        self.sockets = PODS / pod_uid / SOCKETS
        self.sockets.mkdir(parents=True, exist_ok=True)
        self.rpc_log = directory / f"rpcs-{pod_uid}.jsonl"
        super().__init__(
            f"launcher of {name}",
            [BUILD / "tests/scenario/scripted-launcher", "--sockets", self.sockets, "--uid", uid, "--name", name,
             "--log", self.rpc_log, "--delay-ms", str(delay_ms), "--retry-ms", str(retry_ms), "--exit-ms", str(exit_ms),
             *(["--domain", domain] if domain else [])],
            directory / f"launcher-{pod_uid}.log", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.popen.stdout.readline() == b"ready\n", self.text()
        self.root = pathlib.Path(f"/proc/{self.popen.pid}/root")
        self.pipe = self.root / "run/kubevirt/domain-notify-pipe.sock"

    def ip(self, *words):
        """Runs ip(8) in the pod's network; its output."""
        return self.in_network("ip", *words)

    def in_network(self, *argv):
        return subprocess.run(["nsenter", "-t", str(self.popen.pid), "-n", "--", *map(str, argv)],
                              check=True, stdout=subprocess.PIPE, text=True).stdout

    def give_network(self, address="10.244.0.3/16", gateway="10.244.0.1", mac=None, mtu=1500, v6=None):
        """What CNI does: eth0, a veth whose other end stays in the node, addresses and default routes."""
        peer = f"veth{self.popen.pid}"
        subprocess.run(["ip", "link", "add", peer, "type", "veth", "peer", "name", "cni0", "netns", str(self.popen.pid)], check=True)
        subprocess.run(["ip", "link", "set", peer, "up", "mtu", str(mtu)], check=True)
        self.ip("link", "set", "lo", "up")
        if mac:
            self.ip("link", "set", "cni0", "address", mac)
        self.ip("link", "set", "cni0", "mtu", mtu, "up")
        if address:
            self.ip("address", "add", address, "broadcast", "+", "dev", "cni0")
            self.ip("route", "add", "default", "via", gateway, "dev", "cni0", "onlink")
        if v6:
            self.ip("address", "add", v6, "dev", "cni0", "nodad")
        self.ip("link", "set", "cni0", "name", "eth0")  # last: who waits for it finds it complete

    def rpcs(self):
        if not self.rpc_log.exists():
            return []
        return [json.loads(line) for line in whole_lines(self.rpc_log.read_text())]

    def count(self, method):
        return sum(1 for rpc in self.rpcs() if rpc["method"] == method)

    def connect_pipe(self):
        """A socket that is connected to the agent's notify pipe in this pod."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.pipe))
        return connection

    def spoil(self, *mode):
        """Puts a relay in the place of the command socket, see faulty_launcher.py; tell() it the next mode."""
        relay = Process(f"relay of {self.vm}",
                        ["nsenter", "--mount", "--target", self.popen.pid, "/usr/bin/python3", ROOT / "tests/scenario/faulty_launcher.py",
                         *mode],
                        self.log.with_name(f"relay-{self.pod_uid}.log"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert relay.popen.stdout.readline() == b"ready\n", relay.text()
        return relay

    def remove_pod(self):
        shutil.rmtree(PODS / self.pod_uid, ignore_errors=True)


def prepare_node():
    """Empties what agents and launchers leave, and puts the node labeller's files in place."""
    for directory in (PODS, SHARE, PRIVATE):
        shutil.rmtree(directory, ignore_errors=True)
    PODS.mkdir()
    LABELLER.mkdir(parents=True, exist_ok=True)
    for name, text in inputs.LABELLER_FILES.items():
        (LABELLER / name).write_text(text)
    if GOLDEN.is_dir():  # the recordings show these capabilities
        for file in (GOLDEN / "node-labeller").iterdir():
            shutil.copy(file, LABELLER)


def vmi_document(golden=None, **changes):
    """A VMI as virt-controller hands it over, ours or that of a golden file; changes are metadata, spec or status members."""
    vmi = json.loads((GOLDEN / golden).read_text()) if golden else inputs.vmi()
    for key in ("name", "uid"):
        if key in changes:
            vmi["metadata"][key] = changes.pop(key)
    if "pod" in changes:
        vmi["status"]["activePods"] = {changes.pop("pod"): "node01"}
    if "grace" in changes:
        vmi["spec"]["terminationGracePeriodSeconds"] = changes.pop("grace")
    vmi["status"].update(changes)
    return vmi


def numbered(index, **changes):
    """The VMI number index: a name, UID and pod of its own."""
    return vmi_document(name=f"vm{index}", uid=f"1111bbbb-0000-4000-8000-{index:012d}",
                        pod=f"aaaabbbb-0000-4000-8000-{index:012d}", **changes)


def pod_of(vmi):
    return next(iter(vmi["status"]["activePods"]))


def tree(directory):
    """Every entry below a directory with kind, mode, owner and content, as the golden traces have it; None when it is not there."""
    directory = pathlib.Path(directory)
    if not directory.is_dir():
        return None
    entries = {}
    for path in sorted(directory.rglob("*")):
        info = path.lstat()
        entry = {"mode": oct(stat.S_IMODE(info.st_mode)), "owner": f"{info.st_uid}:{info.st_gid}"}
        if stat.S_ISSOCK(info.st_mode):
            entry["kind"] = "socket"
        elif stat.S_ISDIR(info.st_mode):
            entry["kind"] = "dir"
        else:
            entry["kind"] = "file"
            text = path.read_text()
            try:
                entry["json"] = json.loads(text)
            except ValueError:
                entry["text"] = text
        entries["/" + str(path.relative_to(directory))] = entry
    return entries


def plant(directory, entries):
    """Makes what tree() describes."""
    for name, entry in sorted(entries.items()):
        path = pathlib.Path(directory) / name.lstrip("/")
        if entry["kind"] == "dir":
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(entry["json"], separators=(",", ":")) if "json" in entry else entry["text"])
        os.chown(path, *map(int, entry["owner"].split(":")))
        path.chmod(int(entry["mode"], 8))
