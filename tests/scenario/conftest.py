# SPDX-License-Identifier: Apache-2.0
"""Each test gets a clean node: no processes, no state, a fresh API server with the golden cluster in it."""
import contextlib
import os
import shutil
import signal
import subprocess

import pytest

import faulty_api
import harness

TOO_LONG = "takes too long with ThreadSanitizer"
NO_JOINING = "with ThreadSanitizer's own thread no process can join a mount namespace"
NOT_WITH_TSAN = {"test_crash_points.py": TOO_LONG, "test_load.py": TOO_LONG, "test_network.py": TOO_LONG,
                 "test_disks.py": NO_JOINING, "test_hotplug.py": NO_JOINING, "test_node_daemons.py": NO_JOINING}


class WholeFile(pytest.Item):
    """Stands for all tests of a file, which are skipped."""

    def runtest(self):
        pytest.skip(NOT_WITH_TSAN[self.path.name])


class SkippedFile(pytest.File):
    def collect(self):
        yield WholeFile.from_parent(self, name="whole file")


def pytest_pycollect_makemodule(module_path, parent):
    if harness.TSAN and module_path.name in NOT_WITH_TSAN:
        return SkippedFile.from_parent(parent, path=module_path)
    return None


def kill_all():
    """Everything in this node but the test runner and its parents; the node has a pid namespace of its own."""
    own = {os.getpid(), os.getppid(), 1}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in own:
            try:
                os.kill(int(entry), signal.SIGKILL)
            except ProcessLookupError:
                pass


class Stage:
    """What a test builds, in the order in which it ends: agent, launchers, API server."""

    def __init__(self, directory):
        self.directory = directory
        self.launchers, self.handler, self.proxy = [], None, None
        self.api = harness.ApiServer(directory)
        self.api.create_cluster()

    def start_handler(self, *flags, **kwargs):
        self.handler = harness.Handler(self.directory, *flags, **kwargs)
        return self.handler

    def behind_proxy(self, *flags, **kwargs):
        """The agent, with a proxy between it and the API server: the proxy."""
        self.proxy = faulty_api.Proxy()
        self.start_handler(*flags, master=faulty_api.URL, **kwargs)
        return self.proxy

    def start_launcher(self, vmi, network=None, **kwargs):
        """@network: arguments of Launcher.give_network(); None: the pod has none"""
        launcher = harness.Launcher(self.directory, harness.pod_of(vmi), vmi["metadata"]["uid"], vmi["metadata"]["name"], **kwargs)
        self.launchers.append(launcher)
        if network is not None:
            launcher.give_network(**network)
        return launcher

    def create(self, vmi):
        return self.api.request("POST", harness.VMIS, vmi)

    def run_vm(self, golden=None, vmi=None, network=None, **changes):
        """A VM that runs: (vmi, launcher)."""
        vmi = vmi or harness.vmi_document(golden, **changes)
        launcher = self.start_launcher(vmi, network)
        self.create(vmi)
        self.api.wait_phase("Running", vmi["metadata"]["name"])
        return vmi, launcher

    def restart_api(self):
        """The API server dies without warning and comes back with its state."""
        self.api.stop(signal.SIGKILL)
        self.api = harness.ApiServer(self.directory)

    def records(self):
        """UIDs of the ghost records on disk."""
        return {path.name for path in (harness.PRIVATE / "ghost-records").iterdir()}

    def end(self):
        """A handler that a test leaves running must end well: with status 0, and without a word from a sanitizer."""
        if self.proxy is not None:
            self.proxy.heal()
        status = self.handler.stop() if self.handler is not None else 0
        if self.proxy is not None:
            self.proxy.close()
        for launcher in self.launchers:
            launcher.stop(signal.SIGKILL)
        self.api.stop()
        return status


@pytest.fixture
def stage(tmp_path):
    harness.prepare_node()
    made = Stage(tmp_path)
    try:
        yield made
        assert made.end() == 0, made.handler.text()
    finally:
        kill_all()


class SmallDisk:
    """The private directory on a file system of its own, which has room for 64 KiB and 32 files."""

    def __init__(self):
        self.bytes, self.files = harness.PRIVATE / "ballast", harness.PRIVATE / "many"
        harness.PRIVATE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=32,mode=0755", "small", harness.PRIVATE], check=True)

    def fill(self, leave=0):
        """No page is left, or so many."""
        with open(self.bytes, "ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        os.truncate(self.bytes, self.bytes.stat().st_size - 4096 * leave)

    def fill_files(self, leave=0):
        """No file or directory can be made, or so many."""
        self.files.mkdir()
        made = []
        with contextlib.suppress(OSError):
            while True:
                made.append(self.files / str(len(made)))
                made[-1].touch()
        for path in made[-1 - leave:-1]:
            path.unlink()

    def make_room(self):
        self.bytes.unlink(missing_ok=True)
        if self.files.exists():
            shutil.rmtree(self.files)

    @staticmethod
    def remove():
        subprocess.run(["umount", "-l", harness.PRIVATE], check=True)


@pytest.fixture
def small_disk():
    made = SmallDisk()
    yield made
    made.remove()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure shows what the programs said last."""
    report = (yield).get_result()
    if report.failed and "tmp_path" in item.funcargs:
        for log in sorted(item.funcargs["tmp_path"].glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            if lines:
                report.sections.append((log.name, "\n".join(lines[-40:])))
