"""Which of several configs counts for a device.

Of the configs that name a request, or name none and fit the device, the last one counts, a claim's after a class's, and
counts whole: fields are not merged. Source: `getConfigResultsMap` and `prepareDevices` in
cmd/gpu-kubelet-plugin/device_state.go of the NVIDIA DRA driver, 25.3 to 0.5, and
cmd/dra-example-kubeletplugin/state.go of the example driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dra_infra.catalog.device_configs import ConfigField, ConfigKind, configs_of
from dra_infra.catalog.drivers import DeviceType
from dra_infra.catalog.pins import Pins
from dra_infra.errors import Problem
from dra_infra.specs.config_encoding import known_parameters
from dra_infra.specs.config_matching import ConfiguredRequest, fits, kind_of
from dra_infra.specs.device_configs import DeviceConfig


class _Candidate(NamedTuple):
    """A config that may count for a device; `place` is None for one of a class."""

    config: DeviceConfig
    place: int | None
    request: str


class _Choice(NamedTuple):
    """What counts for one type of device of a request, with the config of the class that comes before it."""

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
    """What several configs do to each other; each is right alone.

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
        sharing = {choice.request.name: choice.request for choice in choices if _is(choice.of_claim, index)}
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


def _is(candidate: _Candidate | None, index: int) -> bool:
    return candidate is not None and candidate.place == index


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
