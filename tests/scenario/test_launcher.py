# SPDX-License-Identifier: Apache-2.0
"""Launchers that hang, refuse, or die."""
import signal

import harness

REFUSAL = 'server error. command SyncVMI failed: "disk \\"root\\" is broken"'


def test_hanging_launcher_holds_up_nobody_else(stage):
    stage.start_handler()
    stuck = harness.numbered(1)
    stuck_launcher = stage.start_launcher(stuck)
    stuck_launcher.tell("hang SyncVirtualMachine")
    stage.create(stuck)
    harness.wait_for(lambda: stuck_launcher.count("SyncVirtualMachine"), "the hanging call")
    for index in range(2, 5):
        stage.run_vm(vmi=harness.numbered(index))
    assert stage.api.phase("vm1") == "Scheduled"


def test_launcher_that_does_not_even_speak_http2(stage):
    stage.start_handler()
    mute = harness.numbered(1)
    mute_launcher = stage.start_launcher(mute)
    mute_launcher.send(signal.SIGSTOP)
    stage.create(mute)
    stage.api.wait_event("SyncFailed", "unable to create virt-launcher client connection: context deadline exceeded")
    mute_launcher.send(signal.SIGCONT)
    stage.api.wait_phase("Running", "vm1")


def test_refusal_is_shown_and_forgotten(stage):
    """spec:01#26 spec:02-14.1#23 field:FR-C02 field:FR-J01"""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.tell('fail SyncVirtualMachine disk "root" is broken')
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", REFUSAL)
    harness.wait_for(lambda: stage.api.condition("Synchronized").get("message") == REFUSAL, "the condition")
    assert stage.api.condition("Synchronized")["status"] == "False"
    assert stage.api.phase() == "Scheduled"
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= 4, "further tries")
    assert len(vmi_writes(stage)) == 1  # the same text is written once
    launcher.tell("heal SyncVirtualMachine")
    stage.api.wait_phase("Running")
    harness.wait_for(lambda: stage.api.condition("Synchronized") == {}, "the condition to go")
    assert stage.api.condition("LiveMigratable")["status"] == "True"


def vmi_writes(stage):
    return [w for w in stage.api.writes() if w["method"] == "PUT"]


def test_dead_launcher_fails_its_vm(stage):
    """spec:01#68"""
    stage.start_handler("--watchdog-timeout", "2s")
    vmi, launcher = stage.run_vm()
    launcher.popen.kill()
    stage.api.wait_phase("Failed")
    stage.api.wait_event("Stopped", "The VirtualMachineInstance crashed.")
    assert (launcher.sockets / "launcher-unresponsive").is_file()
    harness.wait_for(lambda: vmi["metadata"]["uid"] not in stage.records(), "the ghost record to go")
    assert "detected unresponsive virt-launcher command socket" in stage.handler.text()


def test_vanished_pod_directory_fails_the_vm(stage):
    """field:FR-C04"""
    stage.start_handler("--watchdog-timeout", "1s")
    _, launcher = stage.run_vm()
    launcher.popen.kill()
    launcher.remove_pod()
    stage.api.wait_phase("Failed")


def test_stopped_launcher_is_not_dead(stage):
    """spec:01#69 field:FR-B03 field:FR-D04: Its socket still takes connections: no verdict. 01 trap 26."""
    stage.start_handler("--watchdog-timeout", "1s", "--domain-resync-period-seconds", "1")
    _, launcher = stage.run_vm()
    launcher.send(signal.SIGSTOP)
    harness.wait_for(lambda: "during resync" in stage.handler.text(), "a resync without answer, be it on a connection of old or on a new one")
    harness.wait_for(lambda: stage.handler.text().count("resyncing virt-launcher domains") > 4, "some stale checks", 60)
    launcher.send(signal.SIGCONT)
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert stage.api.phase() == "Running"


def test_two_sockets_for_one_vmi(stage):
    """field:FR-D05 field:FR-C11: that of a pod that ended does not count; two that are alive: test_rare.py."""
    stage.start_handler()
    vmi = harness.vmi_document()
    stage.start_launcher(vmi)
    other = harness.PODS / "aaaabbbb-0000-4000-8000-000000000002" / harness.SOCKETS
    other.mkdir(parents=True)
    (other / "launcher-sock").touch()
    vmi["status"]["activePods"]["aaaabbbb-0000-4000-8000-000000000002"] = "node01"
    stage.create(vmi)
    stage.api.wait_phase("Running")
    assert stage.api.event_messages("SyncFailed") == []


def test_guest_agent_reports(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    launcher.tell("agent")
    harness.wait_for(lambda: stage.api.condition("AgentConnected").get("status") == "True", "AgentConnected")
    assert stage.api.vmi()["status"]["guestOSInfo"]["prettyName"] == "Debian GNU/Linux 12 (bookworm)"
