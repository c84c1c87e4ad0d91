# SPDX-License-Identifier: Apache-2.0
"""A pod for one chandler-launcher, and what an agent does to it: calls Cmd, serves Notify.

The pod is a fresh mount, pid and network namespace whose /run lies below a temporary directory, so
that the test reaches its sockets from outside. Messages are put together by hand: a few fields only.

CH_BUILD    the build directory (its src/chandler-launcher is tested)
CH_GUEST    a directory with vmlinuz and initrd.img, made by build-aux/guest/build.sh (default: guest/cache in CH_BUILD)
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent import futures

import grpc
import pytest

QEMU_USER = 107
PATIENCE = 180  # seconds for what has to come; an emulated guest on a busy machine is slow

BUILD = os.environ.get("CH_BUILD", "/tmp/b-launcher")
LAUNCHER = os.path.join(BUILD, "src", "chandler-launcher")
GUEST = os.environ.get("CH_GUEST", os.path.join(BUILD, "guest", "cache"))
UID = "1111bbbb-0000-4000-8000-000000000001"

PROGRAMS = ("libvirtd", "qemu-system-x86_64", "qemu-img", "xorrisofs", "setpriv", "unshare")

needs_machine = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a pod"),
    pytest.mark.skipif(not os.path.exists(LAUNCHER), reason=f"{LAUNCHER} is not built"),
    pytest.mark.skipif(
        any(shutil.which(p, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for p in PROGRAMS),
        reason="needs " + ", ".join(PROGRAMS)),
]
needs_guest = pytest.mark.skipif(
    not os.path.exists(os.path.join(GUEST, "vmlinuz")), reason=f"no guest in {GUEST}: build-aux/guest/build.sh makes one")

# What the pod's environment keeps of the test's.
SANITIZERS = [f"{name}={os.environ[name]}" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")
              if name in os.environ]

SETUP = r"""
set -eu
root=$1; shift
mount --make-rprivate /
mount --bind "$root/run" /run
# As a pod without KVM: libvirt would ask QEMU again and again why a device that it may open is of no use.
if [[ -e /dev/kvm ]]; then (umask 077 && : >"$root/no-kvm") && mount --bind "$root/no-kvm" /dev/kvm; fi
for file in passwd group; do
    grep -v ':107:' /etc/$file > "$root/$file" || true
    mount --bind "$root/$file" /etc/$file
