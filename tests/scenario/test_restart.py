# SPDX-License-Identifier: Apache-2.0
"""The agent and the API server come and go; VMs stay."""
import signal

import harness


def puts(stage):
    return sum(1 for write in stage.api.writes() if write["method"] == "PUT")


def wait_quiet(stage, launcher):
    """Until the agent has looked at the VM after its start."""
    harness.wait_for(lambda: "VMI is in phase: Running | Domain status: Running" in stage.handler.text(), "the first pass")
    harness.wait_for(lambda: launcher.count("GetDomain") >= 1, "the list")


def test_killed_agent_takes_over_again(stage):
    """spec:01#66"""
    stage.start_handler()
    vmi, launcher = stage.run_vm()
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= 2, "the running VM to be synced")
    stage.handler.stop(signal.SIGKILL)
    before = puts(stage)
    stage.start_handler()
    wait_quiet(stage, launcher)
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= 3, "the running VM to be synced")
    assert puts(stage) == before
    assert stage.records() == {vmi["metadata"]["uid"]}
    launcher.tell("emit MODIFIED Paused User")  # through a pipe that the new agent has put into the pod
    stage.api.wait_paused(True)


def test_guest_that_ended_meanwhile(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.start_handler()
    stage.api.wait_phase("Succeeded")


def test_report_of_old(stage):
    """A launcher repeats what no agent took: that its guest had not run yet is no end of one that runs."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    launcher.tell("emit MODIFIED Shutoff Unknown")
    launcher.tell("state Running Unknown")
    asked = launcher.count("GetDomain")
    stage.start_handler()
    harness.wait_for(lambda: "which reports a guest that has not run yet" in stage.handler.text(), "the report")
    harness.wait_for(lambda: launcher.count("GetDomain") >= asked + 2, "the launcher to be asked at the start, and for the report")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert stage.api.phase() == "Running" and launcher.count("DeleteVirtualMachine") == 0


def test_launcher_that_died_meanwhile(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    launcher.popen.kill()
    launcher.remove_pod()
    stage.start_handler()
    stage.api.wait_phase("Failed")
    harness.wait_for(lambda: stage.records() == set(), "the ghost record to go")


def test_unreachable_launcher_at_start_fails_nothing(stage):
    """spec:01#110 field:FR-B03: silence is not absence; the next resync brings the truth."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    launcher.send(signal.SIGSTOP)
    stage.start_handler("--domain-resync-period-seconds", "1")
    harness.wait_for(lambda: "skipping processing for default/vm" in stage.handler.text(), "the warning")
    assert stage.api.phase() == "Running"
    launcher.send(signal.SIGCONT)
    wait_quiet(stage, launcher)
    assert stage.api.phase() == "Running"


def test_vm_deleted_while_the_agent_was_away(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    stage.api.delete_vmi()
    stage.start_handler()
    stage.api.wait_phase("Succeeded")
    assert launcher.count("ShutdownVirtualMachine") >= 1


def test_foreign_files_among_the_records(stage):
    """spec:01#95"""
    records = harness.PRIVATE / "ghost-records"
    records.mkdir(parents=True)
    (records / "garbage").write_text("{")
    (records / "1111bbbb-0000-4000-8000-00000000dead").write_text("")
    (records / "directory").mkdir()
    stage.start_handler()
    stage.run_vm()
    assert (records / "garbage").read_text() == "{"


def test_api_server_comes_back(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.api.stop(signal.SIGKILL)
    launcher.tell("emit MODIFIED Paused User")  # a write that cannot be stored now
    harness.wait_for(lambda: "Updating the VirtualMachineInstance status failed." in stage.handler.text(), "the failing write")
    stage.api = harness.ApiServer(stage.directory)
    stage.api.wait_paused(True)
    stage.run_vm(vmi=harness.numbered(2))


def test_final_phase_survives_an_outage(stage):
    """01 trap 7: the domain is cleaned up before the write; Succeeded must not turn into Failed."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.api.stop(signal.SIGKILL)
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    harness.wait_for(lambda: "Updating the VirtualMachineInstance status failed." in stage.handler.text(), "the failing write")
    stage.api = harness.ApiServer(stage.directory)
    harness.wait_for(lambda: stage.api.phase() in ("Succeeded", "Failed"), "a final phase")
    assert stage.api.phase() == "Succeeded"


def test_stop_without_api_server(stage):
    stage.start_handler()
    stage.run_vm()
    stage.api.stop(signal.SIGKILL)
    assert stage.handler.stop(signal.SIGTERM, deadline=20) == 0
    stage.api = harness.ApiServer(stage.directory)


def test_nothing_is_untold_at_the_end(stage):
    """01 §28: the events of what was done last are written before the agent ends."""
    for index, signo in enumerate((signal.SIGTERM, signal.SIGINT)):
        stage.start_handler()
        vmi, _ = stage.run_vm(vmi=harness.numbered(index))
        assert stage.handler.stop(signo) == 0
        assert any(e["reason"] == "Started" and e["involvedObject"]["uid"] == vmi["metadata"]["uid"] for e in stage.api.events())


def test_every_signal_ends_it_well(stage):
    """spec:01#111"""
    for signo in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        handler = stage.start_handler()
        assert handler.stop(signo) == 0
        assert ("Stopping virt-handler vms controller." in handler.text()) is True


def test_stop_before_the_caches_are_filled(stage):
    stage.api.stop(signal.SIGKILL)
    stage.start_handler(wait=False)
    harness.wait_for(lambda: "STARTING informer vmiInformer-sources" in stage.handler.text(), "the start")
    assert stage.handler.stop() == 0
    stage.api = harness.ApiServer(stage.directory)


def test_stop_while_a_launcher_hangs(stage):
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.tell("hang SyncVirtualMachine")
    stage.create(vmi)
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine"), "the hanging call")
    assert stage.handler.stop(deadline=15) == 0  # the call would take 20 s
