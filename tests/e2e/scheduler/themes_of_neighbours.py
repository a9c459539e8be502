"""Scenarios drawn from a seed: pods that keep each other off nodes, and devices that pods ask for without a claim."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.e2e.scheduler.themes import gpus, local
from tests.e2e.scheduler.themes_of_places import ZONE
from tests.support.scheduler.objects import claim_spec, container, device, exactly, node, pod, template
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import HOSTNAME
from tools.cluster import Manifest

RESOURCE = "example.com/gpu"
IMPLICIT = "deviceclass.resource.kubernetes.io/plain"


def zones(random: Random) -> tuple[Manifest, ...]:
    """Three nodes of two zones, each with some devices."""
    nodes = [node(f"n{number}", labels={ZONE: zone}) for number, zone in enumerate("aab")]
    slices = [
        local(f"n{number}", [device(f"g{index}") for index in range(random.randint(1, 3))])
        for number in range(3)
    ]
    return (gpus(), *nodes, *slices)


def affinity(random: Random) -> Scenario:
    """Pods that must be near pods of a label, or may not be."""
    kinds = []
    for field in ("podAffinity", "podAntiAffinity"):
        for key in (ZONE, HOSTNAME):
            term = {"labelSelector": {"matchLabels": {"app": random.choice("xy")}}, "topologyKey": key}
            kinds.append({"affinity": {field: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    rules: list[Manifest] = [*kinds, {}, {}]
    random.shuffle(rules)
    return _of_pods("affinity", zones(random), random, rules)


def spread(random: Random) -> Scenario:
    """Pods that must be spread evenly over zones or nodes."""

    def evenly(key: str) -> Manifest:
        constraint = {
            "maxSkew": random.choice((1, 2)),
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        if random.random() < 0.3:
            constraint["minDomains"] = 3
        return {"topologySpreadConstraints": [constraint]}

    rules = [random.choice((evenly(ZONE), evenly(HOSTNAME), {})) for _ in range(6)]
    return _of_pods("spread", zones(random), random, rules)


def ports(random: Random) -> Scenario:
    """Pods that want the same port of their node."""
    rules = [
        {
            "ports": [
                {
                    "containerPort": 80,
                    "hostPort": random.choice((8080, 8080, 8081)),
                    **random.choice(({}, {}, {"hostIP": "127.0.0.1"}, {"protocol": "UDP"})),
                }
            ]
        }
        for _ in range(6)
    ]
    return _of_pods("ports", zones(random), random, rules)


def _near_nobody() -> Manifest:
    """Refused wherever the others went: which of equal nodes the scheduler takes is chance, and so is who is refused."""
    term = {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": HOSTNAME}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _of_pods(name: str, fleet: Sequence[Manifest], random: Random, rules: Sequence[Manifest]) -> Scenario:
    return Scenario(
        name=name,
        fleet=tuple(fleet),
        objects=(template("one", claim_spec(exactly("r", "gpu"))),),
        pods=tuple(
            pod(f"p{number}", templates=["one"], labels={"app": random.choice("xxy")}, **rule)
            for number, rule in enumerate([*rules, _near_nobody()])
        ),
        # Being sent to one node changes between which nodes pods are spread.
        pinned=False,
    )


def extended(random: Random) -> Scenario:
    """Limits of containers that classes serve, where no device plugin does."""
    offered = random.choice((None, {RESOURCE: "2"}, {RESOURCE: "0"}))
    slices = [
        local(f"n{number}", [device(f"g{index}") for index in range(random.randint(2, 4))])
        for number in range(2)
    ]

    def some(name: str, **fields: str) -> Manifest:
        limits = {random.choice((RESOURCE, IMPLICIT)): str(random.randint(1, 2))}
        return container(name, limits, **fields)

    pods = []
    for number in range(4):
        spec: Manifest = {"containers": [some("main"), *([some("second")] if random.random() < 0.3 else [])]}
        if random.random() < 0.5:
            spec["initContainers"] = [
                some("side", restartPolicy="Always") if random.random() < 0.5 else some("first")
            ]
        pods.append(pod(f"p{number}", **spec))
    return Scenario(
        name="extended",
        fleet=(
            gpus(extendedResourceName=RESOURCE),
            gpus("plain"),
            node("n0"),
            node("n1", offers=offered),
            *slices,
        ),
        objects=(),
        pods=tuple(pods),
    )
