"""How to reach an API server: address, token and certificate authority, from and to a kubeconfig."""

from __future__ import annotations

import base64
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from tools.errors import ToolError

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT = httpx.Timeout(60.0, connect=20.0)


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Address and credentials of one user at one API server.

    Args:
        url: ``https://host:port`` without a trailing slash.
        token: Bearer token.
        ca: Certificate authority in PEM form that the server's certificate is checked against.
    """

    url: str
    token: str = field(repr=False)
    ca: str = field(repr=False)

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Connection:
        """Read the current context of a kubeconfig.

        Raises:
            ToolError: When the file is not a kubeconfig with a token and embedded certificate authority.
        """
        try:
            document = yaml.safe_load(path.read_text())
            context = _named(document["contexts"], document["current-context"])["context"]
            cluster = _named(document["clusters"], context["cluster"])["cluster"]
            user = _named(document["users"], context["user"])["user"]
            ca = base64.b64decode(cluster["certificate-authority-data"], validate=True).decode()
            return cls(url=str(cluster["server"]).rstrip("/"), token=str(user["token"]), ca=ca)
        except OSError as error:
            raise ToolError(f"kubeconfig {path}: {error.strerror}") from error
        except (KeyError, LookupError, TypeError, ValueError, yaml.YAMLError) as error:
            raise ToolError(
                f"kubeconfig {path}: no current context with a token and certificate-authority-data",
                hint="use the file that `make cluster` names",
            ) from error

    def kubeconfig(self) -> str:
        """The same as the text of a kubeconfig."""
        name = "dra-infra"
        authority = base64.b64encode(self.ca.encode()).decode()
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": name,
                        "cluster": {"server": self.url, "certificate-authority-data": authority},
                    }
                ],
                "users": [{"name": name, "user": {"token": self.token}}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
                "current-context": name,
            },
            sort_keys=False,
        )

    def client(self) -> httpx.Client:
        """A blocking HTTP client for this server and user."""
        return httpx.Client(**self._client_options())

    def async_client(self) -> httpx.AsyncClient:
        """An asyncio HTTP client for this server and user."""
        return httpx.AsyncClient(**self._client_options())

    def _client_options(self) -> dict[str, Any]:
        return {
            "base_url": self.url,
            "headers": {"Authorization": f"Bearer {self.token}", "Accept": "application/json"},
            "verify": tls_context(self.ca),
            "timeout": _TIMEOUT,
            # A proxy of the user's environment must never see a loopback cluster's token.
            "trust_env": False,
        }


def tls_context(authority: str) -> ssl.SSLContext:
    """Trust exactly *authority* (PEM).

    Not `ssl.create_default_context`: from Python 3.13 on that one also asks for extensions which the certificates
    that Kubernetes' servers make for themselves need not have.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=authority)
    return context


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    found = [entry for entry in entries if entry["name"] == name]
    return found[0]
