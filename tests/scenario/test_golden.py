# SPDX-License-Identifier: Apache-2.0
"""The recorded scenarios of the Go agent v1.9.0 : same API writes, RPC order, files, pod network."""
import contextlib
import signal
import time

import golden
import harness
import pytest

PLAIN = "vmi-plain.json"
MASQUERADE = "vmi-masquerade.json"

pytestmark = pytest.mark.skipif(not harness.GOLDEN.is_dir(), reason="the golden traces (../shared/golden) are not here")


def settle(stage, seconds=1.0):
    """Until the agent has not written or sent anything for a while."""
    def seen():
        return len(stage.api.writes()), [len(launcher.rpcs()) for launcher in stage.launchers]

    last, since = seen(), time.monotonic()

    def quiet():
        nonlocal last, since
        if (now := seen()) != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    harness.wait_for(quiet, "the agent to be quiet")


def wait_same(compare):
    """What comes late on a slow machine may come; what is too much stays, and is told."""
    found = []

    def same():
        nonlocal found
        found = compare()
        return not found

    with contextlib.suppress(AssertionError):
        harness.wait_for(same, "what the recording has", 15)
    assert not found, "\n".join(found)


def check(stage, name, launchers, vmis=("vm",)):
    settle(stage)
    wait_same(lambda: golden.compare(name, golden.trace_of(stage, vmis, launchers)))


def check_with_network(stage, name, launcher):
    check(stage, name, [launcher])
    # The kernel tells of carriers once a second; the original is slow enough not to notice.
    wait_same(lambda: golden.compare_networks(name, [launcher]))


def test_startup(stage):
    stage.start_handler()
    check(stage, "startup", [], vmis=())


def test_start_plain(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(PLAIN)
    check(stage, "start_plain", [launcher])


def test_root_vm(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(PLAIN, runtimeUser=0)
    check(stage, "root_vm", [launcher])


def test_start_masquerade(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(MASQUERADE, network={})
    check_with_network(stage, "start_masquerade", launcher)


def test_start_ports(stage):
    vmi = harness.vmi_document(MASQUERADE)
    vmi["spec"]["domain"]["devices"]["interfaces"][0]["ports"] = [
        {"name": "http", "port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    stage.start_handler()
    _, launcher = stage.run_vm(vmi=vmi, network={})
    check_with_network(stage, "start_ports", launcher)


def test_agent(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(MASQUERADE, network={})
    launcher.tell("agent mute")
    harness.wait_for(lambda: any(c["type"] == "AgentConnected" for c in stage.api.vmi()["status"]["conditions"]), "the guest agent")
    check_with_network(stage, "agent", launcher)


def test_foreign_node(stage):
    stage.start_handler()
    vmi = harness.vmi_document(PLAIN)
    launcher = stage.start_launcher(vmi)
    vmi["metadata"]["labels"]["kubevirt.io/nodeName"] = "node02"
    vmi["status"]["nodeName"] = "node02"
    vmi["status"]["activePods"] = {harness.pod_of(vmi): "node02"}
    stage.create(vmi)
    check(stage, "foreign_node", [launcher])


def test_no_pod(stage):
    stage.start_handler()
    vmi = harness.vmi_document(PLAIN, uid="1111bbbb-0000-4000-8000-000000000099", pod="aaaabbbb-0000-4000-8000-000000000099")
    vmi["metadata"]["labels"]["kubevirt.io/created-by"] = vmi["metadata"]["uid"]
    stage.create(vmi)
    stage.api.wait_phase("Failed")
    check(stage, "no_pod", [])


def test_graceful_delete(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(PLAIN)
    settle(stage)
    stage.api.request("DELETE", f"{harness.VMIS}/vm")
    stage.api.wait_phase("Succeeded")
    check(stage, "graceful_delete", [launcher])


def test_guest_shutdown(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(PLAIN)
    settle(stage)
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
    check(stage, "guest_shutdown", [launcher])


def test_pause_unpause(stage):
    def is_paused():
        conditions = stage.api.vmi()["status"].get("conditions", [])
        return any(c["type"] == "Paused" and c["status"] == "True" for c in conditions)

    stage.start_handler()
    _, launcher = stage.run_vm(PLAIN)
    settle(stage)
    launcher.tell("emit MODIFIED Paused User")
    harness.wait_for(is_paused, "the Paused condition")
    settle(stage)
    launcher.tell("emit MODIFIED Running Unpaused")
    harness.wait_for(lambda: not is_paused(), "the Paused condition to go")
    check(stage, "pause_unpause", [launcher])


def test_handler_restart(stage):
    stage.start_handler()
    _, launcher = stage.run_vm(PLAIN)
    settle(stage)
    assert stage.handler.stop() == 0
    stage.start_handler()
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") >= 3, "the VM to be synced again")
    check(stage, "handler_restart", [launcher])
