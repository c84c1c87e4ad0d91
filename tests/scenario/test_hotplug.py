# SPDX-License-Identifier: Apache-2.0
"""Hotplugged volumes (specification 05 §7): mounted, told, taken away, whatever comes in between.

Attachment pods are processes with mounts of their own; what the agent mounts is looked at where the node sees it.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess

import harness
import pytest

NODE_PODS = pathlib.Path("/var/lib/kubelet/pods")
VOLUMES = "volumes/kubernetes.io~empty-dir/hotplug-disks"
CLAIM = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "requests": {"storage": "1Gi"}}


def mount_points(below):
    """Mount points, the topmost first."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].replace("\\040", " ") for line in reversed(lines) if line.split()[4].startswith(f"{below}/")]


def hands():
    """How many hands and children of theirs run."""
    n_running = 0
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            name, state = re.fullmatch(r"\d+ \((.*)\) (\w) .*", (directory / "stat").read_text(), re.S).groups()
            n_running += name == "virt-handler-hands"[:15] and state not in "ZX"
    return n_running


@pytest.fixture(autouse=True)
def kubelet(stage):
    """Kubelet's directory, which the agent has at /pods too. What a test leaves mounted must not stay for the next one."""
    if not NODE_PODS.is_symlink():
        NODE_PODS.parent.mkdir(parents=True, exist_ok=True)
        NODE_PODS.symlink_to(harness.PODS)
    yield
    if stage.handler is not None:
        assert stage.handler.stop() == 0, stage.handler.text()
        harness.wait_for(lambda: not hands(), "the hands' children to end")  # one might mount again what is unmounted here
    for point in mount_points(harness.PODS):
        subprocess.run(["umount", "--lazy", point], check=True)


