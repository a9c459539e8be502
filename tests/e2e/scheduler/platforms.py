"""Whole platforms on the real scheduler: the verdict on all pods at once, and what becomes of them in some order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api import Release
from dra_infra.placement.placement import JointVerdict
from dra_infra.placement.running import Running
from tests.e2e.scheduler.answers import Seen
from tests.e2e.scheduler.submission import Submission
from tests.e2e.scheduler.workloads import KINDS, OTHER_KINDS, Submitted
from tests.support.parity.differential import RESULTS
from tests.support.parity.report import PLATFORM_SECTION
from tests.support.placing import place
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Manifest

VERDICTS: Final = ("always", "depends-on-order", "never", "not-decided")
QUOTA: Final = "with a quota"
_SECTION: Final = """\
## All pods at once

Platforms drawn from a seed (`tests/e2e/scheduler`), each submitted to the real control plane of 1.37 in two random orders and in those that
the verdict on [all workloads at once](placement.md#all-at-once) names. Controllers make the pods, half of the platforms are below a
ResourceQuota, and no pod did other than the verdict says.
"""


@dataclass(frozen=True, kw_only=True)
class PlatformReport:
    """What a platform showed.

    Args:
        joint: Our verdict.
        differences: Every way in which the control plane did something else than it says.
    """

    joint: JointVerdict
    differences: tuple[str, ...]


def compare_platform(
    submission: Submission,
    scenario: Scenario,
    workloads: Sequence[Submitted],
    release: Release,
    random: Random,
    supposed: Sequence[Manifest] = (),
) -> PlatformReport:
    """Submit the workloads of a scenario in random orders, and in those that the verdict names.

    Args:
        submission: Where to.
        scenario: What there is beside the workloads.
        workloads: All of them.
        release: What runs there.
        random: Of the orders.
        supposed: Objects that only the verdict is told of, to see that a wrong one is noticed.
    """
    stage = submission.stage
    with stage.set(scenario):
        seen = Seen.of(stage, release)
        submitted = {each["kind"] for each in scenario.objects}
        others = [each for each in seen.objects if each["kind"] not in submitted]
        taken = Running.of(Snapshot(fleet=seen.fleet, objects=tuple(others))).taken
        manifests = [*scenario.objects, *scenario.pods, *supposed]
        joint = place(manifests, seen.fleet, taken=taken, release=release).joint
        found: list[str] = []
        # Each workload waits for the one before it, then none does.
        for in_turn in (True, False):
            order = random.sample(workloads, len(workloads))
            waiting = submission.submit(order, until_bound=joint.verdict == "always", in_turn=in_turn)
            names = [f"{each.kind} {each.name}" for each in order]
            if waiting and joint.verdict == "always":
                found.append(f"{scenario}: always, but in the order {names} these wait: {waiting}")
            if not waiting and joint.verdict == "never":
                found.append(f"{scenario}: never, but in the order {names} all were bound: {joint.reasons}")
        for shown in (joint.works, joint.fails):
            if shown is not None:
                expected: Counter[str] = Counter()
                for owner, number in shown.pending:
                    expected[owner.name] += number
                pending = submission.play(workloads, shown)
                if pending != expected:
                    found.append(
                        f"{scenario}: in the order {shown} these wait: {pending}, we said {dict(expected)}"
                    )
        return PlatformReport(joint=joint, differences=tuple(found))


def write_counts(theme: str, counted: Mapping[str, int]) -> None:
    """Write how many platforms of a theme got each verdict, and the section of docs/parity.md with those of all themes.

    Args:
        theme: Its name.
        counted: Platforms by verdict, those below a quota, and those with a workload of each kind.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    # In one step: other workers read it for their sections.
    draft = RESULTS / f"platforms-{theme}.draft"
    draft.write_text(json.dumps(counted))
    draft.replace(draft.with_suffix(".json"))
    counts = {
        path.stem.removeprefix("platforms-"): json.loads(path.read_text())
        for path in sorted(RESULTS.glob("platforms-*.json"))
    }
    rows = [*counts.items(), ("all", sum(map(Counter, counts.values()), Counter()))]
    tables = [
        _table(rows, (*VERDICTS, QUOTA)),
        "How many platforms have a workload of each kind:",
        _table(rows[-1:], (*KINDS, *OTHER_KINDS)),
    ]
    (RESULTS / PLATFORM_SECTION).write_text("\n\n".join((_SECTION.strip(), *tables)))


def _table(rows: Sequence[tuple[str, Mapping[str, int]]], columns: Sequence[str]) -> str:
    lines = [("Platforms", *columns), ("---",) * (len(columns) + 1)]
    lines += [
        (name.replace("_", " "), *(str(each.get(column, 0)) for column in columns)) for name, each in rows
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