done
echo 'qemu:x:107:107:qemu:/:/usr/sbin/nologin' >> "$root/passwd"
echo 'qemu:x:107:' >> "$root/group"
exec setpriv --reuid 107 --regid 107 --clear-groups --bounding-set=-all --no-new-privs \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
"""


def varint(value):
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        out.append(byte | (0x80 if value else 0))
        if not value:
            return bytes(out)


def field(number, data):
    """A length-delimited field."""
    if isinstance(data, str):
        data = data.encode()
    return varint(number << 3 | 2) + varint(len(data)) + data


def decode(data):
    """{field number: last value}; enough for the answers here."""
    fields, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 2:
            length = number()
            fields[key >> 3] = data[at : at + length]
            at += length
        else:
            assert key & 7 == 0
            fields[key >> 3] = number()
    return fields


# The agent's defaults (spec 03 §4.7): SMBIOS, balloon period, cluster configuration.
OPTIONS = (
    field(1, field(1, "KubeVirt") + field(2, "None") + field(5, "KubeVirt"))
    + b"\x10\x0a"
    + field(7, b"\x18\x01")
)


class Answer:
    def __init__(self, response, fields):
        response = decode(response)
        self.success = bool(response.get(1, 0))
        self.message = response.get(2, b"").decode()
        self.fields = fields

    def __repr__(self):
        return f"success={self.success} message={self.message!r}"


class Notify(grpc.GenericRpcHandler):
    """Collects (type, domain) in order."""

    def __init__(self):
        self.events = []
        self.changed = threading.Condition()

    def service(self, details):
        if details.method == "/kubevirt.notify.info.NotifyInfo/Info":
            return grpc.unary_unary_rpc_method_handler(lambda request, context: b"\x0a\x01\x01")
        if details.method == "/kubevirt.notify.v1.Notify/HandleDomainEvent":
            return grpc.unary_unary_rpc_method_handler(self.take)
        return None

    def take(self, request, context):
        fields = decode(request)
        with self.changed:
            self.events.append((fields[3].decode(), json.loads(fields[1])))
            self.changed.notify_all()
        return b"\x08\x01"

    def wait(self, accept, since=0):
        """The first event that `accept` takes."""
        deadline = time.monotonic() + PATIENCE
        with self.changed:
            while True:
                for kind, domain in self.events[since:]:
                    if accept(domain):
                        return domain
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"no such event in {PATIENCE} s; seen: {self.states()}")
                self.changed.wait(left)

    def wait_state(self, status, reason, since=0):
        def accept(domain):
            return (domain["Status"]["Status"], domain["Status"]["Reason"]) == (status, reason)

        return self.wait(accept, since)

    def pairs(self, since=0):
        """(status, reason) of each event."""
        return [(d["Status"]["Status"], d["Status"]["Reason"]) for _, d in self.events[since:]]

    def states(self):
        return [f"{kind} {d['Status']['Status']}/{d['Status']['Reason']}" for kind, d in self.events]


class Pod:
    def __init__(self, launcher, uid, *args, with_notify=True):
        self.root = tempfile.mkdtemp(prefix="chl-", dir="/tmp")
        os.chmod(self.root, 0o755)
        self.uid = uid
        for path in ("libvirt", "kubevirt/sockets", "kubevirt/container-disks/kernel-boot",
                     "kubevirt-private", "kubevirt-ephemeral-disks"):
            os.makedirs(self.run(path))
        for path, _, _ in os.walk(self.run()):
            os.chown(path, QEMU_USER, QEMU_USER)
        self.notify = Notify()
        self.server = None
        if with_notify:
            self.serve_notify()
        self.log = open(os.path.join(self.root, "log"), "wb")
        self.process = subprocess.Popen(
            ["unshare", "-p", "-f", "-m", "-n", "--mount-proc", "--kill-child", "bash", "-c", SETUP,
             "pod", self.root, *SANITIZERS, launcher, "--name", "vm", "--namespace", "default", "--uid", uid,
             "--emulation", "on", *args],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.channel = grpc.insecure_channel("unix:" + self.run("kubevirt/sockets/launcher-sock"))

    def run(self, path=""):
        return os.path.join(self.root, "run", path)

    def serve_notify(self):
        path = self.run("kubevirt/domain-notify-pipe.sock")
        if os.path.exists(path):
            os.unlink(path)
        self.server = grpc.server(futures.ThreadPoolExecutor(4), [self.notify])
        self.server.add_insecure_port("unix:" + path)
        self.server.start()
        os.chown(path, QEMU_USER, QEMU_USER)

    def wait_ready(self):
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(self.run("kubevirt/sockets/launcher-sock")):
            assert self.process.poll() is None, "the launcher ended:\n" + self.read_log()
            assert time.monotonic() < deadline, "not ready:\n" + self.read_log()
            time.sleep(0.05)

    def call(self, method, request=b"", seconds=PATIENCE, service="kubevirt.cmd.v1.Cmd"):
        return self.channel.unary_unary(f"/{service}/{method}")(request, timeout=seconds)

    def act(self, method, vmi, options=OPTIONS):
        request = field(1, field(1, json.dumps(vmi))) + field(2, options)
        return Answer(self.call(method, request), {})

    def ping(self):
        return Answer(self.call("Ping"), {}).success

    def get(self, method):
        fields = decode(self.call(method))
        return Answer(fields.get(1, b""), fields)

    def domain(self):
        answer = self.get("GetDomain")
        assert answer.success, answer
        return json.loads(answer.fields[2]) if answer.fields.get(2) else None

    def domain_or_none(self):
        answer = self.get("GetDomain")
        return json.loads(answer.fields[2]) if answer.fields.get(2) else None

    def launcher_pid(self):
        """Of the child of the pod's process 1, seen from outside."""
        pid = self.process.pid
        for _ in range(2):  # unshare -> monitor -> launcher
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                pid = int(children.read().split()[0])
        return pid

    def monitor_pid(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
            return int(children.read().split()[0])

    def find(self, name):
        """The pid, seen from outside, of the pod's process of that name."""
        namespace = os.readlink(f"/proc/{self.monitor_pid()}/ns/pid")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().strip() == name and os.readlink(f"/proc/{pid}/ns/pid") == namespace:
                        return int(pid)
            except OSError:
                continue  # ended meanwhile
        raise AssertionError(f"no {name} in the pod")

    def read_log(self):
        with open(os.path.join(self.root, "log"), errors="replace") as log:
            return log.read()

    def close(self):
        self.channel.close()
        if self.process.poll() is None:
            # The pod ends with its first process, which has lost --kill-child's death signal with root's rights.
            with contextlib.suppress(IndexError, OSError):
                os.kill(self.monitor_pid(), signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        if self.server is not None:
            self.server.stop(0)
        self.log.close()
        shutil.rmtree(self.root, ignore_errors=True)


def vmi(**domain):
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "vm", "namespace": "default", "uid": UID},
        "spec": {
            "terminationGracePeriodSeconds": 5,
            "domain": {
                "cpu": {"cores": 1, "model": "host-model"},
                "memory": {"guest": "192Mi"},
                "features": {"acpi": {}},
                "firmware": {
                    "uuid": "5d307ca9-b3ef-428c-8861-06e72d69f223",
                    "kernelBoot": {
                        "kernelArgs": "console=ttyS0 panic=-1 shell",
                        "container": {"image": "x", "kernelPath": "/boot/vmlinuz",
                                      "initrdPath": "/boot/initrd.img"},
                    },
                },
                "devices": {
                    "rng": {},
                    "disks": [
                        {"name": "cloudinit", "disk": {"bus": "virtio"}},
                        {"name": "scratch", "disk": {"bus": "virtio"}},
                        {"name": "root", "disk": {"bus": "virtio"}},
                    ],
                    "interfaces": [],
                },
                **domain,
            },
            "networks": [],
            "volumes": [
                {"name": "root", "containerDisk": {"image": "x"}},
                {"name": "cloudinit", "cloudInitNoCloud": {"userData": "#cloud-config\n# hello\n"}},
                {"name": "scratch", "emptyDisk": {"capacity": "64Mi"}},
            ],
        },
        "status": {"phase": "Scheduled"},
    }


