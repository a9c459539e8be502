"""Advice on the opaque parameters of claims and classes: what the pinned driver would say when a pod starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from dra_infra.catalog.drivers import DeviceType
from dra_infra.catalog.pins import Pins
from dra_infra.cel.release import Environment
from dra_infra.errors import Problem
from dra_infra.model.device_class import DeviceClass, DeviceClassConfiguration
from dra_infra.model.resource_claim import DeviceClaim, DeviceClaimConfiguration
from dra_infra.specs.config_checks import check_claim_configs, check_class_configs
from dra_infra.specs.config_matching import ConfiguredRequest
from dra_infra.specs.device_configs import OpaqueConfig
from dra_infra.validation.advice.claims import Context, class_selectors
from dra_infra.validation.advice.reach import reach_of_class
from dra_infra.validation.advice.requests import Leaf, leaves_of

_DRIVERS_OWN: Final = frozenset(
    {
        *("config-kind-not-known", "config-field-not-known", "config-value", "config-conflict"),
        *("config-device-type", "config-overridden", "config-not-applied"),
    }
)
"""What no server says; the rest is the server's, or needs the gates of the driver, which an input does not tell."""


def advise_claim_configs(claim: DeviceClaim, path: str, context: Context) -> Iterator[Problem]:
    """Advice on the configs of a claim whose devices part is at *path*."""
    requests = [
        _configured(leaf, context)
        for request in claim.requests or ()
        for leaf in leaves_of(request, f"{path}.requests")
    ]
    configs = _opaque(claim.config or ())
    yield from _placed(check_claim_configs(configs, requests, pins=context.pins), path)


def advise_class_configs(record: DeviceClass, context: Context) -> Iterator[Problem]:
    """Advice on the configs of a class."""
    selectors = [each.cel.expression for each in record.spec.selectors or () if each.cel is not None]
    known = device_types(tuple(selectors), context.pins, context.environment)
    configs = _opaque(record.spec.config or ())
    yield from _placed(check_class_configs(configs, known, pins=context.pins), "spec")


def device_types(
    selectors: tuple[str, ...], pins: Pins, environment: Environment
) -> tuple[DeviceType, ...] | None:
    """The types of devices that may pass all of these expressions, a class's before a request's.

    None where devices of drivers that are not known may be among them, or where no device passes.
    """
    return reach_of_class(selectors, pins, environment).known or None


def _configured(leaf: Leaf, context: Context) -> ConfiguredRequest:
    name = leaf.request.device_class_name
    before = class_selectors(name, context.surroundings, context.pins)
    known = None
    if before is not None:
        known = device_types((*before, *leaf.selectors), context.pins, context.environment)
    own = context.surroundings.classes.get(name)
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
    """Those that only the driver finds, at the fields of the object."""
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
