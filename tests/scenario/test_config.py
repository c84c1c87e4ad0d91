# SPDX-License-Identifier: Apache-2.0
"""The KubeVirt object while the agent runs: what of it counts, and that verbosity and rate limit follow it. Spec 08 §6."""
import json
import pathlib
import time

import faulty_api
import harness
import pytest

FOREIGN = "/apis/kubevirt.io/v1/namespaces/default/kubevirts"
NAMESPACE = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
LIMIT = "setting rate limiter to {} QPS and {} Burst"


class Cluster:
    """Changes the KubeVirt object and waits until the agent has seen it."""

    def __init__(self, stage):
        self.stage = stage

    def messages(self):
        return [line["msg"] for line in self.stage.handler.lines() if "msg" in line]

    def count(self, message):
        return self.messages().count(message)

    def patch(self, configuration, path=harness.KUBEVIRT):
        return self.stage.api.request("PATCH", path, {"spec": {"configuration": configuration}}, "application/merge-patch+json")

    def change(self, configuration, *expected):
        """The resource version, once each of `expected` was said once more than before."""
        before = {text: self.count(text) for text in expected}
        version = self.patch(configuration)["metadata"]["resourceVersion"]
        for text, count in before.items():
            harness.wait_for(lambda: self.count(text) > count, f"{text!r} in the log")
        return version


def rate(qps, burst):
    return {"handlerConfiguration": {"restClient": {"rateLimiter": {"tokenBucketRateLimiter": {"qps": qps, "burst": burst}}}}}


def verbosity(level, **nodes):
    return {"developerConfiguration": {"logVerbosity": {"virtHandler": level, "nodeVerbosity": nodes}}}


@pytest.fixture
def cluster(stage):
    stage.start_handler("-v", "7")
    return Cluster(stage)


def test_flag_of_verbosity_is_overridden(cluster):
    """spec 08 trap 3: the defaults are applied before there is any KubeVirt object."""
    said = cluster.messages()
    assert said.index("set verbosity to 2") < said.index(next(m for m in said if m.startswith("Updating cluster config")))
    assert LIMIT.format(50, 100) in said


def test_verbosity_follows(cluster):
    """spec:08-13.1#27"""
    cluster.change(verbosity(9), "set verbosity to 9")
    cluster.change(verbosity(9, node01=4), "set verbosity to 4")
    cluster.change(verbosity(9, node01=0, node02=6), "set verbosity to 9")  # 0: not set
    cluster.patch(verbosity(1))
    cluster.change(verbosity(None), "set verbosity to 2")
    assert "set verbosity to 1" not in cluster.messages()  # lines of level 2 are not wanted then


def test_rate_limit_follows(stage, cluster):
    """One write a second: the fourth leaves no earlier than three seconds after the first; slowness can only add to that."""
    _, launcher = stage.run_vm()
    cluster.change(rate(1, 1), LIMIT.format(1, 1))
    start = time.monotonic()
    for turn in range(4):
        launcher.tell("emit MODIFIED Running Unpaused" if turn % 2 else "emit MODIFIED Paused User")
        stage.api.wait_paused(turn % 2 == 0)
    assert time.monotonic() - start > 2.9


def test_rate_limit_is_a_new_full_bucket(stage, cluster):
    """spec 01 trap 36: what comes after the change takes of the new one, whatever waits for the old one."""
    _, running = stage.run_vm(vmi=harness.numbered(1))
    cluster.change(rate(0.001, 1), LIMIT.format(0.001, 1))
    n_writes = len(stage.api.writes())
    waiting = harness.numbered(2)
    stage.start_launcher(waiting)
    stage.create(waiting)  # a start takes more than one write
    harness.wait_for(lambda: len(stage.api.writes()) > n_writes, "the one token to be taken")
    cluster.change(rate(0.001, 50), LIMIT.format(0.001, 50))
    running.tell("emit MODIFIED Paused User")
    stage.api.wait_paused(True, "vm1")


def test_bucket_is_filled_by_a_change_of_nothing(stage, cluster):
    """Any change of any KubeVirt object replaces it: more writes than one bucket has."""
    _, launcher = stage.run_vm()
    cluster.change(rate(0.001, 5), LIMIT.format(0.001, 5))
    for turn in range(8):
        before = cluster.count(LIMIT.format(0.001, 5))
        stage.api.request("PATCH", harness.KUBEVIRT, {"metadata": {"labels": {"turn": str(turn)}}}, "application/merge-patch+json")
        harness.wait_for(lambda: cluster.count(LIMIT.format(0.001, 5)) > before, "the new bucket")
        launcher.tell("emit MODIFIED Running Unpaused" if turn % 2 else "emit MODIFIED Paused User")
        stage.api.wait_paused(turn % 2 == 0)


def test_invalid_object_changes_nothing(stage, cluster):
    """spec:08-13.1#22"""
    good = cluster.change(verbosity(5), "set verbosity to 5")
    bad = cluster.change({"developerConfiguration": {"memoryOvercommit": -1, "logVerbosity": {"virtHandler": 8}}}, "set verbosity to 5")
    text = f"Invalid cluster config using KubeVirt resource version '{bad}', falling back to last good resource version '{good}'"
    errors = [line for line in stage.handler.lines() if line.get("msg") == text]
    assert [(line["level"], line["reason"]) for line in errors] == [("error", "invalid memoryOvercommit in ConfigMap: -1")]
    cluster.change({"developerConfiguration": {"memoryOvercommit": None}}, "set verbosity to 8")


