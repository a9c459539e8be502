"""What the shell offers behind an option: names that the catalogue knows. Nothing is loaded before the shell asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

Offer = Callable[["click.Context", "click.Parameter", str], list[str]]


def offered(names: Callable[[str], list[str]]) -> Offer:
    """What click asks with, of a function that wants the typed text alone."""
    return lambda _context, _parameter, incomplete: names(incomplete)


def fleets(incomplete: str) -> list[str]:
    """Fleets by name; of several terms the last is completed."""
    from dra_infra.catalog.fleet_kinds import fleet_names

    before, comma, last = incomplete.rpartition(",")
    space = " " if comma else ""
    return [f"{before}{comma}{space}{name}" for name in _beginning(last.strip(), fleet_names())]


def minors(incomplete: str) -> list[str]:
    """Kubernetes minors that are supported."""
    from dra_infra.model.gates import SUPPORTED_MINORS

    return _beginning(incomplete, SUPPORTED_MINORS)


def drivers(incomplete: str) -> list[str]:
    """Release lines of NVIDIA's driver, and `newest`."""
    from dra_infra.catalog.drivers import drivers as known

    return _beginning(incomplete, [*known()["gpu.nvidia.com"].by_line, "newest"])


def gates(incomplete: str) -> list[str]:
    """Feature gates of Kubernetes that decide something about DRA, with both values."""
    from dra_infra.model.gates import GATES

    return _beginning(incomplete, [f"{name}={value}" for name in GATES for value in ("true", "false")])


def sections(incomplete: str) -> list[str]:
    """Sections of the catalogue."""
    from dra_infra.cli.catalog_sections import SECTIONS

    return _beginning(incomplete, SECTIONS)


def _beginning(text: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(text)]
