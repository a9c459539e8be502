"""The `dra-infra status` command: shows the claims of a live cluster."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dra_infra.cli.printing import print_problems, progress, write_lines, write_screen
from dra_infra.client.kinds import CLAIMS, EVENTS, PODS, SLICES, Kind
from dra_infra.client.refusals import nothing_seen
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
from dra_infra.cluster.watching import Watch
from dra_infra.output.escaping import json_text, one_line
from dra_infra.output.wording import count_of, join_words

FORMS: Final = ("text", "json", "graph", "dot", "mermaid")
_KINDS: Final = (CLAIMS, PODS, SLICES, EVENTS)
_WARNINGS: Final[Mapping[Kind, str]] = {EVENTS: "type=Warning"}
_TICK: Final = 1.0
"""Seconds after which a waiting main thread looks for signals."""


def run(
    kubeconfig: Path | None, *, context: str | None, namespaces: Sequence[str], form: str, watch: bool
) -> int:
    """Print the claims of a cluster in one of `FORMS`; with *watch*, again after each change until Ctrl-C.

    Raises:
        ClusterError: When nothing can be read.
    """
    with progress() as tell:
        reader = open_reader(kubeconfig, context, namespaces=namespaces, tell=tell)
        listings = [reader.list(kind, field_selector=_WARNINGS.get(kind, "")) for kind in _KINDS]
    problems = [problem for each in listings for problem in each.problems]
    if not listings[0].is_seen and not listings[1].is_seen:
        raise nothing_seen(problems)
    if not watch:
        print_problems(problems, with_count=False)
        found = {each.kind: each.items for each in listings}
        write_lines(_form(_seen(found), form))
        return 0
    try:
        _watch(reader, listings, form)
    except KeyboardInterrupt:
        # That is how a watch ends.
        return 0
    return 0


def _watch(reader: Reader, listings: Sequence[Listing], form: str) -> None:
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
                shown = _form(_seen({kind: following.items(kind) for kind in _KINDS}), form)
                if form != "json":
                    shown = [*said, *shown]
                if shown != last:
                    last = shown
                    if is_terminal:
                        write_screen(_fit(shown))
                    else:
                        write_lines(shown)


def _fit(shown: Sequence[str]) -> list[str]:
    """As much as the screen shows."""
    columns, rows = shutil.get_terminal_size()
    # Spelled out before it is cut: that takes more room.
    lines = [line if len(line) <= columns else f"{line[: columns - 1]}…" for line in map(one_line, shown)]
    more = len(lines) - rows + 2
    return [*lines[: rows - 2], f"... {count_of(more, 'more line')}"] if more > 0 else lines


def _seen(items: Mapping[Kind, Sequence[Mapping[str, Any]]]) -> Seen:
    return Seen(claims=items[CLAIMS], pods=items[PODS], slices=items[SLICES], events=items[EVENTS])


def _form(seen: Seen, form: str) -> list[str]:
    status = find_status(seen)
    if form == "json":
        # On one line, so that a watch prints one line for each state.
        return [json_text(dataclasses.asdict(status), indent=None, sort_keys=True)]
    if form == "text":
        return list(describe(status))
    graph = find_graph(status, seen.pods)
    drawn = {"graph": draw_tree, "dot": draw_dot, "mermaid": draw_mermaid}[form](graph)
    return list(drawn)


def describe(status: Status) -> Iterator[str]:
    """A line for each claim, its reasons below it, and a count."""
    rows = [
        (f"{each.namespace}/{each.name}", each.state, each.node or "-", _devices(each), _users(each))
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


def _users(claim: ClaimStatus) -> str:
    return join_words(claim.consumers)
