"""Checks of the configs of a claim or class: each one for its driver, and all of them for the devices.

Kubernetes looks at none of this while it allocates; a driver finds it when a pod starts, and the pod then waits.

Precedence decides which of several configs counts for a device. Of the configs that name a request, or name none and
fit the device, the last one counts, a claim's after a class's, and counts whole: fields are not merged. Source:
`getConfigResultsMap` and `prepareDevices` in cmd/gpu-kubelet-plugin/device_state.go of the NVIDIA DRA driver, 25.3 to
0.5, and cmd/dra-example-kubeletplugin/state.go of the example driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dra_infra.catalog.config_parameters import Fault, check_parameters
from dra_infra.catalog.device_configs import ConfigField, ConfigKind, configs_of
from dra_infra.catalog.drivers import DeviceType, Pins
from dra_infra.errors import Problem
from dra_infra.kubernetes.api.limits import MAX_ITEMS
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import check_driver_name, is_list, shorten, too_many, wrong_type
from dra_infra.specs.config_matching import (
    ConfiguredRequest,
    check_class_devices,
    check_devices,
    find_odd,
    fits,
    kind_of,
    known_parameters,
)
from dra_infra.specs.device_configs import DeviceConfig, OpaqueConfig


class _Candidate(NamedTuple):
    """A config that may count for a device; `place` is None for one of a class."""

    config: DeviceConfig
    place: int | None
    request: str


class _Choice(NamedTuple):
    """The config that counts for one type of device of a request, with that of the class before it."""

    request: ConfiguredRequest
    device: DeviceType
    of_class: _Candidate | None
    of_claim: _Candidate | None

    @property
    def winner(self) -> _Candidate | None:
        """The config that counts; None for the driver's default."""
        return self.of_claim or self.of_class


def check_precedence(
    configs: Sequence[DeviceConfig], requests: Sequence[ConfiguredRequest], pins: Pins
) -> list[Problem]:
    """Checks configs against each other, each of which is right alone.

    Returns:
        Problems with the codes `config-overridden`, a warning, `config-conflict` and `config-value`. Nothing is said of
        requests whose devices are not known, and of drivers that are not.
    """
    kinds = {id(config): kind_of(config, pins) for config in configs}
    choices = [
        _choose(request, device, configs, pins) for request in requests for device in request.devices or ()
    ]
    problems: list[Problem] = []
    if all(request.devices is not None for request in requests):
        problems += _check_unused(configs, choices, kinds)
        problems += _check_indexes(configs, choices, kinds)
    problems += _check_lost(choices)
    problems += _check_groups(choices, pins)
    return problems


def _choose(
    request: ConfiguredRequest, device: DeviceType, configs: Sequence[DeviceConfig], pins: Pins
) -> _Choice:
    of_class = [each for each in request.class_configs if each.driver == device.driver]
    of_claim = [index for index, each in enumerate(configs) if _counts(each, request.name, device, pins)]
    return _Choice(
        request,
        device,
        _Candidate(of_class[-1], None, request.name) if of_class else None,
        _Candidate(configs[of_claim[-1]], of_claim[-1], request.name) if of_claim else None,
    )


def _counts(config: DeviceConfig, request: str, device: DeviceType, pins: Pins) -> bool:
    if config.driver != device.driver:
        return False
    if config.requests:
        return request in config.requests
    kind = kind_of(config, pins)
    return kind is not None and fits(device, config, kind)


def _check_unused(
    configs: Sequence[DeviceConfig], choices: Sequence[_Choice], kinds: Mapping[int, ConfigKind | None]
) -> Iterator[Problem]:
    used = {choice.of_claim.place for choice in choices if choice.of_claim is not None}
    for index, config in enumerate(configs):
        kind = kinds[id(config)]
        if index in used or kind is None:
            continue
        later = {
            choice.of_claim.place: choice.request.name
            for choice in choices
            if choice.of_claim is not None
            and fits(choice.device, config, kind)
            and (not config.requests or choice.request.name in config.requests)
        }
        for winner, request in sorted(later.items())[:1]:
            said = f" for {request!r}" if request else ""
            yield Problem(
                path=f"configs[{index}]",
                code="config-overridden",
                message=f"never counts: configs[{winner}] comes later and counts{said} alone and whole",
                hint=f"leave it out, or write it after configs[{winner}]",
                severity="warning",
            )


def _check_indexes(
    configs: Sequence[DeviceConfig], choices: Sequence[_Choice], kinds: Mapping[int, ConfigKind | None]
) -> Iterator[Problem]:
    for index, config in enumerate(configs):
        kind = kinds[id(config)]
        shared = (each for each in choices if each.of_claim is not None and each.of_claim.place == index)
        sharing = {each.request.name: each.request for each in shared}
        counts = [request.count for request in sharing.values() if "/" not in request.name]
        if kind is None or not sharing or len(counts) < len(sharing) or None in counts:
            continue
        total = sum(count or 0 for count in counts)
        for path in _device_keys((), known_parameters(config), kind.fields):
            if path[-1].lstrip("+").isdecimal() and int(path[-1]) >= total:
                yield Problem(
                    path=f"configs[{index}].{config.argument(path)}",
                    code="config-value",
                    message=f"{path[-1]} is no index of the {total} devices: pods fail when they start",
                    hint=f"count from 0 to {total - 1}, or give one limit for all devices",
                )


