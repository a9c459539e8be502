"""A git server behind a proxy on a loopback port, for `pulumi package add`.

Pulumi takes addresses of repositories with https, a name with a dot and no port alone. So the server is a proxy that is every host itself.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.forge.tls_front import Authority


class _Handler(BaseHTTPRequestHandler):
    """Passes each request to `git http-backend`, as a web server does."""

    protocol_version = "HTTP/1.1"
    root: Path
    tls: ssl.SSLContext

    def do_CONNECT(self) -> None:
        """Be the host that is asked for: what follows on the connection is TLS."""
        self.send_response(200)
        self.end_headers()
        self.connection = self.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""

    def _answer(self, body: bytes) -> None:
        address = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": address.path,
            "QUERY_STRING": address.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serve(repositories: Path, folder: Path) -> Iterator[dict[str, str]]:
    """Serve a folder with repositories as `https://git.example.org`; yields the environment in which it is found."""
    authority = Authority.make(folder, "git")
    certificate, key = authority.issue("server", names="DNS:git.example.org")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    handler = type("Handler", (_Handler,), {"root": repositories, "tls": tls})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        proxy = f"http://127.0.0.1:{server.server_port}"
        yield {"HTTPS_PROXY": proxy, "SSL_CERT_FILE": str(authority.certificate)}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
