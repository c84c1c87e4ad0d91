# SPDX-License-Identifier: Apache-2.0
"""chandler-launcher with real libvirt, QEMU and a tiny guest; the test is its agent."""

import json
import os
import signal
import socket
import subprocess
import time

import grpc
import pytest

from launcher_alone import (LAUNCHER, PATIENCE, QEMU_USER, UID, Pod, field, needs_guest, needs_machine, pod, put_images, read_console,
                            start, type_until, vmi)

pytestmark = needs_machine
__all__ = ["pod"]  # the fixture


def wait_until(pod, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, pod.read_log()
        time.sleep(0.2)


def guest_info(pod):
    return json.loads(pod.get("GetGuestInfo").fields[2])


def test_answers_before_any_domain(pod):
    assert pod.call("Info", service="kubevirt.cmd.info.CmdInfo") == b"\x0a\x01\x01"
    assert pod.ping()
    assert pod.domain() is None
    assert pod.get("GetQemuVersion").fields[2].decode().startswith("QEMU ")
    assert guest_info(pod) == {"os": {}, "timezone": ", 0", "fsInfo": {"disks": None}}
    assert pod.get("GetUsers").fields[2] == b"[]"
    assert pod.get("GetFilesystems").fields[2] == b"[]"
    stats = pod.get("GetDomainStats")
    assert not stats.success and stats.message == "empty DomainStats"
    assert pod.act("ShutdownVirtualMachine", vmi()).success
    assert pod.act("KillVirtualMachine", vmi()).success
    assert pod.act("DeleteVirtualMachine", vmi()).success
    assert pod.act("PauseVirtualMachine", vmi()).message == "Domain not found."
    with pytest.raises(grpc.RpcError) as failure:
        pod.call("MigrateVirtualMachine", field(1, b""))
    assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert pod.notify.events == []


def test_socket_belongs_to_a_child_of_the_pods_first_process(pod):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(pod.run("kubevirt/sockets/launcher-sock"))
        pid = int.from_bytes(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4],
                             "little")
    assert pid == pod.launcher_pid()
    with open(f"/proc/{pid}/status") as status:
        assert f"PPid:\t{pod.monitor_pid()}\n" in status.read()


def test_garbage_closes_its_connection_only(pod):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(pod.run("kubevirt/sockets/launcher-sock"))
        client.sendall(b"\x00garbage" * 100)
    for request in (b"", field(1, b""), field(1, field(1, "null")), field(1, field(1, "{"))):
        answer = pod.channel.unary_unary("/kubevirt.cmd.v1.Cmd/SyncVirtualMachine")(request, timeout=PATIENCE)
        assert b"No valid vmi object present in command server request" in answer
    assert pod.ping()


@pytest.mark.parametrize("change, text", [
    ({}, "kernelBoot: kernelPath is not there"),
    ({"firmware": {}}, "the image of containerDisk root is not there"),
    ({"firmware": {}, "devices": {"disks": [{"name": "nope"}]}},
     "no matching volume with name nope found"),
    ({"firmware": {"bootloader": {"efi": {}}}, "devices": {}}, "is not supported by this launcher"),
])
def test_what_is_missing_is_said(pod, change, text):
    for _ in range(2):
        answer = pod.act("SyncVirtualMachine", vmi(**change))
        assert not answer.success and text in answer.message, answer
    assert pod.domain() is None


def test_interface_without_a_tap_is_refused(pod):
    manifest = vmi(firmware={}, devices={"interfaces": [{"name": "default", "masquerade": {}}]})
    manifest["spec"]["networks"] = [{"name": "default", "pod": {}}]
    answer = pod.act("SyncVirtualMachine", manifest, field(8, field(1, "default") + field(2, "tap")))
    assert not answer.success and "there is no link tap0 in the pod" in answer.message


def test_image_with_a_backing_file_is_refused(pod):
    disk = pod.run("kubevirt/container-disks/disk_0.img")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-u", "-b", "/etc/passwd", "-F",
                    "raw", disk, "1M"], check=True)
    os.chmod(disk, 0o444)
    answer = pod.act("SyncVirtualMachine", vmi(firmware={}))
    assert not answer.success and "it has a backing file" in answer.message, answer


