# SPDX-License-Identifier: Apache-2.0
"""The real virt-handler with grpc-go on the other side, as the launcher and as what reports to the agent.

grpc-go is what KubeVirt's own programs speak with: its flow control, its bandwidth estimating pings, its GOAWAYs. The peer is
go/peer.go, built here from Debian's packages. Runs inside tests/in-node, with the scenarios' harness.
"""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess

import pytest

import test_agent_grpcio as agent
from grpc_support import BUILD, TIMEOUT_S, cmd

harness, notify, domain, stage, pytestmark = agent.harness, agent.notify, agent.domain, agent.stage, agent.pytestmark

GOPATH = pathlib.Path("/usr/share/gocode")
PIPE = "/var/run/kubevirt/domain-notify-pipe.sock"
MIB = 1 << 20

# The pod's file system: $1 is the emptyDir on the node. /mnt, since /var/run/kubevirt may hide it.
ENTER_POD = """
mount --bind "$1" /mnt && mkdir -p /var/run/kubevirt && mount -t tmpfs -o mode=0755 pod /var/run/kubevirt && mkdir /var/run/kubevirt/sockets &&
mount --bind /mnt /var/run/kubevirt/sockets && shift && exec "$@"
"""


@pytest.fixture(scope="session")
def peer_program():
    if shutil.which("go") is None or not (GOPATH / "src/google.golang.org/grpc").is_dir():
        pytest.skip("Debian's golang-go or golang-google-grpc-dev is not installed")
    program = BUILD / "tests/interop/grpc-go-peer"
    environment = {**os.environ, "GO111MODULE": "off", "GOPATH": str(GOPATH), "GOFLAGS": "", "GOCACHE": str(BUILD / "go-cache")}
    subprocess.run(["go", "build", "-o", program, pathlib.Path(__file__).with_name("go") / "peer.go"], check=True, env=environment)
    return program


