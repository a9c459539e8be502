"""Generated platforms on the real scheduler: the verdict on all pods at once holds for every order that is tried."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Final, NamedTuple

import pytest

from tests.e2e.scheduler import themes
from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.platforms import QUOTA, PlatformReport, compare_platform, write_counts
from tests.e2e.scheduler.submission import Submission
from tests.e2e.scheduler.test_generated import NEWEST, THEMES
from tests.e2e.scheduler.themes_of_platforms import PLATFORMS
from tests.e2e.scheduler.workloads import KINDS, OTHER_KINDS, Submitted, draw_platform, quota
from tests.support.scheduler.scenario import Scenario

pytestmark = pytest.mark.e2e

IS_SOAK: Final = bool(os.environ.get("DRA_INFRA_SOAK"))
PLATFORM_SEEDS: Final = range(1, 14 if IS_SOAK else 3)
"""With all of them there are 364 platforms."""
SEEDS_OF_OTHERS: Final = range(1, 21 if IS_SOAK else 3)


@pytest.mark.parametrize("theme", [*THEMES, *PLATFORMS], ids=lambda theme: theme.__name__)
def test_what_all_pods_do_in_any_order_is_what_we_say(
    submission: Submission, theme: Callable[[Random], Scenario]
) -> None:
    _compare(submission, theme.__name__, [(theme, seed) for seed in PLATFORM_SEEDS], KINDS)


def test_the_verdict_holds_for_kinds_of_others(submission_to_others: Submission) -> None:
    drawn = [(PLATFORMS[seed % len(PLATFORMS)], seed) for seed in SEEDS_OF_OTHERS]
    _compare(submission_to_others, "kinds_of_others", drawn, (*OTHER_KINDS, *KINDS))


def _compare(
    submission: Submission,
    name: str,
    platforms: Iterable[tuple[Callable[[Random], Scenario], int]],
    kinds: Sequence[str],
) -> None:
    counted: Counter[str] = Counter()
    for theme, seed in platforms:
        found = _compare_once(submission, theme, seed, kinds)
        if found.report.differences:
            # On a busy machine pods were sometimes refused devices that were free, also in the next platform. With a new scheduler
            # they got them, so one is asked once more. Whether the old one held the devices was not found out: both answers
            # are printed, and a difference that stays fails.
            print(f"{theme.__name__} {seed} again, with a new scheduler: {found.report.differences}")
            submission.restart_scheduler()
            found = _compare_once(submission, theme, seed, kinds)
        joint = found.report.joint
        made = Counter(each.kind for each in found.workloads)
        print(f"{theme.__name__} {seed}: {joint.verdict} of {dict(made)}; {joint.reasons[:1]}")
        assert not found.report.differences, "\n".join(found.report.differences)
        counted.update([joint.verdict, *made, *([QUOTA] if found.has_quota else [])])
    if IS_SOAK:
        write_counts(name, counted)


class _Compared(NamedTuple):
    """A platform that was drawn, and how it was compared."""

    workloads: Sequence[Submitted]
    has_quota: bool
    report: PlatformReport


def _compare_once(
    submission: Submission, theme: Callable[[Random], Scenario], seed: int, kinds: Sequence[str]
) -> _Compared:
    random = Random(f"{theme.__name__} {seed} together")  # noqa: S311 - scenarios, no secrets.
    drawn = theme(random)
    # The platforms that are drawn have a pod too many; with fewer pods all verdicts come up.
    pods = drawn.pods[: random.randint(1, len(drawn.pods))]
    scenario, workloads = draw_platform(replace(drawn, pods=pods), random, kinds=kinds)
    has_quota = any(each["kind"] == "ResourceQuota" for each in scenario.objects)
    report = compare_platform(submission, scenario, workloads, release_of(NEWEST), random)
    return _Compared(workloads, has_quota, report)


def test_a_verdict_that_is_wrong_about_a_quota_is_noticed(submission: Submission) -> None:
    random = Random(1)  # noqa: S311 - scenarios, no secrets.
    scenario, workloads = draw_platform(themes.counts(random), random, kinds=["ReplicaSet"], quotas=0.0)
    wrong = quota({"pods": "0"})
    report = compare_platform(
        submission,
        replace(scenario, pods=scenario.pods[:1]),
        workloads[:1],
        release_of(NEWEST),
        random,
        [wrong],
    )
    assert report.joint.verdict == "never"
    assert len(report.differences) == 2
