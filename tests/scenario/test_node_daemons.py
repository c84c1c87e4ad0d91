# SPDX-License-Identifier: Apache-2.0
"""What the agent does for its node whatever VMs there are: multipath's socket, pr-helper's, what TDX has; and which hypervisor a VM gets."""
import os
import pathlib
import signal
import socket
import stat
import subprocess

import harness
import pytest
from test_devices import attach, document, forbid_emulation, in_pod, make_devices, owner

SOURCE = pathlib.Path("/run/multipathd.socket")
DIRECTORY = harness.SHARE / "daemons/pr"
TARGET = DIRECTORY / "multipathd.socket"
HELPER = DIRECTORY / "pr-helper.sock"
CGROUP = pathlib.Path("/sys/fs/cgroup")


def listen(path):
    """A daemon's socket, that lasts as long as what is returned."""
    daemon = socket.socket(socket.AF_UNIX)
    daemon.bind(str(path))
    daemon.listen()
    return daemon


def mounts(pid="self"):
    """How often something is mounted at the target, as a process sees it."""
    lines = pathlib.Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    return sum(line.split()[4] == str(TARGET.resolve()) for line in lines)


def is_mounted():
    return TARGET.exists() and SOURCE.exists() and os.path.samestat(TARGET.stat(), SOURCE.stat()) and mounts() == 1


def is_empty():
    return TARGET.is_file() and TARGET.stat().st_size == 0 and mounts() == 0


def answers(daemon):
    """Whether who connects at the target reaches this daemon."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(TARGET))
        peer, _ = daemon.accept()
        with peer:
            peer.sendall(b"paths")
            return client.recv(16) == b"paths"


@pytest.mark.parametrize("kind,n_told", [("private", 1), ("shared", 0)])
def test_pods_that_cannot_see_mounts(stage, kind, n_told):
    """field:FR-E05: where the node's mounts are private, that is told once, at the start."""
    pods = stage.directory / "kubelet/pods"
    pods.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", f"--make-{kind}", "kubelet", pods], check=True)
    handler = stage.start_handler("--kubelet-pods-dir", pods)
    assert handler.text().count(f"the node's mount at {pods}, which has {pods}, is not shared") == n_told
    subprocess.run(["umount", "-l", pods], check=True)


@pytest.fixture
def node(stage):
    """The stage, without what a test leaves at the sockets."""
    yield stage
    while mounts():
        subprocess.run(["umount", "-l", TARGET], check=True)
    SOURCE.unlink(missing_ok=True)


def configure(stage, configuration):
    """What the agent says when it has taken it."""
    now = stage.api.request("PATCH", harness.KUBEVIRT, {"spec": {"configuration": configuration}}, "application/merge-patch+json")
    return f"Updating cluster config from KubeVirt to resource version '{now['metadata']['resourceVersion']}'"


def test_multipath_socket_comes_and_goes(node):
    """spec:05-16.8#156 field:FR-M10"""
    node.start_handler()
    harness.wait_for(is_empty, "the socket's place to be made")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (DIRECTORY.parent, DIRECTORY, TARGET)] == [0o755, 0o755, 0o644]
    with listen(SOURCE) as daemon:
        harness.wait_for(is_mounted, "the socket to be mounted")
        assert answers(daemon)
        other = pathlib.Path("/run/other.socket")
        listen(other).close()
        other.unlink()
        SOURCE.unlink()
    harness.wait_for(is_empty, "the socket to be unmounted")
    with listen(SOURCE) as daemon:
        harness.wait_for(is_mounted, "the new socket to be mounted")
        assert answers(daemon)
    beside = SOURCE.with_suffix(".new")
    with listen(beside) as daemon:
        beside.rename(SOURCE)  # there is one at any time
        harness.wait_for(is_mounted, "the other socket to be mounted")
        assert answers(daemon)
    assert node.handler.stop() == 0
    assert is_empty()


