# SPDX-License-Identifier: Apache-2.0
"""The agent dies at every step of a VM's life (src/lib/base/crash-point.h): the next one finishes what was begun.

The points come from the programs themselves. Each life is played once without a crash, which shows what it comes to and which points
it passes how often; then once for each time at each point, in which the agent dies there. Whatever it did before: the VM's status, the
files, the pod's network and what the launcher was asked are in the end as without the crash.
"""
import collections
import json
import os
import re
import signal
import struct
import subprocess
import time

import golden
import harness
import podnet
import pytest
import test_disks
import test_hotplug
import test_network
import test_networks

PROGRAMS = ("src/virt-handler", "src/virt-handler-hands")
SECTION = "ch_crash_points"
STATUS = 99  # of a program that died at a point
PASSED = re.compile(r"^crash point (\S+):(\d+)$", re.M)
ENDING = ("ShutdownVirtualMachine", "KillVirtualMachine", "DeleteVirtualMachine")
# A point that is passed often is not more interesting each time, but each request to the hands is another one.
MOST = 2 if not harness.SANITIZED else 1
OFTEN = 40 if not harness.SANITIZED else 1
SETTLED = 1.5  # seconds without a change: what the reference shows is what all lives are held against
MOST_FAILURES = 3  # each may have waited for its deadline; when the reference is wrong, all of them do


def section_of(path, name):
    """The content of an ELF section; empty when there is none."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", data, 0x3a)
    headers = [struct.unpack_from("<IIQQQQ", data, offset + size * i) for i in range(count)]
    names = headers[names_index][4]
    for header in headers:
        start = names + header[0]
        if data[start:data.index(b"\0", start)].decode() == name:
            return data[header[4]:header[4] + header[5]]
    return b""


def points():
    """The names of all points."""
    parts = [part.decode() for program in PROGRAMS for part in section_of(harness.BUILD / program, SECTION).split(b"\0") if part]
    assert len(parts) == len(set(parts)), "a point's name stands once"
    return set(parts)


needs_points = pytest.mark.skipif(not all(section_of(harness.BUILD / program, SECTION) for program in PROGRAMS),
                                  reason="the programs are built without crash points (meson option crash_points)")


class Difference(AssertionError):
    """A life that came to something else than the reference."""


def is_as(look, expected):
    try:
        return look() == expected
    except FileNotFoundError:  # removed while it was looked at
        return False


def settled(look):
    """What look() shows once it has not changed for a while: the agent may still be at it."""
    seen, since = look(), time.monotonic()

    def has_settled():
        nonlocal seen, since
        if not is_as(look, seen):
            seen, since = look(), time.monotonic()
        return time.monotonic() - since > SETTLED

    harness.wait_for(has_settled, "nothing to change any more")
    return seen


def look_network(launcher):
    """Without the tap's carrier and what hangs on it, which goes by itself a while after the tap was made, and random addresses."""
    network = podnet.look(launcher)
    for link in network["links"]:
        link.pop("operstate", None)
        link["flags"] = sorted(set(link["flags"]) - {"NO-CARRIER", "LOWER_UP"})
        slave = link.get("linkinfo", {}).get("info_slave_data", {})
        for key in [key for key in slave if key in ("state", "bridge_id", "root_id") or key.endswith("_timer")]:
            del slave[key]
    network["route"] = [route.replace('"linkdown"', "") for route in network["route"]]
    return network


