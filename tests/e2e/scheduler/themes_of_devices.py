"""Scenarios drawn from a seed: parts of devices, shares, taints, access of administrators, and broken pools."""

from __future__ import annotations

from random import Random

from tests.e2e.scheduler.themes import DRIVER, gpus, local, pods_of
from tests.support.scheduler.objects import (
    claim_spec,
    device,
    exactly,
    node,
    pod,
    resource_slice,
    template,
    wish,
)
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Manifest

SLICES = {"1g": 1, "2g": 2, "3g": 3, "7g": 7}
"""How many of the seven parts of a GPU each profile takes."""


def partitions(random: Random) -> Scenario:
    """Profiles of partitions that draw on the counters of their GPU."""
    fleet = [gpus(), node("n0"), node("n1")]
    for number in range(2):
        boards = range(random.randint(1, 2))
        counters = [
            {"name": f"board-{each}", "counters": {"parts": {"value": "7"}, "memory": {"value": "80Gi"}}}
            for each in boards
        ]
        devices = [
            device(
                f"g{each}-{profile}-{index}",
                attributes={"profile": profile},
                consumesCounters=[
                    {
                        "counterSet": f"board-{each}",
                        "counters": {"parts": {"value": str(parts)}, "memory": {"value": f"{parts * 10}Gi"}},
                    }
                ],
            )
            for each in boards
            for profile, parts in SLICES.items()
            for index in range(7 // parts)
        ]
        name = f"n{number}"
        fleet.append(
            resource_slice(f"{name}-counters", DRIVER, pool=name, count=2, counters=counters, nodeName=name)
        )
        fleet.append(resource_slice(f"{name}-devices", DRIVER, devices, pool=name, count=2, nodeName=name))
    templates = [
        template(
            profile, claim_spec(exactly("r", "gpu", f"device.attributes['{DRIVER}'].profile == '{profile}'"))
        )
        for profile in SLICES
    ]
    return Scenario(
        name="partitions",
        fleet=tuple(fleet),
        objects=tuple(templates),
        pods=pods_of(random, random.sample(list(SLICES), 4), 9),
    )


def shares(random: Random) -> Scenario:
    """Devices of which pods take shares, rounded as the policy says."""
    policies = (
        {"default": "10Gi", "validRange": {"min": "10Gi", "step": "10Gi"}},
        {"default": "8Gi", "validValues": ["8Gi", "16Gi", "40Gi"]},
        {"default": "5Gi"},
    )
    slices = []
    for number in range(2):
        devices = [
            {
                "name": f"g{index}",
                "allowMultipleAllocations": True,
                "capacity": {
                    "memory": {
                        "value": "40Gi",
                        "requestPolicy": random.choice(policies),
                    }
                },
            }
            for index in range(random.randint(1, 2))
        ]
        slices.append(local(f"n{number}", [*devices, device("whole", memory="40Gi")]))
    templates = [
        template(
            f"t{amount.lower()}", claim_spec(exactly("r", "gpu", capacity={"requests": {"memory": amount}}))
        )
        for amount in ("7Gi", "15Gi", "35Gi")
    ]
    templates.append(template("default", claim_spec(exactly("r", "gpu"))))
    templates.append(
        template("two", claim_spec(exactly("r", "gpu", count=2, capacity={"requests": {"memory": "12Gi"}})))
    )
    names = [each["metadata"]["name"] for each in templates]
    return Scenario(
        name="shares",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=tuple(templates),
        pods=pods_of(random, random.sample(names, len(names)), 12),
    )


def administrators(random: Random) -> Scenario:
    """Access for administrators goes to devices that are in use, and takes nothing from others."""
    slices = [
        local(f"n{number}", [device(f"g{index}") for index in range(random.randint(1, 3))])
        for number in range(2)
    ]
    look = wish("gpu", allocationMode="All", adminAccess=True)
    peek = wish("gpu", count=random.randint(1, 2), adminAccess=True)
    return Scenario(
        name="administrators",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=(
            template("look", claim_spec({"name": "r", "exactly": look})),
            template("peek", claim_spec({"name": "r", "exactly": peek})),
            template("take", claim_spec({"name": "r", "exactly": wish("gpu", allocationMode="All")})),
        ),
        pods=pods_of(random, ["look", "take", "peek", "take"], 6),
    )


def taints(random: Random) -> Scenario:
    """Tainted devices, for those who tolerate the taint, in whole and in part."""
    kinds = (
        {"key": "sick", "effect": "NoSchedule"},
        {"key": "sick", "value": "very", "effect": "NoExecute"},
        {"key": "seen", "effect": "None"},
    )
    slices = []
    for number in range(2):
        devices = []
        for index in range(random.randint(2, 4)):
            chosen = random.sample(kinds, random.choice((0, 1, 1, 2)))
            devices.append(device(f"g{index}", **({"taints": chosen} if chosen else {})))
        slices.append(local(f"n{number}", devices))
    tolerations = {
        "plain": [],
        "schedule": [{"key": "sick", "operator": "Exists", "effect": "NoSchedule"}],
        "very": [{"key": "sick", "operator": "Equal", "value": "very"}],
        "any": [{"operator": "Exists"}],
    }
    templates = [
        template(name, claim_spec(exactly("r", "gpu", **({"tolerations": each} if each else {}))))
        for name, each in tolerations.items()
    ]
    return Scenario(
        name="taints",
        fleet=(gpus(), node("n0"), node("n1"), *slices),
        objects=tuple(templates),
        pods=pods_of(random, random.sample(list(tolerations), 4), 9),
    )


def broken_pools(random: Random) -> Scenario:
    """Pools that miss a slice, that are between two generations, and whole ones beside them."""
    fleet = [gpus(), *(node(f"n{number}") for number in range(3))]
    old = [device("old-0"), device("old-1")]
    new = [device("new-0")]
    fleet.append(resource_slice("n0-a", DRIVER, old, pool="n0", count=2, nodeName="n0"))
    fleet.append(resource_slice("n1-a", DRIVER, old, pool="n1", nodeName="n1"))
    fleet.append(
        resource_slice(
            "n1-b", DRIVER, new, pool="n1", generation=2, count=random.choice((1, 2)), nodeName="n1"
        )
    )
    fleet.append(local("n2", [device(f"g{index}") for index in range(random.randint(1, 2))]))
    if random.random() < 0.5:
        fleet.append(resource_slice("n0-b", DRIVER, [device("whole")], pool="n0-more", nodeName="n0"))
    names = ["one", "all", "one"]
    random.shuffle(names)
    return Scenario(
        name="broken pools",
        fleet=tuple(fleet),
        objects=(
            template("one", claim_spec(exactly("r", "gpu"))),
            template("all", claim_spec(exactly("r", "gpu", allocationMode="All"))),
        ),
        pods=pods_of(random, names, 5),
    )


def careless(random: Random) -> Scenario:
    """A selector that reads what some devices lack: an error, but only where the search comes to such a device."""

    def some() -> list[Manifest]:
        return [
            device(f"g{index}", attributes={"size": random.randint(1, 3)} if random.random() < 0.7 else None)
            for index in range(random.randint(1, 3))
        ]

    read = f"device.attributes['{DRIVER}'].size >= 2"
    safe = f"device.attributes['{DRIVER}'].?size.orValue(0) >= 2"
    return Scenario(
        name="careless",
        fleet=(gpus(), node("n0"), node("n1"), local("n0", some()), local("n1", some())),
        objects=(
            template("careless", claim_spec(exactly("r", "gpu", read))),
            template("safe", claim_spec(exactly("r", "gpu", safe))),
            template("both", claim_spec(exactly("a", "gpu", safe), exactly("b", "gpu", read))),
        ),
        pods=pods_of(random, random.sample(["careless", "safe", "both"], 3), 4),
    )


def configured(random: Random) -> Scenario:
    """Configuration of the class and of the claim, for all requests and for some."""

    def opaque(mode: str) -> Manifest:
        return {"opaque": {"driver": DRIVER, "parameters": {"mode": mode}}}

    of_claim = [
        opaque("all"),
        {**opaque("some"), "requests": random.sample(["a", "b"], random.randint(1, 2))},
    ]
    spec = claim_spec(
        exactly("a", "gpu"), exactly("b", "other"), config=random.sample(of_claim, random.randint(1, 2))
    )
    return Scenario(
        name="configured",
        fleet=(
            gpus(config=[opaque("class"), opaque("second")]),
            gpus("other", config=[opaque("other")]),
            node("n0"),
            local("n0", [device(f"g{index}") for index in range(4)]),
        ),
        objects=(template("t", spec),),
        pods=(pod("p0", templates=["t"]), pod("p1", templates=["t", "t"])),
    )
