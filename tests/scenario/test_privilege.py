# SPDX-License-Identifier: Apache-2.0
"""The agent gives its privilege to the hands and keeps none; without the hands it ends."""
import os
import pathlib
import signal

import harness

# CHOWN, DAC_OVERRIDE, FOWNER, NET_ADMIN, SYS_CHROOT, SYS_PTRACE, SYS_ADMIN, SYS_NICE, SYS_RESOURCE, MKNOD
HANDS_KEEP = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 12 | 1 << 18 | 1 << 19 | 1 << 21 | 1 << 23 | 1 << 24 | 1 << 27


def capabilities(status_file):
    lines = (line.split(":", 1) for line in status_file.read_text().splitlines())
    return {key: int(value, 16) for key, value in lines if key.startswith("Cap")}


def hands_of(handler):
    pids = pathlib.Path(f"/proc/{handler.popen.pid}/task/{handler.popen.pid}/children").read_text().split()
    assert len(pids) == 1, pids
    return int(pids[0])


def test_only_the_hands_have_capabilities(stage):
    handler = stage.start_handler()
    stage.run_vm()
    for thread in pathlib.Path(f"/proc/{handler.popen.pid}/task").iterdir():
        assert not any(capabilities(thread / "status").values()), thread
    kept = capabilities(pathlib.Path(f"/proc/{hands_of(handler)}/status"))
    expected = HANDS_KEEP & capabilities(pathlib.Path("/proc/self/status"))["CapPrm"]  # some machines give root fewer
    assert kept == {"CapInh": 0, "CapPrm": expected, "CapEff": expected, "CapBnd": expected, "CapAmb": 0}


def test_agent_ends_with_the_hands_and_finds_its_vm_again(stage):
    handler = stage.start_handler()
    _, launcher = stage.run_vm()
    os.kill(hands_of(handler), signal.SIGKILL)  # as the kernel does that is out of memory
    assert handler.popen.wait(harness.DEADLINE) == 2
    assert "panic: virt-handler-hands ended unexpectedly" in handler.text()
    stage.start_handler()
    launcher.tell("emit MODIFIED Shutoff Shutdown")
    stage.api.wait_phase("Succeeded")
