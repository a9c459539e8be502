"""A small HTTP server for metrics. It answers GET /metrics and nothing else."""

from __future__ import annotations

import errno
import http.server
import socket
import socketserver
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.logs import tell
from dra_infra.plugin.command.setting_values import Address

_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = 10.0
"""For whoever connects and then says nothing."""

_WAKE: Final = 1.0


class MetricsServer:
    """Serves a text, made anew for each request.

    Args:
        address: Where to listen; port 0 is any that is free.
        text: Makes it; called from several threads.

    Raises:
        PluginError: `plugin-address-not-usable`.
    """

    def __init__(self, address: Address, text: Callable[[], bytes]) -> None:
        class Handler(_Handler):
            make = staticmethod(text)

        try:
            self._server = _listen(address, Handler)
        except OSError as error:
            raise not_usable("metricsAddress", address, error) from error
        self.port = int(self._server.server_address[1])
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop listening."""
        self._ended = True
        # Wakes the one who waits for a connection; where nobody can connect, nobody waits for it to end.
        place = (str(self._server.server_address[0]), self.port)
        with suppress(OSError), socket.create_connection(place, timeout=_WAKE):
            self._thread.join(_WAKE)
        self._server.server_close()

    def _run(self) -> None:
        # Not `serve_forever`, which wakes twice a second to see whether it is to end.
        while not self._ended:
            self._server.handle_request()


class _Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    # Not HTTPServer: that one asks for the name of its own address, which takes seconds where no DNS answers.
    daemon_threads = True
    allow_reuse_address = True

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002  (socketserver's names)
        """Somebody went away in the middle, mostly; the next scrape tells whether it was more."""
        tell("debug", "a request for metrics failed", error=repr(sys.exception()))


class _Handler(http.server.BaseHTTPRequestHandler):
    make: Callable[[], bytes]
    timeout = _SECONDS
    server_version = "dra-infra-plugin"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer."""
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "only /metrics is here")
            return
        body = self.make()
        self.send_response(200)
        self.send_header("Content-Type", _TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  (http.server's name)
        """Nothing: whoever scrapes knows that it did."""


def _listen(address: Address, handler: type[_Handler]) -> _Server:
    try:
        return _server(address, handler)
    except OSError as error:
        if address.host != "::" or isinstance(error, socket.gaierror):
            raise
    # A machine without IPv6 has no such address; all of IPv4 is then all there is.
    return _server(Address("0.0.0.0", address.port), handler)  # noqa: S104


def _server(address: Address, handler: type[_Handler]) -> _Server:
    try:
        family, *_, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except UnicodeError as error:
        # Python's own check of names: a part that is empty, or longer than DNS has them.
        raise socket.gaierror(socket.EAI_NONAME, "no host is called so") from error
    kind = type("_FamilyServer", (_Server,), {"address_family": family})
    server: _Server = kind(place[:2], handler)
    return server


@contextmanager
def held(address: Address) -> Iterator[None]:
    """Listen at an address, and answer nobody.

    Raises:
        OSError: It cannot be had.
    """
    server = _listen(address, _Handler)
    try:
        yield
    finally:
        server.server_close()


def not_usable(key: str, address: Address, error: OSError) -> PluginError:
    """That nothing can listen at an address."""
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        hint = f"give an address of this machine, or :{address.port} for all that it has"
    elif isinstance(error, PermissionError):
        hint = "choose a port from 1024 on: those below are for root"
    else:
        hint = "choose a free port; where two instances share the node's network in a rolling update, leave it out"
    problem = Problem(
        path=key,
        code="plugin-address-not-usable",
        message=f"cannot listen at {address}: {error.strerror or error}",
        hint=hint,
    )
    return PluginError([problem])
