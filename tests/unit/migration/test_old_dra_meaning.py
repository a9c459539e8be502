"""Selectors of old parameters, drawn at random, choose the devices that the old driver would have chosen.

The oracle below is a second reading of NVIDIA's `api/utils/selector/selector.go`, which knows no CEL. The devices are those
of the catalogue's fleets.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api import Device, Quantity
from dra_infra.kubernetes.cel import DeviceView, compile_expression
from dra_infra.kubernetes.cel.evaluate import Match, NoMatch
from dra_infra.migration.old_dra.conversion import migrate_old_dra
from dra_infra.migration.old_dra.objects import Remarks
from dra_infra.migration.old_dra.selectors import migrate_selector

FLEETS = ("hgx-h100", "a100-80gb", "a100-40gb", "t4", "l4", "v100-16gb", "l40s", "rtx-pro-6000", "gh200")
PARTS = "a100-40gb driver=0.5 dynamic-mig"
DRIVER = "gpu.nvidia.com"


@functools.cache
def devices(*fleets: str) -> tuple[Device, ...]:
    """One device of each kind that the fleets have."""
    found: dict[Any, Device] = {}
    for fleet in fleets:
        for each in load_fleet(fleet).slices:
            for device in each.spec.devices or () if each.spec.driver == DRIVER else ():
                key = (
                    fleet,
                    (device.attributes or {}).get("profile") and device.attributes["profile"].string,
                )
                found.setdefault(key, device)
    return tuple(found.values())


def text(device: Device, name: str) -> str:
    attribute = (device.attributes or {})[name]
    return str(attribute.string or attribute.version)


def numbers(version: str) -> tuple[int, ...]:
    found = [int(each) for each in version.removeprefix("v").split(".")]
    return tuple([*found, 0, 0][:3])


COMPARE = {
    "Equals": lambda sign: sign == 0,
    "LessThan": lambda sign: sign < 0,
    "LessThanOrEqualTo": lambda sign: sign <= 0,
    "GreaterThan": lambda sign: sign > 0,
    "GreaterThanOrEqualTo": lambda sign: sign >= 0,
}


def passes(selector: Mapping[str, Any], device: Device) -> bool:
    """What `Selector.Matches` said."""
    [(name, value)] = selector.items()
    if name == "andExpression":
        return all(passes(each, device) for each in value)
    if name == "orExpression":
        return any(passes(each, device) for each in value)
    if name == "migEnabled":
        return not value
    if name == "uuid":
        return text(device, name) == value
    if name in ("productName", "brand", "architecture"):
        pattern = ".*".join(re.escape(each) for each in value.lower().split("*"))
        return re.search(pattern, text(device, name).lower()) is not None
    if name == "memory":
        own, asked = (
            Quantity.parse(each).value for each in (device.capacity["memory"].value, value["value"])
        )
    else:
        own, asked = numbers(text(device, name)), numbers(value["value"])
    return COMPARE[value["operator"]]((own > asked) - (own < asked))


def comparison(*values: str):
    return st.fixed_dictionaries(
        {"value": st.sampled_from(values), "operator": st.sampled_from(list(COMPARE))}
    )


GLOBS = st.sampled_from(
    [
        "a100",
        "*A100*",
        "NVIDIA*80GB",
        "H100",
        "tesla",
        "*",
        "",
        "t4",
        "l4",
        "l40",
        "SXM?",
        "(R)",
        "a.00",
        "ada*lace",
        "Hopper",
    ]
)
PROPERTIES = st.one_of(
    st.fixed_dictionaries({"migEnabled": st.just(False)}),
    st.builds(lambda device: {"uuid": text(device, "uuid")}, st.sampled_from(devices(*FLEETS))),
    *(st.fixed_dictionaries({name: GLOBS}) for name in ("productName", "brand", "architecture")),
    st.fixed_dictionaries(
        {"memory": comparison("16G", "15360Mi", "40Gi", "40960Mi", "80G", "81559Mi", "0", "1e11")}
    ),
    st.fixed_dictionaries({"cudaComputeCapability": comparison("7.5", "8.0", "v8.9", "9.0.0", "10", "12.0")}),
    st.fixed_dictionaries({"driverVersion": comparison("550.54", "580.126.20", "v580", "999.0.0")}),
    st.fixed_dictionaries({"cudaDriverVersion": comparison("12.4", "13.0", "13.0.0", "14")}),
)
SELECTORS = st.recursive(
    PROPERTIES,
    lambda inner: st.builds(
        lambda name, parts: {name: parts},
        st.sampled_from(["andExpression", "orExpression"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


def migrated(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request of a claim that named the parameters."""
    objects = [
        {"apiVersion": "gpu.resource.nvidia.com/v1alpha1", "metadata": {"name": "p"}, **parameters},
        {
            "apiVersion": "resource.k8s.io/v1alpha2",
            "kind": "ResourceClaim",
            "metadata": {"name": "c"},
            "spec": {
                "resourceClassName": DRIVER,
                "parametersRef": {
                    "apiGroup": "gpu.resource.nvidia.com",
                    "kind": parameters["kind"],
                    "name": "p",
                },
            },
        },
    ]
    found = migrate_old_dra(objects)
    assert found[0].manifest is None
    assert not [each for each in found[0].remarks if each.outcome != "changed"]
    return found[1].manifest["spec"]["devices"]["requests"][0]["exactly"]


