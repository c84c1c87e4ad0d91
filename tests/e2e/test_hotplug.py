# SPDX-License-Identifier: Apache-2.0
"""Volumes that are plugged into a guest that runs, and taken out again: files, claims, block devices."""

import contextlib
import fcntl
import glob
import json
import os
import re
import signal
import stat
import subprocess
import time

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, PROGRAM, Chandler, manifest, wait
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


# What tries, as long as it is let, to open a block device as a process of the pod that has it, and says what it could not.
OPENER = """
import os, sys
node, procs = sys.argv[1:]
with open(procs, "w") as file:
    file.write("0")
print("opening", flush=True)
n = 0
while os.getppid() != 1 and not os.path.exists(node + ".stop"):
    try:
        os.close(os.open(node, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        sys.exit(f"after {n}: {error}")
    n += 1
print("opened", n, flush=True)
"""


@contextlib.contextmanager
def loop_device(image):
    """The image as a block device of this machine, whose devices all nodes share."""
    device = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def pod_cgroup(chandler, name="hotplug"):
    """Of the device controller."""
    pod_uid, = chandler.vmi(name)["status"]["activePods"]
    directory = f"/sys/fs/cgroup/devices/chandler-pod{pod_uid}"
    return pod_uid, directory if os.path.isdir(directory) else pytest.skip("no device controller of cgroup v1")


def allowed_blocks(directory):
    with open(os.path.join(directory, "devices.list"), encoding="utf-8") as file:
        return {line.split()[1] for line in file if line.startswith("b ") and "*" not in line}


def number_of(device):
    rdev = os.stat(device).st_rdev
    return f"{os.major(rdev)}:{os.minor(rdev)}"


def opens(directory, node):
    """Whether a process of the pod may open it; both ways, as QEMU does."""
    script = ("import os, sys\nopen(sys.argv[2], 'w').write('0')\n"
              "try:\n    os.open(sys.argv[1], os.O_RDWR)\nexcept PermissionError:\n    sys.exit(42)")
    status = subprocess.run(["/usr/bin/python3", "-c", script, node, os.path.join(directory, "cgroup.procs")], check=False).returncode
    assert status in (0, 42)
    return status == 0


