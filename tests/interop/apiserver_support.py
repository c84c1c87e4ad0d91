# SPDX-License-Identifier: Apache-2.0
"""Starts chandler-apiserver for the interop tests and knows where everything is."""

import os
import pathlib
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CH_BUILD", SOURCE / "build")).resolve()
PROGRAM = BUILD / "src" / "chandler-apiserver"
TIMEOUT_S = 60  # a busy machine is slow

VMI = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "vm"},
    "spec": {
        "domain": {
            "memory": {"guest": "64Mi"},
            "devices": {"disks": [{"name": "scratch", "disk": {"bus": "virtio"}}]},
        },
        "volumes": [{"name": "scratch", "emptyDisk": {"capacity": "1Gi"}}],
    },
}


class Lines:
    """The lines of a pipe, each with a deadline."""

    def __init__(self, pipe):
        self.queue = queue.Queue()
        threading.Thread(target=self._read, args=(pipe,), daemon=True).start()

    def _read(self, pipe):
        for line in pipe:
            self.queue.put(line.rstrip("\n"))
        self.queue.put(None)

    def next(self, timeout_s=TIMEOUT_S):
        """None: the end."""
        return self.queue.get(timeout=timeout_s)


class ApiServer:
    """One server on a state directory; start() may be called again after stop() or kill()."""

    def __init__(self, *flags, state=None, wrapper=()):
        """@wrapper: a command that ends by executing the one behind it"""
        self.wrapper = wrapper
        self.temporary = state is None
        self.state = pathlib.Path(state or tempfile.mkdtemp(prefix="chandler-apiserver-"))
        self.flags = flags
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [*self.wrapper, PROGRAM, "--state", self.state, "--insecure-http", "0", *self.flags],
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = Lines(self.process.stdout)
        self.url = lines.next()
        self.insecure_url = lines.next()
        assert self.url.startswith("https://") and self.insecure_url.startswith("http://")
        return self

    @property
    def kubeconfig(self):
        return self.state / "kubeconfig"

    @property
    def token(self):
        return (self.state / "token").read_text()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(TIMEOUT_S) == 0

    def kill(self):
        self.process.kill()
        self.process.wait(TIMEOUT_S)

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.stop()
        if self.temporary:
            shutil.rmtree(self.state)


def wait_until(condition, timeout_s=TIMEOUT_S):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
