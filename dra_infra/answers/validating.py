"""The answer of `dra-infra validate`: what API servers refuse of objects in files, and what they drop."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from dra_infra.advice.objects import check_objects, is_checked, reference_to
from dra_infra.advice.policies import PolicySet, ask_policies, check_policies
from dra_infra.errors import Place, Problem, Severity
from dra_infra.kubernetes.apiserver import policies as admission
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wording import count_of
from dra_infra.process import collector_paused
from dra_infra.provenance import Provenance
from dra_infra.sources.chart_templates import CHART_NOT_READ
from dra_infra.sources.deployers import is_deployer
from dra_infra.sources.files import (
    NOT_RENDERED,
    NOTHING_CHECKED,
    UNANSWERED,
    SourceObject,
    find_program,
    read_sources,
)
from dra_infra.sources.kustomization_patches import find_patch_files
from dra_infra.target import NEWEST_DRIVER, ClusterTarget

Asker: TypeAlias = tuple[str | None, Sequence[str]]
"""A user, None where nobody says, with groups."""

_OF_A_PROGRAM: Final = "check what it makes: dra-infra synth {folder} | dra-infra validate -"
_TOLD: Final = 5_000
"""Objects between two updates of the line of progress: a second or less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """The findings of one run.

    Args:
        problems: Sorted by place; every one has one.
        checked: Number of objects that were checked.
        objects: Returns (place, name) of each of them; called by the formats that need it, for it takes its time.
        passed: Number of objects of other kinds.
        kubernetes: The minors that were checked.
        provenance: What they were checked for.
        policies: Number of admission policies that were asked; None where none was to be.
        find_folder: Returns the folder in which relative places begin, seen from the top of the repository; empty for the top itself,
            or without a repository.
    """

    problems: Sequence[Problem]
    checked: int
    objects: Callable[[], Sequence[tuple[Place, str]]]
    passed: int
    kubernetes: Sequence[str]
    provenance: Provenance
    policies: int | None = None
    find_folder: Callable[[], str] = str

    @property
    def errors(self) -> int:
        """Number of problems that a server refuses."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def summary(self) -> str:
        """One line: what was checked and what was found."""
        by_policies = "" if self.policies is None else f" by {count_of(self.policies, 'policy', zero='0')}"
        others = f", {count_of(self.passed, 'other', zero='0')} passed through" if self.passed else ""
        warnings = len(self.problems) - self.errors
        return (
            f"checked {count_of(self.checked, 'object', zero='0')} on Kubernetes {' and '.join(self.kubernetes)}{by_policies}{others}: "
            f"{count_of(self.errors, 'error', zero='0')}, {count_of(warnings, 'warning', zero='0')}"
        )

    def exit_code(self, *, strict: bool = False) -> int:
        """0 when a server takes all of it, 1 when one refuses something, 2 when something could not be read.

        Args:
            strict: Whether warnings count too.
        """
        if any(each.code in UNANSWERED and each.severity == "error" for each in self.problems):
            return 2
        return 1 if self.errors or (strict and self.problems) else 0


def validate(
    paths: Sequence[str],
    target: ClusterTarget,
    *,
    driver: str | None = None,
    policies: Sequence[str] = (),
    asker: Asker = (None, ()),
    tell: Callable[[str], None] = lambda _text: None,
) -> ValidationReport:
    """Read files, and check every object in them on every release of a target.

    Args:
        paths: Files and folders; `-` is standard input.
        target: The cluster. Its releases are resolved first, so that a wrong one reads nothing.
        driver: Releases of the drivers whose configs are checked; None for the newest.
        policies: Files with admission policies that are asked about each object; `-` asks those of the input alone.
        asker: The user and the groups that policies see.
        tell: Called with what is being done, for a progress line.

    Raises:
        InvalidSpecError: For a minor, gate or driver release that there is not.
    """
    with collector_paused():
        return _without_secrets(_check(paths, target, driver or NEWEST_DRIVER, policies, asker, tell))


def _check(
    paths: Sequence[str],
    target: ClusterTarget,
    driver: str,
    policies: Sequence[str],
    asker: Asker,
    tell: Callable[[str], None],
) -> ValidationReport:
    releases = target.releases
    problems: list[Problem] = []
    sources = _read(paths, problems, tell)
    if not sources and not problems:
        problems.append(_nothing(paths))
    if any(is_deployer(source.manifest) for source in sources):
        tell("rendering what its Applications, HelmReleases and Kustomizations deploy")
        sources, problems = _add_delivered(sources, problems, target)
    ours = [source for source in sources if is_checked(source.manifest, target)]
    # Beside objects that are checked, a program is one more thing of a repository; alone it is what was asked about.
    severity: Severity = "warning" if ours else "error"
    programs = (problem for source in sources for problem in find_program(source, _OF_A_PROGRAM))
    problems = [
        replace(each, severity=severity) if each.code in (CHART_NOT_READ, NOT_RENDERED) else each
        for each in problems
    ]
    problems += [replace(each, severity=severity) for each in programs]
    manifests = [source.manifest for source in sources]
    tell(f"checking {len(sources):,} objects")
    given = _read([path for path in policies if path != "-"], problems, tell)
    beside = [source.manifest for source in given]
    patches = find_patch_files(sources)
    for index, problem in check_objects(manifests, target, driver=driver, beside=beside):
        if problem.code == "missing-field" and os.path.normpath(sources[index].file) in patches:
            # A patch is a part of an object.
            continue
        place = sources[index].place(problem.path)
        problems.append(problem.below(str(reference_to(manifests[index]))).at(place))
    policy_count = _ask(sources, given, target, asker, problems, tell) if policies else None
    if policy_count == 0:
        problems.append(_nothing(policies, "ValidatingAdmissionPolicy there or in the input"))
    return ValidationReport(
        problems=sorted(problems, key=lambda each: (each.place or Place(file=""), each)),
        checked=len(ours),
        objects=lambda: [(source.start, str(reference_to(source.manifest))) for source in ours],
        passed=len(sources) - len(ours),
        kubernetes=[release.minor for release in releases],
        provenance=Provenance.of(releases, driver=driver, serves=target.serves),
        policies=policy_count,
        find_folder=lambda: _find_folder(paths),
    )


def _find_folder(paths: Sequence[str]) -> str:
    """Return the current folder, seen from the top of the repository that has the first path: that around both, or around the path."""
    here = Path.cwd().resolve()
    named = next((Path(each).resolve() for each in paths if each != "-"), here)
    tops = [each for each in (named, *named.parents) if os.path.lexists(each / ".git")]
    around = [each for each in tops if here.is_relative_to(each)] or tops
    folder = os.path.relpath(here, around[0]) if around else "."
    return "" if folder == "." else Path(folder).as_posix()


def _read(paths: Sequence[str], problems: list[Problem], tell: Callable[[str], None]) -> list[SourceObject]:
    """The objects of *paths*; what cannot be read is added to the problems."""
    sources: list[SourceObject] = []
    for found in read_sources(paths, sys.stdin.buffer):
        if isinstance(found, Problem):
            problems.append(found)
            continue
        if len(sources) % _TOLD == 0:
            tell(f"reading {found.file} ({len(sources):,} objects)")
        sources.append(found)
    return sources


def _add_delivered(
    sources: Sequence[SourceObject], problems: Sequence[Problem], target: ClusterTarget
) -> tuple[list[SourceObject], list[Problem]]:
    """Return the objects with those that GitOps controllers make of them, and the problems without those of what is rendered."""
    # Few inputs have such objects, and this loads what renders charts.
    from dra_infra.sources import delivered_objects

    checkouts: dict[str, delivered_objects.Checkout] = {}

    def checkout_of(file: str) -> delivered_objects.Checkout:
        folder = os.path.dirname(file)  # noqa: PTH120  (`-` is a file too)
        if folder not in checkouts:
            checkouts[folder] = delivered_objects.find_checkout(Path(folder))
        return checkouts[folder]

    delivered = delivered_objects.add_delivered(sources, checkout_of, target=target)
    kept = [each for each in problems if not (each.place and delivered.covers(each.place.file))]
    return delivered.sources, kept + [each.to_problem() for each in delivered.not_rendered]


def _ask(
    sources: Sequence[SourceObject],
    given: Sequence[SourceObject],
    target: ClusterTarget,
    asker: Asker,
    problems: list[Problem],
    tell: Callable[[str], None],
) -> int:
    """Ask the policies of *given* and of the input about each object; returns how many there are."""
    policy_set = PolicySet.gather(source.manifest for source in (*given, *sources))
    by_manifest = {id(source.manifest): source for source in (*given, *sources)}
    tell(f"asking {len(policy_set.policies):,} policies about {len(sources):,} objects")
    name, groups = asker
    user = None if name is None else admission.User(name=name, groups=groups)
    denied = ask_policies([source.manifest for source in sources], policy_set, target, user=user)
    about = [(sources[index], problem) for index, problem in denied]
    about += [
        (by_manifest[id(manifest)], problem) for manifest, problem in check_policies(policy_set, target)
    ]
    for source, problem in about:
        place = source.place(problem.path)
        problems.append(problem.below(str(reference_to(source.manifest))).at(place))
    return len(policy_set.policies)


def _without_secrets(report: ValidationReport) -> ValidationReport:
    # Messages quote values, and whoever may read the log of a CI reads them.
    mask = report_mask(secret_texts(os.environ))
    return replace(
        report,
        problems=[mask.problem(problem) for problem in report.problems],
        objects=lambda: [(place, mask.text(name)) for place, name in report.objects()],
    )


def _nothing(paths: Sequence[str], what: str = "object in the input") -> Problem:
    return Problem(
        path="document",
        code=NOTHING_CHECKED,
        message=f"there is no {what}",
        hint="name a file that holds one",
        place=Place(file=paths[0]),
    )
