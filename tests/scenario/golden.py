# SPDX-License-Identifier: Apache-2.0
"""Traces of our agent in the golden traces' format, and their comparison by JSON path.

What may differ is written down here and nowhere else:
 * where an RPC is repeated, ours may repeat it less often, and then its event too; never more often. Recordings merge
   repeated writes; ours has none but of the node, which is marked as the agent ends and as the next one starts;
 * members that the Go agent drops because they are empty or unknown to it, and ours keeps;
 * OPEN: what belongs to parts of the agent that are not built yet, by name.
"""
import copy
import itertools
import json
import re
import sys

import harness
import podnet

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")

NODE = "/api/v1/nodes/node01"

# Parts of the original's behaviour whose owners in ours are not built yet.
OPEN = {
    "node labels": lambda path, write: path == NODE and write["ct"] == "application/json-patch+json",
    "KSM": lambda path, write: path == NODE and "ksm" in json.dumps(write["body"]),
    "heartbeat": lambda path, write: path == NODE and "heartbeat" in json.dumps(write["body"]),
}

QUIET_RPCS = {"Info", "Ping", "GetGuestInfo"}


def without_times(value):
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_times(v) for v in value]
    return "T" if isinstance(value, str) and TIME.match(value) else value


def with_times(value):
    """A recording's document as something to start from: some time in the place of those that were taken out."""
    if isinstance(value, dict):
        return {k: with_times(v) for k, v in value.items()}
    if isinstance(value, list):
        return [with_times(v) for v in value]
    return "2026-11-29T00:00:00Z" if value == "T" else value


def without_empty(value):
    """Go leaves empty members out when it writes what it has read; null, [] and absent are the same to every reader."""
    if isinstance(value, dict):
        pruned = {k: without_empty(v) for k, v in value.items()}
        return {k: v for k, v in pruned.items() if v not in (None, [], {})}
    if isinstance(value, list):
        return [without_empty(v) for v in value]
    return value


def reduce_write(record):
    """One recorded request as the golden traces keep it."""
    body = record["body"]
    if isinstance(body, str):
        body = json.loads(body)
    path = record["path"].split("?")[0]
    write = {"method": record["method"], "ct": record.get("contentType", "application/json").split(";")[0]}
    if "/events" in path:
        path = "/events"
        if record["method"] == "POST":
            body = {"component": body["source"], "message": body["message"],
                    "obj": f"{body['involvedObject']['kind']}/{body['involvedObject']['name']}",
                    "reason": body["reason"], "type": body["type"]}
        else:
            body = {"message": body["message"]}
    elif "/virtualmachineinstances/" in path:
        meta = body["metadata"]
        body = {"status": body["status"], "spec": body["spec"], "labels": meta.get("labels"),
                "annotations": meta.get("annotations"), "finalizers": meta.get("finalizers")}
    return path, dict(write, body=without_times(body))


def reduce_vmi(vmi):
    """What the golden traces keep of a VMI at the end."""
    return {"status": vmi["status"], "labels": vmi["metadata"].get("labels"), "finalizers": vmi["metadata"].get("finalizers")}


def trace_of(stage, vmis, launchers):
    """What a scenario left behind."""
    writes = {}
    for record in stage.api.writes():
        path, write = reduce_write(record)
        writes.setdefault(path, []).append(write)
    rpcs = {}
    for launcher in launchers:
        rpcs[launcher.vm] = [rpc["method"] + (":" + rpc["options"] if rpc.get("options") else "")
                             for rpc in launcher.rpcs() if rpc["method"] not in QUIET_RPCS]
    pods = {}
    for launcher in launchers:
        run = launcher.root / "run"
        pods[launcher.vm] = ({"kubevirt": harness.tree(run / "kubevirt"), "kubevirt-private": harness.tree(run / "kubevirt-private")}
                             if launcher.popen.poll() is None else None)
    return {
        "vmi": {name: reduce_vmi(stage.api.vmi(name)) for name in vmis}, "writes": writes, "rpcs": rpcs,
        "state": harness.tree(harness.PRIVATE), "share": harness.tree(harness.SHARE), "pod": pods,
    }


