# SPDX-License-Identifier: Apache-2.0
"""What ends up in the VMI's status, as the API server has it: the rules themselves are unit tests beside src/handler/reconcile/status*.c."""
import json

import harness

TRACKERS = "/apis/backup.kubevirt.io/v1alpha1/namespaces/default/virtualmachinebackuptrackers"
IMAGE = "run/kubevirt-ephemeral-disks/cloud-init-data/default/vm/noCloud.iso"


def writes_to(stage, part):
    return [write for write in stage.api.writes() if part in write["path"]]


def body_of(write):
    return json.loads(write["body"]) if isinstance(write["body"], str) else write["body"]


def volume_state(stage, name):
    entries = (stage.api.vmi()["status"].get("volumeStatus") or [])
    return next((entry for entry in entries if entry["name"] == name), {})


def make_tracker(stage, name, source="vm", checkpoint=True):
    tracker = {"apiVersion": "backup.kubevirt.io/v1alpha1", "kind": "VirtualMachineBackupTracker",
               "metadata": {"name": name, "namespace": "default"},
               "spec": {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": source}}}
    stage.api.request("POST", TRACKERS, tracker)
    if checkpoint:
        stage.api.request("PATCH", f"{TRACKERS}/{name}/status", {"status": {"latestCheckpoint": {"name": "c"}}},
                          "application/merge-patch+json")


def test_backup_trackers_are_told_before_tracking_is_enabled(stage):
    """spec:02-14.9#19 spec:02-14.9#20 spec:02-14.9#22 spec:02-14.9#23, against an API server: the patch's form, and what comes first."""
    for name, more in (("a", {}), ("b", {}), ("no-checkpoint", {"checkpoint": False}), ("other", {"source": "another"})):
        make_tracker(stage, name, **more)
    stage.start_handler()
    stage.run_vm(changedBlockTracking={"state": "Initializing"})
    harness.wait_for(lambda: stage.api.vmi()["status"]["changedBlockTracking"]["state"] == "Enabled", "tracking to be enabled")
    patches = writes_to(stage, "virtualmachinebackuptrackers")
    assert [patch["path"] for patch in patches] == [f"{TRACKERS}/a/status", f"{TRACKERS}/b/status"]
    assert all(patch["method"] == "PATCH" and body_of(patch) == {"status": {"checkpointRedefinitionRequired": True}} for patch in patches)
    order = [write["path"] for write in stage.api.writes()]
    enabled = next(i for i, write in enumerate(stage.api.writes()) if "/virtualmachineinstances/" in write["path"]
                   and body_of(write)["status"]["changedBlockTracking"]["state"] == "Enabled")
    assert order.index(f"{TRACKERS}/b/status") < enabled
    for name, marked in (("a", True), ("b", True), ("no-checkpoint", None), ("other", None)):
        tracker = stage.api.get(f"{TRACKERS}/{name}")
        assert (tracker.get("status") or {}).get("checkpointRedefinitionRequired") is marked


def test_size_of_a_cloud_init_image(stage):
    """spec:02-14.13#16: the launcher's image as the pod has it; what the agent cannot see is no news."""
    stage.start_handler()
    vmi = harness.vmi_document(volumeStatus=[{"name": "seed", "target": ""}])
    launcher = stage.start_launcher(vmi)
    (launcher.root / IMAGE).parent.mkdir(parents=True)
    (launcher.root / IMAGE).write_bytes(b"x" * 374784)
    stage.create(vmi)
    stage.api.wait_phase("Running")
    harness.wait_for(lambda: volume_state(stage, "seed").get("size") == 374784, "the image's size")
    (launcher.root / IMAGE).unlink()
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert volume_state(stage, "seed")["size"] == 374784


def test_conditions_set_by_hand_survive(stage):
    """spec:02-14.13#35: they come back with null times, in their place, and foreign fields as they were."""
    stage.start_handler()
    by_hand = [{"type": "Foo", "status": "True"}, {"type": "Bar", "status": "Unknown", "reason": "r"}]
    _, launcher = stage.run_vm(conditions=by_hand, qosClass="Burstable", VSOCKCID=7)
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    status = stage.api.vmi()["status"]
    assert status["conditions"][:2] == [dict(c, lastProbeTime=None, lastTransitionTime=None) for c in by_hand]
    assert status["qosClass"] == "Burstable" and status["VSOCKCID"] == 7


def test_secure_boot_without_firmware_fails_the_vm(stage):
    """spec:02-14.13#14"""
    stage.start_handler()
    vmi = harness.vmi_document()
    launcher = stage.start_launcher(vmi)
    launcher.tell("fail SyncVirtualMachine EFI OVMF rom missing")
    stage.create(vmi)
    stage.api.wait_phase("Failed")
    text = "mismatch of Secure Boot setting and bootloaders: "
    assert stage.api.condition("Synchronized")["message"].startswith(text)
    harness.wait_for(lambda: any(m.startswith(text) for m in stage.api.event_messages("SyncFailed")), "the event of the failed sync")


def test_status_is_written_only_when_it_is_news(stage):
    """spec:02-14.3#1, and 02 §2.2: a report that says nothing new is read and not written."""
    stage.start_handler()
    _, launcher = stage.run_vm()
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    launcher.tell("emit MODIFIED Running Unknown")
    stage.api.wait_paused(False)
    n_writes, n_syncs = len(writes_to(stage, "/virtualmachineinstances/")), launcher.count("SyncVirtualMachine")
    launcher.tell("emit MODIFIED Running Unknown")
    harness.wait_for(lambda: launcher.count("SyncVirtualMachine") > n_syncs, "the report to be looked at")
    launcher.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True)
    assert len(writes_to(stage, "/virtualmachineinstances/")) == n_writes + 1