def _device_keys(
    at: tuple[str, ...], written: Any, fields: Mapping[str, ConfigField]
) -> Iterator[tuple[str, ...]]:
    """The places of amounts by device."""
    for name, field in fields.items():
        value = written.get(name) if isinstance(written, Mapping) else None
        if field.keys and isinstance(value, Mapping):
            yield from ((*at, name, str(key)) for key in value)
        yield from _device_keys((*at, name), value, field.fields)


def _check_lost(choices: Sequence[_Choice]) -> Iterator[Problem]:
    """Fields of a class's config that a claim's of the same strategy does not repeat."""
    seen: set[tuple[int | None, str]] = set()
    for request, _, before, after in choices:
        if before is None or after is None or before.config.kind != after.config.kind:
            continue
        old, new = _leaves(before.config), _leaves(after.config)
        strategy = ("sharing", "strategy")
        lost = [path for path in old if path not in new]
        if not lost or old.get(strategy) != new.get(strategy):
            continue
        said = ", ".join(f"{path[-1]} {old[path]}" for path in lost)
        if (after.place, said) not in seen:
            seen.add((after.place, said))
            yield Problem(
                path=f"configs[{after.place}]",
                code="config-overridden",
                message=f"replaces the {after.config.kind} of the class of {request.name!r} whole, and loses its {said}",
                hint="configs are not merged: repeat what is to stay",
                severity="warning",
            )


def _leaves(config: DeviceConfig) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    stack: list[tuple[tuple[str, ...], Any]] = [((), known_parameters(config))]
    while stack:
        at, value = stack.pop()
        if isinstance(value, Mapping):
            stack += [((*at, str(name)), each) for name, each in value.items()]
        else:
            found[at] = value
    return dict(sorted(found.items()))


def _check_groups(choices: Sequence[_Choice], pins: Pins) -> Iterator[Problem]:
    """Kinds of which a claim has one; a config of a class comes once per request."""
    groups: dict[tuple[str, str], list[_Candidate | None]] = {}
    for choice in choices:
        release = pins.releases.get(choice.device.driver)
        known = configs_of(choice.device.driver, release.line) if release is not None else None
        for name, kind in known.kinds.items() if known is not None else ():
            only = all(each.name in kind.devices for each in choice.request.devices or ())
            if kind.one_per_claim and choice.device.name in kind.devices and only:
                groups.setdefault((choice.device.driver, name), []).append(choice.winner)
    for (driver, name), winners in groups.items():
        distinct = {
            each and (each.place if each.place is not None else each.request): each for each in winners
        }
        if len(distinct) > 1:
            index = next((each.place for each in distinct.values() if each and each.place is not None), None)
            yield Problem(
                path="configs" if index is None else f"configs[{index}]",
                code="config-conflict",
                message=f"the devices of the claim come under {len(distinct)} configs of the kind {name}, and {driver} "
                "prepares one per claim: pods fail when they start",
                hint=f"give the claim one {name} without requests, or use several claims",
            )


def check_claim_configs(
    configs: object,
    requests: Sequence[ConfiguredRequest],
    *,
    pins: Pins,
    gates: Mapping[str, bool] | None = None,
) -> list[Problem]:
    """Checks the configs of a claim; paths are `configs[0].sharing` and the like.

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
    """Checks the configs of a class, whose selectors leave *devices*; None where that is not known.

    A config of a class counts as one that names the request, so every device that the class selects must fit it; from 1.37
    on only in claims that have requests for other classes too.

    Returns:
        Problems with the codes of `check_claim_configs`, and `field-not-allowed`.
    """
    problems, listed = _check_list(configs, pins, gates)
    for index, config in listed:
        if not (is_list(config.requests) and not config.requests):
            message = "a config of a class is for every request through the class"
            hint = "leave requests out, or give the config to the claim"
            path = f"configs[{index}].requests"
            problems.append(Problem(path=path, code="field-not-allowed", message=message, hint=hint))
        if not is_list(config.requests):
            continue
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
    """Checks each config alone; gives problems, and the configs of the right type with their index."""
    if not isinstance(configs, Sequence) or isinstance(configs, str):
        return [wrong_type("configs", configs, "a list of configs", "write configs=[dra.GpuConfig(...)]")], []
    problems: list[Problem] = []
    listed: list[tuple[int, DeviceConfig]] = []
    if len(configs) > MAX_ITEMS:
        problems.append(too_many("configs", len(configs), MAX_ITEMS, "leave some out"))
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
    yield from check_driver_name(driver)
    if not isinstance(driver, str):
        return
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
    if len(wanted) > MAX_ITEMS:
        yield too_many("requests", len(wanted), MAX_ITEMS, "leave requests out for all of them")
    for index, name in enumerate(wanted):
        path = f"requests[{index}]"
        if not isinstance(name, str):
            yield wrong_type(path, name, "the name of a request")
        elif name in wanted[:index]:
            message = f"{shorten(name)} is named twice"
            yield Problem(path=path, code="duplicate-item", message=message, hint="leave it out")
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
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"its requests are {', '.join(map(repr, known))}"
            message = f"{shorten(name)} is not a request of this claim"
            yield Problem(path=path, code="unknown-request", message=message, hint=hint)