def normalise(trace):
    trace = without_empty(without_times(copy.deepcopy(trace)))
    writes = {}
    for path, list_ in trace.get("writes", {}).items():
        writes[path] = [w for w in list_ if not any(is_open(path, w) for is_open in OPEN.values())]
    if NODE in writes:
        writes[NODE] = [write for write, _ in itertools.groupby(writes[NODE])]
    trace["writes"], trace["rpcs"] = writes, trace.get("rpcs", {})
    trace["share"] = trace.get("share") or {}
    if harness.TSAN:  # its own thread keeps the hands from joining the node's mounts
        trace["share"] = {k: v for k, v in trace["share"].items() if not k.startswith("/daemons")}
    return trace


def as_often(golden, ours):
    """Our RPCs, each repeated as often as the recording repeats it, where ours does so less often."""
    runs = [[(item, len(list(run))) for item, run in itertools.groupby(items)] for items in (golden, ours)]
    pairs = itertools.zip_longest(runs[1], runs[0][:len(runs[1])], fillvalue=(None, 0))
    return [item for (item, n), (other, n_other) in pairs for _ in range(max(n, n_other if other == item else 0))]


def without_missed(golden, ours):
    """The recording's events without those repetitions that are not among ours."""
    kept = []
    for event in golden:
        if event["method"] != "PATCH" or ours[len(kept):len(kept) + 1] == [event]:
            kept.append(event)
    return kept


def allow_fewer(golden, ours):
    """Repeats our RPCs as often as the recording does, and takes from it the events of those that were not there."""
    rpcs = {vm: as_often(golden["rpcs"].get(vm, []), list_) for vm, list_ in ours["rpcs"].items()}
    if rpcs != ours["rpcs"] and "/events" in golden["writes"]:
        golden["writes"]["/events"] = without_missed(golden["writes"]["/events"], ours["writes"].get("/events", []))
    ours["rpcs"] = rpcs


def differences(golden, ours, path=""):
    """Lines "path: golden X, ours Y"."""
    if isinstance(golden, dict) and isinstance(ours, dict):
        for key in sorted(golden.keys() | ours.keys()):
            if key not in ours:
                yield f"{path}.{key}: golden {short(golden[key])}, ours has none"
            elif key not in golden:
                yield f"{path}.{key}: golden has none, ours {short(ours[key])}"
            else:
                yield from differences(golden[key], ours[key], f"{path}.{key}")
    elif isinstance(golden, list) and isinstance(ours, list):
        for i in range(max(len(golden), len(ours))):
            if i >= len(ours):
                yield f"{path}[{i}]: golden {short(golden[i])}, ours has none"
            elif i >= len(golden):
                yield f"{path}[{i}]: golden has none, ours {short(ours[i])}"
            else:
                yield from differences(golden[i], ours[i], f"{path}[{i}]")
    elif golden != ours:
        yield f"{path}: golden {short(golden)}, ours {short(ours)}"


def short(value):
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 400 else text[:400] + "..."


SECTIONS = ("vmi", "writes", "rpcs", "state", "share", "pod")


def load(name):
    return json.loads((harness.GOLDEN / f"{name}.json").read_text())


def compare_networks(name, launchers):
    """The differences between the pods' networks of the golden trace of this name and ours."""
    golden = load(name)["net"]
    lines = []
    for launcher in launchers:
        lines += differences(podnet.from_golden(golden[launcher.vm]), podnet.look(launcher), f"net.{launcher.vm}")
    return lines


def compare(name, ours, sections=SECTIONS):
    """The differences between the golden trace of this name and ours."""
    golden = load(name)
    golden, ours = normalise(golden), normalise(ours)
    allow_fewer(golden, ours)
    lines = []
    for section in sections:
        lines += differences(golden.get(section), ours.get(section), section)
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: golden.py SCENARIO TRACE.json")
    with open(sys.argv[2]) as file:
        found = compare(sys.argv[1], json.load(file))
    print("\n".join(found) or "no difference")
    sys.exit(1 if found else 0)
