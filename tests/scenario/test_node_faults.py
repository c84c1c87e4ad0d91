# SPDX-License-Identifier: Apache-2.0
"""The node itself: a full disk, a clock that jumps."""
import os

import faulty_api
import harness
import pytest
from test_network import NET, check_masquerade, document, links_of, read_cache


def test_full_private_directory(stage, small_disk):
    """Without a record a VM must not start, since a restart would lose it: said, tried again, no half file."""
    stage.start_handler()
    _, running = stage.run_vm(vmi=harness.numbered(5))
    level = harness.Level(stage.handler)
    small_disk.fill()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    harness.wait_for(lambda: any("failed to checkpoint" in m for m in stage.api.event_messages("SyncFailed")), "the failure to be shown")
    assert launcher.count("SyncVirtualMachine") == 0
    running.tell("emit MODIFIED Paused User")  # who is on record is looked after
    stage.api.wait_paused(True, "vm5")
    small_disk.make_room()
    stage.api.wait_phase("Running")
    assert len(stage.records()) == 2
    assert sorted(path.name for path in harness.PRIVATE.iterdir()) == ["container-disk-mount-state", "ghost-records", "hotplug-volume-mount-state"]
    level.check(vms=1)


def test_start_with_a_full_private_directory(stage, small_disk):
    """Records are read, VMs go on; room is needed for new ones only."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    stage.handler.stop()
    small_disk.fill()
    level.look_at(stage.start_handler())
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
    harness.wait_for(lambda: stage.records() == set(), "the ghost record to go")
    level.check()


@pytest.mark.parametrize("pages, mark", ((0, "started"), (1, "finished")))
def test_no_room_for_the_network_cache(stage, small_disk, pages, mark):
    """Nothing is done to a pod before it is on record, no guest starts before the end is, and there is no half file."""
    stage.start_handler()
    stage.run_vm(vmi=harness.numbered(5))
    level = harness.Level(stage.handler)
    vmi = document("masquerade", migrationTransport="Unix")
    cache = harness.PRIVATE / "network-info-cache" / vmi["metadata"]["uid"]
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    harness.wait_for(lambda: any("is missing" in m for m in stage.api.event_messages("SyncFailed")), "the pod link to be missed")
    small_disk.fill(leave=pages)
    launcher.give_network(**NET)
    failure = f"failed to mark configuration as {mark} for default: error writing cached object: "
    harness.wait_for(lambda: any(failure in m for m in stage.api.event_messages("SyncFailed")), "the failure to be shown")
    harness.wait_for(lambda: os.listdir(cache) == ["default"] * pages, "half a file to go")
    assert pages > 0 or set(links_of(launcher)) == {"lo", "eth0"}
    assert launcher.count("SyncVirtualMachine") == 0 and stage.api.phase("vm1") == "Scheduled"
    small_disk.make_room()
    stage.api.wait_phase("Running", "vm1")
    check_masquerade(launcher)
    assert read_cache(vmi)["networkState"] == 2
    assert os.listdir(cache) == ["default"]
    level.check(vms=1)


@pytest.mark.parametrize("files", (0, 1))  # one: for the directory
def test_no_room_for_a_final_phase(stage, small_disk, files):
    """01 trap 7: the domain is gone, and how it ended could not be stored anywhere: this agent remembers it all the same."""
    proxy = stage.behind_proxy()
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    small_disk.fill_files(leave=files)
    refused = proxy.when(faulty_api.status(500), "PUT", harness.VMIS)
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    harness.wait_for(lambda: "does not survive an end of this agent" in stage.handler.text(), "the failure to be told")
    harness.wait_for(lambda: launcher.count("DeleteVirtualMachine") and refused.hits, "the domain to go, and the phase to be refused")
    proxy.heal()
    harness.wait_for(lambda: stage.api.phase() in ("Succeeded", "Failed"), "a final phase")
    assert stage.api.phase() == "Succeeded"
    small_disk.make_room()
    harness.wait_for(lambda: stage.records() == set() and not (harness.PRIVATE / "final-phases").exists(), "nothing to be left")
    level.check()


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
