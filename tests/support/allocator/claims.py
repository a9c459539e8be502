"""Classes and claims for the allocator's small adversarial clusters."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from dra_infra.kubernetes.scheduler.allocator import Variant

_DRIVER: Final = "device.driver == 'a.example.com'"
_SELECTORS: Final = (
    _DRIVER,
    "device.attributes['a.example.com'].?size.orValue(0) >= 2",
    "device.attributes['a.example.com'].?size.orValue(2) != 1",
    "!device.allowMultipleAllocations",
    "!('mem' in device.capacity['a.example.com']) || device.capacity['a.example.com'].mem.isGreaterThan(quantity('3'))",
)
_CARELESS: Final = "device.attributes['a.example.com'].size > 0"
_BROKEN: Final = (
    "device.nope == 1",
    "1 +",
    "device.driver",
    "device.attributes['a.example.com'].size.nope()",
)
_SHARED: Final = ("a.example.com/size", "a.example.com/colour", "k8s.io/root", "a.example.com/derived")
_DERIVED: Final = (
    "device.attributes['a.example.com'].?size.orValue(7)",
    "device.driver",
    "device.attributes['a.example.com'].size",
    "device.attributes['a.example.com'].?size.orValue(1) > 1",
    "device.attributes['a.example.com'].?size.orValue(1) > 1",
    "device.attributes['k8s.io'].?root.orValue('z')",
    "device.nope",
)
_AMOUNTS: Final = ("1", "2", "3", "5", "750m", "1500m", "1Ki", "2k")


def _opaque(value: str) -> dict[str, Any]:
    return {"opaque": {"driver": "a.example.com", "parameters": {"mode": value}}}


CLASSES: Final[list[dict[str, Any]]] = [
    {"metadata": {"name": "any"}, "spec": {}},
    {
        "metadata": {"name": "a"},
        "spec": {
            "selectors": [{"cel": {"expression": _DRIVER}}],
            "config": [_opaque("class"), _opaque("other")],
        },
    },
    {"metadata": {"name": "careless"}, "spec": {"selectors": [{"cel": {"expression": _CARELESS}}]}},
    {"metadata": {"name": "configured"}, "spec": {"config": [_opaque("configured")]}},
]


def claims_of(random: Random, variant: Variant) -> list[dict[str, Any]]:
    """The claims of one pod."""
    return [_claim(random, variant, number) for number in range(random.choice((1, 1, 1, 2)))]


def _claim(random: Random, variant: Variant, number: int) -> dict[str, Any]:
    requests = [_request(random, variant, f"r{index}") for index in range(random.choice((1, 1, 1, 2, 2, 3)))]
    names = [request["name"] for request in requests]
    names += [
        f"{request['name']}/{entry['name']}"
        for request in requests
        for entry in request.get("firstAvailable", ())
    ]
    devices: dict[str, Any] = {"requests": requests}
    constraints = [_constraint(random, variant, names) for _ in range(random.choice((0, 0, 0, 1, 1, 2)))]
    if constraints:
        devices["constraints"] = constraints
    configs = [
        {**_opaque(f"claim{index}"), "requests": _some(random, names)}
        for index in range(random.choice((0, 0, 0, 1, 2)))
    ]
    if configs:
        devices["config"] = configs
    if random.random() < 0.02:
        _spoil(random, devices)
    metadata = {"name": f"c{number}", "namespace": "ml"}
    return {"metadata": metadata, "spec": {"devices": devices}}


def _spoil(random: Random, devices: dict[str, Any]) -> None:
    """What no API server stores, but an allocator may meet in what a newer one stored."""
    request = random.choice(devices["requests"])
    leaf = request["exactly"] if "exactly" in request else request["firstAvailable"][0]
    match random.randrange(6):
        case 0:
            leaf["selectors"] = [{}]
        case 1:
            leaf["allocationMode"] = random.choice(("", "Some"))
        case 2:
            leaf["deviceClassName"] = ""
        case 3:
            devices["constraints"] = [{}]
        case 4:
            leaf["selectors"] = [{"cel": {"expression": random.choice(_BROKEN)}}]
        case _:
            request.pop("exactly", None)
            request.pop("firstAvailable", None)


def _some(random: Random, names: list[str]) -> list[str]:
    return [] if random.random() < 0.4 else random.sample(names, random.randint(1, min(3, len(names))))


def _constraint(random: Random, variant: Variant, names: list[str]) -> dict[str, Any]:
    allows_distinct = variant.is_extended or random.random() < 0.1
    kind = "distinctAttribute" if allows_distinct and random.random() < 0.5 else "matchAttribute"
    found: dict[str, Any] = {kind: random.choice(_SHARED[:3])}
    if variant.features.derived_attributes and random.random() < 0.4:
        found[kind] = _SHARED[3]
    if requests := _some(random, names):
        found["requests"] = requests
    return found


def _request(random: Random, variant: Variant, name: str) -> dict[str, Any]:
    if random.random() < (0.35 if variant.features.prioritized_list else 0.02):
        entries = [
            {"name": f"s{index}", **_leaf(random, variant)} for index in range(random.choice((1, 2, 2, 3)))
        ]
        return {"name": name, "firstAvailable": entries}
    leaf = _leaf(random, variant)
    if random.random() < (0.15 if variant.features.admin_access else 0.01):
        leaf["adminAccess"] = random.random() < 0.8
    return {"name": name, "exactly": leaf}


def _leaf(random: Random, variant: Variant) -> dict[str, Any]:
    classes = random.choices(("any", "a", "configured", "careless", "ghost"), (60, 20, 16, 3.5, 0.5))
    leaf: dict[str, Any] = {"deviceClassName": classes[0], "allocationMode": "ExactCount"}
    if random.random() < 0.14:
        leaf["allocationMode"] = "All"
    else:
        leaf["count"] = random.choice((1, 1, 1, 1, 2, 2, 3))
    if random.random() < 0.25:
        texts = [random.choice(_SELECTORS) for _ in range(random.choice((1, 1, 2)))]
        if random.random() < 0.04:
            texts.append(_CARELESS)
        leaf["selectors"] = [{"cel": {"expression": text}} for text in texts]
    if random.random() < 0.2:
        leaf["tolerations"] = [
            random.choice(
                (
                    {"operator": "Exists"},
                    {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
                    {"key": "k", "operator": "Equal", "value": "v"},
                    {"key": "l", "operator": "Equal", "value": "v", "effect": "NoExecute"},
                )
            )
        ]
    if random.random() < (0.3 if variant.features.consumable_capacity else 0.01):
        leaf["capacity"] = {"requests": _amounts(random)}
    if variant.number >= 37 and random.random() < (0.4 if variant.features.derived_attributes else 0.01):
        leaf["derivedAttributes"] = [{"name": _SHARED[3], "expression": random.choice(_DERIVED)}]
    return leaf


def _amounts(random: Random) -> dict[str, str]:
    names = random.choices((["mem"], ["cores"], ["mem", "cores"], ["other"], []), (5, 3, 2, 1, 1))[0]
    amounts = {name: random.choice(_AMOUNTS) for name in names}
    if "mem" in amounts and random.random() < 0.03:
        amounts["mem"] = random.choice(("8E", "9223372036854775807", "10E", "-1", "1u"))
    return amounts
