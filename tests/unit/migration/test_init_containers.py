"""Init containers that ask for devices: a pod takes no more of its node than the scheduler counted before."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated

SETTINGS = Settings(plugin=DevicePlugin(strategy="mixed"))
GPU, ONE, TWO = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"


def container(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "registry.example.com/a:1", **fields}


def asking(name: str, number: int, **fields: Any) -> dict[str, Any]:
    return container(name, resources={"limits": {GPU: number}}, **fields)


def sidecar(name: str, number: int) -> dict[str, Any]:
    return asking(name, number, restartPolicy="Always")


def migrate(inits: list[dict[str, Any]], *containers: dict[str, Any]) -> Migrated:
    spec = {"initContainers": inits, "containers": list(containers)}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod", "namespace": "ml"}, "spec": spec}
    [done] = migrate_objects([pod], SETTINGS)
    assert done.manifest is not None
    return done


def requests(done: Migrated) -> dict[tuple[str, str], int]:
    """The devices of each request, by the entry of its claim and its name."""
    assert done.manifest is not None
    templates = {each["metadata"]["name"]: each["spec"]["spec"]["devices"]["requests"] for each in done.added}
    return {
        (entry["name"], each["name"]): each["exactly"].get("count", 1)
        for entry in done.manifest["spec"]["resourceClaims"]
        for each in templates[entry["resourceClaimTemplateName"]]
    }


def used(done: Migrated) -> dict[str, set[tuple[str, str]]]:
    """The requests that each container uses."""
    assert done.manifest is not None
    spec = done.manifest["spec"]
    there = requests(done)
    return {
        each["name"]: {
            key
            for entry in each["resources"]["claims"]
            for key in there
            if key[0] == entry["name"] and entry.get("request", key[1]) == key[1]
        }
        for each in [*spec["initContainers"], *spec["containers"]]
    }


def numbers(done: Migrated) -> dict[str, int]:
    """How many devices each container sees."""
    there = requests(done)
    return {name: sum(there[key] for key in keys) for name, keys in used(done).items()}


def outcomes(done: Migrated) -> list[tuple[str, str]]:
    """Code and path of what is said of init containers."""
    return [
        (f"{each.code} {each.outcome}", each.path) for each in done.remarks if each.code.startswith("init")
    ]


@pytest.mark.parametrize(
    ("inits", "containers", "taken"),
    [
        ([1], [8], 8),
        ([8], [1], 8),
        ([2], [1, 1], 2),
        ([3], [1, 1], 3),
        ([1, 3], [8], 8),
        ([3, 1], [8], 8),
        ([4, 2, 1], [3], 4),
        ([2, 5], [1], 5),
        ([2, 1], [], 2),
        ([4], [2, 8], 10),
    ],
)
def test_pod_takes_as_many_devices_as_it_was_counted_with(
    inits: list[int], containers: list[int], taken: int
):
    done = migrate(
        [asking(f"i{index}", number) for index, number in enumerate(inits)],
        *[asking(f"c{index}", number) for index, number in enumerate(containers)] or [asking("c", 0)],
    )
    written = {f"i{index}": number for index, number in enumerate(inits)}
    written |= {f"c{index}": number for index, number in enumerate(containers)}
    assert sum(requests(done).values()) == taken
    assert done.manifest is not None
    if containers:
        assert numbers(done) == written
    assert not [each for each in done.remarks if each.outcome == "lost"]


def test_containers_that_run_at_once_share_no_device():
    done = migrate([asking("check", 2)], asking("left", 1), asking("right", 1))
    assert not used(done)["left"] & used(done)["right"]
    assert used(done)["check"] == used(done)["left"] | used(done)["right"]


def test_init_container_leaves_the_devices_of_a_sidecar_alone_that_runs_already():
    done = migrate([sidecar("guard", 1), asking("check", 1)], asking("main", 1))
    assert not used(done)["check"] & used(done)["guard"]
    assert used(done)["check"] == used(done)["main"]
    assert outcomes(done) == [("init-container-shares changed", "spec.initContainers[1]")]


def test_init_container_uses_the_devices_of_a_sidecar_that_starts_after_it():
    done = migrate([asking("check", 2), sidecar("guard", 2)], container("main", resources={"claims": []}))
    assert used(done)["check"] == used(done)["guard"] != set()


def test_container_has_one_entry_for_a_claim_and_it_is_said_where_that_costs_devices():
    both = container("main", resources={"limits": {ONE: 2, TWO: 2}})
    done = migrate([container("check", resources={"limits": {ONE: 1, TWO: 1}})], both)
    assert done.manifest is not None
    [init] = done.manifest["spec"]["initContainers"]
    names = [each["name"] for each in init["resources"]["claims"]]
    assert len(set(names)) == len(names)
    assert numbers(done) == {"check": 2, "main": 4}
    assert outcomes(done) == [
        ("init-container-shares changed", "spec.initContainers[0]"),
        ("init-container-takes-more lost", "spec.initContainers[0]"),
    ]
