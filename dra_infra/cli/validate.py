"""The `dra-infra validate` command: checks manifests as the API server does.

Its report gives what was found in the formats that people and machines read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import click

from dra_infra.advice.objects import check_objects, is_checked, reference_to
from dra_infra.advice.policies import PolicySet, ask_policies, check_policies
from dra_infra.cli.printing import EXIT_NO_ANSWER, print_problems, progress, say, write_commands, write_output
from dra_infra.errors import InvalidSpecError, Place, Problem, Severity
from dra_infra.kubernetes.apiserver import policies as admission
from dra_infra.output.escaping import json_text, one_line, workflow_command
from dra_infra.output.finding_formats import Finding, TestCase, write_junit, write_sarif
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.process import collector_paused
from dra_infra.sources.files import NOTHING_CHECKED, UNANSWERED, SourceObject, find_program, read_sources
from dra_infra.target import ClusterTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationReport:
    """The findings of one run.

    Args:
        problems: Sorted by place; every one has one.
        checked: Number of objects that were checked.
        objects: Returns (place, name) of each of them; called by the formats that need it, for it takes its time.
        passed: Number of objects of other kinds.
        kubernetes: The minors that were checked.
        policies: Number of admission policies that were asked; None where none was to be.
    """

    problems: Sequence[Problem]
    checked: int
    objects: Callable[[], Sequence[tuple[Place, str]]]
    passed: int
    kubernetes: Sequence[str]
    policies: int | None = None

    @property
    def errors(self) -> int:
        """Number of problems that a server refuses."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def summary(self) -> str:
        """One line: what was checked and what was found."""
        asked = "" if self.policies is None else f" by {_count(self.policies, 'policy')}"
        others = f", {_count(self.passed, 'other')} passed through" if self.passed else ""
        warnings = len(self.problems) - self.errors
        return (
            f"checked {_count(self.checked, 'object')} on Kubernetes {' and '.join(self.kubernetes)}{asked}{others}: "
            f"{_count(self.errors, 'error')}, {_count(warnings, 'warning')}"
        )


def render_json(report: ValidationReport) -> str:
    """JSON of a stable shape; `version` counts its changes."""
    problems = [{**_place(problem.place), **problem.to_data()} for problem in report.problems]
    data = {
        "version": 1,
        "kubernetes": list(report.kubernetes),
        "checked": report.checked,
        "passed": report.passed,
        **({} if report.policies is None else {"policies": report.policies}),
        "errors": report.errors,
        "warnings": len(report.problems) - report.errors,
        "problems": problems,
    }
    return json_text(data)


def render_sarif(report: ValidationReport) -> str:
    """SARIF 2.1.0, for code scanning."""
    return write_sarif(
        [
            Finding(
                code=problem.code,
                level=problem.severity,
                message=_told(problem),
                place=problem.place or Place(file=""),
            )
            for problem in report.problems
        ]
    )


def render_junit(report: ValidationReport) -> str:
    """JUnit XML: a test case for each object and each file that could not be read."""
    cases: dict[tuple[Place, str], list[Problem]] = {each: [] for each in report.objects()}
    starts = sorted({place for place, _ in cases})
    for problem in report.problems:
        place = problem.place or Place(file="")
        near = [start for start in starts if start.file == place.file and start <= place]
        key = next((each for each in cases if near and each[0] == near[-1]), (place, "document"))
        cases.setdefault(key, []).append(problem)
    return write_junit(
        "dra-infra validate",
        [
            TestCase(
                group=place.file,
                name=name,
                failures=[
                    (each.code, f"{one_line(str(each.place))}: {_told(each)}")
                    for each in found
                    if each.severity == "error"
                ],
                remarks=[_remark(each) for each in found if each.severity != "error"],
            )
            for (place, name), found in sorted(cases.items())
        ],
    )


def workflow_commands(report: ValidationReport) -> Iterator[str]:
    """A command for each problem, which the forge shows beside the lines of a pull request."""
    for problem in report.problems:
        place = problem.place or Place(file="")
        parts = {"file": place.file, "line": place.line, "col": place.column, "title": problem.code}
        yield workflow_command(problem.severity, _told(problem), parts)


RENDERERS: Final[Mapping[str, Callable[[ValidationReport], str]]] = {
    "json": render_json,
    "sarif": render_sarif,
    "junit": render_junit,
}
"""The formats that are one text; `workflow_commands` writes the other."""


def _told(problem: Problem) -> str:
    # Names are of one line. Messages may have several, such as those of a compiler, with a mark below the place.
    line = f"{one_line(problem.path)}: {problem.message}"
    return f"{line}\nhint: {problem.hint}" if problem.hint else line


def _remark(problem: Problem) -> str:
    line = f"{one_line(problem.where)}{problem.message} [{problem.code}]"
    return f"{line}\n  hint: {problem.hint}" if problem.hint else line


