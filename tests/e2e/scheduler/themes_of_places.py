"""Scenarios drawn from a seed: where devices can be reached, and which nodes take a pod at all."""

from __future__ import annotations

from random import Random

from tests.e2e.scheduler.themes import DRIVER, gpus, local, pods_of
from tests.support.scheduler.objects import (
    claim,
    claim_spec,
    device,
    exactly,
    node,
    pod,
    resource_slice,
    template,
)
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Manifest

ZONE = "example.com/zone"


def in_zone(name: str) -> Manifest:
    """A node selector for a zone."""
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [name]}]}]}


def network_pools(random: Random) -> Scenario:
    """Devices that all nodes reach, that a zone reaches, and of one node."""
    nodes = [node(f"n{number}", labels={ZONE: zone}) for number, zone in enumerate("aab")]
    slices = [
        resource_slice(
            "zone-a", DRIVER, [device("z0"), device("z1")][: random.randint(1, 2)], nodeSelector=in_zone("a")
        ),
        local("n2", [device(f"g{index}") for index in range(random.randint(1, 2))]),
    ]
    if random.random() < 0.6:
        slices.append(resource_slice("everywhere", DRIVER, [device("e0")], allNodes=True))
    return Scenario(
        name="network pools",
        fleet=(gpus(), *nodes, *slices),
        objects=(
            template("one", claim_spec(exactly("r", "gpu"))),
            template("two", claim_spec(exactly("r", "gpu", count=2))),
        ),
        pods=pods_of(random, random.sample(["one", "two"], 2), 5),
    )


def nodes_of_devices(random: Random) -> Scenario:
    """A slice whose devices have places of their own."""
    places = ({"nodeName": "n0"}, {"nodeName": "n1"}, {"allNodes": True}, {"nodeSelector": in_zone("a")})
    devices = [device(f"g{index}", **random.choice(places)) for index in range(random.randint(3, 5))]
    return Scenario(
        name="nodes of devices",
        fleet=(
            gpus(),
            *(node(f"n{number}", labels={ZONE: zone}) for number, zone in enumerate("aab")),
            resource_slice("spread", DRIVER, devices, perDeviceNodeSelection=True),
        ),
        objects=(
            template("one", claim_spec(exactly("r", "gpu"))),
            template("two", claim_spec(exactly("r", "gpu", count=2))),
        ),
        pods=pods_of(random, random.sample(["one", "two"], 2), 5),
    )


def node_rules(random: Random) -> Scenario:
    """Selectors, affinity, taints, cordons and CPU keep pods off nodes that have devices."""
    taint = {"key": "example.com/reserved", "value": "ml", "effect": "NoSchedule"}
    nodes = [
        node("n0", labels={ZONE: "a"}, cpu=random.choice(("1", "4"))),
        node("n1", labels={ZONE: "b"}, taints=[taint]),
        node("n2", labels={ZONE: "a"}, cordoned=random.random() < 0.5, taints=random.choice(([], [taint]))),
    ]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": ZONE, "operator": random.choice(("In", "NotIn")), "values": ["a"]}
                        ]
                    }
                ]
            }
        }
    }
    tolerations = [{"key": "example.com/reserved", "operator": "Exists"}]
    rules = [
        {"nodeSelector": {ZONE: random.choice("ab")}},
        {"tolerations": tolerations},
        {"affinity": affinity, "tolerations": tolerations},
        {"cpu": "2"},
        {},
    ]
    random.shuffle(rules)
    return Scenario(
        name="node rules",
        fleet=(gpus(), *nodes, *(local(f"n{number}", [device("g0"), device("g1")]) for number in range(3))),
        objects=(template("one", claim_spec(exactly("r", "gpu"))),),
        pods=tuple(pod(f"p{number}", templates=["one"], **rule) for number, rule in enumerate(rules)),
    )


def shared_in_a_zone(random: Random) -> Scenario:
    """Pods that share a claim of a device that several nodes reach can be on any of them."""
    tied = {"nodeSelector": {ZONE: "b"}}
    return Scenario(
        name="shared in a zone",
        fleet=(
            gpus(),
            *(node(f"n{number}", labels={ZONE: zone}) for number, zone in enumerate("aab")),
            resource_slice("zone-a", DRIVER, [device("z0"), device("z1")], nodeSelector=in_zone("a")),
        ),
        objects=(
            claim("shared", claim_spec(exactly("r", "gpu", count=random.randint(1, 2)))),
            template("own", claim_spec(exactly("r", "gpu"))),
        ),
        pods=(
            pod("p0", claims=["shared"]),
            pod("p1", claims=["shared"]),
            pod("p2", claims=["shared"], **tied),
            pod("p3", claims=["shared"], templates=["own"]),
            pod("p4", templates=["own"]),
        ),
        pinned=False,
    )