def test_other_files_change_nothing(node):
    """spec:05-16.8#156 spec:05-16.8#157: of a socket that is there at the start, and of what happens beside it."""
    with listen(SOURCE) as daemon:
        node.start_handler()
        harness.wait_for(is_mounted, "the socket to be mounted")
        for i in range(3):
            other = pathlib.Path(f"/run/other{i}.socket")
            listen(other).close()
            other.unlink()
        harness.wait_for(lambda: "multipath socket is mounted" in node.handler.text(), "the log line")
        with listen(other):  # what comes after it is seen after it
            other.rename(SOURCE)
            harness.wait_for(is_mounted, "the other socket to be mounted")
        assert daemon.fileno() >= 0
        assert node.handler.text().count("multipath socket is ") == 1  # never unmounted in between
        assert "Error during monitoring multipath socket" not in node.handler.text()


def test_agent_that_died_is_followed(node):
    """field:FR-M09: What it left mounted is neither doubled nor kept when it is another daemon's."""
    handler = node.start_handler()
    with listen(SOURCE):
        harness.wait_for(is_mounted, "the socket to be mounted")
        handler.popen.send_signal(signal.SIGKILL)
        handler.popen.wait(harness.DEADLINE)
        assert is_mounted()
        heir = node.start_handler()
        harness.wait_for(lambda: "multipath socket is mounted" in heir.text(), "the next agent")
        assert is_mounted()
        heir.popen.send_signal(signal.SIGKILL)
        heir.popen.wait(harness.DEADLINE)
        SOURCE.unlink()
    with listen(SOURCE):
        assert not is_mounted()
        last = node.start_handler()
        harness.wait_for(is_mounted, "the new daemon's socket to be mounted")
        assert last.stop() == 0
        assert is_empty()


def test_mount_is_the_nodes(node):
    """As in a container: the agent's mounts are its own, the socket is mounted in the node's."""
    harness.SHARE.mkdir()
    handler = node.start_handler(prefix=("unshare", "--mount", "--propagation", "private", "--"))
    with listen(SOURCE):
        harness.wait_for(is_mounted, "the socket to be mounted")
        assert mounts(handler.popen.pid) == 0


def test_share_directory_of_the_agents_own(node):
    """As in local mode: nobody else would see the mount, and the node's directories are not touched."""
    harness.SHARE.mkdir()
    script = f'mount -t tmpfs share {harness.SHARE} && exec "$@"'
    with listen(SOURCE):
        handler = node.start_handler(prefix=("unshare", "--mount", "--", "sh", "-c", script, "sh"))
        harness.wait_for(lambda: "ignoring multipath's socket: the share directory is not the node's" in handler.text(), "the log line")
    assert list(harness.SHARE.iterdir()) == []


def test_place_that_a_pod_has_spoilt(node):
    """A launcher has the directory too. A link is not followed, and the socket is mounted when its place is free again."""
    victim = pathlib.Path("/run/victim")
    victim.write_text("the node's")
    DIRECTORY.mkdir(parents=True)
    TARGET.symlink_to(victim)
    with listen(SOURCE):
        node.start_handler()
        harness.wait_for(is_mounted, "the socket to be mounted")
        assert victim.read_text() == "the node's"
        assert node.handler.stop() == 0
        TARGET.unlink()
        (TARGET / "directory").mkdir(parents=True)
        handler = node.start_handler()
        harness.wait_for(lambda: "Error during monitoring multipath socket" in handler.text(), "the error")
        (TARGET / "directory").rmdir()
        harness.wait_for(is_mounted, "the socket to be mounted")


def test_helper_socket_is_the_vms_users(node):
    """Its directory too, and each new one; without the configuration nothing is given away."""
    node.start_handler()
    harness.wait_for(is_empty, "the directory")
    listen(HELPER).close()
    configure(node, {"persistentReservationConfiguration": {"enabled": True}})
    harness.wait_for(lambda: owner(HELPER) == (107, 107), "the socket's owner")
    assert owner(DIRECTORY) == (107, 107)
    HELPER.unlink()
    listen(HELPER).close()
    harness.wait_for(lambda: owner(HELPER) == (107, 107), "the new socket's owner")
    said = configure(node, {"persistentReservationConfiguration": {"enabled": False}})
    harness.wait_for(lambda: said in node.handler.text(), "the configuration to be taken")
    HELPER.unlink()
    listen(HELPER).close()
    os.chown(DIRECTORY, 0, 0)
    said = configure(node, {"developerConfiguration": {"logVerbosity": {"virtHandler": 3}}})
    harness.wait_for(lambda: said in node.handler.text(), "the configuration to be taken")
    assert (owner(HELPER), owner(DIRECTORY)) == ((0, 0), (0, 0))


