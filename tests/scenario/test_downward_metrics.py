# SPDX-License-Identifier: Apache-2.0
"""Metrics of node and VM for guests that want them: on a disk, and on a channel of QEMU's. Spec 05 §14."""
import os
import signal
import socket
import struct
import xml.etree.ElementTree

import harness
import pytest

PRIVATE = "run/kubevirt-private"
DISK_SIZE = 262144
NO_METRICS = b"<metrics><!-- host metrics not available --><!-- VM metrics not available --></metrics>\n\n"
NAMES = ["HostName", "HostSystemInfo", "VirtualizationVendor", "VirtProductInfo", "TotalCPUTime", "ResourceProcessorLimit",
         "PhysicalMemoryAllocatedToVirtualSystem", "ResourceMemoryLimit"]


def metrics(text):
    """(context, name, type, unit, value) of each, in order."""
    return [(m.get("context"), m.findtext("name"), m.get("type"), m.get("unit"), m.findtext("value"))
            for m in xml.etree.ElementTree.fromstring(text)]


def with_disk(vmi):
    vmi["spec"]["volumes"].append({"name": "metrics", "downwardMetrics": {}})
    return vmi


def with_channel(vmi):
    vmi["spec"]["domain"]["devices"]["downwardMetrics"] = {}
    return vmi


class Disk:
    """The disk of a pod, as its launcher makes it: 256 KiB, no metrics."""

    def __init__(self, launcher):
        directory = launcher.root / PRIVATE / "downwardapi-disks"
        directory.mkdir()
        self.path = directory / "vhostmd0"
        self.clear()

    def clear(self):
        body = b"<metrics></metrics>\n"
        self.path.write_bytes((struct.pack(">4siii", b"mvbd", 0, sum(body), len(body)) + body).ljust(DISK_SIZE, b"\0"))

    def read(self):
        """What a guest reads: [] when there are none; None while they change."""
        disk = self.path.read_bytes()
        assert len(disk) == DISK_SIZE
        signature, flag, checksum, length = struct.unpack(">4siii", disk[:16])
        body = disk[16:16 + length]
        assert signature == b"mvbd" and length <= DISK_SIZE - 24
        if flag or checksum != sum(body):
            return None
        assert body.endswith(b"\n")
        return metrics(body)

    def wait(self):
        """The metrics, once there are any."""
        return harness.wait_for(self.read, "metrics on the disk")

    def time(self):
        found = self.read()
        return int(found[-1][4]) if found else 0


class Qemu:
    """QEMU's end of the channel: it listens, the agent connects."""

    def __init__(self, launcher):
        directory = launcher.root / PRIVATE / "downwardmetrics-channel"
        directory.mkdir(exist_ok=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(directory / "downwardmetrics.sock"))
        self.listener.listen(1)
        self.listener.settimeout(harness.DEADLINE)
        self.connection = None

    def accept(self):
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(harness.DEADLINE)

    def say(self, request):
        self.connection.sendall(request)

    def answer(self):
        """One answer; b"" at the end."""
        text = b""
        while not text.endswith(b"\n\n"):
            more = self.connection.recv(65536)
            if not more:
                break
            text += more
        return text

    def ask(self, request=b"GET /metrics/XML\n\n"):
        self.say(request)
        return self.answer()


def start(stage, vmi, parts):
    """A VM that runs, with what the launcher and QEMU have for metrics: (launcher, part...)."""
    launcher = stage.start_launcher(vmi)
    made = [part(launcher) for part in parts]
    stage.create(vmi)
    stage.api.wait_phase("Running", vmi["metadata"]["name"])
    return (launcher, *made)


def check(found):
    """What each report holds."""
    by_name = {(m[0], m[1]): m[2:] for m in found}
    assert [m[1] for m in found[:len(NAMES)]] == NAMES
    assert by_name["host", "HostName"] == ("string", None, "node01")
    assert by_name["host", "HostSystemInfo"] == ("string", None, "linux")
    assert by_name["host", "VirtualizationVendor"] == ("string", None, "kubevirt.io")
    assert by_name["vm", "TotalCPUTime"] == ("real64", "s", "1.750000")
    assert by_name["vm", "ResourceProcessorLimit"] == ("int64", None, "1")
    assert by_name["vm", "ResourceMemoryLimit"] == ("uint64", "KiB", "65536")
    assert by_name["vm", "PhysicalMemoryAllocatedToVirtualSystem"] == ("uint64", "KiB", "65536")
    assert float(by_name["host", "TotalCPUTime"][2]) > 0
    assert int(by_name["host", "FreePhysicalMemory"][2]) > 0
    assert found[-1][:4] == ("host", "Time", "int64", "s")
    return by_name


def test_disk(stage):
    """spec:05-16.10#187: the guest's disk fills with metrics, again and again, and stays the launcher's."""
    stage.start_handler()
    launcher, disk = start(stage, with_disk(harness.vmi_document()), [Disk])
    assert disk.path.stat().st_size == DISK_SIZE
    owner = disk.path.stat()
    by_name = check(disk.wait())
    assert by_name["host", "VirtProductInfo"] == ("string", None, "QEMU 7.2.0")
    first = disk.time()
    harness.wait_for(lambda: disk.time() > first, "later metrics")
    now = disk.path.stat()
    assert (now.st_uid, now.st_gid, now.st_mode, now.st_ino) == (owner.st_uid, owner.st_gid, owner.st_mode, owner.st_ino)
    assert launcher.count("GetDomainStats") >= 2
    assert stage.api.event_messages("SyncFailed") == []


