"""Clusters in which requests compete for a few devices of a few kinds, so that the search has to go back a lot.

`cases` has every feature, and most of its cases are decided without going back.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from dra_infra.kubernetes.scheduler.allocator import Variant
from dra_infra.kubernetes.scheduler.allocator.variants import asked_features, choose_variant
from tests.support.allocator.cases import BASIC, Case, defaults_of, everything_of, make_case, release_of
from tests.support.allocator.known import a_claim, a_leaf, a_slice, counting, selecting

_SIZE: Final = "device.attributes['a.example.com'].?size.orValue(0)"
_NAMES: Final = ("k8s.io/root", "a.example.com/colour", "a.example.com/uuid")


def draw_contested(random: Random, minor: str) -> Case:
    """One case for one minor."""
    gates = random.choice((defaults_of(minor), BASIC, BASIC, everything_of(minor)))
    release = release_of(minor, gates)
    variant = choose_variant(release, asked=asked_features(release))
    kinds = [_kind(random, variant) for _ in range(random.choice((1, 1, 2, 3)))]
    style = random.choice(("plain", "plain", "counters", "shares"))
    if style == "shares" and not (variant.number >= 36 and variant.features.consumable_capacity):
        style = "plain"
    devices = [
        _device(random, f"d{number}", random.choice(kinds), style)
        for number in range(random.choice((3, 4, 5, 6)))
    ]
    slices = _slices(random, minor, devices, style)
    claims = [
        _claim(random, variant, number, style, most=len(devices))
        for number in range(random.choice((1, 1, 1, 2, 3)))
    ]
    held = [
        {"driver": "a.example.com", "pool": slice_["spec"]["pool"]["name"], "device": device["name"]}
        for slice_ in slices
        for device in slice_["spec"].get("devices", ())
        if random.random() < 0.08
    ]
    return make_case(minor, slices=slices, claims=claims, gates=gates, allocated={"devices": held})


def _kind(random: Random, variant: Variant) -> dict[str, Any]:
    attributes: dict[str, Any] = {"size": {"int": random.choice((1, 2))}}
    if random.random() < 0.8:
        attributes["colour"] = random.choice(({"string": "red"}, {"string": "blue"}, {"int": 1}))
    if random.random() < 0.8:
        value = random.choice(({"string": "x"}, {"string": "y"}, {"string": "z"}))
        if variant.features.list_attributes and random.random() < 0.5:
            value = {"strings": random.choice((["x", "y"], ["y", "z"], ["w"]))}
        attributes["k8s.io/root"] = value
    return attributes


def _device(random: Random, name: str, kind: dict[str, Any], style: str) -> dict[str, Any]:
    device: dict[str, Any] = {"name": name, "attributes": {**kind, "uuid": {"string": name}}}
    if random.random() < 0.1:
        device["attributes"].pop("colour", None)
    if random.random() < 0.05:
        device["taints"] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    if style == "counters":
        names = random.choice((["one"], ["one"], ["two"], ["one", "two"]))
        slots = {"slots": {"value": random.choice("112")}}
        if random.random() < 0.4:
            slots["mem"] = {"value": random.choice("123")}
        device["consumesCounters"] = [{"counterSet": each, "counters": slots} for each in names]
    if style == "shares" and random.random() < 0.7:
        device["allowMultipleAllocations"] = True
        device["capacity"] = {"mem": {"value": random.choice("234"), "requestPolicy": {"default": "1"}}}
    return device


def _slices(random: Random, minor: str, devices: list[dict[str, Any]], style: str) -> list[dict[str, Any]]:
    half = random.choice((len(devices), len(devices) // 2))
    parts = [part for part in (devices[:half], devices[half:]) if part]
    made = [a_slice(*part, name=f"s{at}", pool=f"p{at}") for at, part in enumerate(parts)]
    if style != "counters":
        return made
    found = []
    for each in made:
        with_counters = counting(1, minor, each)
        number = each["spec"]["pool"]["name"]
        for slice_ in with_counters:
            if "sharedCounters" in slice_["spec"]:
                slice_["metadata"]["name"] = f"{slice_['metadata']['name']}-{number}"
                slots = str(random.choice((1, 2, 3)))
                slice_["spec"]["sharedCounters"] = [
                    {
                        "name": name,
                        "counters": {"slots": {"value": slots}, "mem": {"value": random.choice("234")}},
                    }
                    for name in ("one", "two")
                ]
        found += with_counters
    return found


def _claim(random: Random, variant: Variant, number: int, style: str, *, most: int) -> dict[str, Any]:
    requests: list[Any] = []
    for _ in range(random.choice((1, 2, 2, 3))):
        leaf = _leaf(random, style, most)
        if variant.features.prioritized_list and random.random() < 0.15:
            requests.append([leaf, _leaf(random, style, most)])
            continue
        if variant.features.admin_access and random.random() < 0.06:
            leaf["adminAccess"] = True
        elif random.random() < 0.04:
            leaf = a_leaf(None, **{name: leaf[name] for name in ("selectors",) if name in leaf})
        requests.append(leaf)
    claim = a_claim(*requests, name=f"c{number}")
    constraints = []
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        kind = "distinctAttribute" if variant.is_extended and random.random() < 0.5 else "matchAttribute"
        constraint: dict[str, Any] = {kind: random.choice(_NAMES)}
        if random.random() < 0.4:
            names = [f"r{at}" for at in range(len(requests))]
            constraint["requests"] = random.sample(names, random.randint(1, min(2, len(names))))
        constraints.append(constraint)
    if constraints:
        claim["spec"]["devices"]["constraints"] = constraints
    return claim


def _leaf(random: Random, style: str, most: int) -> dict[str, Any]:
    rest: dict[str, Any] = {}
    if random.random() < 0.35:
        rest["selectors"] = selecting(f"{_SIZE} == {random.choice((1, 2))}")
    if random.random() < 0.1:
        rest["tolerations"] = [{"operator": "Exists"}]
    if style == "shares" and random.random() < 0.7:
        rest["capacity"] = {"requests": {"mem": random.choice("12")}}
    return a_leaf(min(random.choice((1, 1, 2, 2, 3, 4)), most), **rest)
