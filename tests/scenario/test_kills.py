# SPDX-License-Identifier: Apache-2.0
"""SIGTERM and SIGKILL for every program at any time: VMs are untouched, and the state is right after the restart."""
import os
import signal
import time

import golden
import harness
import pytest

SIGNALS = (signal.SIGTERM, signal.SIGKILL)
# Seconds after the VMI was created: before, in and after each step of a start that takes about 0.12 s.
MOMENTS = (0, 0.001, 0.002, 0.003, 0.005, 0.008, 0.013, 0.03, 0.09, 0.11, 0.125, 0.15)

ENDING = ("ShutdownVirtualMachine", "KillVirtualMachine", "DeleteVirtualMachine")


def untouched(launcher):
    return launcher.popen.poll() is None and not any(launcher.count(method) for method in ENDING)


def kill_hands(stage):
    os.kill(harness.children(stage.handler.popen.pid)[0], signal.SIGKILL)
    assert stage.handler.popen.wait(harness.DEADLINE) == 2


@pytest.mark.parametrize("signo", SIGNALS)
def test_agent_ends_during_starts(stage, signo):
    moments = MOMENTS[SIGNALS.index(signo)::2]
    stage.start_handler()
    for index, moment in enumerate(moments):
        vmi = harness.numbered(index)
        launcher = stage.start_launcher(vmi)
        stage.create(vmi)
        time.sleep(moment)
        stage.handler.stop(signo)
        stage.start_handler()
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        assert untouched(launcher)
    assert len(stage.records()) == len(moments)
    for index, launcher in enumerate(stage.launchers):
        launcher.tell("emit MODIFIED Shutoff Shutdown")  # through the pipe of the newest agent
        stage.api.wait_phase("Succeeded", f"vm{index}")


@pytest.mark.parametrize("signo", SIGNALS)
def test_agent_ends_during_deletions(stage, signo):
    """The domain's end is not lost, nor is anything left on disk."""
    stage.start_handler()
    for index, moment in enumerate((0, 0.002, 0.005, 0.1, 0.295, 0.31)):
        vmi, _ = stage.run_vm(vmi=harness.numbered(index))
        name = vmi["metadata"]["name"]
        stage.api.delete_vmi(name)
        time.sleep(moment)
        stage.handler.stop(signo)
        stage.start_handler()
        harness.wait_for(lambda: stage.api.phase(name) in ("Succeeded", "Failed"), f"{name} to be final")
    harness.wait_for(lambda: stage.records() == set(), "the ghost records to go")


def test_hands_die_during_starts(stage):
    """The agent ends with them, status 2, and is started again by whoever runs it."""
    stage.start_handler()
    for index, moment in enumerate(MOMENTS[::3]):
        vmi = harness.numbered(index)
        launcher = stage.start_launcher(vmi)
        stage.create(vmi)
        time.sleep(moment)
        kill_hands(stage)
        stage.start_handler()
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        assert untouched(launcher)


def test_hands_that_stand_still(stage):
    """What the agent cannot see while they do is not gone: the VM that starts meanwhile does not fail, and starts when they move again."""
    stage.start_handler()
    hands = harness.children(stage.handler.popen.pid)[0]
    vmi = harness.numbered(0)
    launcher = stage.start_launcher(vmi)
    os.kill(hands, signal.SIGSTOP)
    stage.create(vmi)
    harness.wait_for(lambda: "VMI is in phase" in stage.handler.text(), "its pass to end", 120)
    os.kill(hands, signal.SIGCONT)
    stage.api.wait_phase("Running", "vm0")
    phases = [write["body"]["status"]["phase"] for write in stage.api.writes() if write["method"] == "PUT"]
    assert "Failed" not in phases and untouched(launcher)


def test_agent_and_hands_never_outlive_each_other(stage):
    handler = stage.start_handler()
    hands = harness.children(handler.popen.pid)[0]
    handler.stop(signal.SIGKILL)
    harness.wait_for(lambda: not harness.status(hands), "the hands to end")
    stage.start_handler()


@pytest.mark.parametrize("signo", SIGNALS)
def test_api_server_ends_during_starts(stage, signo):
    stage.start_handler()
    level = harness.Level(stage.handler)
    for index, moment in enumerate(MOMENTS[3::4]):
        vmi = harness.numbered(index)
        launcher = stage.start_launcher(vmi)
        stage.create(vmi)
        time.sleep(moment)
        stage.api.stop(signo)
        stage.api = harness.ApiServer(stage.directory)
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        assert untouched(launcher)
    level.check(vms=3)


def test_everything_dies_at_once(stage):
    stage.start_handler()
    launchers = [stage.run_vm(vmi=harness.numbered(index))[1] for index in range(3)]
    os.kill(stage.handler.popen.pid, signal.SIGKILL)
    stage.restart_api()
    stage.handler.stop(signal.SIGKILL)
    stage.start_handler()
    for index, launcher in enumerate(launchers):
        launcher.tell("emit MODIFIED Paused User")
        stage.api.wait_paused(True, f"vm{index}")
        assert untouched(launcher)


@pytest.mark.skipif(not harness.GOLDEN.is_dir(), reason="the golden traces (../shared/golden) are not here")
def test_take_over_from_the_go_agent(stage):
    """What v1.9.0 left in the private directory, with a VM that runs: found, looked after, and not changed by a byte."""
    trace = golden.load("start_masquerade")
    harness.plant(harness.PRIVATE, trace["state"])
    before = harness.tree(harness.PRIVATE)
    vmi = harness.vmi_document("vmi-masquerade.json")
    vmi["status"] = golden.with_times(trace["vmi"]["vm"]["status"])
    launcher = stage.start_launcher(vmi)
    launcher.tell("emit MODIFIED Running Unknown")
    stage.create(vmi)
    stage.start_handler()
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine"), "the running VM to be synced")
    assert stage.api.phase() == "Running" and untouched(launcher)
    assert harness.tree(harness.PRIVATE) == before
    stage.api.delete_vmi()
    stage.api.wait_phase("Succeeded")
    harness.wait_for(lambda: stage.records() == set(), "the ghost record to go")
