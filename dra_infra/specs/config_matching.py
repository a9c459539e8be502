"""Matches device configs with devices, and encodes them as they stand in claims and classes.

A config that names a request must be of the kind for what the request gets. One that names none is for those devices
that its kind fits. Source: `validateDeviceConfigType` and `matchesDeviceType` in
cmd/gpu-kubelet-plugin/device_state.go of the NVIDIA DRA driver, 25.3 to 0.5.

Values of a config that cannot be written as JSON are found.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.catalog.device_configs import ConfigKind, configs_of
from dra_infra.catalog.drivers import DeviceType, Pins
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    UNKNOWN,
    DeviceClaimConfiguration,
    DeviceClassConfiguration,
    OpaqueDeviceConfiguration,
    is_placeholder,
)
from dra_infra.specs.arguments import is_output, is_text, wrong_type
from dra_infra.specs.device_configs import DeviceConfig, OpaqueConfig


@dataclass(frozen=True, kw_only=True)
class ConfiguredRequest:
    """A request, or one alternative of it, as configs are checked against it.

    Args:
        name: `gpu`, or `gpu/large` for an alternative.
        devices: The types of devices that it may get; None where that is not known.
        count: How many it gets; None for all, or where that is not known.
        class_configs: The configs of its class, in order.
    """

    name: str
    devices: Sequence[DeviceType] | None = None
    count: int | None = None
    class_configs: Sequence[DeviceConfig] = ()


def kind_of(config: DeviceConfig, pins: Pins) -> ConfigKind | None:
    """The kind of a config in the pinned release; None where that, or the driver, is not known."""
    release = pins.releases.get(config.driver)
    known = configs_of(config.driver, release.line) if release is not None else None
    return known.kinds.get(config.kind) if known is not None else None


def check_devices(
    config: DeviceConfig, kind: ConfigKind, requests: Sequence[ConfiguredRequest]
) -> Iterator[Problem]:
    """Checks that a config of a claim is for devices that its requests may get: `config-device-type`."""
    if config.requests:
        for request in requests:
            if request.name in config.requests and request.devices is not None:
                said = f"the request {request.name!r}"
                yield from _misfit(config, kind, said, request.devices, named=True)
        return
    devices = [device for request in requests for device in request.devices or ()]
    if all(request.devices is not None for request in requests):
        yield from _misfit(config, kind, "the claim", devices, named=False)


def check_class_devices(
    config: DeviceConfig, kind: ConfigKind, devices: Sequence[DeviceType]
) -> Iterator[Problem]:
    """Checks that a config of a class is for all devices that the class selects: `config-device-type`."""
    yield from _misfit(config, kind, "the class", devices, named=True)


def _misfit(
    config: DeviceConfig, kind: ConfigKind, what: str, devices: Sequence[DeviceType], *, named: bool
) -> Iterator[Problem]:
    """The problem of a config with devices of these types, all that *what* may get."""
    fitting = [each for each in devices if fits(each, config, kind)]
    others = [each for each in devices if each not in fitting and each.driver == config.driver]
    if not devices or (fitting and not (others and named)):
        return
    said = " or ".join(sorted({f"{each}s" for each in others or devices}))
    wanted = " or ".join(kind.devices)
    path = "requests" if config.requests else ""
    if fitting:
        message = (
            f"{what} may get {said} too, and a {config.kind} is for {wanted}: their pods fail when they start"
        )
        hint = "leave requests out, which makes it for those alone that it fits"
        if not config.requests:
            hint = f"select one type of device, {kind.devices[0]}"
    else:
        outcome = "its pods fail when they start" if named and others else "it is never applied"
        message = f"{what} gets {said}, and a {config.kind} is for {wanted}: {outcome}"
        hint = _kind_for(config, others) or f"leave it out, or ask for a device of {config.driver}"
    yield Problem(path=path, code="config-device-type", message=message, hint=hint)


def fits(device: DeviceType, config: DeviceConfig, kind: ConfigKind) -> bool:
    """A config of that kind is for devices of that type."""
    return device.driver == config.driver and device.name in kind.devices


_KINDS = {"gpu": "GpuConfig", "mig": "MigDeviceConfig", "vfio": "VfioDeviceConfig"}


def _kind_for(config: DeviceConfig, devices: Sequence[DeviceType]) -> str:
    own = {_KINDS[each.name] for each in devices if each.name in _KINDS and each.driver == "gpu.nvidia.com"}
    if len(own) != 1:
        return ""
    (kind,) = own
    return f"write kind: {kind}" if isinstance(config, OpaqueConfig) else f"write dra.{kind}(...)"


def compile_claim_configs(configs: Sequence[DeviceConfig]) -> list[DeviceClaimConfiguration]:
    """The `config` of a claim; `UNKNOWN` stands for Pulumi Outputs in the parameters."""
    return [
        DeviceClaimConfiguration(requests=list(config.requests) or None, opaque=_opaque(config))
        for config in configs
    ]


def compile_class_configs(configs: Sequence[DeviceConfig]) -> list[DeviceClassConfiguration]:
    """The `config` of a class; `UNKNOWN` stands for Pulumi Outputs in the parameters."""
    return [DeviceClassConfiguration(opaque=_opaque(config)) for config in configs]


def known_parameters(config: DeviceConfig) -> Any:
    """The parameters as plain data, with `UNKNOWN` for each Pulumi Output."""
    return _known(config.to_parameters())


def _opaque(config: DeviceConfig) -> OpaqueDeviceConfiguration:
    return OpaqueDeviceConfiguration(driver=config.driver, parameters=_as_json(known_parameters(config)))


def _as_json(value: Any) -> Any:
    """Return *value* as JSON has it, with texts for keys; markers stay."""
    if isinstance(value, Mapping):
        keys = json.loads(json.dumps(dict.fromkeys(value)))
        return {key: _as_json(item) for key, item in zip(keys, value.values(), strict=True)}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value if is_placeholder(value) else json.loads(json.dumps(value))


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known(each) for each in value]
    return UNKNOWN if is_output(value) else value


def check_json(path: str, value: object, expected: str) -> Iterator[Problem]:
    """Checks that a value is JSON, with Outputs in it, so that the API server or Helm can be given it: `wrong-type`."""
    if odd := find_odd(value):
        fields, found = odd
        yield wrong_type(path + "".join(f"[{key!r:.80}]" for key in fields), found, expected)


_LARGEST: Final = 2**63
"""What readers of JSON in Go hold in a whole number."""


def find_odd(value: Any, at: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Any] | None:
    """The first value that JSON cannot hold, with its place; None where there is none. Outputs are not judged."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if isinstance(key, bool) or not isinstance(key, str | int) or not is_text(str(key)):
                return (at, key)
            if found := find_odd(each, (*at, str(key))):
                return found
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, (find_odd(each, at) for each in value)), None)
    if isinstance(value, str):
        return None if is_text(value) else (at, value)
    if isinstance(value, float):
        return None if math.isfinite(value) else (at, value)
    if isinstance(value, int):
        return None if abs(value) <= _LARGEST else (at, value)
    return None if value is None or is_output(value) else (at, value)
