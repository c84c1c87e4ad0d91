# SPDX-License-Identifier: Apache-2.0
"""Each system call of the hands fails once, and once and for all what old kernels lack: the VM is brought up all the same."""
import errno
import functools
import pathlib
import shutil
import signal
import struct
import subprocess
import uuid

import harness
import pytest
import test_disks
import test_hotplug
from test_network import NET, check_bridge, check_dhcp, check_masquerade, document

pytestmark = pytest.mark.skipif(harness.SANITIZED, reason="a sanitizer wants to be loaded before what fails the calls")

LIBRARY = harness.BUILD / "tests/scenario/failing-call.so"
ROW = struct.Struct("<32sQQIIQ")
N_ROWS = 96
# What never fails, or how the hands live: without it they end, and the agent with them.
EXEMPT = {"__errno_location", "_exit", "chdir", "clock_gettime", "close", "epoll_create1", "epoll_wait", "getenv", "geteuid", "getpid",
          "getrlimit64", "mmap64", "poll", "prctl", "recvmsg", "setrlimit64", "signal", "umask"}
EXEMPT |= {"execve", "waitpid"}  # of the labeller, which there is with SELinux only
# Later than Linux 5.10; the last one is of no use to the hands, which they may not forget.
NEW = {"peerpidfd": errno.ENOPROTOOPT, "mount_setattr": errno.ENOSYS, "fchmodat2": errno.ENOSYS}
TRIED_IN = {"disks": {"peerpidfd", "mount_setattr"}, "plugs": {"peerpidfd", "mount_setattr"}}  # other kinds: {"peerpidfd"}


class Calls:
    """The table that failing-call.c shares."""

    def __init__(self, directory):
        self.path = directory / "calls"
        self.path.write_bytes(bytes(ROW.size * N_ROWS))
        # The agent executes the hands that lie beside it, without an environment.
        self.program = pathlib.Path(shutil.copy(harness.BUILD / "src/virt-handler", directory))
        hands = directory / "virt-handler-hands"
        hands.write_text(f'#!/bin/sh\nLD_PRELOAD={LIBRARY} CH_FAILING_CALLS={self.path} exec {harness.BUILD}/src/virt-handler-hands "$@"\n')
        hands.chmod(0o755)

    def rows(self):
        """{name: (index, calls, failed calls)}"""
        data = self.path.read_bytes()
        found = {}
        for i in range(N_ROWS):
            name, n_calls, _, _, _, n_failed = ROW.unpack_from(data, i * ROW.size)
            if name[0]:
                found[name.rstrip(b"\0").decode()] = (i, n_calls, n_failed)
        return found

    def put(self, name, offset, layout, value):
        with open(self.path, "r+b") as file:
            file.seek(self.rows()[name][0] * ROW.size + offset)
            file.write(struct.pack(layout, value))

    def fail(self, name, error, number=None):
        """@number: of the call from now on; None: each one"""
        self.put(name, 48, "<I", error)
        if number is None:
            self.put(name, 52, "<I", 1)
        else:
            self.put(name, 40, "<Q", self.rows()[name][1] + number)

    def heal(self, name):
        self.put(name, 40, "<Q", 0)

    def n_failed(self, name):
        return self.rows()[name][2]

    def made_by(self, act):
        """{name: number of calls} while act() ran"""
        before = self.rows()
        act()
        return {name: n - before[name][1] for name, (_, n, _) in self.rows().items() if n > before[name][1]}


@pytest.fixture
def calls(stage, tmp_path):
    made = Calls(tmp_path)
    stage.start_handler("--kubelet-pods-dir", harness.PODS, program=made.program)
    harness.wait_for(lambda: made.rows(), "the library in the hands")
    yield made
    for point in test_hotplug.mount_points(harness.PODS):  # nothing of one that failed is in the way of the next one
        subprocess.run(["umount", "--lazy", point], check=True)
    while PlugLife.cgroups:
        PlugLife.cgroups.pop().remove()


def check_bridge_and_lease(launcher):
    check_bridge(launcher)
    check_dhcp(launcher)


CHECKS = {"masquerade": check_masquerade, "bridge": check_bridge_and_lease}


