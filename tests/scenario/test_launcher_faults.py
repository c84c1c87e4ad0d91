# SPDX-License-Identifier: Apache-2.0
"""Launchers that say garbage, too much, or stop in the middle of a word."""
import concurrent.futures
import json
import signal

import harness
import pytest

# While the VM starts: what stands in the socket's place, and then gets out of the way.
AT_CONNECT = ("close", "cut 5", "cut 40", "cut 70", "cut 110", "garbage 0", "garbage 30", "garbage 60", "flood")


@pytest.mark.parametrize("mode", AT_CONNECT)
def test_spoiled_connection_at_the_start(stage, mode):
    """Said in an event, tried again; nobody else waits, nothing is left behind."""
    stage.start_handler()
    stage.run_vm(vmi=harness.numbered(9))
    level = harness.Level(stage.handler)
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    relay = launcher.spoil(*mode.split())
    stage.create(vmi)
    harness.wait_for(lambda: any("SyncFailed" == e["reason"] for e in stage.api.events()), "the failure to be shown")
    stage.run_vm(vmi=harness.numbered(2))
    relay.tell("pass")
    stage.api.wait_phase("Running")
    assert launcher.count("KillVirtualMachine") == launcher.count("DeleteVirtualMachine") == 0
    level.check(vms=2)
    relay.stop(signal.SIGKILL)


def said(stage):
    return [line.get("msg") for line in stage.handler.lines()]


def socket_of(stage):
    """Of the only VM, as its ghost record has it."""
    record, = (harness.PRIVATE / "ghost-records").iterdir()
    return json.loads(record.read_text())["socketFile"]


@pytest.mark.parametrize("mode, what", [("silence", "connect to"), ("cut 150", "list domains on")])
def test_list_without_an_answer(stage, mode, what):
    """01 §11.1 rows 3 and 4: what is said of a launcher that does not answer, or not to the end, when the agent starts."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    text = f"failed to {what} cmd client socket {socket_of(stage)}, preserving domain with Unknown status"
    stage.handler.stop()
    relay = launcher.spoil(*mode.split())
    stage.start_handler()
    harness.wait_for(lambda: text in said(stage), "the line")
    relay.tell("pass")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    relay.stop(signal.SIGKILL)


def test_connection_that_breaks_in_mid_answer(stage):
    """01 §14: the connection is made again; the VM is not touched, its state arrives."""
    stage.start_handler("--domain-resync-period-seconds", "1")
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    relay = launcher.spoil("pass")
    stage.create(vmi)
    stage.api.wait_phase("Running")
    level = harness.Level(stage.handler)
    no_answer = f"unable to retrieve domain at socket {socket_of(stage)} during resync"
    no_launcher = "failed to connect to cmd client socket during resync"
    for mode, text in (("cut 150", no_answer), ("garbage 150", no_answer), ("close", no_launcher), ("silence", no_launcher)):
        relay.tell(mode)
        before = said(stage).count(text)
        harness.wait_for(lambda: said(stage).count(text) > before, f"a resync under {mode}")
    assert stage.api.phase() == "Running"
    relay.tell("pass")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    level.check()
    relay.stop(signal.SIGKILL)


def test_five_megabytes(stage):
    """More than a message may have: neither as a report nor as an answer is it taken, and it is not kept."""
    stage.start_handler("--domain-resync-period-seconds", "1")
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    launcher.tell(f"pad {5 << 20}")
    launcher.tell("emit MODIFIED Paused User")
    harness.wait_for(lambda: "report not taken" in launcher.text(), "the refusal of the report")
    harness.wait_for(lambda: "unable to retrieve domain at socket" in stage.handler.text(), "the refusal of the answer")
    assert stage.api.condition("Paused") == {} and stage.api.phase() == "Running"
    launcher.tell("pad 0")
    stage.api.wait_paused(True)  # the next resync
    level.check(slack=6 << 10)


def test_large_domain(stage):
    """Three megabytes are a message."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    level = harness.Level(stage.handler)
    launcher.tell(f"pad {3 << 20}")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert stage.api.phase() == "Running"
    launcher.tell("pad 0")
    launcher.tell("emit MODIFIED Running Unpaused")
    stage.api.wait_paused(False)
    level.check()


@pytest.mark.parametrize("method", ("Info", "SyncVirtualMachine", "GetDomain"))
def test_launcher_that_dies_in_a_call(stage, method):
    """It leaves its socket behind; the VM fails when that is certain."""
    stage.start_handler("--watchdog-timeout", "1s", "--domain-resync-period-seconds", "1")
    level = harness.Level(stage.handler)
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    if method != "GetDomain":
        launcher.tell(f"die {method}")
    stage.create(vmi)
    if method == "GetDomain":
        stage.api.wait_phase("Running")
        launcher.tell(f"die {method}")
    launcher.wait()
    if method == "Info":  # never connected: no record, so nobody watches the socket; the pod's end tells
        stage.api.wait_event("SyncFailed", "unable to create virt-launcher client connection: context deadline exceeded")
        launcher.remove_pod()
    stage.api.wait_phase("Failed")
    harness.wait_for(lambda: stage.records() == set(), "the ghost record to go")
    level.check()


def test_many_hanging_launchers_at_the_start(stage):
    """Seventy-two that are stopped hold up nobody: their own keys wait, others start before the third lot of 32 is given up."""
    stage.start_handler()
    vmis = [harness.numbered(index) for index in range(1, 73)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        launchers = list(pool.map(lambda vmi: stage.run_vm(vmi=vmi)[1], vmis))
    stage.handler.stop()
    for launcher in launchers:
        launcher.send(signal.SIGSTOP)
    stage.start_handler("--watchdog-timeout", "3s")
    level = harness.Level(stage.handler)
    vmi = harness.numbered(99)
    launcher = stage.start_launcher(vmi)
    stage.create(vmi)
    stage.api.wait_phase("Running", "vm99")
    assert stage.handler.text().count("skipping processing for") < len(vmis)
    harness.wait_for(lambda: stage.handler.text().count("skipping processing for") == len(vmis), "all of them to be unknown")
    seen = [launcher.count("SyncVirtualMachine") for launcher in launchers]
    for launcher in launchers:
        launcher.send(signal.SIGCONT)
    harness.wait_for(lambda: all(l.count("SyncVirtualMachine") > s for l, s in zip(launchers, seen)), "all to be looked after again")
    assert all(stage.api.phase(vmi["metadata"]["name"]) == "Running" for vmi in vmis)
    level.check(vms=len(vmis) + 1)


def test_launcher_unreachable_while_its_vmi_is_scheduled(stage):
    """Asked again soon: not only the next resync, minutes away, finds out that there is no domain yet."""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.tell("hang SyncVirtualMachine")
    stage.create(vmi)
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine"), "the first try")
    stage.handler.stop(deadline=15)
    launcher.send(signal.SIGSTOP)
    stage.start_handler("--watchdog-timeout", "2s")
    harness.wait_for(lambda: "skipping processing for" in stage.handler.text(), "the domain to be unknown")
    launcher.tell("heal SyncVirtualMachine")
    launcher.send(signal.SIGCONT)
    stage.api.wait_phase("Running")
