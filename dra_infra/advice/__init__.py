"""Advice that the API server does not give: what it accepts, and what goes wrong later.

Every piece is a warning with a code and a hint that shows the corrected line. What is said of a driver comes from the
catalogue, for the releases that are pinned; of drivers that are not in it nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dra_infra.advice.claims import Context, advise_claim
from dra_infra.advice.references import (
    REFERENCES,
    Checked,
    KnownObjects,
    advise_pods,
    check_extended_resource,
    check_namespace,
)
from dra_infra.advice.selectors import check_selectors
from dra_infra.catalog.drivers import Pins, newest, read_pins
from dra_infra.errors import Problem
from dra_infra.kubernetes.api.device_class import DeviceClass, DeviceClassSpec
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.resource_claim import ResourceClaim, ResourceClaimTemplate
from dra_infra.kubernetes.apiserver.configurations import environment_of

__all__ = [
    "REFERENCES",
    "KnownObjects",
    "Pins",
    "advise",
    "advise_pods",
    "newest",
    "read_pins",
]


def advise(
    record: Checked,
    release: Release,
    known_objects: KnownObjects,
    *,
    pins: Pins | None = None,
    flat: bool = False,
) -> Iterator[Problem]:
    """Advice on one object that the server accepts; paths are those of the object.

    Args:
        record: A DeviceClass, ResourceClaim or ResourceClaimTemplate.
        release: The API server, which decides what expressions mean.
        known_objects: What else there is.
        pins: The driver releases that are meant, the newest unless given.
        flat: Whether requests are written without `exactly`, as in v1beta1.
    """
    for problem in _advise(record, release, known_objects, pins):
        yield replace(problem, path=problem.path.replace("].exactly.", "].", 1)) if flat else problem


def _advise(
    record: Checked, release: Release, known_objects: KnownObjects, pins: Pins | None
) -> Iterator[Problem]:
    context = Context(environment_of(release), known_objects, pins or newest())
    if isinstance(record, DeviceClass):
        yield from _advise_class(record, context)
        return
    finding = check_namespace(record.metadata.namespace or "", known_objects)
    if finding is not None:
        yield finding.at("metadata.namespace")
    if isinstance(record, ResourceClaim):
        claim, path = record.spec.devices, "spec.devices"
    else:
        claim, path = record.spec.spec.devices, "spec.spec.devices"
    yield from advise_claim(claim, path, context)
    yield from _advise_configs(record, context)


def _advise_class(record: DeviceClass, context: Context) -> Iterator[Problem]:
    selectors = record.spec.selectors or ()
    places = [index for index, each in enumerate(selectors) if each.cel is not None]
    texts = tuple(each.cel.expression for each in selectors if each.cel is not None)
    found, _ = check_selectors(texts, (), context.pins, context.environment)
    for index, finding in found:
        yield finding.at(f"spec.selectors[{places[index]}].cel.expression")
    yield from _advise_configs(record, context)
    twice = check_extended_resource(record, context.known_objects, context.pins)
    if twice is not None:
        yield twice.at("spec.extendedResourceName")


def _advise_configs(record: Checked, context: Context) -> Iterator[Problem]:
    spec = record.spec.spec if isinstance(record, ResourceClaimTemplate) else record.spec
    if not (spec.config if isinstance(spec, DeviceClassSpec) else spec.devices.config):
        return
    # Few objects have one, and what knows the drivers' parameters takes 0.1 s to load.
    from dra_infra.advice.drivers import advise_configs

    yield from advise_configs(record, context)
