"""Large fleets: equal work once, candidates made when looked at."""

from __future__ import annotations

import pytest

from dra_infra.placement.cluster import Cluster
from tests.support.placing import place


@pytest.fixture
def searches(monkeypatch):
    found = []
    search = Cluster.search

    def recorded(self, node, demands, state):
        taken = [each.id for pool in self.pools(node) for each in pool.devices]
        found.append("".join("x" if state.is_allocated(each) else "." for each in taken))
        return search(self, node, demands, state)

    monkeypatch.setattr(Cluster, "search", recorded)
    return found


def test_equal_nodes_are_searched_once(build, searches):
    fleet = build.a_fleet(*(build.gpus(f"n{index:03}", 8) for index in range(100)))
    answer = build.place_request(fleet, build.a_request(count=8))
    assert len(answer.nodes) == 100
    # Once on the free node, and once when it is full, for the number of pods.
    assert searches == ["........", "xxxxxxxx"]


def test_equal_workloads_are_searched_once(build, searches):
    fleet = build.a_fleet(*(build.gpus(f"n{index:03}", 8) for index in range(50)))
    templates = [build.a_template(f"t{index}", build.a_request(count=8)) for index in range(40)]
    deployments = [build.a_deployment(f"d{index}", f"template:t{index}") for index in range(40)]
    placement = place([build.a_class(), *templates, *deployments], fleet)
    assert placement.joint.verdict == "always"
    assert searches == ["........", "xxxxxxxx"]


def test_nodes_that_differ_in_what_nothing_reads_are_equal(build, searches):
    fleet = build.a_fleet(
        *(
            build.a_slice(f"n{node}", [build.a_device("d", {"uuid": f"{node}", "model": "x"})])
            for node in range(9)
        )
    )
    build.place_request(fleet, build.a_request("gpu", "device.attributes['gpu.example.com'].model == 'x'"))
    assert searches == [".", "x"]


def test_nodes_that_differ_in_a_constraint_only_by_the_values_themselves_are_equal(build, searches):
    fleet = build.a_fleet(
        *(
            build.a_slice(
                f"n{node}", [build.a_device(f"d{i}", {"root": f"{node}-{i // 2}"}) for i in range(4)]
            )
            for node in range(9)
        )
    )
    answer = build.place_request(
        fleet, build.a_request(count=2), constraints=[{"matchAttribute": "gpu.example.com/root"}]
    )
    assert (answer.verdict, answer.more_pods) == ("fits", 17)
    assert searches == ["....", "xx..", "xxxx"]


def test_candidates_are_a_sequence(build):
    answer = build.place_request(build.a_fleet(build.gpus("a"), build.gpus("b")), build.a_request())
    first, second = answer.nodes
    assert answer.nodes[0] == first
    assert answer.nodes[-1] == second
    assert answer.nodes[:1] == (first,)
    assert second in answer.nodes
    assert answer.nodes == (first, second)
    assert hash(answer.nodes) == hash((first, second))
    assert repr(answer.nodes) == "CandidateNodes(2 nodes)"
    with pytest.raises(IndexError):
        answer.nodes[2]
