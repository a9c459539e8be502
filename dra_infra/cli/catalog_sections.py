"""Sections of `dra-infra catalog`: entries as plain data, table columns, and the names that are meant."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import click
from pydantic import BaseModel

from dra_infra.catalog.charts import bare_version, charts, value_types
from dra_infra.catalog.driver_gates import driver_needs, gate_rules_of, gates_of
from dra_infra.catalog.drivers import DeviceType, DriverRelease, drivers
from dra_infra.catalog.gpus import capabilities_of, find_products, systems
from dra_infra.catalog.machines import machines, node_kinds, node_names, refusal_of
from dra_infra.catalog.mig import mig_products, mig_profiles_of
from dra_infra.catalog.records import fleet_kinds, fleet_names, gpu_products

Entry = Mapping[str, Any]


class NameNotKnownError(click.BadParameter):
    """A section or an entry is named that the catalogue does not have; the text says which names there are."""


class Section(NamedTuple):
    """A section of the catalogue.

    Args:
        title: What it holds.
        entries: Every entry by name, each as data of JSON.
        columns: What the table shows of an entry, beside its name.
        find: The entries that a name means, by name; none where it means nothing.
        known: Names to suggest.
    """

    title: str
    entries: Callable[[], dict[str, Entry]]
    columns: Sequence[str]
    find: Callable[[str], dict[str, Entry]]
    known: Callable[[], Sequence[str]]


def _plain(record: BaseModel) -> dict[str, Any]:
    """Fields of a record, its source last."""
    fields = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    source = fields.pop("source", "")
    return {name: value for name, value in {**fields, "source": source}.items() if value not in ("", [], {})}


def _exactly(entries: Callable[[], dict[str, Entry]]) -> Callable[[str], dict[str, Entry]]:
    """Finds the one entry of a name, in any case of letters."""
    return lambda text: {
        name: entry for name, entry in entries().items() if name.lower() == text.strip().lower()
    }


def _gpus() -> dict[str, Entry]:
    return {
        name: {
            "capabilities": list(capabilities_of(name)),
            **_plain(product),
        }
        for name, product in gpu_products().items()
    }


def _find_gpus(text: str) -> dict[str, Entry]:
    found = find_products(text)
    return {name: entry for name, entry in _gpus().items() if name in found}


def _short_names() -> list[str]:
    return sorted(
        {*gpu_products(), *(short for each in gpu_products().values() for short in each.short_names)}
    )


def _mig() -> dict[str, Entry]:
    return {
        name: {
            "architecture": gpu_products()[name].architecture,
            "profiles": {profile.name: _profile(profile._asdict()) for profile in mig_profiles_of(name)},
        }
        for name in mig_products()
    }


def _profile(fields: dict[str, Any]) -> Entry:
    return {name: value for name, value in fields.items() if name != "name" and value not in (None, (), "")}


def _find_mig(text: str) -> dict[str, Entry]:
    meant = find_products(text)
    found = {name: entry for name, entry in _mig().items() if name in meant}
    if meant and not found:
        can = any(gpu_products()[name].mig_capable for name in meant)
        why = "its profiles are not known" if can else "MIG cannot partition it"
        raise NameNotKnownError(f"mig has no {' or '.join(meant)}: {why}")
    return found


def _drivers() -> dict[str, Entry]:
    return {
        f"{name}={release.line}": _release(release)
        for name, driver in drivers().items()
        for release in driver.releases
    }


def _release(release: DriverRelease) -> Entry:
    entry: dict[str, Any] = {"product": release.product, "source": release.source}
    if release.product == "NVIDIA DRA driver":
        needs = driver_needs()[release.line]
        entry |= {
            **_plain(needs),
            "source": f"{release.source}; {needs.source}",
            "gates": {name: _plain(gate) for name, gate in gates_of(release.line).items()},
            "rules": [
                f"{rule.gate} {'needs' if rule.needs else 'excludes'} {rule.needs or rule.excludes}"
                + (f": {rule.fails}" if rule.fails else "")
                for rule in gate_rules_of(release.line)
            ],
        }
    entry["classes"] = {shipped.name: shipped.expression for shipped in release.classes}
    return entry | {f"{name} device": _device(device) for name, device in release.devices.items()}


def _device(device: DeviceType) -> Entry:
    return {
        "device_name": device.device_name,
        **{name: each.type for name, each in device.attributes.items()},
        **{name: each.type for name, each in device.capacity.items()},
    }


def _find_drivers(text: str) -> dict[str, Entry]:
    name, equals, line = text.strip().rpartition("=")
    found = re.match(r"v?(\d+\.\d+)", line)
    return {
        key: entry
        for key, entry in _drivers().items()
        if key.partition("=")[0] == line
        or (found and key == f"{name or 'gpu.nvidia.com'}={found[1]}")
        or (found and not equals and key == f"compute-domain.nvidia.com={found[1]}")
    }


def _fleets() -> dict[str, Entry]:
    return {name: _plain(kind) for name, kind in fleet_kinds().items()}


def _find_fleets(text: str) -> dict[str, Entry]:
    """A fleet in any case of letters, or a machine as the kind of its nodes."""
    name = node_names().get(text.strip()) or fleet_names().get(text.strip().lower())
    return {name: _plain(node_kinds()[name])} if name else {}


def _machines() -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for name, (cloud, machine) in machines().items():
        kind = node_kinds()[name]
        entries[name] = {
            "cloud": cloud.title,
            "gpu": kind.gpu,
            **_plain(machine),
            "labels": kind.labels,
            "source": cloud.source,
        }
    return entries


def _find_machines(text: str) -> dict[str, Entry]:
    """A machine by one of its names, in any case of letters; one that cannot be a fleet is refused with the reason."""
    name = text.strip()
    if refusal := refusal_of(name):
        raise NameNotKnownError(f"{name} {refusal.because}: {refusal.hint}")
    return _exactly(_machines)(node_names().get(name, name))


def _charts() -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for name, chart in charts().items():
        entry = {field: value for field, value in _plain(chart).items() if field not in ("unlisted", "types")}
        # Which file holds the keys is nobody's business; that there is one decides what is checked.
        for version in entry["versions"].values():
            version["values"] = "known" if version.pop("keys", "") else "not known"
        entries[name] = {"newest": chart.newest, **entry}
    return entries


def _find_charts(text: str) -> dict[str, Entry]:
    """A chart, or with `=VERSION` the values of one version of it."""
    name, equals, version = text.strip().partition("=")
    if not equals:
        return _exactly(_charts)(name)
    chart = charts().get(name)
    known = chart and chart.versions.get(bare_version(version))
    if not chart or not known:
        return {}
    entry = {field: value for field, value in _plain(known).items() if field != "keys"}
    values = {"values": dict(value_types(name, bare_version(version))) or "not known"}
    return {f"{name}={bare_version(version)}": {**entry, "source": chart.source, **values}}


def _chart_names() -> list[str]:
    return [
        *charts(),
        *(f"{name}={version}" for name, chart in charts().items() for version in chart.versions),
    ]


def _systems() -> dict[str, Entry]:
    return {name: _plain(system) for name, system in systems().items()}


SECTIONS: Final[Mapping[str, Section]] = {
    "gpus": Section(
        "GPU products, by the name that NVML reports",
        _gpus,
        ("architecture", "cuda_compute_capability", "memory_mib", "mig_slices", "nvlink", "short_names"),
        _find_gpus,
        _short_names,
    ),
    "mig": Section("MIG profiles of each GPU", _mig, ("architecture", "profiles"), _find_mig, _short_names),
    "drivers": Section(
        "release lines of drivers: what they need, publish and gate",
        _drivers,
        ("product", "chart", "kubernetes", "kernel_driver", "brings"),
        _find_drivers,
        lambda: [*_drivers(), *drivers(), *driver_needs()],
    ),
    "fleets": Section(
        "fleets that have a name", _fleets, ("title", "also"), _find_fleets, lambda: list(fleet_names())
    ),
    "machines": Section(
        "machines of clouds, which are fleets too",
        _machines,
        ("cloud", "gpu", "gpus", "cpu", "memory"),
        _find_machines,
        lambda: list(machines()),
    ),
    "charts": Section(
        "Helm charts, their versions and values",
        _charts,
        ("title", "newest", "repository"),
        _find_charts,
        _chart_names,
    ),
    "systems": Section(
        "boards, servers and racks, and what NVLink joins there",
        _systems,
        ("title", "joined", "promise", "gpus"),
        _exactly(_systems),
        lambda: list(systems()),
    ),
}
