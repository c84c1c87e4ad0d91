# SPDX-License-Identifier: Apache-2.0
"""Container disks as clusters without image volumes have them: containers hold them, the agent mounts them."""

import os
import shutil
import subprocess

import pytest
import yaml

from chandler import EXAMPLES, NEEDS, Chandler, wait
from test_guest_network import shell

pytestmark = NEEDS + [pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")]


@pytest.fixture(scope="module")
def chandler():
    made = Chandler()
    try:
        made.ok("up", "--emulation", "on")
        made.kubectl("patch", "kubevirt", "kubevirt", "--namespace", "kubevirt", "--type", "merge", "--patch",
                     '{"spec":{"configuration":{"developerConfiguration":{"disabledFeatureGates":["ImageVolume"]}}}}')
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def image():
    """A raw disk, as an image that is a plain directory."""
    text = b"from-a-container-disk"
    return text + bytes((1 << 20) - len(text))


def mounts(chandler):
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return [line.split()[4] for line in file if os.path.join(chandler.state, "podrunner", "pods") + "/" in line]


def test_agent_mounts_disk_and_kernel(chandler, image, tmp_path):
    images = os.path.join(chandler.state, "images")
    os.rename(images, images + ".link")  # the guest's image, and one of this test
    os.makedirs(os.path.join(images, "plain", "disk"))
    os.symlink(os.path.join(os.path.realpath(images + ".link"), "chandler"), os.path.join(images, "chandler"))
    with open(os.path.join(images, "plain", "disk", "root.img"), "wb") as file:
        file.write(image)
    with open(os.path.join(EXAMPLES, "tiny.yaml"), encoding="utf-8") as file:
        vm = yaml.safe_load(file)
    vm["spec"]["domain"]["devices"]["disks"] = [{"name": "root", "disk": {"bus": "virtio"}}]
    vm["spec"]["volumes"] = [{"name": "root", "containerDisk": {"image": "plain"}}]
    (tmp_path / "vm.yaml").write_text(yaml.safe_dump(vm))
    chandler.ok("run", str(tmp_path / "vm.yaml"))
    names = {os.path.basename(path) for path in mounts(chandler)}
    assert names == {"disk_0.img", "vmlinuz", "initrd.img"}, mounts(chandler)
    console = shell(chandler, "tiny")
    console.send("echo read-$(head -c 21 /dev/vda)-end\n")
    console.until("read-from-a-container-disk-end")
    console.send("exit\n\x1d")
    console.status()


def test_nothing_stays_mounted(chandler):
    chandler.ok("delete", "tiny")
    wait(lambda: not mounts(chandler), "the mounts go")
    assert not os.listdir(os.path.join(chandler.state, "podrunner", "pods"))
    assert not os.listdir(os.path.join(chandler.state, "podrunner", "crun"))
    chandler.ok("down")
    assert subprocess.run(["findmnt", "--mountpoint", os.path.join(chandler.state, "podrunner", "pods")],
                          stdout=subprocess.DEVNULL, check=False).returncode != 0