class Life:
    """VMs one after the other: up with a network, looked at, gone."""

    def __init__(self, stage, binding):
        self.stage, self.binding, self.n = stage, binding, 0

    def document(self):
        return document(self.binding, index=self.n, migrationTransport="Unix")

    def start(self, vmi):
        return self.stage.start_launcher(vmi, NET)

    def look(self, vmi, launcher):
        CHECKS[self.binding](launcher)

    def leave(self, vmi):
        """The VM has ended."""

    def go(self):
        """How it ended: its phase, once it runs or has failed."""
        self.n += 1
        vmi = self.document()
        name = vmi["metadata"]["name"]
        launcher = self.start(vmi)
        self.stage.create(vmi)
        phase = harness.wait_for(lambda: self.stage.api.phase(name) in ("Running", "Failed") and self.stage.api.phase(name), f"{name} to run")
        if phase == "Running":
            self.look(vmi, launcher)
            self.stage.api.delete_vmi(name)
            self.stage.api.wait_phase("Succeeded", name)
            self.leave(vmi)
        self.stage.api.request("DELETE", f"{harness.VMIS}/{name}")
        launcher.stop()
        launcher.remove_pod()
        self.stage.launchers.remove(launcher)
        return phase


class DiskLife(Life):
    """With a container disk and a kernel, which are mounted as long as the VM is there."""

    def __init__(self, stage):
        super().__init__(stage, None)

    def directory(self, vmi):
        return harness.PODS / harness.pod_of(vmi) / test_disks.DISKS

    def document(self):
        return test_disks.vmi_with_disk(kernel=True, name=f"vm{self.n}", uid=f"1111bbbb-0000-4000-8000-{self.n:012d}",
                                        pod=f"aaaabbbb-0000-4000-8000-{self.n:012d}")

    def start(self, vmi):
        pod = harness.pod_of(vmi)
        self.served = [test_disks.Disk(self.stage, pod, "disk_1.sock", {"disk/disk.img": b"disk"}),
                       test_disks.Disk(self.stage, pod, "kernel-boot.sock", test_disks.kernel_files())]
        return self.stage.start_launcher(vmi)

    def mounted(self, vmi):
        directory = self.directory(vmi)
        return [point[len(f"{directory}/"):] for point in sorted(test_hotplug.mount_points(directory))]

    def look(self, vmi, launcher):
        assert self.mounted(vmi) == ["disk_1.img", "kernel-boot/initrd", "kernel-boot/vmlinuz"]

    def leave(self, vmi):
        harness.wait_for(lambda: not list(self.directory(vmi).iterdir()) and not test_disks.record_of(vmi).exists(), "nothing to be left")
        for disk in self.served:
            disk.stop(signal.SIGKILL)
            self.stage.launchers.remove(disk)


class DeviceCgroup:
    """A pod's cgroup of the device controller, with a list that holds. Without cgroup v1 there is none, and nothing is told of it."""

    ROOT = pathlib.Path("/sys/fs/cgroup/devices")

    def __init__(self, launcher):
        self.directory = self.ROOT / f"scenario-{uuid.uuid4()}" if (self.ROOT / "devices.list").exists() else None
        if self.directory:
            self.directory.mkdir()
            (self.directory / "devices.deny").write_text("a")
            (self.directory / "devices.allow").write_text("c *:* rwm")
            (self.directory / "cgroup.procs").write_text(str(launcher.popen.pid))

    def allows(self, number, otherwise):
        return f"b {number} rwm" in (self.directory / "devices.list").read_text().splitlines() if self.directory else otherwise

    def remove(self):
        for pid in (self.directory / "cgroup.procs").read_text().split() if self.directory else ():
            (self.ROOT / "cgroup.procs").write_text(pid)
        if self.directory:
            self.directory.rmdir()


