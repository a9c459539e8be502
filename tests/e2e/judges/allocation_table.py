"""Counts of the comparison with the allocators, for docs/parity.md."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.judges.allocation_features import expected_features, features_of
from tests.support.allocator.cases import MINORS, Case
from tests.support.parity.differential import RESULTS
from tests.support.parity.report import ALLOCATION_SECTION


@dataclass
class Tally:
    """What a comparison counted.

    Args:
        minor: The release.
        features: Number of cases that have a feature.
        kinds: Number of cases by copy of the allocator, and of those with one possible answer.
        wrong: What is wrong, in words.
    """

    minor: str
    features: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def add(self, case: Case, theirs: list[list[Any]], difference: str) -> None:
        """Count one case."""
        self.features.update(features_of(case, theirs))
        self.kinds[case.variant.channel] += 1
        self.kinds["one answer" if case.is_ordered else "one of several answers"] += 1
        self.kinds["total"] += 1
        if difference:
            self.wrong.append(f"{json.dumps(case.question())}\n{difference}")

    def write(self) -> None:
        """Keep the counts for docs/parity.md."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        content = {"features": self.features, "kinds": self.kinds, "wrong": len(self.wrong)}
        # In one step: other workers read it for their sections.
        draft = RESULTS / f"allocation-{self.minor}.draft"
        draft.write_text(json.dumps(content, indent=2, sort_keys=True))
        draft.replace(draft.with_suffix(".json"))
        found = {
            minor: json.loads(other.read_text())
            for minor in MINORS
            if (other := RESULTS / f"allocation-{minor}.json").exists()
        }
        (RESULTS / ALLOCATION_SECTION).write_text(section(found))


def section(results: dict[str, Any]) -> str:
    """The part of docs/parity.md about the allocator."""
    kinds = ("total", "stable", "incubating", "experimental", "one answer", "one of several answers")
    names = dict.fromkeys(name for minor in MINORS for name in expected_features(int(minor[2:])))
    return "\n".join(
        [
            "## Allocation",
            "",
            "What a program around Kubernetes' own allocator of each minor gives for small random clusters, gates, allocated",
            "devices and claims, beside what `dra_infra.kubernetes.scheduler.allocator` gives: the whole of `status.allocation` or the text",
            "of the error, byte for byte but for the random ids of shares. Where upstream tries pools in random order (1.34, 1.35,",
            "and the stable copy), our answer is one of those that 50 runs gave, or the one where there is only one.",
            "Each case is answered twice here, by the plain search and by the one that proves in place of trying.",
            "",
            *_table(
                ("Cases", *MINORS),
                [
                    *((name, *_cells(results, "kinds", name)) for name in kinds),
                    (
                        "different",
                        *(f"{results[each]['wrong']:,}" if each in results else "-" for each in MINORS),
                    ),
                ],
            ),
            "",
            "In how many cases each feature is; a dash: the minor does not have it.",
            "",
            *_table(("Feature", *MINORS), ((name, *_known(results, name)) for name in names)),
            "",
        ]
    )


def _cells(results: dict[str, Any], part: str, name: str) -> list[str]:
    return [f"{results[minor][part].get(name, 0):,}" if minor in results else "-" for minor in MINORS]


def _known(results: dict[str, Any], name: str) -> list[str]:
    return [
        cell if name in expected_features(int(minor[2:])) else "-"
        for minor, cell in zip(MINORS, _cells(results, "features", name), strict=True)
    ]


def _table(heading: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in (heading, ("---",) * len(heading), *rows)]
