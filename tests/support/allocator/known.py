"""Cases that are known to go wrong upstream, or that are easy to get wrong; each for every minor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.support.allocator.cases import Case, make_case

DRIVER: Final = "a.example.com"


def a_slice(
    *devices: str | dict[str, Any],
    name: str = "s",
    pool: str = "p",
    driver: str = DRIVER,
    generation: int = 1,
    count: int = 1,
    **spec: Any,
) -> dict[str, Any]:
    """One slice, of node n0 unless *spec* says where."""
    if not spec.keys() & {"nodeName", "allNodes", "nodeSelector", "perDeviceNodeSelection"}:
        spec["nodeName"] = "n0"
    if devices:
        spec["devices"] = [{"name": each} if isinstance(each, str) else each for each in devices]
    written = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
    }
    return {"metadata": {"name": name}, "spec": {**written, **spec}}


def a_leaf(count: int | None = 1, *, device_class: str = "any", **rest: Any) -> dict[str, Any]:
    """A number of devices; None for all."""
    mode = {"allocationMode": "All"} if count is None else {"allocationMode": "ExactCount", "count": count}
    return {"deviceClassName": device_class, **mode, **rest}


def a_claim(
    *requests: dict[str, Any] | list[dict[str, Any]], name: str = "c0", **devices: Any
) -> dict[str, Any]:
    """Requests r0, r1 and so on; a list is a prioritized one with entries s0, s1 and so on."""
    written = [
        {"name": f"r{number}", "firstAvailable": [{"name": f"s{at}", **leaf} for at, leaf in enumerate(each)]}
        if isinstance(each, list)
        else {"name": f"r{number}", "exactly": each}
        for number, each in enumerate(requests)
    ]
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": written, **devices}},
    }


def valued(name: str, value: str | list[str], **rest: Any) -> dict[str, Any]:
    """A device with an attribute `k8s.io/root`."""
    attribute = {"strings": value} if isinstance(value, list) else {"string": value}
    return {"name": name, "attributes": {"k8s.io/root": attribute}, **rest}


def sized(name: str, size: int, **rest: Any) -> dict[str, Any]:
    """A device with an attribute `size` of its driver."""
    return {"name": name, "attributes": {"size": {"int": size}}, **rest}


def sized_and_valued(name: str, size: int, value: str | list[str]) -> dict[str, Any]:
    """A device with both."""
    device = valued(name, value)
    device["attributes"]["size"] = {"int": size}
    return device


def drawing(name: str, slots: int = 1, **rest: Any) -> dict[str, Any]:
    """A device that takes slots of the counter set `set`."""
    taken = {"counterSet": "set", "counters": {"slots": {"value": str(slots)}}}
    return {"name": name, "consumesCounters": [taken], **rest}


def counting(slots: int, minor: str, *slices: dict[str, Any], **rest: Any) -> list[dict[str, Any]]:
    """Slices of a pool with a counter set; in 1.34 each slice has it, later minors have it in one of its own."""
    counters = [{"name": "set", "counters": {"slots": {"value": str(slots)}}}]
    if minor == "1.34":
        return [{**each, "spec": {**each["spec"], "sharedCounters": counters}} for each in slices]
    count = len(slices) + 1
    for each in slices:
        each["spec"]["pool"]["resourceSliceCount"] = count
    pool = slices[0]["spec"]["pool"]
    own = a_slice(name="counters", pool=pool["name"], driver=slices[0]["spec"]["driver"], count=count, **rest)
    own["spec"]["sharedCounters"] = counters
    return [*slices, own]


def selecting(text: str) -> list[dict[str, Any]]:
    """One selector."""
    return [{"cel": {"expression": text}}]


SIZE: Final = "device.attributes['a.example.com'].size"


def distinct_values(minor: str) -> Case:
    """Two devices of three have the same value; two are wanted that differ."""
    devices = (valued("d0", "x"), valued("d1", "x"), valued("d2", "y"))
    return make_case(
        minor,
        slices=[a_slice(*devices)],
        claims=[a_claim(a_leaf(2), constraints=[{"distinctAttribute": "k8s.io/root"}])],
    )


def distinct_values_of_one_request(minor: str) -> Case:
    """x, y, x: the third is only compared with the last device of its request."""
    devices = (valued("d0", "x"), valued("d1", "y"), valued("d2", "x"), valued("d3", "z"))
    return make_case(
        minor,
        slices=[a_slice(*devices)],
        claims=[a_claim(a_leaf(3), constraints=[{"distinctAttribute": "k8s.io/root"}])],
    )


def narrowed_list(minor: str) -> Case:
    """The search takes d1 and gives it back; that it had only x in common with d0 stays so in 1.36."""
    devices = (
        valued("d0", ["x", "y"]),
        valued("d1", ["x"]),
        valued("d2", ["y"]),
        sized_and_valued("d3", 9, ["y"]),
    )
    asked = frozenset({"DRAListTypeAttributes"}) if minor == "1.36" else None
    if minor < "1.36":
        devices = (valued("d0", "y"), valued("d1", "x"), valued("d2", "y"), sized_and_valued("d3", 9, "y"))
    last = a_leaf(selectors=selecting("device.attributes['a.example.com'].?size.orValue(0) == 9"))
    claim = a_claim(a_leaf(), a_leaf(), last, constraints=[{"matchAttribute": "k8s.io/root"}])
    return make_case(minor, slices=[a_slice(*devices)], claims=[claim], asked=asked)


def share_picked_twice(minor: str) -> Case:
    """One shareable device that is free, two wanted by one request."""
    device = {"name": "d0", "allowMultipleAllocations": True, "capacity": {"mem": {"value": "8"}}}
    other = {"name": "d1", "capacity": {"mem": {"value": "8"}}}
    held = {"driver": DRIVER, "pool": "p", "device": "d1"}
    leaf = a_leaf(2, capacity={"requests": {"mem": "2"}})
    return make_case(
        minor, slices=[a_slice(device, other)], claims=[a_claim(leaf)], allocated={"devices": [held]}
    )


def second_entry_for_all(minor: str) -> Case:
    """The second entry of a list wants all large devices; 1.34 and 1.35 go on with the first entry after one."""
    devices = (sized("d0", 1), sized("d1", 2), sized("d2", 2))
    entries = [
        a_leaf(3, selectors=selecting(f"{SIZE} > 1")),
        a_leaf(None, selectors=selecting(f"{SIZE} > 1")),
    ]
    return make_case(minor, slices=[a_slice(*devices)], claims=[a_claim(entries)])


def entries_for_all(minor: str) -> Case:
    """Two entries for all devices: 1.34 and 1.35 take what the first selects, which is in use, for the second too."""
    devices = (sized("d0", 1), sized("d1", 2))
    held = {"driver": DRIVER, "pool": "p", "device": "d0"}
    entries = [
        a_leaf(None, selectors=selecting(f"{SIZE} == 1")),
        a_leaf(None, selectors=selecting(f"{SIZE} == 2")),
    ]
    return make_case(
        minor, slices=[a_slice(*devices)], claims=[a_claim(entries)], allocated={"devices": [held]}
    )


def counters_after_a_taint(minor: str) -> Case:
    """A tainted device is refused after its counters were taken, which 1.34 and 1.35 do not give back."""
    tainted = drawing("d0", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    slices = counting(1, minor, a_slice(tainted, drawing("d1")))
    return make_case(minor, slices=slices, claims=[a_claim(a_leaf())])


def capacity_of_another_device(minor: str) -> Case:
    """1.34 checks the capacity of the device with the number that the wanted one has in its request."""
    small = {"name": "d0", "capacity": {"mem": {"value": "1"}}}
    large = {"name": "d1", "capacity": {"mem": {"value": "8"}}}
    leaf = a_leaf(capacity={"requests": {"mem": "4"}})
    return make_case(minor, slices=[a_slice(small, large)], claims=[a_claim(leaf)])


def more_devices_than_in_the_slice(minor: str) -> Case:
    """The same in a pool of two slices with a device each: 1.34 panics."""
    slices = [a_slice("d0", name="s0", count=2), a_slice("d1", name="s1", count=2)]
    return make_case(minor, slices=slices, claims=[a_claim(a_leaf(2))])


def pools_of_one_name(minor: str) -> Case:
    """Two drivers with a pool of the same name: 1.35 takes the counters of the first for both."""
    first = counting(1, minor, a_slice(drawing("d0"), name="s-a", driver="a.example.com"))
    second = counting(1, minor, a_slice(drawing("d0"), name="s-b", driver="b.example.com"))
    second[-1]["metadata"]["name"] += "-b"
    return make_case(minor, slices=[*first, *second], claims=[a_claim(a_leaf(), a_leaf())])


def share_without_capacity_in_use(minor: str) -> Case:
    """A share that takes no capacity: only 1.37 sees that its counters are paid."""
    slices = counting(1, minor, a_slice(drawing("d0", allowMultipleAllocations=True)))
    share = {"driver": DRIVER, "pool": "p", "device": "d0", "shareID": "s1"}
    return make_case(minor, slices=slices, claims=[a_claim(a_leaf())], allocated={"shares": [share]})


def configuration_for_two_requests(minor: str) -> Case:
    """Configuration that names two requests is there twice before 1.37, which leaves the names out instead."""
    config = [{"requests": ["r0", "r1"], "opaque": {"driver": DRIVER, "parameters": {"mode": "x"}}}]
    return make_case(minor, slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(), a_leaf(), config=config)])


def incomplete_pool(minor: str) -> Case:
    """One slice of two: 1.34 takes its devices."""
    return make_case(minor, slices=[a_slice("d0", count=2)], claims=[a_claim(a_leaf())])


def list_attributes_and_the_scheduler(minor: str) -> Case:
    """The scheduler of 1.36 does not tell the allocator of its gate, so lists have nothing in common there."""
    devices = (valued("d0", ["x", "y"]), valued("d1", ["y"]))
    if minor < "1.36":
        devices = (valued("d0", "x"), valued("d1", "x"))
    constraints = [{"matchAttribute": "k8s.io/root"}]
    return make_case(minor, slices=[a_slice(*devices)], claims=[a_claim(a_leaf(2), constraints=constraints)])


def amounts_in_binary(minor: str) -> Case:
    """2000 in steps is written `2000` with the format of binary suffixes before 1.37, and `2k` from then on."""
    policy = {"default": "500", "validRange": {"min": "500", "step": "250"}}
    device = {
        "name": "d0",
        "allowMultipleAllocations": True,
        "capacity": {"cores": {"value": "4k", "requestPolicy": policy}},
    }
    leaf = a_leaf(capacity={"requests": {"cores": "1900"}})
    return make_case(minor, slices=[a_slice(device)], claims=[a_claim(leaf)])


def fractional_range(minor: str) -> Case:
    """Steps of a quarter: 1.37 counts in thousandths, earlier minors in whole numbers."""
    policy = {"default": "500m", "validRange": {"min": "500m", "step": "250m"}}
    device = {
        "name": "d0",
        "allowMultipleAllocations": True,
        "capacity": {"cores": {"value": "8", "requestPolicy": policy}},
    }
    leaf = a_leaf(capacity={"requests": {"cores": "700m"}})
    return make_case(minor, slices=[a_slice(device)], claims=[a_claim(leaf)])


def nine_of_eight(minor: str) -> Case:
    """Claims of a pod ask for more than the node has."""
    devices = (f"d{number}" for number in range(8))
    claims = [a_claim(a_leaf(5)), a_claim(a_leaf(4), name="c1")]
    # The older copies try every order of five devices for that.
    devices = devices if minor >= "1.36" else ("d0", "d1", "d2", "d3")
    if minor < "1.36":
        claims = [a_claim(a_leaf(3)), a_claim(a_leaf(2), name="c1")]
    return make_case(minor, slices=[a_slice(*devices)], claims=claims)


def eleven_of_ten(minor: str) -> Case:
    """One request for one device more than there are."""
    size = 10 if minor >= "1.36" else 5
    return make_case(
        minor, slices=[a_slice(*(f"d{each}" for each in range(size)))], claims=[a_claim(a_leaf(size + 1))]
    )


def counters_of_other_nodes(minor: str) -> Case:
    """The only slot is held by an allocated device of another node."""
    here = a_slice(drawing("d0"), name="here")
    there = a_slice(drawing("d1"), name="there", nodeName="n1")
    held = {"driver": DRIVER, "pool": "p", "device": "d1"}
    return make_case(
        minor,
        slices=counting(1, minor, here, there, allNodes=True),
        claims=[a_claim(a_leaf())],
        allocated={"devices": [held]},
    )


def all_beside_an_incomplete_pool(minor: str) -> Case:
    """Another driver's pool is incomplete: nobody gets all devices."""
    slices = [a_slice("d0"), a_slice("d1", name="t", driver="b.example.com", count=2)]
    leaf = a_leaf(None, device_class="a")
    return make_case(minor, slices=slices, claims=[a_claim(leaf)])


