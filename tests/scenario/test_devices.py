# SPDX-License-Identifier: Apache-2.0
"""What a pod's guest needs and its user cannot have by itself: devices, disk images on claims, sockets; and the node's seccomp profile."""
import contextlib
import hashlib
import json
import os
import stat
import subprocess

import harness
import pytest

DISKS = "run/kubevirt-private/vmi-disks"
PROFILE = "/var/lib/kubelet/seccomp/kubevirt/kubevirt.json"
MIB = 1 << 20
NODES = {"kvm": 232, "net/tun": 200, "vhost-net": 238, "vhost-vsock": 241}


def document(claims=(), **changes):
    """A VMI without network; @claims: (name, size) of filesystem claims, each with a disk."""
    vmi = harness.vmi_document(**changes)
    vmi["spec"]["domain"]["devices"]["autoattachPodInterface"] = False
    vmi["status"]["volumeStatus"] = []
    for name, size in claims:
        vmi["spec"]["volumes"].append({"name": name, "persistentVolumeClaim": {"claimName": f"claim-{name}"}})
        vmi["spec"]["domain"]["devices"]["disks"].append({"name": name, "disk": {"bus": "virtio"}})
        vmi["status"]["volumeStatus"].append({"name": name, "target": "", "persistentVolumeClaimInfo": {
            "claimName": f"claim-{name}", "volumeMode": "Filesystem", "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size}, "requests": {"storage": size}}})
    return vmi


def attach(vmi):
    """To the pod's network."""
    vmi["spec"]["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}}]
    vmi["spec"]["networks"] = [{"name": "default", "pod": {}}]


def in_pod(launcher, *argv):
    subprocess.run(["nsenter", "-t", str(launcher.popen.pid), "-m", "--", *map(str, argv)], check=True)


def make_volume(launcher, name, size=128 * MIB):
    """The directory at which the pod has the claim's file system of @size bytes."""
    path = f"/{DISKS}/{name}"
    in_pod(launcher, "mkdir", "-p", path)
    in_pod(launcher, "mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "volume", path)
    return launcher.root / DISKS / name


def make_devices(launcher, *names):
    """A /dev of the pod's own, with these nodes."""
    in_pod(launcher, "mount", "-t", "tmpfs", "-o", "mode=0755", "dev", "/dev")
    in_pod(launcher, "mkdir", "/dev/net")
    for name in names:
        in_pod(launcher, "mknod", "-m", "0600", f"/dev/{name}", "c", 10, NODES[name])


def owner(path):
    info = os.lstat(path)
    return info.st_uid, info.st_gid


def shown_vmi(launcher):
    return next(rpc["vmi"] for rpc in launcher.rpcs() if rpc["method"] == "SyncVirtualMachine")


def forbid_emulation(stage):
    stage.api.request("PATCH", harness.KUBEVIRT, {"spec": {"configuration": {"developerConfiguration": {"useEmulation": False}}}},
                      "application/merge-patch+json")


def test_claim_is_a_disk_image_to_its_launcher(stage):
    """spec:05-16.6#137 spec:05-16.6#144"""
    stage.start_handler()
    vmi = document(claims=[("data", "64Mi"), ("more", "3Mi")])
    launcher = stage.start_launcher(vmi)
    launcher.tell("show")
    volumes = {name: make_volume(launcher, name) for name in ("data", "more")}
    stage.create(vmi)
    stage.api.wait_phase("Running")
    for name, size in (("data", 64 * MIB), ("more", 3 * MIB)):
        info = os.lstat(volumes[name] / "disk.img")
        assert (info.st_size, stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid) == (size, 0o644, 107, 107)
        assert owner(volumes[name]) == (107, 107)
        assert os.listdir(volumes[name]) == ["disk.img"]
    sent = {volume["name"]: volume for volume in shown_vmi(launcher)["spec"]["volumes"]}
    assert sent["data"] == {"name": "data", "hostDisk": {
        "path": "/var/run/kubevirt-private/vmi-disks/data/disk.img", "type": "DiskOrCreate", "capacity": "64Mi", "shared": False}}
    assert "cloudInitNoCloud" in sent["seed"]
    stored = {volume["name"]: volume for volume in stage.api.vmi()["spec"]["volumes"]}
    assert stored["data"] == {"name": "data", "persistentVolumeClaim": {"claimName": "claim-data"}}  # it is not written back


def test_image_that_is_there_stays(stage):
    """spec:05-16.6#143 field:FR-F03"""
    stage.start_handler()
    vmi = document(claims=[("data", "64Mi")])
    launcher = stage.start_launcher(vmi)
    volume = make_volume(launcher, "data")
    (volume / "disk.img").write_text("12345")
    (volume / "disk.img").chmod(0o640)
    stage.create(vmi)
    stage.api.wait_phase("Running")
    info = os.lstat(volume / "disk.img")
    assert (info.st_size, stat.S_IMODE(info.st_mode), info.st_uid) == (5, 0o640, 0)


def test_volume_is_a_little_too_small(stage):
    """spec:05-16.6#140 spec:05-16.6#142"""
    stage.start_handler()
    vmi = document(claims=[("data", "64Mi")])
    launcher = stage.start_launcher(vmi)
    volume = make_volume(launcher, "data", 62 * MIB)
    stage.create(vmi)
    stage.api.wait_phase("Running")
    found = 62 * MIB - 131072
    assert os.lstat(volume / "disk.img").st_size == found
    stage.api.wait_event("ToleratedSmallPV",
                         f"PV size too small: expected {64 * MIB} B, found {found} B. Using it anyway, it is within 10 % toleration")


def test_volume_is_too_small(stage):
    """spec:05-16.6#138 spec:05-16.6#141"""
    stage.start_handler()
    vmi = document(claims=[("data", "1Ei")])
    launcher = stage.start_launcher(vmi)
    volume = make_volume(launcher, "data", 32 * MIB)
    stage.create(vmi)
    stage.api.wait_event(
        "SyncFailed", "preparing host-disks failed: unable to create /var/run/kubevirt-private/vmi-disks/data/disk.img, not enough space, "
        f"demanded size {1 << 60} B is bigger than available space {32 * MIB - 131072} B, also after taking 10 % toleration into account")
    assert os.listdir(volume) == []
    assert stage.api.phase() == "Scheduled"
    assert launcher.count("SyncVirtualMachine") == 0


def test_image_is_a_link_out_of_the_volume(stage):
    """field:FR-F04"""
    stage.start_handler()
    vmi = document(claims=[("data", "1Mi")])
    launcher = stage.start_launcher(vmi)
    volume = make_volume(launcher, "data")
    (volume / "disk.img").symlink_to("/etc/shadow")
    before = os.stat("/etc/shadow")
    stage.create(vmi)
    harness.wait_for(lambda: any(m.startswith("preparing host-disks failed: Resolve diskPath ")
                                 for m in stage.api.event_messages("SyncFailed")), "the event")
    after = os.stat("/etc/shadow")
    assert (before.st_uid, before.st_mode, before.st_mtime_ns) == (after.st_uid, after.st_mode, after.st_mtime_ns)
    assert launcher.count("SyncVirtualMachine") == 0
    (volume / "disk.img").unlink()
    stage.api.wait_phase("Running")


def test_devices_become_the_guests(stage):
    """spec:05-16.7#147"""
    forbid_emulation(stage)
    stage.start_handler()
    vmi = document()
    vmi["spec"]["domain"]["devices"]["autoattachVSOCK"] = True
    attach(vmi)
    launcher = stage.start_launcher(vmi, network={})
    make_devices(launcher, *NODES)
    before = {name: owner(f"/dev/{name}") for name in ("kvm", "net/tun")}
    stage.create(vmi)
    stage.api.wait_phase("Running")
    assert {name: owner(launcher.root / "dev" / name) for name in NODES} == dict.fromkeys(NODES, (107, 107))
    assert {name: owner(f"/dev/{name}") for name in ("kvm", "net/tun")} == before  # the node's own


@pytest.mark.parametrize("lacking,kind", [("vhost-net", "vhost-net"), ("net/tun", "tun")])
def test_guest_without_its_network_device_fails(stage, lacking, kind):
    """spec:05-16.7#148 spec:05-16.7#151 spec:04-23.9#13"""
    forbid_emulation(stage)
    stage.start_handler()
    vmi = document()
    attach(vmi)
    launcher = stage.start_launcher(vmi, network={})
    make_devices(launcher, *(name for name in NODES if name != lacking))
    stage.create(vmi)
    stage.api.wait_phase("Failed")
    stage.api.wait_event("SyncFailed", f"Critical network error: failed to set up {kind} device, failed opening /dev/{lacking}: "
                         "no such file or directory")


def test_device_comes_later(stage):
    """spec:05-16.7#148: any other than a network device is waited for."""
    stage.start_handler()
    vmi = document()
    vmi["spec"]["domain"]["devices"]["autoattachVSOCK"] = True
    launcher = stage.start_launcher(vmi)
    make_devices(launcher, "net/tun")
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", "failed opening /dev/vhost-vsock: no such file or directory")  # for its cgroup already
    in_pod(launcher, "mknod", "/dev/vhost-vsock", "c", 10, NODES["vhost-vsock"])
    stage.api.wait_phase("Running")


def test_virtiofs_socket_comes_later(stage):
    """spec:05-16.7#151"""
    stage.start_handler()
    vmi = document(claims=[("share", "1Mi")])
    vmi["spec"]["domain"]["devices"]["disks"].pop()  # it is no disk
    vmi["spec"]["domain"]["devices"]["filesystems"] = [{"name": "share", "virtiofs": {}}]
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", "failed opening /var/run/kubevirt/virtiofs-containers/share.sock: no such file or directory")
    in_pod(launcher, "mkdir", "/run/kubevirt/virtiofs-containers")
    in_pod(launcher, "/usr/bin/python3", "-c",
           "import socket; socket.socket(socket.AF_UNIX).bind('/run/kubevirt/virtiofs-containers/share.sock')")
    stage.api.wait_phase("Running")
    assert owner(launcher.root / "run/kubevirt/virtiofs-containers/share.sock") == (107, 107)


def test_claim_without_status_is_waited_for(stage):
    """spec:05-16.7#151"""
    stage.start_handler()
    vmi = document(claims=[("data", "1Mi")])
    status = vmi["status"].pop("volumeStatus")
    launcher = stage.start_launcher(vmi)
    make_volume(launcher, "data")
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", "missing volume status for volume data")
    stage.api.patch_vmi({"status": {"volumeStatus": status}})
    stage.api.wait_phase("Running")


def test_seccomp_profile_is_put_in_place(stage):
    """spec:05-16.8#155"""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(PROFILE)

    def is_there():
        with contextlib.suppress(FileNotFoundError), open(PROFILE, "rb") as profile:
            return hashlib.sha256(profile.read()).hexdigest() == "2719a3758ab6fb07057a8d90522e49dfc7843b5c6abf4d0508622052eb2599d4"
        return False

    handler = stage.start_handler()
    harness.wait_for(is_there, "the profile")
    assert stat.S_IMODE(os.stat(PROFILE).st_mode) == 0o700
    harness.wait_for(lambda: "Kubevirt Seccomp profile was installed at /var/lib/kubelet" in handler.text(), "the log line")
    with open(PROFILE) as profile:
        assert json.load(profile)["syscalls"][-1]["names"] == ["userfaultfd"]
