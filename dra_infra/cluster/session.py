"""Requests to one API server that only read: GET, within bounds of time and size.

`urllib3` alone: the generated clients load for a second and hold thousands of types that are not needed here.
"""

from __future__ import annotations

import json
import os
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from dra_infra.cluster.accounts import Account
from dra_infra.cluster.credentials import Credentials
from dra_infra.cluster.refusals import strange_answer, unauthorized, unreachable
from dra_infra.cluster.transport import open_pool

CONNECT: Final = 3.0
"""Seconds until a host that does not answer is given up; twice, for a second address of it."""

_READ: Final = 60.0
"""An API server ends a list after as long by itself (--request-timeout)."""

_LARGEST: Final = 512 * 1024 * 1024
"""Bytes of one answer: a page of 500 of the largest objects that etcd takes, 1.5 MiB, is no real case."""

_MOST_TRIES: Final = 5
_BUSY: Final = frozenset({429, 500, 502, 503, 504})
_LONGEST_PAUSE: Final = 10.0
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the server said to a request that it understood: 200, 403, 404, 406, 410 or another refusal.

    Args:
        status: HTTP's.
        body: As it came.
    """

    status: int
    body: bytes

    @property
    def message(self) -> str:
        """The server's words for a refusal."""
        try:
            said = json.loads(self.body)
        except (ValueError, RecursionError):
            said = None
        text = said.get("message") if isinstance(said, dict) else None
        return text if isinstance(text, str) else self.body[:200].decode("utf-8", "replace")


class Session:
    """Asks one API server.

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
        self._credentials = Credentials(account)
        self._environment = environment
        self._sleep = sleep
        self._pool = self._open()

    def get(
        self, path: str, query: Mapping[str, str] | None = None, *, accept: str = "application/json"
    ) -> Answer:
        """One answer; a server that is busy is asked again."""
        for number in range(_MOST_TRIES):
            with self._ask(path, query or {}, accept, read=_READ) as response:
                if response.status not in _BUSY or number == _MOST_TRIES - 1:
                    return Answer(status=response.status, body=self._body(response, path))
                pause = _pause(response.headers.get("Retry-After"), number)
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
            return 200, json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise strange_answer(self.account.server, path, "what is not JSON") from error

    @contextmanager
    def lines(
        self, path: str, query: Mapping[str, str], *, seconds: float
    ) -> Iterator[tuple[int, Iterator[bytes]]]:
        """Status, and the lines of an answer as they come, until the server ends it or is silent for *seconds*."""
        with self._ask(path, query, "application/json", read=seconds) as response:
            yield response.status, self._split(response, path)

    def _split(self, response: urllib3.BaseHTTPResponse, path: str) -> Iterator[bytes]:
        rest = b""
        try:
            while block := response.read1(_BLOCK):
                *whole, rest = (rest + block).split(b"\n")
                yield from whole
                if len(rest) > _LARGEST:
                    raise strange_answer(self.account.server, path, "a line without an end")
        except (HTTPError, OSError, ssl.SSLError):
            # Cut off or silent for too long: whoever watches asks again.
            return

    def _ask(
        self, path: str, query: Mapping[str, str], accept: str, *, read: float
    ) -> AbstractContextManager[urllib3.BaseHTTPResponse]:
        response = self._send(path, query, accept, read)
        if response.status == 401 and self._credentials.renew():
            response.release_conn()
            self._pool = self._open()
            response = self._send(path, query, accept, read)
        if response.status == 401:
            response.release_conn()
            raise unauthorized(self.account.server, self.account.name)
        if 300 <= response.status < 400:
            # Credentials go nowhere but to the server that they are for.
            response.release_conn()
            raise strange_answer(self.account.server, path, f"{response.status}, a way to another server")
        return _released(response)

    def _send(
        self, path: str, query: Mapping[str, str], accept: str, read: float
    ) -> urllib3.BaseHTTPResponse:
        header = self._credentials.show().authorization
        address = f"{self.account.server}{path}"
        try:
            return self._pool.request(
                "GET",
                f"{address}?{urlencode(query)}" if query else address,
                headers={
                    "Accept": accept,
                    "User-Agent": "dra-infra",
                    "Accept-Encoding": "gzip",
                    **({"Authorization": header} if header else {}),
                },
                timeout=urllib3.Timeout(connect=CONNECT, read=read),
                preload_content=False,
                redirect=False,
                retries=False,
            )
        except (HTTPError, OSError, ValueError) as error:
            raise unreachable(self.account.server, _reason(error)) from error

    def _body(self, response: urllib3.BaseHTTPResponse, path: str) -> bytes:
        blocks, size = [], 0
        try:
            while block := response.read(_BLOCK, decode_content=True):
                blocks.append(block)
                size += len(block)
                if size > _LARGEST:
                    raise strange_answer(self.account.server, path, f"more than {_LARGEST >> 20} MiB")
        except (HTTPError, OSError) as error:
            raise unreachable(self.account.server, _reason(error)) from error
        return b"".join(blocks)

    def _open(self) -> urllib3.PoolManager:
        return open_pool(self.account, self._credentials.show(), self._environment)


@contextmanager
def _released(response: urllib3.BaseHTTPResponse) -> Iterator[urllib3.BaseHTTPResponse]:
    try:
        yield response
    finally:
        # Not `release_conn`: what was not read to its end would be the answer to the next question.
        response.close()


def _pause(retry_after: str | None, number: int) -> float:
    asked = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
    return min(_LONGEST_PAUSE, max(asked, 0.2 * 2.0**number))


def _reason(error: BaseException) -> str:
    """The innermost reason: urllib3 wraps what the socket said."""
    reason = getattr(error, "reason", None)
    while isinstance(reason, BaseException) and getattr(reason, "reason", None) not in (None, reason):
        if isinstance(reason, ssl.SSLError):
            break
        reason = reason.reason  # type: ignore[attr-defined]
    return str(reason or error)
