"""The version of an API server."""

from __future__ import annotations

from dra_infra.client.objects import text
from dra_infra.client.session import Session
from dra_infra.kubernetes.api import mapping


def read_server_version(session: Session) -> str:
    """Return what `/version` reports, such as `v1.37.2+k3s1`; empty where it may not be read.

    Raises:
        ClusterError: The codes of `Session`.
    """
    status, version = session.get_json("/version")
    return text(mapping(version).get("gitVersion")) if status == 200 else ""
