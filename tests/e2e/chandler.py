# SPDX-License-Identifier: Apache-2.0
"""The command `chandler` and what it starts, in a state directory of its own."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import tempfile
import time

import pytest

PATIENCE = 180  # seconds for what has to come; an emulated guest on a busy machine is slow
BUILD = os.environ.get("CH_BUILD", "build")
PROGRAM = os.path.join(BUILD, "src", "chandler")
IMAGES = os.path.join(BUILD, "guest", "images")
CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLES = os.path.join(CHECKOUT, "examples")
TINY = os.path.join(EXAMPLES, "tiny.yaml")
PROGRAMS = ("crun", "libvirtd", "qemu-system-x86_64", "qemu-img")

NEEDS = [  # what a test of the whole chain is skipped without
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces and mounts"),
    pytest.mark.skipif(not os.path.exists(PROGRAM), reason=f"{PROGRAM} is not built"),
    pytest.mark.skipif(any(shutil.which(p, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for p in PROGRAMS),
                       reason="needs " + ", ".join(PROGRAMS)),
    pytest.mark.skipif(not os.path.isdir(os.path.join(IMAGES, "chandler")),
                       reason=f"no guest image in {IMAGES}: build-aux/guest/build.sh makes it"),
]


class Result:
    def __init__(self, process):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr

    def __repr__(self):
        return f"status {self.status}\n{self.out}\n{self.err}"


class Chandler:
    def __init__(self):
        self.state = tempfile.mkdtemp(prefix="chandler-", dir="/tmp")
        self.environment = dict(os.environ, CHANDLER_STATE=self.state)
        os.symlink(os.path.abspath(IMAGES), os.path.join(self.state, "images"))

    def __call__(self, *arguments, timeout=600, stdin=""):
        return Result(subprocess.run([PROGRAM, *arguments], env=self.environment, capture_output=True, text=True,
                                     input=stdin, timeout=timeout, check=False))

    def ok(self, *arguments, **keywords):
        result = self(*arguments, **keywords)
        assert result.status == 0, (result, self.logs())
        return result.out

    def fails(self, *arguments, **keywords):
        """One clear sentence and exit status 1."""
        result = self(*arguments, **keywords)
        assert result.status == 1, result
        assert result.err.startswith("chandler: "), result
        return result.err

    def kubectl(self, *arguments):
        return subprocess.run(["kubectl", "--kubeconfig", os.path.join(self.state, "kubeconfig"), *arguments],
                              capture_output=True, text=True, timeout=60, check=True).stdout

    def vmi(self, name="tiny"):
        return json.loads(self.ok("get", "vmi", name, "-o", "json"))

    def phase(self, name="tiny"):
        return self.vmi(name).get("status", {}).get("phase", "")

    def condition(self, kind, name="tiny"):
        conditions = self.vmi(name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def pid_of(self, program):
        """The one process of ours that runs this program."""
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
                continue
            if words[0].endswith(program.encode()) and any(self.state.encode() in word for word in words):
                return int(entry)
        return 0

    def logs(self):
        text = []
        for folder, _, names in os.walk(os.path.join(self.state, "log")):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    text.append(f"--- {name}\n" + "".join(file.readlines()[-15:]))
        return "\n".join(text)

    def remove(self):
        self("down")
        self("down", "--keep-vms")
        shutil.rmtree(self.state, ignore_errors=True)


def manifest(folder, name, annotations=None, **changes):
    """A VM without disks; `changes` replace members of spec.domain, `networks` is spec's."""
    networks = changes.pop("networks", None)
    domain = {"memory": {"guest": "64Mi"}, "devices": {"autoattachPodInterface": False}}
    domain.update(changes)
    document = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
                "spec": {"domain": domain, "terminationGracePeriodSeconds": 1}}
    if annotations:
        document["metadata"]["annotations"] = annotations
    if networks:
        document["spec"]["networks"] = networks
    path = os.path.join(str(folder), f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    return path


def wait(condition, what, pause=0.2):
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(pause)


class Console:
    """`chandler console` on a terminal of its own."""

    def __init__(self, chandler, name="tiny"):
        self.master, slave = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen([PROGRAM, "console", name], env=chandler.environment, stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True)
        os.close(slave)
        self.until("Ctrl-] leaves")

    def send(self, text):
        os.write(self.master, text.encode())

    def until(self, wanted):
        self.match(re.escape(wanted))

    def match(self, pattern):
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, f"the console does not say {pattern!r}:\n{self.text}"
            if select.select([self.master], [], [], 0.5)[0]:
                try:
                    self.text += os.read(self.master, 4096).decode(errors="replace")
                except OSError:  # the other side is closed
                    assert re.search(pattern, self.text), self.text

    def status(self):
        try:
            return self.process.wait(PATIENCE)
        finally:
            os.close(self.master)