def test_block_device_comes_and_goes(chandler, console, tmp_path):
    """Its node is made in the pod, whose processes may open it as long as the guest has it. A device that was there before may be
    opened all the time, whatever comes and goes beside it.
    spec:05-16.4#93 spec:05-16.4#97 spec:05-16.4#98"""
    names = ("kept", "second", "third")
    with contextlib.ExitStack() as stack:
        kept, *others = (stack.enter_context(loop_device(make_image(tmp_path / f"{name}.img", f"from-{name}"))) for name in names)
        pod_uid, cgroup = pod_cgroup(chandler)
        assert not any(opens(cgroup, device) for device in (kept, *others))
        assert 'volume "kept" attached as vda' in chandler.ok("attach", "hotplug", kept, "--name", "kept")
        status = status_of(chandler, "kept")
        assert status["persistentVolumeClaimInfo"]["volumeMode"] == "Block"
        guest_reads(console, "vda", "from-kept")
        guest_writes(console, "vda", "guest-was-here")
        node, = glob.glob(f"{chandler.state}/podrunner/**/{pod_uid}/**/hotplug-disks/kept", recursive=True)
        info = os.lstat(node)
        assert stat.S_ISBLK(info.st_mode) and info.st_rdev == os.stat(kept).st_rdev and info.st_uid == 107
        assert allowed_blocks(cgroup) == {number_of(kept)} and opens(cgroup, node) and not opens(cgroup, others[0])

        opener = subprocess.Popen(["/usr/bin/python3", "-c", OPENER, node, os.path.join(cgroup, "cgroup.procs")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert opener.stdout.readline() == "opening\n"
        for other, name in zip(others, names[1:]):
            chandler.ok("attach", "hotplug", other, "--name", name)
            assert allowed_blocks(cgroup) == {number_of(kept), number_of(other)} and opens(cgroup, other)
            guest_reads(console, "vdb", f"from-{name}")
            chandler.ok("detach", "hotplug", name)
            guest_lost(console, "vdb", name)
            assert allowed_blocks(cgroup) == {number_of(kept)} and not opens(cgroup, other)
        with open(node + ".stop", "w", encoding="utf-8") as stop:
            out, err = opener.communicate(timeout=60)
        os.unlink(stop.name)
        assert opener.returncode == 0 and out.startswith("opened "), err

        chandler.ok("detach", "hotplug", "kept")
        guest_lost(console, "vda", "kept")
        assert not os.path.lexists(node) and not allowed_blocks(cgroup) and not opens(cgroup, kept)
        assert not volume_pods(chandler) and not mounts_of_pods(chandler)
    with open(tmp_path / "kept.img", "rb") as file:
        assert file.read(14) == b"guest-was-here"


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
    assert "no such file" in chandler.fails("attach", "hotplug", str(tmp_path / "nothing.img"))
    assert "has no file disk.img" in chandler.fails("attach", "hotplug", str(tmp_path))
    with loop_device(make_image(tmp_path / "held.img", "held")) as device:
        holder = os.open(device, os.O_RDONLY | os.O_EXCL)  # as a mount does
        assert "is in use" in chandler.fails("attach", "hotplug", device)
        os.close(holder)
    assert "has no volume or network 'nothing'" in chandler.fails("detach", "hotplug", "nothing")
    assert "there is no claim 'nosuchclaim'" in chandler.fails("attach", "hotplug", "nosuchclaim", "--no-wait")
    (tmp_path / "disk.qcow2").write_bytes(b"QFI\xfb" + bytes(512))
    assert "is a qcow2 image, and only raw ones" in chandler.fails("attach", "hotplug", str(tmp_path / "disk.qcow2"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "disk.img").write_bytes(b"QFI\xfb" + bytes(512))
    assert f"'{tmp_path}/sub/disk.img' is a qcow2 image" in chandler.fails("attach", "hotplug", str(tmp_path / "sub"))
    image = make_image(tmp_path / "named.img", "named")
    assert "lower-case letters, digits and '-'" in chandler.fails("attach", "hotplug", image, "--name", "My_Data")
    assert "--timeout is a number of seconds" in chandler.fails("attach", "hotplug", image, "--timeout", "0")
    assert "--bus is virtio or scsi" in chandler.fails("attach", "hotplug", "data", "--bus", "ide")


def test_name_in_use_leaves_its_claim_alone(chandler, tmp_path):
    (tmp_path / "other").mkdir()
    first = make_image(tmp_path / "twice.img", "first")
    second = make_image(tmp_path / "other" / "twice.img", "second")
    chandler.ok("attach", "hotplug", first)
    claim = chandler.ok("get", "pvc", "hotplug-twice", "-o", "json")
    assert "has a volume 'twice' already" in chandler.fails("attach", "hotplug", second)
    assert chandler.ok("get", "pvc", "hotplug-twice", "-o", "json") == claim
    chandler.ok("detach", "hotplug", "twice")


def volumes_of(chandler):
    return {volume["name"] for volume in chandler.vmi("hotplug")["spec"].get("volumes", [])}


def claims_of(chandler):
    return {claim["metadata"]["name"] for claim in json.loads(chandler.ok("get", "pvc", "-o", "json"))["items"]}


def record_of(chandler):
    uid, = chandler.vmi("hotplug")["status"]["activePods"]
    return os.path.join(chandler.state, "podrunner", "run", uid, "record.json")


def forget_uses(chandler):
    """The record becomes one of an earlier version, which did not know whose disks are."""
    with open(record_of(chandler), encoding="utf-8") as file:
        record = json.load(file)
    del record["uses"]
    with open(record_of(chandler), "w", encoding="utf-8") as file:
        json.dump(record, file)


def test_disk_belongs_to_one_vm(chandler, tmp_path):
    """Two guests that write to it would destroy it. What is refused leaves nothing; a pod runner that comes later knows whose the
    disk is, or finds out. A device node in a second pod is another inode, so QEMU's own locks would not help."""
    image = make_image(tmp_path / "sole.img", "sole")
    with loop_device(image) as device:
        chandler.ok("attach", "hotplug", device, "--name", "sole")
        assert "is in use by the VM default/hotplug (volume sole)" in chandler.fails("attach", "hotplug", image, "--name", "behind")
        before = volumes_of(chandler), claims_of(chandler)
        for run in range(3):
            refused = chandler.fails("attach", "hotplug", device, "--name", "again")
            assert f"'{device}' is in use by the VM default/hotplug (volume sole)" in refused and "shareable" in refused
            assert (volumes_of(chandler), claims_of(chandler)) == before
            if run == 1:
                forget_uses(chandler)
            if run < 2:
                pid = chandler.pid_of("chandler-podrunner")
                os.kill(pid, signal.SIGKILL)
                wait(lambda old=pid: chandler.pid_of("chandler-podrunner") not in (0, old), "it is started anew")
        assert "has the claim 'hotplug-sole' already, as its volume 'sole'" in chandler.fails(
            "attach", "hotplug", "hotplug-sole", "--name", "third")
        wait(lambda: "volume 'again': " in chandler.ok("get", "events"), "an event tells of it")

        devices = {"autoattachPodInterface": False, "disks": [{"name": "mine", "disk": {"bus": "virtio"}}]}
        second = manifest(tmp_path, "second", devices=devices)
        with open(second, encoding="utf-8") as file:
            document = json.load(file)
        document["spec"]["volumes"] = [{"name": "mine", "persistentVolumeClaim": {"claimName": "hotplug-sole", "hotpluggable": True}}]
        with open(second, "w", encoding="utf-8") as file:
            json.dump(document, file)
        assert "is in use by the VM default/hotplug (volume sole)" in chandler.fails("run", second)
        assert chandler.condition("Synchronized", "second")["reason"] == "VolumeInUse"
        chandler.ok("detach", "hotplug", "sole")
        wait(lambda: chandler.phase("second") not in ("Pending", "Scheduling"), "the other one may start now")
        chandler.ok("delete", "second")


def test_vm_that_waits_keeps_no_disk(chandler, tmp_path):
    """Two VMs that want the same disks would wait for each other."""
    free = make_image(tmp_path / "free.img", "free")
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "free", "annotations": {"chandler.dev/path": free}},
             "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}
    (tmp_path / "claim.yaml").write_text(yaml.safe_dump(claim))
    chandler.ok("apply", str(tmp_path / "claim.yaml"))
    chandler.ok("attach", "hotplug", make_image(tmp_path / "taken.img", "taken"))
    claims = {"one": "free", "two": "hotplug-taken"}
    waiting = manifest(tmp_path, "waiting", devices={"autoattachPodInterface": False, "disks": [
        {"name": name, "disk": {"bus": "virtio"}} for name in claims]})
    with open(waiting, encoding="utf-8") as file:
        document = json.load(file)
    document["spec"]["volumes"] = [{"name": name, "persistentVolumeClaim": {"claimName": claim, "hotpluggable": True}}
                                   for name, claim in claims.items()]
    with open(waiting, "w", encoding="utf-8") as file:
        json.dump(document, file)
    assert "is in use by the VM default/hotplug (volume taken)" in chandler.fails("run", waiting)
    chandler.ok("attach", "hotplug", free)
    wait(lambda: "(volume free)" in chandler.condition("Synchronized", "waiting")["message"], "it waits for the other one now")
    chandler.ok("detach", "hotplug", "free")
    chandler.ok("detach", "hotplug", "taken")
    wait(lambda: chandler.phase("waiting") not in ("Pending", "Scheduling"), "it may start now")
    chandler.ok("delete", "waiting")


def test_disk_that_all_share(chandler, tmp_path):
    """Each says so: two disks of one guest stand for two guests. Those who look at the device at once do not take each other for its users."""
    console = shell(chandler, "hotplug")
    with loop_device(make_image(tmp_path / "common.img", "from-common")) as device:
        both = [subprocess.Popen([PROGRAM, "attach", "hotplug", device, *options], env=chandler.environment)
                for options in (("--name", "one", "--shareable"), ("--name", "two", "--read-only"))]
        assert [process.wait(timeout=60) for process in both] == [0, 0]
        assert "is in use by" in chandler.fails("attach", "hotplug", device, "--name", "greedy")
        target = status_of(chandler, "two")["target"]
        guest_reads(console, target, "from-common")
        console.send(f"echo x 2>/dev/null >/dev/{target}; echo written-$?\n")
        console.until("written-1")
        console.send("exit\n\x1d")
        console.status()
        for name in ("one", "two"):
            chandler.ok("detach", "hotplug", name)


@contextlib.contextmanager
def locked(path):
    """As another QEMU has it: with its locks on the bytes by which they tell each other what they do."""
    with open(path, "r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX, 200, 100)
        yield


def test_volume_that_is_refused_holds_up_no_other(chandler, tmp_path):
    """QEMU locks an image: one that is locked already cannot come. Who waits for it is told why, and may leave."""
    path = make_image(tmp_path / "held.img", "held")
    with locked(path):
        late = chandler.fails("attach", "hotplug", path, "--timeout", "40")
        assert "is not attached after 40 s: " in late and "lock" in late
        chandler.ok("attach", "hotplug", make_image(tmp_path / "later.img", "later"))
        chandler.ok("detach", "hotplug", "held")
        waiting = subprocess.Popen([PROGRAM, "attach", "hotplug", path], env=chandler.environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shown = waiting.stdout.readline()
        assert re.match(r" +\d+\.\d s  held: \S", shown), shown
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 1 and "attached as" not in out and "interrupted before volume 'held' was attached" in err
        assert "chandler detach hotplug held" in err
    wait(lambda: status_of(chandler, "held")["phase"] == "Ready", "it went on")
    for volume in ("later", "held"):
        chandler.ok("detach", "hotplug", volume)


def test_detach_that_was_cut_off_goes_on(chandler, tmp_path):
    """The volume has left the specification by then, and its claim is gone, but the guest still has it: here for want of an agent."""
    path = make_image(tmp_path / "slow.img", "slow")
    chandler.ok("attach", "hotplug", path)
    agent = chandler.pid_of("virt-handler")
    os.kill(agent, signal.SIGSTOP)
    try:
        for _ in range(2):
            late = chandler.fails("detach", "hotplug", "slow", "--timeout", "2")
            assert "is not detached after 2 s" in late and "'chandler detach hotplug slow' waits again" in late
            assert "slow" not in volumes_of(chandler) and "hotplug-slow" not in claims_of(chandler)
        assert "'slow' is just being detached" in chandler.fails("attach", "hotplug", path)
    finally:
        os.kill(agent, signal.SIGCONT)
    assert 'volume "slow" detached' in chandler.ok("detach", "hotplug", "slow")
    assert status_of(chandler, "slow") is None


def test_what_is_amiss_later_is_told_once(chandler, tmp_path):
    """Here a file that is gone when its pod is to be made anew. The guest has it open."""
    path = make_image(tmp_path / "lost.img", "lost")
    chandler.ok("attach", "hotplug", path)
    with open(record_of(chandler), encoding="utf-8") as file:
        plugged = json.loads(json.load(file)["hotplugs"])
    os.unlink(path)
    os.kill(next(item["pid"] for item in plugged if item["volume"] == "lost"), signal.SIGKILL)
    chandler.kubectl("annotate", "vmi", "hotplug", "look=again")

    def told():
        events = json.loads(chandler.ok("get", "events", "-o", "json"))["items"]
        return sum(event.get("count", 1) for event in events if "volume 'lost': " in event.get("message", ""))

    wait(told, "an event tells of it")
    time.sleep(5)  # some attempts
    assert told() == 1
    chandler.ok("detach", "hotplug", "lost")


def test_attach_waits_for_the_vm(chandler, tmp_path):
    vm = manifest(tmp_path, "never")
    with open(vm, encoding="utf-8") as file:
        document = json.load(file)
    document["spec"]["volumes"] = [{"name": "none", "containerDisk": {"image": "not/here"}}]
    with open(vm, "w", encoding="utf-8") as file:
        json.dump(document, file)
    chandler.ok("apply", vm)
    wait(lambda: chandler.condition("Synchronized", "never").get("reason") == "ErrImagePull", "it cannot start")
    path = make_image(tmp_path / "x.img", "x")
    late = chandler.fails("attach", "never", path, "--timeout", "3")
    assert "image 'not/here' is not on this machine" in late
    assert "is in use by the VM default/never (volume x)" in chandler.fails("attach", "hotplug", path)
    chandler.ok("detach", "never", "x")
    chandler.ok("attach", "hotplug", path)
    chandler.ok("detach", "hotplug", "x")
    chandler.ok("delete", "never")


def test_too_large_names_the_file(chandler, tmp_path):
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": {"x": "y" * (3 << 20)}}
    (tmp_path / "large.yaml").write_text("# one\n---\n" + json.dumps(document))
    error = chandler.fails("apply", str(tmp_path / "large.yaml"))
    assert "large.yaml:3: the object is too large: " in error and "3 MiB" in error


def test_size_of_a_directory(chandler, tmp_path):
    make_image(tmp_path / "disk.img", "sized")
    chandler.ok("attach", "hotplug", str(tmp_path), "--name", "sized")
    assert re.search(r"hotplug-sized +Bound +.*1Mi", chandler.ok("get", "pvc")), chandler.ok("get", "pvc")
    chandler.ok("detach", "hotplug", "sized")


def test_down_leaves_nothing_of_it(chandler):
    chandler.ok("down")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert chandler.state + "/podrunner" not in file.read()
