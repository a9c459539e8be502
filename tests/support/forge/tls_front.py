"""A server with TLS of our own in front of a real API server: whose certificate is changed in the middle of the work.

A real one takes a minute to take a new certificate, and shows nobody what clients sent to it.
"""

from __future__ import annotations

import re
import selectors
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tools.cluster import ControlPlane
from tools.cluster.connection import tls_context

_BEARER = re.compile(rb"(?<=Authorization: Bearer )\S+")
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Authority:
    """A certificate authority."""

    certificate: Path
    key: Path

    @classmethod
    def make(cls, folder: Path, name: str) -> Authority:
        """One of its own name."""
        made = cls(folder / f"{name}.crt", folder / f"{name}.key")
        days = ("-days", 2)
        subject = ("-subj", f"/CN={name}")
        _openssl("req", "-x509", *_CURVE, *days, *subject, "-keyout", made.key, "-out", made.certificate)
        return made

    def issue(self, name: str, *, names: str = "IP:127.0.0.1", days: int = 2) -> tuple[Path, Path]:
        """A certificate, and its key.

        Args:
            name: The subject's common name, and the files' name.
            names: Whom it is for, as OpenSSL's subjectAltName; empty for a certificate with a common name alone.
            days: For which it is good from now on; one that has run out has fewer than none.
        """
        certificate, key, request = (
            self.key.with_name(f"{name}.{self.key.stem}.{end}") for end in ("crt", "key", "csr")
        )
        for_whom = ("-addext", f"subjectAltName={names}") if names else ()
        _openssl("req", "-new", *_CURVE, *for_whom, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        signed = ("-CA", self.certificate, "-CAkey", self.key, "-copy_extensions", "copy", "-days", days)
        _openssl("x509", "-req", "-in", request, *signed, "-out", certificate)
        return certificate, key


def _openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class _Shown(NamedTuple):
    """A certificate that is shown, and the tokens sent to who shows it.

    They belong together: a request that is on its way while the certificate changes was sent to the one before.
    """

    context: ssl.SSLContext
    tokens: set[str]


class Front:
    """Answers at one port for as long as it lives, and passes on what comes.

    Args:
        plane: The real API server.
        certificate: What it shows, with its key.
    """

    def __init__(self, plane: ControlPlane, certificate: tuple[Path, Path]) -> None:
        self._plane = plane
        self._place = urlsplit(plane.url)
        self._shown = _Shown(_context(certificate), set())
        self.token = ""
        """Who sends this one is the administrator; others are passed on as they are."""
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.url = f"https://127.0.0.1:{self.port}"
        self._away = False
        threading.Thread(target=self._accept, daemon=True).start()

    def show(self, certificate: tuple[Path, Path], *, clients: Authority | None = None) -> None:
        """Show another certificate, as a server that is started anew: all connections end.

        Args:
            certificate: It, with its key.
            clients: Whose certificates clients have to show.
        """
        self._shown = _Shown(_context(certificate, clients), set())
        self._hang_up()

    @property
    def tokens(self) -> set[str]:
        """All that were sent to who showed the certificate that is shown now."""
        return self._shown.tokens

    @contextmanager
    def away(self) -> Iterator[None]:
        """End all connections, and each that comes."""
        self._away = True
        self._hang_up()
        try:
            yield
        finally:
            self._away = False

    def stop(self) -> None:
        """End it all."""
        self._listener.close()
        self._hang_up()

    def _hang_up(self) -> None:
        for each in tuple(self._open):
            with suppress(OSError):
                # Not the method of a connection with TLS, which takes its state away from who reads it just now.
                socket.socket.shutdown(each, socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        self._open.add(client)
        shown = self._shown
        with suppress(OSError), client:
            if self._away:
                return
            with (
                shown.context.wrap_socket(client, server_side=True) as inner,
                socket.create_connection((self._place.hostname, self._place.port)) as plain,
                tls_context(self._plane.connection.ca).wrap_socket(
                    plain, server_hostname=self._place.hostname
                ) as server,
            ):
                self._open |= {inner, plain, server}
                if shown is not self._shown:
                    # It was changed before this connection was among those that `_hang_up` ends.
                    return
                _relay(inner, server, partial(self._judged, shown.tokens))

    def _judged(self, tokens: set[str], block: bytes) -> bytes:
        tokens.update(each.decode() for each in _BEARER.findall(block))
        real = self._plane.token
        return _BEARER.sub(
            lambda found: real.encode() if found[0].decode() == self.token else found[0], block
        )


def _context(certificate: tuple[Path, Path], clients: Authority | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.certificate)
    return context


def _relay(client: ssl.SSLSocket, server: ssl.SSLSocket, change: Callable[[bytes], bytes]) -> None:
    """Pass on what both say until one of them ends, what the client says as *change* has it.

    In one thread: a connection of OpenSSL may not be read and written by two at a time. Where the API server's session
    ticket is read while a request is written, both go through its state, and the connection may be silent for ever.
    """
    with selectors.DefaultSelector() as ready:
        for source in (client, server):
            ready.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                source, target = (client, server) if key.fileobj is client else (server, client)
                for block in _received(source):
                    if not block:
                        return
                    target.sendall(change(block) if source is client else block)


def _received(source: ssl.SSLSocket) -> Iterator[bytes]:
    """Yields what is there without waiting for more, which may be nothing, as of a session ticket; empty at the end."""
    while True:
        source.settimeout(0)
        try:
            block = source.recv(65536)
        except ssl.SSLWantReadError:
            return
        finally:
            source.settimeout(None)
        yield block
        if not block:
            return