class AttachmentPod(harness.Process):
    """Serves volumes: {name: directory}. Block devices: {name: (major, minor)}."""

    def __init__(self, stage, number, volumes, devices=None):
        self.uid = f"cccc0000-0000-4000-8000-{number:012d}"
        self.directory = harness.PODS / self.uid / VOLUMES
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, numbers in (devices or {}).items():
            (self.directory / name).mkdir()
            os.mknod(self.directory / name / f"pvc-{name}", stat.S_IFBLK | 0o660, os.makedev(*numbers))
        (self.directory / "hp.sock").unlink(missing_ok=True)
        super().__init__(f"attachment pod {number}",
                         ["unshare", "--mount", "--propagation", "private", "/usr/bin/python3",
                          harness.ROOT / "tests/scenario/attachment_pod.py", stage.directory / f"root-{self.uid}", self.directory,
                          *(f"{name}={source}" for name, source in volumes.items())],
                         stage.directory / f"attachment-{number}.log", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.popen.stdout.readline() == b"ready\n", self.text()
        stage.launchers.append(self)  # ends with the test

    def vanish(self):
        """The pod and its directory go; what was mounted of it elsewhere stays."""
        self.popen.kill()
        self.popen.wait()
        shutil.rmtree(harness.PODS / self.uid)


def volume_uid(number):
    return f"cccc0000-0000-4000-8000-{number:012d}"


def make_volume(stage, name, text=None):
    """A file system volume; @text: of its disk.img, None: it has none."""
    directory = stage.directory / f"volume-{name}"
    directory.mkdir()
    if text is not None:
        (directory / "disk.img").write_text(text)
    return directory


def source_of(name, kind="pvc"):
    if kind == "dump":
        return {"name": name, "memoryDump": {"claimName": name, "hotpluggable": True}}
    return {"name": name, "persistentVolumeClaim": {"claimName": name, "hotpluggable": True}}


def status_of(name, pod=1, mode="Filesystem", phase="AttachedToNode", **more):
    return {"name": name, "target": "", "phase": phase, "reason": "AttachedToNode", "message": f"Created hotplug attachment pod for {name}",
            "hotplugVolume": {"attachPodName": f"hp-volume-{pod}", "attachPodUID": volume_uid(pod) if pod else ""},
            "persistentVolumeClaimInfo": {"claimName": name, "volumeMode": mode, **CLAIM}, **more}


def vm_with(*statuses, volumes=None, index=1):
    """A scheduled VM with these hotplugged volumes in its status; @volumes: in its spec, else the same."""
    vmi = harness.numbered(index)
    vmi["spec"]["volumes"] += [source_of(entry["name"]) for entry in statuses] if volumes is None else volumes
    vmi["status"]["volumeStatus"] = list(statuses)
    directory_of(vmi).mkdir(parents=True)
    return vmi


def name_of(vmi):
    return vmi["metadata"]["name"]


def directory_of(vmi):
    return harness.PODS / harness.pod_of(vmi) / VOLUMES


def record_of(vmi):
    return harness.PRIVATE / "hotplug-volume-mount-state" / vmi["metadata"]["uid"]


def record_text(vmi, *names):
    directory = NODE_PODS / harness.pod_of(vmi) / VOLUMES
    return json.dumps({"mountTargetEntries": [{"targetFile": f"{directory}/{name}"} for name in names], "usesSafePaths": True},
                      separators=(",", ":"))


def is_mounted(path):
    return str(path) in mount_points(path.parent)


def phase_of(stage, vmi, volume):
    entries = stage.api.vmi(name_of(vmi))["status"].get("volumeStatus") or []
    return next((entry["phase"] for entry in entries if entry["name"] == volume), None)


def wait_volume(stage, vmi, volume, phase):
    harness.wait_for(lambda: phase_of(stage, vmi, volume) == phase, f"{volume} to be {phase} (is {phase_of(stage, vmi, volume)})")


def unplug(stage, vmi, *names):
    """As virt-api does it: the spec loses the volumes, the status keeps them until they are gone."""
    volumes = [v for v in stage.api.vmi(name_of(vmi))["spec"]["volumes"] if v["name"] not in names]
    stage.api.patch_vmi({"spec": {"volumes": volumes}}, name_of(vmi))


def plug(stage, vmi, *statuses, volumes=None):
    """Adds volumes to a VM, as virt-controller shows them once their pods run."""
    stored = stage.api.vmi(name_of(vmi))
    volumes = stored["spec"]["volumes"] + ([source_of(entry["name"]) for entry in statuses] if volumes is None else volumes)
    stage.api.patch_vmi({"spec": {"volumes": volumes},
                         "status": {"volumeStatus": (stored["status"].get("volumeStatus") or []) + list(statuses)}}, name_of(vmi))


def start(stage, vmi, *flags, **kwargs):
    launcher = stage.start_launcher(vmi, **kwargs)
    handler = stage.start_handler(*flags)
    stage.create(vmi)
    return handler, launcher


def run(stage, vmi, *flags):
    handler, launcher = start(stage, vmi, *flags)
    stage.api.wait_phase("Running", name_of(vmi))
    return handler, launcher


def end_vm(stage, vmi, launcher):
    """The guest ends by itself; the VM is cleaned up."""
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded", name_of(vmi))


def test_volume_is_there_before_the_guest_starts(stage):
    """spec:05-16.4#100 spec:05-16.4#101 spec:05-16.4#104 spec:05-16.4#114 spec:02-14.6#2 spec:02-14.6#8 spec:01#33"""
    volume = make_volume(stage, "vol", "content")
    AttachmentPod(stage, 1, {"vol": volume})
    vmi = vm_with(status_of("vol"))
    _, launcher = run(stage, vmi)
    target = directory_of(vmi) / "vol.img"
    assert is_mounted(target) and target.read_text() == "content"
    info = (volume / "disk.img").stat()
    assert (info.st_uid, info.st_gid) == (107, 107)
    assert record_of(vmi).read_text() == record_text(vmi, "vol.img")
    assert stat.S_IMODE(record_of(vmi).stat().st_mode) == 0o600
    sync = next(rpc for rpc in launcher.rpcs() if rpc["method"] == "SyncVirtualMachine")
    assert sync
    stage.api.wait_event("VolumeMountedToPod", "Volume vol has been mounted in virt-launcher pod")
    assert phase_of(stage, vmi, "vol") == "MountedToPod"


def test_no_room_for_the_record(stage, small_disk):
    """Nothing is mounted that is not on record; what has gone may stay there till there is room. No volume suffers for another one."""
    AttachmentPod(stage, 1, {name: make_volume(stage, name, name) for name in ("one", "two")})
    vmi = vm_with()
    handler, launcher = run(stage, vmi)
    level = harness.Level(handler)
    one, two = (directory_of(vmi) / f"{name}.img" for name in ("one", "two"))

    def wait_failure(start):
        """An event that tells why, of those whose text begins so."""
        text = f"{start}failed to checkpoint {vmi['metadata']['uid']}, "
        harness.wait_for(lambda: any(m.startswith(text) for m in stage.api.event_messages("SyncFailed")), f"the failure to be shown: {text}")

    small_disk.fill()
    plug(stage, vmi, status_of("one"), status_of("two"))
    wait_failure("failed to mount filesystem hotplug volume one: ")
    assert mount_points(directory_of(vmi)) == [] and not record_of(vmi).exists()
    small_disk.make_room()
    for name in ("one", "two"):
        wait_volume(stage, vmi, name, "MountedToPod")
    assert one.read_text() == "one" and two.read_text() == "two"
    small_disk.fill()
    unplug(stage, vmi, "one")
    wait_failure("")
    wait_volume(stage, vmi, "one", "UnMountedFromPod")
    assert mount_points(directory_of(vmi)) == [str(two)] and two.read_text() == "two"
    assert record_of(vmi).read_text() == record_text(vmi, "one.img", "two.img")
    small_disk.make_room()
    harness.wait_for(lambda: record_of(vmi).read_text() == record_text(vmi, "two.img"), "the record to be right")
    assert phase_of(stage, vmi, "two") == "MountedToPod" and stage.api.phase("vm1") == "Running"
    small_disk.fill()
    end_vm(stage, vmi, launcher)
    harness.wait_for(lambda: not record_of(vmi).exists() and stage.records() == set(), "the records to go: that needs no room")
    assert mount_points(directory_of(vmi)) == []
    level.check()


def test_start_waits_for_its_volumes(stage):
    """spec:05-16.4#103 spec:05-16.4#114 spec:02-14.6#1 spec:01#32"""
    volume = make_volume(stage, "vol", "late")
    vmi = vm_with(status_of("vol"))
    stage.api.say_more(3)  # each pass
    handler, launcher = start(stage, vmi)
    harness.wait_for(lambda: handler.text().count("VMI is in phase: Scheduled") >= 3, "some tries")
    assert launcher.count("SyncVirtualMachine") == 0 and not record_of(vmi).exists()
    AttachmentPod(stage, 1, {"vol": volume})
    stage.api.wait_phase("Running", name_of(vmi))
    assert (directory_of(vmi) / "vol.img").read_text() == "late"
    assert not stage.api.event_messages("HotplugFailed") and not stage.api.event_messages("SyncFailed")


def test_running_vm_is_synced_while_a_volume_waits(stage):
    """spec:05-16.4#113 spec:01#20 spec:02-14.1#18"""
    vmi = vm_with()
    _, launcher = run(stage, vmi)
    before = launcher.count("SyncVirtualMachine")
    plug(stage, vmi, status_of("vol"))
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before + 2, "some more syncs")
    assert phase_of(stage, vmi, "vol") == "AttachedToNode"
    AttachmentPod(stage, 1, {"vol": make_volume(stage, "vol", "x")})
    wait_volume(stage, vmi, "vol", "MountedToPod")
    assert not stage.api.event_messages("HotplugFailed") and not stage.api.event_messages("SyncFailed")


