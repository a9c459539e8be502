"""The objects of the charts that a program installs, rendered by the user's own `helm`."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import Problem, ProblemsError, ProgramError, in_reading_order
from dra_infra.model.program import SECRET, UNKNOWN, NotSeen, Program, ProgramObject, ProgramRelease
from dra_infra.model.target import ClusterTarget
from dra_infra.model.yaml import read_manifests

RELEASE_TYPE: Final = "kubernetes:helm.sh/v3:Release"
HELM: Final = "helm"
DEFAULT_TIMEOUT: Final = 120.0
"""Seconds that helm may take for a chart, its download among them."""

_SHOWN: Final = 1000
_SOURCE: Final = re.compile(r"^---\n# Source: (\S.*)$", re.MULTILINE)
_KINDS: Final = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")


def read_release(registration: Any, target: ClusterTarget | None) -> ProgramRelease | None:
    """The Helm release that a program registered; None for another resource, and for one without a chart."""
    inputs: Mapping[str, Any] = registration.inputs
    if registration.type != RELEASE_TYPE or not isinstance(inputs.get("chart"), str):
        return None
    repository = inputs.get("repositoryOpts")
    values = inputs.get("values", {})
    if not isinstance(values, Mapping) or inputs.get("valueYamlFiles"):
        values = {"": UNKNOWN}
    return ProgramRelease(
        urn=registration.urn,
        name=str(inputs.get("name") or registration.name),
        namespace=str(inputs.get("namespace") or "default"),
        chart=inputs["chart"],
        repository=str(repository.get("repo") or "") if isinstance(repository, Mapping) else "",
        version=str(inputs.get("version") or ""),
        values=values,
        has_crds=inputs.get("skipCrds") is not True,
        component=registration.component,
        place=registration.place,
        target=target,
    )


def with_charts(
    program: Program, root: Path, *, helm: str = HELM, timeout: float = DEFAULT_TIMEOUT
) -> Program:
    """*program* with the objects of its charts among its own; what cannot be rendered stays `not_seen`, with the reason.

    A chart that helm refuses is a problem of the release.

    Args:
        program: What a run gave.
        root: Folder of the project, from which paths of charts are read.
        helm: The binary.
        timeout: Seconds for each chart.

    Raises:
        ProgramError: `helm-not-found`.
    """
    objects, problems = [*program.objects], [*program.problems]
    looked_at: set[tuple[str, str]] = set()
    hidden: set[NotSeen] = set()
    for release in program.releases:
        what = (RELEASE_TYPE, release.urn.split("::", 3)[-1])
        if secrets := ", ".join(_hidden(release)):
            looked_at.add(what)
            reason = f"its {secrets} are secret or only known later"
            hidden.add(NotSeen(what=RELEASE_TYPE, name=what[1], reason=reason))
            continue
        target = release.target or ClusterTarget(kubernetes=program.kubernetes)
        try:
            rendered = render_chart(release, root=root, target=target, helm=helm, timeout=timeout)
        except ProblemsError as error:
            if any(problem.code == "helm-not-found" for problem in error.problems):
                raise
            problems += error.problems
            continue
        looked_at.add(what)
        objects += [_object(release, each) for each in rendered]
    left = {each for each in program.not_seen if (each.what, each.name) not in looked_at}
    return replace(
        program,
        objects=tuple(
            sorted(objects, key=lambda each: (each.ref.namespace, each.ref.kind, each.ref.name, each.urn))
        ),
        problems=in_reading_order(problems),
        not_seen=tuple(sorted(left | hidden)),
    )


def render_chart(
    release: ProgramRelease,
    *,
    root: Path,
    target: ClusterTarget,
    helm: str = HELM,
    timeout: float = DEFAULT_TIMEOUT,
) -> tuple[dict[str, Any], ...]:
    """The objects of `render_templates`."""
    rendered = render_templates(release, root=root, target=target, helm=helm, timeout=timeout)
    return tuple(manifest for _, manifest in rendered)


def render_templates(
    release: ProgramRelease,
    *,
    root: Path,
    target: ClusterTarget,
    helm: str = HELM,
    timeout: float = DEFAULT_TIMEOUT,
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The objects that an installation of *release* would make, by `helm template`; no cluster is asked.

    Each comes with the template that made it, from the name of the chart on: `inference/templates/job.yaml`.
    Helm fetches the chart where it is not on this machine. Hooks are not among the objects.

    Args:
        release: With values that are all known.
        root: Folder from which the path of a chart is read.
        target: The cluster; templates see the newest of its minors.
        helm: The binary.
        timeout: Seconds until it is stopped.

    Raises:
        ProgramError: `helm-not-found`; `chart-not-rendered`, with what helm said; or a code of `read_manifests`.
    """
    command = [helm, "template", release.name, release.chart, "--namespace", release.namespace, "--no-hooks"]
    command += ["--include-crds"] if release.has_crds else []
    command += ["--repo", release.repository] if release.repository else []
    command += ["--version", release.version] if release.version else []
    command += ["--kube-version", f"{target.minors[-1]}.0", "--api-versions", ",".join(_served(target))]
    try:
        done = subprocess.run(
            [*command, "--values", "-"],
            cwd=root,
            # JSON is YAML; on the standard input, values are in no file and no argument.
            input=json.dumps(release.values),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise ProgramError([_no_helm(helm)]) from error
    except OSError as error:
        raise ProgramError([_refused(release, f"{helm} did not start: {error.strerror}")]) from error
    except subprocess.TimeoutExpired:
        raise ProgramError([_refused(release, f"helm took more than {timeout:g} s")]) from None
    if done.returncode:
        raise ProgramError([_refused(release, _said(done.stderr))])
    try:
        return tuple(
            (source, manifest)
            for source, text in _templates(done.stdout)
            for manifest in read_manifests(text, file=source or f"chart {release.chart}")
        )
    except ProblemsError as error:
        raise ProgramError(problem.below(_label(release)) for problem in error.problems) from error


def _templates(text: str) -> Iterator[tuple[str, str]]:
    """What each template printed; helm writes its name above each of its documents."""
    starts = list(_SOURCE.finditer(text))
    ends = [*(start.start() for start in starts), len(text)]
    yield "", text[: ends[0]]
    for start, end in zip(starts, ends[1:], strict=True):
        yield start[1], text[start.start() : end]


def _object(release: ProgramRelease, manifest: dict[str, Any]) -> ProgramObject:
    found = ProgramObject(urn="", manifest=manifest)
    stack, project, types, name = release.urn.split("::", 3)
    type_ = f"{types}$kubernetes:{manifest.get('apiVersion')}:{found.ref.kind}"
    place = "/".join(filter(None, (found.ref.namespace, found.ref.name)))
    return replace(
        found,
        urn=f"{stack}::{project}::{type_}::{name}:{place}",
        component=release.component,
        place=release.place,
        target=release.target,
        chart=release.chart,
    )


def _served(target: ClusterTarget) -> Iterator[str]:
    """What charts ask for beside the kinds that helm knows by itself."""
    (*_, newest) = target.releases
    for version in sorted(target.serves):
        yield f"resource.k8s.io/{version}"
        yield from (f"resource.k8s.io/{version}/{kind}" for kind in _KINDS if newest.knows(kind, version))


def _hidden(release: ProgramRelease) -> Iterator[str]:
    """What is secret or unknown."""
    for what in ("name", "namespace", "chart", "repository", "version", "values"):
        if _is_hidden(getattr(release, what)):
            yield what


def _is_hidden(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_hidden, value.values()))
    if isinstance(value, list):
        return any(map(_is_hidden, value))
    return isinstance(value, str) and (UNKNOWN in value or SECRET in value)


def _said(text: str) -> str:
    """What helm says went wrong, from the line with `Error:` on; warnings come before it."""
    _, found, after = f"\n{text}".partition("\nError: ")
    said = (after if found else text).strip()
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}..."


def _label(release: ProgramRelease) -> str:
    return release.component or f'Release("{release.urn.split("::", 3)[-1]}")'


def _refused(release: ProgramRelease, why: str) -> Problem:
    version = f" {release.version}" if release.version else ""
    return Problem(
        path=_label(release),
        code="chart-not-rendered",
        message=f"helm does not render {release.chart}{version}: {why}",
        hint="an installation would fail alike; values are under `values=`, and the address of a chart under `chart=`",
        place=release.place,
    )


def _no_helm(helm: str) -> Problem:
    return Problem(
        path="--charts",
        code="helm-not-found",
        message=f"there is no {helm} on PATH, which renders the charts",
        hint="install Helm 3, or leave --charts out: what charts make is not shown then",
    )
