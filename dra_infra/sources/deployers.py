"""Which objects are those by which Argo CD and Flux deploy others, and which files may have one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api import group_of
from dra_infra.sources.files import files_in

_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "argoproj.io": frozenset({"Application", "ApplicationSet"}),
    "helm.toolkit.fluxcd.io": frozenset({"HelmRelease"}),
    "kustomize.toolkit.fluxcd.io": frozenset({"Kustomization"}),
}
_GROUPS: Final = (b"argoproj.io/", b".toolkit.fluxcd.io/")
_MOST_READ: Final = 2**22
"""Bytes of a file in which a group is looked for."""


def is_deployer(manifest: Mapping[str, Any]) -> bool:
    """True for an object by which Argo CD or Flux deploys others."""
    return str(manifest.get("kind")) in _KINDS.get(group_of(manifest), ())


def may_deploy(path: Path) -> bool:
    """True where a file of YAML or JSON at or below *path* names a group of such objects."""
    for file in files_in(path):
        if isinstance(file, Path) and file.is_file():
            try:
                with file.open("rb") as opened:
                    text = opened.read(_MOST_READ)
            except OSError:
                continue
            if any(group in text for group in _GROUPS):
                return True
    return False