def test_no_metrics_without_the_volume(stage):
    """A VM that wants none is not asked for any."""
    stage.start_handler()
    launcher, disk = start(stage, harness.vmi_document(), [Disk])
    other = with_disk(harness.numbered(2))
    other_launcher, other_disk = start(stage, other, [Disk])
    other_disk.wait()
    harness.wait_for(lambda: other_launcher.count("GetDomainStats") >= 2, "two rounds")
    assert disk.read() == []
    assert launcher.count("GetDomainStats") == 0 and launcher.count("GetQemuVersion") == 0


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGKILL])
def test_another_agent_goes_on(stage, signo):
    """spec:05-16.10#194: the channel is closed with the agent; the next one serves disk and channel again."""
    stage.start_handler()
    _, disk, qemu = start(stage, with_disk(with_channel(harness.vmi_document())), [Disk, Qemu])
    disk.wait()
    qemu.accept()
    check(metrics(qemu.ask()))
    stage.handler.stop(signo)
    assert qemu.answer() == b""
    disk.clear()
    stage.start_handler()
    check(disk.wait())
    qemu.accept()
    check(metrics(qemu.ask()))


def test_channel(stage):
    """spec:05-16.10#192 spec:05-16.10#193: one request after the other, good and bad, until the VM is gone."""
    stage.start_handler()
    vmi = with_channel(harness.vmi_document())
    launcher, qemu = start(stage, vmi, [Qemu])
    qemu.accept()
    by_name = check(metrics(qemu.ask()))
    assert by_name["host", "VirtProductInfo"] == ("string", None, "QEMU 7.2.0")
    assert qemu.ask(b"PUT /metrics/XML\r\n\r\n") == b"INVALID REQUEST\n\n"
    assert qemu.ask(b"GET /metrics/XML\nHost: here\n\n") == b"INVALID REQUEST\n\n"
    check(metrics(qemu.ask(b"GET /metrics/XML\r\n\r\n")))
    launcher.tell("fail GetDomainStats unknown method GetDomainStats for service kubevirt.cmd.v1.Cmd")
    assert qemu.ask() == NO_METRICS
    launcher.tell("heal GetDomainStats")
    check(metrics(qemu.ask()))
    stage.api.delete_vmi()
    assert qemu.answer() == b""


def test_qemu_comes_later(stage):
    """The agent tries again until QEMU listens, and does not come again once QEMU has hung up."""
    stage.start_handler()
    launcher, = start(stage, with_channel(harness.vmi_document()), [])
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= 2, "the running VM to be synced")
    qemu = Qemu(launcher)
    qemu.accept()
    check(metrics(qemu.ask()))
    qemu.connection.close()
    synced = launcher.count("SyncVirtualMachine")
    stage.api.patch_vmi({"metadata": {"annotations": {"test": "again"}}})
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > synced, "another sync")
    qemu.listener.setblocking(False)
    with pytest.raises(BlockingIOError):
        qemu.listener.accept()


def test_old_launcher(stage):
    """One that does not tell its version of QEMU."""
    stage.start_handler()
    vmi = with_disk(harness.vmi_document())
    launcher = stage.start_launcher(vmi)
    launcher.tell("fail GetQemuVersion unknown method GetQemuVersion for service kubevirt.cmd.v1.Cmd")
    disk = Disk(launcher)
    stage.create(vmi)
    assert check(disk.wait())["host", "VirtProductInfo"] == ("string", None, "qemu-unknown")


def test_launcher_that_hangs(stage):
    """It holds up its own VM's metrics, and nobody else's."""
    stage.start_handler()
    silent = with_disk(harness.numbered(1))
    launcher = stage.start_launcher(silent)
    launcher.tell("hang GetDomainStats")
    disk = Disk(launcher)
    stage.create(silent)
    stage.api.wait_phase("Running", "vm1")
    harness.wait_for(lambda: launcher.count("GetDomainStats") >= 1, "the launcher to be asked")
    _, other_disk = start(stage, with_disk(harness.numbered(2)), [Disk])
    check(other_disk.wait())
    first = other_disk.time()
    harness.wait_for(lambda: other_disk.time() > first, "later metrics of the other VM")
    assert disk.read() == []
    launcher.tell("heal GetDomainStats")
    check(disk.wait())


def test_pod_that_misleads(stage, tmp_path):
    """A disk that leads elsewhere is not written to, which is told once; the VM is none the worse."""
    victim = tmp_path / "victim"
    victim.write_text("the host's")
    stage.start_handler()
    vmi = with_disk(harness.vmi_document())
    launcher = stage.start_launcher(vmi)
    disk = Disk(launcher)
    disk.path.unlink()
    os.symlink(victim, disk.path)
    stage.create(vmi)
    stage.api.wait_phase("Running")
    harness.wait_for(lambda: launcher.count("GetDomainStats") >= 3, "some rounds")
    assert victim.read_text() == "the host's"
    assert stage.handler.text().count("failed to write metrics to disk") == 1
    disk.path.unlink()
    disk.clear()
    check(disk.wait())
    harness.wait_for(lambda: "metrics are written to disk again" in stage.handler.text(), "the line that it is over")
    assert stage.api.event_messages("SyncFailed") == []
