"""Patches that kustomizations name: fields of the kustomization, and the files of an input that are such patches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dra_infra.kubernetes.api import mapping
from dra_infra.sources.files import SourceObject


def find_patch_files(sources: Iterable[SourceObject]) -> frozenset[str]:
    """Return the normal paths of the files that kustomizations among *sources* name as patches."""
    return frozenset(
        os.path.normpath(os.path.join(os.path.dirname(source.file), text))  # noqa: PTH118, PTH120
        for source in sources
        if source.manifest.get("kind") == "Kustomization"
        for _, text, is_inline in patches_in(source.manifest)
        if not is_inline
    )


def patches_in(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Field, text and whether the text is the patch itself, of every patch of a kustomization."""
    for name in ("patches", "patchesJson6902"):
        for index, each in enumerate(_list(manifest, name)):
            for key in ("path", "patch"):
                if isinstance(text := mapping(each).get(key), str):
                    yield f"{name}[{index}].{key}", text, key == "patch"
    for index, each in enumerate(_list(manifest, "patchesStrategicMerge")):
        if isinstance(each, str):
            yield f"patchesStrategicMerge[{index}]", each, "\n" in each or "{" in each


def _list(manifest: Mapping[str, Any], name: str) -> list[Any]:
    items = manifest.get(name)
    return items if isinstance(items, list) else []