def chosen(exactly: Mapping[str, Any], among: tuple[Device, ...]) -> list[str]:
    """The devices that pass all selectors; none of them fails."""
    programs = [compile_expression(each["cel"]["expression"]) for each in exactly.get("selectors", [])]
    found = []
    for device in among:
        view = DeviceView(DRIVER, device.attributes, device.capacity)
        verdicts = [each.evaluate(view) for each in programs]
        assert all(isinstance(each, Match | NoMatch) for each in verdicts)
        if all(isinstance(each, Match) for each in verdicts):
            found.append(name_of(device))
    return found


def name_of(device: Device) -> str:
    return f"{text(device, 'productName')} {text(device, 'uuid') if 'uuid' in device.attributes else device.name}"


@given(SELECTORS)
def test_a_selector_chooses_the_gpus_that_it_chose(selector):
    whole = tuple(each for each in devices(*FLEETS) if text(each, "type") == "gpu")
    exactly = migrated({"kind": "GpuClaimParameters", "spec": {"selector": selector}})
    assert exactly["deviceClassName"] == DRIVER
    assert chosen(exactly, whole) == [name_of(each) for each in whole if passes(selector, each)]


def test_the_devices_of_the_oracle_differ():
    whole = [each for each in devices(*FLEETS) if text(each, "type") == "gpu"]
    assert len({text(each, "productName") for each in whole}) == len(FLEETS)


@pytest.mark.parametrize("profile", ["1g.5gb", "1g.10gb", "3g.20gb", "1g.5gb+me"])
def test_a_profile_chooses_its_mig_devices(profile):
    parts = devices(PARTS)
    exactly = migrated({"kind": "MigDeviceClaimParameters", "spec": {"profile": profile}})
    assert exactly["deviceClassName"] == "mig.nvidia.com"
    expected = [
        name_of(each) for each in parts if "profile" in each.attributes and text(each, "profile") == profile
    ]
    assert chosen(exactly, parts) == expected
    assert expected


@pytest.mark.parametrize(
    ("written", "right"),
    [
        (
            'device.attributes["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
            'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
        ),
        (
            'has(device.attributes["gpu.nvidia.com"].vram) && !(device.attributes["gpu.nvidia.com"].vram.isLessThan(quantity("24G")))',
            'has(device.capacity["gpu.nvidia.com"].memory) && !(device.capacity["gpu.nvidia.com"].memory.isLessThan(quantity("24G")))',
        ),
        (
            'device.attributes["nvidia.com"].computeCapability.isGreaterThan(semver("8.0.0"))',
            'device.attributes["gpu.nvidia.com"].cudaComputeCapability.isGreaterThan(semver("8.0.0"))',
        ),
        (
            "device.attributes['gpu.nvidia.com']['migProfile'] == '1g.5gb'",
            "device.attributes[\"gpu.nvidia.com\"].profile == '1g.5gb'",
        ),
        (
            'device.attributes["gpu.nvidia.com"].numaNode == 1',
            'device.attributes["resource.kubernetes.io"].numaNode == 1',
        ),
        (
            "'gpu.resource.nvidia.com' == device.driver && device.attributes['gpu.resource.nvidia.com'].brand != 'Tesla'",
            '"gpu.nvidia.com" == device.driver && device.attributes["gpu.nvidia.com"].brand != \'Tesla\'',
        ),
        (
            'device.attributes["nvidia.com/gpu"].productName == "NVIDIA L4"',
            'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"',
        ),
        (
            'device.attributes["gpu.nvidia.com"].ProductName == "NVIDIA L4"',
            'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"',
        ),
    ],
)
def test_a_certain_name_is_written_anew(written, right):
    remarks = Remarks()
    assert migrate_selector(written, "p", remarks) == right
    assert [(each.code, each.outcome, each.path) for each in remarks] == [
        ("selector-rewritten", "changed", "p")
    ]


