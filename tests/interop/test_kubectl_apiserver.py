# SPDX-License-Identifier: Apache-2.0
"""kubectl against chandler-apiserver. CH_KUBECTL names another kubectl than the one on the PATH."""

import json
import os
import re
import shutil
import subprocess

import pytest

from apiserver_support import TIMEOUT_S, VMI, ApiServer, Lines

KUBECTL = os.environ.get("CH_KUBECTL") or shutil.which("kubectl")

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


class Kubectl:
    def __init__(self, server, home):
        self.env = {
            **os.environ,
            "KUBECONFIG": str(server.kubeconfig),
            "HOME": str(home),  # its discovery cache
        }

    def run(self, *args, stdin=None, status=0):
        done = subprocess.run(
            [KUBECTL, *args],
            input=stdin,
            env=self.env,
            text=True,
            capture_output=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    def start(self, *args):
        return subprocess.Popen(
            [KUBECTL, *args], env=self.env, text=True, stdout=subprocess.PIPE
        )

    def create(self, document):
        return self.run("create", "-f", "-", stdin=json.dumps(document))


@pytest.fixture
def kubectl(tmp_path):
    with ApiServer() as server:
        yield Kubectl(server, tmp_path)


def columns(text):
    """The words of each line, split at two or more spaces."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def running(name="vm", **status):
    return {
        **VMI,
        "metadata": {"name": name, "labels": {"app": name}},
        "status": {"phase": "Running", "nodeName": "node01", **status},
    }


def test_create_get_delete(kubectl):
    assert kubectl.create(VMI) == "virtualmachineinstance.kubevirt.io/vm created\n"
    for name in "vmi", "vmis", "virtualmachineinstance", "virtualmachineinstances.kubevirt.io":
        assert kubectl.run("get", name, "-o", "name").strip().endswith("/vm")
    stored = json.loads(kubectl.run("get", "vmi", "vm", "-o", "json"))
    assert stored["spec"] == VMI["spec"]
    assert stored["metadata"]["namespace"] == "default"
    assert 'already exists' in subprocess_error(kubectl, VMI)
    assert 'deleted' in kubectl.run("delete", "vmi", "vm")
    assert 'NotFound' in kubectl.run("get", "vmi", "vm", status=1)


def test_typing_errors_are_warned_of(kubectl):
    document = {**VMI, "spec": {**VMI["spec"], "terminationGracePeriodSecond": 1}}
    done = subprocess.run([KUBECTL, "apply", "-f", "-"], input=json.dumps(document), env=kubectl.env, text=True,
                          capture_output=True, timeout=TIMEOUT_S, check=True)
    assert done.stdout.endswith("created\n")
    assert done.stderr == 'Warning: unknown field "spec.terminationGracePeriodSecond"\n'


def subprocess_error(kubectl, document):
    return kubectl.run("create", "-f", "-", stdin=json.dumps(document), status=1)


def test_table_is_as_on_a_cluster(kubectl):
    kubectl.create(
        running(
            interfaces=[{"ipAddress": "10.0.2.2"}],
            conditions=[
                {"type": "Ready", "status": "True"},
                {"type": "LiveMigratable", "status": "False"},
            ],
        )
    )
    narrow = columns(kubectl.run("get", "vmi"))
    assert narrow[0] == ["NAME", "AGE", "PHASE", "IP", "NODENAME", "READY"]
    assert narrow[1][0] == "vm" and narrow[1][2:] == ["Running", "10.0.2.2", "node01", "True"]
    wide = columns(kubectl.run("get", "vmi", "-o", "wide"))
    assert wide[0][6:] == ["LIVE-MIGRATABLE", "PAUSED"]
    assert wide[1][6:] == ["False"]
    everywhere = columns(kubectl.run("get", "vmi", "-A"))
    assert everywhere[0][:2] == ["NAMESPACE", "NAME"] and everywhere[1][:2] == ["default", "vm"]


def test_namespaces_nodes_pods_and_events_have_their_columns(kubectl):
    kubectl.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node01"}})
    kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "launcher"},
            "spec": {"nodeName": "node01", "containers": [{"name": "compute", "image": "x"}]},
        }
    )
    kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "vm.1"},
            "involvedObject": {"kind": "VirtualMachineInstance", "name": "vm", "namespace": "default"},
            "type": "Normal",
            "reason": "Started",
            "message": "VirtualMachineInstance started.",
        }
    )
    assert columns(kubectl.run("get", "ns")) [0] == ["NAME", "STATUS", "AGE"]
    assert columns(kubectl.run("get", "nodes"))[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert columns(kubectl.run("get", "po"))[1][:4] == ["launcher", "0/1", "Pending", "0"]
    events = columns(kubectl.run("get", "ev"))
    assert events[0] == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert events[1][2:] == ["Started", "virtualmachineinstance/vm", "VirtualMachineInstance started."]
    assert "Roles:" in kubectl.run("describe", "node", "node01")
    assert "compute" in kubectl.run("describe", "pod", "launcher")


def test_describe_shows_events(kubectl):
    kubectl.create(VMI)
    uid = kubectl.run("get", "vmi", "vm", "-o", "jsonpath={.metadata.uid}")
    kubectl.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "vm.1"},
            "involvedObject": {
                "kind": "VirtualMachineInstance",
                "name": "vm",
                "namespace": "default",
                "uid": uid,
            },
            "type": "Warning",
            "reason": "SyncFailed",
            "message": "no such image",
            "source": {"component": "virt-handler"},
        }
    )
    text = kubectl.run("describe", "vmi", "vm")
    assert "Capacity:  1Gi" in text
    assert re.search(r"Warning\s+SyncFailed\s+.*virt-handler\s+no such image", text)


def test_watch_shows_every_change(kubectl):
    kubectl.create(running())
    process = kubectl.start("get", "vmi", "-w", "--no-headers")
    try:
        lines = Lines(process.stdout)
        assert lines.next().split()[2:3] == ["Running"]
        for phase in "Paused", "Failed":
            kubectl.run(
                "patch", "vmi", "vm", "--type", "merge", "-p",
                json.dumps({"status": {"phase": phase}}),
            )
            assert lines.next().split()[2] == phase
    finally:
        process.kill()
        process.wait()


def test_label_select_annotate_patch(kubectl):
    kubectl.create(running("a"))
    kubectl.create(running("b"))
    kubectl.run("label", "vmi", "a", "tier=web")
    kubectl.run("annotate", "vmi", "a", "note=hello world")
    assert kubectl.run("get", "vmi", "-l", "tier in (web)", "-o", "name").count("\n") == 1
    assert kubectl.run("get", "vmi", "-l", "tier!=web", "-o", "name").strip().endswith("/b")
    assert kubectl.run(
        "get", "vmi", "--field-selector", "metadata.name=b", "-o", "name"
    ).strip().endswith("/b")
    kubectl.run(
        "patch", "vmi", "a", "--type", "json", "-p",
        '[{"op": "remove", "path": "/metadata/labels/tier"}]',
    )
    assert kubectl.run("get", "vmi", "-l", "tier", "-o", "name") == ""
    kubectl.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    kubectl.run("patch", "node", "n", "-p", '{"metadata": {"labels": {"x": "y"}}}')  # strategic
    assert kubectl.run("get", "nodes", "-l", "x=y", "-o", "name") == "node/n\n"


def test_wait_for_a_condition(kubectl):
    kubectl.create(running(conditions=[{"type": "Ready", "status": "False"}]))
    process = kubectl.start("wait", "--for=condition=Ready", "vmi/vm", f"--timeout={TIMEOUT_S}s")
    kubectl.run(
        "patch", "vmi", "vm", "--type", "merge", "-p",
        json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    )
    assert "condition met" in process.communicate(timeout=TIMEOUT_S)[0]
    assert "timed out" in kubectl.run(
        "wait", "--for=condition=Paused", "vmi/vm", "--timeout=3s", status=1
    )


def test_apply_creates_and_changes(kubectl):
    manifest = json.loads(json.dumps(VMI))
    assert "created" in kubectl.run("apply", "-f", "-", stdin=json.dumps(manifest))
    assert "unchanged" in kubectl.run("apply", "-f", "-", stdin=json.dumps(manifest))
    manifest["spec"]["domain"]["memory"]["guest"] = "128Mi"
    assert "configured" in kubectl.run("apply", "-f", "-", stdin=json.dumps(manifest))
    assert kubectl.run("get", "vmi", "vm", "-o", "jsonpath={.spec.domain.memory.guest}") == "128Mi"
    for value in "1", "2":  # a kind that is merged strategically
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c"},
            "data": {"x": value},
        }
        kubectl.run("apply", "-f", "-", stdin=json.dumps(config))
    assert kubectl.run("get", "cm", "c", "-o", "jsonpath={.data.x}") == "2"


def test_yaml_comes_back(kubectl):
    kubectl.create(running())
    text = kubectl.run("get", "vmi", "vm", "-o", "yaml")
    again = text.replace("name: vm", "name: vm2").replace("resourceVersion:", "#")
    assert "created" in kubectl.run("create", "-f", "-", stdin=again)
    assert "vm2" in kubectl.run("get", "vmi", "vm2", "-o", "yaml")


def test_finalizer_holds_until_it_goes(kubectl):
    manifest = json.loads(json.dumps(VMI))
    manifest["metadata"]["finalizers"] = ["kubevirt.io/foregroundDeleteVirtualMachine"]
    kubectl.create(manifest)
    kubectl.run("delete", "vmi", "vm", "--wait=false")
    assert kubectl.run("get", "vmi", "vm", "-o", "jsonpath={.metadata.deletionTimestamp}") != ""
    kubectl.run(
        "patch", "vmi", "vm", "--type", "merge", "-p", '{"metadata": {"finalizers": null}}'
    )
    kubectl.run("get", "vmi", "vm", status=1)


def test_invalid_vmi_is_refused_by_field(kubectl):
    manifest = json.loads(json.dumps(VMI))
    manifest["spec"]["domain"]["devices"]["disks"][0]["name"] = "nothing"
    error = subprocess_error(kubectl, manifest)
    assert 'The VirtualMachineInstance "vm" is invalid: spec.domain.devices.disks[0].name' in error
    assert kubectl.run("get", "vmi", "-o", "name") == ""


def test_namespaces_come_and_go(kubectl):
    kubectl.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    kubectl.run("create", "-n", "x", "-f", "-", stdin=json.dumps(VMI))
    assert 'deleted' in kubectl.run("delete", "ns", "x")
    assert "No resources found" in subprocess.run(
        [KUBECTL, "get", "vmi", "-A"], env=kubectl.env, text=True, capture_output=True
    ).stderr


def test_delete_all(kubectl):
    for name in "a", "b", "c":
        kubectl.create(running(name))
    kubectl.run("delete", "vmi", "-l", "app in (a,b)")
    assert kubectl.run("get", "vmi", "-o", "name").strip().endswith("/c")
    kubectl.run("delete", "vmi", "--all")
    assert kubectl.run("get", "vmi", "-o", "name") == ""


def test_kinds_are_discovered(kubectl):
    text = kubectl.run("api-resources", "-o", "name")
    assert "virtualmachineinstances.kubevirt.io" in text and "nodes" in text
    assert "kubevirt.io/v1" in kubectl.run("api-versions")
    assert "Server Version" in kubectl.run("version")


def test_create_commands(kubectl):
    """From 1.31 on, kubectl sends these as protobuf and as nothing else."""
    kubectl.run("create", "namespace", "x")
    kubectl.run("create", "serviceaccount", "bob", "-n", "x")
    kubectl.run("create", "configmap", "c", "--from-literal=a=b")
    kubectl.run("create", "secret", "generic", "s", "--from-literal=user=root")
    assert kubectl.run("get", "cm", "c", "-o", "jsonpath={.data.a}") == "b"
    assert kubectl.run("get", "secret", "s", "-o", "jsonpath={.data.user}") == "cm9vdA=="
    assert kubectl.run("get", "sa", "-n", "x", "-o", "name") == "serviceaccount/bob\n"


def test_get_all_and_diff(kubectl):
    manifest = json.loads(json.dumps(VMI))
    kubectl.run("apply", "-f", "-", stdin=json.dumps(manifest))
    assert "unchanged" in kubectl.run("apply", "-f", "-", stdin=json.dumps(manifest))
    assert kubectl.run("diff", "-f", "-", stdin=json.dumps(manifest)) == ""
    assert "virtualmachineinstance.kubevirt.io/vm" in kubectl.run("get", "all")
    manifest["spec"]["domain"]["memory"]["guest"] = "65Mi"
    kubectl.run("diff", "-f", "-", stdin=json.dumps(manifest), status=1)


def test_what_is_not_there_says_so(kubectl):
    """A clear error at once, never a wait."""
    kubectl.run("run", "p", "--image=x")
    kubectl.create(VMI)
    for command, words in (
        ("explain vmi", "couldn't find resource"),
        ("auth can-i create vmi", "could not find the requested resource"),
        ("top pod", "not available"),
        ("logs p", "could not find the requested resource"),
        ("exec p -- ls", "could not find the requested resource"),
        ("create deployment d --image=x", "could not find the requested resource"),
        ("scale vmi vm --replicas=2", "could not find the requested resource"),
        ("get vmi vm --subresource=status", "could not find the requested resource"),
        ("get vmi --field-selector status.phase=Running", "field label not supported"),
        ("patch vmi vm -p {}", "not supported"),
        ("get foo", "doesn't have a resource type"),
        ("delete ns default", "may not be deleted"),
        ("wait vmi/vm --for=condition=Ready --timeout=3s", "timed out"),
    ):
        assert words in kubectl.run(*command.split(), status=1), command
