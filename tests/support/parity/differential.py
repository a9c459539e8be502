"""One run of the comparison with one server: what was asked, what was reached, and what differs."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.parity import bases, generation, updates
from tests.support.parity.cases import NO_ANSWER, Case, Object, Recorded
from tests.support.parity.compare import BAD_REQUEST, Difference, judged
from tests.support.parity.gate_sets import DEFAULT
from tests.support.parity.row import NO_REPLY, Row
from tests.support.parity.rows import ROWS
from tests.support.parity.server import Server
from tests.support.parity.shrinking import shrink

SEED = 1
RESULTS = Path(__file__).parents[3] / ".cache" / "parity"
"""Where runs leave their counts and answers; nothing there is kept in the repository."""

_SWEEP_STEP = {DEFAULT: 4}
_SWEEP_STEP_OTHERWISE = 16
_SLICE_STEPS = 3
_UPDATES = 60
_KEPT_PER_RULE = 12
_SHOWN = 25


@dataclass(kw_only=True)
class Tally:
    """Results of one run.

    Args:
        minor: Of the server.
        gates: Name of its gate set.
        asked: Questions by kind and by the server's answer.
        rules: How often each rule of ours agreed with the server.
        rows: Rows of the reference to whether the server answered as it is known to.
        differing: Unexplained ones, the first few made small.
        count: How many there are.
        kept: Answers that show a rule at work, for the mutants.
    """

    minor: str
    gates: str
    asked: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    rows: dict[str, bool] = field(default_factory=dict)
    differing: list[Object] = field(default_factory=list)
    count: int = 0
    kept: list[Recorded] = field(default_factory=list)

    def write(self, folder: Path = RESULTS) -> None:
        """Leave the counts as JSON and the kept answers as JSON lines."""
        folder.mkdir(parents=True, exist_ok=True)
        counts = {name: value for name, value in vars(self).items() if name != "kept"}
        path = folder / f"{self.minor}-{self.gates}.json"
        path.write_text(json.dumps(counts, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        lines = "".join(f"{each.to_line()}\n" for each in self.kept)
        path.with_suffix(".jsonl").write_text(lines, encoding="utf-8")

    @property
    def is_clean(self) -> bool:
        """Whether both sides agree on everything, and the servers are as they are known."""
        return not self.count and all(self.rows.values())

    def report(self) -> str:
        """What differs, for people."""
        lines = [f"Kubernetes {self.minor}, gates {self.gates}: {self.count} differences"]
        lines += [json.dumps(each, ensure_ascii=False, indent=1) for each in self.differing]
        lines += [f"not as it is known: {row}" for row, is_as_known in self.rows.items() if not is_as_known]
        return "\n".join(lines)


def run(
    server: Server, count: int, *, seed: int = SEED, repeat_every: int = 1, sweep_every: int = 1
) -> Tally:
    """Ask about every row, a part of the systematic faults, *count* generated objects, and updates.

    Args:
        server: The server.
        count: Of generated objects.
        seed: Other objects.
        repeat_every: Of which questions the second form is asked although the answer cannot be another one (see
            `Server.ask`): of all, of every other...
        sweep_every: Which part of the systematic faults that are meant for this server is asked: all, every other...
    """
    tally = Tally(minor=server.minor, gates=server.gate_set)
    for row, case in _rows(server):
        recorded = server.ask(case)
        tally.rows[row.id] = _is_as_known(row, recorded)
        _judge(tally, server, recorded)
    step = _SWEEP_STEP.get(server.gate_set, _SWEEP_STEP_OTHERWISE) * sweep_every
    offset = int(server.minor.partition(".")[2]) % step

    def is_wanted(index: int, kind: str) -> bool:
        # Slices have as many fields as all other kinds together.
        return index % (step * _SLICE_STEPS if kind == "ResourceSlice" else step) == offset

    created = (*bases.sweeps(server.minor, is_wanted), *map(generation.case, generation.names(seed, count)))
    served = (case for case in created if server.serves(case))
    for index, case in enumerate(itertools.chain(served, _updates(server, seed))):
        _judge(tally, server, server.ask(case, twice=index % repeat_every == 0))
    return tally


def _rows(server: Server) -> Iterator[tuple[Row, Case]]:
    for index, row in enumerate(ROWS.values()):
        if row.gate_set != server.gate_set or not row.exists_in(server.minor):
            continue
        if row.after is None:
            yield row, row.case()
            continue
        metadata = {"name": f"row-{index}"}
        before = Case(id=row.id, object={**row.after, "metadata": metadata}, namespace=row.namespace)
        case = row.case(server.store(before))
        yield row, dataclasses.replace(case, object={**case.object, "metadata": metadata})


def _is_as_known(row: Row, recorded: Recorded) -> bool:
    path, reason = row.expected(recorded.minor)
    if not reason:
        return recorded.warn.is_accepted
    if reason == NO_REPLY:
        return recorded.warn.code == NO_ANSWER
    return any((cause["field"], cause["reason"]) == (path, reason) for cause in recorded.warn.causes)


def _updates(server: Server, seed: int) -> Iterator[Case]:
    for base in updates.stored(server.minor, server.gate_set):
        old = dataclasses.replace(base, object=server.store(base))
        yield from updates.named(old)
        yield from updates.drawn(old, seed, _UPDATES)


def _judge(tally: Tally, server: Server, recorded: Recorded) -> None:
    outcome = "accepted" if recorded.strict.is_accepted else str(recorded.strict.code)
    tally.asked[f"{recorded.case.kind} {_request(recorded.case)} {outcome}"] += 1
    found: list[Difference] = []
    reached: set[str] = set()
    for verdict, differences in judged(recorded):
        found += differences
        if verdict is not None and verdict.status != BAD_REQUEST:
            reached |= {error.rule for error in verdict.errors}
    if found:
        tally.count += 1
        if len(tally.differing) < _SHOWN:
            tally.differing.append(_shown(server, recorded, found))
        return
    if any(tally.rules[rule] < _KEPT_PER_RULE for rule in reached):
        tally.kept.append(recorded)
    tally.rules.update(reached)


def _request(case: Case) -> str:
    return "create" if case.old is None else "update"


def _shown(server: Server, recorded: Recorded, found: list[Difference]) -> dict[str, Any]:
    whats = {each.what for each in found}

    def differences(case: Case) -> list[Difference]:
        return [each for _, differing in judged(server.ask(case)) for each in differing]

    small = shrink(recorded.case, lambda case: whats <= {each.what for each in differences(case)})
    return {
        "case": recorded.case.id,
        "object": small.object,
        "namespace": small.namespace,
        "is_update": small.old is not None,
        "differences": [dataclasses.asdict(each) for each in differences(small)],
    }
