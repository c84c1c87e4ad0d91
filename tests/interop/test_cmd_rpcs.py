# SPDX-License-Identifier: Apache-2.0
"""Each of the agent's 36 commands against launchers that speak gRPC's C core and grpc-go: what arrives is decoded by Google's
protobuf, what they answer comes back whole."""
import base64
import concurrent.futures
import json
import os
import pathlib
import subprocess
import threading
import time

import grpc
import pytest
from grpc_support import OPTIONS, SOURCE, TIMEOUT_S, Program, cmd
from test_grpc_go import GOPATH, peer_program  # noqa: F401 (a fixture)

SHARED = pathlib.Path(os.environ.get("CH_SHARED", SOURCE.parent / "shared")) / "golden/launcher"
UID = "1111bbbb-0000-4000-8000-000000000001"
VMI = json.dumps({"metadata": {"name": "vm1", "namespace": "default", "uid": UID},
                  "spec": {"text": "é<>&", "domain": {"memory": {"guest": "1Gi", "maxGuest": "2Gi"}}},
                  "status": {"memory": {"guestAtBoot": "1Gi"}}}, ensure_ascii=False)
MIB = 1 << 20


def golden(name):
    path = SHARED / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path.read_text()


def options():
    out = cmd.VirtualMachineOptions(mem_balloon_stats_period=10)
    out.virtual_machine_smbios.manufacturer = "KubeVirt"
    out.interface_domain_attachment["default"] = "tap"
    return out


OK, OK_IN = cmd.Response(success=True), {"response": cmd.Response(success=True)}
WITH_VMI = {"vmi": cmd.VMI(vmi_json=VMI.encode())}
EMPTY_OPTIONS = cmd.VMIRequest(**WITH_VMI, options=cmd.VirtualMachineOptions())
SECRET, BACKUP = '{"header":"aA==","secret":"cw=="}', '{"backupName":"b","cmd":"Start"}'
MIGRATION = '{"Bandwidth":"64Mi","ProgressTimeout":150}'
CHECKPOINT = '{"name":"c","creationTime":null,"volumes":[{"volumeName":"v","diskTarget":"vda"}]}'
VMI_COMMANDS = ["PauseVirtualMachine", "UnpauseVirtualMachine", "UnfreezeVirtualMachine", "ResetVirtualMachine",
                "SoftRebootVirtualMachine", "ShutdownVirtualMachine", "KillVirtualMachine", "DeleteVirtualMachine",
                "CancelVirtualMachineMigration", "SignalTargetPodCleanup", "HotplugHostDevices", "SyncVirtualMachineCPUs",
                "SyncVirtualMachineMemory"]
FULL_OPTIONS = ["SyncVirtualMachine", "SyncMigrationTarget", "FinalizeVirtualMachineMigration"]
TEXTS = {"GetDomain": (cmd.DomainResponse, "domain"), "GetDomainStats": (cmd.DomainStatsResponse, "domain_stats"),
         "GetGuestInfo": (cmd.GuestInfoResponse, "guest_info_response"),
         "GetUsers": (cmd.GuestUserListResponse, "guest_user_list_response"),
         "GetFilesystems": (cmd.GuestFilesystemsResponse, "guest_filesystems_response"),
         "GetQemuVersion": (cmd.QemuVersionResponse, "version")}
LISTS = ("GetUsers", "GetFilesystems")
DOCUMENTS = {"MigrateVirtualMachine": (cmd.MigrationRequest, "options", MIGRATION, OK),
             "InjectLaunchSecret": (cmd.InjectLaunchSecretRequest, "options", SECRET, OK),
             "BackupVirtualMachine": (cmd.BackupRequest, "options", BACKUP, OK),
             "RedefineCheckpoint": (cmd.RedefineCheckpointRequest, "checkpoint", CHECKPOINT, cmd.RedefineCheckpointResponse(**OK_IN))}
