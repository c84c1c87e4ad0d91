#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""usage: container-disk.py ROOT EMPTY-DIR SOCKET

A container that serves a disk: a mount namespace of its own, ROOT as its root, EMPTY-DIR mounted in it, where it listens on SOCKET.
It says "ready" and accepts and closes, as the real one does, until it is killed.
"""
import ctypes
import os
import socket
import sys

MS_BIND, MS_REC, MS_PRIVATE, CLONE_NEWNS = 1 << 12, 1 << 14, 1 << 18, 1 << 17
libc = ctypes.CDLL(None, use_errno=True)


def must(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(source, target, flags):
    must(libc.mount(source.encode(), target.encode(), None, ctypes.c_ulong(flags), None))


root, empty_dir, name = sys.argv[1:]
must(libc.unshare(CLONE_NEWNS))
mount("none", "/", MS_REC | MS_PRIVATE)
os.makedirs(f"{root}/run/disks", exist_ok=True)
mount(empty_dir, f"{root}/run/disks", MS_BIND)
os.chroot(root)
os.chdir("/run/disks")
listener = socket.socket(socket.AF_UNIX)
listener.bind(name)
listener.listen(50)
print("ready", flush=True)
while True:
    listener.accept()[0].close()
