"""Commands that read a live cluster: `dra-infra snapshot`, `status` and `doctor`."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Never

import click

from dra_infra import __version__
from dra_infra.cli.printing import (
    print_problems,
    progress,
    say,
    write_json,
    write_lines,
    write_output,
    write_screen,
)
from dra_infra.cli.settings import read_snapshot
from dra_infra.client.kinds import CLAIMS, EVENTS, NAMESPACES, PODS, QUOTAS, SLICES, Kind
from dra_infra.client.objects import is_object, namespace_of, text
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.capture import capture
from dra_infra.cluster.doctor import Diagnosis, diagnose
from dra_infra.cluster.evidence import gather
from dra_infra.cluster.reading import Listing, Reader, open_reader
from dra_infra.cluster.status import (
    ClaimStatus,
    Seen,
    Status,
    draw_dot,
    draw_mermaid,
    draw_tree,
    find_graph,
    find_status,
)
from dra_infra.cluster.teams import describe_teams, find_teams, to_prometheus
from dra_infra.cluster.watching import Watch
from dra_infra.documents.json_texts import are_lines
from dra_infra.errors import ClusterError, Problem
from dra_infra.kubernetes.api.decoding import can_decode
from dra_infra.kubernetes.api.versions import convert
from dra_infra.output.escaping import escape_json, json_text, one_line
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wording import count_of, join_words
from dra_infra.process import end_quietly


def snapshot(kubeconfig: Path | None, *, context: str | None, namespaces: Sequence[str], output: str) -> int:
    """Write what the cluster holds to *output*, `-` for standard output; what could not be seen is said.

    Raises:
        ClusterError: When nothing can be read, or `report-not-written`.
    """
    with progress() as tell:
        reader = open_reader(kubeconfig, context, namespaces=namespaces, tell=tell)
        taken = capture(
            reader,
            mask=report_mask(secret_texts(os.environ)),
            made_by=f"dra-infra {__version__}",
            tell=tell,
        )
    print_problems(taken.problems, with_count=False)
    if output == "-":
        # Lines are JSON, and a terminal gets no character that hides: above U+FFFF only a pair of escapes is JSON.
        write_output(escape_json(taken.text) if are_lines(taken.text) else taken.text)
        return 0
    write_private(Path(output), taken.text)
    parts = join_words((count_of(number, kind) for kind, number in taken.counts.items()), most=5)
    say(f"wrote {output}: {parts}")
    return 0


def write_private(file: Path, text: str) -> None:
    """Write *file* whole or not at all, for its owner alone.

    Raises:
        ClusterError: `report-not-written`.
    """
    partial = None
    try:
        if file.exists() and not file.is_file():
            # A device or a pipe, such as /dev/stdout: there is nothing to put in its place.
            file.write_text(text, "utf-8")
            return
        # Made with mode 0600, under a name of its own.
        number, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        partial = Path(name)
        with os.fdopen(number, "w", encoding="utf-8") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        partial.replace(file)
        partial = None
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}"
        hint = "name a file in a folder that exists and may be written to, or - for standard output"
        raise ClusterError.of(
            path="--output", code="report-not-written", message=message, hint=hint
        ) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


FORMS: Final = ("text", "json", "graph", "dot", "mermaid", "prometheus")
_OF_TEAMS: Final = ("text", "json", "prometheus")
_KINDS: Final = (CLAIMS, PODS, SLICES, EVENTS)
_Items = Mapping[Kind, Sequence[Mapping[str, Any]]]
_WARNINGS: Final[Mapping[Kind, str]] = {EVENTS: "type=Warning"}
_TICK: Final = 1.0
"""Seconds after which a waiting main thread looks for signals."""


def status(
    kubeconfig: Path | None,
    *,
    context: str | None,
    namespaces: Sequence[str],
    snapshot: Path | None,
    by_team: bool,
    team_label: str,
    graph: bool,
    output: str,
    watch: bool,
    as_json: bool,
) -> int:
    """Print the claims of a cluster, or what each team has; with *watch*, again after each change until Ctrl-C.

    Raises:
        ClusterError: When nothing can be read.
        FleetError: When the snapshot cannot be read.
        click.BadParameter: When options do not go together.
    """
    form = "json" if as_json else "graph" if graph else output
    by_team = by_team or bool(team_label)
    _check_form(form, by_team=by_team)
    shown = Shown(form=form, by_team=by_team, team_label=team_label, sees_all=not namespaces)
    if snapshot is not None:
        _check_snapshot(kubeconfig or context, watch=watch)
        write_lines(_form(_read_snapshot(snapshot, namespaces), shown))
        return 0
    kinds = (*_KINDS, *([QUOTAS] if by_team else []), *([NAMESPACES] if team_label else []))
    with progress() as tell:
        reader = open_reader(kubeconfig, context, namespaces=namespaces, tell=tell)
        listings = [reader.list(kind, field_selector=_WARNINGS.get(kind, "")) for kind in kinds]
    problems = [problem for each in listings for problem in each.problems]
    if not listings[0].is_seen and not listings[1].is_seen:
        raise nothing_seen(problems)
    if listings[0].problems:
        shown = dataclasses.replace(shown, sees_all=False)
    if not watch:
        print_problems(problems, with_count=False)
        found = {each.kind: each.items for each in listings}
        write_lines(_form(found, shown))
        return 0
    # Ctrl-C is how a watch ends. As an exception it may come inside a lock of threading, which then raises RuntimeError
    # or is held for good.
    end_quietly(code=0)
    return _watch(reader, listings, shown)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """How a status is shown.

    Args:
        form: One of `FORMS`.
        by_team: By team, else by claim.
        team_label: Label of namespaces that names teams; empty where each namespace is one.
        sees_all: Whether the claims of all namespaces are seen.
    """

    form: str
    by_team: bool = False
    team_label: str = ""
    sees_all: bool = True


def _check_form(form: str, *, by_team: bool) -> None:
    if by_team and form not in _OF_TEAMS:
        refusal = f"teams are shown as {', '.join(_OF_TEAMS)}"
        raise click.BadParameter(refusal, param_hint="--by-team")
    if form == "prometheus" and not by_team:
        refusal = "numbers are those of teams; add --by-team"
        raise click.BadParameter(refusal, param_hint="--format")


def _check_snapshot(live: object, *, watch: bool) -> None:
    if live:
        refusal = "a snapshot is read or a cluster, not both"
        raise click.BadParameter(refusal, param_hint="--snapshot")
    if watch:
        raise click.BadParameter("a snapshot does not change", param_hint="--watch")


def _read_snapshot(file: Path, namespaces: Sequence[str]) -> _Items:
    """The objects of a snapshot by kind, in the best version; of the namespaces that are named alone."""
    taken = read_snapshot(file)
    by_name = {kind.name: kind for kind in (*_KINDS, QUOTAS, NAMESPACES)}
    found: dict[Kind, list[Mapping[str, Any]]] = {kind: [] for kind in by_name.values()}
    found[SLICES] += [each.to_manifest() for each in taken.fleet.slices]
    for each in taken.objects:
        kind = by_name.get(text(each.get("kind")))
        if kind is None or not is_object(each):
            continue
        if kind.namespaced and namespaces and namespace_of(each) not in namespaces:
            continue
        # Of kubectl it may be an older version; what no server sends is shown as it is.
        found[kind].append(convert(each, "v1") if can_decode(each) else each)
    return found


def _watch(reader: Reader, listings: Sequence[Listing], shown_as: Shown) -> Never:
    form = shown_as.form
    kinds = [each.kind for each in listings]
    unseen = [problem for each in listings for problem in each.problems]
    is_terminal = sys.stdout.isatty() and form != "json"
    last: list[str] = []
    changes = -1
    with Watch(reader, listings, field_selectors=_WARNINGS) as following:
        while True:
            count = following.wait(changes, _TICK) if changes >= 0 else 0
            if count != changes:
                changes = count
                said = [f"! {problem.message}" for problem in (*unseen, *following.problems)]
                shown = _form({kind: following.items(kind) for kind in kinds}, shown_as)
                if form != "json":
                    shown = [*said, *shown]
                if shown != last:
                    last = shown
                    if is_terminal:
                        write_screen(_fit(shown))
                    else:
                        write_lines(shown)


def _fit(shown: Sequence[str]) -> list[str]:
    """Cut lines to the size of the terminal."""
    columns, rows = shutil.get_terminal_size()
    # Spelled out before it is cut: that takes more room.
    lines = [line if len(line) <= columns else f"{line[: columns - 1]}…" for line in map(one_line, shown)]
    more = len(lines) - rows + 2
    return [*lines[: rows - 2], f"... {count_of(more, 'more line')}"] if more > 0 else lines


def _form(items: _Items, shown: Shown) -> list[str]:
    seen = Seen(claims=items[CLAIMS], pods=items[PODS], slices=items[SLICES], events=items[EVENTS])
    form = shown.form
    found = find_status(seen)
    if shown.by_team:
        spaces, quotas = items.get(NAMESPACES, ()), items.get(QUOTAS, ())
        teams = find_teams(found, spaces, label=shown.team_label, sees_all=shown.sees_all, quotas=quotas)
        if form == "json":
            return [json_text(dataclasses.asdict(teams), indent=None, sort_keys=True)]
        return list(to_prometheus(teams) if form == "prometheus" else describe_teams(teams))
    if form == "json":
        # On one line, so that a watch prints one line for each state.
        return [json_text(dataclasses.asdict(found), indent=None, sort_keys=True)]
    if form == "text":
        return list(describe_status(found))
    graph = find_graph(found, seen.pods)
    drawn = {"graph": draw_tree, "dot": draw_dot, "mermaid": draw_mermaid}[form](graph)
    return list(drawn)


def describe_status(status: Status) -> Iterator[str]:
    """A line for each claim, its reasons below it, and a count."""
    rows = [
        (
            f"{each.namespace}/{each.name}",
            each.state,
            each.node or "-",
            _devices(each),
            join_words(each.consumers),
        )
        for each in status.claims
    ]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    for row, claim in zip(rows, status.claims, strict=True):
        cells = [f"{cell:{width}}" for cell, width in zip(row[:4], widths, strict=True)]
        yield "  ".join([*cells, row[4]]).rstrip()
        yield from (f"    {reason}" for reason in claim.reasons)
    for pod in status.waiting:
        yield f"Pod {pod.namespace}/{pod.name} waits for claims that are not made yet: {join_words(pod.wants)}"
        yield from (f"    {reason}" for reason in pod.reasons)
    states = [each.state for each in status.claims]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states))]
    yield f"{count_of(len(states), 'claim')}{f': {join_words(counts)}' if counts else ''}"
    for driver, number in status.published.items():
        yield f"{driver}: {status.taken[driver]:,} of {count_of(number, 'device')} taken"


def _devices(claim: ClaimStatus) -> str:
    if not claim.devices:
        return join_words(claim.classes) or "-"
    pools: dict[str, list[str]] = {}
    for each in claim.devices:
        mark = " (admin)" if each.is_admin else " (share)" if each.share else ""
        pools.setdefault(f"{each.driver}/{each.pool}", []).append(f"{each.device}{mark}")
    return "; ".join(f"{pool}/{','.join(names)}" for pool, names in pools.items())


def doctor(kubeconfig: Path | None, *, context: str | None, driver: str, as_json: bool) -> int:
    """Print what is wrong with a cluster; 1 when something is broken.

    Raises:
        ClusterError: When nothing can be looked at.
    """
    with progress() as tell:
        evidence = gather(open_reader(kubeconfig, context, tell=tell))
    if not evidence.objects and evidence.problems:
        raise nothing_seen(evidence.problems)
    found = diagnose(evidence, driver=driver)
    if as_json:
        write_json(_diagnosis_to_json(found))
    else:
        write_lines(describe_diagnosis(found))
    return 0 if found.is_healthy else 1


def describe_diagnosis(found: Diagnosis) -> Iterator[str]:
    """Lines with the facts, the findings with what to do, and what could not be seen."""
    yield from (f"· {fact}" for fact in found.facts)
    for each in found.findings:
        yield f"{'✗' if each.severity == 'error' else '!'} {each.path}: {each.message} [{each.code}]"
        if each.hint:
            yield f"    {each.hint}"
    for each in found.not_seen:
        yield f"? {each.message} [{each.code}]"
        if each.hint:
            yield f"    {each.hint}"
    errors = sum(each.severity == "error" for each in found.findings)
    yield f"{count_of(errors, 'error')}, {count_of(len(found.findings) - errors, 'warning')}"


def _diagnosis_to_json(found: Diagnosis) -> dict[str, Any]:
    def plain(problem: Problem) -> dict[str, Any]:
        fields = dataclasses.asdict(problem)
        return {
            "object": fields["path"],
            "what": fields["message"],
            **{name: fields[name] for name in ("code", "hint", "severity")},
        }

    return {
        "healthy": found.is_healthy,
        "facts": list(found.facts),
        "findings": [plain(each) for each in found.findings],
        "notSeen": [plain(each) for each in found.not_seen],
    }