@pytest.mark.parametrize(
    "written",
    [
        'device.attributes["gpu.nvidia.com"].memory >= 40',
        'device.attributes["gpu.nvidia.com"].model == "H100"',
        'device.attributes["gpu.nvidia.com"].model.startsWith("H100")',
        'device.attributes["gpu.nvidia.com"].computeCapability == "9.0"',
        'device.attributes["gpu.nvidia.com"].migCapable == true',
        'device.attributes["gpu.nvidia.com"].nvlink == true',
        'device.attributes["gpu.nvidia.com"].index == 0',
        'device.attributes["gpu.nvidia.com"].parentIndex in [0, 1]',
        # Half of it would let GPUs reach the test that fails on them.
        'device.driver == "gpu.resource.nvidia.com" && device.attributes["gpu.resource.nvidia.com"].memory >= 80000',
        'device.attributes["gpu.nvidia.com"].ProductName == "NVIDIA L4" && device.attributes["gpu.nvidia.com"].index == 0',
        # Two tests of one name that mean different things.
        'device.attributes["gpu.nvidia.com"].vram == 80 || device.attributes["gpu.nvidia.com"].vram.isLessThan(quantity("24G"))',
    ],
)
def test_a_name_that_may_mean_several_things_stays_and_is_told(written):
    remarks = Remarks()
    assert migrate_selector(written, "p", remarks) == written
    assert [(each.code, each.outcome, bool(each.hint)) for each in remarks] == [
        ("selector-not-rewritten", "decide", True)
    ]


@pytest.mark.parametrize(
    ("test", "right"),
    [
        ("memory >= 80000", 'memory.compareTo(quantity("80000Mi")) >= 0'),
        ("memory < 24", 'memory.compareTo(quantity("24Gi")) < 0'),
        ("multiprocessors == 98", 'multiprocessors.compareTo(quantity("98")) == 0'),
        ("memory in [40, 80]", 'memory.compareTo(quantity("40Gi")) >= 0'),
    ],
)
def test_the_hint_of_a_capacity_has_the_number_of_the_test(test, right):
    remarks = Remarks()
    migrate_selector(f'device.attributes["gpu.nvidia.com"].{test}', "p", remarks)
    assert [each.hint for each in remarks] == [
        f'write device.capacity["gpu.nvidia.com"].{right}, in the unit that is meant'
    ]


def test_two_tests_of_a_capacity_by_its_quantity_are_certain():
    written = " && ".join(
        f'device.attributes["gpu.nvidia.com"].memory.{each}'
        for each in ('isGreaterThan(quantity("40Gi"))', 'isLessThan(quantity("80Gi"))')
    )
    remarks = Remarks()
    assert migrate_selector(written, "p", remarks) == written.replace("attributes", "capacity")


@pytest.mark.parametrize(
    "written",
    [
        'device.attributes["gpu.nvidia.com"].productName == "NVIDIA L4"',
        'device.attributes["gpu.example.com"].model == "LATEST-GPU-MODEL"',
        "\"a text with device.attributes['gpu.nvidia.com'].model in it\" != device.driver",
        'device.attributes["gpu.nvidia.com"].pcieBusID == "0000:07:00.0"',
        "no CEL at all ((",
    ],
)
def test_what_is_right_or_not_understood_stays_without_a_word(written):
    remarks = Remarks()
    assert migrate_selector(written, "p", remarks) == written
    assert list(remarks) == []