def admin_access_to_a_full_partition(minor: str) -> Case:
    """The device in use may be looked at, but its counters are counted once more."""
    held = {"driver": DRIVER, "pool": "p", "device": "d0"}
    return make_case(
        minor,
        slices=counting(1, minor, a_slice(drawing("d0"))),
        claims=[a_claim(a_leaf(adminAccess=True))],
        allocated={"devices": [held]},
    )


def two_generations(minor: str) -> Case:
    """The newer generation has one slice of two so far, for another node: the old one is not to be used."""
    slices = [
        a_slice("d0", name="old", count=2),
        a_slice("d1", name="new", generation=2, count=2, nodeName="n1"),
    ]
    return make_case(minor, slices=slices, claims=[a_claim(a_leaf())])


def on_labels(*tests: tuple[str, str, str]) -> dict[str, Any]:
    """A node selector of one term, each test a key, an operator and a value."""
    expressions = [{"key": key, "operator": operator, "values": [value]} for key, operator, value in tests]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def with_name(selector: dict[str, Any]) -> dict[str, Any]:
    """The selector with a test of the node's name."""
    name = {"key": "metadata.name", "operator": "In", "values": ["n9"]}
    (term,) = selector["nodeSelectorTerms"]
    return {"nodeSelectorTerms": [{**term, "matchFields": [name]}]}


