"""Who may talk to a throw-away cluster: its token file and the key that signs service account tokens."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from typing import TYPE_CHECKING

from tools.cluster import components as parts
from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ADMIN = "admin"

_USERS = {
    ADMIN: ("admin", "system:masters"),
    parts.CONTROLLER_MANAGER: ("system:kube-controller-manager", "system:masters"),
    parts.SCHEDULER: ("system:kube-scheduler", ""),
}


def of_node(node: str) -> str:
    """Name of the kubeconfig of *node*'s kubelet. No colons: they separate the files that KUBECONFIG names."""
    return f"node-{node}"


def of_person(person: str) -> str:
    """Name of the kubeconfig of *person*."""
    return f"person-{person}"


def write_tokens(
    path: Path, nodes: Iterable[str], people: Mapping[str, Iterable[str]] | None = None
) -> dict[str, str]:
    """Write the token file of an API server and return the token of each user, by name of its kubeconfig.

    Args:
        path: Where to write it, readable for its owner only.
        nodes: Nodes whose kubelets get a user of their own.
        people: Users by name, with their groups.
    """
    users = {
        **_USERS,
        **{of_node(node): (f"system:node:{node}", "system:nodes") for node in nodes},
        **{of_person(person): (person, ",".join(groups)) for person, groups in (people or {}).items()},
    }
    tokens = {key: secrets.token_urlsafe(24) for key in users}
    path.touch(mode=0o600)
    path.write_text(
        "".join(f'{tokens[key]},{user},{user},"{groups}"\n' for key, (user, groups) in users.items())
    )
    return tokens


def write_signing_key(path: Path) -> None:
    """Make a key and write it, readable for its owner only.

    Raises:
        ToolError: When openssl is missing or fails.
    """
    openssl = shutil.which("openssl")
    if openssl is None:
        raise ToolError("openssl is not on PATH; it makes the cluster's signing key", hint="install openssl")
    # ecparam and not genpkey: only from its older format does the API server take the public key as well.
    command = [openssl, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ToolError(f"openssl ecparam failed with status {done.returncode}: {done.stderr.strip()}")
    path.chmod(0o600)
