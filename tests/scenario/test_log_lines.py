# SPDX-License-Identifier: Apache-2.0
"""Log lines of v1.9.0 that people look for: in their words, and not with each pass."""
import harness


def count(stage, text):
    return [line.get("msg") for line in stage.handler.lines()].count(text)


def wait_resyncs(launcher, n):
    asked = launcher.count("GetDomain")
    harness.wait_for(lambda: launcher.count("GetDomain") >= asked + n, "the resyncs")


def test_pod_that_is_not_here(stage):
    """02 §6.2 step 1"""
    stage.start_handler("--domain-resync-period-seconds", "1")
    _, launcher = stage.run_vm()
    stage.api.say_more(3)  # what comes first, the change of the VMI or the domain's, is open
    stage.api.patch_vmi({"status": {"activePods": None}})
    launcher.tell("emit MODIFIED Paused User")
    harness.wait_for(lambda: count(stage, "failed to find pod UID for VMI vm") >= 1, "the line")


def test_supported_guest_agent(stage):
    """02 §8.6 step 3"""
    stage.start_handler("--domain-resync-period-seconds", "1")
    _, launcher = stage.run_vm()
    launcher.tell("agent")
    text = "This guest agent is supported"
    harness.wait_for(lambda: stage.api.condition("AgentConnected"), "the agent")
    harness.wait_for(lambda: count(stage, text) >= 1, "the line")
    before = count(stage, text)
    wait_resyncs(launcher, 3)
    assert count(stage, text) == before <= 2  # a write that was refused is made again


def test_vm_without_container_disks(stage):
    """05 §6.7 step 3"""
    stage.start_handler()
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Crashed Unknown")
    stage.api.wait_phase("Failed")
    harness.wait_for(lambda: count(stage, "No container disk mount entries found to unmount") >= 1, "the line")


def test_network_cache_that_cannot_be_deleted(stage):
    """01 §27: with the reason in the line."""
    stage.start_handler()
    vmi, launcher = stage.run_vm()
    directory = harness.PRIVATE / "network-info-cache" / vmi["metadata"]["uid"]
    (directory / "odd/file").mkdir(parents=True)
    launcher.tell("emit MODIFIED Crashed Unknown")
    stage.api.wait_phase("Failed")
    text = f"failed to delete VMI Network cache files: teardown failed, err: remove '{directory}/odd': is a directory"
    harness.wait_for(lambda: count(stage, text) >= 1, "the line")
