"""Where the cluster is and who we are there, from a kubeconfig's path or contents.

Format: https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/.
"""

from __future__ import annotations

import base64
import binascii
import os
import ssl
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import yaml

UNSUPPORTED_USER_FIELDS: Final = ("exec", "auth-provider")
UNSUPPORTED_CLUSTER_FIELDS: Final = ("proxy-url", "tls-server-name")
DEFAULT_PATH: Final = Path("~/.kube/config")

T = TypeVar("T")


class UnreachableError(Exception):
    """There is no API server to talk to; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """One context of a kubeconfig, ready to connect.

    Args:
        server: Base address.
        namespace: Of objects that name none.
        trust: How the server proves itself, and our client certificate if there is one.
        headers: Credentials.
    """

    server: str
    namespace: str
    trust: ssl.SSLContext = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


def load_access(
    kubeconfig: str, *, context: str = "", cluster: str = "", namespace: str = ""
) -> ClusterAccess:
    """Read *kubeconfig*, which is a path or contents; empty means `KUBECONFIG`, then the usual file.

    Args:
        kubeconfig: Provider option of that name.
        context: Overrides the current context.
        cluster: Overrides the cluster of the context.
        namespace: Overrides the namespace of the context.

    Raises:
        UnreachableError: The file is missing or broken, or uses what the stand-in does not know.
    """
    target, user, chosen, directory = _choose(kubeconfig, context, cluster)
    for owner, fields in ((user, UNSUPPORTED_USER_FIELDS), (target, UNSUPPORTED_CLUSTER_FIELDS)):
        for name in fields:
            if owner.get(name):
                raise UnreachableError(f"kubeconfig field {name!r} is not part of the stand-in provider")
    if not target.get("server"):
        raise UnreachableError("invalid configuration: no server found for cluster")
    try:
        return ClusterAccess(
            server=str(target["server"]).rstrip("/"),
            namespace=namespace or chosen.get("namespace") or "default",
            trust=_trust(target, user, directory),
            headers=_credentials(user, directory),
        )
    except (OSError, ValueError, binascii.Error) as error:
        raise UnreachableError(f"unable to use kubeconfig credentials: {error}") from error


def flatten(kubeconfig: str, *, context: str = "", cluster: str = "") -> str:
    """Return a kubeconfig with the one context that `load_access` would take, and without other files.

    Raises:
        UnreachableError: As from `load_access`.
    """
    target, user, chosen, directory = _choose(kubeconfig, context, cluster)
    try:
        embedded = [
            _embed(target, directory, "certificate-authority"),
            _embed(user, directory, "client-certificate", "client-key"),
        ]
    except (OSError, ValueError, binascii.Error) as error:
        raise UnreachableError(f"unable to use kubeconfig credentials: {error}") from error
    if user.get("tokenFile") and not user.get("token"):
        embedded[1]["tokenFile"] = str((directory / user["tokenFile"]).absolute())
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": embedded[0]}],
            "users": [{"name": "user", "user": embedded[1]}],
            "contexts": [{"name": "context", "context": {**chosen, "cluster": "cluster", "user": "user"}}],
            "current-context": "context",
        }
    )


def _embed(owner: Mapping[str, Any], directory: Path, *names: str) -> dict[str, Any]:
    contents = {f"{name}-data": _content(owner, name, directory) for name in names}
    others = {name: value for name, value in owner.items() if name not in names}
    return others | {
        name: base64.b64encode(content).decode() for name, content in contents.items() if content
    }


def _choose(
    kubeconfig: str, context: str, cluster: str
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any], Path]:
    """Return cluster, user and context, and the directory that relative paths in them start from."""
    text, directory = _read(kubeconfig)
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The parser's own message quotes the text, which holds credentials.
        raise UnreachableError("failed to parse kubeconfig: not YAML") from error
    if not isinstance(document, dict):
        raise UnreachableError("failed to parse kubeconfig: not a mapping")
    chosen = _entry(document, "contexts", "context", context or document.get("current-context") or "")
    target = _entry(document, "clusters", "cluster", cluster or chosen.get("cluster") or "")
    user = _entry(document, "users", "user", chosen["user"]) if chosen.get("user") else {}
    return target, user, chosen, directory


def _read(kubeconfig: str) -> tuple[str, Path]:
    """Return the text and the directory that relative paths in it start from."""
    if "\n" in kubeconfig or kubeconfig.lstrip().startswith("{"):
        return kubeconfig, Path()
    paths = [kubeconfig] if kubeconfig else [path for path in _ambient_paths() if path]
    if len(paths) > 1:
        raise UnreachableError("KUBECONFIG names several files; the stand-in provider reads one")
    path = Path(paths[0] if paths else DEFAULT_PATH).expanduser()
    try:
        return path.read_text(), path.parent
    except FileNotFoundError as error:
        raise UnreachableError(
            f"failed to parse kubeconfig: {path} does not exist; "
            "set KUBECONFIG or the provider option kubernetes:kubeconfig"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UnreachableError(f"failed to read kubeconfig {path}: {error}") from error


def _ambient_paths() -> list[str]:
    return os.environ.get("KUBECONFIG", "").split(os.pathsep)


def _entry(document: Mapping[str, Any], section: str, kind: str, name: str) -> dict[str, Any]:
    if not name:
        raise UnreachableError(f"invalid configuration: no {kind} is set in kubeconfig")
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
            found: dict[str, Any] = entry[kind]
            return found
    raise UnreachableError(f"{kind} {name!r} does not exist in kubeconfig")


def _content(owner: Mapping[str, Any], name: str, directory: Path) -> bytes:
    """Return a certificate or key, embedded or in a file; empty when there is none."""
    if owner.get(f"{name}-data"):
        return base64.b64decode(owner[f"{name}-data"], validate=True)
    return (directory / owner[name]).read_bytes() if owner.get(name) else b""


def _trust(target: Mapping[str, Any], user: Mapping[str, Any], directory: Path) -> ssl.SSLContext:
    # Not create_default_context: from Python 3.13 on that one asks for certificate extensions which
    # API servers that sign for themselves do not write.
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority = _content(target, "certificate-authority", directory)
    if target.get("insecure-skip-tls-verify"):
        trust.check_hostname = False
        trust.verify_mode = ssl.CERT_NONE
    elif authority:
        trust.load_verify_locations(cadata=authority.decode())
    else:
        trust.load_default_certs()
    certificate = _content(user, "client-certificate", directory)
    if certificate:
        pair = certificate + b"\n" + _content(user, "client-key", directory)
        _with_file(pair, trust.load_cert_chain)
    return trust


def _with_file(content: bytes, use: Callable[[str], T]) -> T:
    """Call *use* with a private file of *content*: OpenSSL reads client keys from files only."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        return use(file.name)


def _credentials(user: Mapping[str, Any], directory: Path) -> dict[str, str]:
    token = user.get("token") or (
        (directory / user["tokenFile"]).read_text().strip() if user.get("tokenFile") else ""
    )
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}
