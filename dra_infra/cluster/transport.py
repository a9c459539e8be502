"""Connections to an API server: its certificate, ours, and the proxy between."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from dra_infra.cluster.accounts import Account
from dra_infra.cluster.credentials import Shown
from dra_infra.cluster.refusals import bad_credentials, bad_kubeconfig

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
        shown: Its certificate, where it has one.
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
        return urllib3.PoolManager(**options)
    try:
        return urllib3.ProxyManager(proxy, **options)
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
        elif account.ca:
            context.load_verify_locations(cadata=account.ca)
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