class Run:
    """One life of one VM, with an agent that dies at most once and is started again by whoever waits for something."""

    def __init__(self, stage, index, flags, armed=None, reference=None):
        """@armed: (number of the agent's process, point, time), or None: only trace. @reference: what the life comes to, or None"""
        self.stage, self.index, self.flags, self.armed = stage, index, flags, armed
        self.reference = reference
        self.seen = {}        # checkpoint -> what was seen there
        self.passed = []      # per process of the agent: Counter of points
        self.has_crashed = False
        self.launcher = self.vmi = None
        self.name, self.uid = f"vm{index}", f"1111bbbb-0000-4000-8000-{index:012d}"

    # the agent

    def start_agent(self):
        process = len(self.passed)
        self.passed.append(collections.Counter())
        crash = "trace"
        if self.armed and not self.has_crashed:
            crash = "%s:%d" % self.armed[1:] if self.armed[0] == process else "none"
        elif self.armed:
            crash = "none"
        self.stage.start_handler(*self.flags, wait=False, env=dict(os.environ, CH_CRASH=crash))

    def revive(self):
        """Notes a crash, and starts the next agent. Called by every wait."""
        handler = self.stage.handler
        if handler.popen.poll() is None:
            return
        self.note_end()
        assert handler.popen.returncode in (STATUS, 2), handler.text()  # 2: its hands died
        assert self.armed and not self.has_crashed and "%s:%d" % self.armed[1:] in self.last_passed, handler.text()
        self.has_crashed = True
        self.start_agent()

    def note_end(self):
        self.last_passed = {f"{name}:{time}" for name, time in PASSED.findall(self.stage.handler.text())}
        self.passed[-1] = collections.Counter(name for name, _ in PASSED.findall(self.stage.handler.text()))

    def stop_agent(self):
        """By SIGTERM, which it may not survive to the end, or be too young to heed."""
        while True:
            handler = self.stage.handler
            if handler.popen.poll() is None:
                handler.popen.send_signal(signal.SIGTERM)
                handler.popen.wait(harness.DEADLINE)
            if handler.popen.returncode in (0, -signal.SIGTERM):
                self.note_end()
                return
            self.revive()

    def restart_agent(self):
        self.stop_agent()
        self.start_agent()

    def wait(self, condition, what):
        def revive_and_look():
            self.revive()
            return condition()
        harness.wait_for(revive_and_look, f"{what} ({self.armed})")

    # steps of a life

    def create(self, vmi, network=None):
        self.vmi = vmi
        # It stays until an agent that was started again has asked what it wants to: its end is another life's matter.
        self.launcher = self.stage.start_launcher(vmi, network, delay_ms=10, retry_ms=50, exit_ms=60000)
        self.stage.create(vmi)

    def wait_phase(self, *phases):
        self.wait(lambda: self.stage.api.phase(self.name) in phases, f"{self.name} to be one of {phases}")

    def wait_rpc(self, method, times=1):
        self.wait(lambda: self.launcher.count(method) >= times, f"{times} {method}")

    def remove_vmi(self):
        """What virt-controller and kubelet do at the end: the pod goes, then the finalizer."""
        self.launcher.stop(signal.SIGKILL)
        self.launcher.remove_pod()
        self.stage.api.patch_vmi({"metadata": {"finalizers": None}}, self.name)
        if self.stage.api.vmi(self.name):
            self.stage.api.delete_vmi(self.name)
        self.wait(lambda: self.stage.api.vmi(self.name) is None, "the VMI to be gone")

    def asked(self):
        """How the launcher was asked to end its VM, as far as known: method -> times."""
        return {method: n for method in ENDING if (n := self.launcher.count(method))}

    # what is there

    def plain(self, value):
        """Without what differs from one VM to the next."""
        text = json.dumps(golden.without_times(value), sort_keys=True)
        for own, common in ((self.uid, "UID"), (harness.pod_of(self.vmi), "POD"), (f'"{self.name}"', '"NAME"'),
                            (f"default_{self.name}", "default_NAME"), (test_hotplug.volume_uid(self.index), "VOLUME"),
                            (f"hp-volume-{self.index}", "hp-volume")):
            text = text.replace(own, common)
        return json.loads(text)

    def look_status(self):
        return (self.stage.api.vmi(self.name) or {}).get("status")

    def look_all(self):
        run = self.launcher.root / "run"
        return self.plain({
            "status": self.look_status(), "private": harness.tree(harness.PRIVATE),
            "pod": [harness.tree(run / name) for name in ("kubevirt", "kubevirt-private")],
            "network": look_network(self.launcher), "sockets": harness.tree(self.launcher.sockets)})

    def look_rest(self):
        return self.plain({"status": self.look_status(), "private": harness.tree(harness.PRIVATE)})

    def check(self, checkpoint, look):
        """All is as it was in the reference at this point; as the agent may still be at it, that is waited for."""
        if self.reference is None:
            self.seen[checkpoint] = settled(look)
            return
        try:
            self.wait(lambda: is_as(look, self.reference[checkpoint]), checkpoint)
        except AssertionError:
            now = look()
            raise Difference("\n".join(golden.differences(self.reference[checkpoint], now)) or "at the deadline") from None

    def events(self):
        return {(event["type"], event["reason"], event["message"].replace(self.name, "NAME")) for event in self.stage.api.events()
                if event["involvedObject"]["name"] == self.name}

    def check_events(self):
        """One may be lost, as with the original; none tells of a fault that there was not."""
        if self.reference is None:
            self.seen["events"] = self.events()
        else:
            assert self.events() <= self.reference["events"], self.events() - self.reference["events"]


# --- the lives: each a function of a run

