"""Advice on ComputeDomains that are written by hand: what the API server takes, and the driver does not do.

Source: `api/nvidia.com/resource/v1beta1/computedomain.go` and `cmd/compute-domain-controller` of the NVIDIA DRA driver,
25.3 to 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.device_configs import lines_with
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.pins import Pins
from dra_infra.errors import Problem
from dra_infra.model.pods import find_pod_templates
from dra_infra.specs.compute_domains import API_VERSION, KIND
from dra_infra.validation.advice.findings import Finding

MOST_NODES: Final = 18
"""Nodes of one IMEX domain unless the controller is told otherwise (MAX_NODES_PER_IMEX_DOMAIN), which is one rack."""

_DRIVER: Final = "compute-domain.nvidia.com"
_LAST_WITH_NUM_NODES: Final = "25.12"
"""The CRD of that line and of older ones requires `numNodes`; from 0.4 on it only feeds the status."""


def advise_compute_domains(objects: Sequence[Mapping[str, Any]], pins: Pins) -> Iterator[tuple[int, Problem]]:
    """Advice on the ComputeDomains of an input, and on pods that use several.

    Returns:
        Pairs of an object's position and a problem whose path begins inside the object; codes `missing-field`,
        `compute-domain-nodes`, `compute-domain-option`, `compute-domain-twice`.
    """
    line = pins.releases[_DRIVER].line
    domains: dict[tuple[str, str], str] = {}
    for index, each in enumerate(objects):
        if is_compute_domain(each):
            spec, metadata = _mapping(each.get("spec")), _mapping(each.get("metadata"))
            template = _mapping(_mapping(spec.get("channel")).get("resourceClaimTemplate")).get("name")
            domains[str(metadata.get("namespace") or "default"), str(template)] = str(metadata.get("name"))
            yield from ((index, problem) for problem in _check(spec, line))
    for index, each in enumerate(objects):
        for template in find_pod_templates(each):
            named = [
                (place, domains[key])
                for place, entry in enumerate(template.claims)
                if (key := (template.owner.namespace or "default", str(entry.template_name))) in domains
            ]
            for place, domain in named[1:]:
                if domain == named[0][1]:
                    continue
                yield (
                    index,
                    Finding(
                        "compute-domain-twice",
                        f"the pod is to join ComputeDomain {domain!r} beside {named[0][1]!r}, and a node is in one at a time: "
                        "the pod never starts",
                        "leave one of the claims out, or use one ComputeDomain for both",
                    ).at(f"{template.path}.resourceClaims[{place}].resourceClaimTemplateName"),
                )


def is_compute_domain(manifest: Mapping[str, Any]) -> bool:
    """Whether an object is a ComputeDomain."""
    return manifest.get("kind") == KIND and manifest.get("apiVersion") == API_VERSION


def _check(spec: Mapping[str, Any], line: str) -> Iterator[Problem]:
    order = list(drivers()[_DRIVER].by_line)
    is_required = order.index(line) <= order.index(_LAST_WITH_NUM_NODES)
    nodes = spec.get("numNodes")
    if nodes is None and is_required:
        yield Problem(
            path="spec.numNodes",
            code="missing-field",
            message=f"the CRD of driver {line} requires it",
            hint="write numNodes: 18, the number of nodes that join",
        )
    if isinstance(nodes, int) and nodes > MOST_NODES:
        yield Finding(
            "compute-domain-nodes",
            f"{nodes} nodes are more than the {MOST_NODES} of an IMEX domain, which is one rack",
            "use a ComputeDomain for each rack",
        ).at("spec.numNodes")
    elif isinstance(nodes, int) and nodes > 0 and not is_required:
        yield Finding(
            "compute-domain-nodes",
            f"driver {line} does not wait for {nodes} nodes: from 0.4 on the number only feeds the status, unless the "
            "gate IMEXDaemonsWithDNSNames is off",
            "write numNodes: 0, or leave it out",
        ).at("spec.numNodes")
    since = lines_with(_DRIVER, "ComputeDomainChannelConfig", "allocationMode")
    if _mapping(spec.get("channel")).get("allocationMode") is not None and line not in since:
        yield Finding(
            "compute-domain-option",
            f"a ComputeDomain of driver {line} has no allocationMode, and always a single channel",
            f"leave it out, or use driver {since[0]} or newer",
        ).at("spec.channel.allocationMode")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
