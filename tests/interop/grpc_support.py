# SPDX-License-Identifier: Apache-2.0
"""What the gRPC interop tests share: generated messages, our two programs, gRPC's C core set up so
that every test gets a connection of its own."""

import importlib
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

import grpc

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CH_BUILD", SOURCE / "build")).resolve()
TIMEOUT_S = 60  # of what is to succeed: a busy machine and sanitizers are slow
MIB = 1 << 20

# C core limits its own inbound messages as well; what is tested here is ours.
OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 256 * 1024),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.so_reuseport", 0),
]


def load_module(name):
    """Compiles proto/NAME.proto and returns the Python module."""
    out = tempfile.mkdtemp(prefix="chandler-proto-")
    subprocess.run(
        ["protoc", f"--proto_path={SOURCE / 'proto'}", f"--python_out={out}", f"{name}.proto"],
        check=True,
    )
    sys.path.insert(0, out)
    return importlib.import_module(name.replace("-", "_") + "_pb2")


cmd = load_module("cmd")


def request(command="echo", text="", number=0):
    return cmd.ExecRequest(domain_name=text, command=command, timeout_seconds=number)


class Program:
    """One of our programs; its lines have deadlines, its exit status is checked."""

    def __init__(self, name, *args):
        self.process = subprocess.Popen(
            [BUILD / "tests/interop" / name, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def read_line(self, timeout=TIMEOUT_S):
        line = b""
        deadline = time.monotonic() + timeout
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            assert left > 0, f"no line within {timeout} s, only {line!r}"
            if select.select([self.process.stdout], [], [], left)[0]:
                byte = self.process.stdout.read(1)
                assert byte, f"the program ended: {self.process.wait(TIMEOUT_S)}"
                line += byte
        return line.decode().rstrip("\n")

    def has_output(self):
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def ask(self, line, timeout=TIMEOUT_S):
        self.process.stdin.write(line.encode() + b"\n")
        return self.read_line(timeout)

    def end(self):
        """Closes its input and expects a clean exit (which is where sanitizers speak)."""
        self.process.stdin.close()
        assert self.process.wait(TIMEOUT_S) == 0

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def open_channel(path):
    return grpc.insecure_channel(f"unix:{path}", options=OPTIONS)


def do_method(channel, name="Do"):
    return channel.unary_unary(
        f"/test.Echo/{name}",
        request_serializer=cmd.ExecRequest.SerializeToString,
        response_deserializer=cmd.ExecResponse.FromString,
    )


def stream_method(channel):
    return channel.unary_stream(
        "/test.Echo/Stream",
        request_serializer=cmd.ExecRequest.SerializeToString,
        response_deserializer=cmd.ExecResponse.FromString,
    )