ALL_STATS = cmd.VMStatsRequest(**{field.name: cmd.EmptyRequest() for field in cmd.VMStatsRequest.DESCRIPTOR.fields})
STATS = cmd.VMStatsResponse(**OK_IN, domain_stats=cmd.DomainStatsResponse(domain_stats='{"Name":"x"}'),
                            dirty_rate_stats=cmd.DirtyRateStatsResponse(dirty_rate_mbs=-1), guest_get_load=cmd.Response(message="l"))

# method: (what to ask besides the name, the message expected at the launcher, its answer, expected of the result, seconds)
RPCS = {
    **{m: ({"vmi": VMI}, EMPTY_OPTIONS, OK, {}, 20) for m in VMI_COMMANDS},
    **{m: ({"vmi": VMI, "options": base64.b64encode(options().SerializeToString()).decode()},
           cmd.VMIRequest(**WITH_VMI, options=options()), OK, {}, 20) for m in FULL_OPTIONS},
    **{m: ({"vmi": VMI, "document": text}, kind(**WITH_VMI, **{field: text.encode()}), answer, {}, 20)
       for m, (kind, field, text, answer) in DOCUMENTS.items()},
    **{m: ({}, cmd.EmptyRequest(), kind(**OK_IN, **{field: "[]" if m in LISTS else "{}"}),
           {"text": "[]" if m in LISTS else "{}"}, 5) for m, (kind, field) in TEXTS.items()},
    "FreezeVirtualMachine": ({"vmi": VMI, "seconds": 300}, cmd.FreezeRequest(**WITH_VMI, unfreeze_timeout_seconds=300), OK, {}, 60),
    "VirtualMachineMemoryDump": ({"vmi": VMI, "path": "/d/é"}, cmd.MemoryDumpRequest(**WITH_VMI, dump_path="/d/é"), OK, {}, 20),
    "Ping": ({}, cmd.EmptyRequest(), OK, {}, 5),
    "GetDomainDirtyRateStats": ({}, cmd.EmptyRequest(), cmd.DirtyRateStatsResponse(**OK_IN, dirty_rate_mbs=-1), {"number": -1}, 20),
    "GetVMStats": ({"stats": 0xffff}, ALL_STATS, STATS, {"text": '{"Name":"x"}', "number": -1}, 5),
    "GetSEVInfo": ({}, cmd.EmptyRequest(), cmd.SEVInfoResponse(**OK_IN, sev_info=b'{"pdh":"p"}'), {"json": {"pdh": "p"}}, 5),
    "GetLaunchMeasurement": ({"vmi": VMI}, cmd.VMIRequest(**WITH_VMI),
                             cmd.LaunchMeasurementResponse(**OK_IN, launch_measurement=b'{"policy":1}'), {"json": {"policy": 1}}, 5),
    "GetScreenshot": ({"vmi": VMI}, cmd.VMIRequest(**WITH_VMI), cmd.ScreenshotResponse(mime="image/png", data=b"\x89P\0\xff"),
                      {"text": "image/png", "data": base64.b64encode(b"\x89P\0\xff").decode()}, 5),
    "Exec": ({"domainName": "default_vm1", "command": "ls", "args": ["-l", "é"], "seconds": 60},
             cmd.ExecRequest(domain_name="default_vm1", command="ls", args=["-l", "é"], timeout_seconds=60),
             cmd.ExecResponse(**OK_IN, exit_code=-1, std_out="out\n"), {"number": -1, "text": "out\n"}, 65),
    "GuestPing": ({"domainName": "default_vm1", "seconds": 30}, cmd.GuestPingRequest(domain_name="default_vm1", timeout_seconds=30),
                  cmd.GuestPingResponse(**OK_IN), {}, 35),
}


def wait_for(condition, what):
    end = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


SHORTER = {5: 0, 20: 5, 35: 20, 60: 20, 65: 20}


