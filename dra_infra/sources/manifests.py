"""Manifests, charts and kustomizations as programs: every object once, with the place where it is written.

A chart is what `helm template` makes of it, with the values of some files; a kustomization what `kubectl kustomize` prints.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import Place, Problem, ProgramError, in_reading_order
from dra_infra.kubernetes.api import group_of
from dra_infra.program.charts import render_templates
from dra_infra.program.kustomizations import build
from dra_infra.program.program_json import MAX_OBJECTS
from dra_infra.program.project import KUBERNETES_SETTING, driver_of, gates_of, kubernetes_of
from dra_infra.program.project_files import is_outside, read_yaml
from dra_infra.program_objects import (
    DEFAULT_PROVIDER,
    Locate,
    NotSeen,
    Program,
    ProgramObject,
    ProgramRelease,
)
from dra_infra.sources.delivered_objects import Checkout, Delivered, add_delivered
from dra_infra.sources.files import SourceObject, read_sources, written_twice
from dra_infra.sources.values_files import read_values
from dra_infra.target import ClusterTarget

_UNNAMED: Final = "*"
"""Behind a prefix of a name that the server completes: no name has it."""
_KUSTOMIZE: Final = "kustomize.config.k8s.io/"
_LEADS_OUT: Final = "it is a link that leads out of the repository, or into its .git"


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One side of a review."""

    program: Program
    locate: Locate | None = None


FindCheckout = Callable[[], Checkout | None]
"""Returns the repository whose paths Applications and their like name; None where they are not read."""


def read_side(
    root: Path,
    *,
    inside: Path,
    shown: str,
    label: str,
    config: Mapping[str, str],
    checkout: FindCheckout = lambda: None,
) -> Side:
    """The objects in a folder or file of YAML and JSON; an empty program where nothing lies at *root*.

    Args:
        root: The folder or file.
        inside: What links may not lead out of: whoever wrote one may not see what lies elsewhere.
        shown: How *root* is named in places.
        label: Names the source in URNs.
        config: Settings: `dra-infra:kubernetes` and `dra-infra:driver` count.
        checkout: Returns the repository that they are part of.

    Raises:
        ProgramError: `yaml-too-large`, for more objects than a program may have.
    """
    found: list[SourceObject] = []
    problems: list[Problem] = []
    hidden: dict[NotSeen, str] = {}
    for each in read_sources([str(root)], io.BytesIO()) if root.exists() else ():
        place = each if isinstance(each, SourceObject) else each.place
        file = place.file if place else str(root)
        if is_outside(Path(file), inside):
            reason = _LEADS_OUT
        elif isinstance(each, Problem):
            if file != str(root) or root.is_file():
                problems.append(each)
            continue
        elif each.manifest.keys() == {"kinds"} and isinstance(each.manifest["kinds"], list):
            # What --kinds may name: nobody meant it for the cluster.
            continue
        else:
            reason = _why_not(each.manifest)
        if reason:
            hidden[NotSeen(what="file", name=_named(file, root, shown), reason=reason)] = file
        else:
            found.append(each)  # type: ignore[arg-type]  # problems have gone on, or have a reason
            if len(found) > MAX_OBJECTS:
                raise ProgramError.of(
                    path=shown,
                    code="yaml-too-large",
                    message=f"it has more than {MAX_OBJECTS:,} objects",
                    hint="name one of its folders at a time",
                )
    delivered = _deliver(found, checkout, config)
    return _side(
        delivered,
        problems=[each for each in problems if not (each.place and delivered.covers(each.place.file))],
        hidden=[each for each, file in hidden.items() if not delivered.covers(file)],
        label=label,
        named=lambda file: _named(file, root, shown),
        config=config,
    )


def _deliver(
    found: Sequence[SourceObject], find_checkout: FindCheckout, config: Mapping[str, str]
) -> Delivered:
    """Add what Applications and their like deploy.

    Raises:
        ProgramError: `yaml-too-large`.
    """
    checkouts: list[Checkout | None] = []

    def checkout_of(_file: str) -> Checkout | None:
        if not checkouts:
            checkouts.append(find_checkout())
        return checkouts[0]

    target = ClusterTarget(kubernetes=config.get(KUBERNETES_SETTING))
    delivered = add_delivered(found, checkout_of, target=target)
    if len(delivered.sources) > MAX_OBJECTS:
        raise ProgramError.of(
            path="the input",
            code="yaml-too-large",
            message=f"it deploys more than {MAX_OBJECTS:,} objects",
            hint="name one of its folders at a time",
        )
    return delivered


def link_not_seen(name: str) -> NotSeen:
    """A file that is not read, for it is a link that leads out of the repository."""
    return NotSeen(what="file", name=name, reason=_LEADS_OUT)


