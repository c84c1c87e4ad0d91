# SPDX-License-Identifier: Apache-2.0
"""Many VMs, here and elsewhere: the right outcome for each, and bounds for all. Nothing is timed."""
import collections
import concurrent.futures
import json
import os
import pathlib

import harness

FOREIGN = 5000
PATIENCE = 300  # seconds for many VMs together
SANITIZED = harness.BUILD.name.endswith("san")  # then freed memory is kept on purpose
QUIET = 2  # seconds without a write after which none is on its way
NODE = "/api/v1/nodes/node01"


def start_many(stage, indices):
    """The VMIs with these numbers, each with its launcher, posted at once."""
    vmis = [harness.numbered(index) for index in indices]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(stage.start_launcher, vmis))
        list(pool.map(stage.create, vmis))
    return [vmi["metadata"]["name"] for vmi in vmis]


def phases(stage):
    items = stage.api.request("GET", harness.VMIS)["items"]
    return {vmi["metadata"]["name"]: vmi["status"].get("phase") for vmi in items}


def kind_of(write):
    if write["method"] == "PUT":
        return f"PUT {write['body']['metadata']['name']} {write['body']['status']['phase']}"
    return f"{write['method']} {write['body'].get('reason', '')} {write['body'].get('involvedObject', {}).get('name', '')}"


def usage(pid):
    """(anonymous KiB, threads, descriptors)"""
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    anonymous = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    return anonymous, len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))


def test_two_hundred_at_once(stage):
    stage.start_handler()
    tail = harness.WriteTail(stage.api)
    names = start_many(stage, range(1, 201))
    tail.wait_running(names, PATIENCE)
    tail.wait_quiet(QUIET, PATIENCE)
    counted = collections.Counter(kind_of(write) for write in tail.writes if write["path"] != NODE)
    expected = collections.Counter()
    for name in names:
        expected.update([f"PUT {name} Scheduled", f"PUT {name} Running", f"POST Created {name}", f"POST Started {name}"])
    assert counted == expected
    for launcher in stage.launchers:
        assert 1 <= launcher.count("SyncVirtualMachine") <= 2


def test_hanging_launchers_do_not_slow_others(stage):
    """Ten launchers take the first Sync and never answer; fifty others all run before the first of these is given up."""
    stage.start_handler()
    hanging = [harness.numbered(index) for index in range(1, 11)]
    for vmi in hanging:
        stage.start_launcher(vmi).tell("hang SyncVirtualMachine")
        stage.create(vmi)
    for launcher in stage.launchers:
        harness.wait_for(lambda: launcher.count("SyncVirtualMachine") == 1, "the sync that hangs")
    names = start_many(stage, range(11, 61))
    harness.WriteTail(stage.api).wait_running(names, PATIENCE)
    assert stage.api.event_messages("SyncFailed") == []
    assert all(phases(stage)[vmi["metadata"]["name"]] == "Scheduled" for vmi in hanging)


def test_thousand_vms(stage):
    """In waves; what each costs is bounded, and an agent that restarts lists all of them and writes nothing."""
    stage.api.lift_rate_limit()
    handler = stage.start_handler()
    idle = usage(handler.popen.pid)
    tail, names = harness.WriteTail(stage.api), []
    for first in range(1, 1001, 100):
        names += start_many(stage, range(first, first + 100))
        tail.wait_running(names, PATIENCE)
    tail.wait_quiet(QUIET, PATIENCE)
    anonymous, threads, descriptors = usage(handler.popen.pid)
    assert (anonymous - idle[0]) / len(names) < 100 or SANITIZED, "KiB a VM"
    assert threads <= 66
    assert (descriptors - idle[2]) / len(names) <= 4, "connection, pipe, its peer, and what is on the way"

    writes = len(tail.writes)
    handler.stop()
    handler = stage.start_handler()
    harness.wait_for(lambda: handler.text().count("VMI is in phase: Running") >= len(names), "a look at each VM", PATIENCE)
    harness.wait_for(lambda: usage(handler.popen.pid)[2] - idle[2] >= len(names), "the pipe of each VM", PATIENCE)
    tail.wait_quiet(QUIET, PATIENCE)
    assert [kind_of(write) for write in tail.writes[writes:] if write["path"] != NODE] == []
    assert set(phases(stage).values()) == {"Running"}
    last = stage.launchers[-1]
    last.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True, last.vm)


def foreign_vmi(index):
    vmi = harness.numbered(100000 + index)
    vmi["metadata"]["labels"]["kubevirt.io/nodeName"] = vmi["status"]["nodeName"] = "node02"
    vmi["status"]["activePods"] = {harness.pod_of(vmi): "node02"}
    return vmi


def test_five_thousand_elsewhere(stage):
    """field:FR-A02 field:FR-J07: Half before the agent starts, half while it watches: no trace of them in the log, the heap or the API."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(stage.create, map(foreign_vmi, range(FOREIGN // 2))))
        handler = stage.start_handler("-v", "5")
        stage.run_vm()
        before = usage(handler.popen.pid)
        list(pool.map(stage.create, map(foreign_vmi, range(FOREIGN // 2, FOREIGN))))
    stage.launchers[0].tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    after = usage(handler.popen.pid)
    assert after[0] - before[0] <= 200 or SANITIZED, "KiB"
    assert after[1:] <= (before[1] + 2, before[2] + 2)
    assert "vm10" not in handler.text()
    assert all("vm10" not in json.dumps(write) for write in stage.api.writes())


def peak(pid):
    """KiB resident at most."""
    return int(next(line.split()[1] for line in harness.status(pid).splitlines() if line.startswith("VmHWM:")))


def test_cold_start_among_many_volumes(stage):
    """field:FR-A08: 200 VMs with 20 volumes each are there when the agent starts: it needs little more for the list than afterwards."""
    names = [f"disk{number}" for number in range(20)]
    for index in range(1, 201):
        vmi = harness.numbered(index, phase="Running",
                               volumeStatus=[{"name": name, "target": f"vd{name}", "size": 1 << 30, "persistentVolumeClaimInfo": {
                                   "claimName": name, "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"},
                                   "requests": {"storage": "1Gi"}, "volumeMode": "Filesystem"}} for name in names])
        vmi["spec"]["domain"]["devices"]["disks"] = [{"name": name, "disk": {"bus": "virtio"}} for name in names]
        vmi["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
        vmi["metadata"]["annotations"] = {"note": "x" * 4096}
        stage.create(vmi)
    handler = stage.start_handler()
    harness.wait_for(lambda: set(phases(stage).values()) == {"Failed"}, "the VMs to be seen: they have no launcher", PATIENCE)
    assert peak(handler.popen.pid) < 48 << 10 or SANITIZED
    for hands in harness.children(handler.popen.pid):
        assert peak(hands) < 12 << 10 or SANITIZED
