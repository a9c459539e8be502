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
        yield {name: sockets.enter_context(_bound(0)).getsockname()[1] for name in names}


@contextlib.contextmanager
def held(port: int) -> Iterator[None]:
    """Keep *port* for a server that sets SO_REUSEPORT while it does not run."""
    with _bound(port):
        yield


def _bound(port: int) -> socket.socket:
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", port))
    return holder
