# SPDX-License-Identifier: Apache-2.0
"""Container disks and kernels: served by containers of the pod, mounted into it by the agent on the node."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import zlib

import harness
import pytest

NODE_PODS = pathlib.Path("/var/lib/kubelet/pods")  # the same directory as /pods, as on a node
DISKS = "volumes/kubernetes.io~empty-dir/container-disks"
CONTAINER_DISK = pathlib.Path(__file__).with_name("container-disk.py")


@pytest.fixture(autouse=True)
def kubelet_directory(stage):
    NODE_PODS.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", harness.PODS, NODE_PODS], check=True)
    yield
    for line in reversed(pathlib.Path("/proc/self/mountinfo").read_text().splitlines()):
        point = line.split()[4]
        if point.startswith((str(NODE_PODS), f"{harness.PODS}/")):
            subprocess.run(["umount", "-l", point], check=True)


class Disk(harness.Process):
    """A container of the pod that serves a disk or a kernel."""

    def __init__(self, stage, pod, name, files, old_pod=True):
        self.root = stage.directory / f"image-{name}"
        for file, content in files.items():
            path = self.root / file.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        directory = harness.PODS / pod / DISKS
        directory.mkdir(parents=True, exist_ok=True)
        if old_pod:  # whose images are not mounted by kubelet
            (harness.PODS / pod / "containers/container-disk-binary").mkdir(parents=True, exist_ok=True)
        super().__init__(f"container of {name}", [CONTAINER_DISK, self.root, directory, name], stage.directory / f"{name}.log",
                         stdout=subprocess.PIPE)
        assert self.popen.stdout.readline() == b"ready\n", self.text()
        stage.launchers.append(self)


def vmi_with_disk(kernel=False, path=None, **changes):
    vmi = harness.vmi_document(**changes)
    vmi["spec"]["volumes"].append({"name": "root", "containerDisk": {"image": "registry/disk", **({"path": path} if path else {})}})
    if kernel:
        vmi["spec"]["domain"]["firmware"] = {"kernelBoot": {"container": {
            "image": "registry/kernel", "kernelPath": "/boot/vmlinuz", "initrdPath": "/boot/initrd"}}}
    return vmi


def disks_of(vmi):
    return NODE_PODS / harness.pod_of(vmi) / DISKS


def mounts(below):
    """Mount points below a directory, one for each mount."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted(point[len(f"{below}/"):] for point in (line.split()[4] for line in lines) if point.startswith(f"{below}/"))


def record_of(vmi):
    return harness.PRIVATE / "container-disk-mount-state" / vmi["metadata"]["uid"]


def recorded(vmi, *names):
    """What the record holds: @names of targets with their sockets."""
    entries = [{"targetFile": f"{disks_of(vmi)}/{target}", "socketFile": f"{harness.PODS}/{harness.pod_of(vmi)}/{DISKS}/{socket}"}
               for target, socket in names]
    return json.dumps({"mountTargetEntries": entries, "usesSafePaths": True}, separators=(",", ":"))


DISK_ENTRY, KERNEL_ENTRY = ("disk_1.img", "disk_1.sock"), ("kernel-boot", "kernel-boot.sock")


def end_vm(stage, launcher, vmi):
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded", vmi["metadata"]["name"])
    harness.wait_for(lambda: not record_of(vmi).exists(), "the record to be removed")


