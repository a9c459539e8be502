"""The Applications that an ApplicationSet makes: of lists, and of folders of the repository, where its template has nothing but names.

Sources: docs/operator-manual/applicationset/{Generators-List,Generators-Git,Template}.md of argo-cd.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api import mapping, mappings

MOST_APPLICATIONS: Final = 500
_MOST_FOLDERS: Final = 20_000
_PLACEHOLDER: Final = re.compile(r"\{\{-?\s*\.?([A-Za-z_][A-Za-z0-9_.\-]*(?:\[[0-9]+\])?)\s*-?\}\}")


class NotExpandedError(Exception):
    """Why the Applications of an ApplicationSet are not known; the text begins with a field of it."""


def expand_application_set(manifest: Mapping[str, Any], top: Path | None) -> Iterator[dict[str, Any]]:
    """Yield the Applications of an ApplicationSet.

    Args:
        manifest: The ApplicationSet.
        top: The repository whose folders a git generator lists; None where its repository is another one.

    Raises:
        NotExpandedError: For generators and templates that only Argo CD can work out.
    """
    spec = mapping(manifest.get("spec"))
    if spec.get("templatePatch"):
        raise NotExpandedError("templatePatch is not applied")
    namespace = mapping(manifest.get("metadata")).get("namespace")
    template = mapping(spec.get("template"))
    number = 0
    for generator in mappings(spec.get("generators")):
        for parameters in _generate(generator, top):
            number += 1
            if number > MOST_APPLICATIONS:
                raise NotExpandedError(f"it makes more than {MOST_APPLICATIONS} Applications")
            filled = _fill(template, parameters)
            metadata = {"namespace": namespace, **mapping(filled.get("metadata"))}
            yield {
                "apiVersion": manifest.get("apiVersion"),
                "kind": "Application",
                "metadata": {key: value for key, value in metadata.items() if value is not None},
                "spec": mapping(filled.get("spec")),
            }


def generators_of_git(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses of the repositories that git generators list."""
    for generator in mappings(mapping(manifest.get("spec")).get("generators")):
        if "git" in generator:
            yield str(mapping(generator["git"]).get("repoURL") or "")


def _generate(generator: Mapping[str, Any], top: Path | None) -> Iterator[Mapping[str, str]]:
    kind = next((key for key in generator if key not in ("selector", "template")), "")
    body = mapping(generator.get(kind))
    if generator.get("selector") or generator.get("template") or mapping(body).get("template"):
        raise NotExpandedError(f"the selector or template of its {kind} generator is not applied")
    if kind == "list" and not body.get("elementsYaml"):
        for element in mappings(body.get("elements")):
            yield dict(_flatten(element))
    elif kind == "git" and body.get("directories") and not body.get("files"):
        if top is None:
            raise NotExpandedError(f"its git generator lists another repository, {body.get('repoURL')}")
        values = {f"values.{key}": value for key, value in _flatten(mapping(body.get("values")))}
        for path in _find_folders(top, mappings(body["directories"])):
            of_path = _describe_path(path)
            filled = {key: _fill(value, of_path) for key, value in values.items()}
            yield {**of_path, **filled}
    else:
        raise NotExpandedError(f"only Argo CD knows what its {kind or 'empty'} generator gives")


def _flatten(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{above}{key}.")
        elif not isinstance(value, list):
            text = str(value).lower() if isinstance(value, bool) else str("" if value is None else value)
            yield f"{above}{key}", text


def _describe_path(path: str) -> dict[str, str]:
    """Return what templates of both kinds call a folder."""
    name = path.rpartition("/")[2]
    normal = re.sub(r"[^a-z0-9.-]", "-", name.lower())
    segments = {f"path[{index}]": part for index, part in enumerate(path.split("/"))}
    return {
        "path": path,
        "path.path": path,
        "path.basename": name,
        "path.basenameNormalized": normal,
        **segments,
    }


def _find_folders(top: Path, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the folders that patterns name, and that none with `exclude` does; a star stands for one part of a path."""
    taken = [str(each.get("path") or "").split("/") for each in rows if each.get("exclude") is not True]
    left_out = [str(each.get("path") or "").split("/") for each in rows if each.get("exclude") is True]
    for count, (folder, names, _) in enumerate(os.walk(top)):
        names[:] = sorted(name for name in names if not name.startswith("."))
        if count > _MOST_FOLDERS:
            raise NotExpandedError(f"the repository has more than {_MOST_FOLDERS:,} folders")
        parts = Path(folder).relative_to(top).parts
        if parts and _matches(parts, taken) and not _matches(parts, left_out):
            yield "/".join(parts)


def _matches(parts: Sequence[str], patterns: Sequence[Sequence[str]]) -> bool:
    return any(
        len(parts) == len(pattern) and all(map(fnmatch.fnmatchcase, parts, pattern)) for pattern in patterns
    )


def _fill(value: Any, parameters: Mapping[str, str]) -> Any:
    """Return data with the parameters in place of their names."""
    if isinstance(value, Mapping):
        return {str(_fill(key, parameters)): _fill(each, parameters) for key, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, parameters) for each in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    filled = _PLACEHOLDER.sub(lambda found: parameters.get(found[1], found[0]), value)
    if "{{" in filled and any(found in filled for found in re.findall(r"\{\{.*?\}\}", value)):
        raise NotExpandedError(f"its template has {filled[:100]}")
    return filled
