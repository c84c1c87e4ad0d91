# SPDX-License-Identifier: Apache-2.0
"""A guest that is told metrics of its node and itself: on a disk, and on a channel."""

import os

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, Chandler, wait
from test_guest_network import shell

pytestmark = NEEDS


@pytest.fixture
def chandler(tmp_path):
    made = Chandler()
    with open(os.path.join(EXAMPLES, "tiny.yaml"), encoding="utf-8") as file:
        vm = yaml.safe_load(file)
    devices = vm["spec"]["domain"]["devices"]
    devices["downwardMetrics"] = {}
    devices["disks"] = [{"name": "metrics", "disk": {"bus": "virtio"}}]
    vm["spec"]["volumes"] = [{"name": "metrics", "downwardMetrics": {}}]
    (tmp_path / "vm.yaml").write_text(yaml.safe_dump(vm))
    try:
        made.ok("up", "--emulation", "on")
        made.ok("run", str(tmp_path / "vm.yaml"))
        yield made
    finally:
        made.remove()


def test_disk_and_channel(chandler):
    console = shell(chandler, "tiny")
    console.send("until blockdev --flushbufs /dev/vda; head -c 4096 /dev/vda | grep -q HostName; do sleep 1; done; "
                 "echo disk-$(head -c 4 /dev/vda)-end\n")
    console.until("disk-mvbd-end")
    console.send("echo x 2>/dev/null >/dev/vda; echo written-$?\n")
    console.until("written-1")  # read-only
    console.send("exec 3<>/dev/virtio-ports/org.github.vhostmd.1; printf 'GET /metrics/XML\\n\\n' >&3; "
                 "grep -m1 -o 'TotalCPU[T]ime' <&3 | sed s/^/channel-/\n")
    console.until("channel-TotalCPUTime")
    console.send("exit\n\x1d")
    console.status()
    chandler.ok("delete", "tiny")
    wait(lambda: not os.listdir(os.path.join(chandler.state, "podrunner", "pods")), "the pod's directories go")