@pytest.fixture
def pod():
    made = Pod(LAUNCHER, UID, "--grace-period-seconds", "20", "--qemu-agent-sys-interval", "10s")
    try:
        made.wait_ready()
        yield made
    except BaseException:
        print(made.read_log())
        raise
    finally:
        log = made.read_log()
        made.close()
        assert "Sanitizer" not in log and "runtime error" not in log, log
        print(log)


def put_images(pod):
    boot = pod.run("kubevirt/container-disks/kernel-boot")
    shutil.copy(os.path.join(GUEST, "vmlinuz"), boot)
    shutil.copy(os.path.join(GUEST, "initrd.img"), boot)
    disk = pod.run("kubevirt/container-disks/disk_0.img")
    subprocess.run(["qemu-img", "create", "-q", "-f", "raw", disk, "16M"], check=True)
    os.chmod(disk, 0o444)


def read_console(pod, until):
    """What the guest says on its serial console until it says `until`."""
    path = pod.run(f"kubevirt-private/{UID}/virt-serial0-log")
    deadline = time.monotonic() + PATIENCE
    text = ""
    while until not in text:
        assert time.monotonic() < deadline, f"console has no {until!r}:\n{text}"
        time.sleep(0.2)
        if os.path.exists(path):
            with open(path, errors="replace") as log:
                text = log.read()
    return text


def type_until(pod, line, is_done):
    """Types `line` on the serial console, again and again (a shell drops what comes before its prompt is out), until is_done().

    What comes back is read: a reader that stalls stalls the guest, after some 200 bytes, as each is a buffer of its own.
    """
    said = b""
    deadline = time.monotonic() + PATIENCE
    typed = 0
    with socket.socket(socket.AF_UNIX) as console:
        console.connect(pod.run(f"kubevirt-private/{UID}/virt-serial0"))
        console.settimeout(0.5)
        while not is_done():
            now = time.monotonic()
            assert now < deadline, f"{pod.notify.states()}\n{pod.read_log()}\n{said.decode(errors='replace')}"
            try:
                if now >= typed + 2:
                    typed = now
                    console.sendall(line)
                said += console.recv(65536)
            except OSError:  # nothing to read, or the guest has ended
                time.sleep(0.1)


def start(pod, manifest=None):
    put_images(pod)
    manifest = manifest or vmi()
    answer = pod.act("SyncVirtualMachine", manifest)
    assert answer.success, answer
    pod.notify.wait_state("Running", "Unknown")
    manifest["status"]["phase"] = "Running"
    return manifest