def test_disk_is_mounted_until_the_vm_is_gone(stage):
    """spec:01#30 spec:02-14.5#3 spec:05-16.3#62 spec:05-16.3#69: a failing mount is told, a good one is there before the guest."""
    stage.start_handler()
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    disk = Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one", "disk/b.img": b"two"})
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", "failed to find a sourceFile in containerDisk root: more than one file found in folder /disk, "
                                       "only one disk is allowed")
    assert launcher.count("SyncVirtualMachine") == 0
    assert record_of(vmi).read_text() == recorded(vmi, DISK_ENTRY)  # before the attempt
    (disk.root / "disk/b.img").unlink()
    stage.api.wait_phase("Running")
    target = disks_of(vmi) / "disk_1.img"
    assert target.read_bytes() == b"one"
    with pytest.raises(OSError, match="Read-only"):
        target.open("ab")
    assert mounts(disks_of(vmi)) == ["disk_1.img"]
    assert record_of(vmi).read_text() == recorded(vmi, DISK_ENTRY)
    assert record_of(vmi).stat().st_mode & 0o777 == 0o600
    end_vm(stage, launcher, vmi)
    assert mounts(disks_of(vmi)) == []
    assert not target.exists() and not (disks_of(vmi) / "disk_1.sock").exists()


def test_start_waits_for_the_container(stage):
    """spec:01#28 spec:02-14.5#1 spec:05-16.3#67: silently, and a look each second."""
    stage.start_handler()
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    (harness.PODS / harness.pod_of(vmi) / DISKS).mkdir(parents=True)
    (harness.PODS / harness.pod_of(vmi) / "containers/container-disk-binary").mkdir(parents=True)
    stage.create(vmi)
    harness.wait_for(launcher.pipe.exists, "the agent to connect")
    disk = Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    stage.api.wait_phase("Running")
    assert disk.popen.poll() is None
    assert stage.api.event_messages("SyncFailed") == []
    assert launcher.count("SyncVirtualMachine") >= 1


def test_no_room_for_the_record(stage, small_disk):
    """Nothing is mounted that is not on record: said, tried again, no half file; and a VM that ends needs no room."""
    stage.start_handler()
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    pod = harness.PODS / harness.pod_of(vmi)
    (pod / DISKS).mkdir(parents=True)
    (pod / "containers/container-disk-binary").mkdir(parents=True)
    stage.create(vmi)
    harness.wait_for(lambda: launcher.pipe.exists() and stage.records(), "the agent to connect")
    level = harness.Level(stage.handler)
    small_disk.fill()
    Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    harness.wait_for(lambda: any("failed to checkpoint" in m for m in stage.api.event_messages("SyncFailed")), "the failure to be shown")
    assert mounts(disks_of(vmi)) == [] and not record_of(vmi).exists()
    assert launcher.count("SyncVirtualMachine") == 0
    small_disk.make_room()
    stage.api.wait_phase("Running")
    assert mounts(disks_of(vmi)) == ["disk_1.img"]
    assert record_of(vmi).read_text() == recorded(vmi, DISK_ENTRY)
    small_disk.fill()
    end_vm(stage, launcher, vmi)
    assert mounts(disks_of(vmi)) == []
    harness.wait_for(lambda: stage.records() == set(), "the ghost record to go")
    small_disk.make_room()
    harness.wait_for(lambda: not any(path.is_file() for path in harness.PRIVATE.rglob("*")), "nothing to be left")
    level.check()


def test_new_pods_need_no_mounts(stage):
    """spec:05-16.3#59: kubelet mounts the images of a pod without container-disk-binary; there is not even a socket."""
    stage.start_handler()
    vmi, _ = stage.run_vm(vmi=vmi_with_disk(kernel=True))
    assert not record_of(vmi).exists()
    assert mounts(disks_of(vmi)) == []


def kernel_files():
    return {"boot/vmlinuz": b"kernel", "boot/initrd": b"initrd"}


