"""The thread in which gRPC's servers of this process run: it sleeps until somebody calls.

grpc's own servers, one thread each, wake five times a second to see whether they are still wanted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

_Result = TypeVar("_Result")


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Do *work* in that thread, from any other, and wait for what comes of it."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    # One for all servers, and for ever: grpc has one queue of events per process, which it binds to the loops that it sees.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
    return loop