def test_missing_image_is_told_once_and_the_others_go_on(stage):
    """spec:05-16.4#102 spec:05-16.4#113 spec:01#21 spec:02-14.1#19 field:FR-G15 field:FR-G16"""
    empty = make_volume(stage, "empty")
    AttachmentPod(stage, 1, {"empty": empty})
    AttachmentPod(stage, 2, {"full": make_volume(stage, "full", "x")})
    vmi = vm_with()
    _, launcher = run(stage, vmi)
    plug(stage, vmi, status_of("empty", 1), status_of("full", 2))
    wait_volume(stage, vmi, "full", "MountedToPod")
    harness.wait_for(lambda: stage.api.event_messages("HotplugFailed"), "the event")
    assert "failed to mount filesystem hotplug volume empty: " in stage.api.event_messages("HotplugFailed")[0]
    before = launcher.count("SyncVirtualMachine")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before + 2, "some more syncs")
    events = [event for event in stage.api.events() if event["reason"] == "HotplugFailed"]
    assert len(events) == 1 and events[0].get("count", 1) == 1
    (empty / "disk.img").write_text("late")
    wait_volume(stage, vmi, "empty", "MountedToPod")
    assert (directory_of(vmi) / "empty.img").read_text() == "late"
    assert not stage.api.event_messages("SyncFailed")


def test_unplugged_volume_is_taken_away_after_a_restart(stage):
    """What an earlier agent mounted is known from its record only; one is not mounted any more. spec:05-16.4#84 spec:05-16.4#101
    spec:05-16.4#105 spec:05-16.4#106 spec:02-14.6#3 spec:02-14.6#9 spec:01#34"""
    AttachmentPod(stage, 1, {"a": make_volume(stage, "a", "a"), "b": make_volume(stage, "b", "b")})
    vmi = vm_with(status_of("a"), status_of("b"))
    run(stage, vmi)
    wait_volume(stage, vmi, "b", "MountedToPod")
    assert stage.handler.stop() == 0
    subprocess.run(["umount", directory_of(vmi) / "a.img"], check=True)
    unplug(stage, vmi, "a")
    stage.start_handler()
    wait_volume(stage, vmi, "a", "UnMountedFromPod")
    stage.api.wait_event("VolumeUnMountedFromPod", "Volume a has been unmounted from virt-launcher pod")
    assert not (directory_of(vmi) / "a.img").exists() and is_mounted(directory_of(vmi) / "b.img")
    assert record_of(vmi).read_text() == record_text(vmi, "b.img")
    unplug(stage, vmi, "a", "b")
    wait_volume(stage, vmi, "b", "UnMountedFromPod")
    assert not record_of(vmi).exists() and not mount_points(directory_of(vmi))


