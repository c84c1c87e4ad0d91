# SPDX-License-Identifier: Apache-2.0
"""What is done to chandler-launcher on purpose: hostile images, names and guests, dead and silent neighbours."""

import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from launcher_alone import (LAUNCHER, PATIENCE, QEMU_USER, UID, Pod, needs_guest, needs_machine, pod, put_images, read_console, start,
                            type_until, vmi)

pytestmark = needs_machine
__all__ = ["pod"]  # the fixture


def make_directory(path):
    os.mkdir(path, 0o755)


def make_fifo(path):
    os.mkfifo(path)
    os.chmod(path, 0o666)


def make_backing_file(path):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-u", "-b", "/etc/passwd", "-F", "raw", path, "1M"], check=True)


def make_data_file(path):
    """The guest would read a file of the launcher's."""
    name = "/tmp/r4-data"  # as long as /etc/passwd is, plus one
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", f"data_file={name}", path, "1M"], check=True)
    os.unlink(name)
    with open(path, "r+b") as image:
        content = image.read().replace(name.encode(), b"//etc/passwd")
        image.seek(0)
        image.write(content)


@pytest.mark.parametrize("make, text", [
    (make_directory, "is not there, or no file"),
    (make_fifo, "is not there, or no file"),
    (make_backing_file, "it has a backing file or a data file"),
    (make_data_file, "it has a backing file or a data file"),
])
def test_hostile_image_is_refused(pod, make, text):
    disk = pod.run("kubevirt/container-disks/disk_0.img")
    make(disk)
    if os.path.isfile(disk):
        os.chmod(disk, 0o444)
    answer = pod.act("SyncVirtualMachine", vmi(firmware={}))
    assert not answer.success and text in answer.message, answer
    assert pod.domain() is None


@pytest.mark.parametrize("name", ["..", "../../etc/x", "a/b", "x" * 300, ""])
def test_volume_name_cannot_leave_its_directory(pod, name):
    manifest = vmi(firmware={}, devices={"disks": [{"name": name, "disk": {"bus": "virtio"}}]})
    manifest["spec"]["volumes"] = [{"name": name, "emptyDisk": {"capacity": "1Mi"}}]
    answer = pod.act("SyncVirtualMachine", manifest)
    assert not answer.success and "is not valid" in answer.message, answer


def test_another_vm_is_not_defined(pod):
    manifest = vmi(firmware={}, devices={})
    manifest["metadata"]["name"] = "other"
    answer = pod.act("SyncVirtualMachine", manifest)
    assert not answer.success and "this launcher runs the domain default_vm, not default_other" in answer.message, answer
    assert pod.notify.events == []


@needs_guest
def test_hostile_text_stays_text(pod):
    text = """a='"]]></cmdline><x/>&lt; $(reboot) `id`"""
    manifest = vmi()
    manifest["spec"]["domain"]["firmware"]["kernelBoot"]["kernelArgs"] = "console=ttyS0 panic=-1 shell " + text
    manifest["spec"]["volumes"][1]["cloudInitNoCloud"]["userData"] = text
    start(pod, manifest)
    assert pod.domain()["Spec"]["OS"]["KernelArgs"].endswith(text)


def test_full_disk_is_said_and_gets_over_it(pod):
    where = "/run/kubevirt-ephemeral-disks"
    enter = ["nsenter", "-m", "-t", str(pod.launcher_pid())]
    subprocess.run([*enter, "mount", "-t", "tmpfs", "-o", f"size=64k,uid={QEMU_USER},gid={QEMU_USER},mode=755", "t", where],
                   check=True)
    subprocess.run([*enter, "sh", "-c", f"head -c 200000 /dev/zero > {where}/fill"], stderr=subprocess.DEVNULL)
    disk = pod.run("kubevirt/container-disks/disk_0.img")
    subprocess.run(["qemu-img", "create", "-q", "-f", "raw", disk, "16M"], check=True)
    os.chmod(disk, 0o444)
    answer = pod.act("SyncVirtualMachine", vmi(firmware={}))
    assert not answer.success and "no space left on device" in answer.message.lower(), answer
    assert pod.domain() is None
    subprocess.run([*enter, "sh", "-c", f"rm {where}/fill; mount -o remount,size=64m {where}"], check=True)
    answer = pod.act("SyncVirtualMachine", vmi(firmware={}))
    assert answer.success, answer


@needs_guest
def test_a_hundred_syncs_make_one_domain(pod):
    put_images(pod)
    with concurrent.futures.ThreadPoolExecutor(100) as threads:
        answers = list(threads.map(lambda _: pod.act("SyncVirtualMachine", vmi()), range(100)))
    assert all(answer.success for answer in answers)
    pod.notify.wait_state("Running", "Unknown")
    assert [kind for kind, _ in pod.notify.events].count("ADDED") == 1


