"""What to do before and after an upgrade, in order, with commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dra_infra.kubernetes.api import Release
from dra_infra.output.wording import count_of, join_words
from dra_infra.upgrades.differences import Difference, Step

_MOST: Final = 6
"""Objects that a step names; the others are counted."""


def plan_steps(
    differences: Sequence[Difference],
    rewrites: Sequence[str],
    before: Release,
    after: Release,
    through: Sequence[Release],
) -> tuple[Step, ...]:
    """Return the steps of an upgrade.

    Args:
        differences: What differs.
        rewrites: Plurals and groups of what etcd has in an older version.
        before: The older release.
        after: The newer release.
        through: Minors between both.
    """
    return (*_before(differences), *_upgrade(before, after, through), *_after(differences, rewrites, after))


def _before(differences: Sequence[Difference]) -> Iterator[Step]:
    yield Step(
        when="before",
        what="Keep the cluster in a file, to compare with afterwards.",
        command="dra-infra snapshot --output before.yaml",
    )
    for code, what in (
        ("upgrade-write-refused", "Mend stored objects that the newer API server refuses to write"),
        ("upgrade-refused", "Change objects so that both releases accept them"),
    ):
        if names := _subjects(differences, code):
            yield Step(when="before", what=f"{what}: {names}.")
    if names := _subjects(differences, "upgrade-evicts", level="breaks"):
        yield Step(when="before", what=f"Remove taints that would evict pods, or tolerate them: {names}.")
    if names := _subjects(differences, "upgrade-quota"):
        yield Step(when="before", what=f"Raise quotas by what claims take of them: {names}.")
    if names := _subjects(differences, "upgrade-placement-differs", level="breaks"):
        yield Step(when="before", what=f"Change what keeps pods of these from being placed: {names}.")
    if names := _subjects(differences, "upgrade-metric", level="breaks"):
        yield Step(when="before", what=f"Ask for the old and the new names of metrics: {names}.")
    if drivers := [each.path for each in differences if each.code == "upgrade-driver" and not each.subject]:
        yield Step(
            when="before", what=f"Upgrade drivers that need an old version of the API: {join_words(drivers)}."
        )
    if names := _subjects(differences, "upgrade-driver", level="breaks"):
        yield Step(when="before", what=f"Take chart versions that support the newer release: {names}.")
    if gates := [each.path for each in differences if each.code == "upgrade-gate" and each.hint]:
        yield Step(
            when="before",
            what=f"Plan to remove flags of gates, each when its component is upgraded: {join_words(gates, most=_MOST)}.",
        )


def _upgrade(before: Release, after: Release, through: Sequence[Release]) -> Iterator[Step]:
    path = [*(each.minor for each in through), after.minor]
    hops = "" if len(path) == 1 else f", one minor at a time: {', '.join(path)}"
    yield Step(
        when="after",
        what=f"Upgrade the API servers from {before.minor}{hops}; then controller manager and scheduler, then the nodes.",
    )


def _after(differences: Sequence[Difference], rewrites: Sequence[str], after: Release) -> Iterator[Step]:
    if names := _subjects(differences, "upgrade-apply-refused"):
        yield Step(
            when="after",
            what=f"Give these a new name, or delete and create them, before anything applies them again: {names}.",
        )
    if names := _subjects(differences, "upgrade-accepted"):
        yield Step(when="after", what=f"Create what only {after.minor} accepts: {names}.")
    if rewrites:
        yield Step(
            when="after",
            what="Write stored objects again, so that etcd has them in the newer version.",
            command=f"kubectl get {','.join(rewrites)} -A -o json | kubectl replace -f -",
        )
    yield Step(
        when="after",
        what="Look for what is wrong with devices.",
        command="dra-infra doctor",
    )


def _subjects(differences: Sequence[Difference], code: str, *, level: str = "") -> str:
    subjects = dict.fromkeys(
        str(each.subject)
        for each in differences
        if each.code == code and each.subject is not None and (not level or each.level == level)
    )
    rest = len(subjects) - _MOST
    more = f" and {count_of(rest, 'more object')}" if rest > 0 else ""
    return f"{', '.join([*subjects][:_MOST])}{more}" if subjects else ""
