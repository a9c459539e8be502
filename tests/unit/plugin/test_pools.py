from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import (
    GATES,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceTaint,
    Release,
    ResourceSlice,
)
from dra_infra.kubernetes.apiserver import judge
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.publishing.pools import lay_out
from tests.support.plugin.publishing import DRIVER, NODE, counters, device, inventory
from tests.unit.catalog.test_publication import PLAIN, SET


def layout(offered: Inventory, minor: int = 37) -> list[dict[str, object]]:
    return list(lay_out(offered, driver=DRIVER, node=NODE, minor=minor))


def sizes(offered: Inventory, minor: int = 37) -> list[int]:
    return [len(each.get("devices", ())) for each in layout(offered, minor)]  # type: ignore[arg-type]


def test_a_slice_takes_as_many_devices_as_the_server_lets_it() -> None:
    plain = [f"gpu-{number}" for number in range(129)]
    assert sizes(inventory(plain)) == [128, 1]
    tainted = [*plain[:-1], device("gpu-128", taint="sick")]
    assert sizes(inventory(tainted)) == [64, 64, 1]
    assert sizes(inventory(tainted), minor=34) == [128, 1]
    listed = Device(name="gpu-128", attributes={"numa": DeviceAttribute(ints=[0, 1])})
    assert sizes(inventory([*plain[:-1], listed])) == [64, 64, 1]


def test_counters_are_in_slices_of_their_own_from_1_35_on() -> None:
    sets = [counters(f"gpu-{number}") for number in range(9)]
    offered = inventory([device(f"mig-{number}", drawn=f"gpu-{number}") for number in range(9)], sets)
    assert [len(each.get("sharedCounters", ())) for each in layout(offered)] == [8, 1, 0]  # type: ignore[arg-type]
    assert sizes(offered) == [0, 0, 9]
    [only] = layout(offered, minor=34)
    assert len(only["sharedCounters"]) == len(only["devices"]) == 9  # type: ignore[arg-type]


def test_on_1_34_devices_are_beside_their_counters_as_far_as_there_is_room() -> None:
    sets = [counters(f"gpu-{number}", many=15) for number in range(3)]
    devices = [
        device(f"mig-{place}-{number}", drawn=f"gpu-{number}") for place in range(2) for number in range(3)
    ]
    first, second = layout(inventory(devices, sets), minor=34)
    assert [each["name"] for each in first["devices"]] == ["mig-0-0", "mig-1-0", "mig-0-1", "mig-1-1"]  # type: ignore[attr-defined]
    assert [each["name"] for each in second["sharedCounters"]] == ["gpu-2"]  # type: ignore[attr-defined]


def test_what_taints_only_tell_is_left_to_servers_that_know_the_effect() -> None:
    """1.34 refuses the whole slice for a taint of the effect None, which NVML's back end has for GPUs that it cannot watch."""
    told = DeviceTaint(key="example.com/unmonitored", effect="None")
    kept = DeviceTaint(key="example.com/xid", value="79", effect="NoSchedule")
    offered = inventory([Device(name="a", taints=[told]), Device(name="b", taints=[told, kept])])
    for minor, counts in ((34, [0, 1]), (35, [1, 2])):
        [spec] = layout(offered, minor)
        assert [len(each.get("taints", ())) for each in spec["devices"]] == counts  # type: ignore[attr-defined]
        check(spec, 1, minor)


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_a_pool_of_nothing_is_one_slice_without_anything(minor: int) -> None:
    [spec] = layout(inventory([], [counters("gpu-0")]), minor)
    assert spec == {"driver": DRIVER, "nodeName": NODE, "pool": {"name": NODE}}
    check(spec, 1, minor)


@pytest.mark.parametrize(
    ("offered", "minor", "words"),
    [
        (inventory(["a", "a"]), 37, "two devices are called a"),
        (inventory(["a"], [counters("s"), counters("s")]), 37, "two counter sets are called s"),
        (inventory([device("a", drawn="s")]), 37, "draws on a counter set s"),
        (
            inventory([device("a", drawn="s")], [CounterSet(name="s", counters={})]),
            37,
            "draws on a counter memory",
        ),
        (
            inventory([device(f"d{number}", drawn="s") for number in range(129)], [counters("s")]),
            34,
            "too many for one slice",
        ),
    ],
)
def test_a_pool_that_no_scheduler_could_use_is_refused(offered: Inventory, minor: int, words: str) -> None:
    with pytest.raises(PluginError, match=words) as caught:
        layout(offered, minor)
    assert {problem.code for problem in caught.value.problems} == {"pool-not-usable"}


@st.composite
def inventories(draw: st.DrawFn) -> Inventory:
    sets = [counters(f"set-{number}") for number in range(draw(st.integers(0, 12)))]
    names = [each.name for each in sets]
    many = draw(st.integers(0, 200))
    kinds = draw(st.lists(st.sampled_from(["plain", "tainted", *names]), min_size=many, max_size=many))
    return inventory(
        [
            device(
                f"device-{number}",
                taint="sick" if kind == "tainted" else "",
                drawn=kind if kind in names else "",
            )
            for number, kind in enumerate(kinds)
        ],
        sets,
    )


@settings(max_examples=60, deadline=None)
@given(offered=inventories(), minor=st.sampled_from([34, 35, 36, 37]))
def test_every_pool_is_accepted_and_holds_every_device_once(offered: Inventory, minor: int) -> None:
    specs = layout(offered, minor)
    names = [each["name"] for spec in specs for each in spec.get("devices", ())]  # type: ignore[attr-defined]
    expected = [each.name for each in offered.devices]
    # In order, but where counters have to be beside them.
    assert sorted(names) == sorted(expected)
    assert minor == 34 or names == expected
    for spec in specs:
        check(spec, len(specs), minor)


def check(spec: dict[str, object], count: int, minor: int) -> None:
    whole = {**spec, "pool": {"name": NODE, "generation": 1, "resourceSliceCount": count}}
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "a"},
        "spec": whole,
    }
    minor_name = f"1.{minor}"
    gates = frozenset(gate for gate, states in GATES.items() if minor_name in states)
    verdict = judge(manifest, Release(minor=minor_name, gates=gates))
    assert verdict.status == "accepted", verdict


@pytest.mark.parametrize("minor", [34, 37])
@pytest.mark.parametrize("text", [*PLAIN[::7], *SET])
def test_the_devices_of_every_fleet_fit(text: str, minor: int) -> None:
    slices = load_fleet(text, kubernetes="1.35").slices
    node = slices[0].spec.node_name
    driver = slices[0].spec.driver
    own = [each.spec for each in slices if each.spec.node_name == node and each.spec.driver == driver]
    offered = Inventory(
        devices=tuple(each for spec in own for each in spec.devices or ()),
        counters=tuple(each for spec in own for each in spec.shared_counters or ()),
    )
    specs = lay_out(offered, driver=driver, node=str(node), minor=minor)
    assert specs
    for spec in specs:
        ResourceSlice.from_manifest({"spec": {**spec, "pool": {**spec["pool"]}}})
        check(spec, len(specs), minor)
