# SPDX-License-Identifier: Apache-2.0
"""Garbage, conflicts, size, many VMs: what must not bring the agent down or use it up."""
import concurrent.futures
import contextlib
import json
import pathlib
import socket

import harness

GARBAGE = (b"", b"\x00" * 64, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 4096,
           b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff\xff\x01\x05\x00\x00\x00\x01")


def say_garbage(connect):
    for bytes_ in GARBAGE:
        with contextlib.closing(connect()) as connection, contextlib.suppress(OSError):
            connection.sendall(bytes_)


def connect_shared():
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(harness.SHARE / "domain-notify.sock"))
    return connection


def test_garbage_on_the_notify_sockets(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    for _ in range(3):
        say_garbage(connect_shared)
        say_garbage(launcher.connect_pipe)
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)


def test_open_connections_do_not_shut_others_out(stage):
    stage.start_handler()
    _, launcher = stage.run_vm()
    other_vmi, other = stage.run_vm(vmi=harness.numbered(2))
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(contextlib.closing(launcher.connect_pipe()))
        other.tell("emit MODIFIED Paused User")
        stage.api.wait_paused(True, other_vmi["metadata"]["name"])


def test_removed_notify_socket_comes_back(stage):
    """spec:01#77"""
    stage.start_handler()
    path = harness.SHARE / "domain-notify.sock"
    path.unlink()
    harness.wait_for(lambda: "was removed or replaced externally" in stage.handler.text(), "the agent to see it")
    harness.wait_for(path.exists, "the socket to come back")
    stage.api.wait_event("NotifyServerFailure",
                         f"Domain notify server exited unexpectedly: socket file {path} was removed or replaced externally")
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)


def test_share_dir_that_cannot_be_used(stage):
    """VMs are looked after all the same; the agent gives up only after ten failures."""
    harness.SHARE.parent.mkdir(parents=True, exist_ok=True)
    harness.SHARE.write_text("a file")
    try:
        stage.start_handler()
        harness.wait_for(lambda: "Domain notify server exited unexpectedly" in stage.handler.text(), "the failure")
        assert stage.handler.stop() == 0
    finally:
        harness.SHARE.unlink()


def test_concurrent_changes_are_not_lost(stage):
    """field:FR-B07: 409 on the agent's write: the next pass writes on top of what is there."""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    changes = 0

    def change():
        nonlocal changes
        changes += 1
        stage.api.patch_vmi({"metadata": {"annotations": {"change": str(changes)}}})

    while stage.api.phase() != "Running":
        change()
    for turn in range(10):
        launcher.tell(f"emit MODIFIED {'Running Unpaused' if turn % 2 else 'Paused User'}")
        for _ in range(5):
            change()
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert stage.api.vmi()["metadata"]["annotations"]["change"] == str(changes)
    assert stage.api.phase() == "Running"


def test_vmi_that_the_watch_does_not_bring(stage):
    """01 §7: it is owned by status.nodeName, so no watch event ever meets an expectation."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    stage.api.patch_vmi({"metadata": {"labels": {"kubevirt.io/nodeName": None}}})
    for paused, event in ((True, "Paused User"), (False, "Running Unpaused"), (True, "Paused User")):
        launcher.tell(f"emit MODIFIED {event}")
        stage.api.wait_paused(paused)


def test_large_vmi(stage):
    stage.start_handler()
    vmi = harness.vmi_document()
    vmi["metadata"]["annotations"]["large"] = "x" * (700 << 10)
    _, launcher = stage.run_vm(vmi=vmi)
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert len(stage.api.vmi()["metadata"]["annotations"]["large"]) == 700 << 10


def test_vmi_that_no_launcher_takes(stage):
    """Beyond the 4 MiB that a launcher accepts: said, and the others go on."""
    stage.start_handler()
    vmi = harness.numbered(1)
    stage.start_launcher(vmi)
    vmi["spec"]["volumes"][0]["cloudInitNoCloud"]["userData"] = "x" * (5 << 20)
    try:
        stage.create(vmi)
    except OSError:  # the API server may refuse it first, as a real one does
        pass
    else:
        harness.wait_for(lambda: any("SyncVMI" in m for m in stage.api.event_messages("SyncFailed")), "the refusal")
    stage.run_vm(vmi=harness.numbered(2))


def test_uid_that_leads_elsewhere(stage):
    stage.start_handler()
    for index, uid in enumerate(("../../../escaped", "..", "a/b", "with\nnewline", "x" * 300)):
        vmi = harness.numbered(index + 10)
        vmi["metadata"]["uid"] = uid
        stage.start_launcher(vmi)
        stage.create(vmi)
    stage.run_vm()
    assert not any(path.name == "escaped" for path in pathlib.Path("/var").rglob("*"))
    assert stage.records() == {"1111bbbb-0000-4000-8000-000000000001"} | {r for r in stage.records() if "/" not in r}
    stage.handler.lines()


def test_log_is_json(stage):
    stage.start_handler()
    stage.run_vm()
    stage.api.delete_vmi()
    stage.api.wait_phase("Succeeded")
    documents = stage.handler.lines()
    for text, document in zip(stage.handler.text().splitlines(), documents):
        assert list(document) == sorted(document), text
        assert {"component", "level", "msg", "pos", "timestamp"} <= set(document), text
        assert document["component"] == "virt-handler"
        assert document["level"] in ("info", "warning", "error"), text
        assert text == json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    about_vm = [d for d in documents if d.get("name") == "vm"]
    assert all(d["namespace"] == "default" and d["kind"] == "VirtualMachineInstance" for d in about_vm)
    stages = [d["stage"] for d in documents if "stage" in d]
    assert stages[0] == "seen" and "running" in stages and len(stages) == len(set(stages))


def test_unbuilt_flags_are_named(stage):
    handler = stage.start_handler("--max-devices", "5", "--max-devices", "6")
    assert handler.text().count("ignoring flag --max-devices") == 1


def play_lives(stage, numbers):
    """These VMs start, run, end and are deleted, all at the same time."""
    vmis = [harness.numbered(number) for number in numbers]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        launchers = list(pool.map(lambda vmi: stage.start_launcher(vmi, delay_ms=1), vmis))
        list(pool.map(stage.create, vmis))
    for vmi, launcher in zip(vmis, launchers):
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        launcher.tell("emit MODIFIED Shutoff Shutdown")
    for vmi, launcher in zip(vmis, launchers):
        name = vmi["metadata"]["name"]
        stage.api.wait_phase("Succeeded", name)
        launcher.stop()
        stage.launchers.remove(launcher)
        launcher.remove_pod()
        stage.api.patch_vmi({"metadata": {"finalizers": None}}, name)
        stage.api.delete_vmi(name)
    harness.wait_for(lambda: stage.records() == set(), "the ghost records to go")


def test_lives_leave_nothing(stage):
    """field:FR-A01: a thousand lives, 25 at a time; a tenth of that is enough to find leaks with a sanitizer."""
    stage.start_handler()
    stage.api.lift_rate_limit()
    half = 50 if harness.SANITIZED else 500
    for first in range(100, 100 + half, 25):  # tables, arenas and caches grow to what they need
        play_lives(stage, range(first, first + 25))
    level = harness.Level(stage.handler)
    for first in range(100 + half, 100 + 2 * half, 25):
        play_lives(stage, range(first, first + 25))
    level.check(slack=1 << 10)  # half of that is the event correlator's: 1 kB a life, till its tables have 4,096 entries each
