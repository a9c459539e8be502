"""Whether the configs of a claim or class are right: each one for its driver, and all of them for the devices.

Kubernetes looks at none of this while it allocates; a driver finds it when a pod starts, and the pod then waits.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence

from dra_infra.catalog.config_parameters import check_parameters
from dra_infra.catalog.config_values import Fault
from dra_infra.catalog.drivers import DeviceType
from dra_infra.catalog.pins import Pins
from dra_infra.errors import Problem
from dra_infra.model import names
from dra_infra.specs.arguments import shorten, too_many, wrong_type
from dra_infra.specs.config_encoding import known_parameters
from dra_infra.specs.config_matching import (
    ConfiguredRequest,
    check_class_devices,
    check_devices,
    kind_of,
)
from dra_infra.specs.config_precedence import check_precedence
from dra_infra.specs.config_values import find_odd
from dra_infra.specs.device_configs import DeviceConfig, OpaqueConfig

MAX_CONFIGS = 32
"""Most configs of a claim or a class, and most requests that one names (resource/v1 types.go)."""


def check_claim_configs(
    configs: object,
    requests: Sequence[ConfiguredRequest],
    *,
    pins: Pins,
    gates: Mapping[str, bool] | None = None,
) -> list[Problem]:
    """What is wrong with the configs of a claim, at `configs[0].sharing` and the like.

    Args:
        configs: As the user gave them.
        requests: All requests of the claim, each alternative on its own.
        pins: The driver releases that are meant.
        gates: Feature gates that the NVIDIA driver is given; None where they are not known: nothing is said of them.

    Returns:
        Problems with the codes of `check_parameters`, `wrong-type`, `too-many-items`, `invalid-name`,
        `unknown-request`, `duplicate-item`, `config-not-applied`, `config-device-type`, and those of `check_precedence`.
    """
    problems, listed = _check_list(configs, pins, gates)
    for index, config in listed:
        path = f"configs[{index}]"
        found = list(_check_names(config, [request.name for request in requests]))
        kind = kind_of(config, pins)
        if not found and kind is not None:
            found = list(check_devices(config, kind, requests))
        problems += [problem.below(path) for problem in found]
    if not any(problem.severity == "error" for problem in problems):
        problems += check_precedence([config for _, config in listed], requests, pins)
    return problems


def check_class_configs(
    configs: object,
    devices: Sequence[DeviceType] | None,
    *,
    pins: Pins,
    gates: Mapping[str, bool] | None = None,
) -> list[Problem]:
    """What is wrong with the configs of a class, whose selectors leave *devices*; None where that is not known.

    A config of a class counts as one that names the request, so every device that the class selects must fit it; from 1.37
    on only in claims that have requests for other classes too.

    Returns:
        Problems with the codes of `check_claim_configs`, and `field-not-allowed`.
    """
    problems, listed = _check_list(configs, pins, gates)
    for index, config in listed:
        if config.requests:
            problems.append(
                Problem(
                    path=f"configs[{index}].requests",
                    code="field-not-allowed",
                    message="a config of a class is for every request through the class",
                    hint="leave requests out, or give the config to the claim",
                )
            )
        kind = kind_of(config, pins)
        if kind is not None and devices is not None:
            misfit = check_class_devices(config, kind, devices)
            problems += [problem.below(f"configs[{index}]") for problem in misfit]
    if not any(problem.severity == "error" for problem in problems):
        own = ConfiguredRequest(name="", devices=devices)
        problems += check_precedence([config for _, config in listed], [own], pins)
    return problems


def problem_of(fault: Fault, config: DeviceConfig) -> Problem:
    """A fault as a problem, whose path starts at the config, in the words in which the config was written."""
    path = config.argument(fault.fields)
    hint = fault.hint
    if fault.value is not None:
        typed = not isinstance(config, OpaqueConfig)
        name = path.rpartition(".")[2]
        hint = f"write {name}={fault.value!r}" if typed else f"write {name}: {json.dumps(fault.value)}"
    return Problem(path=path, code=fault.code, message=fault.told, hint=hint, severity=fault.severity)


def _check_list(
    configs: object, pins: Pins, gates: Mapping[str, bool] | None
) -> tuple[list[Problem], list[tuple[int, DeviceConfig]]]:
    """What is wrong with each config alone; and the configs that are some, by their place."""
    if not isinstance(configs, Sequence) or isinstance(configs, str):
        return [wrong_type("configs", configs, "a list of configs", "write configs=[dra.GpuConfig(...)]")], []
    problems: list[Problem] = []
    listed: list[tuple[int, DeviceConfig]] = []
    if len(configs) > MAX_CONFIGS:
        problems.append(too_many("configs", len(configs), MAX_CONFIGS, "leave some out"))
    for index, config in enumerate(configs):
        path = f"configs[{index}]"
        if not isinstance(config, DeviceConfig):
            problems.append(wrong_type(path, config, "a config", "write dra.GpuConfig(sharing=...)"))
            continue
        found = list(_check_one(config, pins, gates))
        problems += [problem.below(path) for problem in found]
        if not any(problem.code == "wrong-type" for problem in found):
            listed.append((index, config))
    return problems, listed


def _check_one(config: DeviceConfig, pins: Pins, gates: Mapping[str, bool] | None) -> Iterator[Problem]:
    driver: object = config.driver
    if not isinstance(driver, str):
        yield wrong_type("driver", driver, "a string", 'write driver="gpu.nvidia.com"')
        return
    if not names.is_dns_subdomain(driver) or len(driver) > names.LABEL_LENGTH:
        yield Problem(
            path="driver",
            code="invalid-name",
            message=f"{shorten(driver)} is not the name of a DRA driver",
            hint='driver names are DNS subdomains of at most 63 bytes, such as "gpu.nvidia.com"',
        )
    sharing = getattr(config, "sharing", None)
    if sharing is not None and not isinstance(sharing, config.strategies):
        wanted = " or ".join(f"dra.{strategy.__name__}(...)" for strategy in config.strategies)
        told = f"what a {config.kind} of {driver} shares devices by"
        yield wrong_type("sharing", sharing, told, f"write sharing={wanted}")
        return
    parameters = known_parameters(config)
    if odd := find_odd(parameters):
        fields, value = odd
        yield _not_json(config, fields, value)
        return
    for fault in check_parameters(driver, parameters, pins, gates):
        yield problem_of(fault, config)


def _not_json(config: DeviceConfig, fields: tuple[str, ...], value: object) -> Problem:
    if not isinstance(config, OpaqueConfig):
        return wrong_type(config.argument(fields), value, "a value of this argument")
    return Problem(
        path="parameters",
        code="invalid-parameters",
        message=f"{shorten(value)} cannot be written as JSON",
        hint="write texts, numbers, True, False, None, lists, and mappings with texts as keys",
    )


def _check_names(config: DeviceConfig, known: Sequence[str]) -> Iterator[Problem]:
    wanted: object = config.requests
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        yield wrong_type("requests", wanted, "a list of names", f"write requests=[{wanted!r}]")
        return
    if len(wanted) > MAX_CONFIGS:
        yield too_many("requests", len(wanted), MAX_CONFIGS, "leave requests out for all of them")
    for index, name in enumerate(wanted):
        path = f"requests[{index}]"
        if not isinstance(name, str):
            yield wrong_type(path, name, "the name of a request")
        elif name in wanted[:index]:
            yield Problem(
                path=path,
                code="duplicate-item",
                message=f"{shorten(name)} is named twice",
                hint="leave it out",
            )
        elif name in known:
            continue
        elif leaves := [each for each in known if each.startswith(f"{name}/")]:
            # Kubernetes allows it; the drivers compare the names of allocated requests letter by letter. From 1.37 on the
            # allocator names none where all are named.
            names_all = all(each in wanted or each.partition("/")[0] in wanted for each in known)
            yield Problem(
                path=path,
                code="config-not-applied",
                message=f"{'before Kubernetes 1.37 ' if names_all else ''}{config.driver} compares names of requests "
                f"letter by letter, and never sees {shorten(name)} of a prioritized list",
                hint=f"write requests=[{', '.join(map(repr, leaves))}], or leave requests out",
            )
        else:
            near = difflib.get_close_matches(str(name)[:80], known, n=1)
            yield Problem(
                path=path,
                code="unknown-request",
                message=f"{shorten(name)} is not a request of this claim",
                hint=f"did you mean {near[0]!r}?"
                if near
                else f"its requests are {', '.join(map(repr, known))}",
            )
