"""The order in which objects are written changes no answer, nor the order of arrivals that shows it."""

from __future__ import annotations

import itertools
from typing import Any

from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import simulate
from dra_infra.catalog import load_fleet
from tests.unit.answers.objects import FLEET, a_pod, a_template


def a_pod_without_claims(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "ml"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def test_the_same_objects_in_any_order_get_the_same_placement_and_the_same_witness() -> None:
    objects = [a_template(), a_pod("b"), a_pod_without_claims("c"), a_pod_without_claims("a")]

    first, *others = (
        simulate(Scene.of_manifests(ordered, fleet=load_fleet(FLEET))).placement
        for ordered in itertools.permutations(objects)
    )

    assert first is not None
    assert first.joint.verdict == "always"
    assert first.joint.works is not None
    assert all(other == first for other in others)
