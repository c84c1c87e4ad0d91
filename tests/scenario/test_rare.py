# SPDX-License-Identifier: Apache-2.0
"""The rare states of spec 01: what is left over, comes late, hangs half way, or is there twice."""
import contextlib
import json
import signal
import socket

import harness

SECOND = {"uid": "2222bbbb-0000-4000-8000-000000000002", "pod": "aaaabbbb-0000-4000-8000-000000000002"}


def listen_in(pod_uid):
    """A socket that listens in the place of a launcher's."""
    directory = harness.PODS / pod_uid / harness.SOCKETS
    directory.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(directory / "launcher-sock"))
    listener.listen()
    return listener


def has_visitor(listener):
    listener.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        listener.accept()[0].close()
        return True
    return False


def write_record(name, uid, pod_uid):
    directory = harness.PRIVATE / "ghost-records"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / uid).write_text(json.dumps(
        {"name": name, "namespace": "default", "socketFile": f"{harness.PODS}/{pod_uid}/{harness.SOCKETS}/launcher-sock", "uid": uid}))


def writes_about(stage, name):
    return [w for w in stage.api.writes() if name in w["path"] or w["body"].get("involvedObject", {}).get("name") == name]


# --- ends that hang ---


def test_paused_guest_is_killed_in_time(stage):
    """03 §15: it takes no shutdown, which is no failure; its grace period ends all the same."""
    stage.start_handler()
    _, launcher = stage.run_vm(grace=3)
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    launcher.tell("fail ShutdownVirtualMachine Requested operation is not valid: domain is not running")
    stage.api.delete_vmi()
    harness.wait_for(lambda: launcher.count("KillVirtualMachine"), "the kill")
    assert launcher.count("ShutdownVirtualMachine") >= 1
    assert stage.api.event_messages("SyncFailed") == [] and stage.api.condition("Synchronized") == {}
    stage.api.wait_phase("Succeeded")


def test_guest_that_hangs_while_it_shuts_down_is_killed(stage):
    """No event comes any more: a timer ends the grace period."""
    stage.start_handler()
    _, launcher = stage.run_vm(grace=3)
    launcher.tell("stubborn")
    stage.api.delete_vmi()
    harness.wait_for(lambda: launcher.count("ShutdownVirtualMachine"), "the signal")
    launcher.tell("emit MODIFIED ShuttingDown Unknown")
    harness.wait_for(lambda: launcher.count("KillVirtualMachine"), "the kill")
    stage.api.wait_phase("Succeeded")


# --- what is left over ---


def test_vmi_that_went_while_the_agent_was_away(stage):
    """spec:01#112 field:FR-B10: nobody but its ghost record knows the launcher; the original cannot find it."""
    stage.start_handler()
    vmi, launcher = stage.run_vm()
    stage.handler.stop()
    stage.api.patch_vmi({"metadata": {"finalizers": None}})
    stage.api.delete_vmi()
    stage.start_handler()
    harness.wait_for(lambda: stage.records() == set(), "the record to go")
    methods = [rpc["method"] for rpc in launcher.rpcs()]
    assert methods.index("ShutdownVirtualMachine") < methods.index("DeleteVirtualMachine")
    assert stage.api.event_messages("SyncFailed") == []


def test_record_of_a_vm_that_nobody_has(stage):
    """field:FR-B05: pod and VMI are gone: record and caches go as well, when the API server has said so; other VMs' stay."""
    stage.start_handler()
    vmi, launcher = stage.run_vm()
    stage.handler.stop()
    write_record("gone", SECOND["uid"], SECOND["pod"])
    stage.start_handler()
    harness.wait_for(lambda: stage.records() == {vmi["metadata"]["uid"]}, "the record to go")
    assert stage.api.phase() == "Running" and launcher.count("ShutdownVirtualMachine") == 0


def test_socket_without_record_is_left_alone(stage):
    """field:FR-B04: neither listed nor probed."""
    with contextlib.closing(listen_in(SECOND["pod"])) as listener:
        stage.start_handler("--domain-resync-period-seconds", "1", "--watchdog-timeout", "1s")
        _, launcher = stage.run_vm()
        harness.wait_for(lambda: launcher.count("GetDomain") >= 2, "two resyncs")
        assert not has_visitor(listener)


