"""Claims where the plugin shares GPUs of some nodes and not of others, or in different numbers.

With `consumableShares` NVIDIA's driver lets claims share every GPU of its nodes, and a claim that says nothing takes one share. So what
the plugin gave is held against what claims are given, on nodes whose GPUs are all asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Node
from dra_infra.migration.device_plugin import DevicePlugin, read_plugin_config
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.plugin_configs import FoundConfig, hold_to_nodes, read_nodes, read_plugin_configs
from dra_infra.target import ClusterTarget
from tests.support.placing import place

RELEASES = {each: ClusterTarget(kubernetes=each).releases[0] for each in ("1.36", "1.37")}
GPU, PART = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
SHARED, WHOLE = "device.allowMultipleAllocations", "!device.allowMultipleAllocations"
NO_SHARES = "driver 0.4 has none"


def of_number(number: int) -> str:
    shares = 'device.capacity["gpu.nvidia.com"].shares'
    return f'has({shares}) && {shares}.compareTo(quantity("{number}")) == 0'


def pods(name: str, number: int = 1, resource: str = GPU, **labels: str) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": {resource: 1}}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"nodeSelector": labels, "containers": [container]},
    }
    spec = {"replicas": number, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": spec,
    }


def node(pool: str, number: int = 1) -> Node:
    """A node whose GPUs so many containers share."""
    product = "Tesla-T4" if number == 1 else "Tesla-T4-SHARED"
    labels = {"pool": pool, f"{GPU}.product": product, f"{GPU}.replicas": str(number)}
    return Node(name=pool, labels=labels)


def nodes(*found: Node) -> DevicePlugin:
    plugin = read_nodes([each.labels for each in found])
    assert plugin is not None
    return replace(plugin, nodes=found)


def sharing(number: int = 4, resource: str = GPU, *, renamed: bool = False) -> DevicePlugin:
    slicing = {"renameByDefault": renamed, "resources": [{"name": resource, "replicas": number}]}
    return read_plugin_config({"version": "v1", "sharing": {"timeSlicing": slicing}}, file="plugin.yaml")


def migrated(plugin: DevicePlugin, *objects: Mapping[str, Any], no_shares: str = "") -> list[Migrated]:
    return migrate_objects(objects, Settings(plugin=plugin, no_shares=no_shares))


def selector(plugin: DevicePlugin, pod: Mapping[str, Any], no_shares: str = "") -> str:
    """What the claim of a pod says of its device; empty where it is nothing."""
    [done] = migrated(plugin, pod, no_shares=no_shares)
    [template] = done.added
    [request] = template["spec"]["spec"]["devices"]["requests"]
    [found] = request["exactly"].get("selectors", [{"cel": {"expression": ""}}])
    return str(found["cel"]["expression"])


WHOLE_AND_FOUR = nodes(node("whole"), node("four", 4))
FOUR_AND_TEN = nodes(node("four", 4), node("ten", 10))
RENAMED = sharing(renamed=True)
SEVERAL = {"whole": "version: v1", "four": f"version: v1\nsharing: {{timeSlicing: {{resources: [{{name: {GPU}, replicas: 4}}]}}}}"}  # fmt: skip


@pytest.mark.parametrize(
    ("plugin", "pod", "wanted"),
    [
        (nodes(node("whole")), pods("a"), ""),
        (nodes(node("four", 4)), pods("a"), SHARED),
        (WHOLE_AND_FOUR, pods("a", pool="whole"), WHOLE),
        (WHOLE_AND_FOUR, pods("a", pool="four"), SHARED),
        (FOUR_AND_TEN, pods("a", pool="four"), of_number(4)),
        (FOUR_AND_TEN, pods("a", pool="ten"), of_number(10)),
        (sharing(), pods("a"), SHARED),
        (RENAMED, pods("a"), WHOLE),
        (RENAMED, pods("a", resource=f"{GPU}.shared"), SHARED),
        # A claim has all of a MIG device in any case.
        (RENAMED, pods("a", resource=PART), 'has(device.attributes["gpu.nvidia.com"].profile) && device.attributes["gpu.nvidia.com"].profile == "1g.10gb"'),
        (RENAMED, pods("a", resource="habana.ai/gaudi"), ""),
    ],
)  # fmt: skip
def test_a_claim_says_how_a_gpu_is_shared_where_others_are_shared_otherwise(
    plugin: DevicePlugin, pod: dict[str, Any], wanted: str
):
    assert selector(plugin, pod) == wanted


def test_a_claim_says_nothing_of_shares_where_claims_have_none():
    assert selector(WHOLE_AND_FOUR, pods("a", pool="whole"), NO_SHARES) == ""
    assert selector(RENAMED, pods("a"), NO_SHARES) == ""


def test_labels_of_gke_say_the_number_to_the_claim():
    gke = "cloud.google.com/gke-"
    labels = {f"{gke}gpu-sharing-strategy": "time-sharing", f"{gke}max-shared-clients-per-gpu": "3"}
    assert selector(DevicePlugin(), pods("a", **labels)) == of_number(3)


@pytest.mark.parametrize(
    "plugin",
    [
        hold_to_nodes(DevicePlugin(), [node("whole").labels, node("four", 4).labels]),
        FoundConfig("a.yaml", RENAMED).hold(DevicePlugin()),
        read_plugin_configs({"config": {"default": "whole", "map": SEVERAL}}, file="plugin.yaml").serve(),
    ],
)
def test_gpus_that_are_said_to_be_whole_are_so_beside_others_that_are_known(plugin: DevicePlugin):
    assert selector(plugin, pods("a")) == WHOLE


@pytest.mark.parametrize("no_shares", ["", NO_SHARES])
def test_a_replica_of_a_mig_device_is_to_decide(no_shares: str):
    [done] = migrated(sharing(2, PART), pods("a", resource=PART), no_shares=no_shares)
    path = f"spec.template.spec.containers[0].resources.limits[{PART}]"
    assert [each[:3] for each in done.remarks] == [(path, "decide", "no-shares")]
    assert "smaller MIG devices" in done.remarks[0].hint


@pytest.mark.parametrize(
    ("plugin", "pod", "hint"),
    [
        (nodes(node("whole")), pods("a"), ""),
        (sharing(), pods("a"), "give the driver featureGates: {ConsumableShares: true} and consumableShares: 4"),
        (WHOLE_AND_FOUR, pods("a", pool="four"), "give the driver featureGates: {ConsumableShares: true} and consumableShares: 4 on these nodes; the others have a release of their own, by kubeletPlugin.nodeSelector"),
        (FOUR_AND_TEN, pods("a", pool="ten"), "give the driver featureGates: {ConsumableShares: true} and consumableShares: 10 on these nodes; the others have a release of their own, by kubeletPlugin.nodeSelector"),
        (WHOLE_AND_FOUR, pods("a", pool="whole"), "give the driver no consumableShares on these nodes; the others have a release of their own, by kubeletPlugin.nodeSelector"),
    ],
)  # fmt: skip
def test_the_hint_says_what_the_driver_needs_on_which_nodes(
    plugin: DevicePlugin, pod: dict[str, Any], hint: str
):
    [done] = migrated(plugin, pod)
    [told] = [each.hint for each in done.remarks if each.code in ("replica-to-share", "resource-to-claim")]
    assert told == hint


def fits(plugin: DevicePlugin, fleet: Fleet, objects: Sequence[Mapping[str, Any]], minor: str) -> bool:
    """Whether pods have GPUs in every order of arrival, once they are migrated."""
    made = [each for done in migrated(plugin, *objects) for each in (done.manifest, *done.added)]
    found = place([each for each in made if each is not None], fleet, release=RELEASES[minor])
    return found.joint.verdict == "always"


@settings(deadline=None, max_examples=12)
@given(st.lists(st.integers(1, 4), min_size=2, max_size=3, unique=True), st.sampled_from(sorted(RELEASES)))
def test_pods_fill_gpus_that_are_shared_and_others_as_the_plugin_gave_them(numbers: list[int], minor: str):
    there = [node(f"of-{each}", each) for each in numbers]
    # The labels by which pods chose the plugin's nodes are gone.
    machines = (f"g4dn.xlarge{f' shares={each}' if each > 1 else ''}" for each in numbers)
    fleet = load_fleet(", ".join(machines), kubernetes=minor, driver="0.5")
    chosen = (f"{GPU}.product", f"{GPU}.replicas")
    everyone = [
        pods(each.name, number, **{name: each.labels[name] for name in chosen[: 1 + (number > 1)]})
        for number, each in zip(numbers, there, strict=True)
    ]
    assert fits(nodes(*there), fleet, everyone, minor)
    for each in everyone:
        more = {**each, "metadata": {"name": "more", "namespace": "ml"}}
        assert not fits(nodes(*there), fleet, [*everyone, more], minor)
