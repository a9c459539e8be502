"""One request to an API server and its answer, within bounds of time and size.

Who asks is for the account to say. Connections use the API server's certificate, ours, and the proxy between.

`urllib3` alone: the generated clients load for a second and hold thousands of types that are not needed here.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
import tempfile
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from dra_infra.client.credentials import Credentials, Shown
from dra_infra.client.deadline import Deadline, with_deadlines
from dra_infra.client.kubeconfig import Account
from dra_infra.client.refusals import (
    bad_credentials,
    bad_kubeconfig,
    strange_answer,
    too_large,
    unauthorized,
    unreachable,
    untrusted,
)
from dra_infra.errors import ClusterError

_SOCKET: Final = (
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
        # Other systems than Linux name some of them otherwise.
        if hasattr(socket, name)
    ),
)
"""A watch is silent for minutes, and would be for ever where a host on the way forgot the connection."""


def open_pool(account: Account, shown: Shown, environment: Mapping[str, str]) -> urllib3.PoolManager:
    """Connections for one account.

    Args:
        account: Where to.
        shown: The authorities that the server's certificate is checked against, and our certificate, where there is one.
        environment: May name proxies; hosts of NO_PROXY and this machine are asked directly, as by kubectl.

    Raises:
        ClusterError: `cluster-credentials`, `kubeconfig-unreadable`.
    """
    parts = urlsplit(account.server)
    # As many as there are watches at a time.
    options: dict[str, Any] = {"maxsize": 8, "socket_options": _SOCKET}
    if parts.scheme == "https":
        options["ssl_context"] = _tls(account, shown)
        if account.server_name:
            options["server_hostname"] = account.server_name
    elif shown.authorization and not _is_this_machine(parts.hostname):
        why = f"{account.server} is not https, and the credentials would be read on the way"
        raise bad_credentials(account.name, why, "write https:// into the kubeconfig")
    proxy = account.proxy or _proxy(parts.scheme, parts.hostname or "", environment)
    if not proxy:
        return with_deadlines(urllib3.PoolManager(**options))
    try:
        return with_deadlines(urllib3.ProxyManager(proxy, **options))
    except (HTTPError, ValueError) as error:
        raise bad_kubeconfig(Path("proxy-url"), "a proxy is none of http or https") from error


def _proxy(scheme: str, host: str, environment: Mapping[str, str]) -> str:
    named = {
        name.lower().removesuffix("_proxy"): value
        for name, value in environment.items()
        if name.lower().endswith("_proxy") and value
    }
    if scheme not in named or _is_this_machine(host):
        return ""
    is_direct = urllib.request.proxy_bypass_environment(host, named)  # type: ignore[attr-defined]
    return "" if is_direct else named[scheme]


def _is_this_machine(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def _tls(account: Account, shown: Shown) -> ssl.SSLContext:
    # Not `ssl.create_default_context`: from Python 3.13 on that one also asks for extensions which the certificates
    # that Kubernetes' servers make for themselves need not have.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if account.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        elif shown.ca:
            context.load_verify_locations(cadata=shown.ca)
        else:
            context.load_default_certs()
        if shown.certificate:
            _load_certificate(context, shown)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise bad_credentials(
            account.name, "a certificate or key of the kubeconfig cannot be loaded"
        ) from error
    return context


def _load_certificate(context: ssl.SSLContext, shown: Shown) -> None:
    # OpenSSL reads files only; this one is the user's own and lives for a moment.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(f"{shown.certificate}\n{shown.key}\n")
        file.flush()
        # A key with a password would make OpenSSL ask for it on the terminal.
        context.load_cert_chain(file.name, password="")


CONNECT: Final = 3.0
"""Seconds until a host that does not answer is given up; twice, for a second address of it."""

BUSY: Final = frozenset({429, 500, 502, 503, 504})
"""Answers of a server that may have another one soon."""

_LONGEST_PAUSE: Final = 10.0
_BLOCK: Final = 1 << 16
"""Bytes that are read at a time. A packed block unfolds to no more."""


def _ignore(_: int) -> None:
    pass


class Transport:
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
    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        read_timeout: float,
        total_timeout: float | None = None,
        accept: str = "application/json",
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The answer of a server that accepts the credentials, its body not read yet.

        Args:
            method: GET, or one that changes something.
            path: Below the server's address.
            query: What comes behind the `?`.
            read_timeout: Seconds of silence after which it is given up, and, without *total_timeout*, in which its headers
                must have come.
            total_timeout: Seconds after which the answer must be there; None for a watch, which goes on as long as the server
                wants once it is granted.
            accept: Forms that the answer may have.
            body: What is sent.
            content_type: Its form.
        """
        headers = {"Accept": accept, **({"Content-Type": content_type} if body is not None else {})}
        target = f"{path}?{urlencode(query)}" if query else path
        with Deadline(total_timeout or read_timeout) as deadline:
            try:
                response = self._send_twice(method, target, headers, body, read_timeout)
                if total_timeout is None and response.status == 200:
                    # Why something is refused is one answer: it has to be there in *read_timeout* seconds.
                    deadline.lift()
                try:
                    if 300 <= response.status < 400:
                        # Credentials go nowhere but to the server that they are for.
                        why = f"{response.status}, a way to another server"
                        raise strange_answer(self.account.server, path, why)
                    yield response
                finally:
                    # Not `release_conn`: what was not read to its end would be the answer to the next question. One
                    # that was read to its end has given its connection back already.
                    response.close()
            except ClusterError as error:
                if deadline.is_over:
                    raise self._late(deadline) from error
                raise
            if deadline.is_over:
                # A connection that was cut looks like the end of an answer that does not tell its length.
                raise self._late(deadline)

    def _late(self, deadline: Deadline) -> ClusterError:
        return unreachable(self.account.server, f"an answer is not complete after {deadline.seconds:g} s")

    def body(
        self, response: urllib3.BaseHTTPResponse, path: str, *, on_size: Callable[[int], None] = _ignore
    ) -> bytes:
        """All of an answer.

        Args:
            response: The answer.
            path: What was asked for.
            on_size: Is called with the bytes that came so far, before they are kept; it may wait.
        """
        content = bytearray()
        try:
            while block := response.read(_BLOCK, decode_content=True):
                on_size(len(content) + len(block))
                content += block
                if len(content) > self._largest:
                    why = f"more than {self._largest >> 20} MiB"
                    raise too_large(self.account.server, path, why)
            return bytes(content)
        except (HTTPError, OSError) as error:
            raise unreachable(self.account.server, _reason_of(error)) from error
        finally:
            # The traceback of an error has this frame, and who tries again keeps the error until then.
            content.clear()

    def lines(self, response: urllib3.BaseHTTPResponse, path: str) -> Iterator[bytes]:
        """The lines of an answer as they come; ends where it is cut off or silent for too long: who watches asks again."""
        rest = bytearray()
        try:
            while block := response.read1(_BLOCK):
                first, *following = block.split(b"\n")
                # Added to what is there, and not put together anew with each packet.
                rest += first
                for part in following:
                    yield bytes(rest)
                    rest = bytearray(part)
                if len(rest) > self._largest:
                    raise too_large(self.account.server, path, "a line without an end")
        except (HTTPError, OSError, ssl.SSLError):
            return

    def _send_twice(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, read_timeout: float
    ) -> urllib3.BaseHTTPResponse:
        shown = self._credentials.show()
        response = self._send(method, target, headers, body, read_timeout)
        if response.status == 401:
            # First: an exec plugin that is asked again may fail.
            response.close()
            if self._credentials.renew(shown):
                response = self._send(method, target, headers, body, read_timeout)
        if response.status == 401:
            response.close()
            raise unauthorized(self.account.server, self.account.name)
        return response

    def _send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None, read_timeout: float
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
                timeout=urllib3.Timeout(connect=CONNECT, read=read_timeout),
                preload_content=False,
                redirect=False,
                retries=False,
            )
        except (HTTPError, OSError, ValueError) as error:
            if isinstance(reason := _innermost(error), ssl.SSLCertVerificationError):
                raise untrusted(self.account.server, str(reason)) from error
            raise unreachable(self.account.server, _reason_of(error)) from error

    def _connections(self) -> urllib3.PoolManager:
        """Connections with the certificates that are there now; a new token needs no new ones.

        Who is answered at the moment, as watches are for minutes, keeps the connection.
        """
        with self._opening:
            shown = self._credentials.show()
            before = self._shown
            if (shown.ca, shown.certificate, shown.key) != (before.ca, before.certificate, before.key):
                # Half of a file, or a certificate without its key, is about to be whole: until then those of before count.
                with suppress(ClusterError):
                    self._pool = open_pool(self.account, shown, self._environment)
                    self._shown = shown
            return self._pool


