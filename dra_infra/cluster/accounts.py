"""Where a cluster is and who asks, as a kubeconfig says it. Nothing secret is in the `repr` of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.cluster.refusals import bad_kubeconfig

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
        """From the `exec` of a user.

        Args:
            plugin: It.
            folder: What a command with a slash is relative to.
            file: The kubeconfig, for messages.

        Raises:
            ClusterError: `kubeconfig-unreadable`.
        """
        version, command = text_of(plugin.get("apiVersion")), text_of(plugin.get("command"))
        if not command or version not in {f"{_EXEC_GROUP}{each}" for each in _EXEC_VERSIONS}:
            raise bad_kubeconfig(
                file, f"its exec plugin has no command or another version than v1: {version!r}"
            )
        if "/" in command:
            command = str(folder / command)
        arguments, variables = plugin.get("args") or [], plugin.get("env") or []
        return cls(
            api_version=version,
            command=(command, *(str(each) for each in arguments)),
            environment={
                text_of(each.get("name")): text_of(each.get("value"))
                for each in variables
                if isinstance(each, Mapping)
            },
            install_hint=text_of(plugin.get("installHint")),
            needs_cluster=plugin.get("provideClusterInfo") is True,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """What proves who asks; the first that is there counts: certificate, and plugin, token file, token or password."""

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    plugin: ExecPlugin | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """One user at one API server.

    Args:
        name: Of the context.
        server: Address without a trailing slash.
        namespace: What a command without `--namespace` means.
        ca: Certificate authorities in PEM form; empty for those of the system.
        insecure: Whether the kubeconfig says not to check the server's certificate.
        server_name: Whose certificate it is, where that is not the host of the address.
        proxy: Address of a proxy, which goes before those of the environment.
        user: Who asks.
    """

    name: str
    server: str
    namespace: str = "default"
    ca: str = field(default="", repr=False)
    insecure: bool = False
    server_name: str = ""
    proxy: str = field(default="", repr=False)
    user: User = field(default_factory=User)


def text_of(value: Any) -> str:
    """*value* where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
