"""What surprises people, on the real scheduler: each with the outcome by name, and with our answer held against it."""

from __future__ import annotations

import pytest

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.kubernetes.scheduler import Taken
from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.comparison import Report, compare
from tests.e2e.scheduler.themes import DRIVER, gpus, local
from tests.e2e.scheduler.themes_of_neighbours import RESOURCE
from tests.support.placing import place
from tests.support.scheduler.objects import (
    claim,
    claim_spec,
    container,
    device,
    exactly,
    node,
    pod,
    resource_slice,
    template,
    wish,
)
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import CLAIM, Stage
from tools.cluster import Manifest

pytestmark = pytest.mark.e2e

COUNTERS = [{"name": "board", "counters": {"parts": {"value": "2"}}}]


def some(count: int, prefix: str = "g") -> list[Manifest]:
    return [device(f"{prefix}{number}") for number in range(count)]


def part(name: str, parts: int, **place: object) -> Manifest:
    uses = [{"counterSet": "board", "counters": {"parts": {"value": str(parts)}}}]
    return device(name, consumesCounters=uses, **place)


def run(
    stage: Stage,
    name: str,
    fleet: list[Manifest],
    templates: dict[str, Manifest],
    *pods: list[str],
    pinned: bool = True,
) -> Report:
    """Run pods with claims of these templates, and fail where we say something else than the scheduler."""
    scenario = Scenario(
        name=name,
        fleet=(gpus(), *fleet),
        objects=tuple(template(each, spec) for each, spec in templates.items()),
        pods=tuple(pod(f"p{number}", templates=names) for number, names in enumerate(pods)),
        pinned=pinned,
    )
    report = compare(stage, scenario, release_of("1.37"))
    assert not report.differences, "\n".join(report.differences)
    return report


def test_nine_devices_of_eight_are_never_found(stage: Stage):
    fleet = [node("n0"), node("n1"), local("n0", some(8)), local("n1", some(8))]
    templates = {
        "nine": claim_spec(exactly("r", "gpu", count=9)),
        "eight": claim_spec(exactly("r", "gpu", count=8)),
    }
    report = run(stage, "nine of eight", fleet, templates, ["nine"], ["eight"])
    assert [bool(each) for each in report.nodes] == [False, True]


def test_counters_that_devices_of_another_node_hold_are_gone_here_too(stage: Stage):
    fleet = [
        node("n0"),
        node("n1"),
        resource_slice("counters", DRIVER, pool="board", count=2, counters=COUNTERS, allNodes=True),
        resource_slice(
            "parts",
            DRIVER,
            [part("far", 2, nodeName="n0"), part("near", 1, nodeName="n1")],
            pool="board",
            count=2,
            perDeviceNodeSelection=True,
        ),
    ]
    templates = {"one": claim_spec(exactly("r", "gpu"))}
    report = run(stage, "counters of another node", fleet, templates, ["one"], ["one"])
    # Whichever node comes first, what is left of the board is too little for the device of the other one, or nothing.
    assert [bool(each) for each in report.nodes] == [True, False]


def test_all_devices_of_a_node_are_not_known_while_a_pool_misses_a_slice(stage: Stage):
    fleet = [
        node("n0"),
        local("n0", some(2)),
        resource_slice("foreign", "other.example.com", some(1, "o"), count=2, nodeName="n0"),
    ]
    templates = {
        "all": claim_spec(exactly("r", "gpu", allocationMode="All")),
        "one": claim_spec(exactly("r", "gpu")),
    }
    report = run(stage, "all beside an incomplete foreign pool", fleet, templates, ["all"], ["one"])
    assert report.nodes == ("", "n0")
    assert "currently being updated" in report.messages[0]


def test_an_administrator_does_not_get_all_partitions_of_a_full_board(stage: Stage):
    fleet = [
        node("n0"),
        resource_slice("counters", DRIVER, pool="board", count=2, counters=COUNTERS, nodeName="n0"),
        resource_slice(
            "parts", DRIVER, [part("whole", 2), part("half", 1)], pool="board", count=2, nodeName="n0"
        ),
    ]
    look = {"name": "r", "exactly": wish("gpu", allocationMode="All", adminAccess=True)}
    templates = {"one": claim_spec(exactly("r", "gpu")), "look": claim_spec(look)}
    report = run(stage, "admin access to a full board", fleet, templates, ["one"], ["look"], ["one"])
    # Access for administrators passes over allocations, not over counters.
    assert report.nodes == ("n0", "", "")


