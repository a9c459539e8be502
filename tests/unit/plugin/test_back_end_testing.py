"""`check_back_end` passes a back end that keeps its promises, and names the step at which another one breaks them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_end import Health, Inventory
from dra_infra.plugin.claims import Claim, Edits
from dra_infra.plugin.command.self_test import _count
from dra_infra.plugin.inventories import find_refused_names
from dra_infra.plugin.testing import PluginNode, check_back_end, claim_of

LIT: set[str] = set()
"""Lamps that are on: hardware, which outlives a process."""


class Lamps:
    driver = "lamp.example.com"
    names = ("lamp-0", "lamp-1")

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def inventory(self) -> Inventory:
        return Inventory(devices=tuple(Device(name=each) for each in self.names))

    def watch(self, changed: Callable[[], None]) -> None: ...

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        LIT.update(each.device for each in claim.devices)
        self.seen.add(claim.uid)
        return [Edits(env=(f"LAMP={each.device}",)) for each in claim.devices]

    def release(self, claim: Claim) -> None:
        LIT.difference_update(each.device for each in claim.devices)

    def close(self) -> None: ...


class Forgetful(Lamps):
    """Keeps in memory which claims it prepared."""

    def release(self, claim: Claim) -> None:
        if claim.uid in self.seen:
            super().release(claim)


class Strict(Lamps):
    """Refuses what it did not prepare."""

    def release(self, claim: Claim) -> None:
        if claim.uid not in self.seen:
            raise KeyError(claim.uid)


class Numbering(Lamps):
    """Gives another number to each call."""

    number = 0

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        Numbering.number += 1
        return [Edits(env=(f"LAMP={self.number}",)) for _ in claim.devices]


class Short(Lamps):
    def prepare(self, claim: Claim) -> Sequence[Edits]:
        return []


class Unnamed(Lamps):
    names = ("Lamp_0",)


class Bare(Lamps):
    names = ()


@pytest.fixture(autouse=True)
def _dark() -> None:
    LIT.clear()


@pytest.mark.parametrize("names", [("lamp-0",), ("lamp-0", "lamp-1")])
def test_a_back_end_that_keeps_its_promises_passes(tmp_path: Path, names: tuple[str, ...]):
    class Some(Lamps): ...

    Some.names = names  # type: ignore[assignment]
    check_back_end(Some, tmp_path, state=lambda: frozenset(LIT))
    # Every step of both calls was one at which the plugin was killed.
    assert len([*tmp_path.glob("prepare-*")]) > 10
    assert len([*tmp_path.glob("release-*")]) > 6


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (Forgetful, r"prepare, killed where writing .*: the state is frozenset\(\{'lamp-1'\}\)"),
        (Strict, "release of a claim that was never prepared: KeyError"),
        (Numbering, "prepare again: it returns"),
        (Short, "prepare: "),
        (Unnamed, "call it lamp-0"),
        (Bare, "has no device"),
    ],
)  # fmt: skip
def test_a_broken_promise_is_named_with_its_step(tmp_path: Path, kind: type[Lamps], told: str):
    with pytest.raises(AssertionError, match=told):
        check_back_end(kind, tmp_path, state=lambda: frozenset(LIT))


def test_a_node_is_for_tests_of_ones_own_too(tmp_path: Path):
    node = PluginNode(Lamps, tmp_path)
    assert node.prepare(claim_of(1, "lamp-0")) == [{"env": ["LAMP=lamp-0"]}]
    assert node.kill_at(0, lambda: node.plugin.release(claim_of(1).uid))
    node.restart()
    assert [*node.plugin.prepared()] == [claim_of(1).uid]


@pytest.mark.parametrize(
    ("inventory", "paths"),
    [
        (Inventory(devices=(Device(name="a"), Device(name="b"))), []),
        (Inventory(devices=(Device(name="Port_A"),)), ["device 'Port_A'"]),
        (Inventory(devices=(Device(name="a"), Device(name="a"))), ["device 'a'"]),
        (Inventory(devices=(Device(name="a"),), health={"b": Health()}), ["device 'b'"]),
        (Inventory(devices=(Device(name="x" * 64),)), [f"device '{'x' * 64}'"]),
    ],
)
def test_names_that_no_slice_may_have_are_found_without_a_server(inventory: Inventory, paths: list[str]):
    found = [*find_refused_names(inventory)]
    assert [(each.path, each.code) for each in found] == [(path, "device-name-refused") for path in paths]


def test_the_self_test_of_the_plugin_refuses_such_names():
    kept: list[Any] = []
    with pytest.raises(PluginError) as caught:
        _count(Unnamed(), kept.append)
    assert [each.code for each in caught.value.problems] == ["device-name-refused"]
    assert kept == []
