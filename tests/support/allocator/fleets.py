"""Slices of small adversarial clusters, and what is allocated in them."""

from __future__ import annotations

from random import Random
from typing import Any, Final

from dra_infra.kubernetes.scheduler.allocator import Variant

DRIVERS: Final = ("a.example.com", "b.example.com")
_POOLS: Final = ("p", "q")
_ZONE: Final = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
}
_FIELD: Final = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "zone", "operator": "Exists"}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}],
        }
    ]
}
_TERMS: Final = {"nodeSelectorTerms": [*_ZONE["nodeSelectorTerms"], *_FIELD["nodeSelectorTerms"]]}
_POLICIES: Final = (
    None,
    None,
    {"default": "2"},
    {"default": "2", "validValues": ["1", "2", "4"]},
    {"default": "1", "validRange": {"min": "1"}},
    {"default": "2", "validRange": {"min": "1", "max": "3", "step": "1"}},
    {"default": "1", "validRange": {"min": "1", "step": "2"}},
    {"default": "500m", "validRange": {"min": "500m", "step": "250m"}},
    {"default": "1Ki", "validRange": {"min": "1Ki", "step": "1Ki"}},
)


def slices_of(random: Random, variant: Variant, nodes: int) -> list[dict[str, Any]]:
    """A few pools, in an order that has nothing to do with their names."""
    slices: list[dict[str, Any]] = []
    if random.random() < 0.3:
        # One pool of one slice: the answer is one also where pools are not sorted.
        return _pool(random, variant, DRIVERS[0], "p", nodes, size=random.choice((2, 3, 4, 5)), simple=True)
    pairs = [(driver, pool) for driver in DRIVERS for pool in _POOLS]
    for driver, pool in random.sample(pairs, random.choice((1, 2, 2, 3))):
        slices += _pool(random, variant, driver, pool, nodes, size=random.choice((1, 2, 2, 3)), simple=False)
    random.shuffle(slices)
    return slices


def _pool(
    random: Random, variant: Variant, driver: str, pool: str, nodes: int, *, size: int, simple: bool
) -> list[dict[str, Any]]:
    parts = 1 if simple else random.choice((1, 1, 1, 2))
    has_counters = random.random() < 0.35
    is_inline = has_counters and variant.number == 34
    style = random.choices(("name", "all", "selector", "device"), (5, 4, 2, 2))[0]
    made = []
    for part in range(parts):
        devices = [
            _device(random, variant, f"d{part * size + number}", driver, counters=has_counters)
            for number in range(size)
        ]
        spec: dict[str, Any] = {"driver": driver, "devices": devices, **_place(random, style, nodes, devices)}
        if is_inline:
            spec["sharedCounters"] = _counters(random)
        if variant.number >= 37 and random.random() < 0.08:
            spec["skipNodeOperations"] = ["NodePrepareResources"]
        made.append(_slice(f"{random.choice('stu')}-{driver[0]}-{pool}-{part}", pool, spec))
    if has_counters and not is_inline:
        style = random.choice(("name", "all", "all"))
        spec = {"driver": driver, "sharedCounters": _counters(random), **_place(random, style, nodes, [])}
        made.append(_slice(f"{random.choice('az')}-{driver[0]}-{pool}-counters", pool, spec))
    return _number(random, made, simple=simple)


def _slice(name: str, pool: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {**spec, "pool": {"name": pool, "generation": 1}}}


def _number(random: Random, slices: list[dict[str, Any]], *, simple: bool) -> list[dict[str, Any]]:
    """Counts and generations, wrong ones now and then."""
    count = len(slices)
    flaw = (
        ""
        if simple and random.random() < 0.8
        else random.choice((*[""] * 9, "missing", "old", "new", "twice"))
    )
    for slice_ in slices:
        slice_["spec"]["pool"]["resourceSliceCount"] = count + (flaw == "missing")
    if flaw in ("old", "new"):
        slice_ = random.choice(slices)
        slice_["spec"]["pool"]["generation"] = 0 if flaw == "old" else 2
        if random.random() < 0.5:
            slice_["spec"]["pool"]["resourceSliceCount"] = 1
    devices = [device for slice_ in slices for device in slice_["spec"].get("devices", ())]
    if flaw == "twice" and len(devices) > 1:
        devices[-1]["name"] = devices[0]["name"]
    return slices


def _place(random: Random, style: str, nodes: int, devices: list[dict[str, Any]]) -> dict[str, Any]:
    node = f"n{random.randrange(nodes)}"
    if style == "name":
        return {"nodeName": node}
    if style == "all":
        return {"allNodes": True}
    if style == "selector":
        return {"nodeSelector": _TERMS if random.random() < 0.05 else random.choice((_ZONE, _FIELD))}
    for device in devices:
        device.update(
            random.choice(
                ({"nodeName": node}, {"allNodes": True}, {"nodeSelector": _ZONE}, {"nodeSelector": _FIELD})
            )
        )
    return {"perDeviceNodeSelection": True}


