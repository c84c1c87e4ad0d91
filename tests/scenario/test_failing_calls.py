# SPDX-License-Identifier: Apache-2.0
"""Each system call of the hands fails once, and once and for all what old kernels lack: the VM is brought up all the same."""
import errno
import pathlib
import shutil
import struct
import subprocess

import harness
import pytest
from test_network import NET, check_bridge, check_dhcp, check_masquerade, document

pytestmark = pytest.mark.skipif(harness.SANITIZED, reason="a sanitizer wants to be loaded before what fails the calls")

LIBRARY = harness.BUILD / "tests/scenario/failing-call.so"
ROW = struct.Struct("<32sQQIIQ")
N_ROWS = 96
# What never fails, or how the hands live: without it they end, and the agent with them.
EXEMPT = {"__errno_location", "_exit", "chdir", "clock_gettime", "close", "epoll_create1", "epoll_wait", "getenv", "geteuid", "getpid",
          "getrlimit64", "mmap64", "poll", "prctl", "recvmsg", "setrlimit64", "signal", "umask"}
EXEMPT |= {"execve", "waitpid"}  # of the labeller, which there is with SELinux only
# Later than Linux 5.10.
NEW = {"peerpidfd": errno.ENOPROTOOPT, "mount_setattr": errno.ENOSYS, "fchmodat2": errno.ENOSYS}


class Calls:
    """The table that failing-call.c shares."""

    def __init__(self, directory):
        self.path = directory / "calls"
        self.path.write_bytes(bytes(ROW.size * N_ROWS))
        # The agent executes the hands that lie beside it, without an environment.
        self.program = pathlib.Path(shutil.copy(harness.BUILD / "src/virt-handler", directory))
        hands = directory / "virt-handler-hands"
        hands.write_text(f'#!/bin/sh\nLD_PRELOAD={LIBRARY} CH_FAILING_CALLS={self.path} exec {harness.BUILD}/src/virt-handler-hands "$@"\n')
        hands.chmod(0o755)

    def rows(self):
        """{name: (index, calls, failed calls)}"""
        data = self.path.read_bytes()
        found = {}
        for i in range(N_ROWS):
            name, n_calls, _, _, _, n_failed = ROW.unpack_from(data, i * ROW.size)
            if name[0]:
                found[name.rstrip(b"\0").decode()] = (i, n_calls, n_failed)
        return found

    def put(self, name, offset, layout, value):
        with open(self.path, "r+b") as file:
            file.seek(self.rows()[name][0] * ROW.size + offset)
            file.write(struct.pack(layout, value))

    def fail(self, name, error, number=None):
        """@number: of the call from now on; None: each one"""
        self.put(name, 48, "<I", error)
        if number is None:
            self.put(name, 52, "<I", 1)
        else:
            self.put(name, 40, "<Q", self.rows()[name][1] + number)

    def heal(self, name):
        self.put(name, 40, "<Q", 0)

    def n_failed(self, name):
        return self.rows()[name][2]

    def made_by(self, act):
        """{name: number of calls} while act() ran"""
        before = self.rows()
        act()
        return {name: n - before[name][1] for name, (_, n, _) in self.rows().items() if n > before[name][1]}


@pytest.fixture
def calls(stage, tmp_path):
    made = Calls(tmp_path)
    stage.start_handler(program=made.program)
    harness.wait_for(lambda: made.rows(), "the library in the hands")
    return made


def check_bridge_and_lease(launcher):
    check_bridge(launcher)
    check_dhcp(launcher)


CHECKS = {"masquerade": check_masquerade, "bridge": check_bridge_and_lease}


class Life:
    """VMs one after the other: up with a network, looked at, gone."""

    def __init__(self, stage, binding):
        self.stage, self.binding, self.n = stage, binding, 0

    def go(self):
        """How it ended: its phase, once it runs or has failed."""
        self.n += 1
        vmi = document(self.binding, index=self.n, migrationTransport="Unix")
        name = vmi["metadata"]["name"]
        launcher = self.stage.start_launcher(vmi, NET)
        self.stage.create(vmi)
        phase = harness.wait_for(lambda: self.stage.api.phase(name) in ("Running", "Failed") and self.stage.api.phase(name), f"{name} to run")
        if phase == "Running":
            CHECKS[self.binding](launcher)
            self.stage.api.delete_vmi(name)
            self.stage.api.wait_phase("Succeeded", name)
        self.stage.api.request("DELETE", f"{harness.VMIS}/{name}")
        launcher.stop()
        launcher.remove_pod()
        self.stage.launchers.remove(launcher)
        return phase


def test_every_call_is_known(calls):
    """A system call that the hands begin to use has a row, or a reason."""
    listing = subprocess.run(["nm", "-D", "--undefined-only", harness.BUILD / "src/virt-handler-hands"], check=True, stdout=subprocess.PIPE,
                             text=True).stdout
    used = {line.split()[-1].split("@")[0] for line in listing.splitlines()}
    assert used
    pure = {name for name in used if name.startswith(("_ITM", "__", "g_", "mem", "str", "seccomp_", "capng_", "snprintf"))}
    assert used - pure - EXEMPT - set(calls.rows()) == set()


@pytest.mark.parametrize("binding", CHECKS)
def test_fails_once(stage, calls, binding):
    """Of passing troubles, here the kernel's lack of memory, no VM dies."""
    life = Life(stage, binding)
    life.go()  # what is done only once is done
    made = calls.made_by(life.go)
    level = harness.Level(stage.handler)
    failed, missed = [], 0
    for name, n_calls in sorted(made.items()):
        for number in range(1, n_calls + 1, 8 if name == "reply" else 1):  # an answer that is lost is waited for, for 8 s
            before = calls.n_failed(name)
            calls.fail(name, errno.ENOMEM, number)
            if life.go() != "Running":
                failed.append(f"{name} {number}")
            calls.heal(name)
            missed += calls.n_failed(name) == before
    assert failed == []
    assert missed <= sum(made.values()) // 4, "most calls were made in other lives too"
    level.check(slack=4096)  # of hundreds of VMs their events are remembered for a while; leaks are test_load's business


@pytest.mark.parametrize("binding", CHECKS)
def test_old_kernel(stage, calls, binding):
    """Linux 5.10 has nothing of what came later."""
    for name, error in NEW.items():
        calls.fail(name, error)
    assert Life(stage, binding).go() == "Running"
    assert calls.n_failed("peerpidfd") > 0