NOT_A_NUMBER: Final = on_labels(("rack", "Gt", "a"))
FOREIGN_DEVICE: Final[dict[str, Any]] = {
    "perDeviceNodeSelection": True,
    "devices": [{"name": "bad", "nodeSelector": NOT_A_NUMBER}, {"name": "good", "nodeName": "n0"}],
}
"""A slice of such a driver with a device that is not parsed; upstream prints the whole device."""
FOREIGN: Final[dict[str, dict[str, Any]]] = {
    "greater_than_a_number": {"nodeSelector": on_labels(("rack", "Gt", "3"))},
    "greater_than_a_number_with_zeros": {"nodeSelector": on_labels(("rack", "Gt", "007"))},
    "less_than_the_largest_number": {"nodeSelector": on_labels(("rack", "Lt", "9223372036854775807"))},
    "text_in_a_list": {"nodeSelector": on_labels(("rack", "In", "a"))},
    "greater_than_a_text": {"nodeSelector": NOT_A_NUMBER},
    "less_than_a_text": {"nodeSelector": on_labels(("rack", "Lt", "a"))},
    "greater_than_a_fraction": {"nodeSelector": on_labels(("rack", "Gt", "1.5"))},
    "greater_than_a_hexadecimal": {"nodeSelector": on_labels(("rack", "Gt", "0x1"))},
    "greater_than_digits_in_groups": {"nodeSelector": on_labels(("rack", "Gt", "1_0"))},
    "greater_than_nothing": {"nodeSelector": on_labels(("rack", "Gt", ""))},
    "less_than_a_number_beyond_64_bits": {"nodeSelector": on_labels(("rack", "Lt", "9223372036854775808"))},
    "two_texts": {"nodeSelector": on_labels(("a", "In", "x"), ("b", "Gt", "a"), ("c", "Lt", "b"))},
    "one_text_twice": {"nodeSelector": on_labels(("rack", "Gt", "a"), ("rack", "Gt", "a"))},
    "text_beside_a_name": {"nodeSelector": with_name(NOT_A_NUMBER)},
    "device_with_a_text_behind_one_of_the_node": {
        "perDeviceNodeSelection": True,
        "devices": [{"name": "good", "nodeName": "n0"}, {"name": "bad", "nodeSelector": NOT_A_NUMBER}],
    },
}
"""Slices of a driver that no claim asks for, by what their node selector compares with.

API servers store all of them. One that the allocator cannot parse ends every attempt.
"""