def test_launchers_are_told_apart_at_the_start(stage):
    """spec:01#65 spec:01#66 spec:01#70 spec:01#75 spec:01#110: alive, vanished, silent; one silent launcher delays nobody."""
    stage.start_handler()
    _, alive = stage.run_vm(vmi=harness.numbered(1))
    _, vanished = stage.run_vm(vmi=harness.numbered(2))
    _, silent = stage.run_vm(vmi=harness.numbered(3))
    stage.handler.stop()
    vanished.popen.kill()
    vanished.remove_pod()
    silent.send(signal.SIGSTOP)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as visitor:
        visitor.connect(str(alive.sockets / "launcher-sock"))
    before, syncs = len(writes_about(stage, "vm3")), alive.count("SyncVirtualMachine")
    stage.start_handler()
    stage.api.wait_phase("Failed", "vm2")
    harness.wait_for(lambda: alive.count("SyncVirtualMachine") > syncs, "the VM that is alive")
    harness.wait_for(lambda: "skipping processing for default/vm3" in stage.handler.text(), "the warning")
    assert stage.api.phase("vm1") == stage.api.phase("vm3") == "Running"
    assert len(writes_about(stage, "vm3")) == before
    silent.send(signal.SIGCONT)


def test_storage_pause_is_retried_with_growing_waits(stage):
    """spec:01#105 field:FR-J08: at once, then not before its wait is over, and then by itself."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Paused IOError")
    stage.api.wait_paused(True)
    harness.wait_for(lambda: launcher.rpcs()[-1]["method"] == "SyncVirtualMachine", "the first try")
    launcher.tell("emit MODIFIED Paused IOError")
    harness.wait_for(lambda: "Delay vm update for" in stage.handler.text(), "the wait")
    syncs = launcher.count("SyncVirtualMachine")
    launcher.tell("emit MODIFIED Paused IOError")
    harness.wait_for(lambda: stage.handler.text().count("Delay vm update for") >= 2, "a pass during the wait")
    assert launcher.count("SyncVirtualMachine") == syncs
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > syncs, "the second try")
    assert stage.api.condition("Paused")["reason"] == "PausedIOError"


# --- the pipe ---


def test_resync_sees_what_was_not_reported(stage):
    """spec:01#67"""
    stage.start_handler("--domain-resync-period-seconds", "1")
    _, launcher = stage.run_vm()
    launcher.tell("state Paused User")
    stage.api.wait_paused(True)


def test_error_report_concerns_its_own_launcher(stage):
    """01 §11.2: the original lists all launchers again."""
    stage.start_handler()
    _, broken = stage.run_vm(vmi=harness.numbered(1))
    _, other = stage.run_vm(vmi=harness.numbered(2))
    broken.tell("emit ERROR Running Unknown")
    harness.wait_for(lambda: broken.count("GetDomain"), "the question")
    assert other.count("GetDomain") == 0
    broken.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True, "vm1")


def test_launchers_event_becomes_the_vmis(stage):
    """spec:01#82 spec:01#97: recorded about the VMI; of an unknown type it is taken and dropped."""
    stage.start_handler()
    vmi, launcher = stage.run_vm()
    launcher.tell("event Foo Odd nothing")
    launcher.tell("event Warning IOerror the disk is gone")
    stage.api.wait_event("IOerror", "the disk is gone")
    event = next(e for e in stage.api.events() if e["reason"] == "IOerror")
    assert event["type"] == "Warning" and event["source"] == {"component": "virt-handler", "host": "node01"}
    assert {key: event["involvedObject"][key] for key in ("kind", "apiVersion", "name", "namespace", "uid")} == {
        "kind": "VirtualMachineInstance", "apiVersion": "kubevirt.io/v1", "name": "vm", "namespace": "default",
        "uid": vmi["metadata"]["uid"]}
    assert stage.api.event_messages("Odd") == []


