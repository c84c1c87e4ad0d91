# SPDX-License-Identifier: Apache-2.0
"""The node itself: a full disk, a clock that jumps."""
import os
import subprocess

import harness
import pytest


@pytest.fixture
def small_disk():
    """The private directory on a file system of its own: a function that fills it, and one that makes room."""
    harness.PRIVATE.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=0755", "small", harness.PRIVATE], check=True)
    ballast = harness.PRIVATE / "ballast"

    def fill():
        with open(ballast, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                pass

    try:
        yield fill, ballast.unlink
    finally:
        subprocess.run(["umount", "-l", harness.PRIVATE], check=True)


def test_full_private_directory(stage, small_disk):
    """Without a record a VM must not start, since a restart would lose it: said, tried again, no half file."""
    fill, make_room = small_disk
    stage.start_handler()
    _, running = stage.run_vm(vmi=harness.numbered(5))
    level = harness.Level(stage.handler)
    fill()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    harness.wait_for(lambda: any("failed to checkpoint" in m for m in stage.api.event_messages("SyncFailed")), "the failure to be shown")
    assert launcher.count("SyncVirtualMachine") == 0
    running.tell("emit MODIFIED Paused User")  # who is on record is looked after
    stage.api.wait_paused(True, "vm5")
    make_room()
    stage.api.wait_phase("Running")
    assert len(stage.records()) == 2
    assert sorted(path.name for path in harness.PRIVATE.iterdir()) == ["container-disk-mount-state", "ghost-records", "hotplug-volume-mount-state"]
    level.check(vms=1)


def test_start_with_a_full_private_directory(stage, small_disk):
    """Records are read, VMs go on; room is needed for new ones only."""
    fill, _ = small_disk
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    fill()
    stage.start_handler()
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
    harness.wait_for(lambda: stage.records() == set(), "the ghost record to go")


@pytest.mark.skipif(harness.SANITIZED, reason="a sanitizer wants to be loaded before the clock")
@pytest.mark.parametrize("step", (3600, -3600))
def test_wall_clock_steps(stage, step, tmp_path):
    """No launcher is declared dead, nothing hangs: time-outs and back-offs are on the monotonic clock."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    stage.start_handler("--watchdog-timeout", "2s", "--domain-resync-period-seconds", "1",
                        env=dict(os.environ, LD_PRELOAD=str(harness.BUILD / "tests/scenario/wall-clock-step.so"), CH_WALL_CLOCK_STEP=str(clock)))
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    rounds = stage.handler.text().count("resyncing virt-launcher domains")
    clock.write_text(str(step))
    harness.wait_for(lambda: stage.handler.text().count("resyncing virt-launcher domains") >= rounds + 3, "resyncs to go on")
    hours = {line["timestamp"][11:13] for line in stage.handler.lines()}
    assert len(hours) > 1, "the step did not reach the agent"
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    stage.run_vm(vmi=harness.numbered(2))
    stage.api.delete_vmi()
    stage.api.wait_phase("Succeeded")
    assert "detected unresponsive virt-launcher command socket" not in stage.handler.text()
    level.check()
