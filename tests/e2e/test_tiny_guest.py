# SPDX-License-Identifier: Apache-2.0
"""The tiny guest through the whole chain: chandler, API server, pod runner, agent, launcher, libvirt, QEMU, guest agent."""

import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
import yaml

from chandler import NEEDS, TINY, Chandler, Console, manifest, wait

pytestmark = NEEDS
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")


@pytest.fixture(scope="module")
def chandler():
    made = Chandler()
    try:
        made.ok("up", "--emulation", "on")
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def tiny(chandler, tmp_path_factory):
    """The running guest that the tests up to its deletion share; what `run` printed.

    It gets time to shut down: on a busy machine the example's 30 s can pass, and then it is killed.
    """
    path = tmp_path_factory.mktemp("tiny") / "tiny.yaml"
    with open(TINY, encoding="utf-8") as file:
        text = file.read()
    assert text.count("terminationGracePeriodSeconds: 30") == 1
    path.write_text(text.replace("terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: 240"))
    return chandler.ok("run", str(path))


def own_images(chandler):
    """The shared guest's directory is not ours to write to: from now on there is one of our own around it."""
    link, real = os.path.join(chandler.state, "images"), os.path.join(chandler.state, "own-images")
    if not os.path.exists(real):
        os.mkdir(real)
        os.symlink(os.path.join(os.readlink(link), "chandler"), os.path.join(real, "chandler"))
        os.unlink(link)
        os.symlink(real, link)


# --- one guest's life --------------------------------------------------------------------------------


def test_run_shows_the_whole_start(tiny):
    stages = ["VMI accepted", "pod created", "launcher serves", "VMI seen by the agent", "notify pipe connected",
              "domain defined", "domain started", "VMI Running", "guest agent connected"]
    times = [int(re.search(rf"{stage} +(-?\d+) ms", tiny).group(1)) for stage in stages]
    assert times == sorted(times), tiny
    assert times[stages.index("VMI seen by the agent")] == 0


def test_status_names_the_guests_system(chandler, tiny):
    wait(lambda: chandler.vmi()["status"]["guestOSInfo"].get("name"), "the guest's system")
    status = chandler.vmi()["status"]
    assert status["phase"] == "Running"
    assert status["guestOSInfo"]["name"] == "Debian GNU/Linux"
    assert status["guestOSInfo"]["versionId"] == "12"
    assert chandler.condition("AgentConnected")["status"] == "True"
    assert chandler.condition("Ready")["status"] == "True"
    assert list(status["activePods"].values()) == [status["nodeName"]]
    assert [stamp["phase"] for stamp in status["phaseTransitionTimestamps"]] == \
        ["Pending", "Scheduling", "Scheduled", "Running"]


@needs_kubectl
def test_kubectl_sees_it_as_on_a_cluster(chandler, tiny):
    head, row = chandler.kubectl("get", "vmi").splitlines()
    assert head.split() == ["NAME", "AGE", "PHASE", "IP", "NODENAME", "READY"]
    assert row.split()[0] == "tiny" and row.split()[2] == "Running" and row.split()[-1] == "True"
    pod = chandler.kubectl("get", "pods").splitlines()[1].split()
    assert pod[0].startswith("virt-launcher-tiny-") and pod[1:3] == ["1/1", "Running"]
    reasons = chandler.kubectl("get", "events")
    assert "SuccessfulCreate" in reasons and "Started" in reasons
    assert "tiny" in chandler.kubectl("describe", "vmi", "tiny")


def test_console_log_ends_with_the_login_line(chandler, tiny):
    assert chandler.ok("console", "tiny", "--log").rstrip().endswith("tiny login:")


def test_console_is_a_terminal(chandler, tiny):
    console = Console(chandler)
    console.send("\n")
    console.until("tiny login:")
    console.send("\x1d")
    assert console.status() == 0


def test_timeline_tells_the_start_again(chandler, tiny):
    assert "guest agent connected" in chandler.ok("timeline", "tiny")


def test_second_up_is_refused(chandler, tiny):
    assert "already up" in chandler.fails("up")


def test_guest_survives_a_restart_of_everything_else(chandler, tiny):
    uid = chandler.vmi()["metadata"]["uid"]
    chandler.ok("down", "--keep-vms")
    assert "does not answer" in chandler.fails("get")
    chandler.ok("up", "--emulation", "on")
    assert chandler.vmi()["metadata"]["uid"] == uid
    assert chandler.phase() == "Running"
    console = Console(chandler)
    console.send("\n")
    console.until("tiny login:")
    console.send("\x1d")
    console.status()


