"""One question to the API server and its answer, asked again for a while where the server is busy."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.cluster.accounts import Account
from dra_infra.cluster.objects import mapping, text
from dra_infra.cluster.wire import BUSY, Wire
from dra_infra.errors import ClusterError
from dra_infra.plugin.api_server.pauses import asked_pause, pause_after
from dra_infra.plugin.api_server.refusals import of_cluster

BUDGET: Final = 15.0
"""Seconds in which a request is made again: the kubelet waits for 45 s for all that it asked."""

_READ: Final = 10.0
"""Seconds of silence after which an answer is given up."""

_LARGEST: Final = 64 * 1024 * 1024
_TOO_MANY: Final = 429


class Answer(NamedTuple):
    """What a server said.

    Attributes:
        status: HTTP's.
        body: The object; for a status of 400 and more the server's words.
        reason: Kubernetes' word for a refusal, such as `AlreadyExists`.
        retry_after: Seconds for which the server wants to be left alone.
    """

    status: int
    body: Any
    reason: str = ""
    retry_after: float = 0.0


class Asking:
    """Asks as one account; safe to use from several threads.

    Args:
        account: Where, and as whom.
        environment: May name proxies.
        clock: Seconds.
        wait: Waits for some seconds, and returns whether nobody waits for an answer any more; tests pass one of their own.
    """

    def __init__(
        self,
        account: Account,
        environment: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        try:
            self.wire = Wire(account, environment, largest=_LARGEST, agent="dra-infra-plugin")
        except ClusterError as error:
            raise of_cluster(f"connect to {account.server}", error) from error
        self._closed = threading.Event()
        self._clock = clock
        self._wait = wait or self._closed.wait

    def close(self) -> None:
        """Have nobody wait for a busy server any more."""
        self._closed.set()

    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        asked: str,
        content_type: str = "application/json",
        once: bool = False,
    ) -> Answer:
        """What the server says.

        Args:
            method: GET, or one that changes something.
            path: Below the server's address.
            query: What comes behind the `?`.
            body: What is sent.
            asked: The same for a person.
            content_type: Form of what is sent.
            once: Whether a busy server is left alone.

        Raises:
            ApiError: `api-unreachable` or `api-unauthorized`: there is no answer.
        """
        content = json.dumps(body).encode() if body is not None else None
        until = self._clock() + BUDGET
        number = 0
        while True:
            try:
                with self.wire.ask(
                    method, path, query or {}, read=_READ, body=content, content_type=content_type
                ) as response:
                    status, pause = response.status, asked_pause(response.headers.get("Retry-After"))
                    said = self.wire.body(response, path)
            except ClusterError as error:
                failure = of_cluster(asked, error)
                if method != "GET" or failure.status:
                    raise failure from error
                status, pause, said = 0, 0.0, b""
            # What was written may be there though the answer says that the server failed: who wrote looks first.
            again = status in BUSY or not status if method == "GET" else status == _TOO_MANY
            if again and not once:
                wanted = pause_after(number, pause)
                again = self._clock() + wanted <= until and not self._wait(wanted)
            if once or not again:
                if not status:
                    raise failure
                return Answer(status, *_read(said, status), retry_after=pause)
            number += 1


def _read(said: bytes, status: int) -> tuple[Any, str]:
    try:
        body = json.loads(said)
    except (ValueError, RecursionError):
        return said[:200].decode("utf-8", "replace"), ""
    if status < 400:
        return body, ""
    return text(mapping(body).get("message")) or str(body)[:200], text(mapping(body).get("reason"))