@needs_guest
def test_a_guests_life(pod):
    manifest = start(pod)
    kind, first = pod.notify.events[0]
    assert kind == "ADDED"
    assert first["Spec"]["Metadata"]["KubeVirt"]["UID"] == UID
    assert {kind for kind, _ in pod.notify.events[1:]} == {"MODIFIED"}
    assert all(d["ObjectMeta"] == {"name": "vm", "namespace": "default", "uid": UID}
               for _, d in pod.notify.events)

    domain = pod.domain()
    assert "uid" not in domain["ObjectMeta"]
    assert domain["Status"]["Status"] == "Running"
    assert domain["Spec"]["Type"] == "qemu"
    disks = {d["Alias"]["Name"]: d["Target"]["Device"] for d in domain["Spec"]["Devices"]["Disks"]}
    assert disks == {"cloudinit": "vda", "scratch": "vdb", "root": "vdc"}
    for name in ("virt-serial0", "virt-vnc"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(pod.run(f"kubevirt-private/{UID}/{name}"))

    read_console(pod, "TINY GUEST READY")
    pod.notify.wait(lambda d: d["Status"]["OSInfo"]["Name"] == "Debian GNU/Linux")
    channel = pod.domain()["Spec"]["Devices"]["Channels"][0]["Target"]
    assert (channel["Name"], channel["State"]) == ("org.qemu.guest_agent.0", "connected")
    # questions of their own, which may be asked again
    wait_until(pod, lambda: {"hostname", "supportedCommands", "guestAgentVersion", "fsFreezeStatus"} <= guest_info(pod).keys())
    info = guest_info(pod)
    assert info["os"]["id"] == "debian" and info["hostname"] == "tiny"
    assert info["supportedCommands"] and info["guestAgentVersion"]
    stats = json.loads(pod.get("GetDomainStats").fields[2])
    assert stats["Name"] == "default_vm" and stats["Cpu"]["Time"] > 0
    assert {b["Alias"] for b in stats["Block"]} == {"cloudinit", "scratch", "root"}

    n_events = len(pod.notify.events)
    assert pod.act("SyncVirtualMachine", manifest).success
    assert len(pod.notify.events) == n_events, "a Sync without change is no event"

    assert pod.act("PauseVirtualMachine", manifest).success
    pod.notify.wait_state("Paused", "User", n_events)
    assert pod.act("SyncVirtualMachine", manifest).success
    assert pod.domain()["Status"]["Status"] == "Paused", "a Sync does not undo a user's pause"
    assert not pod.act("ShutdownVirtualMachine", manifest).success
    n_events = len(pod.notify.events)
    assert pod.act("UnpauseVirtualMachine", manifest).success
    pod.notify.wait_state("Running", "Unknown", n_events)

    n_events = len(pod.notify.events)
    assert pod.act("ShutdownVirtualMachine", manifest).success
    grace = pod.notify.wait(
        lambda d: d["Spec"]["Metadata"]["KubeVirt"]["GracePeriod"]["DeletionTimestamp"], n_events)
    assert grace["Spec"]["Metadata"]["KubeVirt"]["GracePeriod"]["DeletionGracePeriodSeconds"] == 5
    pod.notify.wait_state("Shutoff", "Shutdown", n_events)
    assert pod.act("DeleteVirtualMachine", manifest).success
    last = pod.notify.wait_state("NoState", "NonExistent", n_events)
    assert last["ObjectMeta"]["deletionTimestamp"]
    assert last["Spec"]["Metadata"]["KubeVirt"]["UID"] == UID
    assert pod.process.wait(PATIENCE) == 0
    assert os.path.exists(pod.run("kubevirt/sockets/launcher-sock"))


@needs_guest
def test_shutdown_without_agent_presses_the_power_button(pod):
    manifest = vmi()
    manifest["spec"]["domain"]["firmware"]["kernelBoot"]["kernelArgs"] += " noagent"
    start(pod, manifest)
    read_console(pod, "TINY GUEST READY")
    n_events = len(pod.notify.events)
    assert pod.act("ShutdownVirtualMachine", manifest).success
    pod.notify.wait_state("Shutoff", "Shutdown", n_events)


@needs_guest
def test_kill_and_delete(pod):
    manifest = start(pod)
    n_events = len(pod.notify.events)
    assert pod.act("KillVirtualMachine", manifest).success
    pod.notify.wait_state("Shutoff", "Destroyed", n_events)
    assert pod.act("KillVirtualMachine", manifest).success
    assert pod.act("DeleteVirtualMachine", manifest).success
    pod.notify.wait_state("NoState", "NonExistent", n_events)
    assert pod.process.wait(PATIENCE) == 0


@needs_guest
def test_guest_powers_itself_off(pod):
    start(pod)
    read_console(pod, "/ # ")  # the shell's prompt
    n_events = len(pod.notify.events)
    type_until(pod, b"poweroff -f\n", lambda: ("Shutoff", "Shutdown") in pod.notify.pairs(n_events))


@needs_guest
def test_paused_start_stays_paused(pod):
    manifest = vmi()
    manifest["spec"]["startStrategy"] = "Paused"
    put_images(pod)
    assert pod.act("SyncVirtualMachine", manifest).success
    pod.notify.wait_state("Paused", "User")
    assert pod.act("SyncVirtualMachine", manifest).success
    assert pod.domain()["Status"]["Status"] == "Paused"
    assert pod.act("UnpauseVirtualMachine", manifest).success
    pod.notify.wait_state("Running", "Unknown")


@needs_guest
def test_signal_marks_and_then_kills(pod):
    start(pod)
    n_events = len(pod.notify.events)
    os.kill(pod.monitor_pid(), signal.SIGTERM)
    marked = pod.notify.wait(
        lambda d: d["Spec"]["Metadata"]["KubeVirt"]["GracePeriod"]["MarkedForGracefulShutdown"],
        n_events)
    assert marked["Status"]["Status"] == "Running"
    time.sleep(1)
    assert pod.domain()["Status"]["Status"] == "Running", "the agent shuts down, not the launcher"
    pod.notify.wait_state("Shutoff", "Destroyed", n_events)


@needs_guest
def test_crashed_qemu_is_told(pod):
    start(pod)
    n_events = len(pod.notify.events)
    with open(pod.run("libvirt/qemu/run/default_vm.pid")) as file:
        inner = int(file.read())
    qemu = pod.find("qemu-system-x86")
    with open(f"/proc/{qemu}/status") as status:
        assert f"\t{inner}\n" in status.read()
        assert "\nUid:\t107\t" in open(f"/proc/{qemu}/status").read()
    with open(f"/proc/{qemu}/stat") as stat:
        assert int(stat.read().rsplit(")", 1)[1].split()[1]) == pod.monitor_pid()
    os.kill(qemu, signal.SIGKILL)
    pod.notify.wait_state("Shutoff", "Crashed", n_events)


@needs_guest
def test_guest_of_a_dead_launcher_is_ended(pod):
    start(pod)
    os.kill(pod.launcher_pid(), signal.SIGKILL)
    assert pod.process.wait(PATIENCE) == 255


@needs_guest
def test_libvirtd_that_dies_is_started_anew(pod):
    manifest = start(pod)
    time.sleep(1)  # until the start's last event is here
    n_events = len(pod.notify.events)
    os.kill(pod.find("libvirtd"), signal.SIGKILL)
    wait_until(pod, lambda: len(pod.notify.events) > n_events)

    def is_off():
        return ((pod.domain_or_none() or {}).get("Status") or {}).get("Status") == "Shutoff"

    # it is up before it has found QEMU again; and seldom, on a busy machine, libvirt 9.0 ends the guest that it finds
    wait_until(pod, lambda: pod.act("KillVirtualMachine", manifest).success or is_off())
    pod.notify.wait(lambda domain: domain["Status"]["Status"] == "Shutoff", n_events)
    assert pod.act("DeleteVirtualMachine", manifest).success
    assert pod.process.wait(PATIENCE) == 0


def test_signal_without_a_domain_ends_it(pod):
    os.kill(pod.monitor_pid(), signal.SIGTERM)
    assert pod.process.wait(PATIENCE) == 0
    assert pod.notify.events == []


def test_no_sync_in_time_ends_with_two():
    pod = Pod(LAUNCHER, UID, "--qemu-timeout", "2s")
    try:
        pod.wait_ready()
        assert pod.process.wait(PATIENCE) == 2
    finally:
        pod.close()


@needs_guest
def test_agent_that_comes_late_gets_the_events():
    pod = Pod(LAUNCHER, UID, with_notify=False)
    try:
        pod.wait_ready()
        put_images(pod)
        assert pod.act("SyncVirtualMachine", vmi()).success
        assert pod.domain()["Status"]["Status"] == "Running"
        time.sleep(2)  # or so long that the first event was given up
        pod.serve_notify()
        pod.notify.wait_state("Running", "Unknown")
        # not that it was once defined, and shut off: that would look like its end
        assert pod.notify.states()[0] == "ADDED Running/Unknown"
        assert set(pod.notify.pairs()) == {("Running", "Unknown")}
    finally:
        pod.close()


def test_root_is_refused():
    done = subprocess.run([LAUNCHER, "--name", "a", "--namespace", "b", "--uid", "c"],
                          capture_output=True, text=True, timeout=10)
    assert done.returncode == 1 and "not as root" in done.stderr
    assert QEMU_USER != 0
