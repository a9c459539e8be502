"""Validation of what was allocated for a claim (validateAllocationResult and below, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.kubernetes.api import names as formats
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.resource_claim import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceClaim,
    DeviceRequestAllocationResult,
)
from dra_infra.kubernetes.apiserver.claims import (
    RequestNames,
    check_reference,
    check_toleration,
    request_names,
)
from dra_infra.kubernetes.apiserver.configurations import check_configuration, check_driver_name
from dra_infra.kubernetes.apiserver.devices import MAX_CONDITIONS, check_bindings
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    check_items,
    check_unique,
    invalid,
    not_supported,
    required,
    too_long,
)
from dra_infra.kubernetes.apiserver.generated import check_generated_driver, check_generated_toleration
from dra_infra.kubernetes.apiserver.generated_slices import check_generated_skipped
from dra_infra.kubernetes.apiserver.metadata import check_node_selector
from dra_infra.kubernetes.apiserver.slices import MAX_POOL_NAME, check_pool_name, check_skipped
from dra_infra.kubernetes.apiserver.status_values import check_generated_share_id, check_share_id

MAX_CONFIGS = 64
_SOURCES = ("FromClaim", "FromClass")
_POOL_FORMAT = "format=k8s-resource-pool-name"


def check_allocation(
    allocation: AllocationResult, claim: DeviceClaim, path: str, release: Release
) -> Iterator[FieldError]:
    """The hand-written rules for a new allocation of *claim*."""
    names = request_names(claim)
    goes_on = release.number < 35
    yield from check_items(
        allocation.devices.results,
        f"{path}.devices.results",
        lambda result, at: _check_result(result, at, names, release),
        size_rule="allocation.results-size",
        goes_on=goes_on,
    )
    yield from check_items(
        allocation.devices.config,
        f"{path}.devices.config",
        lambda config, at: _check_config(config, at, names, release),
        size_rule="allocation.config-size",
        limit=MAX_CONFIGS,
        goes_on=goes_on,
    )
    if allocation.node_selector is not None:
        yield from check_node_selector(allocation.node_selector, f"{path}.nodeSelector", release)


def _check_result(
    result: DeviceRequestAllocationResult, path: str, names: RequestNames, release: Release
) -> Iterator[FieldError]:
    yield from check_reference(result.request, f"{path}.request", names)
    yield from check_driver_name(
        result.driver,
        f"{path}.driver",
        covered=True,
        length_covered=release.number >= 36,
        goes_on=release.number < 35,
        rule="allocation.driver",
    )
    yield from check_pool_name(result.pool, f"{path}.pool", rule="allocation.pool", covered=True)
    for told in formats.dns_label(result.device):
        yield invalid("allocation.device", f"{path}.device", result.device, told)
    yield from check_bindings(result.binding_conditions, result.binding_failure_conditions, path, release)
    if release.number >= 37:
        for index, toleration in enumerate(result.tolerations or ()):
            yield from check_toleration(toleration, f"{path}.tolerations[{index}]", release)
        yield from check_skipped(result.skip_node_operations, f"{path}.skipNodeOperations")
    if result.share_id is not None:
        yield from check_share_id(result.share_id, f"{path}.shareID")


def _check_config(
    config: DeviceAllocationConfiguration, path: str, names: RequestNames, release: Release
) -> Iterator[FieldError]:
    goes_on = release.number < 35
    yield from _check_source(config.source, f"{path}.source", covered=True)
    yield from check_items(
        config.requests,
        f"{path}.requests",
        lambda name, at: check_reference(name, at, names),
        size_rule="constraint.requests-size",
        goes_on=goes_on,
    )
    if goes_on or len(config.requests or ()) <= 32:
        yield from check_unique(
            config.requests, f"{path}.requests", lambda name: name, rule="constraint.requests-duplicate"
        )
    yield from check_configuration(config.opaque, path, release)


def _check_source(source: str, path: str, *, covered: bool = False) -> Iterator[FieldError]:
    if not source:
        yield required("allocation.source-required", path, covered=covered)
    elif source not in _SOURCES:
        yield not_supported("allocation.source", path, source, _SOURCES, covered=covered)


def check_generated_allocation(
    allocation: AllocationResult, path: str, release: Release
) -> Iterator[FieldError]:
    """The generated rules for a new allocation, which have a say since 1.37 (see `generated`)."""
    yield from check_items(
        allocation.devices.results,
        f"{path}.devices.results",
        lambda result, at: _check_generated_result(result, at, release),
        size_rule="allocation.results-size",
    )
    yield from check_items(
        allocation.devices.config,
        f"{path}.devices.config",
        _check_generated_config,
        size_rule="allocation.config-size",
        limit=MAX_CONFIGS,
    )


def _check_generated_result(
    result: DeviceRequestAllocationResult, path: str, release: Release
) -> Iterator[FieldError]:
    yield from check_generated_driver(result.driver, f"{path}.driver", rule="allocation.driver")
    yield from _check_generated_pool(result.pool, f"{path}.pool")
    for index, toleration in enumerate(result.tolerations or ()):
        yield from check_generated_toleration(toleration, f"{path}.tolerations[{index}]", release)
    for name, conditions in (
        ("bindingConditions", result.binding_conditions),
        ("bindingFailureConditions", result.binding_failure_conditions),
    ):
        yield from check_items(
            conditions, f"{path}.{name}", _nothing, size_rule="binding.size", limit=MAX_CONDITIONS
        )
    if result.share_id is not None:
        yield from check_generated_share_id(result.share_id, f"{path}.shareID")
    yield from check_generated_skipped(result.skip_node_operations, f"{path}.skipNodeOperations")


def _check_generated_pool(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required("allocation.pool-required", path)
        return
    if formats.size(name) > MAX_POOL_NAME:
        yield too_long("allocation.pool-length", path, MAX_POOL_NAME, origin=_POOL_FORMAT)
    for index, part in enumerate(name.split("/")):
        if not part:
            told = f"segment {index}: must not be empty"
            yield invalid("allocation.pool-format", path, name, told, origin=_POOL_FORMAT)
            continue
        for text in formats.dns_subdomain(part, "bytes"):
            told = f"segment {index}: {text}"
            yield invalid("allocation.pool-format", path, part, told, origin=_POOL_FORMAT)


def _check_generated_config(config: DeviceAllocationConfiguration, path: str) -> Iterator[FieldError]:
    yield from _check_source(config.source, f"{path}.source")
    yield from check_items(
        config.requests, f"{path}.requests", _nothing, size_rule="constraint.requests-size"
    )
    if len(config.requests or ()) <= 32:
        yield from check_unique(
            config.requests, f"{path}.requests", lambda name: name, rule="constraint.requests-duplicate"
        )
    if config.opaque is not None:
        yield from check_generated_driver(config.opaque.driver, f"{path}.opaque.driver")


def _nothing(_item: object, _path: str) -> Iterator[FieldError]:
    return iter(())
