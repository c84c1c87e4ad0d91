# SPDX-License-Identifier: Apache-2.0
"""A relay in a launcher's pod that takes the launcher's place at its command socket and spoils what passes.

Runs inside the pod (nsenter --mount): faulty_launcher.py MODE [N]. The mode of new connections can be changed by a line on stdin.

  pass       as it is
  silence    takes connections and says nothing
  close      closes each connection at once
  cut N      closes it after N bytes of the launcher's
  garbage N  after N bytes of the launcher's there is only garbage
  flood      says garbage from the start, five megabytes of it
"""
import contextlib
import os
import socket
import sys
import threading

DIRECTORY = "/run/kubevirt/sockets"
PUBLIC, REAL = f"{DIRECTORY}/launcher-sock", f"{DIRECTORY}/real-sock"
GARBAGE = bytes(range(256)) * 64

mode = ["pass"]
held = []


def hang_up(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def copy(source, target):
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
    hang_up(target)


def relay(client, limit=None, tail=b""):
    """Both ways; after @limit bytes of the launcher's, @tail follows and the end."""
    launcher = socket.socket(socket.AF_UNIX)
    launcher.connect(REAL)
    threading.Thread(target=copy, args=(client, launcher), daemon=True).start()
    with contextlib.suppress(OSError):
        while (limit is None or limit > 0) and (part := launcher.recv(65536)):
            client.sendall(part[:limit])
            if limit is not None:
                limit -= len(part[:limit])
        for _ in range(64 if tail else 0):
            client.sendall(tail)
    hang_up(client)
    hang_up(launcher)


def serve(client, words):
    kind, number = words[0], int(words[1]) if len(words) > 1 else None
    if kind == "silence":
        held.append(client)
    elif kind == "close":
        client.close()
    elif kind == "flood":
        with contextlib.suppress(OSError):
            for _ in range(5 << 20 >> 14):
                client.sendall(GARBAGE)
        client.close()
    elif kind == "garbage":
        relay(client, number, GARBAGE)
    else:
        relay(client, number)


def accept(listener):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, list(mode)), daemon=True).start()


def main():
    mode[:] = sys.argv[1:]
    os.rename(PUBLIC, REAL)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(PUBLIC)
    listener.listen(64)
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        mode[:] = line.split()


if __name__ == "__main__":
    main()
