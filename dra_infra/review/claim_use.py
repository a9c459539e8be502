"""Claims, templates and classes that the pods of a program use, how many devices that takes, and quota use.

Quota use is what the claims and pods of a program count for in quotas, by the keys of `spec.hard`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.kubernetes.api.manifests import mappings
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.pods import PodTemplate, find_pod_templates
from dra_infra.kubernetes.apiserver.admission import CLAIMS_KEY, Use, count_claim, is_extended_key, read_hard
from dra_infra.kubernetes.scheduler.pod_resources import pod_requests
from dra_infra.program_objects import Program, ProgramObject, get_field, group_of

__all__ = [
    "CLAIMS_KEY",
    "ClaimUse",
    "QuotaUse",
    "Use",
    "count_claim_devices",
    "find_class_names",
    "find_named_objects",
    "read_hard",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimUse:
    """The objects of one program by what they are called, and who names them.

    Args:
        objects: Every object.
        pods: The pods that each object makes, for the kinds that make pods.
        users: Whose pods, or whose requests for a class, name an object. The object need not be in the program.
    """

    objects: Mapping[ObjectRef, ProgramObject] = field(repr=False)
    pods: Mapping[ObjectRef, PodTemplate] = field(repr=False)
    users: Mapping[ObjectRef, tuple[ObjectRef, ...]] = field(repr=False)

    @classmethod
    def of(cls, program: Program) -> ClaimUse:
        """Index *program*."""
        pods: dict[ObjectRef, PodTemplate] = {}
        users: defaultdict[ObjectRef, set[ObjectRef]] = defaultdict(set)
        for item in program.objects:
            for template in find_pod_templates(item.manifest):
                pods[item.ref] = template
                for ref in find_named_objects(template):
                    users[ref].add(item.ref)
            for name in find_class_names(item.manifest):
                users[ObjectRef(kind="DeviceClass", name=name)].add(item.ref)
        return cls(
            objects={item.ref: item for item in program.objects},
            pods=pods,
            users={ref: tuple(sorted(owners)) for ref, owners in users.items()},
        )

    def count_devices(self, pods: PodTemplate) -> int | None:
        """How many devices of its own each pod gets; None when that is not a plain number.

        Claims that pods share by name are not counted: one more pod takes no more of their devices.
        """
        total = 0
        for entry in pods.claims:
            if entry.template_name is None:
                continue
            template = self.objects.get(_ref(pods, "ResourceClaimTemplate", str(entry.template_name)))
            count = None if template is None else count_claim_devices(template.manifest)
            if count is None:
                return None
            total += count
        return total


def count_claim_devices(manifest: Mapping[str, Any]) -> int | None:
    """Devices that one claim takes; None for alternatives and for `All`, which depend on the node."""
    path = "spec.spec.devices" if manifest.get("kind") == "ResourceClaimTemplate" else "spec.devices"
    total = 0
    for request in _requests(get_field(manifest, path)):
        exactly = request.get("exactly")
        if not isinstance(exactly, Mapping) or exactly.get("allocationMode") == "All":
            return None
        count = exactly.get("count", 1)
        if not isinstance(count, (int, float)):
            return None
        # Admin access looks at devices without taking them away from others.
        total += 0 if exactly.get("adminAccess") else int(count)
    return total


def find_named_objects(pods: PodTemplate) -> Iterator[ObjectRef]:
    """The claims, claim templates, volumes' sources and accounts that pods cannot start without."""
    for entry in pods.claims:
        yield from _maybe(pods, "ResourceClaimTemplate", entry.template_name)
        yield from _maybe(pods, "ResourceClaim", entry.claim_name)
    for volume in mappings(pods.spec.get("volumes")):
        for field_name, key, kind in (
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
        ):
            yield from _maybe(pods, kind, get_field(volume, f"{field_name}.{key}"))
    for container in (*mappings(pods.spec.get("containers")), *mappings(pods.spec.get("initContainers"))):
        for source in mappings(container.get("envFrom")):
            yield from _maybe(pods, "ConfigMap", get_field(source, "configMapRef.name"))
            yield from _maybe(pods, "Secret", get_field(source, "secretRef.name"))
    yield from _maybe(pods, "ServiceAccount", pods.spec.get("serviceAccountName"))


def _maybe(pods: PodTemplate, kind: str, name: Any) -> Iterator[ObjectRef]:
    if isinstance(name, str):
        yield _ref(pods, kind, name)


def _ref(pods: PodTemplate, kind: str, name: str) -> ObjectRef:
    return ObjectRef(kind=kind, name=name, namespace=pods.owner.namespace)


def find_class_names(manifest: Mapping[str, Any]) -> set[str]:
    """The device classes that a claim or template asks for."""
    if group_of(manifest) != "resource.k8s.io":
        return set()
    names: set[str] = set()
    for path in ("spec.devices", "spec.spec.devices"):
        for request in _requests(get_field(manifest, path)):
            for part in (request.get("exactly"), *mappings(request.get("firstAvailable"))):
                if isinstance(part, Mapping) and isinstance(part.get("deviceClassName"), str):
                    names.add(part["deviceClassName"])
    return names


def _requests(devices: Any) -> list[Mapping[str, Any]]:
    return mappings(devices.get("requests")) if isinstance(devices, Mapping) else []


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
        """The use of quota by one claim."""
        return count_claim(spec, self.extended, bridged=self.bridged)

    def of_pod(self, pods: PodTemplate, templates: ClaimUse) -> Use:
        """The use of quota by one pod: claims that are made for it, and extended resources that it asks for."""
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
        """The use of quota by all claims and pods, by namespace.

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