def beside_foreign(spec: dict[str, Any]) -> Callable[[str], Case]:
    """A device that is free, beside a slice of another driver."""

    def build(minor: str) -> Case:
        foreign = a_slice(name="foreign", pool="other", driver="b.example.com", **spec)
        foreign["spec"].setdefault("devices", [{"name": "d0"}])
        return make_case(minor, slices=[a_slice("d0"), foreign], claims=[a_claim(a_leaf(device_class="a"))])

    return build


_HALF: Final = 2**62
"""Two of it are more than 64 bits with a sign hold, and four of it wrap to zero."""


def counts_below_zero(minor: str) -> Case:
    """Counts whose sum overflows to a negative number."""
    return make_case(minor, slices=[a_slice("d0")], claims=[a_claim(a_leaf(_HALF), a_leaf(_HALF))])


def counts_that_wrap_to_zero(minor: str) -> Case:
    """Counts whose sum overflows to zero."""
    leaves = [a_leaf(_HALF) for _ in range(4)]
    return make_case(minor, slices=[a_slice("d0", "d1")], claims=[a_claim(*leaves)])


def counts_that_wrap_to_the_limit(minor: str) -> Case:
    """Counts whose sum overflows to one that a result holds."""
    leaves = [a_leaf(1), *(a_leaf(_HALF) for _ in range(4))]
    return make_case(minor, slices=[a_slice("d0", "d1")], claims=[a_claim(*leaves)])


