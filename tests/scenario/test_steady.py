# SPDX-License-Identifier: Apache-2.0
"""VMs to which nothing happens: what the agent asks of their launchers, writes and says about them."""
import collections
import time

import harness

N_VMS = 50
RESYNCS = 5
PATIENCE = 300  # seconds for many VMs together
PERIOD = 2  # seconds between resyncs
QUIET = 10  # seconds without a write after which none is on its way
RESYNC_CALLS = {"Info", "GetDomain", "SyncVirtualMachine"}


def start_all(stage):
    stage.api.lift_rate_limit()
    tail = harness.WriteTail(stage.api)
    vmis = [harness.numbered(index) for index in range(1, N_VMS + 1)]
    for vmi in vmis:
        stage.start_launcher(vmi)
        stage.create(vmi)
    tail.wait_running([vmi["metadata"]["name"] for vmi in vmis], PATIENCE)
    tail.wait_quiet(QUIET, PATIENCE)
    return tail


def calls(stage):
    return [collections.Counter(rpc["method"] for rpc in launcher.rpcs()) for launcher in stage.launchers]


def test_resyncs_of_idle_vms(stage):
    """field:FR-A07 field:FR-A09 field:FR-A10: A resync asks each launcher for its domain, and syncs it; nothing else happens."""
    handler = stage.start_handler("--domain-resync-period-seconds", str(PERIOD))
    tail = start_all(stage)
    since = time.monotonic()
    n_writes, n_lines, before = len(tail.writes), len(handler.lines()), calls(stage)

    def asked():
        return [now - old for now, old in zip(calls(stage), before)]

    harness.wait_for(lambda: min(launcher["GetDomain"] for launcher in asked()) >= RESYNCS, "the resyncs", PATIENCE)
    counts = asked()
    tail.read()
    said = collections.Counter(line["msg"] for line in handler.lines()[n_lines:])
    # the first to be counted may have been said before
    assert all(set(launcher) == RESYNC_CALLS and max(launcher.values()) <= said.total() + 1 for launcher in counts), counts
    assert set(said) == {"resyncing virt-launcher domains"} and said.total() <= (time.monotonic() - since) / PERIOD + 1, said
    assert [write for write in tail.writes[n_writes:] if write["path"] != "/api/v1/nodes/node01"] == []


def test_each_change_is_said_once(stage):
    """The line that says how a VM is comes with each change, and with every pass only when more is asked for."""
    handler = stage.start_handler("--domain-resync-period-seconds", "1")
    _, launcher = stage.run_vm()

    def said(state):
        return handler.text().count(f"VMI is in phase: Running | Domain status: {state}")

    for status, reason in (("Paused", "User"), ("Running", "Unpaused"), ("Paused", "User")):
        launcher.tell(f"emit MODIFIED {status} {reason}")
        stage.api.wait_paused(status == "Paused")
        asked = launcher.count("GetDomain")
        harness.wait_for(lambda: launcher.count("GetDomain") >= asked + 2, "two resyncs")
    assert said("Paused, reason: User") == 2 and said("Running, reason: Unpaused") == 1

    stage.api.say_more(3)
    harness.wait_for(lambda: said("Paused, reason: User") >= 4, "every pass to be said")