def test_crashed_programs_come_back(chandler, tiny):
    for program in ("chandler-podrunner", "virt-handler"):
        pid = chandler.pid_of(program)
        os.kill(pid, signal.SIGKILL)
        wait(lambda old=pid, name=program: chandler.pid_of(name) not in (0, old), f"{program} is started again")
    assert chandler.phase() == "Running"


def test_killed_supervisor_takes_all_but_guests_along(chandler, tiny):
    with open(os.path.join(chandler.state, "lock"), encoding="utf-8") as file:
        os.kill(int(file.read()), signal.SIGKILL)
    for program in ("chandler-apiserver", "chandler-podrunner", "virt-handler"):
        wait(lambda name=program: chandler.pid_of(name) == 0, f"{program} ends")
    chandler.ok("up", "--emulation", "on")
    wait(lambda: chandler.condition("AgentConnected").get("status") == "True", "the guest is found again")
    assert chandler.phase() == "Running"


def test_delete_shuts_the_guest_down(chandler, tiny):
    pod_uid = next(iter(chandler.vmi()["status"]["activePods"]))
    chandler.ok("delete", "tiny", timeout=300)
    assert "there is no" in chandler.fails("console", "tiny")
    events = chandler.ok("get", "events")
    assert "Signaled Graceful Shutdown" in events
    assert "VirtualMachineInstance was shut down" in events
    assert "VirtualMachineInstance stopping" not in events, "it had to be killed"
    assert not os.path.exists(os.path.join(chandler.state, "podrunner", "pods", pod_uid))
    assert chandler("get", "pods").out == ""


