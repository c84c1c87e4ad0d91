# SPDX-License-Identifier: Apache-2.0
"""gRPC's C core as the server of our client. The server is a process of its own, so that it can be
stopped and killed."""

import concurrent.futures
import multiprocessing
import os
import signal
import socket
import time

import grpc
import pytest
from grpc_support import MIB, OPTIONS, TIMEOUT_S, Program, cmd

SOON = 1000 * TIMEOUT_S  # ms; for calls that are to succeed
UNAVAILABLE_EOF = "error 14 error reading from server: "


def answer(message, context):
    if message.command == "fail":
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "100% ünï\nx")
    if message.command == "longfail":
        context.abort(grpc.StatusCode.ABORTED, "v" * message.timeout_seconds)
    if message.command == "hang":
        time.sleep(TIMEOUT_S)
    if message.command == "headers":
        context.send_initial_metadata([("x-big", "v" * 50_000), ("x-bin", b"\0\xff" * 2_000)])
        context.set_trailing_metadata([("x-big", "v" * 20_000)])
    if message.command == "big":
        return cmd.ExecResponse(std_out="x" * message.timeout_seconds)
    if message.command == "crash":
        os._exit(3)
    return cmd.ExecResponse(std_out=message.domain_name)


def answer_stream(message, context):
    for i in range(message.timeout_seconds):
        yield cmd.ExecResponse(exit_code=i)


def serve(path):
    codec = {
        "request_deserializer": cmd.ExecRequest.FromString,
        "response_serializer": cmd.ExecResponse.SerializeToString,
    }
    handlers = {
        "Do": grpc.unary_unary_rpc_method_handler(answer, **codec),
        "Stream": grpc.unary_stream_rpc_method_handler(answer_stream, **codec),
    }
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(120), options=OPTIONS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", handlers),))
    server.add_insecure_port(f"unix:{path}")
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(server.stop(grace=TIMEOUT_S)))
    server.start()
    server.wait_for_termination()


def wait_for_listener(path):
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
                return
            except OSError:
                time.sleep(0.02)
    raise AssertionError("gRPC's server did not come up")


@pytest.fixture
def server(tmp_path):
    """spawn, not fork: gRPC's C core does not survive forks."""
    path = tmp_path / "sock"
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(path,))
    process.start()
    process.path = path
    wait_for_listener(path)
    yield process
    if process.is_alive():
        os.kill(process.pid, signal.SIGCONT)
        process.kill()
    process.join(TIMEOUT_S)


@pytest.fixture
def client(server):
    program = Program("grpc-echo-client", server.path)
    assert program.ask(f"ready {SOON}") == "ok"
    yield program
    if program.process.poll() is None:
        program.end()
    program.kill()


def test_unary(client):
    assert client.ask(f"call echo 0 5 {SOON}") == "ok 5"
    assert client.ask(f"call echo 0 0 {SOON}") == "ok 0"


def test_calls_one_after_the_other(client):
    for i in range(200):
        assert client.ask(f"call echo 0 {i} {SOON}") == f"ok {i}"


def test_stream(client):
    assert client.ask("stream 500") == "ok 500 in order"
    assert client.ask("stream 0") == "ok 0 in order"


def test_failure(client):
    assert client.ask(f"call fail 0 1 {SOON}") == "error 9 100% \\303\\274n\\303\\257\\nx"


def test_long_failure(client):
    assert client.ask(f"call longfail 40000 1 {SOON}") == "error 10 " + "v" * 40000


def test_unknown_method(client):
    assert client.ask("other").startswith("error 12 ")


def test_three_megabytes_both_ways(client):
    assert client.ask(f"call echo 0 {3 * MIB} {SOON}") == f"ok {3 * MIB}"


def test_seven_megabytes_outwards(client):
    """C core has no limit here; ours is for what comes in, and its answer is small."""
    assert client.ask(f"call big 10 {7 * MIB} {SOON}") == "ok 10"


def test_five_megabytes_are_refused(client):
    expect = "error 8 grpc: received message larger than max (5242885 vs. 4194304)"
    assert client.ask(f"call big {5 * MIB} 1 {SOON}") == expect
    assert client.ask(f"call echo 0 5 {SOON}") == "ok 5"


def test_big_headers(client):
    assert client.ask(f"call headers 0 5 {SOON}") == "ok 5"


def test_hundred_threads(client):
    assert client.ask("threads 100") == "ok 100"


def test_deadline(client):
    """C core watches the deadline as well, and may be first to say so, in its own words."""
    start = time.monotonic()
    assert client.ask("call hang 0 1 200").startswith("error 4 ")
    assert time.monotonic() - start >= 0.15
    assert client.ask(f"call echo 0 5 {SOON}") == "ok 5"


def test_half_dead_peer(server, client):
    os.kill(server.pid, signal.SIGSTOP)
    assert client.ask("call echo 0 5 300") == "error 4 context deadline exceeded"
    # more than the socket takes: the writer must not block either
    assert client.ask(f"call echo 0 {4 * MIB - 100} 300") == "error 4 context deadline exceeded"
    os.kill(server.pid, signal.SIGCONT)
    assert client.ask(f"call echo 0 5 {SOON}") == "ok 5"


def test_peer_that_accepts_and_says_nothing(tmp_path):
    path = tmp_path / "mute"
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(path))
        mute.listen()
        client = Program("grpc-echo-client", path)
        assert client.ask("ready 200") == "error 4 context deadline exceeded"
        assert client.ask("call echo 0 5 200") == "error 4 context deadline exceeded"
        client.end()


def test_peer_that_is_no_grpc_server(tmp_path):
    path = tmp_path / "web"
    with socket.socket(socket.AF_UNIX) as web:
        web.bind(str(path))
        web.listen()
        client = Program("grpc-echo-client", path)
        peer, _ = web.accept()
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        answered = client.ask(f"call echo 0 5 {SOON}")
        assert answered.startswith(("error 13 ", "error 14 "))
        peer.close()
        client.end()


def test_peer_killed_in_mid_call(server, client):
    assert client.ask(f"call crash 0 1 {SOON}").startswith(UNAVAILABLE_EOF)
    again = client.ask(f"call echo 0 5 {SOON}")
    assert again.startswith('error 14 connection error: desc = \\"error reading from server: ')


def test_goaway_lets_the_call_finish(server, client):
    """gRPC's server says GOAWAY when it stops; the next call finds no connection."""
    assert client.ask(f"call echo 0 5 {SOON}") == "ok 5"
    os.kill(server.pid, signal.SIGTERM)
    server.join(TIMEOUT_S)
    assert client.ask(f"call echo 0 5 {SOON}").startswith("error 14 ")


def test_close(client):
    assert client.ask(f"call echo 0 5 {SOON}") == "ok 5"
    assert client.ask("close") == "ok"
    assert client.ask(f"call echo 0 5 {SOON}") == "error 1 grpc: the client connection is closing"
