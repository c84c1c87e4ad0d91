# SPDX-License-Identifier: Apache-2.0
"""Taps on nodes with SELinux, as far as a kernel without shows it: labels are files, all else is real."""
import pathlib
import shutil

import harness
import pytest
from test_network import NET, document, links_of
from test_privilege import capabilities, hands_of

pytestmark = pytest.mark.skipif(harness.SANITIZED, reason="a sanitizer wants to be loaded before what stands for the labels")

LIBRARY = harness.BUILD / "tests/scenario/fake-selinux.so"
OWN = "system_u:system_r:spc_t:s0"
LAUNCHERS = "system_u:system_r:container_t:s0:c1,c22"
LABELLER_KEEPS = 1 << 8 | 1 << 12 | 1 << 19 | 1 << 21  # SETPCAP, NET_ADMIN, SYS_PTRACE, SYS_ADMIN


class Labels:
    def __init__(self, directory):
        self.path = directory / "selinux"
        self.path.mkdir()
        for name, text in (("enforce", "1"), ("own", OWN), ("launcher", LAUNCHERS + "\0"), ("exec", "")):
            (self.path / name).write_text(text)
        # The agent executes the hands that lie beside it, without an environment.
        self.program = pathlib.Path(shutil.copy(harness.BUILD / "src/virt-handler", directory))
        hands = directory / "virt-handler-hands"
        hands.write_text(f'#!/bin/sh\nLD_PRELOAD={LIBRARY} CH_FAKE_SELINUX={self.path} exec {harness.BUILD}/src/virt-handler-hands "$@"\n')
        hands.chmod(0o755)

    def executed_as(self):
        return (self.path / "exec").read_text()

    def executed(self):
        """The command lines of all that the hands executed."""
        file = self.path / "executed"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def labels(tmp_path):
    return Labels(tmp_path)


def children_of(pid):
    return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def run(stage, *, binding="masquerade"):
    return stage.run_vm(vmi=document(binding, migrationTransport="Unix"), network=NET)[1]


def labellers_of(handler):
    """Children of the hands that may do what the labeller may, and nothing else."""
    keeps = LABELLER_KEEPS & capabilities(pathlib.Path("/proc/self/status"))["CapPrm"]
    statuses = {pid: harness.status(pid) for pid in children_of(hands_of(handler))}
    return [pid for pid, status in statuses.items() if f"CapEff:\t{keeps:016x}\n" in status]


def labeller_of(handler):
    """It drops what it need not have while the agent starts."""
    return harness.wait_for(lambda: len(found := labellers_of(handler)) == 1 and found[0], "the labeller")


@pytest.mark.parametrize("enforce", ["1", "0"])
def test_tap_has_the_launchers_label(stage, labels, enforce):
    """spec:05-16.8#154 spec:04-23.8#7"""
    (labels.path / "enforce").write_text(enforce)
    handler = stage.start_handler(program=labels.program)
    assert labeller_of(handler)
    launcher = run(stage)
    assert labels.executed_as() == LAUNCHERS
    assert labels.executed() == ["virt-handler-hands make-tap tap0 1"]  # 1: for 107:107
    tap = links_of(launcher)["tap0"]
    assert tap["master"] == "k6t-eth0" and "UP" in tap["flags"]
    data = tap["linkinfo"]["info_data"]
    assert data["type"] == "tap" and data["persist"] is True


def test_nothing_is_executed_for_an_equal_label(stage, labels):
    (labels.path / "launcher").write_text(OWN)
    stage.start_handler(program=labels.program)
    assert "tap0" in links_of(run(stage))
    assert (labels.executed_as(), labels.executed()) == ("", [])


def test_nothing_is_executed_without_selinux(stage, labels):
    """spec:05-16.8#153 spec:04-23.8#7 field:FR-Q05: there is nobody who could"""
    (labels.path / "enforce").unlink()
    handler = stage.start_handler(program=labels.program)
    assert labellers_of(handler) == []
    assert "tap0" in links_of(run(stage))
    assert (labels.executed_as(), labels.executed()) == ("", [])


def test_helper_that_hangs_is_killed_and_tried_again(stage, labels):
    (labels.path / "hang").touch()
    handler = stage.start_handler(program=labels.program)
    labeller = labeller_of(handler)
    vmi = document("masquerade", migrationTransport="Unix")
    launcher = stage.start_launcher(vmi, NET)
    stage.create(vmi)
    harness.wait_for(lambda: "an operation in pod" in handler.text(), "the deadline of a tap")
    (labels.path / "hang").unlink()
    stage.api.wait_phase("Running", "vm1")
    assert "tap0" in links_of(launcher)
    harness.wait_for(lambda: children_of(labeller) == [], "the labeller's children to end")


def test_label_that_is_refused_fails_the_vm(stage, labels):
    """As any network that cannot be set up: spec:04-23.8#7"""
    (labels.path / "exec").unlink()
    stage.start_handler(program=labels.program)
    vmi = document("masquerade", migrationTransport="Unix")
    stage.start_launcher(vmi, NET)
    stage.create(vmi)
    stage.api.wait_phase("Failed", "vm1")
    text = f"failed to switch selinux context to {LAUNCHERS}. Reason: no such file or directory"
    harness.wait_for(lambda: any(text in event["message"] for event in stage.api.events()), "an event that says why")
