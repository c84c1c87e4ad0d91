# SPDX-License-Identifier: Apache-2.0
"""Take-over: from the Go agent to ours and back, with VMs that run. All is compared byte by byte, with modes, owners and names.

data/go-agent-state.json is the private directory as v1.9.0 leaves it (specification 01 §10, 04 §4.1, 05 §6.2, §7.3) with three VMs:
vm1 on the pod network, vm2 with a container disk and a hotplugged volume, vm3 whose pod and VMI are gone.
"""
import json
import os
import pathlib
import socket

import harness
import podnet
import test_network

STATE = json.loads((pathlib.Path(__file__).parent / "data/go-agent-state.json").read_text())
ENDING = ("ShutdownVirtualMachine", "KillVirtualMachine", "DeleteVirtualMachine")
QEMU = 107


UNPLUGGED = "hotplug-volume-mount-state/1111bbbb-0000-4000-8000-000000000002"


def text_of(path):
    """A file's text and all that a second agent could trip over; of a directory its mode and owner."""
    info = path.lstat()
    return (path.read_bytes() if path.is_file() else None, oct(info.st_mode), f"{info.st_uid}:{info.st_gid}")


def entries(directory):
    return {str(path.relative_to(directory)): text_of(path) for path in sorted(directory.rglob("*"))}


def identities(directory):
    """Changes when a file is written again, even with the same bytes."""
    return {path: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in directory.rglob("*") if path.is_file()}


def dead_socket(path, owner=0):
    """What a process that is gone leaves of its listening socket."""
    path.parent.mkdir(parents=True, exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.close()
    os.chown(path, owner, owner)


def running(vmi):
    vmi["status"]["phase"] = "Running"
    vmi["status"]["phaseTransitionTimestamps"].append({"phase": "Running", "phaseTransitionTimestamp": "2026-11-29T00:00:01Z"})
    return vmi


def masqueraded():
    """VMI vm1, with its interface's members in the order in which a Go API server sends them."""
    vmi = test_network.document("masquerade", index=1, migrationTransport="Unix")
    vmi["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "model": "virtio", "masquerade": {}}]
    return vmi


def untouched(launcher):
    return launcher.popen.poll() is None and not any(launcher.count(method) for method in ENDING)


def adopt(stage):
    """Two VMs that the Go agent started, which has just ended: their launchers. Ours has looked after both once."""
    dead_socket(harness.SHARE / "domain-notify.sock")
    launchers = []
    for vmi, network in zip((running(masqueraded()), running(harness.numbered(2))), (test_network.NET, None)):
        launcher = stage.start_launcher(vmi, network)
        launcher.tell("emit MODIFIED Running Unknown")
        dead_socket(launcher.pipe, QEMU)
        stage.create(vmi)
        launchers.append(launcher)
    before = [podnet.look(launcher) for launcher in launchers]
    stage.start_handler()
    for launcher in launchers:
        harness.wait_for(lambda: launcher.count("SyncVirtualMachine"), f"{launcher.vm} to be synced")
    assert [podnet.look(launcher) for launcher in launchers] == before
    return launchers


def test_adopts_what_the_go_agent_leaves(stage):
    """field:FR-B01 field:FR-B04 spec:01#62"""
    harness.plant(harness.PRIVATE, STATE)
    planted, ids = entries(harness.PRIVATE), identities(harness.PRIVATE)
    launchers = adopt(stage)
    gone = "ghost-records/1111bbbb-0000-4000-8000-000000000003"
    harness.wait_for(lambda: not {gone, UNPLUGGED} & set(entries(harness.PRIVATE)), "the records of what is gone to go")
    for launcher in launchers:
        launcher.tell("emit MODIFIED Paused User")  # through the pipe in the place of the dead one
        stage.api.wait_paused(True, launcher.vm)
        assert untouched(launcher)
    assert stage.handler.stop() == 0
    del planted[gone]
    del planted[UNPLUGGED]  # a volume that the VM does not have any more
    assert entries(harness.PRIVATE) == planted
    assert identities(harness.PRIVATE).items() <= ids.items()  # not even written again


def test_cleans_up_what_it_adopted(stage):
    """Of the VM that ends nothing stays, of the other everything."""
    harness.plant(harness.PRIVATE, STATE)
    adopt(stage)
    stage.api.delete_vmi("vm1")
    stage.api.wait_phase("Succeeded", "vm1")
    expected = {name for name in STATE if "000000000001" not in name and "000000000003" not in name and name != "/" + UNPLUGGED}
    harness.wait_for(lambda: set(harness.tree(harness.PRIVATE)) == expected, f"{expected}, is {set(harness.tree(harness.PRIVATE))}")


def test_leaves_what_the_go_agent_reads(stage):
    """The VM that the Go agent's state was taken from, started by ours: the same files; the end of our agent changes none."""
    stage.start_handler()
    launcher = stage.run_vm(vmi=masqueraded(), network=test_network.NET)[1]
    expected = {name.lstrip("/"): (entry["text"].encode() if "text" in entry else None, entry["mode"][2:], entry["owner"])
                for name, entry in STATE.items() if "000000000002" not in name and "000000000003" not in name}

    def left():
        return {name: (text, mode[-3:], owner) for name, (text, mode, owner) in entries(harness.PRIVATE).items()}
    assert left() == expected
    assert text_of(launcher.pipe)[1:] == ("0o140755", f"{QEMU}:{QEMU}")
    assert stage.handler.stop() == 0
    assert left() == expected
    assert text_of(launcher.pipe)[1:] == ("0o140755", f"{QEMU}:{QEMU}"), "the next agent puts its own in its place"
    assert untouched(launcher)
