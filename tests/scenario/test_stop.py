# SPDX-License-Identifier: Apache-2.0
"""How VMs end: by the guest, by the grace period, by force, and without anybody asking."""
import harness


def rpc_order(launcher, *methods):
    return [rpc["method"] for rpc in launcher.rpcs() if rpc["method"] in methods]


def wait_record_gone(stage, uid):
    harness.wait_for(lambda: uid not in stage.records(), f"the ghost record of {uid} to go")


def test_guest_that_ignores_shutdown_is_killed(stage):
    """spec:01#13"""
    stage.start_handler()
    _, launcher = stage.run_vm(grace=1)
    launcher.tell("stubborn")
    stage.api.delete_vmi()
    stage.api.wait_event("Deleted", "VirtualMachineInstance stopping")
    harness.wait_for(lambda: stage.api.phase() in ("Succeeded", "Failed"), "a final phase")
    harness.wait_for(lambda: launcher.count("DeleteVirtualMachine"), "the domain to be deleted")
    order = rpc_order(launcher, "ShutdownVirtualMachine", "KillVirtualMachine", "DeleteVirtualMachine")
    assert order[0] == "ShutdownVirtualMachine"
    assert order.index("KillVirtualMachine") < order.index("DeleteVirtualMachine")
    assert stage.api.event_messages("ShuttingDown") == ["Signaled Graceful Shutdown"]


def test_grace_zero_kills_at_once(stage):
    """spec:01#14"""
    stage.start_handler()
    _, launcher = stage.run_vm(grace=0)
    stage.api.delete_vmi()
    harness.wait_for(lambda: stage.api.phase() in ("Succeeded", "Failed"), "a final phase")
    assert launcher.count("KillVirtualMachine") == 1
    assert launcher.count("ShutdownVirtualMachine") == 0


def test_shutdown_is_signalled_again_until_the_guest_reacts(stage):
    """spec:01#5"""
    stage.start_handler()
    _, launcher = stage.run_vm(grace=60)
    launcher.tell("stubborn")
    stage.api.delete_vmi()
    harness.wait_for(lambda: launcher.count("ShutdownVirtualMachine") >= 3, "three signals")
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
    assert launcher.count("KillVirtualMachine") == 0
    assert len(stage.api.event_messages("ShuttingDown")) == 1


def test_vmi_vanishes_while_the_guest_runs(stage):
    """spec:01#4"""
    stage.start_handler()
    vmi, launcher = stage.run_vm()
    stage.api.patch_vmi({"metadata": {"finalizers": None}})
    stage.api.delete_vmi()
    harness.wait_for(lambda: launcher.popen.poll() is not None, "the launcher to be told to end")
    assert rpc_order(launcher, "ShutdownVirtualMachine", "DeleteVirtualMachine")[0] == "ShutdownVirtualMachine"
    wait_record_gone(stage, vmi["metadata"]["uid"])


def test_recreated_vmi_waits_for_its_predecessor(stage):
    stage.start_handler("--watchdog-timeout", "1s")
    old, old_launcher = stage.run_vm()
    stage.api.patch_vmi({"metadata": {"finalizers": None}})
    old_launcher.popen.kill()
    stage.api.delete_vmi()
    new = harness.vmi_document(uid="2222bbbb-0000-4000-8000-000000000002", pod="aaaabbbb-0000-4000-8000-000000000002")
    stage.start_launcher(new)
    stage.create(new)
    stage.api.wait_phase("Running")
    assert stage.records() == {new["metadata"]["uid"]}
    assert stage.api.vmi()["metadata"]["uid"] == new["metadata"]["uid"] != old["metadata"]["uid"]


def recreate_while_the_agent_is_away(stage):
    """The VMI gets a successor of the same name: (old launcher, new VMI, new launcher); the agent is down."""
    _, old_launcher = stage.run_vm()
    stage.handler.stop()
    stage.api.patch_vmi({"metadata": {"finalizers": None}})
    stage.api.delete_vmi()
    new = harness.vmi_document(uid="2222bbbb-0000-4000-8000-000000000002", pod="aaaabbbb-0000-4000-8000-000000000002")
    stage.create(new)
    return old_launcher, new, stage.start_launcher(new)


