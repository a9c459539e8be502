"""The objects of the charts that a program installs, rendered by the user's own `helm`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import Problem, ProblemsError, ProgramError, in_reading_order
from dra_infra.kubernetes.api import holds_placeholder
from dra_infra.program.confinement import VARIABLES
from dra_infra.program.project_files import is_outside, leads_out
from dra_infra.program_objects import (
    UNKNOWN,
    ComponentRef,
    NotSeen,
    Program,
    ProgramObject,
    ProgramRelease,
    is_name_made_up,
)
from dra_infra.target import ClusterTarget

RELEASE_TYPE: Final = "kubernetes:helm.sh/v3:Release"
HELM: Final = "helm"
DEFAULT_TIMEOUT: Final = 120.0
"""Seconds that helm may take for a chart, its download among them."""

MOST_FILES: Final = 100_000
"""Files and folders of a chart, links followed: charts have hundreds, and links to folders can make any number."""

_PASSED_ON: Final = frozenset(
    (
        *VARIABLES,
        "APPDATA",
        "DOCKER_CONFIG",
        "HOME",
        "LOCALAPPDATA",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "TMPDIR",
        "USERPROFILE",
        "ALL_PROXY",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
        "all_proxy",
        "https_proxy",
        "http_proxy",
        "no_proxy",
    )
)
"""Environment variables that helm gets, beside its own and those of the XDG folders, where its cache and its settings are."""

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
        provider=registration.provider,
    )


def with_charts(
    program: Program,
    root: Path,
    *,
    inside: Path | None = None,
    helm: str = HELM,
    timeout: float = DEFAULT_TIMEOUT,
) -> Program:
    """*program* with the objects of its charts among its own; what cannot be rendered stays `not_seen`, with the reason.

    A chart that helm refuses is a problem of the release.

    Args:
        program: What a run gave.
        root: Folder of the project, from which paths of charts are read.
        inside: Its repository, which links of charts may not lead out of; None for the folder alone.
        helm: The binary.
        timeout: Seconds for each chart.

    Raises:
        ProgramError: `helm-not-found`.
    """
    objects = [*program.objects]
    problems = [*program.problems]
    made_up = [each.ref.name for each in program.objects if is_name_made_up(each.manifest)]
    looked_at: set[tuple[str, str]] = set()
    hidden: set[NotSeen] = set()
    for release in program.releases:
        what = (RELEASE_TYPE, release.urn.split("::", 3)[-1])
        if secrets := ", ".join(_hidden(release, made_up)):
            looked_at.add(what)
            reason = f"its {secrets} are secret or only known later"
            hidden.add(NotSeen(what=RELEASE_TYPE, name=what[1], reason=reason))
            continue
        target = release.target or ClusterTarget(kubernetes=program.kubernetes)
        try:
            rendered = render_chart(
                release, root=root, inside=inside, target=target, helm=helm, timeout=timeout
            )
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
        objects=tuple(sorted(objects, key=lambda each: each.sort_key)),
        problems=in_reading_order(problems),
        not_seen=tuple(sorted(left | hidden)),
    )


def render_chart(
    release: ProgramRelease,
    *,
    root: Path,
    target: ClusterTarget,
    inside: Path | None = None,
    helm: str = HELM,
    timeout: float = DEFAULT_TIMEOUT,
    has_hooks: bool = False,
) -> tuple[dict[str, Any], ...]:
    """The objects of `render_templates`."""
    rendered = render_templates(
        release,
        root=root,
        target=target,
        inside=inside,
        helm=helm,
        timeout=timeout,
        has_hooks=has_hooks,
    )
    return tuple(manifest for _, manifest in rendered)


def render_templates(
    release: ProgramRelease,
    *,
    root: Path,
    target: ClusterTarget,
    inside: Path | None = None,
    helm: str = HELM,
    timeout: float = DEFAULT_TIMEOUT,
    has_hooks: bool = False,
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """The objects that an installation of *release* would make, by `helm template`; no cluster is asked.

    Each comes with the template that made it, from the name of the chart on: `inference/templates/job.yaml`.
    Helm fetches the chart where it is not on this machine. A chart of the repository is a
    stranger's: helm follows its links, and its templates print what they lead to, so none may lead out.

    Args:
        release: With values that are all known.
        root: Folder from which the path of a chart is read.
        target: The cluster; templates see the newest of its minors.
        inside: The repository, which links of the chart may not lead out of; None for *root* alone.
        helm: The binary.
        timeout: Seconds until it is stopped.
        has_hooks: Whether hooks, but those of tests, are among the objects.

    Raises:
        ProgramError: `helm-not-found`; `chart-leads-out`; `chart-not-rendered`, with what helm said; or a code of
            `read_manifests`.
    """
    # A program names all of these, so none of them may be read as an option: `--post-renderer` runs a command.
    command = [helm, "template", f"--namespace={release.namespace}"]
    command += ["--skip-tests"] if has_hooks else ["--no-hooks"]
    command += ["--include-crds"] if release.has_crds else []
    command += [f"--repo={release.repository}"] if release.repository else []
    command += [f"--version={release.version}"] if release.version else []
    command += [f"--kube-version={target.minors[-1]}.0", f"--api-versions={','.join(_served(target))}"]
    try:
        with _without_git(release, root, inside or root) as chart:
            done = subprocess.run(
                [*command, "--values=-", "--", release.name, chart],
                cwd=root,
                # JSON is YAML; on the standard input, values are in no file and no argument.
                input=json.dumps(release.values),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                env=_environment(os.environ),
            )
    except FileNotFoundError as error:
        raise ProgramError.of(
            path="--charts",
            code="helm-not-found",
            message=f"there is no {helm} on PATH, which renders the charts",
            hint="install Helm 3, or leave --charts out: what charts make is not shown then",
        ) from error
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


@contextmanager
def _without_git(release: ProgramRelease, root: Path, inside: Path) -> Iterator[str]:
    """The folder that helm is given as the chart: its own, or a copy where there is a `.git` in it, whose files would be the chart's.

    Raises:
        ProgramError: `chart-leads-out`.
    """
    folder = root / release.chart
    if "\0" in release.chart or not folder.is_dir():
        # An archive, or a chart that helm fetches.
        yield release.chart
        return
    if leads_out(folder, inside):
        raise ProgramError([_leads_out(release, release.chart)])
    files, has_git = _files(release, folder, inside if not is_outside(folder, inside) else folder)
    if not has_git:
        yield release.chart
        return
    with tempfile.TemporaryDirectory(prefix="dra-infra-chart-") as made:
        for name, file in files.items():
            target = Path(made, folder.resolve().name or "chart", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        yield str(Path(made, folder.resolve().name or "chart"))


def _files(release: ProgramRelease, chart: Path, inside: Path) -> tuple[dict[str, Path], bool]:
    """The files of a chart by their path in it, as helm finds them: links followed; and whether a `.git` was passed over.

    Raises:
        ProgramError: `chart-leads-out`.
    """
    found: dict[str, Path] = {}
    has_git, count = False, 0
    folders: list[tuple[str, tuple[Path, ...]]] = [("", (Path(os.path.realpath(chart)),))]
    for below, around in folders:
        try:
            paths = sorted(around[-1].iterdir())
        except OSError as error:
            raise ProgramError(
                [_refused(release, f"{below or '.'} cannot be read: {error.strerror}")]
            ) from None
        for path in paths:
            name = f"{below}{path.name}"
            if path.name == ".git":
                has_git = True
                continue
            count += 1
            if count > MOST_FILES:
                raise ProgramError([_refused(release, f"it has more than {MOST_FILES:,} files")])
            real = Path(os.path.realpath(path))
            if real in around or (path.is_symlink() and is_outside(path, inside)):
                raise ProgramError([_leads_out(release, name)])
            if real.is_dir():
                folders.append((f"{name}/", (*around, real)))
            elif real.is_file():
                found[name] = real
    return found, has_git


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that helm needs: a chart of a stranger is rendered, and no secret of the job is for it."""
    return {
        name: value
        for name, value in environment.items()
        if name in _PASSED_ON
        or name.startswith(("LC_", "XDG_"))
        or (name.startswith("HELM_") and not name.startswith("HELM_KUBE"))
    }


