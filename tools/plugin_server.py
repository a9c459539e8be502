"""Serve one Pulumi plugin over gRPC for as long as the engine that started it lives.

The protocol is the one of `pulumi/sdk/go/common/util/rpcutil`: listen on a free loopback port, print the
port and a newline as the first output, answer until told to stop.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, NoReturn

import grpc

if TYPE_CHECKING:
    from types import FrameType

MESSAGE_LIMIT_BYTES = 400 << 20
PARENT_POLL_SECONDS = 1.0


def serve(
    add_servicer: Callable[[grpc.Server], object], *, on_exit: Callable[[], object], workers: int = 64
) -> NoReturn:
    """Serve until the engine stops this process or dies, then run *on_exit* and leave with status 0.

    Args:
        add_servicer: Adds the plugin's service to the server.
        on_exit: Releases what would outlive this process, above all children: the engine waits five seconds
            for whatever keeps a plugin's standard output open.
        workers: Threads that answer calls. A provider blocks one per resource that it waits for, and
            `Cancel` needs a free one.
    """
    parent = os.getppid()

    def leave(_signal: int = 0, _frame: FrameType | None = None) -> NoReturn:
        on_exit()
        # Interpreter shutdown would join worker threads that still wait for a cluster or a program.
        os._exit(0)

    # The engine stops plugins with SIGINT; Python's own handler would print a KeyboardInterrupt into the
    # user's diagnostics.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, leave)
    server = grpc.server(
        futures.ThreadPoolExecutor(workers),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
        ],
    )
    add_servicer(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    # The engine never stops hosts that it started for component plugins, and cannot when it is killed.
    while server.wait_for_termination(PARENT_POLL_SECONDS) and os.getppid() == parent:
        pass
    leave()