def pause_of(retry_after: str | None, number: int) -> float:
    """Seconds to wait before asking a busy server again, after *number* times."""
    return min(_LONGEST_PAUSE, max(read_retry_after(retry_after), 0.2 * 2.0**number))


def read_retry_after(retry_after: str | None) -> float:
    """Seconds that a server's Retry-After says; 0 for none, and for a date, which proxies write by clocks of their own."""
    digits = (retry_after or "").strip()
    return float(digits) if digits.isascii() and digits.isdigit() else 0.0


def _reason_of(error: BaseException) -> str:
    """Return why nothing came, without the names of Python classes that urllib3 puts before it."""
    return _OF_CLASS.sub("", str(_innermost(error)))


_OF_CLASS: Final = re.compile(r"^<?[\w.]+(?:\(host=[^)]{0,300}\)| object at 0x[0-9a-f]+)>?: ")


def _innermost(error: BaseException) -> BaseException:
    """Returns the error of the socket, which urllib3 wraps: as a reason, and errors of TLS as an argument."""
    while not isinstance(error, ssl.SSLError):
        is_tls = isinstance(error, urllib3.exceptions.SSLError)
        within = next(iter(error.args), None) if is_tls else getattr(error, "reason", None)
        if not isinstance(within, BaseException):
            break
        error = within
    return error
