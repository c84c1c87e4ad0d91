# SPDX-License-Identifier: Apache-2.0
"""Volumes that are plugged into a guest that runs, and taken out again: files, claims, block devices."""

import json
import os
import signal

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, Chandler, wait
from test_guest_network import shell

SIZE = 1 << 20

pytestmark = NEEDS


@pytest.fixture(scope="module")
def chandler():
    made = Chandler()
    try:
        made.ok("up", "--emulation", "on")
        made.ok("run", os.path.join(EXAMPLES, "hotplug.yaml"))
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def console(chandler):
    opened = shell(chandler, "hotplug")
    yield opened
    opened.send("exit\n\x1d")
    opened.status()


def make_image(path, text):
    with open(path, "wb") as file:
        file.write(text.encode())
        file.truncate(SIZE)
    return str(path)


def status_of(chandler, volume):
    statuses = chandler.vmi("hotplug").get("status", {}).get("volumeStatus") or []
    return next((status for status in statuses if status["name"] == volume), None)


def volume_pods(chandler):
    items = json.loads(chandler.ok("get", "pods", "-o", "json"))["items"]
    return [pod for pod in items if pod["metadata"]["name"].startswith("hp-volume-")]


def guest_reads(console, device, text):
    """Its first bytes, however long the device takes to appear."""
    console.send(f"until [ -b /dev/{device} ]; do sleep 1; done; echo read-$(head -c {len(text)} /dev/{device})-end\n")
    console.until(f"read-{text}-end")


def guest_writes(console, device, text):
    console.send(f"printf {text} >/dev/{device} && sync && echo wrote-$((40+2))\n")
    console.until("wrote-42")


def guest_lost(console, device, mark):
    console.send(f"while [ -b /dev/{device} ]; do sleep 1; done; echo lost-{mark}-$((40+2))\n")
    console.until(f"lost-{mark}-42")


def mounts_of_pods(chandler):
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return [line for line in file if "/pods/" in line and chandler.state in line]


def test_file_comes_and_goes(chandler, console, tmp_path):
    path = make_image(tmp_path / "My data.img", "from-this-machine")
    assert 'volume "my-data" attached as vda' in chandler.ok("attach", "hotplug", path)
    status = status_of(chandler, "my-data")
    pod, = volume_pods(chandler)
    assert status["phase"] == "Ready" and status["target"] == "vda"
    assert status["hotplugVolume"] == {"attachPodName": pod["metadata"]["name"], "attachPodUID": pod["metadata"]["uid"]}
    assert status["persistentVolumeClaimInfo"]["claimName"] == "hotplug-my-data"
    guest_reads(console, "vda", "from-this-machine")
    guest_writes(console, "vda", "written-by-guest")
    assert 'volume "my-data" detached' in chandler.ok("detach", "hotplug", "my-data")
    guest_lost(console, "vda", "file")
    with open(path, "rb") as file:
        assert file.read(16) == b"written-by-guest"
    assert os.path.getsize(path) == SIZE
    assert not volume_pods(chandler) and status_of(chandler, "my-data") is None
    assert not mounts_of_pods(chandler)
    claims = json.loads(chandler.ok("get", "pvc", "-o", "json"))["items"]
    assert [claim["metadata"]["name"] for claim in claims] == ["data"], "the one that attach made is gone"


def test_claim_with_a_directory(chandler, console, tmp_path):
    """As a local volume of a cluster: the disk is the directory's disk.img. Those who plugged it in crash meanwhile.
    The claim stays when the disk goes."""
    make_image(tmp_path / "disk.img", "from-a-directory")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
             "metadata": {"name": "folder", "annotations": {"chandler.dev/path": str(tmp_path)}},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    (tmp_path / "claim.yaml").write_text(yaml.safe_dump(claim))
    chandler.ok("apply", str(tmp_path / "claim.yaml"))
    chandler.ok("attach", "hotplug", "folder")
    target = status_of(chandler, "folder")["target"]
    guest_reads(console, target, "from-a-directory")
    for program in ("chandler-podrunner", "virt-handler"):
        pid = chandler.pid_of(program)
        os.kill(pid, signal.SIGKILL)
        wait(lambda old=pid, name=program: chandler.pid_of(name) not in (0, old), f"{program} is started anew")
    chandler.ok("detach", "hotplug", "folder")
    guest_lost(console, target, "folder")
    assert not volume_pods(chandler) and not mounts_of_pods(chandler)
    assert json.loads(chandler.ok("get", "pvc", "folder", "-o", "json"))["status"]["phase"] == "Bound"


def test_two_at_once_and_the_end(chandler, console, tmp_path):
    """The VM ends with what is plugged in; the files are as the guest left them, and nothing else is left."""
    for name in ("one", "two"):
        chandler.ok("attach", "hotplug", make_image(tmp_path / f"{name}.img", f"this-is-{name}"))
    targets = {status_of(chandler, name)["target"] for name in ("one", "two")}
    assert len(targets) == 2
    for name in ("one", "two"):
        guest_reads(console, status_of(chandler, name)["target"], f"this-is-{name}")
    chandler.ok("delete", "hotplug")
    wait(lambda: not volume_pods(chandler), "the pods go")
    wait(lambda: not mounts_of_pods(chandler), "the mounts go")
    wait(lambda: not os.listdir(os.path.join(chandler.state, "podrunner", "pods")), "the directories go")


def test_vm_begins_with_what_is_plugged_in(chandler, tmp_path):
    """It waits for the claim, and starts with the disk."""
    with open(os.path.join(EXAMPLES, "hotplug.yaml"), encoding="utf-8") as file:
        claim, vm = yaml.safe_load_all(file)
    claim["metadata"]["name"] = "late"
    claim["metadata"]["annotations"]["chandler.dev/path"] = make_image(tmp_path / "late.img", "from-the-start")
    vm["spec"]["volumes"] = [{"name": "late", "persistentVolumeClaim": {"claimName": "late", "hotpluggable": True}}]
    vm["spec"]["domain"]["devices"]["disks"] = [{"name": "late", "disk": {"bus": "virtio"}}]
    for name, document in (("claim", claim), ("vm", vm)):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(document))
    chandler.ok("apply", str(tmp_path / "vm.yaml"))
    wait(lambda: (status_of(chandler, "late") or {}).get("phase") == "Pending", "it says that the claim is missing")
    assert chandler.phase("hotplug") == "Scheduled"
    chandler.ok("apply", str(tmp_path / "claim.yaml"))
    wait(lambda: chandler.condition("AgentConnected", "hotplug").get("status") == "True", "it boots")
    console = shell(chandler, "hotplug")
    guest_reads(console, "vda", "from-the-start")
    console.send("exit\n\x1d")
    console.status()
    wait(lambda: status_of(chandler, "late")["phase"] == "Ready", "the agent tells of it")


def test_wrong_wishes_are_refused(chandler, tmp_path):
    assert "there is no VM 'nobody'" in chandler.fails("attach", "nobody", "/dev/null")
    assert "neither a file, nor a block device" in chandler.fails("attach", "hotplug", "/dev/null")
    assert "No such file" in chandler.fails("attach", "hotplug", str(tmp_path / "nothing.img"))
    assert "has no volume 'nothing'" in chandler.fails("detach", "hotplug", "nothing")
    assert "--bus is virtio or scsi" in chandler.fails("attach", "hotplug", "data", "--bus", "ide")


def test_down_leaves_nothing_of_it(chandler):
    chandler.ok("down")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert chandler.state + "/podrunner" not in file.read()