def _side(
    delivered: Delivered,
    *,
    problems: list[Problem],
    hidden: Iterable[NotSeen],
    label: str,
    named: Callable[[str], str],
    config: Mapping[str, str],
) -> Side:
    by_urn: dict[str, tuple[ProgramObject, SourceObject]] = {}
    unnamed: Counter[str] = Counter()
    for source in delivered.sources:
        urn = _urn(source.manifest, f"{label}@{source.cluster}" if _is_elsewhere(source) else label)
        place = replace(source.start, file=named(source.file))
        if urn.endswith(_UNNAMED):
            # Such objects are told apart by their order only.
            unnamed[urn] += 1
            urn = f"{urn}{unnamed[urn]}"
        elif urn in by_urn:
            problems.append(written_twice(str(by_urn[urn][0].ref), by_urn[urn][0].place, place))
        each = ProgramObject(
            urn=urn,
            manifest=source.manifest,
            place=place,
            replacement="in-place",
            provider=source.cluster or DEFAULT_PROVIDER,
        )
        by_urn[urn] = each, source
    ordered = sorted(by_urn.values(), key=lambda pair: pair[0].sort_key)
    sources = [source for _, source in ordered]

    def locate(index: int, path: str) -> Place:
        place = sources[index].place(path)
        return replace(place, file=named(place.file))

    unread = [each.to_not_seen() for each in delivered.not_rendered]
    program = Program(
        project=label,
        stack="",
        objects=tuple(each for each, _ in ordered),
        not_seen=tuple(sorted({*hidden, *delivered.notes, *unread})),
        problems=in_reading_order(_renamed(problem, named) for problem in problems),
        kubernetes=kubernetes_of(config),
        gates=gates_of(config),
        driver=driver_of(config),
    )
    return Side(program=program, locate=locate)


def _is_elsewhere(source: SourceObject) -> bool:
    return source.cluster not in ("", DEFAULT_PROVIDER)


def _why_not(manifest: Mapping[str, Any]) -> str:
    """Why a document is not for the cluster; empty when it is."""
    version = manifest.get("apiVersion")
    if isinstance(version, str) and version.startswith(_KUSTOMIZE):
        return "name its folder, and what kustomize builds of it is read"
    if "kind" not in manifest and "apiVersion" not in manifest:
        return "it holds no Kubernetes object"
    return ""


def _urn(manifest: Mapping[str, Any], label: str) -> str:
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    kind = f"{group_of(manifest)}/{_text(manifest.get('kind'))}"
    # Parts are told apart by two colons, which no valid name has.
    label, kind = label.replace("::", ":"), kind.replace("::", ":")
    name = _text(metadata.get("name")) or f"{_text(metadata.get('generateName'))}{_UNNAMED}"
    return f"urn:dra-infra:manifests::{label}::{kind}::{_text(metadata.get('namespace'))}/{name}"


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _renamed(problem: Problem, named: Callable[[str], str]) -> Problem:
    place = problem.place
    return problem.at(replace(place, file=named(place.file))) if place else problem


def _named(file: str, root: Path, shown: str) -> str:
    """The file as the user would name it."""
    below = os.path.relpath(file, root) if file != str(root) else ""
    if below.startswith(".."):
        # What an object of the folder deploys may lie beside it.
        return Path(os.path.normpath(Path(shown, below))).as_posix()
    return Path(shown, below).as_posix() if below else Path(shown).as_posix()


def render_side(
    root: Path,
    files: Sequence[Path],
    *,
    inside: Path,
    shown: str,
    label: str,
    config: Mapping[str, str],
    timeout: float,
    checkout: FindCheckout = lambda: None,
) -> Side:
    """The objects of the chart in the folder *root*.

    Args:
        root: The folder with its Chart.yaml.
        files: What its own values are overridden with; none is a link that leads out of *inside*.
        inside: Its repository, which no link of the chart may lead out of.
        shown: How *root* is named in places.
        label: Names the source in URNs.
        config: Settings: `dra-infra:kubernetes` counts.
        timeout: Seconds for helm.
        checkout: Returns the repository that the chart is part of.

    Raises:
        ProgramError: `values-unreadable`, `helm-not-found`, `chart-leads-out`, `chart-not-rendered`, or a code of YAML.
    """
    values = read_values(files, inside)
    name = str(read_yaml(root / "Chart.yaml").get("name") or root.name)
    release = ProgramRelease(
        urn=f"::::::{name}", name="release-name", namespace="default", chart=".", values=values
    )
    target = ClusterTarget(kubernetes=config.get(KUBERNETES_SETTING))
    rendered = render_templates(release, root=root, target=target, inside=inside, timeout=timeout)
    below = f"{name}/"
    # Files of a chart are templates, so its objects stand at none of their lines.
    found = [
        SourceObject.of(f"{Path(shown).as_posix()}/{file.removeprefix(below)}", manifest)
        for file, manifest in rendered
    ]
    delivered = _deliver(found, checkout, config)
    return _side(delivered, problems=[], hidden=(), label=label, named=str, config=config)


def build_side(
    root: Path,
    *,
    inside: Path,
    shown: str,
    label: str,
    config: Mapping[str, str],
    timeout: float,
    checkout: FindCheckout = lambda: None,
) -> Side:
    """The objects of the kustomization in the folder *root*; the arguments are those of `render_side`.

    Raises:
        ProgramError: `kustomize-not-found`, `kustomization-not-built`, or a code of YAML.
    """
    found = [
        SourceObject.of(Path(shown).as_posix(), each) for each in build(root, inside=inside, timeout=timeout)
    ]
    delivered = _deliver(found, checkout, config)
    return _side(delivered, problems=[], hidden=(), label=label, named=str, config=config)


def lend_dependencies(head: Path, base: Path) -> None:
    """Give the base the downloaded charts of the head, which are not committed, where both lock the same ones."""
    charts = head / "charts"
    lock = head / "Chart.lock"
    with contextlib.suppress(OSError):
        same = lock.read_bytes() == (base / "Chart.lock").read_bytes()
        if same and charts.is_dir() and not (base / "charts").exists():
            # A link would lead out of the base.
            shutil.copytree(charts, base / "charts", ignore=shutil.ignore_patterns(".git"))


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
