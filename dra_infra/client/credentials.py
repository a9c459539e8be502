"""Credentials that a request shows to the API server: a certificate, and a header that may expire."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.client.kubeconfig import Account, ExecPlugin
from dra_infra.client.objects import text
from dra_infra.client.refusals import bad_credentials

_SECONDS: Final = 60.0
"""Seconds for an exec plugin, which talks to its cloud."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Credentials at one moment, and whom they may be shown to.

    Args:
        authorization: The header; empty without one.
        certificate: Certificate chain in PEM form; empty without one.
        key: Its private key.
        ca: Certificate authorities of the server in PEM form; empty for those of the system.
    """

    authorization: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)


class Credentials:
    """Those of one account; safe to use from several threads.

    Files are read for each request, by their names: Kubernetes puts others in the place of those of pods before they run out,
    and so do those who rotate certificates. They are small, and a time of change would not tell of a file that was written
    twice within one tick. One that cannot be read, or is empty, has what it had: it is being written. What a plugin said is
    asked for again once the server refuses it.
    """

    def __init__(self, account: Account) -> None:
        self._account = account
        self._said: Mapping[str, Any] | None = None
        self._had: dict[Path, str] = {}
        self._turn = threading.Lock()

    def show(self) -> Shown:
        """Header and client certificate to send.

        Raises:
            ClusterError: `cluster-credentials`.
        """
        with self._turn:
            return self._show()

    def renew(self, refused: Shown) -> bool:
        """Ask again after a refusal; whether what there is differs from what was refused."""
        with self._turn:
            if self._show() == refused:
                # Else somebody else was refused as well, and has asked.
                self._said = None
            return self._show() != refused

    def _show(self) -> Shown:
        user = self._account.user
        token = user.token
        certificate = self._read(user.certificate_file, user.certificate)
        key = self._read(user.key_file, user.key)
        if user.plugin is not None:
            if self._said is None:
                self._said = _run(user.plugin, self._account)
            token = text(self._said.get("token"))
            certificate = text(self._said.get("clientCertificateData")) or certificate
            key = text(self._said.get("clientKeyData")) or key
        elif user.token_file is not None:
            token = self._read(user.token_file, "").strip()
            if not token:
                why = f"the token file {user.token_file} cannot be read, or is empty"
                raise bad_credentials(self._account.name, why)
        header = f"Bearer {token}" if token else ""
        if not header and user.username:
            basic = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            header = f"Basic {basic}"
        if not header.isascii() or not header.isprintable():
            raise bad_credentials(self._account.name, "the token has characters that no header takes")
        ca = self._read(self._account.ca_file, self._account.ca)
        return Shown(authorization=header, certificate=certificate, key=key, ca=ca)

    def _read(self, file: Path | None, first: str) -> str:
        """Content of a file, or what it was when last read; *first* before that, and without a file."""
        if file is None:
            return first
        with suppress(OSError, UnicodeDecodeError):
            if (content := file.read_text()).strip():
                self._had[file] = content
        return self._had.get(file, first)


def _run(plugin: ExecPlugin, account: Account) -> Mapping[str, Any]:
    """The status of the ExecCredential that the plugin prints."""
    interactive = sys.stdin is not None and sys.stdin.isatty()
    try:
        done = subprocess.run(
            plugin.command,
            env={
                **os.environ,
                **plugin.environment,
                "KUBERNETES_EXEC_INFO": _info(plugin, account, interactive=interactive),
            },
            stdin=None if interactive else subprocess.DEVNULL,
            # A plugin that wants somebody to log in says so there.
            stderr=None if interactive else subprocess.PIPE,
            stdout=subprocess.PIPE,
            timeout=None if interactive else _SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        why = f"the exec plugin {plugin.command[0]} is not installed"
        raise bad_credentials(account.name, why, plugin.install_hint) from error
    except (OSError, ValueError) as error:
        raise bad_credentials(
            account.name, f"the exec plugin {plugin.command[0]} cannot be run: {error}"
        ) from error
    except subprocess.TimeoutExpired as error:
        why = f"the exec plugin {plugin.command[0]} did not end within {_SECONDS:g} s"
        raise bad_credentials(account.name, why) from error
    if done.returncode != 0:
        said = (done.stderr or b"").decode("utf-8", "replace").strip()
        why = f"the exec plugin {plugin.command[0]} ended with {done.returncode}: {said or 'it says nothing'}"
        raise bad_credentials(account.name, why)
    try:
        status = json.loads(done.stdout)["status"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise bad_credentials(
            account.name, f"the exec plugin {plugin.command[0]} prints no ExecCredential"
        ) from error
    return status if isinstance(status, Mapping) else {}


def _info(plugin: ExecPlugin, account: Account, *, interactive: bool) -> str:
    spec: dict[str, Any] = {"interactive": interactive}
    if plugin.needs_cluster:
        spec["cluster"] = {
            "server": account.server,
            "tls-server-name": account.server_name,
            "insecure-skip-tls-verify": account.insecure,
            "certificate-authority-data": base64.b64encode(account.ca.encode()).decode(),
        }
    return json.dumps({"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec})
