"""Releases of controllers that make pods of objects of their own: the definitions of older ones drop claims without a word.

The rows are those of catalog/data/controller_releases.yaml, each with its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from dra_infra.catalog.vocabulary import numbers_of, read_data
from dra_infra.kubernetes.api import find_all, group_of, mapping, mappings, value_at
from dra_infra.migration.chart_releases import find_installations
from dra_infra.migration.outcomes import Remark

_TAG: Final = re.compile(r"(?P<image>[^@]*?):v?(?P<release>[0-9]+\.[0-9]+\.[0-9]+)(?:[-+@].*)?")
"""An image whose tag is a release."""

_BY_NAME: Final = "resourceClaimTemplateName"
_UPGRADE: Final = "upgrade it and its definitions, and migrate again; --to bridge leaves the pods as they are"


class Controllers(NamedTuple):
    """What the input says of releases of controllers.

    Args:
        older: By group and kind, why what installs its controller or its definition drops claims.
        known: Groups and kinds whose definition or controller in the input knows claims by name.
    """

    older: Mapping[tuple[str, str], str]
    known: frozenset[tuple[str, str]]

    def find_refusal(self, manifest: Mapping[str, Any], path: str) -> Remark | None:
        """Remark on an object whose definition drops claims, as the input has it; None for others."""
        why = self.older.get(_key_of(manifest))
        return Remark(path, "decide", "controller-too-old", why, _UPGRADE) if why else None

    def find_need(self, manifest: Mapping[str, Any], path: str) -> Remark | None:
        """Remark on an object that needs a release, where the input does not say which one there is."""
        key = _key_of(manifest)
        if key in self.known:
            return None
        rows = [each for each in _rows_of(key) if _is_of(each, manifest)]
        releases = " or ".join(f"{each['name']} {each['since']}" for each in rows)
        message = f"{releases} and newer give claims to pods; definitions of older ones drop them"
        return Remark(path, "changed", "controller-release-needed", message) if rows else None


NO_CONTROLLERS: Final = Controllers({}, frozenset())
"""Nothing is known of any controller."""


@cache
def _rows() -> tuple[Mapping[str, Any], ...]:
    return tuple(read_data("controller_releases.yaml")["controllers"])


@lru_cache(maxsize=1024)
def _rows_of(key: tuple[str, str]) -> tuple[Mapping[str, Any], ...]:
    return tuple(each for each in _rows() if "/".join(key) in each.get("kinds", ()))


def _is_of(row: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """Check that a controller reads the version of an object: two projects have a MPIJob."""
    version = str(manifest.get("apiVersion")).rpartition("/")[2]
    others = {
        name for each in _rows_of(_key_of(manifest)) if each is not row for name in each.get("versions", ())
    }
    return version in row["versions"] if "versions" in row else version not in others


def _key_of(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return group_of(manifest), str(manifest.get("kind"))


def read_controllers(objects: Iterable[Mapping[str, Any]]) -> Controllers:
    """Read which releases of controllers objects install: by their definitions, images and charts."""
    older: dict[tuple[str, str], str] = {}
    known: set[tuple[str, str]] = set()
    defined: dict[tuple[str, str], bool] = {}
    for manifest in objects:
        if manifest.get("kind") == "CustomResourceDefinition":
            spec = mapping(manifest.get("spec"))
            key = str(spec.get("group")), str(value_at(spec, "names", "kind"))
            if (knows := _knows_names(spec)) is not None:
                defined[key] = knows
        for row, release in _find_releases(manifest):
            is_older = numbers_of(release) < numbers_of(str(row["since"]))
            for key in (tuple(each.split("/")) for each in row.get("kinds", ())):
                why = f"{row['name']} {release} is in the input, and definitions before {row['since']} drop claims by name"
                if is_older:
                    older.setdefault((key[0], key[1]), why)
                else:
                    known.add((key[0], key[1]))
    for key, knows in defined.items():
        older.pop(key, None)
        if knows:
            known.add(key)
        else:
            known.discard(key)
            older[key] = f"the definition of {key[1]} in the input has no {_BY_NAME}, so that servers drop it"
    return Controllers({key: why for key, why in older.items() if key not in known}, frozenset(known))


def _knows_names(spec: Mapping[str, Any]) -> bool | None:
    """Check that a definition has claims of pods by name; None where it has no claims, and so says nothing."""
    found: list[bool] = []
    stack: list[Any] = [each.get("schema") for each in mappings(spec.get("versions"))]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            entry = value_at(value, "resourceClaims", "items", "properties")
            if isinstance(entry, Mapping) and "name" in entry:
                found.append(_BY_NAME in entry)
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return all(found) if found else None


def _find_releases(manifest: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each controller that an object installs, with its release."""
    containers = find_all(manifest, ("spec", "template", "spec", "containers", "*", "image"))
    for _, image in containers if manifest.get("kind") == "Deployment" else ():
        if isinstance(image, str) and (tag := _TAG.fullmatch(image)):
            for row in _rows():
                if any(f"/{tag['image']}".endswith(f"/{each}") for each in row.get("images", ())):
                    yield row, tag["release"]
    for installed in find_installations(manifest):
        chart, version, _ = installed.release
        if tag := _TAG.fullmatch(f"{chart}:{version}"):
            for row in _rows():
                if chart in row.get("charts", ()):
                    yield row, tag["release"]
