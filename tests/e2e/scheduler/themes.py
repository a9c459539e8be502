"""Scenarios drawn from a seed, a function for each theme: devices that one pod has to itself."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.support.scheduler.objects import (
    claim,
    claim_spec,
    device,
    device_class,
    exactly,
    ladder,
    node,
    pod,
    resource_slice,
    template,
    wish,
)
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Manifest

DRIVER = "gpu.example.com"
SIZES = ("40Gi", "80Gi", "141Gi")


def gpus(name: str = "gpu", **spec: Any) -> Manifest:
    """The class of all devices of the driver."""
    return device_class(name, f"device.driver == '{DRIVER}'", **spec)


def at_least(memory: str) -> str:
    """A selector for devices with so much memory."""
    return f"device.capacity['{DRIVER}'].memory.compareTo(quantity('{memory}')) >= 0"


def pods_of(random: Random, templates: Sequence[str], most: int) -> tuple[Manifest, ...]:
    """Pods of randomly chosen templates, the first of the first one."""
    chosen = [templates[0], *(random.choice(templates) for _ in range(random.randint(most - 2, most) - 1))]
    return tuple(pod(f"p{number}", templates=[name]) for number, name in enumerate(chosen))


def local(node_name: str, devices: Sequence[Manifest], **more: Any) -> Manifest:
    """The one slice of a node."""
    return resource_slice(node_name, DRIVER, devices, nodeName=node_name, **more)


def counts(random: Random) -> Scenario:
    """Pods take a few devices each, until some have none left."""
    nodes = [f"n{number}" for number in range(random.choice((2, 3)))]
    slices = [local(name, [device(f"g{index}") for index in range(random.randint(1, 4))]) for name in nodes]
    templates = [template(f"t{count}", claim_spec(exactly("r", "gpu", count=count))) for count in (1, 2, 3)]
    names = random.sample(["t1", "t2", "t3"], 3)
    return Scenario(
        name="counts",
        fleet=(gpus(), *map(node, nodes), *slices),
        objects=tuple(templates),
        pods=pods_of(random, names, 8),
    )


def everything(random: Random) -> Scenario:
    """Mode All on nodes of which some are in use, with a selector that leaves nothing on some."""
    sizes = random.sample((1, 2, 3, 4), 3)
    slices = [
        local(f"n{number}", [device(f"g{index}", memory=random.choice(SIZES)) for index in range(size)])
        for number, size in enumerate(sizes)
    ]
    everything_ = wish("gpu", allocationMode="All")
    large = wish("gpu", at_least("80Gi"), allocationMode="All")
    templates = [
        template("all", claim_spec({"name": "r", "exactly": everything_})),
        template("large", claim_spec({"name": "r", "exactly": large})),
        template("one", claim_spec(exactly("r", "gpu"))),
    ]
    first = random.choice(["all", "large"])
    return Scenario(
        name="everything",
        fleet=(gpus(), *(node(f"n{number}") for number in range(3)), *slices),
        objects=tuple(templates),
        pods=pods_of(random, [first, "one", "all", "large"], 5),
    )


def ladders(random: Random) -> Scenario:
    """The first rung that works, on nodes of different devices that fill up."""
    slices = [
        local(
            f"n{number}",
            [device(f"g{index}", memory=random.choice(SIZES)) for index in range(random.randint(1, 3))],
        )
        for number in range(2)
    ]
    rungs = [wish("gpu", at_least(size), count=random.randint(1, 2)) for size in random.sample(SIZES, 2)]
    wide = ladder("r", wish("gpu", at_least("141Gi")), *rungs, wish("gpu", count=1))
    pair = claim_spec(ladder("a", *rungs), ladder("b", *reversed(rungs), wish("gpu")))
    config = [{"requests": ["r/rung-1"], "opaque": {"driver": DRIVER, "parameters": {"rung": 1}}}]
    return Scenario(
        name="ladders",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=(template("wide", claim_spec(wide, config=config)), template("pair", pair)),
        pods=pods_of(random, ["wide", "pair"], 5),
    )


def matched(random: Random) -> Scenario:
    """Devices that have to share an attribute, over one request and over two."""

    def some(number: int) -> list[Manifest]:
        return [
            device(f"g{index}", attributes={"root": random.choice("ab"), "index": index})
            for index in range(number)
        ]

    slices = [local(f"n{number}", some(random.randint(2, 5))) for number in range(2)]
    constraint = {"matchAttribute": f"{DRIVER}/root"}
    both = claim_spec(
        exactly("a", "gpu"),
        exactly("b", "gpu", count=2),
        constraints=[{**constraint, "requests": ["a", "b"]}],
    )
    return Scenario(
        name="matched",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=(
            template("pair", claim_spec(exactly("r", "gpu", count=2), constraints=[constraint])),
            template("both", both),
            template("one", claim_spec(exactly("r", "gpu"))),
        ),
        pods=pods_of(random, random.sample(["pair", "both", "one"], 3), 4),
    )


def distinct(random: Random) -> Scenario:
    """Devices that may not share an attribute."""
    slices = [
        local(
            f"n{number}",
            [
                device(f"g{index}", attributes={"root": random.choice("abc")})
                for index in range(random.randint(2, 5))
            ],
        )
        for number in range(2)
    ]
    constraint = {"distinctAttribute": f"{DRIVER}/root"}
    return Scenario(
        name="distinct",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=tuple(
            template(f"t{count}", claim_spec(exactly("r", "gpu", count=count), constraints=[constraint]))
            for count in (2, 3)
        ),
        pods=pods_of(random, random.sample(["t2", "t3"], 2), 4),
    )


def two_drivers(random: Random) -> Scenario:
    """A GPU and a network card on one root, each of its own driver."""
    root = "resource.kubernetes.io/pcieRoot"

    def some(prefix: str) -> list[Manifest]:
        return [
            device(f"{prefix}{index}", attributes={root: random.choice(("pci0000:00", "pci0000:40"))})
            for index in range(random.randint(1, 3))
        ]

    fleet = [gpus(), device_class("nic", "device.driver == 'nic.example.com'"), node("n0"), node("n1")]
    for number in range(2):
        fleet.append(local(f"n{number}", some("g")))
        fleet.append(resource_slice(f"n{number}-nics", "nic.example.com", some("c"), nodeName=f"n{number}"))
    near = claim_spec(exactly("gpu", "gpu"), exactly("nic", "nic"), constraints=[{"matchAttribute": root}])
    return Scenario(
        name="two drivers",
        fleet=tuple(fleet),
        objects=(template("near", near), template("gpu", claim_spec(exactly("r", "gpu")))),
        pods=pods_of(random, ["near", "gpu", "near"], 5),
    )


def several_claims(random: Random) -> Scenario:
    """Pods with several claims of several requests, of which all or none are served."""
    slices = [
        local(
            f"n{number}",
            [device(f"g{index}", memory=random.choice(SIZES)) for index in range(random.randint(2, 4))],
        )
        for number in range(2)
    ]
    large = claim_spec(exactly("large", "gpu", at_least("80Gi")))
    pair = claim_spec(exactly("a", "gpu"), exactly("b", "gpu", at_least(random.choice(SIZES))))
    chosen = [random.sample(["large", "pair"], random.randint(1, 2)) for _ in range(4)]
    return Scenario(
        name="several claims",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=(template("large", large), template("pair", pair)),
        pods=tuple(
            pod(f"p{number}", templates=names) for number, names in enumerate([["pair", "large"], *chosen])
        ),
    )


def shared_claims(random: Random) -> Scenario:
    """Pods that share a claim follow the first one, also where they want devices of their own as well."""
    slices = [
        local(f"n{number}", [device(f"g{index}") for index in range(random.randint(1, 3))])
        for number in range(2)
    ]
    pods = [pod("p0", claims=["shared"]), pod("p1", claims=["shared"])]
    for number in range(2, 5):
        uses = random.choice((["shared"], [], ["shared"]))
        pods.append(pod(f"p{number}", claims=uses, templates=["own"]))
    return Scenario(
        name="shared claims",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=(
            claim("shared", claim_spec(exactly("r", "gpu", count=random.randint(1, 2)))),
            template("own", claim_spec(exactly("r", "gpu"))),
        ),
        pods=tuple(pods),
        pinned=False,
    )
