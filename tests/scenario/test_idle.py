# SPDX-License-Identifier: Apache-2.0
"""Launchers whose connection the agent closed, as nothing used it."""
import pathlib

import harness


def n_connections():
    """Of command sockets: accepted, and not closed yet."""
    lines = pathlib.Path("/proc/net/unix").read_text().splitlines()
    return sum(1 for line in lines if line.endswith("/launcher-sock") and line.split()[5] == "03")


def run_until_idle(stage, **changes):
    vmi, launcher = stage.run_vm(**changes)
    harness.wait_for(lambda: n_connections() == 0, "the idle connection to be closed")
    return vmi, launcher


def touch(stage, text):
    stage.api.patch_vmi({"metadata": {"labels": {"touched": text}}})


def test_idle_connection_is_made_again(stage):
    """A change, an event and the stop reach whom they should: by the pipe and the version that the first connection brought."""
    stage.start_handler()
    vmi, launcher = run_until_idle(stage, grace=60)
    before, pipe = launcher.count("SyncVirtualMachine"), launcher.pipe.stat().st_ino
    touch(stage, "once")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > before, "the change to be synced")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    launcher.tell("emit MODIFIED Running Unpaused")
    stage.api.wait_paused(False)
    harness.wait_for(lambda: n_connections() == 0, "the idle connection to be closed again")
    assert launcher.count("Info") == 1
    assert launcher.pipe.stat().st_ino == pipe
    stage.api.delete_vmi()
    stage.api.wait_phase("Succeeded")
    assert launcher.count("ShutdownVirtualMachine") >= 1
    harness.wait_for(lambda: vmi["metadata"]["uid"] not in stage.records(), "the ghost record to go")


def test_launcher_that_dies_while_idle_fails_its_vm(stage):
    stage.start_handler("--watchdog-timeout", "2s")
    vmi, launcher = run_until_idle(stage)
    launcher.popen.kill()
    stage.api.wait_phase("Failed")
    stage.api.wait_event("Stopped", "The VirtualMachineInstance crashed.")
    harness.wait_for(lambda: vmi["metadata"]["uid"] not in stage.records(), "the ghost record to go")


def test_launcher_that_was_replaced_while_idle(stage):
    """The process that listens now is connected to like any new launcher: version, pipe."""
    stage.start_handler("--watchdog-timeout", "600s")
    vmi, launcher = run_until_idle(stage)
    launcher.popen.kill()
    launcher.popen.wait()
    heir = stage.start_launcher(vmi)
    touch(stage, "once")
    harness.wait_for(lambda: heir.count("SyncVirtualMachine") and heir.pipe.exists(), "the heir to be synced and to have a pipe")
    assert vmi["metadata"]["uid"] in stage.records()
    heir.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
