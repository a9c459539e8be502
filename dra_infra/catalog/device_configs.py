"""The kinds of opaque configs that each release line of a driver decodes, with their fields.

A driver reads `config[].opaque.parameters` when a pod starts on a node, and no server checks it before. What is here
is what the drivers' decoders and validations say, per release line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from pydantic import Field

from dra_infra.catalog.drivers import Driver, drivers
from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import read_data


class ConfigField(Entry):
    """A field of a config.

    Args:
        type: What it holds; a `map` holds quantities by device.
        required: Whether it must be there and not be empty, where the object around it is.
        required_until: The last line in which it must; empty when it must in all, or in none.
        values: The texts that it may be; empty when any may.
        minimum: Least number or amount.
        maximum: Greatest number.
        with_: The field beside it, and its value, with which alone this one may stand.
        gates: Value to the gate of the driver that it needs.
        excludes: Value to the gates of the driver with which it fails.
        without_effect: Values that are taken and do nothing.
        keys: What the keys of a map are: UUIDs of devices, or indexes.
        format: What a text is: the UID of an object.
        fields: Of an object.
    """

    type: Literal["object", "string", "int", "bool", "quantity", "map"]
    since: str = ""
    until: str = ""
    required: bool = False
    required_until: str = ""
    values: tuple[str, ...] = ()
    minimum: int | str | None = None
    maximum: int | None = None
    with_: Mapping[str, str] = Field(default={}, alias="with", max_length=1)
    gates: Mapping[str, str] = {}
    excludes: Mapping[str, tuple[str, ...]] = {}
    without_effect: tuple[str, ...] = ()
    keys: Literal["", "device"] = ""
    format: Literal["", "uid"] = ""
    fields: Mapping[str, ConfigField] = {}


class ConfigKind(Entry):
    """A kind of config.

    Args:
        devices: The types of devices that it is for.
        gate: The gate of the driver that it needs.
        webhook: Whether the driver's webhook takes it in claims.
        one_per_claim: Whether all devices of a claim that it is for must have one and the same.
    """

    devices: tuple[str, ...] = Field(min_length=1)
    since: str = ""
    until: str = ""
    gate: str = ""
    webhook: bool = True
    one_per_claim: bool = False
    fields: Mapping[str, ConfigField]


class DriverConfigs(Fact):
    """The configs that one release line of a driver decodes.

    Args:
        api_version: Of every kind.
        strict_since: First line that refuses a field it does not know; empty when all do.
        kinds: By name.
    """

    api_version: str
    strict_since: str = ""
    kinds: Mapping[str, ConfigKind]


@cache
def configs_of(driver: str, line: str) -> DriverConfigs | None:
    """The configs of a release line, with its kinds and fields; None for a driver that is not known.

    Raises:
        KeyError: *line* is no line of the driver.
    """
    every = _every().get(driver)
    if every is None:
        return None
    return every.model_copy(update={"kinds": dict(_kept(every.kinds, line, drivers()[driver]))})


@cache
def is_strict(driver: str, line: str) -> bool:
    """The release line refuses a config with a field that it does not know; others drop the field silently."""
    return drivers()[driver].has(line, since=_every()[driver].strict_since)


def lines_with(driver: str, kind: str, *fields: str) -> tuple[str, ...]:
    """The release lines that have a kind, or a field of it, oldest first."""
    return tuple(line for line in drivers()[driver].by_line if _has(configs_of(driver, line), kind, fields))


def drivers_with(kind: str) -> tuple[str, ...]:
    """The drivers of which some release has a kind of that name."""
    return tuple(driver for driver, every in _every().items() if kind in every.kinds)


@cache
def _every() -> Mapping[str, DriverConfigs]:
    written: dict[str, Any] = read_data("device_configs.yaml")
    return {driver: DriverConfigs.model_validate(entry) for driver, entry in written.items()}


def _kept(entries: Mapping[str, Any], line: str, driver: Driver) -> Iterator[tuple[str, Any]]:
    """The entries that *line* has, with those of their fields that it has."""
    for name, entry in entries.items():
        if driver.has(line, since=entry.since, until=entry.until):
            changes: dict[str, Any] = {"fields": dict(_kept(entry.fields, line, driver))}
            if isinstance(entry, ConfigField) and entry.required_until:
                changes["required"] = driver.has(line, until=entry.required_until)
            yield name, entry.model_copy(update=changes)


def _has(configs: DriverConfigs | None, kind: str, fields: tuple[str, ...]) -> bool:
    entry: Any = configs.kinds.get(kind) if configs is not None else None
    for name in fields:
        entry = entry.fields.get(name) if entry is not None else None
    return entry is not None
