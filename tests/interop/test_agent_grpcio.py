# SPDX-License-Identifier: Apache-2.0
"""The real virt-handler between an API server and launchers and reporters written with gRPC's own Python implementation.

Runs inside tests/in-node, with the scenarios' harness.
"""
import base64
import contextlib
import importlib.util
import json
import pathlib
import subprocess
import sys

import grpc
import pytest

from grpc_support import OPTIONS, TIMEOUT_S, cmd, load_module

SCENARIO = pathlib.Path(__file__).resolve().parents[1] / "scenario"
sys.path.append(str(SCENARIO))
import harness  # noqa: E402

notify, notify_info = load_module("notify"), load_module("notify-info")


def fixtures():
    """The scenarios' conftest, under a name of its own."""
    spec = importlib.util.spec_from_file_location("scenario_conftest", SCENARIO / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stage = fixtures().stage
pytestmark = pytest.mark.skipif(harness.PODS == pathlib.Path("/pods") and not pathlib.Path("/pods").is_dir()
                                and pathlib.Path("/proc/1/comm").read_text().strip() in ("systemd", "init"),
                                reason="not in a node of its own: run by tests/in-node")


def domain(vmi, status, reason, **meta):
    meta_ = vmi["metadata"]
    document = {
        "kind": "Domain", "ObjectMeta": {"name": meta_["name"], "namespace": meta_["namespace"], "uid": meta_["uid"], **meta},
        "Spec": {"Name": f"{meta_['namespace']}_{meta_['name']}",
                 "Metadata": {"KubeVirt": {"UID": meta_["uid"], "GracePeriod": {"DeletionGracePeriodSeconds": 5}}}},
        "Status": {"Status": status, "Reason": reason},
    }
    return json.dumps(document).encode()


def channel(path):
    return grpc.insecure_channel(f"unix:{path}", options=[*OPTIONS, ("grpc.default_authority", "localhost")])


class Reporter:
    """The launcher's half of the notify protocol, on some socket of the agent."""

    def __init__(self, path):
        self.channel = channel(path)

    def call(self, method, request, response):
        return self.channel.unary_unary(method, request_serializer=type(request).SerializeToString,
                                        response_deserializer=response.FromString)(request, timeout=TIMEOUT_S, wait_for_ready=True)

    def versions(self):
        return list(self.call("/kubevirt.notify.info.NotifyInfo/Info", notify_info.NotifyInfoRequest(),
                              notify_info.NotifyInfoResponse).supported_notify_versions)

    def report(self, kind, domain_json=b"", status_json=b""):
        return self.call("/kubevirt.notify.v1.Notify/HandleDomainEvent",
                         notify.DomainEventRequest(domain_json=domain_json, status_json=status_json, event_type=kind), notify.Response)

    def event(self, document):
        return self.call("/kubevirt.notify.v1.Notify/HandleK8sEvent",
                         notify.K8sEventRequest(event_json=json.dumps(document).encode()), notify.Response)

    def close(self):
        self.channel.close()


class PythonLauncher:
    """grpcio_launcher.py in the VMI's pod."""

    def __init__(self, directory, vmi):
        sockets = harness.PODS / harness.pod_of(vmi) / harness.SOCKETS
        sockets.mkdir(parents=True)
        self.calls, self.domain_file = directory / "calls", directory / "domain"
        self.calls.touch()
        self.popen = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", sys.executable,
             pathlib.Path(__file__).with_name("grpcio_launcher.py"), sockets, self.calls, self.domain_file],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.popen.stdout.readline() == b"ready\n"
        self.pipe = f"/proc/{self.popen.pid}/root/run/kubevirt/domain-notify-pipe.sock"  # /var/run is an absolute link

    def messages(self, name, kind=cmd.VMIRequest):
        lines = [line.split() for line in self.calls.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [kind.FromString(base64.b64decode(rest[0] if rest else "")) for method, *rest in lines if method == name]

    def close(self):
        self.popen.stdin.close()
        self.popen.wait(TIMEOUT_S)


@pytest.fixture
def vm(stage, tmp_path):
    """A VM whose launcher is gRPC's: (stage, vmi, launcher, reporter on the pipe)."""
    stage.start_handler()
    vmi = harness.vmi_document()
    with contextlib.closing(PythonLauncher(tmp_path, vmi)) as launcher:
        stage.create(vmi)
        harness.wait_for(lambda: launcher.messages("SyncVirtualMachine"), "the first sync")
        with contextlib.closing(Reporter(launcher.pipe)) as reporter:
            yield stage, vmi, launcher, reporter


def test_launcher_gets_the_vmi_and_its_options(vm):
    _, vmi, launcher, _ = vm
    sync = launcher.messages("SyncVirtualMachine")[0]
    sent = json.loads(sync.vmi.vmi_json)
    assert sent["metadata"]["uid"] == vmi["metadata"]["uid"]
    assert sent["spec"] == vmi["spec"]
    assert sync.options.virtual_machine_smbios.manufacturer == "KubeVirt"
    assert sync.options.HasField("topology")


def test_life_of_a_vm(vm):
    stage, vmi, launcher, reporter = vm
    assert reporter.versions() == [1]
    assert reporter.report("ADDED", domain(vmi, "Paused", "StartingUp")).success
    assert reporter.report("MODIFIED", domain(vmi, "Running", "Unknown")).success
    stage.api.wait_phase("Running")
    stage.api.delete_vmi()
    harness.wait_for(lambda: launcher.messages("ShutdownVirtualMachine"), "the shutdown")
    shutdown = launcher.messages("ShutdownVirtualMachine")[0]
    assert shutdown.HasField("options") and shutdown.options.ByteSize() == 0
    assert reporter.report("MODIFIED", domain(vmi, "Shutoff", "Shutdown")).success
    stage.api.wait_phase("Succeeded")
    assert launcher.messages("DeleteVirtualMachine")


def test_reports_that_are_refused(vm):
    stage, vmi, _, reporter = vm
    other = harness.numbered(9)
    assert not reporter.report("MODIFIED", b"{").success
    assert not reporter.report("MODIFIED", domain(other, "Running", "Unknown")).success
    assert reporter.report("NoSuchType", domain(vmi, "Running", "Unknown")).success
    assert reporter.report("MODIFIED").success
    assert reporter.report("MODIFIED", domain(vmi, "Running", "Unknown")).success
    stage.api.wait_phase("Running")
    assert stage.api.vmi("vm9") is None


def test_relist_on_request(vm):
    """An ERROR report makes the agent ask all launchers again."""
    stage, vmi, launcher, reporter = vm
    launcher.domain_file.write_bytes(domain(vmi, "Running", "Unknown"))
    assert reporter.report("ERROR", status_json=b'{"message":"libvirt is gone"}').success
    harness.wait_for(lambda: launcher.messages("GetDomain", cmd.EmptyRequest), "the launcher to be asked")
    stage.api.wait_phase("Running")
    assert "Domain error event with message: libvirt is gone" in stage.handler.text()


def test_relist_storm_is_slowed_down(vm):
    _, vmi, launcher, reporter = vm
    launcher.domain_file.write_bytes(domain(vmi, "Running", "Unknown"))
    for _ in range(200):
        assert reporter.report("ERROR").success
    harness.wait_for(lambda: launcher.messages("GetDomain", cmd.EmptyRequest), "the launcher to be asked")
    assert len(launcher.messages("GetDomain", cmd.EmptyRequest)) <= 5


def test_events_of_the_launcher(vm):
    stage, vmi, _, reporter = vm

    def event(uid, kind="Warning"):
        return {"involvedObject": {"kind": "VirtualMachineInstance", "namespace": "default", "name": "vm", "uid": uid},
                "type": kind, "reason": "IOerror", "message": "VM Paused due to IO error at the volume: root"}

    answer = reporter.event(event("another"))
    assert (answer.success, answer.message) == (False, "VMI not found")
    assert reporter.event(event(vmi["metadata"]["uid"])).success
    stage.api.wait_event("IOerror", "VM Paused due to IO error at the volume: root")
    recorded = next(e for e in stage.api.events() if e["reason"] == "IOerror")
    assert recorded["involvedObject"]["apiVersion"] == "kubevirt.io/v1"
    assert recorded["source"] == {"component": "virt-handler", "host": "node01"}


def test_shared_socket_is_not_believed(vm):
    """What does not come through a VMI's own pipe could be anybody's."""
    stage, vmi, _, reporter = vm
    shared = Reporter(harness.SHARE / "domain-notify.sock")
    for kind in ("ADDED", "MODIFIED", "DELETED", "ERROR"):
        answer = shared.report(kind, domain(vmi, "Running", "Unknown"))
        assert (answer.success, answer.message) == (False, "reports are taken through the pipe of the VMI's pod only")
    assert "ignoring a report that came straight to the notify socket" in stage.handler.text()
    shared.close()
    for bad in ({**vmi, "metadata": {**vmi["metadata"], "name": name, "namespace": namespace}}
                for name, namespace in (("", ""), ("b/c", "a"), ("UP", "default"), ("x\n", "default"), ("x" * 300, "default"))):
        assert not reporter.report("MODIFIED", domain(bad, "Running", "Unknown")).success
    assert stage.api.phase() == "Scheduled"
    assert reporter.report("MODIFIED", domain(vmi, "Running", "Unknown")).success
    stage.api.wait_phase("Running")


def test_too_large_a_report(vm):
    stage, vmi, _, reporter = vm
    with pytest.raises(grpc.RpcError) as error:
        reporter.report("MODIFIED", domain(vmi, "Running", "Unknown", annotations={"x": "y" * (5 << 20)}))
    assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reporter.report("MODIFIED", domain(vmi, "Running", "Unknown", annotations={"x": "y" * (2 << 20)})).success
    stage.api.wait_phase("Running")
