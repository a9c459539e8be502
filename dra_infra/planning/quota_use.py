"""What the claims and pods of a program count for in quotas, by the keys of `spec.hard`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.model.metadata import ObjectRef
from dra_infra.model.pods import PodTemplate
from dra_infra.planning.claim_use import ClaimUse
from dra_infra.planning.replacement import get_field
from dra_infra.simulation.pod_resources import pod_requests
from dra_infra.simulation.quotas import CLAIMS_KEY, Use, count_claim, is_extended_key, read_hard

__all__ = ["CLAIMS_KEY", "QuotaUse", "Use", "read_hard"]


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaUse:
    """Counts claims and pods.

    Args:
        extended: The extended resource name of each class that has one.
        bridged: Whether devices of claims count for extended resources too (gate DRAExtendedResource).
    """

    extended: Mapping[str, str] = field(default_factory=dict)
    bridged: bool = True

    def of_claim(self, spec: Any) -> Use:
        """What one claim counts for."""
        return count_claim(spec, self.extended, bridged=self.bridged)

    def of_pod(self, pods: PodTemplate, templates: ClaimUse) -> Use:
        """What one pod counts for: claims that are made for it, and extended resources that it asks for."""
        use: Use = Counter()
        for entry in pods.claims:
            ref = ObjectRef(
                kind="ResourceClaimTemplate", name=str(entry.template_name), namespace=pods.owner.namespace
            )
            template = templates.objects.get(ref) if entry.template_name else None
            if entry.template_name:
                use += (
                    self.of_claim(get_field(template.manifest, "spec.spec"))
                    if template
                    else Counter({CLAIMS_KEY: 1})
                )
        try:
            requests = pod_requests(pods.spec)
        except ValueError:
            requests = {}
        for name, amount in requests.items():
            if is_extended_key(name):
                use[f"requests.{name}"] += amount
        return use

    def of_program(self, program: ClaimUse, daemons: Mapping[ObjectRef, int]) -> dict[str, Use]:
        """What all claims and pods count for, by namespace.

        Args:
            program: The objects.
            daemons: Pods of DaemonSets, as far as their number is known; others count for none.
        """
        total: defaultdict[str, Use] = defaultdict(Counter)
        for ref, item in program.objects.items():
            if ref.kind == "ResourceClaim":
                total[ref.namespace or "default"] += self.of_claim(item.manifest.get("spec"))
        for owner, pods in program.pods.items():
            # A PodTemplate makes no pods by itself.
            if owner.kind != "PodTemplate":
                number = (
                    daemons.get(owner, 0)
                    if pods.replicas is None
                    else _at_once(program, owner, pods.replicas)
                )
                one = self.of_pod(pods, program) if number > 0 else Counter()
                total[owner.namespace or "default"] += Counter(
                    {key: each * number for key, each in one.items()}
                )
        return dict(total)


def _at_once(program: ClaimUse, owner: ObjectRef, replicas: int) -> int:
    """Pods of a workload at one time: a Job runs no more than it has left to complete."""
    completions = (
        get_field(program.objects[owner].manifest, "spec.completions") if owner.kind == "Job" else None
    )
    return (
        min(replicas, completions) if isinstance(completions, int) and completions > 0 else max(replicas, 0)
    )
