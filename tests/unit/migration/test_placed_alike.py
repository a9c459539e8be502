"""Every row of the table that has pods, placed before and after: the machines that took them with the plugin take them with the driver.

The real scheduler says the same of some rows (`tests/e2e/migration/test_placed_alike.py`); this one is ours, without servers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.catalog.machines import machines
from dra_infra.cutover.sides import Sides, all_on_plugin
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.target import ClusterTarget
from tests.support.migration.device_plugin_cases import Case, cases
from tests.support.placing import place

(RELEASE,) = ClusterTarget(kubernetes="1.37").releases
GKE = "cloud.google.com/gke-"
SHARED = Replicas("time-slicing", 4, renamed=False, one_each=False)

LABELS: Mapping[str, Mapping[str, str]] = {
    "a2-highgpu-1g mig=1g.5gb*7": {f"{GKE}gpu-partition-size": "1g.5gb"},
    "g2-standard-8 shares=4 driver=0.5": {
        f"{GKE}gpu-sharing-strategy": "time-sharing",
        f"{GKE}max-shared-clients-per-gpu": "4",
    },
    "g6.12xlarge": {
        **machines()["g6.12xlarge"].cloud.autoscaler["l4"],
        "karpenter.k8s.aws/instance-gpu-count": "4",
    },
    "g4dn.xlarge": machines()["g4dn.xlarge"].cloud.autoscaler["t4"],
    "Standard_NC4as_T4_v3": {"accelerator": "nvidia"},
}
"""Labels of machines beyond those of the catalogue."""

PLUGINS: Mapping[str, DevicePlugin] = {
    "a2-highgpu-1g mig=1g.5gb*7": DevicePlugin(strategy="single", profiles=("1g.5gb",)),
    "g2-standard-8 shares=4 driver=0.5": DevicePlugin(replicas={"nvidia.com/gpu": SHARED}),
}
"""How the plugin of GKE serves machines, whatever the row says of others."""

MACHINES = (
    *("hgx-h100 x 4", "a100-80gb x 4", "t4 x 4"),
    *(
        "a100-80gb x 1 mig=1g.10gb*7",
        "hgx-h100 x 1 mig=1g.10gb+me*1+1g.10gb*1+2g.20gb*1+3g.40gb*1",
        "g2-standard-8",
    ),
    *LABELS,
)

NOT_OURS = "objects of this kind are not placed"
NOT_PLACED = {
    "old-name": "no kubelet has had the name since Kubernetes 1.10, so nothing takes its pod before",
    "amd": "the plugin is of another vendor, whose nodes are not made up here",
    "amd-labels": "the plugin is of another vendor, whose nodes are not made up here",
    "amd-family-label": "the plugin is of another vendor, whose nodes are not made up here",
    "intel": "the plugin is of another vendor, whose nodes are not made up here",
    "intel-labels": "the plugin is of another vendor, whose nodes are not made up here",
    "whole-beside-shares": "with its configuration the plugin of all nodes shares their GPUs",
    "inference-service-of-deployment": "how many GPUs a model takes beside its limits is said by its runtime",
    "nim-pipeline": NOT_OURS,
    "job-template": NOT_OURS,
    "disaggregated-set": NOT_OURS,
    "scheduled-spark": NOT_OURS,
    "scaled-job": NOT_OURS,
    "runner-set": NOT_OURS,
    "clone-set": NOT_OURS,
    "pod-clique-set": NOT_OURS,
    "helm-release": "what its chart makes is not known",
    "quota": "has no pods",
    "quota-mig": "has no pods",
    "quotas-mig": "has no pods",
}
"""Rows that change, and cannot be placed. Rows that stay as they were are placed as they were."""


def is_changed(row: Case) -> bool:
    return any(done.manifest is not was for was, done in zip(row.input, row.migrate(), strict=True))


ROWS = [each for each in cases() if is_changed(each) and each.id not in NOT_PLACED]


@functools.cache
def sides(machine: str, row: str) -> Sides:
    (found,) = [each for each in cases() if each.id == row]
    plugin = PLUGINS.get(machine, found.settings.plugin)
    assert plugin is not None
    # Where the plugin shares, the driver does, as the report says.
    is_shared = any(each.way == "time-slicing" for each in plugin.replicas.values())
    shares = " shares=4 driver=0.5" if is_shared and machine not in PLUGINS else ""
    fleet = load_fleet(f"{machine}{shares}")
    more = LABELS.get(machine, {})
    nodes = tuple(replace(each, labels={**each.labels, **more, "zone": "a"}) for each in fleet.nodes)
    return all_on_plugin(replace(fleet, nodes=nodes), plugin)


def machines_of(row: Case) -> list[str]:
    """The machines of a cluster as the row has it: those on which nvidia.com/gpu is what its settings or labels say."""
    if row.id.startswith("gke-"):
        return list(MACHINES)
    own = [each for each in MACHINES if each not in PLUGINS]
    return [each for each in own if each.endswith(f"mig={row.profile}*7")] if row.profile else own


def takes(machine: str, row: Case, manifests: Sequence[Mapping[str, Any]], *, is_driver: bool) -> bool:
    both = sides(machine, row.id)
    fleet = both.at(frozenset(both.offered) if is_driver else frozenset())
    found = place(manifests, fleet, release=RELEASE)
    return found.joint.verdict == "always"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_machines_that_took_the_pods_of_a_row_take_them_after_its_migration(row: Case):
    made = [each for done in row.migrate() for each in (done.manifest, *done.added) if each is not None]
    there = machines_of(row)
    before = {each for each in there if takes(each, row, row.input, is_driver=False)}
    after = {each for each in there if takes(each, row, made, is_driver=True)}
    assert before != set()
    assert after == before


@pytest.mark.parametrize("row", ["daemon-set-label", "spread-label"])
def test_pods_that_are_counted_by_nodes_keep_the_nodes_that_they_chose(row: str):
    (found,) = [each for each in cases() if each.id == row]
    made = [each for done in found.migrate() for each in (done.manifest, *done.added) if each is not None]
    assert takes("hgx-h100 x 2, t4 x 2", found, found.input, is_driver=False)
    assert takes("hgx-h100 x 2, t4 x 2", found, made, is_driver=True)


def test_every_row_is_placed_or_has_a_reason():
    stay = {each.id for each in cases() if not is_changed(each)}
    assert NOT_PLACED.keys() | {each.id for each in ROWS} | stay == {each.id for each in cases()}
    assert len(ROWS) >= 27
