"""Configs of devices as they stand in claims and classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.model.device_class import DeviceClassConfiguration, OpaqueDeviceConfiguration
from dra_infra.model.program import UNKNOWN
from dra_infra.model.resource_claim import DeviceClaimConfiguration
from dra_infra.specs.arguments import is_output
from dra_infra.specs.device_configs import DeviceConfig


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
    # A round trip, so that tuples are lists and keys are texts, as in the object.
    parameters = json.loads(json.dumps(known_parameters(config)))
    return OpaqueDeviceConfiguration(driver=config.driver, parameters=parameters)


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_known(each) for each in value]
    return UNKNOWN if is_output(value) else value
