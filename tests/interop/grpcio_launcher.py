# SPDX-License-Identifier: Apache-2.0
"""A launcher on gRPC's own Python implementation, in a mount namespace of its own: grpcio_launcher.py SOCKETS CALLS DOMAIN

Serves at SOCKETS/launcher-sock, answers everything with success, notes each call as a line "METHOD BASE64" in the file CALLS,
and has the domain that the file DOMAIN holds. Says "ready" on standard output; ends with its standard input.
"""
import base64
import concurrent.futures
import pathlib
import subprocess
import sys

import grpc

from grpc_support import OPTIONS, cmd, load_module

cmd_info = load_module("cmd-info")
RUN = pathlib.Path("/var/run/kubevirt")


class Launcher(grpc.GenericRpcHandler):
    def __init__(self, calls, domain):
        self.calls, self.domain = open(calls, "a", buffering=1), pathlib.Path(domain)

    def answer(self, method):
        if method == "Info":
            return cmd_info.CmdInfoResponse(supported_cmd_versions=[1])
        if method == "GetDomain":
            text = self.domain.read_text() if self.domain.exists() else ""
            return cmd.DomainResponse(response=cmd.Response(success=True), domain=text)
        return cmd.Response(success=True)

    def service(self, details):
        method = details.method.rsplit("/", 1)[1]

        def handle(request, context):
            self.calls.write(f"{method} {base64.b64encode(request).decode()}\n")
            return self.answer(method).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(handle)


def main(sockets, calls, domain):
    node_side = pathlib.Path("/mnt")  # RUN hides what lies below it, the sockets perhaps among it
    subprocess.run(["mount", "--bind", sockets, node_side], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "pod", RUN], check=True)
    (RUN / "sockets").mkdir()
    subprocess.run(["mount", "--bind", node_side, RUN / "sockets"], check=True)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4), handlers=(Launcher(calls, domain),), options=OPTIONS)
    assert server.add_insecure_port(f"unix:{RUN}/sockets/launcher-sock")
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(None).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
