"""Switch off each rule of ours in turn and see that the comparison notices: ``python -m tests.support.parity.mutants``.

Works on the answers that the last run kept (`differential.RESULTS`), so that no server is needed. A rule that can be
missing without any comparison turning red is a rule that nothing holds to the server.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS
from dra_infra.kubernetes.apiserver import RULES, Verdict
from tests.support.parity.cases import Recorded, read_recorded
from tests.support.parity.compare import STRICT, WARN, compare, judged
from tests.support.parity.differential import RESULTS

NOT_ASKED: Mapping[str, str] = {
    "metadata.namespace-format": "no server is asked: a request to such a namespace ends in 404, without a look at the object",
}
"""Rules of ours that no comparison can reach, and why."""

_ENOUGH = 3


def survivors(recordings: Iterable[Recorded], rules: Iterable[str] = RULES) -> tuple[str, ...]:
    """Those of *rules* that can be switched off without any comparison turning red, sorted."""
    return tuple(sorted(set(rules) - set(kills(recordings)) - set(NOT_ASKED)))


def rules_of(minor: str) -> tuple[str, ...]:
    """Rules that servers of *minor* have, with all gates on."""
    number = int(minor.partition(".")[2])
    return tuple(
        name
        for name, rule in RULES.items()
        if rule.since <= number <= rule.until and (not rule.needs or minor in GATES[rule.needs])
    )


def kills(recordings: Iterable[Recorded]) -> Mapping[str, int]:
    """How many recorded answers turn red (up to a few) without the rule, for each rule where any does."""
    found: dict[str, int] = defaultdict(int)
    for recorded in recordings:
        for (verdict, differing), mode in zip(judged(recorded), (STRICT, WARN), strict=True):
            if verdict is None or differing:
                continue
            answer = recorded.strict if mode == STRICT else recorded.warn
            for rule in {error.rule for error in verdict.errors}:
                if found[rule] < _ENOUGH and any(
                    compare(recorded.case, answer, without(verdict, rule), mode)
                ):
                    found[rule] += 1
    return {rule: count for rule, count in found.items() if count}


def without(verdict: Verdict, rule: str) -> Verdict:
    """The verdict that we would give without *rule*."""
    errors = tuple(error for error in verdict.errors if error.rule != rule)
    return dataclasses.replace(verdict, errors=errors, status="invalid" if errors else "accepted")


def recordings(minor: str, folder: Path = RESULTS) -> Iterator[Recorded]:
    """What the last runs with servers of *minor* kept."""
    for path in sorted(folder.glob(f"{minor}-*.jsonl")):
        yield from read_recorded(path)


def main() -> int:
    """Print what survives; returns the exit status."""
    status = 0
    for minor in SUPPORTED_MINORS:
        found = list(recordings(minor))
        if not found:
            print(
                f"error: no answers of {minor} are recorded\n  hint: run `make parity` first", file=sys.stderr
            )
            return 2
        rules = [rule for rule in rules_of(minor) if rule not in NOT_ASKED]
        left = survivors(found, rules)
        print(
            f"{minor}: {len(rules) - len(left)} of {len(rules)} rules are missed when they are switched off"
        )
        for rule in left:
            status = 1
            print(f"  not missed: {rule}: {RULES[rule].text}")
    return status


if __name__ == "__main__":
    sys.exit(main())
