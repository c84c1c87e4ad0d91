# SPDX-License-Identifier: Apache-2.0
"""gRPC's C core as the client of our server."""

import concurrent.futures
import signal
import socket

import grpc
import pytest
from grpc_support import (
    MIB,
    TIMEOUT_S,
    Program,
    cmd,
    do_method,
    open_channel,
    request,
    stream_method,
)


@pytest.fixture
def server(tmp_path):
    program = Program("grpc-echo-server", tmp_path / "sock")
    program.path = tmp_path / "sock"
    assert program.read_line() == "ready"
    yield program
    if program.process.poll() is None:
        program.process.send_signal(signal.SIGCONT)
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(TIMEOUT_S) == 0
    program.kill()


@pytest.fixture
def channel(server):
    with open_channel(server.path) as channel:
        yield channel


def test_unary(channel):
    response = do_method(channel)(request(text="hello"), timeout=TIMEOUT_S)
    assert response.std_out == "hello"
    assert response.response.success


def test_reply_from_another_thread(channel):
    response = do_method(channel)(request("late", "hello"), timeout=TIMEOUT_S)
    assert response.std_out == "hello"


def test_calls_one_after_the_other(channel):
    for i in range(300):
        assert do_method(channel)(request(text=str(i)), timeout=TIMEOUT_S).std_out == str(i)


def test_server_stream(channel):
    responses = stream_method(channel)(request(number=1000), timeout=TIMEOUT_S)
    assert [r.exit_code for r in responses] == list(range(1000))


def test_server_stream_that_fails(channel):
    seen = []
    with pytest.raises(grpc.RpcError) as caught:
        for response in stream_method(channel)(request("fail", number=3), timeout=TIMEOUT_S):
            seen.append(response.exit_code)
    assert seen == [0, 1, 2]
    assert caught.value.code() is grpc.StatusCode.ABORTED
    assert caught.value.details() == "enough"


@pytest.mark.parametrize("text", ["plain", "100% ünï\nx", "ü" * 3000], ids=["plain", "escaped", "long"])
def test_failure(channel, text):
    with pytest.raises(grpc.RpcError) as caught:
        do_method(channel)(request("fail", text, number=5), timeout=TIMEOUT_S)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert caught.value.details() == text


def test_unknown_method(channel):
    with pytest.raises(grpc.RpcError) as caught:
        do_method(channel, "Nope")(request(), timeout=TIMEOUT_S)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert caught.value.details() == "unknown method Nope for service test.Echo"


def test_three_megabytes_both_ways(channel):
    text = "x" * (3 * MIB)
    assert do_method(channel)(request(text=text), timeout=TIMEOUT_S).std_out == text


def test_seven_megabytes_outwards(channel):
    """Only what comes in is limited."""
    response = do_method(channel)(request("big", number=7 * MIB), timeout=TIMEOUT_S)
    assert len(response.std_out) == 7 * MIB


def test_five_megabytes_are_refused(channel):
    message = request(text="x" * (5 * MIB))
    with pytest.raises(grpc.RpcError) as caught:
        do_method(channel)(message, timeout=TIMEOUT_S)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert caught.value.details() == (
        f"grpc: received message larger than max ({message.ByteSize()} vs. {4 * MIB})"
    )
    assert do_method(channel)(request(text="still here"), timeout=TIMEOUT_S)


def test_undecodable_request(channel):
    call = channel.unary_unary("/test.Echo/Do")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff", timeout=TIMEOUT_S)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == (
        "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data"
    )


def test_big_headers(channel):
    """More than one frame: HEADERS and CONTINUATION."""
    metadata = [("x-big", "v" * 50_000), ("x-more-bin", b"\0\xff" * 5_000)]
    response = do_method(channel)(request(text="hi"), timeout=TIMEOUT_S, metadata=metadata)
    assert response.std_out == "hi"


