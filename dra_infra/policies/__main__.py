"""The process that the engine starts for the pack: `python -m pulumi.policy ADDRESS FOLDER`, which runs this folder."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent import futures

import grpc
from pulumi.runtime.proto import analyzer_pb2_grpc

from dra_infra.policies.analyzer import Analyzer

_LONGEST_MESSAGE = 400 << 20
"""Bytes, as in the SDK: a stack may have thousands of resources."""


def main() -> None:
    """Serve the pack on a free port of the loopback address, and print the port, until the engine ends it."""
    limits = [("grpc.max_receive_message_length", _LONGEST_MESSAGE)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=limits)
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    ended = threading.Event()
    # Without a handler, the end of a run prints a trace of Python.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: ended.set())
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    ended.wait()
    server.stop(0)


if __name__ == "__main__":
    main()
