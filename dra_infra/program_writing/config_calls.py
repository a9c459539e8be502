"""Reads configs of devices as calls of their types, where these make the very same parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.program_writing.said import Said, check_fields, make, same, texts_of
from dra_infra.specs import device_configs

_CONFIGS: Final = (
    device_configs.GpuConfig,
    device_configs.MigDeviceConfig,
    device_configs.VfioDeviceConfig,
    device_configs.ComputeDomainChannelConfig,
    device_configs.ExampleGpuConfig,
)


def read_config(config: Mapping[str, Any]) -> Said:
    """The config of a claim or class: of a type of its own where that says all of it, else with its parameters as they are.

    Raises:
        CannotSayError: When it has fields that no config has.
    """
    check_fields(config, ("requests", "opaque"), "config")
    opaque = mapping(config.get("opaque"))
    driver, parameters = opaque.get("driver"), opaque.get("parameters")
    named = texts_of(config.get("requests"))
    keywords = {"requests": same(named)} if named else {}
    for kind in _CONFIGS:
        if (
            isinstance(parameters, Mapping)
            and (typed := _typed(kind, driver, parameters, keywords)) is not None
        ):
            return typed
    return make(
        device_configs.OpaqueConfig,
        driver=same(driver),
        parameters=same(parameters),
        **keywords,
    )


def _typed(
    kind: type[Any], driver: Any, parameters: Mapping[str, Any], keywords: Mapping[str, Said]
) -> Said | None:
    """A config with a type of its own; None where that does not say all of the parameters."""
    given = dict(keywords)
    for argument, place in kind.places.items():
        value: Any = parameters
        for step in place:
            value = mapping(value).get(step)
        if value is not None:
            given[argument] = same(value)
    if "sharing" in given:
        sharing = mapping(given["sharing"].value)
        strategy = next((each for each in kind.strategies if each.strategy == sharing.get("strategy")), None)
        if strategy is None:
            return None
        given["sharing"] = make(strategy, **dict(_arguments(strategy, sharing)))
    if kind is device_configs.ExampleGpuConfig and driver != "gpu.example.com":
        given["driver"] = same(driver)
    try:
        made = make(kind, **given)
    except TypeError:
        return None
    is_same = made.value.driver == driver and made.value.to_parameters() == parameters
    return made if is_same else None


def _arguments(strategy: type[Any], sharing: Mapping[str, Any]) -> Iterator[tuple[str, Said]]:
    for argument, place in strategy.places.items():
        value: Any = sharing
        for step in place:
            value = mapping(value).get(step)
        if value is not None:
            yield argument, same(value)