def test_hundred_calls_at_once(channel):
    futures = [
        do_method(channel).future(request("late", str(i)), timeout=TIMEOUT_S) for i in range(100)
    ]
    assert [f.result(TIMEOUT_S).std_out for f in futures] == [str(i) for i in range(100)]


def test_more_calls_than_streams(channel):
    """The server's limit is 100 streams: the client queues the others."""
    futures = [
        do_method(channel).future(request("late", str(i)), timeout=TIMEOUT_S) for i in range(300)
    ]
    assert [f.result(TIMEOUT_S).std_out for f in futures] == [str(i) for i in range(300)]


def start_hanging(server, channel):
    """A call without an answer, once the server has it."""
    future = do_method(channel).future(request("hang"), timeout=TIMEOUT_S)
    assert server.read_line() == "hanging"
    return future


def test_deadline(server, channel):
    """A deadline that passed before the server had the call is followed by a longer one."""
    do_method(channel)(request(), timeout=TIMEOUT_S)
    for timeout in (0.2, 1, 5, 20):
        call = do_method(channel).future(request("hang"), timeout=timeout)
        assert call.exception(timeout + TIMEOUT_S).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        do_method(channel)(request(), timeout=TIMEOUT_S)  # what was sent earlier has arrived by now
        if server.has_output():
            break
    assert server.read_line() == "hanging"
    assert server.read_line() == "gone"


def test_cancel(server, channel):
    start_hanging(server, channel).cancel()
    assert server.read_line() == "gone"


def test_client_that_goes_away(server):
    channel = open_channel(server.path)
    start_hanging(server, channel)
    channel.close()
    assert server.read_line() == "gone"


def test_many_connections(server):
    def talk(i):
        with open_channel(server.path) as channel:
            return do_method(channel)(request(text=str(i)), timeout=TIMEOUT_S).std_out

    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        assert list(pool.map(talk, range(60))) == [str(i) for i in range(60)]


@pytest.mark.parametrize(
    "says",
    [b"", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100_000],
    ids=["nothing", "http-1", "zeroes"],
)
def test_connection_that_says_nothing_or_garbage(server, channel, says):
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(server.path))
        try:
            stranger.sendall(says)
        except OSError:
            pass  # the server has had enough
    assert do_method(channel)(request(text="hi"), timeout=TIMEOUT_S).std_out == "hi"


def test_stopped_server_does_not_hold_the_client(server, channel):
    do_method(channel)(request(), timeout=TIMEOUT_S)
    server.process.send_signal(signal.SIGSTOP)
    with pytest.raises(grpc.RpcError) as caught:
        do_method(channel)(request(), timeout=0.3)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    server.process.send_signal(signal.SIGCONT)
    assert do_method(channel)(request(text="hi"), timeout=TIMEOUT_S).std_out == "hi"


def test_graceful_stop_lets_a_call_finish(server, channel):
    futures = [do_method(channel).future(request("late", "x"), timeout=TIMEOUT_S) for _ in range(9)]
    do_method(channel)(request(), timeout=TIMEOUT_S)  # they have arrived by now
    server.process.send_signal(signal.SIGTERM)
    assert [f.result(TIMEOUT_S).std_out for f in futures] == ["x"] * 9
    assert server.read_line() == "stopped"
    assert server.process.wait(TIMEOUT_S) == 0


def test_graceful_stop_ends_after_its_grace(server, channel):
    future = start_hanging(server, channel)
    server.process.send_signal(signal.SIGTERM)
    assert future.exception(TIMEOUT_S).code() is grpc.StatusCode.UNAVAILABLE
    assert server.process.wait(TIMEOUT_S) == 0


def test_killed_server(server, channel):
    future = start_hanging(server, channel)
    server.kill()
    assert future.exception(TIMEOUT_S).code() is grpc.StatusCode.UNAVAILABLE


def test_message_without_fields(channel):
    assert do_method(channel)(cmd.ExecRequest(), timeout=TIMEOUT_S).std_out == ""