def _templates(text: str) -> Iterator[tuple[str, str]]:
    """Each template with the text that it printed; helm writes its name above each of its documents."""
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
        provider=release.provider,
    )


def _served(target: ClusterTarget) -> Iterator[str]:
    """API versions that charts ask for beside the kinds that helm knows by itself."""
    (*_, newest) = target.releases
    for version in sorted(target.serves):
        yield f"resource.k8s.io/{version}"
        yield from (f"resource.k8s.io/{version}/{kind}" for kind in _KINDS if newest.knows(kind, version))


def _hidden(release: ProgramRelease, made_up: Sequence[str]) -> Iterator[str]:
    """Names of the fields of a release that are secret or not known, or hold one of the names that are *made_up*."""
    for what in ("name", "namespace", "chart", "repository", "version", "values"):
        value = getattr(release, what)
        if holds_placeholder(value) or _holds_name(value, made_up):
            yield what


def _holds_name(value: Any, names: Sequence[str]) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_name(item, names) for item in value.values())
    if isinstance(value, list):
        return any(_holds_name(item, names) for item in value)
    return isinstance(value, str) and any(name in value for name in names)


def _said(text: str) -> str:
    """The error that helm printed, from the line with `Error:` on; warnings come before it."""
    _, found, after = f"\n{text}".partition("\nError: ")
    said = (after if found else text).strip()
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}..."


def _label(release: ProgramRelease) -> str:
    return str(release.component or ComponentRef("Release", release.urn.split("::", 3)[-1]))


def _refused(release: ProgramRelease, why: str) -> Problem:
    version = f" {release.version}" if release.version else ""
    return Problem(
        path=_label(release),
        code="chart-not-rendered",
        message=f"helm does not render {release.chart}{version}: {why}",
        hint="an installation would fail alike; values are under `values=`, and the address of a chart under `chart=`",
        place=release.place,
    )


def _leads_out(release: ProgramRelease, name: str) -> Problem:
    return Problem(
        path=_label(release),
        code="chart-leads-out",
        message=f"{name[:200]!r} is a link that leads out of the repository or into its .git, or back to a folder around it",
        hint="put the file itself into the chart",
        place=release.place,
    )
