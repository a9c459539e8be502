"""Pods that one of two releases evicts because of taints on their devices, and the other one does not."""

from __future__ import annotations

from collections.abc import Iterator, Set

from dra_infra.kubernetes.api import ObjectRef, by_namespace
from dra_infra.upgrades.differences import Difference


def compare_evictions(before: Set[ObjectRef], after: Set[ObjectRef]) -> Iterator[Difference]:
    """Yield the pods whose eviction differs. Code: `upgrade-evicts`.

    Args:
        before: Pods that the older release evicts.
        after: Pods that the newer release evicts.
    """
    for pod in sorted(after - before, key=by_namespace):
        yield Difference(
            level="breaks",
            area="evictions",
            code="upgrade-evicts",
            subject=pod,
            message="is evicted after the upgrade, because a device that it uses has a taint with the effect NoExecute",
            before="runs on",
            after="evicted",
            hint="remove the taint or its DeviceTaintRule, or tolerate it in the claim, before the upgrade",
        )
    for pod in sorted(before - after, key=by_namespace):
        yield Difference(
            level="changes",
            area="evictions",
            code="upgrade-evicts",
            subject=pod,
            message="is no longer evicted",
            before="evicted",
            after="runs on",
        )