def test_predecessor_that_runs_is_left_alone(stage):
    """spec:01#107: 01 trap 48: nothing is known of the old launcher but its record; it lives, so the new VM waits, and starts when it has gone."""
    stage.start_handler()
    old_launcher, new, new_launcher = recreate_while_the_agent_is_away(stage)
    stage.start_handler("--watchdog-timeout", "1s")
    harness.wait_for(lambda: old_launcher.count("GetDomain") and new["metadata"]["uid"] in stage.handler.text(), "the agent to look at both")
    assert old_launcher.count("KillVirtualMachine") == old_launcher.count("ShutdownVirtualMachine") == 0
    assert new_launcher.count("SyncVirtualMachine") == 0
    assert "Detected stale vmi" not in stage.handler.text()
    old_launcher.popen.kill()
    stage.api.wait_phase("Running")
    assert stage.records() == {new["metadata"]["uid"]}


def test_predecessor_without_domain_is_left_alone(stage):
    """A launcher on record that lives and has no domain (yet) is no stale one; the new VM says why it waits. 01 §28."""
    stage.start_handler()
    old_launcher, new, new_launcher = recreate_while_the_agent_is_away(stage)
    old_launcher.tell("undefine")
    stage.start_handler("--watchdog-timeout", "1s")
    stage.api.wait_event("SyncFailed", "unable to create virt-launcher client connection: "
                         "can not add ghost record when entry already exists with differing UID")
    assert new_launcher.count("SyncVirtualMachine") == 0
    assert "Detected stale vmi" not in stage.handler.text()
    old_launcher.popen.kill()
    stage.api.wait_phase("Running")
    assert stage.records() == {new["metadata"]["uid"]}


def test_predecessor_that_is_gone_is_cleaned_up(stage):
    """spec:01#108 field:FR-B02: the original fails here for ever."""
    stage.start_handler()
    old_launcher, new, _ = recreate_while_the_agent_is_away(stage)
    old_launcher.popen.kill()
    old_launcher.remove_pod()
    stage.start_handler()
    stage.api.wait_phase("Running")
    assert stage.records() == {new["metadata"]["uid"]}
    assert stage.api.event_messages("SyncFailed") == []


def test_vm_that_lives_elsewhere_leaves_no_alarm(stage):
    """field:FR-B01: the record of a VM that left with its pod is removed once."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.handler.stop()
    stage.api.patch_vmi({"metadata": {"labels": {"kubevirt.io/nodeName": "node02"}}, "status": {"nodeName": "node02"}})
    launcher.popen.kill()
    stage.start_handler("--watchdog-timeout", "1s")
    harness.wait_for(lambda: stage.records() == set(), "the record to go")
    alarms = stage.handler.text().count("detected unresponsive virt-launcher command socket")
    assert alarms == 1 and stage.handler.text().count("which lives elsewhere") == 1
    harness.wait_for(lambda: stage.handler.text().count("Performing final local cleanup") >= 1, "the clean-up")
    assert stage.api.phase() == "Running"


def test_scheduled_vmi_without_pod_can_be_deleted(stage):
    """field:FR-C07"""
    stage.start_handler()
    vmi = harness.vmi_document()
    (harness.PODS / harness.pod_of(vmi) / harness.SOCKETS).mkdir(parents=True)  # the pod is there, its launcher is not
    stage.create(vmi)
    harness.wait_for(lambda: "VMI is in phase: Scheduled" in stage.handler.text(), "the agent to look at it")
    stage.api.delete_vmi()
    harness.wait_for(lambda: "Performing final local cleanup" in stage.handler.text(), "the agent to do its part")
    assert stage.api.event_messages("SyncFailed") == []


def test_pipe_that_nobody_used_goes_with_its_vm(stage):
    """field:FR-A03"""
    handler = stage.start_handler()
    level = harness.Level(handler)
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi, exit_ms=60000)
    launcher.tell("fail SyncVirtualMachine not today")
    stage.create(vmi)
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= 2, "the agent to try")
    assert launcher.pipe.exists()
    assert "Accepted new notify pipe connection" not in handler.text()
    stage.api.delete_vmi()
    harness.wait_for(lambda: not launcher.pipe.exists(), "the pipe to go")
    assert launcher.popen.poll() is None
    level.check()