def test_between_two_generations_only_the_new_slices_count(stage: Stage):
    fleet = [
        node("n0"),
        resource_slice("old", DRIVER, some(2, "old"), pool="n0", nodeName="n0"),
        resource_slice("new", DRIVER, some(1, "new"), pool="n0", generation=2, nodeName="n0"),
    ]
    templates = {"one": claim_spec(exactly("r", "gpu"))}
    report = run(stage, "two generations", fleet, templates, ["one"], ["one"])
    assert report.nodes == ("n0", "")


def test_all_of_more_devices_than_a_claim_holds_is_never_allocated(stage: Stage):
    templates = {"all": claim_spec(exactly("r", "gpu", allocationMode="All"))}
    report = run(stage, "all of 33", [node("n0"), local("n0", some(33))], templates, ["all"], pinned=False)
    assert report.nodes == ("",)


def test_a_pod_that_names_its_node_gets_no_devices(stage: Stage):
    fleet = [gpus(), node("n0"), local("n0", some(2))]
    one = template("one", claim_spec(exactly("r", "gpu")))
    named, other = pod("named", templates=["one"], nodeName="n0"), pod("other", templates=["one"])
    namespace = named["metadata"]["namespace"]

    def claims_of(name: str) -> list[Manifest]:
        found = stage.api.list("resource.k8s.io/v1/ResourceClaim", namespace=namespace)
        return [each for each in found if each["metadata"].get("generateName", "").startswith(f"{name}-")]

    scenario = Scenario(name="a named node", fleet=tuple(fleet), objects=(one,), pods=(named, other))
    with stage.set(scenario):
        stage.api.create(named)
        try:
            stage.api.wait_until(
                "v1/Pod",
                "named",
                lambda seen: seen["status"].get("resourceClaimStatuses"),
                namespace=namespace,
            )
            # The scheduler has gone on: the pod behind it has its device, and the one before it none.
            with stage.run(other) as verdict:
                assert verdict.node == "n0"
                assert ["allocation" in each.get("status", {}) for each in claims_of("other")] == [True]
                assert ["allocation" in each.get("status", {}) for each in claims_of("named")] == [False]
        finally:
            stage.remove(named)
    (answer,) = place([one, named], gather_fleet(fleet, "here"), release=release_of("1.37")).workloads
    assert answer.verdict == "does-not-fit"


def test_nobody_makes_a_claim_for_extended_resources_of_a_pod_that_names_its_node(stage: Stage):
    fleet = [gpus(extendedResourceName=RESOURCE), node("n0"), local("n0", some(2))]
    asks = [container("main", {RESOURCE: "1"})]
    named, other = pod("named", nodeName="n0", containers=asks), pod("other", containers=asks)
    with stage.set(Scenario(name="a named node", fleet=tuple(fleet), objects=(), pods=(named, other))):
        stage.api.create(named)
        try:
            # The pod behind it has its device, so the scheduler has gone on.
            with stage.run(other) as verdict:
                assert verdict.node == "n0"
                found = stage.api.list(CLAIM, namespace=named["metadata"]["namespace"])
                users = [each["name"] for claim in found for each in claim["status"]["reservedFor"]]
                assert users == ["other"]
        finally:
            stage.remove(named)
    (answer,) = place([named], gather_fleet(fleet, "here"), release=release_of("1.37")).workloads
    assert answer.verdict == "does-not-fit"


def test_a_claim_that_is_being_deleted_is_used_by_no_pod(stage: Stage):
    fleet = [gpus(), node("n0"), local("n0", some(2))]
    held = claim("held", claim_spec(exactly("r", "gpu")))
    held["metadata"]["finalizers"] = ["example.com/keeps-it"]
    one = template("one", claim_spec(exactly("r", "gpu")))
    waits, other = pod("waits", claims=["held"]), pod("other", templates=["one"])
    where = {"namespace": waits["metadata"]["namespace"]}
    scenario = Scenario(
        name="a claim that goes", fleet=tuple(fleet), objects=(held, one), pods=(waits, other)
    )
    with stage.set(scenario):
        stage.api.delete(CLAIM, "held", **where)
        try:
            stage.api.create(waits)
            # The pod behind it has its device, so the scheduler has gone on.
            with stage.run(other) as verdict:
                assert verdict.node == "n0"
                going = stage.api.get(CLAIM, "held", **where)
                assert "allocation" not in going.get("status", {})
                assert "nodeName" not in stage.api.get("v1/Pod", "waits", **where)["spec"]
        finally:
            stage.remove(waits)
            stage.api.patch(CLAIM, "held", {"metadata": {"finalizers": None}}, **where)
    taken = Taken(templates=(going,))
    (answer,) = place([waits], gather_fleet(fleet, "here"), release=release_of("1.37"), taken=taken).workloads
    assert answer.verdict == "does-not-fit"
    assert [each.message for each in answer.reasons] == [
        f"ResourceClaim {where['namespace']}/held is being deleted"
    ]