@needs_guest
@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3])
def test_libvirtd_killed_in_mid_sync(pod, delay):
    put_images(pod)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        first = threads.submit(pod.act, "SyncVirtualMachine", vmi())
        time.sleep(delay)
        os.kill(pod.find("libvirtd"), signal.SIGKILL)
        first.result()  # either way
    deadline = time.monotonic() + PATIENCE
    while not pod.act("SyncVirtualMachine", vmi()).success:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    pod.notify.wait_state("Running", "Unknown")
    assert pod.domain()["Status"]["Status"] == "Running"


def count_sockets(pid):
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    return sum(link.startswith("socket:") for link in links)


@needs_guest
def test_many_callers_reconnect_once(pod):
    """Each connection too many would tell of every event once more."""
    manifest = start(pod)
    n_sockets = count_sockets(pod.launcher_pid())
    for _ in range(2):
        os.kill(pod.find("libvirtd"), signal.SIGKILL)
        deadline = time.monotonic() + 3

        def hammer(ask):
            while time.monotonic() < deadline:
                ask()

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for ask in (pod.domain_or_none, lambda: pod.act("SyncVirtualMachine", manifest),
                        lambda: pod.act("DeleteVirtualMachine", {"metadata": {"name": "x", "namespace": "x", "uid": "x"}}),
                        lambda: pod.act("SoftRebootVirtualMachine", {"metadata": {"name": "x", "namespace": "x", "uid": "x"}})):
                threads.submit(hammer, ask)
    assert pod.domain()["Status"]["Status"] == "Running"
    assert count_sockets(pod.launcher_pid()) == n_sockets