@pytest.fixture
def with_disks(chandler, tmp_path):
    """The tiny guest with a disk of each kind; the image of the first is a plain directory."""
    with open(TINY, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    own_images(chandler)
    folder = os.path.join(chandler.state, "images", "lab", "disk")
    os.makedirs(folder)
    with open(os.path.join(folder, "root.img"), "wb") as file:
        file.truncate(8 << 20)
    os.chmod(os.path.join(folder, "root.img"), 0o644)
    document["spec"]["domain"]["devices"]["disks"] = [
        {"name": name, "disk": {"bus": "virtio"}} for name in ("root", "scratch", "seed")]
    document["spec"]["volumes"] = [
        {"name": "root", "containerDisk": {"image": "lab"}},
        {"name": "scratch", "emptyDisk": {"capacity": "16Mi"}},
        {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config\n"}}]
    path = tmp_path / "disks.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_poweroff_from_inside_succeeds(chandler, with_disks):
    chandler.ok("run", with_disks)
    console = Console(chandler)
    console.send("\n")
    console.until("tiny login:")
    console.send("root\n")
    console.until("/root #")
    console.send("cat /proc/partitions\n")
    for disk, kib in (("vda", 8 << 10), ("vdb", 16 << 10), ("vdc", "[0-9]+")):
        console.match(rf"{kib} {disk}\s")
    console.send("poweroff\n")
    console.until("Power down")
    console.until("The VM closed its console")
    assert console.status() == 0
    wait(lambda: chandler.phase() == "Succeeded", "phase Succeeded")
    wait(lambda: "Completed" in chandler.ok("get", "pods"), "pod Completed")
    assert "does not run (it is Succeeded)" in chandler.fails("console", "tiny")
    chandler.ok("delete", "tiny")


# --- what goes wrong ---------------------------------------------------------------------------------


def test_invalid_yaml_names_the_line(chandler, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: v1\nkind: [unclosed\n")
    assert f"{path}:" in chandler.fails("run", str(path))
    path.write_text("apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {}\n")
    assert f"{path}:1: 'metadata.name' is missing" in chandler.fails("apply", str(path))


def test_invalid_vmi_names_the_field_and_stores_nothing(chandler, tmp_path):
    path = manifest(tmp_path, "wrong", memory={"guest": "plenty"})
    assert "spec.domain.memory.guest" in chandler.fails("run", path)
    assert "wrong" not in chandler("get").out


def test_unknown_fields_are_kept_and_told(chandler, tmp_path):
    said = chandler("apply", manifest(tmp_path, "odd", fieldOfTheFuture={"a": 1.50}, firmware={"kernelBoot": {
        "container": {"image": "nowhere", "kernelPath": "/k"}}}))
    assert said.status == 0 and said.err == 'Warning: unknown field "spec.domain.fieldOfTheFuture"\n'
    assert chandler.vmi("odd")["spec"]["domain"]["fieldOfTheFuture"] == {"a": 1.5}
    chandler.ok("delete", "odd")


def test_missing_image_is_told_and_found_when_it_comes(chandler, tmp_path):
    path = manifest(tmp_path, "late", firmware={"kernelBoot": {
        "container": {"image": "late/image:1", "kernelPath": "/boot/vmlinuz"}}})
    error = chandler.fails("run", path)
    assert "late/image:1" in error and "is not on this machine" in error
    assert chandler.condition("Synchronized", "late")["reason"] == "ErrImagePull"
    wait(lambda: re.search("Warning +ErrImagePull .*late/image:1", chandler.ok("get", "events")), "an event")
    assert "ErrImagePull" in chandler.ok("get", "pods")
    own_images(chandler)
    image = os.path.join(chandler.state, "images", "late", "image:1")
    os.makedirs(os.path.join(image + ".part", "boot"))
    with open(os.path.join(image + ".part", "boot", "vmlinuz"), "wb") as file:
        file.write(b"no kernel, but a file")
    os.chmod(os.path.join(image + ".part", "boot", "vmlinuz"), 0o644)
    os.rename(image + ".part", image)
    wait(lambda: chandler.phase("late") in ("Scheduled", "Running"), "the pod runner finds the image")
    chandler.ok("delete", "late")


def test_missing_file_in_an_image_is_told(chandler, tmp_path):
    path = manifest(tmp_path, "nokernel", firmware={"kernelBoot": {
        "container": {"image": "chandler/tiny:latest", "kernelPath": "/boot/nothing"}}})
    assert "it has no file '/boot/nothing'; /boot has initrd.img, vmlinuz" in chandler.fails("run", path)
    chandler.ok("delete", "nokernel")


def test_vm_without_memory_is_told(chandler, tmp_path):
    path = manifest(tmp_path, "nomem", memory={})
    assert "no memory requested" in chandler.fails("run", path)
    chandler.ok("delete", "nomem")


def test_long_name_starts(chandler, tmp_path):
    name = "n" * 100
    chandler.ok("apply", "-f", manifest(tmp_path, name))
    wait(lambda: chandler.phase(name) == "Running", "phase Running")
    assert f'virtualmachineinstance "{name}" deleted' in chandler.ok("delete", name)


def test_end_of_a_start_tells_why(chandler, tmp_path):
    said = chandler.fails("run", manifest(tmp_path, "huge", memory={"guest": "64Ti"}))
    assert "does not start" in said and "Cannot allocate memory" in said
    chandler.ok("delete", "huge")


def test_virtual_machine_is_told_what_to_write(chandler, tmp_path):
    path = tmp_path / "vm.yaml"
    path.write_text("apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: vm}\n")
    assert "make it a VirtualMachineInstance" in chandler.fails("run", str(path))


def test_help_of_a_command_and_misplaced_options(chandler):
    assert "--keep-vms" in chandler.ok("down", "--help")
    assert "comes before options" in chandler.fails("--verbose", "get")


def test_removed_state_ends_the_supervisor():
    other = Chandler()
    try:
        other.ok("up", "--emulation", "on", "--port", "17444")
        assert other.pid_of("chandler-apiserver") != 0
        os.unlink(os.path.join(other.state, "lock"))
        wait(lambda: other.pid_of("chandler-apiserver") == 0, "the supervisor ends what it started")
    finally:
        other.remove()


def test_unknown_vm_and_type(chandler):
    assert "there is no VM 'nobody'" in chandler.fails("console", "nobody")
    assert "there is no type 'nothing'" in chandler.fails("get", "nothing")
    assert "an argument is missing; usage: chandler console NAME" in chandler.fails("console")


def test_port_in_use():
    other = Chandler()
    try:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            port = str(listener.getsockname()[1])
            assert f"port {port} is in use" in other.fails("up", "--port", port)
        assert "was never started" in other.fails("get")
        assert other.ok("down").startswith("chandler is not up")
    finally:
        other.remove()


def test_state_that_cannot_be_written():
    other = Chandler()
    try:
        assert "create directory" in other.fails("up", "--state", "/proc/nowhere", "--port", "17443")
        assert "must not contain" in other.fails("up", "--state", "/tmp/a:b", "--port", "17443")
    finally:
        other.remove()


def test_full_disk(tmp_path):
    other = Chandler()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "full", str(tmp_path)], check=True)
        assert "is full" in other.fails("up", "--state", str(tmp_path), "--port", "17443")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
        other.remove()


def test_down_ends_everything(chandler):
    chandler.ok("run", TINY)
    chandler.ok("down")
    for program in ("chandler-apiserver", "chandler-podrunner", "virt-handler", "virt-launcher"):
        assert chandler.pid_of(program) == 0, program
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        assert chandler.state not in file.read()
