from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS, Release
from dra_infra.kubernetes.api.patches import COMPARED_PATCHES, KNOWN_PATCHES
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.provenance import Provenance, ReviewedSide
from dra_infra.target import ClusterTarget
from tools import toolsets

BASE = "1a2b3c4d5e6f" + "0" * 28
HEAD = "9f8e7d6c5b4a" + "0" * 28


def release(minor: str, **gates: bool) -> Release:
    (found,) = ClusterTarget(kubernetes=minor, gates=gates).releases
    return found


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_the_rules_are_those_of_the_patch_whose_servers_they_are_compared_with(minor: str):
    (built,) = (each for each in toolsets.load() if each.name == f"kubernetes-{minor}")
    assert COMPARED_PATCHES[minor] == built.version


def test_the_line_names_the_minor_the_patch_gates_drivers_and_dra_infra():
    found = Provenance.of([release("1.35", DRAPartitionableDevices=True)], driver="25.8")
    assert found.describe().replace(found.version, "1.2.3") == (
        "checked for Kubernetes 1.35 (rules of 1.35.9), gate DRAPartitionableDevices=true, "
        "NVIDIA DRA driver 25.8, by dra-infra 1.2.3"
    )


def test_gates_with_the_default_of_the_minor_are_not_named():
    assert Provenance.of([release("1.37", DRADeviceTaints=True)]).to_json()["kubernetes"][0]["gates"] == {}


def test_a_gate_that_differs_between_clusters_is_named_with_its_release():
    target = ClusterTarget(kubernetes="1.35", gates={"DRADeviceTaints": True})
    component = ProgramObject(urn="a::b::c::d", manifest={}, target=target)
    program = Program(project="p", stack="dev", objects=(component,), kubernetes="1.35")
    line = Provenance.of_program(program, target=program.target, is_placed=True).describe()
    assert (
        "Kubernetes 1.35 (rules of 1.35.9, gate DRADeviceTaints=true) and 1.35 (rules of 1.35.9), "
        "placed by the rules of 1.35"
    ) in line


def test_versions_that_are_served_beside_v1_are_named():
    found = Provenance.of([release("1.37")], serves=["v1", "v1beta2", "v1beta1"])
    assert ", served as v1beta1 and v1beta2 too, by dra-infra" in found.describe()
    assert (found.to_json()["serves"], found.to_properties()["serves"]) == (
        ["v1beta1", "v1beta2"],
        "v1beta1, v1beta2",
    )


def test_v1_alone_is_not_named():
    found = Provenance.of([release("1.37")], serves=["v1"])
    assert "served" not in found.describe()
    assert found.to_json()["serves"] == []


def a_side(minor: str | None, **gates: bool) -> Program:
    objects = (ProgramObject(urn="a::b::c::d", manifest={}),)
    return Program(project="p", stack="dev", objects=objects, kubernetes=minor, gates=gates)


def reviewed(base: Program, head: Program, *, is_placed: bool = True) -> Provenance:
    return Provenance.of_program(head, target=head.target, is_placed=is_placed).with_base(base)


def test_a_base_of_another_minor_is_named_with_its_rules():
    found = reviewed(a_side("1.36"), a_side("1.37"))
    assert (
        "Kubernetes 1.36 (rules of 1.36.5) and 1.37 (rules of 1.37.2), placed by the rules of 1.37, the base by those of 1.36"
    ) in found.describe()
    data = found.to_json()
    assert [each["minor"] for each in data["kubernetes"]] == ["1.36", "1.37"]
    assert (data["placement"], data["basePlacement"]) == ("1.37", "1.36")
    assert found.to_properties()["basePlacement"] == "1.36.5"


def test_a_base_of_the_same_minor_with_other_gates_is_named():
    found = reviewed(a_side("1.35"), a_side("1.35", DRADeviceTaints=True))
    assert "placed by the rules of 1.35, the base with its own gates" in found.describe()
    assert [each["gates"] for each in found.to_json()["kubernetes"]] == [{"DRADeviceTaints": True}, {}]


@pytest.mark.parametrize(
    ("base", "is_placed"),
    [
        (a_side("1.37"), True),
        (a_side("1.36"), False),
        (Program(project="p", stack="dev", kubernetes="1.36"), True),
    ],
)
def test_a_base_whose_rules_decide_nothing_is_not_named(base: Program, is_placed: bool):
    found = reviewed(base, a_side("1.37"), is_placed=is_placed)
    assert "1.36" not in found.describe()
    assert found.to_json()["basePlacement"] is None


def test_a_fleet_with_another_driver_than_the_program_is_named():
    fleet = load_fleet("hgx-h100 driver=25.3, example")
    found = Provenance.of([release("1.37")], driver="25.8", fleet=fleet)
    assert found.drivers == ("DRA example driver 0.4", "NVIDIA DRA driver 25.8")
    assert "fleet with NVIDIA DRA driver 25.3, by" in found.describe()


def test_a_server_whose_rules_are_not_known_is_said_to_be_so():
    line = Provenance.of([], server="v1.33.2").describe()
    assert line.startswith("checked for Kubernetes v1.33.2, whose rules are not known here, by dra-infra ")


@pytest.mark.parametrize(
    ("side", "told"),
    [
        (ReviewedSide(origin="commit", label="main", commit=BASE), "main at 1a2b3c4d5e6f"),
        (ReviewedSide(origin="commit", label=BASE, commit=BASE), "1a2b3c4d5e6f"),
        (ReviewedSide(origin="commit", label="1a2b3c4", commit=BASE), "1a2b3c4d5e6f"),
        (ReviewedSide(origin="working tree", commit=HEAD), "working tree on 9f8e7d6c5b4a"),
        (
            ReviewedSide(origin="working tree", commit=HEAD, is_changed=True),
            "working tree on 9f8e7d6c5b4a with files that are not committed",
        ),
        (ReviewedSide(origin="compiled", commit=HEAD), "compiled from 9f8e7d6c5b4a"),
        (
            ReviewedSide(origin="compiled", commit=HEAD, is_changed=True),
            "compiled from 9f8e7d6c5b4a with files that are not committed",
        ),
        (ReviewedSide(origin="compiled"), "compiled from no known commit"),
        (ReviewedSide(origin="files"), "files of no known commit"),
    ],
)
def test_a_side_is_told_as_far_as_it_is_known(side: ReviewedSide, told: str):
    line = Provenance(releases=(release("1.37"),), base=side, head=side).describe()
    assert line.endswith(f"; base {told}, head {told}")


minors = st.sampled_from(SUPPORTED_MINORS)
releases = st.builds(
    lambda minor, gates: Release(
        minor=minor, gates=frozenset(name for name in gates if minor in GATES[name])
    ),
    minors,
    st.sets(st.sampled_from(sorted(GATES))),
)


@given(st.sets(releases, min_size=1, max_size=4))
def test_the_data_holds_each_release_with_exactly_the_gates_that_differ_from_its_defaults(
    found: set[Release],
):
    data = json.loads(json.dumps(Provenance.of(found).to_json()))
    read = set()
    for each in data["kubernetes"]:
        default = {
            name
            for name, states in GATES.items()
            if each["minor"] in states and states[each["minor"]].default
        }
        changed = {name for name, is_on in each["gates"].items() if is_on != (name in default)}
        assert changed == set(each["gates"])
        read.add(Release(minor=each["minor"], gates=frozenset(default ^ changed)))
    assert read == found
    assert all(f"{each.minor} (rules of {KNOWN_PATCHES[each.minor][-1]}" in data["text"] for each in found)
