"""Platforms drawn from a seed: pods without claims beside those with, kinds of hardware side by side, racks, and zones.

Only the verdict on all pods at once is held to these; the first pod has a claim, so there always is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from tests.e2e.scheduler.themes import DRIVER, gpus, local
from tests.e2e.scheduler.themes_of_places import ZONE, in_zone
from tests.support.scheduler.objects import claim_spec, device, exactly, node, pod, resource_slice, template
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import HOSTNAME
from tools.cluster import Manifest

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def crowded(random: Random) -> Scenario:
    """Nodes with little CPU or few pod slots, and pods of which half have no claims."""
    offers = random.choice(({}, {}, {"pods": "3"}))
    nodes = [f"n{number}" for number in range(random.choice((2, 3)))]
    slices = [local(name, [device(f"g{index}") for index in range(random.randint(1, 2))]) for name in nodes]
    pods = [pod("p0", templates=["one"], cpu=str(random.randint(1, 4)))]
    for number in range(1, random.randint(4, 7)):
        templates = random.choice(([], [], ["one"], ["two"]))
        pods.append(pod(f"p{number}", templates=templates, cpu=random.choice(("500m", "1", "2", "3"))))
    return Scenario(
        name="crowded",
        fleet=(gpus(), *(node(name, cpu="4", offers=offers) for name in nodes), *slices),
        objects=_sizes(),
        pods=tuple(pods),
    )


def crowded_zones(random: Random) -> Scenario:
    """The same on nodes of two zones, with pods that look at each other or want a port of the node."""
    nodes = [node(f"n{number}", labels={ZONE: zone}, cpu="4") for number, zone in enumerate("aab")]
    slices = [
        local(f"n{number}", [device(f"g{index}") for index in range(random.randint(1, 2))])
        for number in range(3)
    ]
    pods = [
        pod(
            f"p{number}",
            templates=["one"] if not number or random.random() < 0.5 else [],
            cpu=random.choice(("500m", "1", "2")),
            labels={"app": random.choice("xy")},
            **_rule(random),
        )
        for number in range(random.randint(4, 6))
    ]
    return Scenario(name="crowded zones", fleet=(gpus(), *nodes, *slices), objects=_sizes(), pods=tuple(pods))


def zoned(random: Random) -> Scenario:
    """Nine nodes of three zones with room, and pods that spread, keep apart or want to be near: too many states to walk through."""
    nodes = [node(f"n{number}", labels={ZONE: "abc"[number % 3]}, cpu="16") for number in range(9)]
    slices = [local(f"n{number}", [device(f"g{index}") for index in range(2)]) for number in range(9)]
    pods = [
        pod(
            f"p{number}",
            templates=["one"] if not number or random.random() < 0.6 else [],
            cpu=random.choice(("250m", "1", "2")),
            labels={"app": random.choice("xy")},
            **_rule(random),
        )
        for number in range(random.randint(5, 12))
    ]
    return Scenario(name="zoned", fleet=(gpus(), *nodes, *slices), objects=_sizes(), pods=tuple(pods))


def mixed(random: Random) -> Scenario:
    """Whole devices of two products, and a GPU in parts, on nodes side by side."""
    parts = [
        device(
            f"part-{size}-{index}",
            attributes={"product": "part", "size": size},
            consumesCounters=[{"counterSet": "board", "counters": {"parts": {"value": str(size)}}}],
        )
        for size in (1, 2)
        for index in range(4 // size)
    ]
    counters = [{"name": "board", "counters": {"parts": {"value": "4"}}}]
    fleet = [
        gpus(),
        *(node(f"n{number}", cpu=random.choice(("4", "8"))) for number in range(3)),
        local("n0", [device(f"g{index}", attributes={"product": "large"}) for index in range(2)]),
        local(
            "n1",
            [
                device(f"g{index}", attributes={"product": random.choice(("large", "small"))})
                for index in range(2)
            ],
        ),
        resource_slice("n2-counters", DRIVER, pool="n2", count=2, counters=counters, nodeName="n2"),
        resource_slice("n2-devices", DRIVER, parts, pool="n2", count=2, nodeName="n2"),
    ]
    product = f"device.attributes['{DRIVER}'].product"
    size = f"device.attributes['{DRIVER}'].size"
    objects = (
        template("large", claim_spec(exactly("r", "gpu", f"{product} == 'large'"))),
        template("whole", claim_spec(exactly("r", "gpu", f"{product} != 'part'"))),
        template("part-1", claim_spec(exactly("r", "gpu", f"{product} == 'part' && {size} == 1"))),
        template("part-2", claim_spec(exactly("r", "gpu", f"{product} == 'part' && {size} == 2"))),
        template("any", claim_spec(exactly("r", "gpu"))),
    )
    names = [each["metadata"]["name"] for each in objects]
    pods = [
        pod(
            f"p{number}",
            templates=[random.choice(names)] if not number or random.random() < 0.8 else [],
            cpu=random.choice(("500m", "1", "3")),
        )
        for number in range(random.randint(4, 8))
    ]
    return Scenario(name="mixed", fleet=tuple(fleet), objects=objects, pods=tuple(pods))


def racks(random: Random) -> Scenario:
    """Two racks, each with channels that its nodes share, as NVLink domains have them, and GPUs of the nodes."""
    nodes = [node(f"n{number}", labels={ZONE: zone}, cpu="4") for number, zone in enumerate("aabb")]
    slices = [
        local(
            f"n{number}",
            [device(f"g{index}", attributes={"kind": "gpu"}) for index in range(random.randint(1, 2))],
        )
        for number in range(4)
    ]
    channels = [
        resource_slice(
            f"rack-{zone}",
            DRIVER,
            [
                device(f"channel-{index}", attributes={"kind": "channel"})
                for index in range(random.randint(1, 2))
            ],
            nodeSelector=in_zone(zone),
        )
        for zone in "ab"
    ]
    kind = f"device.attributes['{DRIVER}'].kind"
    gpu, channel = (exactly(name, "gpu", f"{kind} == '{name}'") for name in ("gpu", "channel"))
    objects = (template("linked", claim_spec(gpu, channel)), template("one", claim_spec(gpu)))
    pods = [
        pod(
            f"p{number}",
            templates=[["linked"], ["one"], []][0 if not number else random.choice((0, 0, 1, 2))],
            cpu=random.choice(("500m", "2")),
        )
        for number in range(random.randint(3, 6))
    ]
    return Scenario(
        name="racks", fleet=(gpus(), *nodes, *slices, *channels), objects=objects, pods=tuple(pods)
    )


def ending_attempts(random: Random) -> Scenario:
    """Nodes on which an error ends the attempt of a pod that another node could take: a constraint on all devices, an attribute that is missing."""
    nodes = [node(f"n{number}", cpu="4") for number in range(random.choice((2, 3)))]
    slices = [
        local(
            each["metadata"]["name"],
            [
                device(
                    f"g{index}",
                    attributes={
                        "model": random.choice(("a", "a", "b")),
                        **random.choice(({}, {"size": 1}, {"size": 1})),
                    },
                )
                for index in range(random.randint(1, 2))
            ],
        )
        for each in nodes
    ]
    same = [{"matchAttribute": f"{DRIVER}/model"}]
    objects = (
        template("one", claim_spec(exactly("r", "gpu"))),
        template("same", claim_spec(exactly("r", "gpu", allocationMode="All"), constraints=same)),
        template("sized", claim_spec(exactly("r", "gpu", f"device.attributes['{DRIVER}'].size == 1"))),
    )
    pods = [
        pod(f"p{number}", templates=[random.choice(("one", "same", "same", "sized"))])
        for number in range(random.randint(2, 4))
    ]
    return Scenario(
        name="ending attempts", fleet=(gpus(), *nodes, *slices), objects=objects, pods=tuple(pods)
    )


PLATFORMS: Final[tuple[Callable[[Random], Scenario], ...]] = (
    crowded,
    crowded_zones,
    zoned,
    mixed,
    racks,
    ending_attempts,
)


def _sizes() -> tuple[Manifest, ...]:
    return tuple(
        template(name, claim_spec(exactly("r", "gpu", count=number)))
        for number, name in ((1, "one"), (2, "two"))
    )


def _rule(random: Random) -> Manifest:
    """Mostly nothing, or how a pod looks at others by zone or node, or a port."""
    selector = {"labelSelector": {"matchLabels": {"app": random.choice("xy")}}}
    term = {**selector, "topologyKey": random.choice((ZONE, ZONE, HOSTNAME))}
    spread = {**term, "maxSkew": random.choice((1, 2)), "whenUnsatisfiable": "DoNotSchedule"}
    rules: Sequence[Manifest] = (
        {},
        {},
        {"affinity": {"podAffinity": {REQUIRED: [term]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}},
        {"topologySpreadConstraints": [spread]},
        {"ports": [{"containerPort": 80, "hostPort": 8080}]},
    )
    return random.choice(rules)