def run_until_restarted(run, vmi, network=None):
    run.create(vmi, network)
    run.wait_phase("Running")
    run.wait_rpc("SyncVirtualMachine", 2)
    run.check("running", run.look_all)
    run.restart_agent()
    run.wait_rpc("SyncVirtualMachine", 3)
    run.check("running after a restart", run.look_all)
    assert run.asked() == {}


def end(run):
    run.check("final", run.look_rest)
    run.remove_vmi()
    run.wait(lambda: not run.stage.records(), "the record to go")
    run.check("gone", run.look_rest)
    run.check_events()


def life_with_masquerade(run):
    run_until_restarted(run, test_network.document("masquerade", index=run.index, migrationTransport="Unix"), test_network.NET)
    run.stage.api.delete_vmi(run.name)
    run.wait_phase("Succeeded", "Failed")
    assert run.asked().keys() == {"ShutdownVirtualMachine", "DeleteVirtualMachine"}
    end(run)


def life_with_bridge(run):
    """The guest powers itself off."""
    run_until_restarted(run, test_network.document("bridge", index=run.index, migrationTransport="Unix"), test_network.NET)
    run.launcher.tell("emit MODIFIED Shutoff Shutdown")
    run.wait_phase("Succeeded", "Failed")
    run.wait_rpc("DeleteVirtualMachine")
    assert run.asked().keys() == {"DeleteVirtualMachine"}
    end(run)


def life_with_plugs(run):
    """A secondary network comes while the VM runs, and goes again."""
    vmi = test_networks.document([test_networks.interface("default", "masquerade")], [], index=run.index)
    run.create(vmi, test_network.NET)
    run.wait_phase("Running")
    test_networks.add_link(run.launcher, test_networks.SECOND, mac=test_networks.SECOND_MAC, address="192.168.1.5/24")
    test_networks.plug(run.stage, vmi, "secondnetwork")
    run.wait(lambda: test_networks.state_of(vmi, "secondnetwork") == 2, "the network to be there")
    run.check("plugged", run.look_all)
    test_networks.unplug(run.stage, vmi, "secondnetwork")
    run.wait(lambda: not test_networks.cache_of(vmi, "secondnetwork").exists(), "the network to be gone")
    run.check("unplugged", run.look_all)
    run.stage.api.delete_vmi(run.name)
    run.wait_phase("Succeeded", "Failed")
    end(run)


def look_mounts(run):
    """What is mounted in the VM's pod, and the hotplugged volumes: the agent's records are looked at with the rest."""
    pod = harness.PODS / harness.pod_of(run.vmi)
    volumes = harness.PODS / harness.pod_of(run.vmi) / test_hotplug.VOLUMES
    return {"mounts": sorted(point[len(f"{pod}/"):] for point in test_hotplug.mount_points(pod)),
            "volumes": sorted((path.name, path.is_block_device(), path.stat().st_uid) for path in volumes.iterdir())}


def look_volumes(run):
    return {**look_mounts(run), **run.look_rest()}


def life_with_volumes(run):
    """Container disks are mounted all the time; hotplugged volumes of both kinds come while the VM runs, and go again."""
    vmi = test_disks.vmi_with_disk(kernel=True, name=run.name, uid=run.uid, pod=f"aaaabbbb-0000-4000-8000-{run.index:012d}")
    test_hotplug.directory_of(vmi).mkdir(parents=True)
    disks = [test_disks.Disk(run.stage, harness.pod_of(vmi), "disk_1.sock", {"disk/disk.img": b"disk"}),
             test_disks.Disk(run.stage, harness.pod_of(vmi), "kernel-boot.sock", test_disks.kernel_files())]
    source = test_hotplug.AttachmentPod(run.stage, run.index, {"files": test_hotplug.make_volume(run.stage, f"files-{run.index}", "content")},
                                        devices={"block": (482, 64)})
    run.create(vmi)
    run.wait_phase("Running")
    run.check("disks", lambda: look_volumes(run))
    test_hotplug.plug(run.stage, vmi, test_hotplug.status_of("files", run.index), test_hotplug.status_of("block", run.index, mode="Block"))
    for name in ("files", "block"):
        run.wait(lambda name=name: test_hotplug.phase_of(run.stage, vmi, name) == "MountedToPod", f"{name} to be there")
    run.check("plugged", lambda: look_volumes(run))
    test_hotplug.unplug(run.stage, vmi, "files", "block")
    for name in ("files", "block"):
        run.wait(lambda name=name: test_hotplug.phase_of(run.stage, vmi, name) == "UnMountedFromPod", f"{name} to be gone")
    run.stage.api.patch_vmi({"status": {"volumeStatus": []}}, run.name)  # as virt-controller does
    run.check("unplugged", lambda: look_volumes(run))
    run.stage.api.delete_vmi(run.name)
    run.wait_phase("Succeeded", "Failed")
    run.wait(lambda: not look_mounts(run)["mounts"], "nothing to be mounted any more")
    for served in (*disks, source):
        served.stop(signal.SIGKILL)
        run.stage.launchers.remove(served)
    end(run)