class PythonPeer(grpc.GenericRpcHandler):
    """gRPC's C core."""

    def __init__(self, directory):
        self.socket, self.answers, self.calls = directory / "launcher-sock", {}, []
        self.silent, self.end = set(), threading.Event()
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=(self,), options=OPTIONS)
        assert self.server.add_insecure_port(f"unix:{self.socket}")
        self.server.start()

    def service(self, details):
        method = details.method.removeprefix("/kubevirt.cmd.v1.Cmd/").removeprefix("/kubevirt.cmd.info.CmdInfo/")
        if method not in self.answers:
            return None  # Unimplemented

        def handle(request, context):
            self.calls.append((method, request, context.time_remaining()))
            if method in self.silent:
                self.end.wait()
            return self.answers[method]

        return grpc.unary_unary_rpc_method_handler(handle)

    def answer(self, method, message):
        self.answers[method] = message

    def hang(self, method):
        self.silent.add(method)

    def close(self):
        self.end.set()
        self.server.stop(None).wait()


class GoPeer:
    """grpc-go."""

    def __init__(self, program, directory):
        self.socket, self.file = directory / "launcher-sock", directory / "calls"
        self.file.touch()
        self.popen = subprocess.Popen([program, directory, self.file, directory / "domain"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        assert self.popen.stdout.readline() == "ready\n"
        self.tell("strict")

    def answer(self, method, message):
        self.tell(f"answer {method} {base64.b64encode(message).decode()}")

    def hang(self, method):
        self.tell(f"deadline {method} 600000")

    def tell(self, line):
        self.popen.stdin.write(line + "\n")
        self.popen.stdin.flush()
        assert self.popen.stdout.readline() == "ok \n"

    @property
    def calls(self):
        lines = [line.split(" ") for line in self.file.read_text().splitlines()]
        left = [int(value) / 1000 for name, value in lines if name == "left-ms"]
        calls = [(name, base64.b64decode(value)) for name, value in lines if name != "left-ms"]
        return [(*call, seconds) for call, seconds in zip(calls, left)]

    def close(self):
        self.popen.stdin.close()
        assert self.popen.wait(TIMEOUT_S) == 0


@pytest.fixture(params=["python", "go"])
def peer(request, tmp_path):
    if request.param == "python":
        peer = PythonPeer(tmp_path)
    else:
        peer = GoPeer(request.getfixturevalue("peer_program"), tmp_path)
    yield peer
    peer.close()


@pytest.fixture
def ask(peer):
    program = Program("cmd-client", peer.socket)
    yield lambda rpc, **members: json.loads(program.ask(json.dumps({"rpc": rpc, **members}), timeout=90))
    if program.process.poll() is None:
        program.end()
    program.kill()


def test_all_commands_are_here():
    assert len(RPCS) == 36
    assert set(RPCS) == {method.name for method in cmd.DESCRIPTOR.services_by_name["Cmd"].methods}


def test_every_command(peer, ask):
    for method, (members, expected, answer, result, seconds) in RPCS.items():
        peer.answer(method, answer.SerializeToString())
        out = ask(method, **members)
        assert "code" not in out, (method, out)
        assert out.items() >= result.items(), (method, out)
        name, request, left = peer.calls[-1]
        assert name == method
        # what is decoded by the foreign implementation is what was meant, present-but-empty parts included
        assert type(expected).FromString(request) == expected, (method, request)
        assert type(expected).FromString(request).SerializeToString(deterministic=True) == expected.SerializeToString(deterministic=True)
        assert SHORTER[seconds] < left <= seconds, method  # the deadline that it was told, not one of another class
    assert len(peer.calls) == 36


def test_every_command_that_an_old_launcher_lacks(peer, ask):
    for method, (members, *_) in RPCS.items():
        out = ask(method, **members)
        assert out["code"] == 2, (method, out)
        text = out["message"].removeprefix("RedefineCheckpoint call failed: ")
        assert text.startswith("rpc error: code = Unimplemented desc = "), (method, text)


def test_every_command_that_is_refused(peer, ask):
    no = cmd.Response(message='a "b"')
    for method, (members, _, answer, *_) in RPCS.items():
        refusal = type(answer)(response=no) if "response" in answer.DESCRIPTOR.fields_by_name else no
        peer.answer(method, refusal.SerializeToString())
        out = ask(method, **members)
        if method in ("GetScreenshot", "Exec", "GuestPing"):
            assert "code" not in out, (method, out)
        elif method == "RedefineCheckpoint":
            assert out["message"] == 'RedefineCheckpoint failed: a "b"'
        else:
            assert out["message"].startswith("server error. command ") and out["message"].endswith(' failed: "a \\"b\\""'), (method, out)


def test_every_command_that_gets_garbage(peer, ask):
    for method, (members, *_) in RPCS.items():
        peer.answer(method, b"\x0a\x7f\x08\x01")
        out = ask(method, **members)
        assert "code = Internal desc = grpc: failed to unmarshal the received message: " in out["message"], (method, out)


@pytest.mark.parametrize("size", [4 * MIB - 1024, 4 * MIB + 1])
def test_size_limit(peer, ask, size):
    peer.answer("GetDomain", cmd.DomainResponse(domain='{"a":"' + "x" * size + '"}').SerializeToString())
    out = ask("GetDomain")
    if size < 4 * MIB:
        assert out["textLength"] == size + 8
    else:
        assert "code = ResourceExhausted desc = grpc: received message larger than max (" in out["message"]


def test_launcher_that_does_not_answer(peer, ask):
    """A launcher that is too slow is none that went away: stopping a VM must not take it for success."""
    peer.answer("Ping", OK.SerializeToString())
    peer.hang("Ping")
    out = ask("Ping")
    assert out["code"] == 3
    # whoever of the two looks at the clock first says it
    assert out["message"] in ["unknown error encountered sending command Ping: rpc error: code = DeadlineExceeded desc = " + text
                              for text in ("context deadline exceeded", "Deadline Exceeded")]


def test_launcher_that_dies_in_mid_call(peer_program, tmp_path):
    """Nor is one that died: grpc-go's Unavailable is no Canceled."""
    peer = GoPeer(peer_program, tmp_path)
    program = Program("cmd-client", peer.socket)
    peer.answer("KillVirtualMachine", OK.SerializeToString())
    peer.hang("KillVirtualMachine")
    program.process.stdin.write(json.dumps({"rpc": "KillVirtualMachine", "vmi": VMI}).encode() + b"\n")
    wait_for(lambda: peer.calls, "the call")
    peer.popen.kill()
    peer.popen.wait(TIMEOUT_S)
    out = json.loads(program.read_line())
    program.end()
    assert out["code"] == 3
    assert out["message"].startswith("unknown error encountered sending command Kill: rpc error: code = Unavailable desc = "
                                     "error reading from server: "), out


def test_large_vmi(peer, ask):
    vmi = json.dumps({"metadata": {"annotations": {"large": "x" * MIB}}})
    peer.answer("SyncVirtualMachine", OK.SerializeToString())
    assert "code" not in ask("SyncVirtualMachine", vmi=vmi)
    assert cmd.VMIRequest.FromString(peer.calls[-1][1]).vmi.vmi_json.decode() == vmi


@pytest.mark.parametrize("method", TEXTS)
def test_payloads_of_a_real_launcher(peer, ask, method):
    """golden/launcher: what virt-launcher v1.9.0 answered."""
    kind, field = TEXTS[method]
    text = golden(method)
    peer.answer(method, kind(**OK_IN, **{field: text}).SerializeToString())
    out = ask(method)
    assert out["text"] == text
    if method != "GetQemuVersion":
        assert out["json"] == json.loads(text)


@pytest.mark.parametrize("versions, message", [
    (b"\x0a\x01\x01", None), (b"\x08\x01", None), (b"\x0a\x02\x02\x01", None),
    (b"\x0a\x01\x2a", "no compatible version found, server: [42], client: [1]"),
    (b"", "no compatible version found, server: [], client: [1]"),
])
def test_version_handshake(peer, ask, versions, message):
    peer.answer("Info", versions)
    assert ask("Info").get("message") == message


def test_launcher_that_is_no_kubevirt_launcher(peer, ask):
    assert ask("Info")["message"].startswith("could not check cmd server version: rpc error: code = ")
