"""A chart repository and an OCI registry in one, on loopback, with TLS and a password."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

CONFIG = "application/vnd.cncf.helm.config.v1+json"
LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True, kw_only=True)
class ChartServer:
    """A running server.

    Args:
        repository: Address of the chart repository.
        chart: Address of the chart in the registry.
        certificate: File with the certificate to trust.
    """

    repository: str
    chart: str
    certificate: Path


@contextmanager
def serve(folder: Path, archive: Path, *, user: str, password: str) -> Iterator[ChartServer]:
    """Serve one packed chart to those who know the password.

    Args:
        folder: For the key.
        archive: `<name>-<version>.tgz`.
        user: Who may read it.
        password: Of the user.
    """
    name, _, version = archive.stem.rpartition("-")
    key = folder / "key.pem"
    certificate = folder / "certificate.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", str(key), "-out", str(certificate), "-days", "1", "-subj", "/CN=charts"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    allowed = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    pages: dict[str, tuple[str, bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            known = self.headers.get("Authorization") == allowed
            kind, content = pages.get(self.path, ("text/plain", b""))
            self.send_response(401 if not known else 200 if self.path in pages else 404)
            if not known:
                self.send_header("WWW-Authenticate", 'Basic realm="charts"')
                content = b""
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server looks up.

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    host = f"127.0.0.1:{server.server_port}"
    pages |= _repository(f"https://{host}", name, version, archive)
    pages |= _registry(name, version, archive.read_bytes())
    worker = threading.Thread(target=server.serve_forever)
    worker.start()
    try:
        yield ChartServer(
            repository=f"https://{host}", chart=f"oci://{host}/charts/{name}", certificate=certificate
        )
    finally:
        server.shutdown()
        worker.join()
        server.server_close()


def _repository(address: str, name: str, version: str, archive: Path) -> dict[str, tuple[str, bytes]]:
    entry = {
        "apiVersion": "v2",
        "name": name,
        "version": version,
        "digest": hashlib.sha256(archive.read_bytes()).hexdigest(),
        "urls": [f"{address}/{archive.name}"],
    }
    index = yaml.safe_dump({"apiVersion": "v1", "entries": {name: [entry]}}).encode()
    return {
        "/index.yaml": ("text/yaml", index),
        f"/{archive.name}": ("application/gzip", archive.read_bytes()),
    }


def _registry(name: str, version: str, content: bytes) -> dict[str, tuple[str, bytes]]:
    config = json.dumps({"apiVersion": "v2", "name": name, "version": version}).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(CONFIG, config),
            "layers": [_descriptor(LAYER, content)],
        }
    ).encode()
    root = f"/v2/charts/{name}"
    return {
        "/v2/": ("application/json", b"{}"),
        f"{root}/tags/list": (
            "application/json",
            json.dumps({"name": f"charts/{name}", "tags": [version]}).encode(),
        ),
        f"{root}/manifests/{version}": (MANIFEST, manifest),
        f"{root}/manifests/{_digest(manifest)}": (MANIFEST, manifest),
        f"{root}/blobs/{_digest(config)}": ("application/octet-stream", config),
        f"{root}/blobs/{_digest(content)}": ("application/octet-stream", content),
    }


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
