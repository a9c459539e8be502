"""The API server and the user, from kubeconfig files or from the service account of the pod this runs in.

As kubectl has it (client-go, tools/clientcmd): `--kubeconfig`, else the files of KUBECONFIG, else ~/.kube/config,
else the service account. Of several files the first that names a thing wins, and paths are relative to the file they
are in.

Nothing secret is in the `repr` of accounts and users.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from dra_infra.client.objects import text
from dra_infra.client.refusals import bad_kubeconfig, no_kubeconfig, unknown_context

_EXEC_GROUP: Final = "client.authentication.k8s.io/"
_EXEC_VERSIONS: Final = ("v1", "v1beta1")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecPlugin:
    """A program that hands out credentials, such as `aws eks get-token` (KEP 541).

    Args:
        api_version: Of the ExecCredential that it reads and prints.
        command: The program and its arguments.
        environment: What is added to ours.
        install_hint: What to say when the program is not there.
        needs_cluster: Whether it wants to know which cluster it is for.
    """

    api_version: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    needs_cluster: bool = False

    @classmethod
    def read(cls, plugin: Mapping[str, Any], folder: Path, file: Path) -> ExecPlugin:
        """An exec plugin: the `exec` of a user; a command with a slash is relative to *folder*.

        Raises:
            ClusterError: `kubeconfig-unreadable`.
        """
        version, command = text(plugin.get("apiVersion")), text(plugin.get("command"))
        if not command or version not in {f"{_EXEC_GROUP}{each}" for each in _EXEC_VERSIONS}:
            raise bad_kubeconfig(
                file, f"its exec plugin has no command or another version than v1: {version!r}"
            )
        if "/" in command:
            command = str(folder / command)
        arguments = plugin.get("args") or []
        variables = plugin.get("env") or []
        return cls(
            api_version=version,
            command=(command, *(str(each) for each in arguments)),
            environment={
                text(each.get("name")): text(each.get("value"))
                for each in variables
                if isinstance(each, Mapping)
            },
            install_hint=text(plugin.get("installHint")),
            needs_cluster=plugin.get("provideClusterInfo") is True,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """Credentials of a user; the first that is there counts: certificate, and plugin, token file, token or password.

    Certificate and key of files are what these had when the account was found; `Credentials` reads them again.
    """

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    certificate: str = field(default="", repr=False)
    certificate_file: Path | None = None
    key: str = field(default="", repr=False)
    key_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | None = None


REQUEST_TIMEOUT: Final = 60.0
"""Seconds. An API server ends a list after as long by itself (`--request-timeout` of kube-apiserver)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """One user at one API server.

    Args:
        name: Of the context.
        server: Address without a trailing slash.
        namespace: What a command without `--namespace` means.
        ca: Certificate authorities in PEM form; empty for those of the system.
        ca_file: The file that they are of, if any: `Credentials` reads it again.
        insecure: Whether the kubeconfig says not to check the server's certificate.
        server_name: Whose certificate it is, where that is not the host of the address.
        proxy: Address of a proxy, which goes before those of the environment.
        user: Who asks.
        request_timeout: Seconds of silence after which a request is given up.
    """

    name: str
    server: str
    namespace: str = "default"
    ca: str = field(default="", repr=False)
    ca_file: Path | None = None
    insecure: bool = False
    server_name: str = ""
    proxy: str = field(default="", repr=False)
    user: User = field(default_factory=User)
    request_timeout: float = REQUEST_TIMEOUT


SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LARGEST: Final = 4 * 1024 * 1024
_SECTIONS: Final = {"clusters": "cluster", "contexts": "context", "users": "user"}


@dataclass(slots=True)
class _Merged:
    """Entries of all files by section and name, each with the folder that its paths are relative to."""

    current: str = ""
    entries: dict[str, dict[str, tuple[Mapping[str, Any], Path]]] = field(
        default_factory=lambda: {section: {} for section in _SECTIONS}
    )


def find_account(
    kubeconfig: Path | None,
    context: str | None,
    environment: Mapping[str, str],
    *,
    service_account: Path = SERVICE_ACCOUNT,
    can_choose: bool = True,
) -> Account:
    """Find the API server and the user to ask it as.

    Args:
        kubeconfig: The file to read, and no other.
        context: Its name; else the current one.
        environment: KUBECONFIG, HOME, and what tells a pod where its API server is.
        service_account: Folder that a pod has its account in.
        can_choose: Whether whoever asked may name a context: hints do not say `--context` where there is no such option.

    Raises:
        ClusterError: `kubeconfig-unreadable`, `context-not-known`.
    """
    files = _files(kubeconfig, environment)
    if not files and context is None and environment.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(environment, service_account)
    if not files:
        raise no_kubeconfig()
    merged = _Merged()
    for file in files:
        _merge(_read(file), file, merged)
    return _choose(merged, context or merged.current, files[0], can_choose=can_choose)


def _files(kubeconfig: Path | None, environment: Mapping[str, str]) -> list[Path]:
    if kubeconfig is not None:
        return [kubeconfig.expanduser()]
    listed = [Path(each).expanduser() for each in environment.get("KUBECONFIG", "").split(os.pathsep) if each]
    if listed:
        # As kubectl does: files that are not there are passed over, but one must be.
        return [each for each in listed if each.exists()] or listed[:1]
    home = environment.get("HOME")
    own = Path(home) / ".kube" / "config" if home else None
    return [own] if own is not None and own.exists() else []