def test_each_volume_comes_from_its_own_pod(stage):
    """Both have a volume of that name. spec:05-16.4#94 field:FR-G05"""
    AttachmentPod(stage, 1, {"v": make_volume(stage, "one", "pod 1"), "w": make_volume(stage, "two", "pod 1 w")})
    AttachmentPod(stage, 2, {"v": make_volume(stage, "three", "pod 2")})
    vmi = vm_with(status_of("v", 2), status_of("w", 1))
    run(stage, vmi)
    assert (directory_of(vmi) / "v.img").read_text() == "pod 2"
    assert (directory_of(vmi) / "w.img").read_text() == "pod 1 w"


def test_memory_dump_is_a_directory(stage):
    """spec:05-16.4#112"""
    volume = make_volume(stage, "dump")
    AttachmentPod(stage, 1, {"dump": volume})
    vmi = vm_with()
    run(stage, vmi)
    plug(stage, vmi, status_of("dump", memoryDumpVolume={"claimName": "dump"}), volumes=[source_of("dump", "dump")])
    wait_volume(stage, vmi, "dump", "MemoryDumpInProgress")
    assert is_mounted(directory_of(vmi) / "dump")
    assert volume.stat().st_uid == 107
    assert record_of(vmi).read_text() == record_text(vmi, "dump")


def test_utility_volume_on_a_block_device_is_left_alone(stage):
    """spec:05-16.4#91"""
    AttachmentPod(stage, 1, {"good": make_volume(stage, "good")}, devices={"bad": (482, 64)})
    vmi = vm_with()
    handler, _ = run(stage, vmi)
    stored = stage.api.vmi(name_of(vmi))
    stored["spec"]["utilityVolumes"] = [{"name": "bad", "claimName": "bad"}, {"name": "good", "claimName": "good"}]
    stage.api.patch_vmi({"spec": {"utilityVolumes": stored["spec"]["utilityVolumes"]},
                         "status": {"volumeStatus": [status_of("bad", mode="Block"), status_of("good")]}}, name_of(vmi))
    wait_volume(stage, vmi, "good", "MountedToPod")
    assert is_mounted(directory_of(vmi) / "good") and not (directory_of(vmi) / "bad").exists()
    assert "Skipping mount for utility volume bad: configured with block mode PVC" in handler.text()
    assert record_of(vmi).read_text() == record_text(vmi, "good")
    assert not stage.api.event_messages("SyncFailed")


def test_stale_status_does_not_keep_other_volumes(stage):
    """A volume that is in the spec no more, and whose pod is gone. field:FR-G09 field:FR-G18"""
    AttachmentPod(stage, 2, {"wanted": make_volume(stage, "wanted", "x")})
    vmi = vm_with()
    run(stage, vmi)
    plug(stage, vmi, status_of("stale", 1, phase="Ready"), status_of("wanted", 2), volumes=[source_of("wanted")])
    wait_volume(stage, vmi, "wanted", "MountedToPod")
    wait_volume(stage, vmi, "stale", "UnMountedFromPod")
    assert not (directory_of(vmi) / "stale.img").exists()
    assert not stage.api.event_messages("HotplugFailed") and not stage.api.event_messages("SyncFailed")


def test_attachment_pod_that_goes_takes_nothing(stage):
    """field:FR-G13 field:FR-G19"""
    pod = AttachmentPod(stage, 1, {"vol": make_volume(stage, "vol", "content")})
    vmi = vm_with(status_of("vol"))
    _, launcher = run(stage, vmi)
    wait_volume(stage, vmi, "vol", "MountedToPod")
    pod.vanish()
    before = launcher.count("SyncVirtualMachine")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before + 2, "some more syncs")
    stored = stage.api.vmi(name_of(vmi))
    stored["status"]["volumeStatus"][0]["hotplugVolume"] = {"attachPodName": "hp-volume-2", "attachPodUID": volume_uid(2)}
    stage.api.patch_vmi({"status": {"volumeStatus": stored["status"]["volumeStatus"]}}, name_of(vmi))
    before = launcher.count("SyncVirtualMachine")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before + 2, "syncs with another pod")
    assert (directory_of(vmi) / "vol.img").read_text() == "content"
    assert phase_of(stage, vmi, "vol") == "MountedToPod"


