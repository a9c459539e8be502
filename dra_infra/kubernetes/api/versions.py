"""Converts objects of resource.k8s.io from one version of the API to another.

v1 and v1beta2 are arranged alike; v1beta1 is not. A server converts in the same way between what clients send and ask
for. Upstream: pkg/apis/resource/*/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.kubernetes.api import v1beta1
from dra_infra.kubernetes.api.decoding import GROUP, VERSIONS, can_decode
from dra_infra.kubernetes.api.gates import NEWEST, Release

_NEWEST: Final = Release(minor=f"1.{NEWEST}", gates=frozenset())


def convert(manifest: Mapping[str, Any], version: str) -> dict[str, Any]:
    """*manifest* in *version* (`v1`, `v1beta2` or `v1beta1`); as it is where the version has no such kind.

    Raises:
        ValueError: When *manifest* is of no kind and version that is known here, or *version* is none.
    """
    if not can_decode(manifest) or version not in VERSIONS:
        source = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        raise ValueError(f"{source} cannot be converted to {GROUP}/{version}")
    if not _NEWEST.knows(str(manifest["kind"]), version):
        return dict(manifest)
    source_version = str(manifest["apiVersion"]).rpartition("/")[2]
    hub = v1beta1.to_hub(manifest) if source_version == "v1beta1" else dict(manifest)
    if version == "v1beta1" and source_version != "v1beta1":
        hub = v1beta1.from_hub(hub)
    return {**hub, "apiVersion": f"{GROUP}/{version}"}
