"""The objects of a rendered chart: their names for outputs, and how two renderings differ."""

from __future__ import annotations

from typing import Any

import yaml

Objects = dict[tuple[str, str], dict[str, Any]]
"""Objects by `Kind.group/apiVersion`, as the vendor's provider writes it, and `namespace/name` or `name`."""


def parse(manifest: str) -> Objects:
    """Return the objects of YAML documents; what has no kind is none."""
    found: Objects = {}
    for document in yaml.load_all(manifest, yaml.CSafeLoader):
        if not isinstance(document, dict) or not document.get("kind"):
            continue
        api_version = str(document.get("apiVersion") or "")
        group = f".{api_version.rpartition('/')[0]}" if "/" in api_version else ""
        metadata = document.get("metadata") or {}
        place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
        found[f"{document['kind']}{group}/{api_version}", f"{place}{metadata.get('name', '')}"] = document
    return found


def list_names(manifest: str) -> dict[str, list[str]]:
    """Return the names of the objects by kind, sorted."""
    names: dict[str, list[str]] = {}
    for kind, name in sorted(parse(manifest)):
        names.setdefault(kind, []).append(name)
    return names


def describe_changes(before: str, after: str) -> str:
    """Return one line per object: `+` is new, `~` differs, `-` goes, nothing stays.

    Contents are left out: values may be secret, and any object may hold them.
    """
    old, new = parse(before), parse(after)
    signs = {key: " " if old.get(key) == new.get(key) else "~" for key in old.keys() & new.keys()}
    signs |= dict.fromkeys(new.keys() - old.keys(), "+") | dict.fromkeys(old.keys() - new.keys(), "-")
    return "\n".join(f"{signs[key]} {key[0]} {key[1]}" for key in sorted(signs))
