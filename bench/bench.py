#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plays VM starts against any virt-handler binary and prints one line of JSON.

    sudo ./dev bench [--vms N] [--at-once N] [--foreign M] [--handler PATH] ...

Runs in a node of its own (tests/in-node) against chandler-apiserver and one scripted launcher per VM, which sends
the domain of a real VM (11 kB) where ../shared/golden is there. Times are taken from outside the agent: from the
answer to the VMI's POST to the launcher's note of SyncVirtualMachine, and to the API server's note of the PUT with
phase Running. The machine is noisy: compare ratios within one run, never absolute times between runs.

Memory, threads and descriptors are taken four times: idle; after the foreign VMIs came; loaded (all VMs run, the
last write is done); after (some seconds later, when idle threads have ended).
"""
import argparse
import asyncio
import concurrent.futures
import datetime
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/scenario"))
import harness  # noqa: E402
import measure  # noqa: E402
import test_disks  # noqa: E402
import test_hotplug  # noqa: E402

FOREIGN_FIRST = 100000
QUIET_SECONDS = 1.5


def summary(values, digits=2):
    """Median, 99th percentile, and the median deviation from the median."""
    ordered = sorted(values)
    middle = statistics.median(ordered)
    return {"p50": round(middle, digits), "p99": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], digits),
            "mad": round(statistics.median(abs(value - middle) for value in ordered), digits)}


class WatchSpy(threading.Thread):
    """A proxy in front of the API server that notes when the agent opens its first watch of VMIs."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.seen, self.ready = port, None, threading.Event()

    def run(self):
        asyncio.run(self.serve())

    async def serve(self):
        server = await asyncio.start_server(self.relay, "127.0.0.1", self.port)
        self.ready.set()
        await server.serve_forever()

    async def relay(self, reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", 8001)

        async def pump(source, sink, spy):
            while data := await source.read(65536):
                if spy and self.seen is None and b"watch=true" in data and b"virtualmachineinstances" in data:
                    self.seen = time.monotonic()
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(pump(reader, up_writer, True), pump(up_reader, writer, False), return_exceptions=True)


def start_handler(path, directory, master):
    argv = [str(path), "--master", master, "--hostname-override", "node01", "--pod-ip-address", "127.0.0.1",
            "--graceful-shutdown-seconds", "1", "-v", "2"]
    with open(directory / "handler.log", "ab") as log:
        begin = time.monotonic()
        return subprocess.Popen(argv, stderr=log, stdout=subprocess.DEVNULL), begin


def measure_start(path, directory, times=5):
    """Milliseconds from exec to the first watch of VMIs."""
    took = []
    for attempt in range(times):
        spy = WatchSpy(8100 + attempt)
        spy.start()
        spy.ready.wait()
        process, begin = start_handler(path, directory, f"http://127.0.0.1:{spy.port}")
        harness.wait_for(lambda: spy.seen, "the first watch")
        took.append((spy.seen - begin) * 1000)
        process.terminate()
        process.wait(30)
    return {**summary(took), "min": round(min(took), 2)}


def numbered_vmi(index, template, node="node01"):
    vmi = harness.numbered(index, golden=template)
    vmi["metadata"]["labels"]["kubevirt.io/nodeName"] = vmi["status"]["nodeName"] = node
    vmi["status"]["activePods"] = {harness.pod_of(vmi): node}
    return vmi


def post_all(vmis, n_posters=4):
    """When each VMI's POST was answered, by name; a few connections that stay open."""
    posted = {}

    def post(batch):
        connection = http.client.HTTPConnection("127.0.0.1", 8001, timeout=60)
        for vmi in batch:
            connection.request("POST", harness.VMIS, json.dumps(vmi),
                               {"Content-Type": "application/json", "User-Agent": "scenario"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 201, text
            posted[vmi["metadata"]["name"]] = time.monotonic()
        connection.close()

    with concurrent.futures.ThreadPoolExecutor(n_posters) as pool:
        list(pool.map(post, (vmis[i::n_posters] for i in range(n_posters))))
    return posted


def monotonic_of(stamp, wall_offset):
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp() - wall_offset


class Bench:
    def __init__(self, options):
        self.options = options
        self.path = pathlib.Path(options.handler or harness.BUILD / "src/virt-handler").resolve()
        self.directory = pathlib.Path(tempfile.mkdtemp())
        harness.prepare_node()
        test_hotplug.NODE_PODS.parent.mkdir(parents=True, exist_ok=True)
        test_hotplug.NODE_PODS.symlink_to(harness.PODS)
        self.api = harness.ApiServer(self.directory)
        self.api.create_cluster()
        self.launchers, self.containers = [], []
        self.beside = types.SimpleNamespace(api=self.api, directory=self.directory, launchers=self.containers)
        self.result = {"handler": str(self.path), "vms": options.vms, "atOnce": options.at_once, "foreign": options.foreign,
                       "vmiBytes": len(json.dumps(numbered_vmi(1, options.vmi))),
                       "domainBytes": options.domain.stat().st_size if options.domain else None,
                       "programBytes": measure.program_bytes(self.path), "startToWatchMs": measure_start(self.path, self.directory)}
        self.cpu = measure.CpuAccount()
        self.process, _ = start_handler(self.path, self.directory, harness.API)
        self.cpu.adopt(self.process.pid)
        for pid in measure.processes(self.process.pid).values():
            self.cpu.adopt(pid)

    def note_footprint(self, moment):
        self.result[moment] = measure.footprints(self.process.pid)

    def start_launcher(self, vmi):
        launcher = harness.Launcher(self.directory, harness.pod_of(vmi), vmi["metadata"]["uid"], vmi["metadata"]["name"],
                                    domain=self.options.domain)
        if vmi["spec"].get("networks"):
            launcher.give_network()
        if self.options.container_disk:
            test_disks.Disk(self.beside, harness.pod_of(vmi), f"disk_{len(vmi['spec']['volumes']) - 1}.sock", {"disk/a.img": b"one"})
        return launcher

    def bring_foreign(self):
        """VMIs of another node come while the agent watches."""
        before = self.cpu.milliseconds()
        post_all([numbered_vmi(FOREIGN_FIRST + i, self.options.vmi, "node02") for i in range(self.options.foreign)])
        time.sleep(1)
        self.result["foreignCpuMs"] = round(self.cpu.milliseconds() - before, 2)
        self.note_footprint("withForeign")

    def load(self):
        """Starts the VMs in waves; one wave's VMs all run before the next comes."""
        options = self.options
        vmis = [numbered_vmi(index, options.vmi) for index in range(1, options.vms + 1)]
        if options.container_disk:
            for vmi in vmis:
                vmi["spec"]["volumes"].append({"name": "root", "containerDisk": {"image": "registry/disk"}})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.launchers = list(pool.map(self.start_launcher, vmis))
        tail, wall_offset = harness.WriteTail(self.api), time.time() - time.monotonic()
        tail.read()
        writes_before, posted = len(tail.writes), {}
        cpu_before = self.cpu.milliseconds()
        for first in range(0, options.vms, options.at_once):
            posted.update(post_all(vmis[first:first + options.at_once]))
            tail.wait_running(posted, 300)
        tail.wait_quiet(QUIET_SECONDS, 120)
        self.result["cpuMsPerStart"] = round((self.cpu.milliseconds() - cpu_before) / options.vms, 2)
        self.note_footprint("loaded")
        self.note_times(posted, {name: monotonic_of(at, wall_offset) for name, at in tail.running.items()})
        self.result["apiWritesPerStart"] = (len(tail.writes) - writes_before) / options.vms
        if options.plug:
            self.plug_all(vmis)

    def plug_all(self, vmis):
        """One VM after another gets a volume: from the answer to the change of its VMI to the next SyncVirtualMachine, once with the
        volume, and once with a change that asks for nothing."""
        def syncs(launcher):
            return [rpc["timeUs"] / 1000 for rpc in launcher.rpcs() if rpc["method"] == "SyncVirtualMachine"]

        def time_to_sync(launcher, change):
            time.sleep(0.2)  # what the last change brought about is over
            before = len(syncs(launcher))
            change()
            changed = time.monotonic() * 1000
            harness.wait_for(lambda: len(syncs(launcher)) > before, "the launcher to be told")
            return max(0.0, syncs(launcher)[before] - changed)

        took = {"plug": [], "touch": []}
        for index, (vmi, launcher) in enumerate(zip(vmis, self.launchers), 1):
            name = vmi["metadata"]["name"]
            test_hotplug.directory_of(vmi).mkdir(parents=True, exist_ok=True)
            test_hotplug.AttachmentPod(self.beside, index, {"vol": test_hotplug.make_volume(self.beside, f"vol{index}", "x")})
            took["touch"].append(time_to_sync(launcher, lambda: self.api.patch_vmi({"metadata": {"labels": {"touched": "yes"}}}, name)))
            took["plug"].append(time_to_sync(
                launcher, lambda: test_hotplug.plug(self.beside, vmi, test_hotplug.status_of("vol", index))))
        self.result["plugToSyncMs"], self.result["touchToSyncMs"] = summary(took["plug"]), summary(took["touch"])

    def note_times(self, posted, running):
        rpcs = {launcher.vm: launcher.rpcs() for launcher in self.launchers}
        first_sync = {vm: next(rpc["timeUs"] for rpc in calls if rpc["method"] == "SyncVirtualMachine")
                      for vm, calls in rpcs.items()}
        self.result["vmiToSyncMs"] = summary([max(0.0, first_sync[vm] / 1000 - at * 1000) for vm, at in posted.items()])
        self.result["vmiToRunningMs"] = summary([(running[vm] - at) * 1000 for vm, at in posted.items()])
        self.result["rpcsPerStart"] = sum(map(len, rpcs.values())) / len(rpcs)

    def run(self):
        time.sleep(3)  # idle by then, the Go agent too
        self.note_footprint("idle")
        if self.options.foreign:
            self.bring_foreign()
        if self.options.vms:
            self.load()
            time.sleep(self.options.settle)
            self.note_footprint("after")
            self.result["peakRssKiB"] = measure.peak_rss_kib(self.process.pid)

    def end(self):
        self.process.terminate()
        self.process.wait(60)
        self.cpu.remove()
        for process in self.launchers + self.containers:
            process.popen.kill()
        for process in self.launchers + self.containers:
            process.stop()
        self.api.stop()


def golden(name):
    path = harness.GOLDEN / name
    return path if path.exists() else None


def absolute(text):
    """The harness reads relative names from the golden directory."""
    return pathlib.Path(text).resolve()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--vms", type=int, default=1)
    parser.add_argument("--at-once", type=int, help="VMs per wave (default: all)")
    parser.add_argument("--foreign", type=int, default=0, help="VMIs of another node")
    parser.add_argument("--vmi", type=absolute, default=golden("vmi-plain.json"), help="what each VMI looks like")
    parser.add_argument("--domain", type=absolute, default=golden("launcher/GetDomain.json"), help="what each domain looks like")
    parser.add_argument("--container-disk", action="store_true", help="each VMI has a container disk, too")
    parser.add_argument("--plug", action="store_true", help="each VM gets a volume in the end")
    parser.add_argument("--settle", type=float, default=16, help="seconds until memory is taken for the last time")
    parser.add_argument("--handler", help="virt-handler to measure (default: the one just built)")
    options = parser.parse_args()
    options.at_once = options.at_once or max(1, options.vms)
    harness.BUILD = pathlib.Path(options.build).resolve()
    bench = Bench(options)
    try:
        bench.run()
    finally:
        bench.end()
    print(json.dumps(bench.result), flush=True)


if __name__ == "__main__":
    main()