def _read(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise bad_kubeconfig(file, "it has more than 4 MiB")
        found = yaml.load(content, Loader=yaml.CSafeLoader)
    except OSError as error:
        raise bad_kubeconfig(file, error.strerror or str(error)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # The parser's message quotes the line, which may hold a token.
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise bad_kubeconfig(file, f"it is not YAML{place}") from error
    if not isinstance(found, Mapping):
        raise bad_kubeconfig(file, "it is no mapping with clusters, contexts and users")
    return found


def _merge(document: Mapping[str, Any], file: Path, merged: _Merged) -> None:
    merged.current = merged.current or text(document.get("current-context"))
    for section, key in _SECTIONS.items():
        listed = document.get(section) or []
        if not isinstance(listed, list):
            raise bad_kubeconfig(file, f"{section} is no list")
        for entry in listed:
            if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
                raise bad_kubeconfig(file, f"an entry of {section} has no name")
            content = entry.get(key) or {}
            if not isinstance(content, Mapping):
                raise bad_kubeconfig(file, f"{key} {entry['name']!r} is no mapping")
            merged.entries[section].setdefault(entry["name"], (content, file.parent))


def _choose(merged: _Merged, context: str, file: Path, *, can_choose: bool) -> Account:
    contexts = merged.entries["contexts"]
    if context not in contexts:
        raise unknown_context(context, sorted(contexts), file, can_choose=can_choose)
    chosen, _ = contexts[context]
    name = text(chosen.get("cluster"))
    if name not in merged.entries["clusters"]:
        raise bad_kubeconfig(file, f"context {context!r} names cluster {name!r}, which is not in it")
    cluster, folder = merged.entries["clusters"][name]
    server = text(cluster.get("server")).rstrip("/")
    if not server.startswith(("https://", "http://")):
        raise bad_kubeconfig(file, f"cluster {name!r} has no address of a server")
    user_name = text(chosen.get("user"))
    if user_name and user_name not in merged.entries["users"]:
        raise bad_kubeconfig(file, f"context {context!r} names user {user_name!r}, which is not in it")
    user, users_folder = merged.entries["users"].get(user_name, ({}, folder))
    return Account(
        name=context,
        server=server,
        namespace=text(chosen.get("namespace")) or "default",
        ca=_content(cluster, "certificate-authority", folder, file),
        ca_file=_named_file(cluster, "certificate-authority", folder),
        insecure=cluster.get("insecure-skip-tls-verify") is True,
        server_name=text(cluster.get("tls-server-name")),
        proxy=text(cluster.get("proxy-url")),
        user=_user(user, users_folder, file),
    )


def _user(user: Mapping[str, Any], folder: Path, file: Path) -> User:
    if user.get("auth-provider"):
        raise bad_kubeconfig(
            file, "its user has an auth-provider, which Kubernetes took out in 1.26: use an exec plugin"
        )
    token_file = text(user.get("tokenFile"))
    plugin = user.get("exec")
    return User(
        token=text(user.get("token")),
        token_file=folder / token_file if token_file else None,
        certificate=_content(user, "client-certificate", folder, file),
        certificate_file=_named_file(user, "client-certificate", folder),
        key=_content(user, "client-key", folder, file),
        key_file=_named_file(user, "client-key", folder),
        username=text(user.get("username")),
        password=text(user.get("password")),
        plugin=ExecPlugin.read(plugin, folder, file) if isinstance(plugin, Mapping) else None,
    )


def _content(entry: Mapping[str, Any], key: str, folder: Path, file: Path) -> str:
    """PEM text that is in the kubeconfig itself, or in a file that it names."""
    import base64

    try:
        named = _named_file(entry, key, folder)
        if named is None:
            return base64.b64decode(text(entry.get(f"{key}-data")), validate=True).decode()
        return _read_pem(named)
    except OSError as error:
        raise bad_kubeconfig(file, f"{key} {entry.get(key)}: {error.strerror or error}") from error
    except ValueError as error:
        raise bad_kubeconfig(file, f"{key} is not the base64 of a PEM text") from error


def _named_file(entry: Mapping[str, Any], key: str, folder: Path) -> Path | None:
    """The file that an entry names; what is in the kubeconfig itself goes before it."""
    name = text(entry.get(key))
    return folder / name if name and not text(entry.get(f"{key}-data")) else None


def _read_pem(file: Path) -> str:
    """A file with something in it: an empty one would have the authorities of the system take the place of the cluster's."""
    content = file.read_text()
    if not content.strip():
        raise OSError(errno.ENODATA, "is empty")
    return content


def _in_cluster(environment: Mapping[str, str], folder: Path) -> Account:
    host = environment["KUBERNETES_SERVICE_HOST"]
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    try:
        authority = _read_pem(folder / "ca.crt")
        namespace = (folder / "namespace").read_text().strip()
    except OSError as error:
        raise bad_kubeconfig(folder, error.strerror or str(error)) from error
    return Account(
        name="in-cluster",
        server=f"https://{host}:{port}",
        namespace=namespace or "default",
        ca=authority,
        ca_file=folder / "ca.crt",
        user=User(token_file=folder / "token"),
    )
