# SPDX-License-Identifier: Apache-2.0
"""What the processes of a VM may use, and where they run: devices, the cgroup for housekeeping. Spec 05 §8, §13."""
import json
import os
import pathlib
import shutil
import subprocess

import harness
import pytest

CPUSET = pathlib.Path("/sys/fs/cgroup/cpuset")


@pytest.fixture
def cpuset():
    """A container's cgroup of CPUs, as a runtime makes it."""
    if not (CPUSET / "cpuset.cpus").exists():
        pytest.skip("no v1 hierarchy of cpuset on this machine")
    directory = CPUSET / f"ch-scenario-{os.stat('/proc/self/ns/pid').st_ino}"
    directory.mkdir()
    try:
        for name in ("cpuset.cpus", "cpuset.mems"):
            (directory / name).write_text((CPUSET / name).read_text())
        yield directory
    finally:
        for part in (directory / "housekeeping", directory):
            if part.exists():
                for tid in (part / "tasks").read_text().split():
                    (CPUSET / "cgroup.procs").write_text(tid)
                part.rmdir()


@pytest.fixture
def qemu(tmp_path):
    """A process with QEMU's name that has the launcher's parent, which is us."""
    program = tmp_path / "qemu-system-x86_64"
    shutil.copy("/bin/sleep", program)
    process = subprocess.Popen([program, "1000"])
    yield process
    process.kill()
    process.wait()


def pinned_domain(tmp_path, vmi):
    """What the launcher reports, with the emulator pinned to CPU 0."""
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({
        "ObjectMeta": {"name": vmi["metadata"]["name"], "namespace": "default"},
        "Spec": {"Metadata": {"KubeVirt": {"UID": vmi["metadata"]["uid"]}}, "CPUTune": {"EmulatorPin": {"CPUSet": "0"}}},
        "Status": {"Status": "Running", "Reason": ""},
    }))
    return path


def test_missing_device_fails_the_sync(stage):
    """spec:05-16.5#130: the device is named, and nothing is started without it."""
    stage.start_handler()
    vmi = harness.vmi_document()
    vmi["spec"]["domain"]["devices"]["autoattachVSOCK"] = True
    launcher = stage.start_launcher(vmi)
    if (launcher.root / "dev/vhost-vsock").exists():
        pytest.skip("this node has /dev/vhost-vsock")
    stage.create(vmi)
    harness.wait_for(lambda: any("/dev/vhost-vsock" in text for text in stage.api.event_messages("SyncFailed")), "the event")
    assert launcher.count("SyncVirtualMachine") == 0


def test_housekeeping_moves_the_launcher(stage, cpuset, qemu, tmp_path):
    """field:FR-Q12, spec:05-16.5#131: with an isolated emulator thread all but virtual CPUs runs elsewhere, and a later sync finds the container."""
    stage.start_handler()
    vmi = harness.vmi_document()
    vmi["spec"]["domain"]["cpu"] = {"cores": 1, "dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    launcher = stage.start_launcher(vmi, domain=pinned_domain(tmp_path, vmi))
    (cpuset / "cgroup.procs").write_text(str(launcher.popen.pid))
    stage.create(vmi)
    stage.api.wait_phase("Running")
    housekeeping = cpuset / "housekeeping"
    harness.wait_for(lambda: (housekeeping / "tasks").exists() and str(launcher.popen.pid) in (housekeeping / "tasks").read_text().split(),
                     "the launcher to be moved")
    assert (housekeeping / "cpuset.cpus").read_text() == "0\n"
    synced = launcher.count("SyncVirtualMachine")
    stage.api.patch_vmi({"metadata": {"annotations": {"test": "again"}}})
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > synced, "another sync")
    assert not (housekeeping / "housekeeping").exists()
    assert stage.api.event_messages("SyncFailed") == []