@needs_guest
def test_silent_libvirtd_holds_neither_the_agent_nor_the_end():
    made = Pod(LAUNCHER, UID, "--grace-period-seconds", "0")
    try:
        made.wait_ready()
        start(made)
        qemu = made.find("qemu-system-x86")
        os.kill(made.find("libvirtd"), signal.SIGSTOP)
        with concurrent.futures.ThreadPoolExecutor(1) as threads:
            hangs = threads.submit(made.call, "GetDomain", seconds=2)
            for method in ("Ping", "GetGuestInfo", "GetUsers", "GetFilesystems"):
                made.call(method, seconds=5)
            assert made.call("Info", seconds=5, service="kubevirt.cmd.info.CmdInfo") == b"\x0a\x01\x01"
            assert hangs.exception() is not None
        os.kill(made.monitor_pid(), signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while os.path.exists(f"/proc/{qemu}"):
            assert time.monotonic() < deadline, made.read_log()
            time.sleep(0.1)
    finally:
        made.close()


@needs_guest
def test_qemu_killed_while_paused(pod):
    manifest = start(pod)
    assert pod.act("PauseVirtualMachine", manifest).success
    n_events = len(pod.notify.events)
    os.kill(pod.find("qemu-system-x86"), signal.SIGKILL)
    pod.notify.wait_state("Shutoff", "Crashed", n_events)
    assert pod.act("DeleteVirtualMachine", manifest).success
    assert pod.process.wait(PATIENCE) == 0


@needs_guest
def test_delete_before_kill(pod):
    """libvirt keeps no definition any more; what is undefined twice is libvirt's error."""
    manifest = start(pod)
    assert pod.act("DeleteVirtualMachine", manifest).success
    assert "LibvirtError(Code=55" in pod.act("DeleteVirtualMachine", manifest).message
    assert pod.domain()["Status"]["Status"] == "Running"
    assert pod.act("KillVirtualMachine", manifest).success
    pod.notify.wait_state("NoState", "NonExistent")
    assert pod.process.wait(PATIENCE) == 0


@needs_guest
def test_kill_overtakes_shutdown_and_changed_spec_changes_the_grace_period_only(pod):
    manifest = start(pod)
    manifest["spec"]["domain"]["memory"]["guest"] = "300Mi"
    manifest["spec"]["domain"]["devices"]["disks"].pop()
    manifest["spec"]["terminationGracePeriodSeconds"] = 0
    assert pod.act("SyncVirtualMachine", manifest).success
    spec = pod.domain()["Spec"]
    assert spec["Memory"]["Value"] == 192 * 1024 and len(spec["Devices"]["Disks"]) == 3
    assert spec["Metadata"]["KubeVirt"]["GracePeriod"]["DeletionGracePeriodSeconds"] == 0
    n_events = len(pod.notify.events)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        answers = [threads.submit(pod.act, method, manifest) for method in ("ShutdownVirtualMachine", "KillVirtualMachine")]
    assert answers[1].result().success
    pod.notify.wait_state("Shutoff", "Destroyed", n_events)


@needs_guest
@pytest.mark.parametrize("delay", [0, 0.1, 0.3])
def test_signal_in_mid_sync_leaves_nothing(pod, delay):
    put_images(pod)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        sync = threads.submit(pod.act, "SyncVirtualMachine", vmi())
        time.sleep(delay)
        os.kill(pod.monitor_pid(), signal.SIGTERM)
        sync.exception()  # either way
    if pod.process.poll() is None:  # the guest may have been there already: then the agent ends it
        for method in ("KillVirtualMachine", "DeleteVirtualMachine"):
            try:
                pod.act(method, vmi())
            except Exception:  # noqa: BLE001 gRPC's: the launcher is ending
                break
    assert pod.process.wait(PATIENCE) == 0


@needs_guest
def test_grace_period_of_nothing():
    made = Pod(LAUNCHER, UID, "--grace-period-seconds", "0")
    try:
        made.wait_ready()
        manifest = start(made)
        os.kill(made.monitor_pid(), signal.SIGTERM)
        made.notify.wait_state("Shutoff", "Destroyed")
        assert made.act("DeleteVirtualMachine", manifest).success
        assert made.process.wait(PATIENCE) == 0
    finally:
        made.close()


@needs_guest
@pytest.mark.parametrize("greeting", [None, b"\0\0\4\4\0"])
def test_agent_that_does_not_listen_delays_the_end_only(greeting):
    """The notify pipe takes connections and: never answers, closes in the middle of a frame."""
    made = Pod(LAUNCHER, UID, with_notify=False)
    path = made.run("kubevirt/domain-notify-pipe.sock")
    with socket.socket(socket.AF_UNIX) as pipe, concurrent.futures.ThreadPoolExecutor(1) as threads:
        try:
            pipe.bind(path)
            pipe.listen(64)
            os.chown(path, QEMU_USER, QEMU_USER)
            pipe.settimeout(0.2)
            if greeting is not None:
                threads.submit(greet_and_close, pipe, greeting, made)
            made.wait_ready()
            put_images(made)
            for method in ("SyncVirtualMachine", "KillVirtualMachine", "DeleteVirtualMachine"):
                assert made.act(method, vmi()).success
            assert made.process.wait(PATIENCE) == 0
            log = made.read_log()
            assert "Could not send domain notify event." in log
            assert "Sanitizer" not in log, log
        finally:
            made.close()


def greet_and_close(pipe, greeting, made):
    while made.process.poll() is None:
        try:
            with pipe.accept()[0] as connection:
                connection.sendall(greeting)
        except TimeoutError:
            continue


FAKE_AGENT = r"""
exec 3<>/dev/virtio-ports/org.qemu.guest_agent.0
big() { head -c 600000 /dev/zero | tr '\0' x; }
while :; do
    read -r line <&3 || { sleep 1; continue; }
    case $line in
    *guest-sync*) printf '{"return":%s}\n' "$(echo "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')" ;;
    *guest-info*) printf '{"return":{"version":7,"supported_commands":{}}}\n' ;;
    *guest-get-fsinfo*) printf '{"return":[1,null,{"name":[],"disk":"x"}]}\n' ;;
    *guest-fsfreeze-status*) printf '{"return":"<&"}\n' ;;
    *guest-get-osinfo*) printf '{"return":{"name":"%s","id":"x"}}\n' "$(big)" ;;
    *guest-get-host-name*) printf '{"return":{"host-name":"<&\\"h"}}\n' ;;
    *guest-get-users*) printf '}}}garbage\n' ;;
    *) printf '{"error":{"class":"CommandNotFound","desc":"no"}}\n' ;;
    esac >&3
done
"""


@needs_guest
def test_guest_agent_that_lies():
    made = Pod(LAUNCHER, UID, "--qemu-agent-sys-interval", "2s")
    try:
        made.wait_ready()
        put_images(made)
        with open(made.run("kubevirt/container-disks/disk_0.img"), "r+b") as disk:
            disk.write(FAKE_AGENT.encode().ljust(4096, b"\n"))
        manifest = vmi()
        manifest["spec"]["domain"]["firmware"]["kernelBoot"]["kernelArgs"] += " noagent"
        assert made.act("SyncVirtualMachine", manifest).success
        read_console(made, "/ # ")

        def guest_info():
            return json.loads(made.get("GetGuestInfo").fields[2])

        type_until(made, b"\nsh /dev/vdc\n", lambda: "hostname" in guest_info())
        info = guest_info()
        assert info["hostname"] == '<&"h' and info["os"] == {} and "guestAgentVersion" not in info
        assert made.domain()["Status"]["OSInfo"]["Name"] == ""
        assert made.act("KillVirtualMachine", manifest).success
        made.notify.wait_state("Shutoff", "Destroyed")
    finally:
        made.close()