def test_kernel_and_disk_survive_the_agent(stage):
    """spec:05-16.3#75 spec:05-16.3#76: mounted once, by however many passes; an agent of the other kind cleans up, and this one after it."""
    handler = stage.start_handler()
    vmi = vmi_with_disk(kernel=True, path="/images/disk.img")
    launcher = stage.start_launcher(vmi)
    pod = harness.pod_of(vmi)
    Disk(stage, pod, "disk_1.sock", {"images/disk.img": b"disk"})
    Disk(stage, pod, "kernel-boot.sock", kernel_files())
    stage.create(vmi)
    stage.api.wait_phase("Running")
    all_mounts = ["disk_1.img", "kernel-boot/initrd", "kernel-boot/vmlinuz"]
    assert mounts(disks_of(vmi)) == all_mounts
    assert (disks_of(vmi) / "kernel-boot/vmlinuz").read_bytes() == b"kernel"
    assert record_of(vmi).read_text() == recorded(vmi, KERNEL_ENTRY, DISK_ENTRY)
    os.kill(handler.popen.pid, signal.SIGKILL)
    handler.popen.wait()
    record_of(vmi).write_text(recorded(vmi, DISK_ENTRY))  # the Go agent loses the other entry
    stage.start_handler()
    assert mounts(disks_of(vmi)) == all_mounts
    end_vm(stage, launcher, vmi)
    assert mounts(disks_of(vmi)) == []


def test_checksums_in_the_status(stage):
    """spec:05-16.3#70 spec:05-16.3#80 spec:05-16.3#81: of what is mounted, when kubelet mounts no images; without the containers none."""
    stage.api.request("PATCH", harness.KUBEVIRT, {"spec": {"configuration": {"developerConfiguration": {
        "disabledFeatureGates": ["ImageVolume"]}}}}, "application/merge-patch+json")
    handler = stage.start_handler()
    vmi = vmi_with_disk(kernel=True, volumeStatus=[{"name": "root", "target": ""}])
    stage.start_launcher(vmi)
    pod = harness.pod_of(vmi)
    large = os.urandom(100_000) * 800  # more than is read at once
    stage.create(vmi)
    harness.wait_for(lambda: "cannot compute checksums as containerdisk/kernelboot containers seem to have been terminated" in handler.text(),
                     "a look without containers")
    Disk(stage, pod, "disk_1.sock", {"disk/a.img": large}, old_pod=False)
    Disk(stage, pod, "kernel-boot.sock", kernel_files(), old_pod=False)
    stage.api.wait_phase("Running")

    kernel = {"kernelInfo": {"checksum": zlib.crc32(b"kernel")}, "initrdInfo": {"checksum": zlib.crc32(b"initrd")}}
    harness.wait_for(lambda: stage.api.vmi()["status"].get("kernelBootStatus") == kernel, "the kernel's checksums")
    volumes = {volume["name"]: volume for volume in stage.api.vmi()["status"]["volumeStatus"]}
    assert volumes["root"]["containerDiskVolume"] == {"checksum": zlib.crc32(large)}


def test_record_of_old_and_a_pod_that_is_gone(stage):
    """spec:05-16.3#77 spec:05-16.3#79: nothing of it is there any more, or under another name."""
    stage.start_handler()
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    stage.create(vmi)
    stage.api.wait_phase("Running")
    record_of(vmi).write_text(json.dumps({"mountTargetEntries": [
        {"targetFile": f"/proc/1/root{disks_of(vmi)}/disk_1.img", "socketFile": "/gone"},
        {"targetFile": f"{NODE_PODS}/other-pod/{DISKS}/disk_7.img", "socketFile": "/gone"}]}))
    end_vm(stage, launcher, vmi)
    assert mounts(disks_of(vmi)) == []


def test_half_written_record_keeps_its_mount(stage):
    """What cannot be cleaned up stays on record, and is tried again."""
    stage.start_handler()
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    stage.create(vmi)
    stage.api.wait_phase("Running")
    good = record_of(vmi).read_text()
    record_of(vmi).write_text(good[:-3])
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
    harness.wait_for(lambda: f"failed to get checkpoint {vmi['metadata']['uid']}, " in stage.handler.text(), "the failure to be told")
    assert mounts(disks_of(vmi)) == ["disk_1.img"]
    record_of(vmi).write_text(good)
    harness.wait_for(lambda: not record_of(vmi).exists(), "the record to be removed")
    assert mounts(disks_of(vmi)) == []


