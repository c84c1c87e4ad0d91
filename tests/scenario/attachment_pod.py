# SPDX-License-Identifier: Apache-2.0
"""What an attachment pod is to the agent: a process with a root and mounts of its own, volumes in it, and a socket that says who it is.

usage: unshare --mount --propagation private attachment_pod.py ROOT EMPTY-DIR [VOLUME=DIRECTORY...]

EMPTY-DIR (kubelet's hotplug-disks of this pod) becomes /path in it, where it listens on hp.sock; each DIRECTORY becomes /VOLUME. Says
"ready", and ends with its standard input.
"""
import os
import pathlib
import select
import socket
import subprocess
import sys


def bind(source, target):
    target.mkdir(parents=True)
    subprocess.run(["mount", "--bind", source, target], check=True)


def main():
    root, empty_dir = pathlib.Path(sys.argv[1]), sys.argv[2]
    bind(empty_dir, root / "path")
    for volume in sys.argv[3:]:
        name, source = volume.split("=", 1)
        bind(source, root / name)
    os.chroot(root)
    os.chdir("/")
    server = socket.socket(socket.AF_UNIX)
    server.bind("/path/hp.sock")
    server.listen(16)
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([server, sys.stdin], [], [])
        if sys.stdin in readable:
            return
        server.accept()[0].close()


if __name__ == "__main__":
    main()