def test_many_changes_at_once(stage):
    """Whatever came and went meanwhile, in the end what is wanted is there, and nothing else. field:FR-G12"""
    names = ("a", "b", "c")
    AttachmentPod(stage, 1, {name: make_volume(stage, name, name) for name in names})
    vmi = vm_with()
    run(stage, vmi)
    for i in range(50):
        wanted = [name for n, name in enumerate(names) if (i + n) % 3]
        stage.api.patch_vmi({"spec": {"volumes": vmi["spec"]["volumes"] + [source_of(name) for name in wanted]},
                             **({} if i % 7 else {"status": {"volumeStatus": [status_of(name) for name in names]}})}, name_of(vmi))
    for name in wanted:
        wait_volume(stage, vmi, name, "MountedToPod")
    harness.wait_for(lambda: len(mount_points(directory_of(vmi))) == len(wanted), "the other one to be unmounted")
    assert {(directory_of(vmi) / f"{name}.img").read_text() for name in wanted} == set(wanted)
    harness.wait_for(lambda: sorted(pathlib.Path(entry["targetFile"]).stem for entry in json.loads(record_of(vmi).read_text())["mountTargetEntries"])
                     == sorted(wanted), "the record to say so")
    assert not stage.api.event_messages("SyncFailed")


def test_clean_up_takes_all_away_without_a_record(stage):
    """spec:05-16.4#109 spec:05-16.4#87 spec:05-16.4#114 spec:02-14.6#5 spec:01#36 field:FR-G10"""
    AttachmentPod(stage, 1, {"a": make_volume(stage, "a", "a"), "b": make_volume(stage, "b", "b")})
    vmi = vm_with(status_of("a"), status_of("b"))
    _, launcher = run(stage, vmi)
    assert len(mount_points(directory_of(vmi))) == 2
    record_of(vmi).unlink()
    end_vm(stage, vmi, launcher)
    harness.wait_for(lambda: not mount_points(directory_of(vmi)), "everything to be unmounted")
    harness.wait_for(lambda: not record_of(vmi).exists(), "the record to go")
    assert not list(directory_of(vmi).iterdir())


def test_unreadable_record_stops_the_start_and_not_the_end(stage):
    """spec:05-16.4#113 spec:02-14.6#4 spec:01#35"""
    AttachmentPod(stage, 1, {"vol": make_volume(stage, "vol", "x")})
    vmi = vm_with()
    handler, launcher = run(stage, vmi)
    record_of(vmi).write_text('{"mountTargetEntries":[{"targ')
    plug(stage, vmi, status_of("vol"))
    harness.wait_for(lambda: any(f"failed to get checkpoint {vmi['metadata']['uid']}, " in text
                                 for text in stage.api.event_messages("SyncFailed")), "the error to be told")

    def tries():
        return handler.text().count("Synchronizing the VirtualMachineInstance failed.")

    def fails_before_the_sync():
        before, first = launcher.count("SyncVirtualMachine"), tries()
        harness.wait_for(lambda: tries() > first + 2, "other tries")
        return launcher.count("SyncVirtualMachine") == before

    harness.wait_for(fails_before_the_sync, "the start to stop")  # a pass before the plug was synced, and then failed
    end_vm(stage, vmi, launcher)
    harness.wait_for(lambda: not record_of(vmi).exists(), "the record to go")


def test_two_directories_are_no_pod(stage):
    """Of two pods that have the directory neither is the launcher's; a pod without one does not count. spec:05-16.4#92 field:FR-G11"""
    AttachmentPod(stage, 1, {"vol": make_volume(stage, "vol", "x")})
    vmi = vm_with()
    second = "aaaabbbb-0000-4000-8000-0000000000ee"
    vmi["status"]["activePods"][second] = "node01"
    _, launcher = run(stage, vmi)
    plug(stage, vmi, status_of("vol"))
    wait_volume(stage, vmi, "vol", "MountedToPod")
    (harness.PODS / second / VOLUMES).mkdir(parents=True)
    unplug(stage, vmi, "vol")
    before = launcher.count("SyncVirtualMachine")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before + 2, "some more syncs")
    assert is_mounted(directory_of(vmi) / "vol.img") and record_of(vmi).exists()
    shutil.rmtree(harness.PODS / second)
    harness.wait_for(lambda: not mount_points(directory_of(vmi)), "the volume to be unmounted")
    assert not stage.api.event_messages("SyncFailed")
