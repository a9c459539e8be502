"""Commands that read a live cluster: `dra-infra snapshot`, `status` and `doctor`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from dra_infra.answers.diagnosing import diagnose
from dra_infra.answers.fragmenting import Fragmentation, observe_fragmentation, read_fragmentation
from dra_infra.answers.observing import ClusterStatus, LiveStatus, observe, observe_snapshot
from dra_infra.answers.snapshotting import take_snapshot
from dra_infra.cli.printing import (
    print_problems,
    progress,
    say,
    write_json,
    write_lines,
    write_output,
    write_screen,
)
from dra_infra.cli.reports import check_place, inputs_of
from dra_infra.cli.written_files import hint_for, put_in_place
from dra_infra.cluster.doctor import Diagnosis
from dra_infra.cluster.status import ClaimStatus, HeldDevice, Status, draw_dot, draw_mermaid, draw_tree
from dra_infra.cluster.teams import describe_teams, to_prometheus
from dra_infra.documents.json_texts import are_lines
from dra_infra.errors import ClusterError
from dra_infra.output.escaping import escape_json, json_text, one_line
from dra_infra.output.report_data import make_report, to_data
from dra_infra.output.wording import count_of, join_words
from dra_infra.process import end_quietly


def snapshot(
    kubeconfig: Path | None,
    *,
    context: str | None,
    request_timeout: float,
    namespaces: Sequence[str],
    output: str,
) -> int:
    """Write what the cluster holds to *output*, `-` for standard output; what could not be seen is said.

    Raises:
        ClusterError: When nothing can be read, or `report-not-written`.
        ProgramError: `report-not-written`, for a file that a snapshot must not take the place of.
    """
    if output != "-":
        check_place(Path(output), inputs_of(kubeconfig))
    with progress() as tell:
        taken = take_snapshot(
            kubeconfig=kubeconfig,
            context=context,
            request_timeout=request_timeout,
            namespaces=namespaces,
            tell=tell,
        )
    print_problems(taken.problems, with_count=False)
    if output == "-":
        # Lines are JSON, and a terminal gets no character that hides: above U+FFFF only a pair of escapes is JSON.
        write_output(escape_json(taken.text) if are_lines(taken.text) else taken.text)
        return taken.exit_code
    write_private(Path(output), taken.text)
    parts = join_words((count_of(number, kind) for kind, number in taken.counts.items()), most=5)
    say(f"wrote {output}: {parts}")
    return taken.exit_code


def write_private(file: Path, text: str) -> None:
    """Write *file* whole or not at all, for its owner alone.

    Raises:
        ClusterError: `report-not-written`.
    """
    try:
        put_in_place(file, text.encode(), 0o600)
    except OSError as error:
        message = f"{file} cannot be written: {error.strerror or error}"
        hint = hint_for(
            error, "name a file in a folder that exists and may be written to, or - for standard output"
        )
        raise ClusterError.of(
            path="--output", code="report-not-written", message=message, hint=hint
        ) from error


FORMS: Final = ("text", "json", "graph", "dot", "mermaid", "prometheus")
_OF_TEAMS: Final = ("text", "json", "prometheus")


def status(
    kubeconfig: Path | None,
    *,
    context: str | None,
    request_timeout: float,
    namespaces: Sequence[str],
    snapshot: Path | None,
    by_team: bool,
    team_label: str,
    graph: bool,
    form: str,
    watch: bool,
    fragmentation: bool = False,
) -> int:
    """Print the claims of a cluster, what each team has, or how large a claim still fits; with *watch*, again after each change until Ctrl-C.

    Raises:
        ClusterError: When nothing can be read.
        FleetError: When the snapshot cannot be read.
        click.BadParameter: When options do not go together.
    """
    if fragmentation:
        return _print_fragmentation(
            kubeconfig,
            context=context,
            request_timeout=request_timeout,
            snapshot=snapshot,
            form="graph" if graph else form,
            is_mixed=by_team or bool(team_label) or watch or bool(namespaces),
        )
    form = "graph" if graph and form == "text" else form
    by_team = by_team or bool(team_label)
    _check_form(form, by_team=by_team)
    label = team_label if by_team else None
    if snapshot is not None:
        _check_snapshot(kubeconfig or context, watch=watch)
        observed = observe_snapshot(snapshot, namespaces=namespaces, team_label=label)
        write_lines(render_status(observed, form))
        return observed.exit_code
    with progress() as tell:
        live = observe(
            kubeconfig=kubeconfig,
            context=context,
            request_timeout=request_timeout,
            namespaces=namespaces,
            team_label=label,
            tell=tell,
        )
    if not watch:
        print_problems(live.now.problems, with_count=False)
        write_lines(render_status(live.now, form))
        return live.now.exit_code
    # Ctrl-C is how a watch ends. As an exception it may come inside a lock of threading, which then raises RuntimeError
    # or is held for good.
    end_quietly(code=live.now.exit_code)
    _watch(live, form)
    return live.now.exit_code


def _print_fragmentation(
    kubeconfig: Path | None,
    *,
    context: str | None,
    request_timeout: float,
    snapshot: Path | None,
    form: str,
    is_mixed: bool,
) -> int:
    """Print how large a claim of each class still fits."""
    if form not in ("text", "json") or is_mixed:
        refusal = "fragmentation is of all namespaces, as text or json, without teams, graph or watch"
        raise click.BadParameter(refusal, param_hint="--fragmentation")
    if snapshot is not None:
        _check_snapshot(kubeconfig or context, watch=False)
        fragmentation = read_fragmentation(snapshot)
    else:
        with progress() as tell:
            fragmentation = observe_fragmentation(
                kubeconfig=kubeconfig, context=context, request_timeout=request_timeout, tell=tell
            )
    print_problems(fragmentation.problems, with_count=False)
    if form == "json":
        write_json(_fragmentation_to_json(fragmentation))
    else:
        write_lines(describe_fragmentation(fragmentation))
    return fragmentation.exit_code


def describe_fragmentation(found: Fragmentation) -> Iterator[str]:
    """Yield the lines of the text: each class and profile, who is in the way, and sizes that use what is free."""
    for each in found.fragments:
        yield from each.lines
    classes = f"{len(found.fragments):,} classes and MIG profiles"
    yield f"{classes} on {count_of(found.nodes, 'node')}, by the allocator of Kubernetes {found.minor}"


def _fragmentation_to_json(found: Fragmentation) -> dict[str, Any]:
    return make_report(
        "fragmentation",
        {
            "classes": [each.to_data() for each in found.fragments],
            "nodes": found.nodes,
            "kubernetes": found.minor,
            "notes": list(found.notes),
        },
    )


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


def _watch(live: LiveStatus, form: str) -> None:
    is_terminal = sys.stdout.isatty() and form != "json"
    last: list[str] = []
    for now in live.follow():
        shown = render_status(now, form)
        if form != "json":
            shown = [*(f"! {problem.message}" for problem in now.problems), *shown]
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


def render_status(found: ClusterStatus, form: str) -> list[str]:
    """Return the lines of a status in one of `FORMS`; of teams where it has them."""
    if found.teams is not None:
        if form == "json":
            return [json_text(make_report("teams", to_data(found.teams)), indent=None)]
        return list(to_prometheus(found.teams) if form == "prometheus" else describe_teams(found.teams))
    if form == "json":
        # On one line, so that a watch prints one line for each state.
        return [json_text(make_report("status", to_data(found.claims)), indent=None)]
    if form == "text":
        return list(describe_status(found.claims))
    drawn = {"graph": draw_tree, "dot": draw_dot, "mermaid": draw_mermaid}[form](found.graph)
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


def _mark(device: HeldDevice) -> str:
    if device.is_admin:
        return " (admin)"
    return " (share)" if device.share else ""


def _devices(claim: ClaimStatus) -> str:
    if not claim.devices:
        return join_words(claim.classes) or "-"
    pools: dict[str, list[str]] = {}
    for each in claim.devices:
        pools.setdefault(f"{each.driver}/{each.pool}", []).append(f"{each.device}{_mark(each)}")
    return "; ".join(f"{pool}/{','.join(names)}" for pool, names in pools.items())


def doctor(
    kubeconfig: Path | None, *, context: str | None, request_timeout: float, driver: str, form: str
) -> int:
    """Print what is wrong with a cluster; 1 when something is broken.

    Raises:
        ClusterError: When nothing can be looked at.
    """
    with progress() as tell:
        diagnosis = diagnose(
            kubeconfig=kubeconfig,
            context=context,
            request_timeout=request_timeout,
            driver=driver,
            tell=tell,
        )
    if form == "json":
        write_json(_diagnosis_to_json(diagnosis))
    else:
        write_lines(describe_diagnosis(diagnosis))
    return diagnosis.exit_code


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
    yield found.provenance.describe()


def _diagnosis_to_json(found: Diagnosis) -> dict[str, Any]:
    return make_report(
        "doctor",
        {
            "healthy": found.is_healthy,
            "facts": list(found.facts),
            "problems": to_data(found.findings),
            "notSeen": to_data(found.not_seen),
            "provenance": found.provenance.to_json(),
        },
    )