def life_with_kill(run):
    run_until_restarted(run, harness.numbered(run.index, grace=0))
    run.stage.api.delete_vmi(run.name)
    run.wait_phase("Succeeded", "Failed")
    assert run.asked().keys() == {"KillVirtualMachine", "DeleteVirtualMachine"}
    end(run)


def life_with_a_death(run):
    """The launcher dies; nobody is left to be asked anything."""
    run_until_restarted(run, harness.numbered(run.index))
    run.launcher.popen.kill()
    run.wait_phase("Succeeded", "Failed")
    end(run)


# name -> (the life, flags of the agent, which of its two processes dies: the first sees the start, the second the end)
LIVES = {
    "masquerade": (life_with_masquerade, (), (0, 1)),
    "bridge": (life_with_bridge, (), (0, 1)),
    "plugs": (life_with_plugs, (), (0,)),
    "volumes": (life_with_volumes, ("--kubelet-pods-dir", str(harness.PODS)), (0,)),
    "kill": (life_with_kill, (), (1,)),
    "death": (life_with_a_death, ("--watchdog-timeout", "1s"), (1,)),
}


def play(stage, life, index, **kwargs):
    function, flags, _ = LIVES[life]
    run = Run(stage, index, flags, **kwargs)
    run.start_agent()
    function(run)
    run.stop_agent()
    run.launcher.stop(signal.SIGKILL)
    return run


def wipe(stage):
    """After a life that went wrong: the next one is not to see its rest."""
    stage.handler.stop(signal.SIGKILL)
    for launcher in stage.launchers:
        launcher.stop(signal.SIGKILL)
    for point in test_hotplug.mount_points(harness.PODS):
        subprocess.run(["umount", "--lazy", point], check=True)
    for vmi in stage.api.request("GET", harness.VMIS)["items"]:
        name = vmi["metadata"]["name"]
        stage.api.patch_vmi({"metadata": {"finalizers": None}}, name)
        if stage.api.vmi(name):
            stage.api.delete_vmi(name)
    harness.prepare_node()


reached = {}  # life -> points


# life -> how the points are called that are tried in it, which of them each time, and how many times more; other lives have the rest. Of a
# request to the hands these are: nothing is done yet, and the hands die; all is done, and the brain dies.
REQUEST = ("hands/asked", "hands/answered")
ONLY = {"plugs": ("network", ("network/step",), 1),
        "volumes": ((*REQUEST, "sync/disks", "sync/volumes", "clean-up/disks", "clean-up/volumes"), REQUEST, 2)}


def arms(passed, life):
    """What to die of: (process, point, time)."""
    only, always, factor = ONLY.get(life, ("", REQUEST, 1))
    processes = LIVES[life][2]
    for process in processes:
        for point, times in sorted(passed[process].items()):
            most = factor * (OFTEN if point in always and process == 0 else MOST)
            for time in range(1, 1 + min(times, most)) if point.startswith(only) else ():
                yield process, point, time


@needs_points
@pytest.mark.parametrize("life", LIVES)
def test_every_point_of(stage, life):
    """The state after each is the table of specification 01 §28, with its last row mended."""
    reference = play(stage, life, 1)
    reached[life] = set().union(*reference.passed)
    armed = list(arms(reference.passed, life))
    failures, n_crashed = [], 0
    for index, arm in enumerate(armed, 2):
        try:
            n_crashed += play(stage, life, index, armed=arm, reference=reference.seen).has_crashed
        except (AssertionError, subprocess.TimeoutExpired) as error:
            failures.append(f"{arm}: " + "\n  ".join(str(error).splitlines()[:8]))
            if len(failures) == MOST_FAILURES:
                break
            wipe(stage)
    print("\n".join(failures))
    print(f"{life}: {len(armed)} times, {n_crashed} crashed")
    assert not failures, f"{len(failures)} of the first {index - 1} of {len(armed)}"
    assert n_crashed >= len(armed) / 2, f"only {n_crashed} of {len(armed)} crashed: the rest was never reached"


@needs_points
def test_every_point_is_in_a_life():
    if reached.keys() != LIVES.keys():
        pytest.skip("some lives were not played")
    assert points() == set().union(*reached.values())