def _place(place: Place | None) -> dict[str, Any]:
    place = place or Place(file="")
    return {"file": place.file, "line": place.line, "column": place.column}


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


Asker: TypeAlias = tuple[str | None, Sequence[str]]
"""A user, None where nobody says, with groups."""

_OF_A_PROGRAM: Final = "check what it makes: dra-infra synth {folder} | dra-infra validate -"
_TOLD: Final = 5_000
"""Objects between two updates of the line of progress: a second or less."""


def run(
    paths: Sequence[str],
    *,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    serves: Sequence[str],
    driver: str,
    policies: Sequence[str] = (),
    user: str | None = None,
    groups: Sequence[str] = (),
    strict: bool,
    output: str,
    as_json: bool = False,
) -> int:
    """Check every object in *paths*; 1 when there is a problem (with *strict*: any advice), 2 without an answer.

    Raises:
        click.BadParameter: When the target or the driver release is not one, or groups have no user.
    """
    if groups and user is None:
        raise click.BadParameter("groups are those of a user; name one with --as", param_hint="--as-group")
    # Looking for plugins of pydantic takes a tenth of the time; no code of a user, who may want them, runs here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
    output = "json" if as_json else output
    try:
        target = ClusterTarget(kubernetes=kubernetes, gates=gates, serves=frozenset({"v1", *serves}))
        with progress() as tell, collector_paused():
            report = check(paths, target, driver=driver, policies=policies, asker=(user, groups), tell=tell)
            report = _without_secrets(report)
    except InvalidSpecError as error:
        raise click.BadParameter("\n".join(map(str, error.problems))) from error
    if output == "text":
        print_problems(report.problems, with_count=False)
        say(report.summary)
    elif output == "github":
        write_commands(workflow_commands(report), end=report.summary)
    else:
        write_output(RENDERERS[output](report))
    if any(each.code in UNANSWERED and each.severity == "error" for each in report.problems):
        return EXIT_NO_ANSWER
    return 1 if report.errors or (strict and report.problems) else 0


def check(
    paths: Sequence[str],
    target: ClusterTarget,
    *,
    driver: str,
    policies: Sequence[str] = (),
    asker: Asker = (None, ()),
    tell: Callable[[str], None] = lambda _text: None,
) -> ValidationReport:
    """Read and check; the releases of *target* are resolved first, so that a wrong one reads nothing."""
    releases = target.releases
    problems: list[Problem] = []
    sources = _read(paths, problems, tell)
    if not sources and not problems:
        problems.append(_nothing(paths))
    ours = [source for source in sources if is_checked(source.manifest)]
    # Beside objects that are checked, a program is one more thing of a repository; alone it is what was asked about.
    severity: Severity = "warning" if ours else "error"
    programs = (problem for source in sources for problem in find_program(source, _OF_A_PROGRAM))
    problems += [replace(each, severity=severity) for each in programs]
    manifests = [source.manifest for source in sources]
    tell(f"checking {len(sources):,} objects")
    given = _read([path for path in policies if path != "-"], problems, tell)
    beside = [source.manifest for source in given]
    for index, problem in check_objects(manifests, target, driver=driver, beside=beside):
        place = sources[index].place(problem.path)
        problems.append(problem.below(str(reference_to(manifests[index]))).at(place))
    asked = _ask(sources, given, target, asker, problems, tell) if policies else None
    if asked == 0:
        problems.append(_nothing(policies, "ValidatingAdmissionPolicy there or in the input"))
    return ValidationReport(
        problems=sorted(problems, key=lambda each: (each.place or Place(file=""), each)),
        checked=len(ours),
        objects=lambda: [(source.start, str(reference_to(source.manifest))) for source in ours],
        passed=len(sources) - len(ours),
        kubernetes=[release.minor for release in releases],
        policies=asked,
    )


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


def _ask(
    sources: Sequence[SourceObject],
    given: Sequence[SourceObject],
    target: ClusterTarget,
    asker: Asker,
    problems: list[Problem],
    tell: Callable[[str], None],
) -> int:
    """Ask the policies of *given* and of the input about each object; returns how many there are."""
    found = PolicySet.gather(source.manifest for source in (*given, *sources))
    by_manifest = {id(source.manifest): source for source in (*given, *sources)}
    tell(f"asking {len(found.policies):,} policies about {len(sources):,} objects")
    name, groups = asker
    user = None if name is None else admission.User(name=name, groups=groups)
    asked = ask_policies([source.manifest for source in sources], found, target, user=user)
    about = [(sources[index], problem) for index, problem in asked]
    about += [(by_manifest[id(manifest)], problem) for manifest, problem in check_policies(found, target)]
    for source, problem in about:
        place = source.place(problem.path)
        problems.append(problem.below(str(reference_to(source.manifest))).at(place))
    return len(found.policies)


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