def test_kubelet_directory_is_elsewhere_and_a_link(stage):
    """field:FR-C06 field:FR-E02: what is mounted is where kubelet has it, and gone with the VM."""
    real = stage.directory / "kubelet-real"
    (real / "pods").mkdir(parents=True)
    subprocess.run(["mount", "--bind", harness.PODS, real / "pods"], check=True)
    link = stage.directory / "kubelet"
    link.symlink_to(real)
    stage.start_handler("--kubelet-pods-dir", link / "pods")
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    stage.create(vmi)
    stage.api.wait_phase("Running")
    try:
        assert mounts(real / "pods" / harness.pod_of(vmi) / DISKS) == ["disk_1.img"]
        end_vm(stage, launcher, vmi)
        assert mounts(real / "pods" / harness.pod_of(vmi) / DISKS) == []
    finally:
        subprocess.run(["umount", "-l", real / "pods"], check=True)


def test_two_pods_of_one_vm(stage):
    """spec:05-16.3#65: which of two directories is meant nobody knows; one of them goes."""
    stage.start_handler()
    vmi = vmi_with_disk()
    pod, other = harness.pod_of(vmi), "aaaabbbb-0000-4000-8000-0000000000ff"
    vmi["status"]["activePods"][other] = "node01"
    launcher = stage.start_launcher(vmi)
    Disk(stage, pod, "disk_1.sock", {"disk/a.img": b"one"})
    (harness.PODS / other / DISKS).mkdir(parents=True)
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", "Found multiple pods active for vmi default/vm. Waiting on outdated pod directories to be removed")
    assert launcher.count("SyncVirtualMachine") == 0
    shutil.rmtree(harness.PODS / other)
    stage.api.wait_phase("Running")
    assert mounts(disks_of(vmi)) == ["disk_1.img"]


@pytest.mark.parametrize("put", [lambda path: path.symlink_to("/etc/passwd"), lambda path: path.mkdir(), lambda path: os.mkfifo(path)],
                         ids=["link", "directory", "fifo"])
def test_pod_spoils_the_target(stage, put):
    """spec:05-16.1#24: the agent touches nothing but its own file, says so, and goes on when the pod is sane again."""
    stage.start_handler()
    vmi = vmi_with_disk()
    stage.start_launcher(vmi)
    Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    target = disks_of(vmi) / "disk_1.img"
    before = pathlib.Path("/etc/passwd").read_bytes()
    put(target)
    stage.create(vmi)
    harness.wait_for(lambda: any(m.startswith("failed to create mount point target: ") for m in stage.api.event_messages("SyncFailed")),
                     "the failure to be told")
    assert mounts(disks_of(vmi)) == []
    if target.is_dir() and not target.is_symlink():
        target.rmdir()
    else:
        target.unlink()
    stage.api.wait_phase("Running")
    assert target.read_bytes() == b"one"
    assert pathlib.Path("/etc/passwd").read_bytes() == before


@pytest.mark.skipif(harness.SANITIZED, reason="LeakSanitizer does not work under ptrace")
def test_no_other_kubelet_directory_is_looked_into(stage):
    """field:FR-Q01"""
    root = stage.directory / "kubelet"
    (root / "pods").mkdir(parents=True)
    subprocess.run(["mount", "--bind", harness.PODS, root / "pods"], check=True)
    trace = stage.directory / "trace"
    stage.start_handler("--kubelet-root", root, "--kubelet-pods-dir", root / "pods",
                        prefix=("strace", "-D", "-f", "-qq", "-s", "256", "-e", "trace=%file", "-o", trace))
    vmi = vmi_with_disk()
    launcher = stage.start_launcher(vmi)
    Disk(stage, harness.pod_of(vmi), "disk_1.sock", {"disk/a.img": b"one"})
    stage.create(vmi)
    stage.api.wait_phase("Running")
    try:
        end_vm(stage, launcher, vmi)
    finally:
        subprocess.run(["umount", "-l", root / "pods"], check=True)
    calls = trace.read_text()
    assert str(root) in calls
    assert [line for line in calls.splitlines() if "/var/lib/kubelet" in line] == []
