"""The loss report of a migration, in the forms that people and machines read."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.advice.exported import EXPORTED
from dra_infra.advice.objects import check_objects, reference_to
from dra_infra.advice.references import ELSEWHERE, REFERENCES
from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import WorkloadKinds
from dra_infra.kubernetes.api.names import is_dns_subdomain
from dra_infra.migration.outcomes import OUTCOMES, Migrated, Outcome, Remark
from dra_infra.migration.workloads import find_no_texts
from dra_infra.output.escaping import json_text, markdown, markdown_code, one_line
from dra_infra.output.report_data import make_report, to_data
from dra_infra.output.wording import count_of
from dra_infra.provenance import Provenance
from dra_infra.target import ClusterTarget

_WORDS: Final[Mapping[Outcome, str]] = {
    "decide": "to decide",
    "lost": "lost",
    "changed": "changed",
    "kept": "kept",
}


_FILLED_IN: Final = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$\w+|\{\{.*?\}\}|<%.*?%>")
"""Placeholders of envsubst, Flux, kustomize, Helm, Argo and others, for which something puts text later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What became of one object.

    Args:
        name: Kind, namespace and name.
        place: Where it stands.
        remarks: What became of its fields.
        is_changed: Whether anything of it is written in another way.
        added: Names of the objects that come with it.
        problems: What an API server refuses of the result.
    """

    name: str
    place: Place
    remarks: Sequence[Remark]
    is_changed: bool
    added: Sequence[str] = ()
    problems: Sequence[Problem] = ()


_WHOLE: Final = ("duplicate-object", "nothing-checked")
"""Codes of errors after which all of the input is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of all objects.

    Args:
        entries: The objects that have anything to migrate, in their order.
        others: Number of objects that have not.
        kubernetes: The minors that the result is checked on.
        provenance: What it is checked for.
        notes: Lines on the whole.
        plan: The plan of the cut-over as JSON has it; None where none was asked for.
        problems: What could not be read of the input, or not be written.
        not_seen: What the input makes, and nobody knows before it is deployed.
    """

    entries: Sequence[Entry]
    others: int
    kubernetes: Sequence[str]
    provenance: Provenance
    notes: Sequence[str] = field(default_factory=tuple)
    plan: Mapping[str, Any] | None = None
    problems: Sequence[Problem] = ()
    not_seen: Sequence[object] = ()

    def count(self, outcome: Outcome) -> int:
        """Number of remarks with an outcome."""
        return sum(each.outcome == outcome for entry in self.entries for each in entry.remarks)

    @property
    def missing(self) -> int:
        """Number of the parts of the input that are not in the result."""
        lost = (each.severity == "error" and each.code not in _WHOLE for each in self.problems)
        return sum(lost) + len(self.not_seen)

    @property
    def refused(self) -> int:
        """Number of problems that an API server would have with the result."""
        return sum(each.severity == "error" for entry in self.entries for each in entry.problems)

    @property
    def changed(self) -> int:
        """Number of objects of which something is written in another way."""
        return sum(entry.is_changed for entry in self.entries)

    @property
    def summary(self) -> str:
        """One line: how many objects, and with which outcomes."""
        found = ", ".join(f"{self.count(each)} {_WORDS[each]}" for each in OUTCOMES)
        minors = " and ".join(self.kubernetes)
        refused = f"; {count_of(self.refused, 'error')} on Kubernetes {minors}" if self.refused else ""
        missing = (
            f"; not complete: {count_of(self.missing, 'part')} of the input missing" if self.missing else ""
        )
        return f"{count_of(self.changed, 'object')} migrated ({found}), {count_of(self.others, 'other')} with nothing to migrate{refused}{missing}"


def judge(
    before: Sequence[Mapping[str, Any]],
    migrated: Sequence[Migrated],
    others: Container[int],
    target: ClusterTarget,
    driver: str,
    there: Sequence[Mapping[str, Any]] = (),
    *,
    kinds: WorkloadKinds,
) -> list[list[Problem]]:
    """Returns what servers refuse of each object, of all *kinds*, and of what comes with it, and advice on what changed.

    Of what stays as it was only errors count, and not which version it has. What nobody applies, *others*, is not judged,
    nor are classes that are *there*. Paths of what comes with an object begin with its name, and what both have in common is
    told of the object alone.
    """
    pairs = [(index, each) for index, done in enumerate(migrated) for each in (done.manifest, *done.added)]
    rows = [(index, each) for index, each in pairs if each is not None]
    found: list[dict[Problem, None]] = [{} for _ in migrated]
    for number, problem in check_objects([each for _, each in rows], target, driver=driver, beside=there):
        index, each = rows[number]
        if problem.code in EXPORTED:
            # Objects of a cluster have what its server wrote, which no output of a migration has.
            continue
        is_error = problem.severity == "error" and problem.code != "unknown-version"
        if each is not before[index] or (is_error and index not in others):
            told = _as_filled_in(problem)
            is_own = each is migrated[index].manifest
            if told and told not in found[index] and (is_own or told.code != "name-filled-in"):
                found[index].setdefault(told if is_own else told.below(str(reference_to(each))))
    for index, each in (row for row in rows if row[0] not in others):
        if texts := list(find_no_texts(each, kinds)):
            # Of the claims of pods servers say it in words of their own.
            known = {(told.path, told.code) for told in found[index]}
            own = (it for it in texts if (it.path, it.code) not in known)
            found[index] = {**dict.fromkeys(own), **found[index]}
    return [list(each) for each in found]


def _as_filled_in(problem: Problem) -> Problem | None:
    """The problem, or what is to be said instead of a name that is filled in later; None where that is nothing."""
    if problem.code in REFERENCES:
        name, _, namespace = problem.message.partition(" in namespace ")
        # One of two namespaces may become the other, and a name anything.
        where = f"{namespace} {problem.hint}" if problem.hint.startswith(ELSEWHERE) else ""
        return None if _FILLED_IN.search(f"{name} {where}") else problem
    name = problem.message.partition('"')[2].partition('": ')[0]
    rest, number = _FILLED_IN.subn("x", name)
    if problem.code != "invalid-name" or not number or not is_dns_subdomain(rest):
        return problem
    told = f"{name} is filled in later, so what comes of it is not judged"
    return Problem(path=problem.path, code="name-filled-in", message=told, severity="warning")


def tell_once(remarks: Iterable[Remark]) -> list[Remark]:
    """Returns the remarks with those of one path, outcome and code as one, which says what each of them says."""
    found: dict[tuple[str, Outcome, str], list[Remark]] = {}
    for each in remarks:
        found.setdefault(each[:3], []).append(each)
    return [
        told[0]._replace(
            message="; ".join(dict.fromkeys(each.message for each in told)),
            hint="; ".join(dict.fromkeys(each.hint for each in told if each.hint)),
        )
        for told in found.values()
    ]


def write_text(report: Report, hide: Callable[[str], str]) -> Iterator[str]:
    """Lines of the report: an object, below it what became of it, the most important first.

    Args:
        report: The report.
        hide: Takes secrets out of a text. `token.yaml:1:1` is a place, and no token.
    """
    for entry in report.entries:
        yield f"{one_line(str(entry.place))}: {hide(one_line(entry.name))}"
        yield from map(hide, _lines_of(entry))
    yield from (hide(one_line(each)) for each in report.notes)
    yield report.summary
    yield one_line(report.provenance.describe())


def _lines_of(entry: Entry) -> Iterator[str]:
    for remark in _sorted(entry.remarks):
        where = f"{one_line(remark.path)}: " if remark.path else ""
        yield f"  {_WORDS[remark.outcome]}: {where}{one_line(remark.message)} [{remark.code}]"
        if remark.hint:
            yield f"    hint: {one_line(remark.hint)}"
    for name in entry.added:
        yield f"  new: {one_line(name)}"
    for problem in entry.problems:
        yield f"  {problem.severity}: {one_line(problem.path)}: {one_line(problem.message)} [{problem.code}]"
        if problem.hint:
            yield f"    hint: {one_line(problem.hint)}"


def write_markdown(report: Report) -> str:
    """A table for a pull request: a row for each remark and problem of each object, what is to decide first."""
    lines = ["# Migration to claims", "", markdown(report.summary), ""]
    rows = list(_rows(report))
    if rows:
        lines += ["| Object | Outcome | Field | What |", "| --- | --- | --- | --- |"]
    for name, outcome, path, message, hint in rows:
        where = markdown_code(path) if path else ""
        told = f" *{markdown(hint)}*" if hint else ""
        lines.append(f"| {markdown(name)} | {outcome} | {where} | {markdown(message)}{told} |")
    lines += ["", *map(markdown, report.notes)]
    provenance = report.provenance.describe(plain=markdown, code=markdown_code)
    return "\n".join(lines).rstrip() + f"\n\n<sub>{provenance}</sub>\n"


def write_json(report: Report) -> str:
    """JSON of a stable shape, which `schemas/migrate-v1.json` of the commands describes."""
    data = {
        "complete": not report.missing,
        "migrated": report.changed,
        "others": report.others,
        "outcomes": {each: report.count(each) for each in OUTCOMES},
        "errors": report.refused,
        "notes": list(report.notes),
        "problems": to_data(report.problems),
        "objects": [_to_data(each) for each in report.entries],
        "plan": report.plan,
        "provenance": report.provenance.to_json(),
    }
    return json_text(make_report("migrate", data))


def _to_data(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "place": to_data(entry.place),
        "changed": entry.is_changed,
        "added": list(entry.added),
        "remarks": [each._asdict() for each in _sorted(entry.remarks)],
        "problems": to_data(entry.problems),
    }


def write_html(report: Report) -> str:
    """A page of one table, without scripts."""
    rows = [
        "<tr>" + "".join(f"<td>{html.escape(one_line(cell))}</td>" for cell in cells) + "</tr>"
        for cells in _rows(report)
    ]
    notes = "".join(f"<p>{html.escape(one_line(each))}</p>\n" for each in report.notes)
    head = "".join(
        f"<th scope=col>{each}</th>" for each in ("Object", "Outcome", "Field", "What", "What to do")
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Migration to claims</title>\n'
        "<style>body{font:15px/1.5 sans-serif;margin:2em}td,th{border:1px solid #bbb;padding:.3em .6em;text-align:left;"
        "vertical-align:top}table{border-collapse:collapse}</style>\n"
        f"<h1>Migration to claims</h1>\n<p>{html.escape(one_line(report.summary))}</p>\n{notes}"
        f"<table><thead><tr>{head}</tr></thead><tbody>\n" + "\n".join(rows) + "\n</tbody></table>\n"
        f"<footer><small>{html.escape(one_line(report.provenance.describe()))}</small></footer></html>\n"
    )


def _rows(report: Report) -> Iterator[tuple[str, ...]]:
    """Cells of a table: what could not be read or written, then what became of each object."""
    for each in report.problems:
        yield str(each.place or "input"), each.severity, each.path, each.message, each.hint
    for entry in report.entries:
        for remark in _sorted(entry.remarks):
            yield entry.name, _WORDS[remark.outcome], remark.path, remark.message, remark.hint
        for each in entry.problems:
            yield entry.name, each.severity, each.path, each.message, each.hint


def _sorted(remarks: Sequence[Remark]) -> list[Remark]:
    return sorted(remarks, key=lambda each: OUTCOMES.index(each.outcome))


RENDERERS: Final[Mapping[str, Callable[[Report], str]]] = {
    "markdown": write_markdown,
    "json": write_json,
    "html": write_html,
}
"""The forms that are one text; `write_text` writes the lines of the other."""