def test_pipe_comes_later_than_the_report(stage):
    """spec:01#83"""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.tell("emit MODIFIED Running Unknown")
    assert not launcher.pipe.exists()
    launcher.tell("hang SyncVirtualMachine")  # it is the report that counts
    stage.create(vmi)
    stage.api.wait_phase("Running")


def test_reports_reach_each_new_agent(stage):
    """spec:01#84 field:FR-D01: sent while nobody listens, taken when somebody does."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    for turn in range(4):
        stage.handler.stop(signal.SIGKILL)
        launcher.tell("emit MODIFIED " + ("Running Unpaused" if turn % 2 else "Paused User"))
        stage.start_handler()
        stage.api.wait_paused(turn % 2 == 0)


def test_link_in_the_place_of_the_pipe(stage):
    """spec:01#109: refused and left alone; the record that this attempt made is taken back."""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.pipe.symlink_to("/etc/passwd")
    stage.create(vmi)
    harness.wait_for(lambda: stage.api.event_messages("SyncFailed"), "the refusal")
    message = stage.api.event_messages("SyncFailed")[0]
    assert message.startswith("unable to create virt-launcher client connection: failed to create unix socket for proxy service: ")
    harness.wait_for(lambda: stage.records() == set(), "the record to go")  # each retry makes one, and takes it back
    assert launcher.pipe.is_symlink() and launcher.count("SyncVirtualMachine") == 0
    launcher.pipe.unlink()
    stage.api.wait_phase("Running")


# --- twice ---


def test_two_live_sockets(stage):
    """spec:01#98: which one is it? Neither, until one is gone."""
    stage.start_handler()
    vmi = harness.vmi_document()
    stage.start_launcher(vmi)
    vmi["status"]["activePods"][SECOND["pod"]] = "node01"
    with contextlib.closing(listen_in(SECOND["pod"])) as other:
        stage.create(vmi)
        harness.wait_for(lambda: has_visitor(other), "the agent to look who is there")
        assert stage.api.phase() == "Scheduled"
    stage.api.wait_phase("Running")


def test_late_words_of_a_predecessor(stage):
    """field:FR-C03: the old launcher's connection is still open when another VM has the name."""
    stage.start_handler()
    _, old = stage.run_vm()
    old.tell("fail DeleteVirtualMachine not now")
    stage.api.patch_vmi({"metadata": {"finalizers": None}})
    stage.api.delete_vmi()
    harness.wait_for(lambda: stage.records() == set(), "the old VM to be given up")
    stage.run_vm(**SECOND)
    for event in ("DELETED Shutoff Destroyed", "MODIFIED Shutoff Crashed"):
        old.tell(f"emit {event}")
    harness.wait_for(lambda: stage.handler.text().count("which is not on record") >= 2, "the reports to arrive")
    assert stage.api.phase() == "Running"


# --- odd VMIs ---


def test_sync_that_takes_longer_than_its_deadline(stage):
    """field:FR-D03: repeated, told once for each of the two texts that a deadline has, and the phase stays."""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.tell("hang SyncVirtualMachine")
    stage.create(vmi)
    harness.wait_for(lambda: stage.api.event_messages("SyncFailed"), "the deadline", 90)
    assert stage.api.phase() == "Scheduled"
    launcher.tell("heal SyncVirtualMachine")
    stage.api.wait_phase("Running", deadline=90)
    messages = stage.api.event_messages("SyncFailed")  # whose clock was the first, the agent's or the launcher's?
    assert len(messages) <= 2 and all("DeadlineExceeded" in message for message in messages)


def test_vmi_with_nothing_optional(stage):
    """field:FR-C09: started, synced, shut down by what the domain says."""
    stage.start_handler()
    vmi = harness.vmi_document()
    vmi["spec"] = {"domain": {"devices": {"autoattachPodInterface": False}}}
    vmi["status"] = {key: vmi["status"][key] for key in ("phase", "activePods")}
    _, launcher = stage.run_vm(vmi=vmi)
    stage.api.delete_vmi()
    stage.api.wait_phase("Succeeded")
    assert launcher.count("ShutdownVirtualMachine") >= 1 and launcher.count("KillVirtualMachine") == 0
