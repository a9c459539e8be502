"""A chart as a program: what `helm template` makes of it, with the values of some files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dra_infra.cli.review_manifests import Side, side_of
from dra_infra.engine.charts import render_templates
from dra_infra.engine.project import read_yaml
from dra_infra.errors import Problem, ProgramError
from dra_infra.model.program import ProgramRelease
from dra_infra.model.target import ClusterTarget
from dra_infra.model.yaml_events import RefusedYamlError, read_documents


def read_values(files: Iterable[Path]) -> dict[str, Any]:
    """The values of some files, as helm merges them: the last one wins, mappings are merged.

    Raises:
        ProgramError: `values-unreadable`.
    """
    merged: dict[str, Any] = {}
    for file in files:
        try:
            documents = [each.data for each in read_documents(file.read_text(encoding="utf-8"))]
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(
                [_unreadable(file, getattr(error, "strerror", None) or "it is not UTF-8")]
            ) from error
        except RefusedYamlError as error:
            raise ProgramError([_unreadable(file, f"line {error.line}: {error.message}")]) from error
        if len(documents) > 1 or not all(isinstance(each, dict | None) for each in documents):
            raise ProgramError([_unreadable(file, "it is not one mapping")])
        merged = _merge(merged, (documents or [None])[0] or {})
    return merged


def _unreadable(file: Path, why: str) -> Problem:
    return Problem(
        path="--values",
        code="values-unreadable",
        message=f"{file.name} cannot be read: {why}",
        hint="name a YAML file with values of the chart",
    )


def render_side(
    root: Path,
    values: Mapping[str, Any],
    *,
    shown: str,
    label: str,
    config: Mapping[str, str],
    timeout: float,
) -> Side:
    """The objects of the chart in the folder *root*.

    Args:
        root: The folder with its Chart.yaml.
        values: What its own values are overridden with.
        shown: How *root* is named in places.
        label: Names the source in URNs.
        config: Settings: `dra-infra:kubernetes` counts.
        timeout: Seconds for helm.

    Raises:
        ProgramError: `helm-not-found`, `chart-not-rendered`, or a code of YAML.
    """
    name = str(read_yaml(root / "Chart.yaml").get("name") or root.name)
    release = ProgramRelease(
        urn=f"::::::{name}", name="release-name", namespace="default", chart=".", values=values
    )
    target = ClusterTarget(kubernetes=config.get("dra-infra:kubernetes"))
    rendered = render_templates(release, root=root, target=target, timeout=timeout)
    below = f"{name}/"
    return side_of(
        ((f"{Path(shown).as_posix()}/{file.removeprefix(below)}", manifest) for file, manifest in rendered),
        label=label,
        config=config,
    )


def values_at_base(files: Sequence[Path], top: Path, base_top: Path) -> tuple[list[Path], list[Path]]:
    """The same files as the base has them, and those that it lacks; what lies outside of *top* is on both sides."""
    found: list[Path] = []
    missing: list[Path] = []
    for file in files:
        path = file.resolve()
        if path.is_relative_to(top):
            path = base_top / path.relative_to(top)
        (found if path.is_file() else missing).append(path if path.is_file() else file)
    return found, missing


def _merge(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for key, value in over.items():
        own = merged.get(key)
        merged[key] = _merge(own, value) if isinstance(own, dict) and isinstance(value, dict) else value
    return merged