def test_invalid_object_at_the_start(stage):
    """The defaults, until it is mended; the agent runs all the same."""
    cluster = Cluster(stage)
    cluster.patch({"imagePullPolicy": "Sometimes", **rate(7, 9)})
    stage.start_handler()
    assert LIMIT.format(7, 9) not in cluster.messages()
    assert any(m.endswith("falling back to last good resource version ''") for m in cluster.messages())
    cluster.change({"imagePullPolicy": None}, LIMIT.format(7, 9))


def test_deleted_object_stays_in_force(stage, cluster):
    cluster.change({**verbosity(5), **rate(7, 9)}, LIMIT.format(7, 9))
    document = stage.api.get(harness.KUBEVIRT)
    stage.api.request("DELETE", harness.KUBEVIRT)
    harness.wait_for(lambda: stage.api.get(harness.KUBEVIRT) is None, "the object to be gone")
    stage.run_vm()
    assert cluster.messages().count("set verbosity to 2") <= 2  # those of the start
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        document["metadata"].pop(key, None)
    document["spec"]["configuration"] = {}
    before = cluster.count(LIMIT.format(50, 100))
    stage.api.request("POST", harness.KUBEVIRT.rsplit("/", 1)[0], document)
    harness.wait_for(lambda: cluster.count(LIMIT.format(50, 100)) > before, "the new object to count")


def test_objects_that_do_not_count(stage, cluster):
    cluster.change(verbosity(5), "set verbosity to 5")
    for path, name, status in ((FOREIGN, "other", {"phase": "Deployed"}), (harness.KUBEVIRT.rsplit("/", 1)[0], "early", {})):
        before = cluster.count("set verbosity to 5")
        stage.api.request("POST", path, {
            "kind": "KubeVirt", "apiVersion": "kubevirt.io/v1", "metadata": {"name": name}, "spec": {"configuration": verbosity(9)},
            "status": status})
        harness.wait_for(lambda: cluster.count("set verbosity to 5") > before, "the callbacks")  # they run for any object
    assert "set verbosity to 9" not in cluster.messages()


@pytest.fixture
def own_namespace():
    """A function that puts the service account's file into the agent's pod."""
    def write(text):
        NAMESPACE.parent.mkdir(parents=True, exist_ok=True)
        NAMESPACE.write_text(text)

    yield write
    NAMESPACE.unlink(missing_ok=True)


def test_only_the_own_namespace_counts(stage, own_namespace):
    """spec 08 §3, trap 36"""
    own_namespace(" default\n")
    cluster = Cluster(stage)
    cluster.patch(rate(7, 9))
    stage.start_handler()
    assert LIMIT.format(7, 9) not in cluster.messages()
    stage.api.request("POST", FOREIGN, {
        "kind": "KubeVirt", "apiVersion": "kubevirt.io/v1", "metadata": {"name": "mine"}, "spec": {"configuration": rate(8, 10)},
        "status": {"phase": "Deployed"}})
    harness.wait_for(lambda: LIMIT.format(8, 10) in cluster.messages(), "the object of the own namespace to count")


def test_namespace_that_cannot_be_read(stage, own_namespace):
    own_namespace("")
    NAMESPACE.unlink()
    NAMESPACE.mkdir()
    try:
        handler = stage.start_handler(wait=False)
        assert handler.wait() == 2
        assert f"Error searching for namespace: failed to determine namespace from {NAMESPACE}: " in handler.text()
    finally:
        NAMESPACE.rmdir()
        stage.handler = None


def test_no_object_at_all(stage):
    """The defaults; VMs run."""
    stage.api.request("DELETE", harness.KUBEVIRT)
    stage.start_handler()
    cluster = Cluster(stage)
    assert not any(m.startswith("Updating cluster config") for m in cluster.messages())
    assert LIMIT.format(50, 100) in cluster.messages()


def test_options_follow(stage, cluster):
    """A VMI that starts after the change is sent with the new configuration: ClusterConfig is field 7."""
    _, before = stage.run_vm(vmi=harness.numbered(1))
    cluster.change({"virtualMachineOptions": {"disableSerialConsoleLog": {}}, **rate(70, 90)}, LIMIT.format(70, 90))
    _, after = stage.run_vm(vmi=harness.numbered(2))
    first = {vm: next(r["options"] for r in vm.rpcs() if r["method"] == "SyncVirtualMachine") for vm in (before, after)}
    assert "3a021801" in first[before] and "3a0418012001" in first[after]


def test_gate_of_plugins_without_their_kind(stage):
    """The start waits for their list; the gate that asked for it may be switched off again."""
    cluster = Cluster(stage)
    cluster.patch({"developerConfiguration": {"featureGates": ["Plugins"]}})
    stage.proxy = faulty_api.Proxy()
    asked = stage.proxy.when(faulty_api.status(404), "GET", "/plugins")
    stage.start_handler(master=faulty_api.URL, wait=False)
    harness.wait_for(lambda: asked.hits > 0, "the agent to ask for plugins")
    assert not stage.handler.is_up()
    cluster.patch({"developerConfiguration": {"featureGates": []}})
    harness.wait_for(stage.handler.is_up, "the agent to start")


def test_name_of_the_node_is_the_flags(stage):
    """field:FR-Q13: whatever the machine is called."""
    stage.start_handler(prefix=("unshare", "--uts", "sh", "-c", 'hostname N-1.example && exec "$@"', "sh"))
    stage.run_vm()
    writes = stage.api.writes()
    assert any(write["path"] == "/api/v1/nodes/node01" for write in writes)
    assert all("N-1" not in json.dumps(write) for write in writes)
    assert "N-1" not in stage.handler.text()
