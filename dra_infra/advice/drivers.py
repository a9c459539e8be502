"""Advice on what only the driver checks: opaque device configs, and hand-written ComputeDomains.

For the opaque parameters of claims and classes it tells what the pinned driver would say when a pod starts. For
ComputeDomains that are written by hand it tells what the API server accepts but the driver does not do.

Source for ComputeDomains: `api/nvidia.com/resource/v1beta1/computedomain.go` and `cmd/compute-domain-controller` of
the NVIDIA DRA driver, 25.3 to 0.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.advice.claims import Context, Leaf, class_selectors, leaves_of
from dra_infra.advice.findings import Finding
from dra_infra.advice.reach import reach_of_class
from dra_infra.advice.references import Checked
from dra_infra.catalog.drivers import DeviceType, Pins
from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceClass,
    DeviceClassConfiguration,
    ResourceClaim,
    expressions_of,
    mapping,
)
from dra_infra.specs.compute_domains import (
    DRIVER,
    check_allocation_mode,
    check_template_names,
    is_compute_domain,
    requires_nodes,
)
from dra_infra.specs.config_checks import check_claim_configs, check_class_configs
from dra_infra.specs.config_matching import ConfiguredRequest
from dra_infra.specs.device_configs import OpaqueConfig

_DRIVERS_OWN: Final = frozenset(
    {
        "config-kind-not-known",
        "config-field-not-known",
        "config-value",
        "config-conflict",
        "config-device-type",
        "config-overridden",
        "config-not-applied",
    }
)
"""Codes that no server gives; the others are the server's, or need the driver's gates, which an input does not tell."""


def advise_configs(record: Checked, context: Context) -> Iterator[Problem]:
    """Advice on the configs of a class, a claim or a claim template."""
    if isinstance(record, DeviceClass):
        yield from _advise_class_configs(record, context)
    elif isinstance(record, ResourceClaim):
        yield from _advise_claim_configs(record.spec.devices, "spec.devices", context)
    else:
        yield from _advise_claim_configs(record.spec.spec.devices, "spec.spec.devices", context)


def _advise_claim_configs(claim: DeviceClaim, path: str, context: Context) -> Iterator[Problem]:
    requests = [
        _configured(leaf, context)
        for request in claim.requests or ()
        for leaf in leaves_of(request, f"{path}.requests")
    ]
    configs = _opaque(claim.config or ())
    yield from _placed(check_claim_configs(configs, requests, pins=context.pins), path)


def _advise_class_configs(record: DeviceClass, context: Context) -> Iterator[Problem]:
    known = _device_types(expressions_of(record.spec.selectors), context)
    configs = _opaque(record.spec.config or ())
    yield from _placed(check_class_configs(configs, known, pins=context.pins), "spec")


def _device_types(selectors: tuple[str, ...], context: Context) -> tuple[DeviceType, ...] | None:
    """The types of devices that may pass all of these expressions, a class's before a request's.

    None where devices of drivers that are not known may be among them, or where no device passes.
    """
    return reach_of_class(selectors, context.pins, context.environment).known or None


def _configured(leaf: Leaf, context: Context) -> ConfiguredRequest:
    name = leaf.request.device_class_name
    before = class_selectors(name, context.known_objects, context.pins)
    known = None if before is None else _device_types((*before, *leaf.selectors), context)
    own = context.known_objects.classes.get(name)
    return ConfiguredRequest(
        name=leaf.name,
        devices=known,
        count=None if leaf.is_all else leaf.count,
        class_configs=_opaque(own.spec.config or ()) if own is not None else (),
    )


def _opaque(
    configs: Sequence[DeviceClaimConfiguration] | Sequence[DeviceClassConfiguration],
) -> list[OpaqueConfig]:
    return [
        OpaqueConfig(
            driver=config.opaque.driver if config.opaque is not None else "",
            parameters=config.opaque.parameters if config.opaque is not None else {},
            requests=getattr(config, "requests", None) or (),
        )
        for config in configs
    ]


def _placed(problems: Sequence[Problem], path: str) -> Iterator[Problem]:
    """Problems of configs that only the driver finds, at the fields of the object."""
    for problem in problems:
        place, dot, field = problem.path.partition(".")
        # That a prioritized request is named by its parent is said with the rest of the claim.
        if problem.code not in _DRIVERS_OWN or (
            problem.code == "config-not-applied" and field.startswith("requests")
        ):
            continue
        inside = f"opaque.{field}" if field.startswith("parameters") else field
        at = f"{path}.{place.replace('configs', 'config', 1)}{dot}{inside}"
        yield replace(problem, path=at, severity="warning")


MOST_NODES: Final = 18
"""Nodes of one IMEX domain unless the controller is told otherwise (MAX_NODES_PER_IMEX_DOMAIN), which is one rack."""


def advise_compute_domains(objects: Sequence[Mapping[str, Any]], pins: Pins) -> Iterator[tuple[int, Problem]]:
    """Advice on the ComputeDomains of an input, and on pods that use several.

    Returns:
        Pairs of an object's position and a problem whose path begins inside the object; codes `missing-field`,
        `compute-domain-nodes`, `compute-domain-option`, `compute-domain-twice`, and those of `check_template_names`.
    """
    yield from check_template_names(objects)
    line = pins.releases[DRIVER].line
    domains: dict[tuple[str, str], str] = {}
    for index, each in enumerate(objects):
        if is_compute_domain(each):
            spec, metadata = mapping(each.get("spec")), mapping(each.get("metadata"))
            template = mapping(mapping(spec.get("channel")).get("resourceClaimTemplate")).get("name")
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
                    ).at(template.at(f"resourceClaims[{place}].resourceClaimTemplateName")),
                )


def _check(spec: Mapping[str, Any], line: str) -> Iterator[Problem]:
    nodes = spec.get("numNodes")
    if nodes is None and requires_nodes(line):
        message = f"the CRD of driver {line} requires it"
        hint = "write numNodes: 18, the number of nodes that join"
        yield Problem(path="spec.numNodes", code="missing-field", message=message, hint=hint)
    if isinstance(nodes, int) and nodes > MOST_NODES:
        yield Finding(
            "compute-domain-nodes",
            f"{nodes} nodes are more than the {MOST_NODES} of an IMEX domain, which is one rack",
            "use a ComputeDomain for each rack",
        ).at("spec.numNodes")
    elif isinstance(nodes, int) and nodes > 0 and not requires_nodes(line):
        yield Finding(
            "compute-domain-nodes",
            f"driver {line} does not wait for {nodes} nodes: from 0.4 on the number only feeds the status, unless the "
            "gate IMEXDaemonsWithDNSNames is off",
            "write numNodes: 0, or leave it out",
        ).at("spec.numNodes")
    if mapping(spec.get("channel")).get("allocationMode") is not None:
        for problem in check_allocation_mode("spec.channel.allocationMode", line):
            yield replace(problem, severity="warning")
