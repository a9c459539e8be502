"""How many pods of a workload come to be, with their claims, below the quotas of their namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dra_infra.model.metadata import ObjectRef
from dra_infra.simulation.extended_resources import GATE
from dra_infra.simulation.pod_plans import PodPlan, Workload
from dra_infra.simulation.quotas import Quotas, Use, count_claim
from dra_infra.simulation.workloads import ProgramObjects

_MOST: Final = 10_000
"""Pods of one workload that are counted."""


class ObjectMakers:
    """Makes the pods and claims of a program, one after the other, as far as quotas let it.

    Args:
        objects: The program.
        made: What others have made, by namespace.
    """

    def __init__(self, objects: ProgramObjects, made: Mapping[str, Use]) -> None:
        self._quotas = Quotas(objects.policies, made)
        if self._quotas:
            names, bridged = objects.extended_names, objects.release.enabled(GATE)
            for manifest in objects.manifests:
                if manifest.get("kind") == "ResourceClaim":
                    metadata = manifest.get("metadata")
                    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else ""
                    use = count_claim(manifest.get("spec"), names, bridged=bridged)
                    if not self._quotas.refusal(str(namespace or ""), use):
                        self._quotas.charge(str(namespace or ""), use)

    def count_alone(self, owner: ObjectRef, plan: PodPlan, wanted: int) -> tuple[int, str]:
        """How many of the wanted pods are made while the program makes no others, and what refuses the next one."""
        if not self._quotas:
            return wanted, ""
        return _make(self._quotas.copy(), owner, plan, wanted)

    def make_together(self, workloads: Sequence[Workload]) -> tuple[list[Workload], list[str]]:
        """The workloads with the pods that are made, one workload after the other; and what refuses the others."""
        made: list[Workload] = []
        notes: list[str] = []
        quotas = self._quotas.copy()
        for each in workloads:
            if not self._quotas or each.replicas is None or not isinstance(each.plan, PodPlan):
                made.append(each)
                continue
            number, refusal = _make(quotas, each.owner, each.plan, each.replicas)
            made.append(replace(each, replicas=number))
            if number < self.count_alone(each.owner, each.plan, each.replicas)[0]:
                notes.append(
                    f"{each.owner} gets {number} of {each.replicas} pods beside the others: {refusal}"
                )
        return made, notes


def _make(quotas: Quotas, owner: ObjectRef, plan: PodPlan, wanted: int) -> tuple[int, str]:
    for number in range(min(wanted, _MOST)):
        for what, use in plan.made:
            refusal = quotas.refusal(owner.namespace, use)
            if refusal:
                return number, f"{what} is refused, for {refusal}"
            quotas.charge(owner.namespace, use)
    return wanted, ""
