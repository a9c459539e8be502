"""Valid ResourceClaims in all served versions."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.support.parity.cases import Object
from tests.support.parity.kinds import expressions
from tests.support.parity.kinds.metadata import metadata

GROUP = "resource.k8s.io"
VERSIONS = ("v1", "v1", "v1", "v1", "v1beta2", "v1beta1")
"""As often as they are picked."""

REQUESTS = ("gpu", "nic", "a", "0", "x-1", "r" * 63)
CHOICES = ("large", "small", "b", "1", "s" * 63)
CLASSES = ("gpu.example.com", "a", "x" * 63)
ATTRIBUTES = ("gpu.example.com/numa", "a/b", "pci.example.com/pcieRoot")
CAPACITIES: tuple[Any, ...] = ("40Gi", "1", "1.5", "100m", "1e3", "0", 5, "-1")


def claim(random: Random) -> Object:
    """A claim that every minor accepts with all gates on."""
    version = random.choice(VERSIONS)
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "ResourceClaim",
        "metadata": metadata(random),
        "spec": spec(random, version),
    }


def spec(random: Random, version: str) -> Object:
    """The spec of a claim, also of one in a template."""
    if random.random() < 0.04:
        return {} if random.random() < 0.5 else {"devices": {}}
    count = random.choices((0, 1, 2, 3, 32), (4, 50, 30, 14, 2))[0]
    names = list(REQUESTS[:count]) + [f"r{index}" for index in range(count - len(REQUESTS))]
    random.shuffle(names)
    requests = [_request(random, name) for name in names]
    devices: Object = {}
    if requests:
        devices["requests"] = requests
    if requests and version == "v1" and random.random() < 0.05:
        _derive(random, devices)
    references = _references(requests)
    if random.random() < 0.4:
        more = [_constraint(random, references) for _ in range(random.randint(1, 2))]
        devices["constraints"] = [*devices.get("constraints", ()), *more]
    if random.random() < 0.35:
        devices["config"] = [_config(random, references) for _ in range(random.randint(1, 2))]
    if version == "v1beta1":
        devices["requests"] = [_flat(request) for request in requests]
    return {"devices": devices}


def configuration(random: Random) -> Object:
    """Parameters for a driver."""
    parameters: Any = random.choice(
        ({}, {"a": 1}, {"apiVersion": "gpu.example.com/v1", "kind": "Config", "é": [1.5, None, True, "日本"]})
    )
    return {"opaque": {"driver": random.choice(("gpu.example.com", "a", "d" * 63)), "parameters": parameters}}


def selectors(random: Random) -> list[Object]:
    """One or two selectors."""
    return [{"cel": {"expression": expressions.valid(random)}} for _ in range(random.randint(1, 2))]


def toleration(random: Random) -> Object:
    """A toleration of each form."""
    return random.choice(
        (
            {"operator": "Exists"},
            {"key": "example.com/broken", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "a", "value": "b"},
            {"key": "a", "operator": "Equal", "value": "", "effect": "NoExecute", "tolerationSeconds": 30},
            {"value": "b"},
            {"key": "A/b", "operator": "Exists", "effect": "None"} if random.random() < 0.1 else {},
        )
    )


def _leaf(random: Random) -> Object:
    built: Object = {"deviceClassName": random.choice(CLASSES)}
    if random.random() < 0.4:
        built["selectors"] = selectors(random)
    mode = random.random()
    if mode < 0.2:
        built["allocationMode"] = "All"
    elif mode < 0.4:
        built |= {"allocationMode": "ExactCount", "count": random.choice((1, 2, 32, 2**63 - 1))}
    elif mode < 0.6:
        built["count"] = random.choice((1, 8))
    if random.random() < 0.2:
        built["tolerations"] = [toleration(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.2:
        names = random.sample(("memory", "gpu.example.com/memory", "cores"), random.randint(1, 2))
        built["capacity"] = {"requests": {name: random.choice(CAPACITIES) for name in names}}
    return built


def _request(random: Random, name: str) -> Object:
    if random.random() < 0.3:
        count = random.choices((1, 2, 3, 8), (3, 4, 2, 1))[0]
        names = [*CHOICES, *(f"s{index}" for index in range(8))][:count]
        return {"name": name, "firstAvailable": [{"name": one, **_leaf(random)} for one in names]}
    exactly = _leaf(random)
    if random.random() < 0.1:
        exactly["adminAccess"] = random.random() < 0.7
    return {"name": name, "exactly": exactly}


def _derive(random: Random, devices: Object) -> None:
    """Add an attribute that is derived, in one request, and a constraint that uses it."""
    name = random.choice(ATTRIBUTES)
    request = random.choice(devices["requests"])
    leaf = request.get("exactly") or request["firstAvailable"][0]
    leaf["derivedAttributes"] = [{"name": name, "expression": random.choice(expressions.DERIVED)}]
    devices["constraints"] = [{"matchAttribute": name}]


def _references(requests: list[Object]) -> list[str]:
    names = [request["name"] for request in requests]
    return names + [
        f"{request['name']}/{choice['name']}"
        for request in requests
        for choice in request.get("firstAvailable", ())
    ]


def _some(random: Random, references: list[str]) -> list[str]:
    return random.sample(references, random.randint(0, min(3, len(references))))


def _constraint(random: Random, references: list[str]) -> Object:
    field = random.choices(("matchAttribute", "distinctAttribute"), (3, 1))[0]
    built: Object = {field: random.choice(ATTRIBUTES)}
    if requests := _some(random, references):
        built["requests"] = requests
    return built


def _config(random: Random, references: list[str]) -> Object:
    built = configuration(random)
    if requests := _some(random, references):
        built["requests"] = requests
    return built


def _flat(request: Object) -> Object:
    if "exactly" not in request:
        return request
    return {"name": request["name"], **request["exactly"]}
