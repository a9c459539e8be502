"""Read-only requests to one API server: GET, within bounds of time and size."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.client.kubeconfig import Account
from dra_infra.client.refusals import strange_answer
from dra_infra.client.transport import BUSY, Transport, pause_of
from dra_infra.documents.json_texts import ForeignJsonError, read_foreign_json

_TOTAL: Final = 2.0
"""Times the silence in which an answer has to be whole: what is longer on its way is not sent by a server that works."""

_LARGEST: Final = 512 * 1024 * 1024
"""Bytes of one answer: a page of 500 of the largest objects that etcd takes, 1.5 MiB, is no real case."""

_MOST_TRIES: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Answer to a request that the server understood: 200, 403, 404, 406, 410 or another refusal."""

    status: int
    body: bytes

    @property
    def message(self) -> str:
        """The server's words for a refusal."""
        try:
            said = read_foreign_json(self.body)
        except ForeignJsonError:
            said = None
        text = said.get("message") if isinstance(said, dict) else None
        return text if isinstance(text, str) else self.body[:200].decode("utf-8", "replace")


def name_content(body: bytes) -> str:
    """Return what an answer is that is not JSON, for a message."""
    if body.lstrip()[:9].lower().startswith((b"<!doctype", b"<html")):
        return "an HTML page, as a proxy or a page to log in does"
    return "what is not JSON"


class Session:
    """Requests to one API server.

    Args:
        account: Where, and as whom.
        environment: May name proxies.
        sleep: Waits; tests pass a clock of their own.

    Raises:
        ClusterError: `kubeconfig-unreadable`, `cluster-credentials`; from requests also `cluster-unreachable`,
            `cluster-unauthorized`, `cluster-answer`.
    """

    def __init__(
        self,
        account: Account,
        environment: Mapping[str, str] = os.environ,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.account = account
        self._transport = Transport(account, environment, largest=_LARGEST)
        self._sleep = sleep
        self.bytes_read = 0
        """Bytes of bodies read so far, unpacked."""

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, accept: str = "application/json"
    ) -> Answer:
        """Get an answer; a server that is busy is asked again."""
        for number in range(_MOST_TRIES):
            with self._transport.request(
                "GET",
                path,
                query or {},
                read_timeout=self.account.request_timeout,
                total_timeout=_TOTAL * self.account.request_timeout,
                accept=accept,
            ) as response:
                if response.status not in BUSY or number == _MOST_TRIES - 1:
                    body = self._transport.body(response, path)
                    self.bytes_read += len(body)
                    return Answer(status=response.status, body=body)
                pause = pause_of(response.headers.get("Retry-After"), number)
            self._sleep(pause)
        raise AssertionError  # pragma: no cover  (the loop returns)

    def get_json(
        self, path: str, query: Mapping[str, str] | None = None, *, accept: str = "application/json"
    ) -> tuple[int, Any]:
        """Status and decoded body; of a refusal, the server's words in place of the body."""
        answer = self.get(path, query, accept=accept)
        if answer.status != 200:
            return answer.status, answer.message
        try:
            return 200, read_foreign_json(answer.body)
        except ForeignJsonError as error:
            raise strange_answer(self.account.server, path, name_content(answer.body)) from error

    @contextmanager
    def lines(
        self, path: str, query: Mapping[str, str], *, seconds: float
    ) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Status, and the lines of an answer as they come, until the server ends it or is silent for *seconds*."""
        with self._transport.request("GET", path, query, read_timeout=seconds) as response:
            yield response.status, self._transport.lines(response, path)