class GoPeer:
    """The launcher of one VMI, and a connection from it to the agent."""

    def __init__(self, program, directory, vmi):
        sockets = harness.PODS / harness.pod_of(vmi) / harness.SOCKETS
        sockets.mkdir(parents=True)
        self.calls_file, self.domain_file = directory / "calls", directory / "domain"
        self.calls_file.touch()
        self.popen = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER_POD, "pod", sockets,
             program, "/var/run/kubevirt/sockets", self.calls_file, self.domain_file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.popen.stdout.readline() == "ready\n"

    def tell(self, *words):
        """What it answers to a command; raises what it could not do."""
        self.popen.stdin.write(" ".join(map(str, words)) + "\n")
        self.popen.stdin.flush()
        kind, _, text = self.popen.stdout.readline().rstrip("\n").partition(" ")
        if kind != "ok":
            raise RuntimeError(text)
        return text

    def messages(self, method, kind=cmd.VMIRequest):
        lines = [line.split(" ") for line in self.calls_file.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [kind.FromString(base64.b64decode(text)) for name, text in lines if name == method]

    def send(self, method, request, response=notify.Response):
        return response.FromString(base64.b64decode(self.tell("send", method, base64.b64encode(request.SerializeToString()).decode())))

    def report(self, kind, domain_json):
        return self.send("/kubevirt.notify.v1.Notify/HandleDomainEvent",
                         notify.DomainEventRequest(domain_json=domain_json, event_type=kind))

    def close(self):
        self.popen.stdin.close()
        assert self.popen.wait(TIMEOUT_S) == 0


@pytest.fixture
def start(stage, peer_program, tmp_path):
    """start(vmi, before=...): a VM whose launcher is grpc-go's; `before` sees the peer ahead of the agent."""
    with contextlib.ExitStack() as stack:
        def run(vmi=None, before=lambda peer: None):
            vmi = vmi or harness.vmi_document()
            peer = stack.enter_context(contextlib.closing(GoPeer(peer_program, tmp_path, vmi)))
            before(peer)
            stage.start_handler()
            stage.create(vmi)
            harness.wait_for(lambda: peer.messages("SyncVirtualMachine"), "the first sync")
            peer.tell("dial", PIPE)
            return vmi, peer
        yield run


@pytest.fixture
def running(stage, start):
    vmi, peer = start()
    assert peer.report("MODIFIED", domain(vmi, "Running", "Unknown")).success
    stage.api.wait_phase("Running")
    return vmi, peer


def end_and_expect_shutdown(stage, vmi, peer):
    stage.api.delete_vmi()
    harness.wait_for(lambda: peer.messages("ShutdownVirtualMachine"), "the shutdown")
    assert peer.report("MODIFIED", domain(vmi, "Shutoff", "Shutdown")).success
    stage.api.wait_phase("Succeeded")


def test_life_of_a_vm(stage, running):
    vmi, peer = running
    sync = peer.messages("SyncVirtualMachine")[0]
    sent = json.loads(sync.vmi.vmi_json)
    assert (sent["metadata"]["uid"], sent["spec"]) == (vmi["metadata"]["uid"], vmi["spec"])
    assert sync.options.HasField("topology")
    versions = peer.send("/kubevirt.notify.info.NotifyInfo/Info", agent.notify_info.NotifyInfoRequest(),
                         agent.notify_info.NotifyInfoResponse)
    assert list(versions.supported_notify_versions) == [1]
    assert peer.report("MODIFIED", domain(vmi, "Paused", "User")).success
    stage.api.wait_paused(True)
    end_and_expect_shutdown(stage, vmi, peer)
    harness.wait_for(lambda: peer.messages("DeleteVirtualMachine"), "the clean-up")


def test_events_of_the_launcher(stage, running):
    vmi, peer = running
    event = {"involvedObject": {"kind": "VirtualMachineInstance", "namespace": "default", "name": "vm", "uid": vmi["metadata"]["uid"]},
             "type": "Warning", "reason": "IOerror", "message": "VM Paused due to IO error at the volume: root"}
    method = "/kubevirt.notify.v1.Notify/HandleK8sEvent"
    assert peer.send(method, notify.K8sEventRequest(event_json=json.dumps(event).encode())).success
    stage.api.wait_event("IOerror", event["message"])
    assert not peer.send(method, notify.K8sEventRequest(event_json=b"{")).success
    with pytest.raises(RuntimeError, match="Unimplemented"):
        peer.send("/kubevirt.notify.v1.Notify/NoSuchMethod", notify.K8sEventRequest())


def test_large_vmi(start):
    """Far beyond grpc-go's first window, which it widens by its own pings meanwhile."""
    vmi = harness.vmi_document()
    vmi["metadata"]["annotations"]["large"] = "x" * MIB
    _, peer = start(vmi)
    sent = json.loads(peer.messages("SyncVirtualMachine")[0].vmi.vmi_json)
    assert sent["metadata"]["annotations"]["large"] == "x" * MIB


def test_large_reports(stage, running):
    vmi, peer = running
    for turn in range(20):
        assert peer.report("MODIFIED", domain(vmi, "Running", "Unknown", annotations={"large": "x" * (MIB + turn)})).success
    with pytest.raises(RuntimeError, match="ResourceExhausted"):
        peer.report("MODIFIED", domain(vmi, "Running", "Unknown", annotations={"large": "x" * (5 * MIB)}))
    assert peer.report("MODIFIED", domain(vmi, "Paused", "User")).success
    stage.api.wait_paused(True)


def test_launcher_that_answers_too_late(stage, start):
    """The agent gives up by the deadline that it told, and grpc-go sees the call end."""
    vmi = harness.vmi_document()
    _, peer = start(vmi, before=lambda peer: peer.tell("deadline", "GetDomain", 60000))
    peer.domain_file.write_bytes(domain(vmi, "Running", "Unknown"))
    peer.send("/kubevirt.notify.v1.Notify/HandleDomainEvent", notify.DomainEventRequest(event_type="ERROR"))
    harness.wait_for(lambda: peer.messages("cancelled:GetDomain", cmd.EmptyRequest), "the call to be given up")
    peer.tell("deadline", "GetDomain", 0)
    assert peer.report("MODIFIED", domain(vmi, "Running", "Unknown")).success
    stage.api.wait_phase("Running")


@pytest.mark.parametrize("how", ["graceful", "cut"])
def test_connection_that_the_launcher_ends(stage, running, how):
    """GOAWAY, or no word at all, as after 30 idle minutes: the next call makes a new connection."""
    vmi, peer = running
    peer.tell(how)
    before = int(peer.tell("connections"))
    end_and_expect_shutdown(stage, vmi, peer)
    assert int(peer.tell("connections")) > before


def test_rpc_that_the_launcher_does_not_know(stage, running):
    """GetGuestInfo of a launcher of another version."""
    vmi, peer = running
    connected = json.loads(domain(vmi, "Running", "Unknown"))
    connected["Spec"]["Devices"] = {"Channels": [{"Type": "unix", "Target": {"Name": "org.qemu.guest_agent.0", "State": "connected"}}]}
    assert peer.report("MODIFIED", json.dumps(connected).encode()).success
    harness.wait_for(lambda: peer.messages("GetGuestInfo", cmd.EmptyRequest), "the guest agent to be asked for")
    harness.wait_for(lambda: "unknown method GetGuestInfo" in stage.handler.text(), "the refusal in the log")
    assert stage.api.phase() == "Running"
    assert peer.report("MODIFIED", domain(vmi, "Paused", "User")).success
    stage.api.wait_paused(True)