def entry_that_overflows(minor: str) -> Case:
    """A first entry that overflows behind a device that was picked, and a second one that fits."""
    claim = a_claim(a_leaf(1), [a_leaf(2**63 - 1), a_leaf(1)])
    return make_case(minor, slices=[a_slice("d0", "d1", "d2")], claims=[claim])


def entry_that_overflows_behind_a_choice(minor: str) -> Case:
    """Two lists, each with an entry that overflows, of which only one order fits."""
    claim = a_claim(a_leaf(1), [a_leaf(2**63 - 1), a_leaf(2)], [a_leaf(2**63 - 1), a_leaf(1)])
    return make_case(minor, slices=[a_slice("d0", "d1", "d2")], claims=[claim])


def results_at_their_limit(minor: str) -> Case:
    """Counts that fill a result to the last device, and one more."""
    devices = [f"d{number:02}" for number in range(40)]
    claims = [a_claim(a_leaf(16), a_leaf(16)), a_claim(a_leaf(16), a_leaf(17), name="c1")]
    return make_case(minor, slices=[a_slice(*devices)], claims=claims)


CASES: Final[dict[str, Callable[[str], Case]]] = {
    **{f"foreign_{name}": beside_foreign(spec) for name, spec in FOREIGN.items()},
    **{
        each.__name__: each
        for each in (
            distinct_values,
            distinct_values_of_one_request,
            narrowed_list,
            share_picked_twice,
            second_entry_for_all,
            entries_for_all,
            counters_after_a_taint,
            capacity_of_another_device,
            more_devices_than_in_the_slice,
            pools_of_one_name,
            share_without_capacity_in_use,
            configuration_for_two_requests,
            incomplete_pool,
            list_attributes_and_the_scheduler,
            amounts_in_binary,
            fractional_range,
            nine_of_eight,
            eleven_of_ten,
            counters_of_other_nodes,
            all_beside_an_incomplete_pool,
            admin_access_to_a_full_partition,
            two_generations,
            counts_below_zero,
            counts_that_wrap_to_zero,
            counts_that_wrap_to_the_limit,
            entry_that_overflows,
            entry_that_overflows_behind_a_choice,
            results_at_their_limit,
        )
    },
}
