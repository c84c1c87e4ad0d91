# SPDX-License-Identifier: Apache-2.0
"""The API server is away, slow, flapping, or answers what it should not. VMs stay, writes arrive, nothing is used up."""
import time

import faulty_api
import harness
import pytest

LIST_OR_WATCH = r"virtualmachineinstances\?.*labelSelector"
LIST = r"virtualmachineinstances\?labelSelector(?!.*watch=true)"
WATCH = r"virtualmachineinstances\?.*watch=true"
LOOKUP = r"virtualmachineinstances\?fieldSelector"
VMI = r"/virtualmachineinstances/vm"

EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
                                       "message": "too old resource version: 1 (2)"}}
THROTTLED = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429}}
BROKEN = {"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "etcd"}}

# A write that fails this often is made by the next passes.
WRITE_FAULTS = {
    "500": faulty_api.status(500),
    "500-retry-after": faulty_api.status(500, "Retry-After: 1\r\n"),
    "429": faulty_api.status(429),
    "429-retry-after": faulty_api.status(429, "Retry-After: 1\r\n"),
    "409": faulty_api.status(409),
    "garbage": faulty_api.garbage,
    "not-json": faulty_api.answer("<html>Sign in, please</html>"),
    "not-the-vmi": faulty_api.answer({"kind": "Status", "status": "Success"}),
    "half": faulty_api.half,
    "reset": faulty_api.reset,
    "answer-lost": faulty_api.swallow,
}


@pytest.mark.parametrize("fault", WRITE_FAULTS)
def test_write_fails(stage, fault):
    """spec:01#91 field:FR-C01 field:FR-B07"""
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    rule = proxy.when(WRITE_FAULTS[fault], "PUT", VMI, times=3)
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert rule.hits == 3
    assert stage.api.event_messages("SyncFailed") == []
    if fault not in ("half", "answer-lost"):  # these were stored: the event of a write whose answer is lost is lost as well
        stage.api.wait_event("Started", "VirtualMachineInstance started.")
    level.check(vms=1)


# What a watch may bring instead of events, and what a list may answer: found out and mended by listing again.
WATCH_FAULTS = {
    "410-event": faulty_api.stream(EXPIRED),
    "429-event": faulty_api.stream(THROTTLED),
    "500-event": faulty_api.stream(BROKEN),
    "garbage-event": faulty_api.stream(b'{"type":"ADDED","object":nonsense}\n'),
    "binary-event": faulty_api.stream(faulty_api.GARBAGE),
    "event-of-no-type": faulty_api.stream(b"{}\n", EXPIRED),
    "half-an-event": faulty_api.answer('{"type":"ADDED","object":{"kind":"VirtualMachineIn'),
    "410": faulty_api.status(410),
    "429": faulty_api.status(429),
    "500": faulty_api.status(500),
    "garbage": faulty_api.garbage,
    "reset": faulty_api.reset,
    "nothing": faulty_api.answer(""),
}


@pytest.mark.parametrize("fault", WATCH_FAULTS)
def test_watch_fails(stage, fault):
    """spec:01#101"""
    proxy = stage.behind_proxy()
    stage.run_vm()
    level = harness.Level(stage.handler)
    rule = proxy.when(WATCH_FAULTS[fault], "GET", WATCH, times=1)
    proxy.cut()
    harness.wait_for(lambda: rule.hits == 1, "the fault")
    _, launcher = stage.run_vm(vmi=harness.numbered(2))
    level.check(vms=1)
    assert stage.api.phase() == "Running" and launcher.popen.poll() is None


LIST_FAULTS = {
    "410": faulty_api.status(410),
    "500": faulty_api.status(500),
    "empty": faulty_api.answer(""),
    "no-list": faulty_api.answer({}),
    "another-kind": faulty_api.answer({"kind": "Status", "status": "Success"}),
    "garbage": faulty_api.garbage,
    "half": faulty_api.half,
}


@pytest.mark.parametrize("fault", LIST_FAULTS)
def test_list_fails_at_the_start(stage, fault):
    """A broken list is no empty one: VMs that run are not taken for gone."""
    proxy = stage.behind_proxy()
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    stage.handler.stop()
    rule = proxy.when(LIST_FAULTS[fault], "GET", LIST, times=1)
    level.look_at(stage.start_handler(master=faulty_api.URL))
    assert rule.hits == 1
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert launcher.count("ShutdownVirtualMachine") == launcher.count("DeleteVirtualMachine") == 0
    level.check()


@pytest.mark.parametrize("fault", ("no-list", "half"))
def test_list_fails_later(stage, fault):
    proxy = stage.behind_proxy()
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    rule = proxy.when(LIST_FAULTS[fault], "GET", LIST, times=1)
    proxy.when(faulty_api.stream(BROKEN), "GET", WATCH, times=1)
    proxy.cut()
    harness.wait_for(lambda: rule.hits == 1, "the list to be asked for again")
    stage.run_vm(vmi=harness.numbered(2))
    assert launcher.count("ShutdownVirtualMachine") == launcher.count("DeleteVirtualMachine") == 0
    level.check(vms=1)


LOOKUP_FAULTS = (
    faulty_api.status(404), faulty_api.status(403), faulty_api.status(500), faulty_api.garbage, faulty_api.half,
    faulty_api.answer(""), faulty_api.answer("null"), faulty_api.answer({}), faulty_api.answer({"kind": "Status", "status": "Success"}),
    faulty_api.answer({"kind": "VirtualMachineInstanceList", "items": {}}),
)


def test_doubt_whether_a_vm_is_gone_never_ends_it(stage):
    """01 trap 1: it left the watch; whether it exists, nobody can say just now."""
    proxy = stage.behind_proxy()
    _, launcher = stage.run_vm()
    rules = [proxy.when(fault, "GET", LOOKUP, times=1) for fault in LOOKUP_FAULTS]
    stage.api.patch_vmi({"metadata": {"labels": {"kubevirt.io/nodeName": None}}})
    harness.wait_for(lambda: all(rule.hits for rule in rules), "the agent to have asked in vain")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert launcher.count("ShutdownVirtualMachine") == launcher.count("KillVirtualMachine") == launcher.count("DeleteVirtualMachine") == 0


def test_away_at_the_start(stage):
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    stage.handler.stop()
    proxy.close()
    stage.start_handler(wait=False, master=faulty_api.URL)
    harness.wait_for(lambda: "STARTING informer vmiInformer-sources" in stage.handler.text(), "the start")
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    time.sleep(1)  # some refused connections
    proxy.open()
    stage.api.wait_phase("Running")
    assert launcher.count("SyncVirtualMachine") >= 1
    level.look_at(stage.handler)
    level.check(vms=1)


def test_flapping(stage):
    """It comes and goes while VMs start, change and end."""
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    vmis = [harness.numbered(index) for index in range(1, 4)]
    launchers = [stage.start_launcher(vmi) for vmi in vmis]
    for vmi in vmis:
        stage.create(vmi)
    for _ in range(8):
        proxy.close()
        time.sleep(0.15)
        proxy.open()
        time.sleep(0.15)
    for vmi, launcher in zip(vmis, launchers):
        stage.api.wait_phase("Running", vmi["metadata"]["name"])
        launcher.tell("emit MODIFIED Shutoff Shutdown")
        proxy.cut()
    for vmi in vmis:
        stage.api.wait_phase("Succeeded", vmi["metadata"]["name"])
    harness.wait_for(lambda: stage.records() == set(), "the ghost records to go")
    level.check()


def test_slow(stage):
    """Ten kB a second: late, and right."""
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    proxy.when(faulty_api.slow)
    proxy.cut()
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    proxy.heal()
    level.check(vms=1)


def test_hanging_write_holds_up_nobody_else(stage):
    """FR-C01: the answer never comes; when the connection ends at last, the write is made again."""
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    stuck = proxy.when(faulty_api.hang, "PUT", "/virtualmachineinstances/vm1$", times=1)
    first = harness.numbered(1)
    stage.start_launcher(first)
    stage.create(first)
    harness.wait_for(lambda: stuck.hits, "the hanging write")
    stage.run_vm(vmi=harness.numbered(2))
    assert stage.api.phase("vm1") == "Scheduled"
    proxy.heal()
    stage.api.wait_phase("Running", "vm1")
    level.check(vms=2)


def test_hanging_events_hold_up_nobody(stage):
    """01 trap 35: events may be late or lost, VMs are not."""
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    proxy.when(faulty_api.hang, "POST", "/events")
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
    proxy.heal()
    harness.wait_for(lambda: stage.api.event_messages("Created"), "the events")
    level.check()


def test_conflict_storm(stage):
    """Fifty conflicts in a row: spaced by the back-off, never an event, and the last write holds."""
    proxy = stage.behind_proxy()
    level = harness.Level(stage.handler)
    rule = proxy.when(faulty_api.status(409), "PUT", VMI)
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    began = time.monotonic()
    harness.wait_for(lambda: rule.hits >= 9, "nine conflicts")
    assert time.monotonic() - began > 0.3  # 5 ms, doubled each time; a domain event may come in between
    assert launcher.count("SyncVirtualMachine") <= rule.hits + 1
    proxy.heal()
    stage.api.wait_phase("Running")
    assert stage.api.event_messages("SyncFailed") == []
    level.check(vms=1)


def test_refused_farewell(stage):
    """SIGTERM: the node cannot be marked; the agent ends well all the same."""
    proxy = stage.behind_proxy()
    stage.run_vm()
    proxy.when(faulty_api.hang, "PATCH", "/nodes/")
    assert stage.handler.stop(deadline=15) == 0
