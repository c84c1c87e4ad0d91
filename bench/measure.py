# SPDX-License-Identifier: Apache-2.0
"""What the kernel says about a program and its children: memory, threads, descriptors, CPU time."""
import os
import pathlib
import shutil
import time

CGROUPS = pathlib.Path("/sys/fs/cgroup")


def processes(root_pid):
    """{name: pid} of a program and the children it keeps; a name's second bearer gets its pid appended."""
    found = {}
    for entry in sorted((int(e) for e in os.listdir("/proc") if e.isdigit()), key=lambda pid: pid != root_pid):
        try:
            text = pathlib.Path(f"/proc/{entry}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        name, fields = text[text.index("(") + 1:text.rindex(")")], text.rsplit(")", 1)[1].split()
        if entry == root_pid or int(fields[1]) == root_pid:
            found[f"{name}-{entry}" if name in found else name] = entry
    return found


def footprint(pid):
    """Memory in KiB as the kernel adds it up, threads, descriptors."""
    wanted = {"Pss:": "pssKiB", "Anonymous:": "anonymousKiB"}
    result = {}
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup:
            key, value = line.split()[:2]
            if key in wanted:
                result[wanted[key]] = int(value)
    result["threads"] = len(os.listdir(f"/proc/{pid}/task"))
    result["descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
    return result


def footprints(root_pid):
    """{"total": ..., NAME: ...} over the program's processes."""
    each = {name: footprint(pid) for name, pid in processes(root_pid).items()}
    total = {key: sum(one[key] for one in each.values()) for key in next(iter(each.values()))}
    return {"total": total, **each}


def peak_rss_kib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return None


class CpuAccount:
    """CPU time of a program and of everything it starts, by a cgroup of their own.

    A process table cannot tell: what a parent that ignores SIGCHLD forks is added to nobody's time when it ends.
    """

    def __init__(self):
        is_v1 = (CGROUPS / "cpuacct").is_dir()
        self.path = (CGROUPS / "cpuacct" if is_v1 else CGROUPS) / f"chandler-bench-{os.stat('/proc/self/ns/pid').st_ino}"
        self.path.mkdir()
        self.read = self.read_v1 if is_v1 else self.read_v2

    def adopt(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def read_v1(self):
        return int((self.path / "cpuacct.usage").read_text()) / 1e6

    def read_v2(self):
        return int((self.path / "cpu.stat").read_text().split()[1]) / 1e3

    def milliseconds(self):
        return self.read()

    def remove(self):
        """Once all in it have ended: children that nobody waits for are a moment late."""
        for _ in range(50):
            try:
                self.path.rmdir()
                return
            except OSError:
                time.sleep(0.1)
        self.path.rmdir()


def program_bytes(path):
    """Size of a program, and of the helper that lies beside it, without their debugging information."""
    sizes = {}
    for program in (pathlib.Path(path), pathlib.Path(path).with_name("virt-handler-hands")):
        if program.exists():
            stripped = f"/tmp/stripped-{program.name}"
            if os.spawnvp(os.P_WAIT, "strip", ["strip", "-o", stripped, str(program)]) != 0:
                shutil.copy(program, stripped)
            sizes[program.name] = os.stat(stripped).st_size
    return sizes
