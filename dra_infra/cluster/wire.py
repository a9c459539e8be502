"""One request to an API server and its answer, within bounds of time and size; who asks is the account's to say.

`urllib3` alone: the generated clients load for a second and hold thousands of types that are not needed here.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from dra_infra.cluster.accounts import Account
from dra_infra.cluster.credentials import Credentials
from dra_infra.cluster.refusals import strange_answer, unauthorized, unreachable
from dra_infra.cluster.transport import open_pool

CONNECT: Final = 3.0
"""Seconds until a host that does not answer is given up; twice, for a second address of it."""

BUSY: Final = frozenset({429, 500, 502, 503, 504})
"""Answers of a server that may have another one soon."""

_LONGEST_PAUSE: Final = 10.0
_BLOCK: Final = 1 << 20


class Wire:
    """Sends the requests of one account; safe to use from several threads.

    Args:
        account: Where, and as whom.
        environment: May name proxies.
        largest: Bytes of an answer, or of a line of one, that is read.
        agent: What the server's audit log calls the program.

    Raises:
        ClusterError: `kubeconfig-unreadable`, `cluster-credentials`; from requests also `cluster-unreachable`,
            `cluster-unauthorized`, `cluster-answer`.
    """

    def __init__(
        self, account: Account, environment: Mapping[str, str], *, largest: int, agent: str = "dra-infra"
    ) -> None:
        self.account = account
        self._credentials = Credentials(account)
        self._environment = environment
        self._largest = largest
        self._agent = agent
        self._opening = threading.Lock()
        self._shown = self._credentials.show()
        self._pool = open_pool(account, self._shown, environment)

    @contextmanager
    def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        read: float,
        accept: str = "application/json",
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The answer of a server that accepts the credentials, its body not read yet.

        Args:
            method: GET, or one that changes something.
            path: Below the server's address.
            query: What comes behind the `?`.
            read: Seconds of silence after which it is given up.
            accept: Forms that the answer may have.
            body: What is sent.
            content_type: Its form.
        """
        headers = {"Accept": accept, **({"Content-Type": content_type} if body is not None else {})}
        response = self._send_twice(
            method, f"{path}?{urlencode(query)}" if query else path, headers, body, read
        )
        try:
            if 300 <= response.status < 400:
                # Credentials go nowhere but to the server that they are for.
                raise strange_answer(self.account.server, path, f"{response.status}, a way to another server")
            yield response
        finally:
            # Not `release_conn`: what was not read to its end would be the answer to the next question. One that was
            # read to its end has given its connection back already.
            response.close()

    def body(self, response: urllib3.BaseHTTPResponse, path: str) -> bytes:
        """All of an answer."""
        blocks, size = [], 0
        try:
            while block := response.read(_BLOCK, decode_content=True):
                blocks.append(block)
                size += len(block)
                if size > self._largest:
                    raise strange_answer(self.account.server, path, f"more than {self._largest >> 20} MiB")
        except (HTTPError, OSError) as error:
            raise unreachable(self.account.server, _reason(error)) from error
        return b"".join(blocks)

    def lines(self, response: urllib3.BaseHTTPResponse, path: str) -> Iterator[bytes]:
        """The lines of an answer as they come; ends where it is cut off or silent for too long: who watches asks again."""
        rest = b""
        try:
            while block := response.read1(_BLOCK):
                *whole, rest = (rest + block).split(b"\n")
                yield from whole
                if len(rest) > self._largest:
                    raise strange_answer(self.account.server, path, "a line without an end")
        except (HTTPError, OSError, ssl.SSLError):
            return

    def _send_twice(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, read: float
    ) -> urllib3.BaseHTTPResponse:
        shown = self._credentials.show()
        response = self._send(method, target, headers, body, read)
        if response.status == 401 and self._credentials.renew(shown):
            response.close()
            response = self._send(method, target, headers, body, read)
        if response.status == 401:
            response.close()
            raise unauthorized(self.account.server, self.account.name)
        return response

    def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, read: float
    ) -> urllib3.BaseHTTPResponse:
        shown = self._credentials.show()
        own = {"User-Agent": self._agent, "Accept-Encoding": "gzip"}
        if shown.authorization:
            own["Authorization"] = shown.authorization
        try:
            return self._connections().request(
                method,
                f"{self.account.server}{target}",
                headers={**headers, **own},
                body=body,
                timeout=urllib3.Timeout(connect=CONNECT, read=read),
                preload_content=False,
                redirect=False,
                retries=False,
            )
        except (HTTPError, OSError, ValueError) as error:
            raise unreachable(self.account.server, _reason(error)) from error

    def _connections(self) -> urllib3.PoolManager:
        """Those of the certificate that is shown now; a new token needs no new ones."""
        with self._opening:
            shown, before = self._credentials.show(), self._shown
            if (shown.certificate, shown.key) != (before.certificate, before.key):
                self._pool = open_pool(self.account, shown, self._environment)
            self._shown = shown
            return self._pool


def pause_of(retry_after: str | None, number: int) -> float:
    """Seconds to wait before asking a busy server again, after *number* times."""
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