class PlugLife:
    """One VM all the time; a file system and a block device come and go."""

    cgroups = []  # of the test that runs

    def __init__(self, stage):
        self.stage, self.vmi = stage, test_hotplug.vm_with()
        test_hotplug.AttachmentPod(stage, 1, {"files": test_hotplug.make_volume(stage, "files", "content")},
                                   devices={"block": (482, 64)})
        self.cgroup = DeviceCgroup(stage.run_vm(vmi=self.vmi)[1])
        self.cgroups.append(self.cgroup)

    def is_there(self):
        directory = test_hotplug.directory_of(self.vmi)
        return (directory / "files.img").read_text() == "content" and (directory / "block").is_block_device()

    def wait_volumes(self, phase):
        for name in ("files", "block"):
            test_hotplug.wait_volume(self.stage, self.vmi, name, phase)

    def go(self):
        """What became of the VM: its phase."""
        name = test_hotplug.name_of(self.vmi)
        test_hotplug.plug(self.stage, self.vmi, test_hotplug.status_of("files"), test_hotplug.status_of("block", mode="Block"))
        self.wait_volumes("MountedToPod")
        assert self.is_there()
        harness.wait_for(lambda: self.cgroup.allows("482:64", otherwise=True), "the device to be allowed")  # before the guest is to have it
        test_hotplug.unplug(self.stage, self.vmi, "files", "block")
        self.wait_volumes("UnMountedFromPod")
        harness.wait_for(lambda: not test_hotplug.record_of(self.vmi).exists(), "the record to go")
        assert not list(test_hotplug.directory_of(self.vmi).iterdir()) and not self.cgroup.allows("482:64", otherwise=False)
        self.stage.api.patch_vmi({"status": {"volumeStatus": []}}, name)  # as virt-controller does
        return self.stage.api.phase(name)


def test_every_call_is_known(calls):
    """A system call that the hands begin to use has a row, or a reason."""
    listing = subprocess.run(["nm", "-D", "--undefined-only", harness.BUILD / "src/virt-handler-hands"], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    used = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    assert used
    pure = {name for name in used if name.startswith(("_ITM", "__", "g_", "mem", "str", "seccomp_", "capng_", "snprintf"))}
    assert used - pure - EXEMPT - set(calls.rows()) == set()
    fortified = {f"__{name}_chk" for name in calls.rows()} | {"__open64_2", "__openat64_2"}  # what a compiler calls in their place
    assert used & fortified == set()


LIVES = {**{name: functools.partial(Life, binding=name) for name in CHECKS}, "disks": DiskLife, "plugs": PlugLife}
AS = {"bridge": "masquerade"}  # a life that begins as another one: only what it does besides is of interest
# How many of the first calls of a kind are tried, and every how many of the others: the first ones differ most.
TRIED = {"masquerade": (8, 4), "bridge": (8, 4), "disks": (3, 8), "plugs": (8, 4)}
made_in = {}  # kind of life -> kind of call -> how many


def numbers(kind, name):
    """Which of the calls of a kind are to fail. An answer that is lost is waited for, for 8 s."""
    few, step = TRIED[kind] if name != "reply" else (1, 12)
    begin, end = made_in.get(AS.get(kind), {}).get(name, 0) + 1, made_in[kind][name] + 1
    return [*range(begin, min(begin + few, end)), *range(begin + few + step - 1, end, step)]


@pytest.mark.parametrize("kind", LIVES)
def test_fails_once(stage, calls, kind):
    """Of passing troubles, here the kernel's lack of memory, no VM dies, and nothing of it stays."""
    life = LIVES[kind](stage)
    life.go()  # what is done only once is done
    made = made_in[kind] = calls.made_by(life.go)
    level = harness.Level(stage.handler)
    failed, n_tried, missed = [], 0, 0
    for name in sorted(made):
        for number in numbers(kind, name):
            before = calls.n_failed(name)
            calls.fail(name, errno.ENOMEM, number)
            print(f"{name} {number}", flush=True)  # for whoever looks for what failed
            if life.go() != "Running":
                failed.append(f"{name} {number}")
            calls.heal(name)
            n_tried += 1
            missed += calls.n_failed(name) == before
    print(f"{kind}: {sum(made.values())} calls, {n_tried} tried, {missed} missed: {made}")
    assert failed == []
    assert missed <= n_tried // 4, "most calls were made in other lives too"
    level.check(slack=4096)  # of hundreds of VMs their events are remembered for a while; leaks are test_load's business


@pytest.mark.parametrize("kind", LIVES)
def test_old_kernel(stage, calls, kind):
    """Linux 5.10 has nothing of what came later."""
    for name, error in NEW.items():
        calls.fail(name, error)
    assert LIVES[kind](stage).go() == "Running"
    assert {name for name in NEW if calls.n_failed(name)} == TRIED_IN.get(kind, {"peerpidfd"})
