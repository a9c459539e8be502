"""DeviceTaintRules put their taints on devices, and the scheduler sees the slices with them.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/resourceslice/tracker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from dra_infra.kubernetes.api.device_taints import DeviceTaintRule, DeviceTaintSelector
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.resource_slice import Device, ResourceSlice
from dra_infra.kubernetes.problems import Problem

TAINT_RULES_GATE: Final = "DRADeviceTaintRules"
"""Without it, the scheduler ignores the rules."""


def with_taint_rules(
    slices: Sequence[ResourceSlice], manifests: Iterable[Mapping[str, Any]], release: Release
) -> tuple[list[ResourceSlice], list[Problem]]:
    """The slices with the taints of rules, and `not-modelled` for rules whose devices are not found here."""
    rules = []
    problems = []
    for manifest in manifests:
        if manifest.get("kind") != "DeviceTaintRule" or not release.enabled(TAINT_RULES_GATE):
            continue
        try:
            rule = DeviceTaintRule.from_manifest({**manifest, "apiVersion": "resource.k8s.io/v1"})
        except ValidationError:
            rule = None
        selector = rule.spec.device_selector if rule is not None else None
        if rule is None or (selector and (selector.device_class_name or selector.selectors)):
            metadata = manifest.get("metadata")
            name = metadata.get("name") if isinstance(metadata, Mapping) else None
            problems.append(
                Problem(
                    path=f"DeviceTaintRule {name}",
                    code="not-modelled",
                    message="its selector is not understood, so its taint is on no device here",
                    hint="driver, pool and device are",
                    severity="warning",
                )
            )
        elif selector is not None:
            rules.append((selector, rule))
    return [_tainted(each, rules) for each in slices] if rules else list(slices), problems


def _tainted(
    slice_: ResourceSlice, rules: Sequence[tuple[DeviceTaintSelector, DeviceTaintRule]]
) -> ResourceSlice:
    spec = slice_.spec
    here = [
        (selector, rule)
        for selector, rule in rules
        if selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)
    ]
    if not here or not spec.devices:
        return slice_
    devices = [_device(each, here) for each in spec.devices]
    return slice_.changed({"spec": spec.changed({"devices": devices})})


def _device(device: Device, rules: Sequence[tuple[DeviceTaintSelector, DeviceTaintRule]]) -> Device:
    added = [rule.spec.taint for selector, rule in rules if selector.device in (None, device.name)]
    return device.changed({"taints": [*(device.taints or ()), *added]}) if added else device
