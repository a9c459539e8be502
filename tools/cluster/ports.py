"""Reserve TCP ports on loopback without a race between clusters that start at the same time."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextlib.contextmanager
def reserved(names: Iterable[str]) -> Iterator[dict[str, int]]:
    """Hold one free port for each name; servers that set SO_REUSEPORT may listen on them meanwhile.

    A socket that is bound but does not listen gets no connections, and the kernel gives its port to nobody who asks
    for any free one, shared or not.
    """
    with contextlib.ExitStack() as sockets:
        ports = {}
        for name in names:
            holder = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(("127.0.0.1", 0))
            ports[name] = holder.getsockname()[1]
        yield ports
