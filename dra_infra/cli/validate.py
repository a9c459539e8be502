"""The `dra-infra validate` command: checks manifests as the API server does.

Its report gives what was found in the formats that people and machines read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from dra_infra.answers.validating import ValidationReport, validate
from dra_infra.cli.printing import (
    describe_problems,
    print_problems,
    progress,
    say,
    write_commands,
    write_output,
)
from dra_infra.cli.reports import inputs_of, plan_reports, write_reports
from dra_infra.errors import InvalidSpecError, Place, Problem
from dra_infra.output.escaping import json_text, one_line, workflow_command
from dra_infra.output.finding_formats import Finding, TestCase, write_junit, write_sarif
from dra_infra.output.report_data import make_report, to_data
from dra_infra.target import ClusterTarget


def render_json(report: ValidationReport) -> str:
    """JSON of a stable shape, which `schemas/validate-v1.json` describes."""
    data = {
        "checked": report.checked,
        "passed": report.passed,
        "policies": report.policies,
        "errors": report.errors,
        "warnings": len(report.problems) - report.errors,
        "problems": to_data(report.problems),
        "provenance": report.provenance.to_json(),
    }
    return json_text(make_report("validate", data))


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
        ],
        provenance=report.provenance.to_json(),
        folder=report.find_folder(),
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
        properties=report.provenance.to_properties(),
    )


def render_text(report: ValidationReport) -> str:
    """Problems with their hints, and what was checked, for people."""
    lines = [*describe_problems(report.problems), report.summary, report.provenance.describe()]
    return "".join(f"{line}\n" for line in lines)


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
    "text": render_text,
}
"""The forms of a report in a file; `workflow_commands` writes another one to standard output alone."""


def _told(problem: Problem) -> str:
    # Names are of one line. Messages may have several, such as those of a compiler, with a mark below the place.
    line = f"{one_line(problem.path)}: {problem.message}"
    return f"{line}\nhint: {problem.hint}" if problem.hint else line


def _remark(problem: Problem) -> str:
    line = f"{one_line(problem.where)}{problem.message} [{problem.code}]"
    return f"{line}\n  hint: {problem.hint}" if problem.hint else line


def run(
    paths: Sequence[str],
    *,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    serves: Sequence[str],
    driver: str | None,
    policies: Sequence[str] = (),
    user: str | None = None,
    groups: Sequence[str] = (),
    strict: bool,
    form: str,
    files: Sequence[Path] = (),
) -> int:
    """Check every object in *paths*; 1 when there is a problem (with *strict*: any advice), 2 without an answer.

    Raises:
        click.BadParameter: When the target or the driver release is not one, or groups have no user.
        ProgramError: `report-not-written`.
    """
    if groups and user is None:
        raise click.BadParameter("groups are those of a user; name one with --as", param_hint="--as-group")
    # Looking for plugins of pydantic takes a tenth of the time; no code of a user, who may want them, runs here.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "true")
    inputs = inputs_of(*paths, *policies)
    reports = plan_reports(files, RENDERERS, inputs)
    try:
        target = ClusterTarget(kubernetes=kubernetes, gates=gates, serves=frozenset({"v1", *serves}))
        with progress() as tell:
            report = validate(
                paths, target, driver=driver, policies=policies, asker=(user, groups), tell=tell
            )
    except InvalidSpecError as error:
        raise click.BadParameter("\n".join(map(str, error.problems))) from error
    write_reports(reports, lambda each: RENDERERS[each](report), inputs)
    if form == "text":
        print_problems(report.problems, with_count=False)
        say(report.summary)
        say(report.provenance.describe())
    elif form == "github":
        write_commands(workflow_commands(report), ends=[report.summary, report.provenance.describe()])
    else:
        write_output(RENDERERS[form](report))
    return report.exit_code(strict=strict)
