"""Every check of a cluster. A finding is a Problem whose path names the object, `Node gpu-1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dra_infra.cluster.check_claims import check_claims
from dra_infra.cluster.check_drivers import check_drivers
from dra_infra.cluster.check_nodes import check_nodes
from dra_infra.cluster.check_pools import check_pools
from dra_infra.cluster.check_server import check_server
from dra_infra.cluster.evidence import Evidence, drivers_of_class
from dra_infra.cluster.kinds import CLASSES, NODES, SLICES
from dra_infra.cluster.nvidia import GPU_DRIVER, has_gpus
from dra_infra.cluster.objects import mapping, mappings, text
from dra_infra.errors import Problem
from dra_infra.planning.wording import count_of, join_words


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """What is wrong with a cluster.

    Args:
        facts: What was looked at, in sentences.
        findings: Errors first, then by object.
        not_seen: What could not be looked at.
    """

    facts: tuple[str, ...]
    findings: tuple[Problem, ...]
    not_seen: tuple[Problem, ...]

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is broken; warnings are no breakage."""
        return all(each.severity != "error" for each in self.findings)


def diagnose(evidence: Evidence, *, driver: str = "") -> Diagnosis:
    """Run every check.

    Args:
        evidence: The cluster.
        driver: The only driver that is asked for; else all that the cluster knows of.
    """
    drivers = {driver} if driver else _drivers(evidence)
    found = [
        *check_server(evidence),
        *check_drivers(evidence, drivers, asked=driver),
        *check_pools(evidence, drivers),
        *check_nodes(evidence, drivers),
        *check_claims(evidence, drivers),
    ]
    return Diagnosis(
        facts=tuple(_facts(evidence)),
        findings=tuple(sorted(dict.fromkeys(found), key=lambda each: (each.severity, each.path, each))),
        not_seen=evidence.problems,
    )


def _drivers(evidence: Evidence) -> set[str]:
    found = {text(mapping(each.get("spec")).get("driver")) for each in evidence.of(SLICES)}
    for each in evidence.of(CLASSES):
        found |= drivers_of_class(each)
    if any(has_gpus(each) for each in evidence.of(NODES)):
        found.add(GPU_DRIVER)
    return found - {""}


def _facts(evidence: Evidence) -> Iterator[str]:
    yield f"Kubernetes {evidence.kubernetes or '(version not told)'}"
    if evidence.served:
        yield f"resource.k8s.io {join_words(evidence.served)}"
    if evidence.gates:
        off = sorted(name for name, is_on in evidence.gates.items() if name.startswith("DRA") and not is_on)
        yield f"gates of the API server that are off: {join_words(off, most=12) or 'none of DRA'}"
    else:
        yield "gates are not visible (that needs the right to get /metrics); defaults of the version are taken"
    if NODES in evidence.objects:
        gpus = sum(has_gpus(each) for each in evidence.of(NODES))
        yield f"{count_of(len(evidence.of(NODES)), 'node')}, {gpus} of them with labels of NVIDIA GPUs"
    devices: Counter[str] = Counter()
    for each in evidence.of(SLICES):
        spec = mapping(each.get("spec"))
        devices[text(spec.get("driver"))] += len(mappings(spec.get("devices")))
    for name, number in sorted(devices.items()):
        yield f"{name} publishes {count_of(number, 'device')}"
