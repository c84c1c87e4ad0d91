# SPDX-License-Identifier: Apache-2.0
"""A proxy between the agent and chandler-apiserver that can fail in every way a network or a server can.

HTTP/1.1, one request a connection. What happens to a request is decided by the first rule that matches it; without one it passes.
"""
import contextlib
import json
import re
import socket
import struct
import threading

UPSTREAM = ("127.0.0.1", 8001)
PORT = 8002
URL = f"http://127.0.0.1:{PORT}"

GARBAGE = b"\x00\xff\x16\x03\x01 what is this? \r\n\r\n" * 50


class Rule:
    def __init__(self, fault, method, path, times):
        self.fault, self.method, self.path, self.left = fault, re.compile(method), re.compile(path), times
        self.hits = 0

    def takes(self, method, path):
        if self.left == 0 or not self.method.fullmatch(method) or not self.path.search(path):
            return False
        self.left -= 1  # a rule for ever starts below zero
        self.hits += 1
        return True


# --- faults: functions of (proxy, client socket, request bytes) ------------------------------------


def status(code, headers="", body=None):
    """An answer of this status, as the API server words it."""
    document = body if body is not None else json.dumps(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "message": f"proxy says {code}",
         "reason": {404: "NotFound", 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}.get(code, "")})

    def fault(_proxy, client, _request):
        client.sendall(f"HTTP/1.1 {code} Whatever\r\nContent-Type: application/json\r\nContent-Length: {len(document)}\r\n"
                       f"{headers}Connection: close\r\n\r\n{document}".encode())
    return fault


def answer(document):
    """Success with this body, whatever was asked."""
    return status(200, body=document if isinstance(document, str) else json.dumps(document))


def stream(*events):
    """A watch that says this and stays open."""
    def fault(proxy, client, _request):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
                       b"".join(e if isinstance(e, bytes) else json.dumps(e).encode() + b"\n" for e in events))
        proxy.released.wait()
    return fault


def garbage(_proxy, client, _request):
    client.sendall(GARBAGE)


def reset(_proxy, client, _request):
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hang(proxy, _client, _request):
    proxy.released.wait()


def half(_proxy, client, request):
    """Half of the real answer, then the end."""
    whole = fetch(request)
    client.sendall(whole[:whole.index(b"\r\n\r\n") + 4 + len(whole[whole.index(b"\r\n\r\n"):]) // 2])


def slow(proxy, client, request):
    """The real answer, a few bytes at a time."""
    with contextlib.closing(send_upstream(request)) as upstream:
        while not proxy.released.wait(0.02) and (part := upstream.recv(200)):
            client.sendall(part)


def swallow(_proxy, client, request):
    """The server does what was asked, and the answer is lost."""
    fetch(request)
    reset(_proxy, client, request)


# --- the proxy ---------------------------------------------------------------------------------------


def send_upstream(request):
    head, _, body = request.partition(b"\r\n\r\n")
    head = re.sub(rb"\r\nConnection:[^\r]*", b"", head, flags=re.I)
    upstream = socket.create_connection(UPSTREAM, 10)
    upstream.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
    upstream.settimeout(None)
    return upstream


def fetch(request):
    with contextlib.closing(send_upstream(request)) as upstream:
        return b"".join(iter(lambda: upstream.recv(65536), b""))


def read_request(client):
    data = b""
    while b"\r\n\r\n" not in data:
        part = client.recv(65536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"\r\nContent-Length: *(\d+)", head, re.I)
    while length and len(body) < int(length.group(1)):
        part = client.recv(65536)
        if not part:
            return None
        body += part
    return head + b"\r\n\r\n" + body


class Proxy:
    def __init__(self):
        self.rules, self.lock = [], threading.Lock()
        self.released = threading.Event()  # ends what hangs
        self.listener, self.pairs = None, set()
        self.open()

    def open(self):
        self.listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.closing(client), contextlib.suppress(OSError):
            request = read_request(client)
            if request is None:
                return
            method, path, _ = request.split(b"\r\n", 1)[0].decode().split(" ", 2)
            with self.lock:
                rule = next((r for r in self.rules if r.takes(method, path)), None)
            if rule is not None:
                rule.fault(self, client, request)
            else:
                self.relay(client, request)

    def relay(self, client, request):
        with contextlib.closing(send_upstream(request)) as upstream:
            pair = (client, upstream)
            with self.lock:
                self.pairs.add(pair)
            threading.Thread(target=self.watch_client, args=pair, daemon=True).start()
            try:
                while part := upstream.recv(65536):
                    client.sendall(part)
            finally:
                with self.lock:
                    self.pairs.discard(pair)
                hang_up(client)

    @staticmethod
    def watch_client(client, upstream):
        """A client that has gone ends its request upstream."""
        with contextlib.suppress(OSError):
            while client.recv(65536):
                pass
        hang_up(upstream)

    def when(self, fault, method=".*", path="", times=-1):
        rule = Rule(fault, method, path, times)
        with self.lock:
            self.rules.append(rule)
        return rule

    def heal(self):
        with self.lock:
            self.rules.clear()
        self.released.set()
        self.released = threading.Event()

    def cut(self):
        """Ends every connection."""
        with self.lock:
            pairs = list(self.pairs)
        for client, upstream in pairs:
            hang_up(client)
            hang_up(upstream)

    def close(self):
        """Nobody listens any more, and all connections end."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()


def hang_up(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
