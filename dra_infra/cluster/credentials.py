"""What a request shows to prove who asks: a certificate, and a header that may run out."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.cluster.accounts import Account, ExecPlugin, text_of
from dra_infra.cluster.refusals import bad_credentials
from dra_infra.errors import ClusterError

_SECONDS: Final = 60.0
"""For a plugin that talks to its cloud."""

_FRESH: Final = 60.0
"""Seconds for which a token file is not read again (client-go, transport/token_source.go)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Credentials at one moment.

    Args:
        authorization: The header; empty without one.
        certificate: Certificate chain in PEM form; empty without one.
        key: Its private key.
    """

    authorization: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)


class Credentials:
    """Those of one account; safe to use from several threads.

    A token of a file or plugin is asked for again once the server refuses it, and that of a file each minute, as
    Kubernetes' own clients do: those of pods live for an hour, and are put there anew before that.
    """

    def __init__(self, account: Account, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._account = account
        self._clock = clock
        self._shown: Shown | None = None
        self._read_at = 0.0
        self._turn = threading.Lock()

    def show(self) -> Shown:
        """What to send.

        Raises:
            ClusterError: `cluster-credentials`.
        """
        with self._turn:
            return self._show()

    def renew(self, refused: Shown) -> bool:
        """Ask again after a refusal; whether what there is differs from what was refused."""
        with self._turn:
            if self._shown == refused:
                # Else somebody else was refused as well, and has asked.
                self._shown = None
            return self._show() != refused

    def _show(self) -> Shown:
        if self._shown is None:
            self._shown = self._find()
            self._read_at = self._clock()
        elif self._account.user.token_file is not None and self._clock() - self._read_at > _FRESH:
            self._read_at = self._clock()
            # One that cannot be read just now is no reason not to show what may still be accepted.
            with suppress(ClusterError):
                self._shown = self._find()
        return self._shown

    def _find(self) -> Shown:
        user = self._account.user
        token = user.token
        certificate, key = user.certificate, user.key
        if user.plugin is not None:
            status = _run(user.plugin, self._account)
            token = text_of(status.get("token"))
            certificate = text_of(status.get("clientCertificateData")) or certificate
            key = text_of(status.get("clientKeyData")) or key
        elif user.token_file is not None:
            try:
                token = user.token_file.read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise bad_credentials(
                    self._account.name, f"the token file {user.token_file} cannot be read"
                ) from error
        header = f"Bearer {token}" if token else ""
        if not header and user.username:
            basic = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
            header = f"Basic {basic}"
        if not header.isascii() or not header.isprintable():
            raise bad_credentials(self._account.name, "the token has characters that no header takes")
        return Shown(authorization=header, certificate=certificate, key=key)


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
