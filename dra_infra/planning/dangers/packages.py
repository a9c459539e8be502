"""Packages of the program whose release decides bytes, and that the change pins otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dra_infra.model.metadata import ObjectRef
from dra_infra.planning.dangers.record import Danger
from dra_infra.planning.dangers.sides import Sides

_EFFECTS: Final = {
    "dra-infra": "names of claims and templates follow from their content, so new bytes roll over every pod that uses them",
    "pulumi": "the engine's SDK decides what is registered",
    "pulumi-kubernetes": "the provider comes with it, and decides what is replaced and what is sent",
}


def find_package_changes(sides: Sides) -> Iterator[Danger]:
    """`package-changed`: both sides were compiled with what is installed here, so its effect does not show."""
    before, after = sides.base.pins, sides.head.pins
    for name, effect in _EFFECTS.items():
        was, now = before.get(name), after.get(name)
        if was is not None and now is not None and was != now:
            yield Danger(
                who=ObjectRef(kind="package", name=name),
                code="package-changed",
                message=f"goes from {was} to {now}: {effect}. Both sides were compiled with what is installed here, so what it changes does not show",
                hint=f"merge it alone, and look at `pulumi preview` with {name} {now} installed",
            )