def _counters(random: Random) -> list[dict[str, Any]]:
    return [
        {
            "name": "one",
            "counters": {"slots": {"value": str(random.choice((1, 2, 3)))}, "mem": {"value": "2Gi"}},
        },
        {"name": "two", "counters": {"slots": {"value": "1"}}},
    ]


def _device(random: Random, variant: Variant, name: str, driver: str, *, counters: bool) -> dict[str, Any]:
    device: dict[str, Any] = {"name": name}
    if attributes := _attributes(random, variant, driver):
        device["attributes"] = attributes
    if random.random() < 0.4:
        device["capacity"] = _capacity(random)
    if random.random() < 0.3:
        device["allowMultipleAllocations"] = random.random() < 0.9
    if random.random() < 0.15:
        effects = (
            ("NoSchedule", "NoExecute", "None", "Other")
            if variant.number >= 35
            else ("NoSchedule", "NoExecute")
        )
        device["taints"] = [
            {"key": random.choice("kl"), "value": random.choice("vw"), "effect": random.choice(effects)}
            for _ in range(random.choice((1, 1, 2)))
        ]
    if random.random() < 0.12:
        device["bindingConditions"] = random.choice((["ready"], ["ready", "warm"]))
        device["bindingFailureConditions"] = ["broken"]
    if random.random() < 0.08:
        device["bindsToNode"] = True
    if counters and random.random() < 0.8:
        device["consumesCounters"] = _consumption(random, variant)
    return device


def _attributes(random: Random, variant: Variant, driver: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if random.random() < 0.8:
        found["size"] = {"int": random.choice((1, 2, 3))}
    if random.random() < 0.7:
        found[random.choice(("colour", f"{driver}/colour"))] = random.choice(
            ({"string": "red"}, {"string": "blue"}, {"bool": True}, {"version": "1.0.0"}, {"int": 1})
        )
    if random.random() < 0.6:
        scalars = ({"string": "x"}, {"string": "y"})
        lists = ({"strings": ["x"]}, {"strings": ["y", "z"]}, {"strings": ["x", "y"]}, {"ints": [1, 2]})
        # With its gate off, 1.36 reads no device that has a list.
        reads_lists = variant.number >= 37 or "DRAListTypeAttributes" in variant.gates
        share = 0.5 if reads_lists else 0.02
        has_list = variant.number >= 36 and random.random() < share
        found["k8s.io/root"] = random.choice(lists if has_list else scalars)
    return found


def _capacity(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in ("mem", "cores"):
        if random.random() < 0.6:
            found[name] = {"value": random.choice(("4", "6", "8", "2500m", "4Ki", "4k"))}
            policy = random.choice(_POLICIES)
            if policy is not None:
                found[name]["requestPolicy"] = policy
    return found


def _consumption(random: Random, variant: Variant) -> list[dict[str, Any]]:
    one: dict[str, Any] = {
        "counterSet": "one",
        "counters": {"slots": {"value": str(random.choice((1, 1, 2)))}},
    }
    if random.random() < 0.3:
        one["counters"]["mem"] = {"value": random.choice(("1Gi", "1536Mi"))}
    if random.random() < 0.04:
        one["counters"]["unknown"] = {"value": "1"}
    found = [one]
    if random.random() < 0.25:
        found.append({"counterSet": "two", "counters": {"slots": {"value": "1"}}})
    if variant.number >= 37 and random.random() < (0.5 if variant.features.compatibility_groups else 0.03):
        for each in found:
            each["compatibilityGroups"] = random.choice((["x"], ["y"], ["x", "y"]))
    return found


def allocated_of(
    random: Random, slices: list[dict[str, Any]], variant: Variant
) -> dict[str, list[dict[str, Any]]]:
    """Devices and shares in use."""
    found: dict[str, list[dict[str, Any]]] = {"devices": [], "shares": [], "capacity": []}
    if random.random() < 0.5:
        return found
    if random.random() < 0.1:
        gone = {"driver": DRIVERS[0], "pool": "p", "device": "gone"}
        found["devices"].append(gone)
        found["shares"].append({**gone, "shareID": "s2"})
    for slice_ in slices:
        spec = slice_["spec"]
        for device in spec.get("devices", ()):
            if random.random() > 0.2:
                continue
            name = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
            is_shared = device.get("allowMultipleAllocations") and variant.features.consumable_capacity
            if not is_shared or random.random() < 0.1:
                found["devices"].append(name)
                continue
            found["shares"].append({**name, "shareID": "s1"})
            if device.get("capacity"):
                amounts = {each: random.choice(("0", "1", "2")) for each in device["capacity"]}
                found["capacity"].append({**name, "capacity": amounts})
    return found