def test_helper_socket_comes_later(node):
    configure(node, {"persistentReservationConfiguration": {"enabled": True}})
    handler = node.start_handler()
    harness.wait_for(lambda: "error opening the socket /var/run/kubevirt/daemons/pr/pr-helper.sock: no such file or directory"
                     in handler.text(), "the reason")
    assert owner(DIRECTORY) == (107, 107)
    listen(HELPER).close()
    harness.wait_for(lambda: owner(HELPER) == (107, 107), "the socket's owner")


@pytest.fixture
def capacity():
    """A root cgroup of v2's that tells of miscellaneous resources; or of none."""
    subprocess.run(["mount", "-t", "tmpfs", "cgroup", CGROUP], check=True)
    yield CGROUP / "misc.capacity"
    subprocess.run(["umount", "-l", CGROUP], check=True)


@pytest.mark.parametrize("text,told", [
    (None, "failed to get TDX capacity from misc.capacity: "),
    ("sev 5\n", "failed to get TDX capacity from misc.capacity: key tdx not found in misc.capacity"),
    ("tdx\n", "failed to get TDX capacity from misc.capacity: key tdx not found in misc.capacity"),
    ("tdx abc\n", "failed to get TDX capacity from misc.capacity: 'abc' is no number"),
    ("tdx 0\n", "an invalid device capacity of 0 was report for tdx"),
    ("tdx 10\nsev 5\n", "the device plugin for 10 guests at a time is not part of this agent yet"),
])
def test_tdx(stage, capacity, text, told):
    """spec:05-16.5#126"""
    if text is not None:
        capacity.write_text(text)
    handler = stage.start_handler()
    assert "TDX" not in handler.text()
    configure(stage, {"developerConfiguration": {"featureGates": ["WorkloadEncryptionTDX"]}})
    harness.wait_for(lambda: told in handler.text(), "the log line")
    assert ("failed to configure the TDX-QGS device plugin" in handler.text()) == ("10" not in told)


@pytest.mark.parametrize("hypervisor", ["kvm", "unheard-of"])
def test_hypervisor_is_kvm(stage, hypervisor):
    """spec:05-16.9#181: whatever the name, but for the one other that is known."""
    forbid_emulation(stage)
    configure(stage, {"hypervisors": [{"name": hypervisor}], "developerConfiguration": {"featureGates": ["ConfigurableHypervisor"]}})
    stage.start_handler()
    vmi = document()
    attach(vmi)
    launcher = stage.start_launcher(vmi, network={})
    make_devices(launcher, "kvm", "net/tun", "vhost-net")
    stage.create(vmi)
    stage.api.wait_phase("Running")
    assert owner(launcher.root / "dev/kvm") == (107, 107)


def test_hypervisor_is_another(stage):
    """spec:05-16.9#181: the one name that means something else."""
    forbid_emulation(stage)
    configure(stage, {"hypervisors": [{"name": "hyperv-direct"}], "developerConfiguration": {"featureGates": ["ConfigurableHypervisor"]}})
    stage.start_handler()
    vmi = document()
    launcher = stage.start_launcher(vmi)
    make_devices(launcher, "kvm", "net/tun", "vhost-net")
    in_pod(launcher, "rm", "-f", "/dev/mshv")
    stage.create(vmi)
    stage.api.wait_event("SyncFailed", "failed to set up file ownership for /dev/mshv: failed opening /dev/mshv: no such file or directory")
    assert owner(launcher.root / "dev/kvm") == (0, 0)
