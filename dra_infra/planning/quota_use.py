"""What claims and pods count for in quotas, by the keys of `spec.hard`.

Source: pkg/quota/v1/evaluator/core/resource_claims.go. Claims count when they are made, by their spec, allocated or not;
`All` counts as 32 devices, a prioritized list as its largest alternative of each class, and admin access like any other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.model.metadata import ObjectRef
from dra_infra.model.pods import PodTemplate
from dra_infra.model.quantity import Quantity
from dra_infra.planning.claim_use import ClaimUse
from dra_infra.planning.replacement import get_field
from dra_infra.simulation.pod_resources import pod_requests

CLAIMS_KEY: Final = "count/resourceclaims.resource.k8s.io"
_ALL: Final = 32
"""AllocationResultsMaxSize."""

Use = Counter[str]
"""Amounts by key."""


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
        use: Use = Counter({CLAIMS_KEY: 1})
        for class_name, devices in self._devices(spec):
            use[f"{class_name}.deviceclass.resource.k8s.io/devices"] += devices
            if self.bridged:
                use[f"requests.deviceclass.resource.kubernetes.io/{class_name}"] += devices
                if class_name in self.extended:
                    use[f"requests.{self.extended[class_name]}"] += devices
        return use

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
            if "/" in name and "kubernetes.io/" not in name.replace(
                "deviceclass.resource.kubernetes.io/", ""
            ):
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

    def _devices(self, spec: Any) -> Iterator[tuple[str, int]]:
        requests = get_field(spec, "devices.requests") if isinstance(spec, Mapping) else None
        for request in requests if isinstance(requests, list) else ():
            if not isinstance(request, Mapping):
                continue
            largest: dict[str, int] = {}
            alternatives = request.get("firstAvailable")
            parts = [request.get("exactly"), *(alternatives if isinstance(alternatives, list) else ())]
            for part in parts:
                if isinstance(part, Mapping) and isinstance(part.get("deviceClassName"), str):
                    name = part["deviceClassName"]
                    largest[name] = max(largest.get(name, 0), _count(part))
            yield from largest.items()


def read_hard(quota: Mapping[str, Any]) -> dict[str, int]:
    """The limits of a quota that claims can pass; none for one with scopes, which match no claim (MatchesNoScopeFunc)."""
    spec = quota.get("spec")
    if not isinstance(spec, Mapping) or spec.get("scopes") or spec.get("scopeSelector"):
        return {}
    hard = spec.get("hard")
    limits: dict[str, int] = {}
    for key, value in hard.items() if isinstance(hard, Mapping) else ():
        try:
            limits[str(key)] = int(Quantity.parse(str(value)).value)
        except ValueError:
            continue
    return limits


def _at_once(program: ClaimUse, owner: ObjectRef, replicas: int) -> int:
    """Pods of a workload at one time: a Job runs no more than it has left to complete."""
    completions = (
        get_field(program.objects[owner].manifest, "spec.completions") if owner.kind == "Job" else None
    )
    return (
        min(replicas, completions) if isinstance(completions, int) and completions > 0 else max(replicas, 0)
    )


def _count(part: Mapping[str, Any]) -> int:
    if part.get("allocationMode") == "All":
        return _ALL
    count = part.get("count", 1)
    return int(count) if isinstance(count, (int, float)) else 1
