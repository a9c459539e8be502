"""The rules for DeviceClass (validateDeviceClassSpec, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.device_class import DeviceClassSpec
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.configurations import check_configuration, check_selectors
from dra_infra.validation.field_errors import FieldError, invalid
from dra_infra.validation.generated import check_generated_driver, check_generated_extended_resource
from dra_infra.validation.lists import check_items
from dra_infra.validation.requests import label_wording


def check_class(
    spec: DeviceClassSpec, release: Release, *, old: DeviceClassSpec | None = None
) -> Iterator[FieldError]:
    """The hand-written rules; what equals the *old* list as a whole was stored and is not checked anew."""
    stored = old is not None and (spec.selectors or []) == (old.selectors or [])
    yield from check_selectors(spec.selectors, "spec.selectors", release, stored=stored)
    unchanged = old is not None and (spec.config or []) == (old.config or [])
    yield from check_items(
        spec.config,
        "spec.config",
        lambda config, at: check_configuration(config.opaque, at, release, stored=unchanged),
        size_rule="claim.config-size",
        goes_on=release.number < 35,
    )
    name = spec.extended_resource_name
    if name is not None and not is_extended_resource_name(name, release):
        yield invalid(
            "class.extended-resource-name",
            "spec.extendedResourceName",
            name,
            "must be a valid extended resource name",
            origin="format=k8s-extended-resource-name",
            covered=True,
        )


def check_generated_class(spec: DeviceClassSpec) -> Iterator[FieldError]:
    """The generated rules."""
    yield from check_items(
        spec.selectors, "spec.selectors", lambda _item, _at: iter(()), size_rule="selectors.size"
    )
    yield from check_items(
        spec.config,
        "spec.config",
        lambda config, at: (
            check_generated_driver(config.opaque.driver, f"{at}.opaque.driver") if config.opaque else iter(())
        ),
        size_rule="claim.config-size",
    )
    if spec.extended_resource_name is not None:
        yield from check_generated_extended_resource(spec.extended_resource_name, "spec.extendedResourceName")


def is_extended_resource_name(name: str, release: Release) -> bool:
    """Whether *name* is one (IsExtendedResourceName in pkg/apis/core/v1/helper)."""
    is_native = "/" not in name or "kubernetes.io/" in name
    noun, unit = label_wording(release)
    return (
        not is_native
        and not name.startswith("requests.")
        and not formats.label_key(f"requests.{name}", noun=noun, unit=unit)
    )
