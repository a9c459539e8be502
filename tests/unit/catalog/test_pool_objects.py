from __future__ import annotations

import copy
import json

import pytest
import yaml

from dra_infra.catalog import load_fleet, load_snapshot
from dra_infra.catalog.pool_objects import MOST_OF_ALL, WITHOUT_LIMIT
from dra_infra.errors import FleetError
from dra_infra.kubernetes.api import NodeTaint

KARPENTER = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "limits": {"nvidia.com/gpu": "30", "cpu": "5000", "strange": "many"},
        "weight": 10,
        "template": {
            "metadata": {"labels": {"team": "research"}},
            "spec": {
                "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["hgx-h200"]},
                    {
                        "key": "node.kubernetes.io/instance-type",
                        "operator": "In",
                        "values": ["big.metal", "hgx-h100"],
                    },
                ],
            },
        },
    },
}
AWS = "karpenter.k8s.aws/instance-"
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io"
NODE_GROUP = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
CLUSTER_API = {
    "apiVersion": "cluster.x-k8s.io/v1beta1",
    "kind": "MachineDeployment",
    "metadata": {
        "name": "gpu",
        "annotations": {
            f"{NODE_GROUP}-min-size": "1",
            f"{NODE_GROUP}-max-size": "3",
            f"{CAPACITY}/labels": "node.kubernetes.io/instance-type=hgx-h100,team=research",
            f"{CAPACITY}/taints": "nvidia.com/gpu=:NoSchedule",
        },
    },
}
EKS = {
    "apiVersion": "eks.services.k8s.aws/v1alpha1",
    "kind": "Nodegroup",
    "metadata": {"name": "of-the-object"},
    "spec": {
        "name": "gpu",
        "instanceTypes": ["hgx-h100"],
        "scalingConfig": {"minSize": 1, "maxSize": 3, "desiredSize": 2},
        "labels": {"team": "research"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}],
    },
}
EKSCTL = {
    "apiVersion": "eksctl.io/v1alpha5",
    "kind": "ClusterConfig",
    "metadata": {"name": "cluster", "region": "somewhere"},
    "nodeGroups": [
        {
            "name": "gpu",
            "instanceType": "hgx-h100",
            "minSize": 1,
            "maxSize": 3,
            "labels": {"team": "research"},
            "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        }
    ],
}
GKE = {
    "apiVersion": "container.cnrm.cloud.google.com/v1beta1",
    "kind": "ContainerNodePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": 3},
        "nodeConfig": {
            "machineType": "hgx-h100",
            "labels": {"team": "research"},
            "taint": [{"key": "nvidia.com/gpu", "effect": "NO_SCHEDULE"}],
        },
    },
}
AKS = {
    "apiVersion": "containerservice.azure.com/v1api20240901",
    "kind": "ManagedClustersAgentPool",
    "metadata": {"name": "of-the-object"},
    "spec": {
        "azureName": "gpu",
        "vmSize": "hgx-h100",
        "minCount": 1,
        "maxCount": 3,
        "nodeLabels": {"team": "research"},
        "nodeTaints": ["nvidia.com/gpu=:NoSchedule"],
    },
}
CAPZ = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
    "kind": "AzureManagedMachinePool",
    "metadata": {"name": "gpu"},
    "spec": {
        "sku": "hgx-h100",
        "scaling": {"minSize": 1, "maxSize": 3},
        "nodeLabels": {"team": "research"},
        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": ""}],
    },
}


@pytest.fixture
def load(tmp_path):
    def load(*objects):
        path = tmp_path / "fleet.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return load_fleet(str(path))

    return load


def changed(manifest, **spec):
    manifest = copy.deepcopy(manifest)
    manifest["spec"] |= spec
    return manifest


def in_cluster(count, **labels):
    """Nodes of an HGX H100 with these labels, their slices and classes."""
    manifests = copy.deepcopy(load_fleet(f"hgx-h100 x {count}").to_manifests())
    for manifest in manifests:
        if manifest["kind"] == "Node":
            manifest["metadata"]["labels"] |= labels
    return list(manifests)


@pytest.mark.parametrize(
    ("manifest", "now"),
    [(KARPENTER, 0), (CLUSTER_API, 1), (EKS, 1), (EKSCTL, 1), (GKE, 1), (AKS, 1), (CAPZ, 1)],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)
def test_a_pool_without_nodes_grows_by_the_machine_that_it_names(load, manifest, now):
    fleet = load(manifest)
    (pool,) = fleet.pools
    assert (pool.name, pool.machine, pool.now, pool.most) == ("gpu", "hgx-h100", now, 3)
    node = pool.spare[-1].nodes[0]
    assert node.labels["team"] == "research"
    assert node.labels["node.kubernetes.io/instance-type"] == "hgx-h100"
    assert node.taints == (NodeTaint(key="nvidia.com/gpu"),)
    assert len(fleet.nodes) == now
    assert "gpu.nvidia.com" in {each.metadata.name for each in fleet.classes}


@pytest.mark.parametrize(
    ("manifest", "machine"),
    [
        (KARPENTER, "p5.48xlarge"),
        (CLUSTER_API, "p5.48xlarge"),
        (EKS, "g6e.48xlarge"),
        (EKSCTL, "g6e.48xlarge"),
        (GKE, "a3-highgpu-8g"),
        (AKS, "Standard_ND96isr_H100_v5"),
        (CAPZ, "Standard_ND96isr_H100_v5"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else value,
)
def test_a_pool_without_nodes_grows_by_the_machine_of_its_cloud(load, manifest, machine):
    fleet = load(json.loads(json.dumps(manifest).replace("hgx-h100", machine)))
    (pool,) = fleet.pools
    node = pool.spare[-1].nodes[0]
    assert (pool.machine, node.labels["node.kubernetes.io/instance-type"]) == (machine, machine)
    assert len(pool.spare[-1].slices[0].spec.devices) == 8
    assert not fleet.notes or "left out" not in fleet.notes[0]


@pytest.mark.parametrize("read", ["file", "snapshot"])
def test_a_pool_with_nodes_grows_by_nodes_like_the_first_of_them(load, read):
    pool = changed(KARPENTER, template={"spec": {"requirements": []}})
    manifests = [*in_cluster(2, **{"karpenter.sh/nodepool": "gpu"}), pool]
    text = yaml.safe_dump_all(manifests)
    fleet = load(*manifests) if read == "file" else load_snapshot([text]).fleet
    (found,) = fleet.pools
    assert (found.now, found.most, found.nodes) == (2, 3, ("hgx-h100-0", "hgx-h100-1"))
    (more,) = found.spare
    (node,), (slice_,) = more.nodes, more.slices
    assert (node.name, node.labels["kubernetes.io/hostname"]) == ("gpu-added-0", "gpu-added-0")
    assert (slice_.spec.node_name, slice_.spec.pool.name) == ("gpu-added-0", "gpu-added-0")
    assert len(slice_.spec.devices) == 8


@pytest.mark.parametrize(("driver", "has_numa_node"), [("newest", True), ("25.12", False)])
@pytest.mark.parametrize("read", ["file", "snapshot"])
def test_nodes_that_a_pool_adds_have_the_release_that_is_asked_for(tmp_path, read, driver, has_numa_node):
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": [KARPENTER]})
    path = tmp_path / "fleet.json"
    path.write_text(text)
    snapshot = read == "snapshot"
    fleet = load_snapshot([text], driver=driver).fleet if snapshot else load_fleet(str(path), driver=driver)
    (device, *_) = fleet.pools[0].spare[0].slices[0].spec.devices
    assert ("resource.kubernetes.io/numaNode" in device.attributes) is has_numa_node


def test_further_nodes_are_neither_cordoned_nor_unready(load):
    manifests = in_cluster(1, **{"karpenter.sh/nodepool": "gpu"})
    (node,) = [each for each in manifests if each["kind"] == "Node"]
    node["spec"] = {
        "unschedulable": True,
        "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
            {"key": "team", "effect": "NoSchedule"},
        ],
    }
    fleet = load(*manifests, KARPENTER)
    (added,) = fleet.pools[0].spare[0].nodes
    assert (added.unschedulable, [each.key for each in added.taints]) == (False, ["team"])
    assert fleet.nodes[0].unschedulable


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"nvidia.com/gpu": 32}, 4),
        ({"nvidia.com/gpu": "7"}, 0),
        ({"nodes": 5, "nvidia.com/gpu": 80}, 5),
        ({"memory": "5000Gi"}, 2),
        ({"cpu": "-1"}, 0),
        ({}, WITHOUT_LIMIT),
        ({"unknown": 3, "cpu": "1 0"}, WITHOUT_LIMIT),
    ],
)
def test_limits_of_karpenter_are_of_all_nodes_together(load, limits, most):
    fleet = load(changed(KARPENTER, limits=limits))
    assert sum(pool.most for pool in fleet.pools) == most
    assert any("has no limit" in note for note in fleet.notes) == (most == WITHOUT_LIMIT)
    assert any(pool.is_cut for pool in fleet.pools) == (most == WITHOUT_LIMIT)
    none = "node pool gpu is left out: its limits leave room for no node"
    assert (none in fleet.notes) == (most == 0)


@pytest.mark.parametrize("limit", ["x", "1 0", None, ["a"], True])
def test_a_limit_that_is_no_quantity_is_told_beside_those_that_are(load, limit):
    fleet = load(changed(KARPENTER, limits={"cpu": 5000, "nvidia.com/gpu": limit}))
    told = f"limits of node pool gpu that cannot be read count as none: nvidia.com/gpu: {limit}"
    assert [note for note in fleet.notes if " limit" in note or "limits " in note] == [told]


def needs(key, operator, *values):
    return {"key": key if "/" in key else f"{AWS}{key}", "operator": operator, "values": list(values)}


@pytest.mark.parametrize(
    ("requirements", "machines"),
    [
        ([needs("family", "In", "p5"), needs("size", "In", "48xlarge")], "p5.48xlarge"),
        ([needs("family", "In", "p5")], "p5.48xlarge p5.4xlarge"),
        ([needs("gpu-name", "In", "h100"), needs("gpu-count", "Lt", "8")], "p5.4xlarge"),
        (
            [
                needs("category", "In", "g"),
                needs("generation", "Gt", "5"),
                needs("gpu-name", "In", "l4"),
                needs("gpu-count", "Gt", "1"),
            ],
            "g6.12xlarge g6.24xlarge g6.48xlarge",
        ),
        ([needs("family", "In", "g6e"), needs("gpu-count", "Gte", "8")], "g6e.48xlarge"),
        ([needs("gpu-memory", "Gt", "81919"), needs("gpu-name", "In", "a100")], "p4de.24xlarge"),
        (
            [needs("family", "In", "p4d", "p5"), needs("family", "NotIn", "p4d"), needs("cpu", "Gt", "100")],
            "p5.48xlarge",
        ),
        (
            [needs("node.kubernetes.io/instance-type", "In", "g6.xlarge", "p5.48xlarge")],
            "g6.xlarge p5.48xlarge",
        ),
        ([needs("node.kubernetes.io/instance-type", "In", "hgx-h100", "hgx-h100", "l4")], "hgx-h100 l4"),
        ([needs("family", "In", "g4dn"), needs("memory", "Lte", "16384")], "g4dn.xlarge"),
        ([needs("family", "In", "g5"), needs("local-nvme", "Lt", "600")], "g5.2xlarge g5.xlarge"),
    ],
)
def test_a_pool_of_karpenter_grows_by_each_machine_that_its_requirements_allow(load, requirements, machines):
    fleet = load(changed(KARPENTER, template={"spec": {"requirements": requirements}}, limits={"nodes": 2}))
    assert " ".join(sorted(pool.machine for pool in fleet.pools)) == machines
    several = len(fleet.pools) > 1
    names = [node.name for pool in fleet.pools for each in pool.spare for node in each.nodes]
    assert len(set(names)) == len(names) == 2 * len(fleet.pools)
    for pool in fleet.pools:
        assert (pool.name, pool.most) == (f"gpu/{pool.machine}" if several else "gpu", 2)
        labels = pool.spare[0].nodes[0].labels
        assert labels["node.kubernetes.io/instance-type"] == pool.machine
        assert labels["karpenter.sh/nodepool"] == "gpu"
        assert labels.get(f"{AWS}family", pool.machine) == pool.machine.partition(".")[0]
    ones = (1,) * len(fleet.pools)
    assert [(each.pool, each.what, each.left, each.takes) for each in fleet.limits] == (
        [("gpu", "nodes", 2, ones)] if several else []
    )


G6 = [needs("family", "In", "g6"), needs("gpu-count", "Gt", "1")]


@pytest.mark.parametrize(
    ("limits", "most", "shared"),
    [
        ({"nvidia.com/gpu": 5}, {"12xlarge": 1, "24xlarge": 1}, {"nvidia.com/gpu": (5, (4, 4))}),
        (
            {"nvidia.com/gpu": 16},
            {"12xlarge": 4, "24xlarge": 4, "48xlarge": 2},
            {"nvidia.com/gpu": (16, (4, 4, 8))},
        ),
        ({"cpu": "95500m"}, {"12xlarge": 1}, {}),
        (
            {"cpu": "384", "nodes": 3, "strange": "many"},
            {"12xlarge": 3, "24xlarge": 3, "48xlarge": 2},
            {"cpu": (384_000, (48_000, 96_000, 192_000)), "nodes": (3, (1, 1, 1))},
        ),
        (
            {},
            dict.fromkeys(("12xlarge", "24xlarge", "48xlarge"), WITHOUT_LIMIT),
            {"nodes": (WITHOUT_LIMIT, (1, 1, 1))},
        ),
        ({"cpu": 1}, {}, {}),
    ],
)
def test_machines_count_whole_in_the_limits_that_they_share(load, limits, most, shared):
    fleet = load(changed(KARPENTER, template={"spec": {"requirements": G6}}, limits=limits))
    assert {pool.machine.removeprefix("g6."): pool.most for pool in fleet.pools} == most
    assert {each.what: (each.left, each.takes) for each in fleet.limits} == shared
    assert any("has no limit" in note for note in fleet.notes) == (not limits)


def test_what_nodes_of_a_pool_have_is_not_left_for_others_of_its_machines(load):
    nodes = in_cluster(2, **{"karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "mine"})
    pool = changed(KARPENTER, template={"spec": {"requirements": G6}}, limits={"nvidia.com/gpu": 30})
    fleet = load(*nodes, pool)
    (limit,) = fleet.limits
    assert (limit.left, limit.takes) == (14, (8, 4, 4, 8))
    assert [(each.name, each.now, each.most) for each in fleet.pools] == [
        ("gpu/mine", 2, 3),
        ("gpu/g6.12xlarge", 0, 3),
        ("gpu/g6.24xlarge", 0, 3),
        ("gpu/g6.48xlarge", 0, 1),
    ]
    names = [node.name for each in (fleet.at_limits,) for node in each.nodes]
    assert len(names) == len(set(names)) == 10


def test_nodes_that_do_not_say_which_machine_they_are_leave_open_all_that_a_pool_may_take(load):
    nodes = in_cluster(2, **{"karpenter.sh/nodepool": "gpu"})
    pool = changed(KARPENTER, template={"spec": {"requirements": G6}}, limits={"nvidia.com/gpu": 30})
    assert [(each.name, each.now, each.most) for each in load(*nodes, pool).pools] == [
        ("gpu/like hgx-h100-0", 2, 3),
        ("gpu/g6.12xlarge", 0, 3),
        ("gpu/g6.24xlarge", 0, 3),
        ("gpu/g6.48xlarge", 0, 1),
    ]


def test_nodes_of_a_machine_of_ec2_count_whole_in_limits(load):
    nodes = in_cluster(
        1, **{"karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "g6.48xlarge"}
    )
    pool = changed(KARPENTER, template={"spec": {"requirements": G6}}, limits={"cpu": 384})
    fleet = load(*nodes, pool)
    (limit,) = fleet.limits
    assert (limit.left, limit.takes) == (192_000, (192_000, 48_000, 96_000))
    assert [(each.machine, each.now, each.most) for each in fleet.pools] == [
        ("g6.48xlarge", 1, 2),
        ("g6.12xlarge", 0, 4),
        ("g6.24xlarge", 0, 2),
    ]


def test_of_many_machines_so_many_nodes_are_looked_at_that_memory_holds(load):
    requirements = [needs("category", "In", "g", "p")]
    fleet = load(
        changed(KARPENTER, template={"spec": {"requirements": requirements}}, limits={"cpu": 10_000})
    )
    assert sum(pool.most for pool in fleet.pools) <= MOST_OF_ALL
    most = max(pool.most for pool in fleet.pools)
    assert all(pool.is_cut for pool in fleet.pools if pool.most == most)
    assert any("is taken to get at most " in note for note in fleet.notes)


def node_class(**spec):
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "gpu-nodes"},
        "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], **spec},
    }


def of_class(*requirements, kind="EC2NodeClass", group="karpenter.k8s.aws", **spec):
    """A pool of p5.48xlarge, or of what the requirements say, whose nodes are of a class."""
    template = {
        "requirements": list(requirements) or [needs("size", "In", "48xlarge"), needs("family", "In", "p5")],
        "nodeClassRef": {"group": group, "kind": kind, "name": "gpu-nodes"},
    }
    return changed(KARPENTER, template={"spec": template}, limits={"nodes": 2}, **spec)


PLAIN = {"cpu": "191450m", "memory": "1938410Mi", "ephemeral-storage": "17Gi", "pods": "100"}
LOGS = {"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "100Gi"}}
ROOT = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "500Gi"}}
BOTTLEROCKET = {"amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}


@pytest.mark.parametrize(
    ("spec", "differs"),
    [
        ({}, {}),
        ({"kubelet": {"maxPods": 20}}, {"pods": "20"}),
        ({"kubelet": {"podsPerCore": 2, "maxPods": 500}}, {"pods": "384"}),
        ({"kubelet": {"podsPerCore": 2}}, {}),
        ({"kubelet": {"maxPods": "max_pods * 2", "kubeReserved": {"cpu": "vcpus * 10"}}}, {}),
        # Of the images of Bottlerocket podsPerCore is nothing, and memory is reserved for the pods that there may be.
        (
            {**BOTTLEROCKET, "kubelet": {"podsPerCore": 1, "maxPods": 200}},
            {"pods": "200", "memory": "1937310Mi"},
        ),
        (
            {"kubelet": {"systemReserved": {"cpu": "450m", "memory": "10Mi", "ephemeral-storage": "1Gi"}}},
            {"cpu": "191", "memory": "1938400Mi", "ephemeral-storage": "16Gi"},
        ),
        (
            {"kubelet": {"kubeReserved": {"cpu": 2, "memory": "1865Mi", "ephemeral-storage": "3Gi"}}},
            {"cpu": "190", "memory": "1937900Mi", "ephemeral-storage": "15Gi"},
        ),
        (
            {"kubelet": {"evictionHard": {"memory.available": "1100Mi", "nodefs.available": "5%"}}},
            {"memory": "1937410Mi", "ephemeral-storage": "18Gi"},
        ),
        ({"kubelet": {"evictionHard": {"memory.available": "100%"}}}, {"memory": "1938510Mi"}),
        ({"kubelet": {"evictionSoft": {"memory.available": "9Gi"}}}, {}),
        ({"kubelet": {"systemReserved": {"cpu": "500"}}}, {"cpu": "0"}),
        # 30,400 GB, less 1Gi and a tenth.
        ({"instanceStorePolicy": "RAID0"}, {"ephemeral-storage": "26717701424Ki"}),
        ({"blockDeviceMappings": [LOGS, ROOT]}, {"ephemeral-storage": "449Gi"}),
        ({"blockDeviceMappings": [LOGS]}, {}),
        ({**BOTTLEROCKET, "blockDeviceMappings": [LOGS, ROOT]}, {"ephemeral-storage": "89Gi"}),
        (
            {"amiFamily": "Custom", "blockDeviceMappings": [ROOT, {**LOGS, "deviceName": "/dev/sdh"}]},
            {"ephemeral-storage": "89Gi"},
        ),
        ({"blockDeviceMappings": [ROOT, {**LOGS, "rootVolume": True}]}, {"ephemeral-storage": "89Gi"}),
    ],
)
@pytest.mark.parametrize("read", ["file", "snapshot"])
def test_nodes_of_karpenter_have_for_pods_what_their_ec2nodeclass_leaves(load, read, spec, differs):
    objects = [node_class(**spec), of_class()]
    fleet = load(*objects) if read == "file" else load_snapshot([yaml.safe_dump_all(objects)]).fleet
    (pool,) = fleet.pools
    assert pool.spare[0].nodes[0].allocatable == {**PLAIN, **differs}
    assert not [note for note in fleet.notes if "EC2NodeClass" in note]


def test_an_ec2nodeclass_that_is_not_there_is_told_once(load):
    fleet = load(of_class(), of_class(metadata={"name": "x"}) | {"metadata": {"name": "more"}})
    assert [note for note in fleet.notes if "EC2NodeClass" in note] == [
        "EC2NodeClass gpu-nodes of node pool gpu and more is not there: what it sets of kubelet and disks is not known"
    ]
    assert fleet.pools[0].spare[0].nodes[0].allocatable["pods"] == "100"


@pytest.mark.parametrize(
    ("pool", "nodes"),
    [
        (of_class(kind="NodeClass", group="eks.amazonaws.com"), []),
        (of_class(group="karpenter.azure.com"), []),
        (of_class(needs("node.kubernetes.io/instance-type", "In", "hgx-h100")), []),
        (of_class(), in_cluster(1, **{"karpenter.sh/nodepool": "gpu"})),
    ],
    ids=["of Auto Mode", "of another cloud", "no machine of EC2", "with nodes"],
)
def test_an_ec2nodeclass_decides_only_on_nodes_that_karpenter_makes_of_it(load, pool, nodes):
    plain = load(*nodes, pool).pools[0].spare[0].nodes[0].allocatable
    fleet = load(*nodes, pool, node_class(kubelet={"maxPods": 7}))
    assert fleet.pools[0].spare[0].nodes[0].allocatable == plain


def test_a_file_with_an_ec2nodeclass_alone_is_no_fleet(load):
    with pytest.raises(FleetError) as caught:
        load(node_class())
    (problem,) = caught.value.problems
    assert (problem.code, problem.message) == ("fleet-unreadable", "the file holds no Node and no node pool")


def test_nodes_of_karpenter_have_the_requirements_that_leave_one_value(load):
    requirements = [
        needs("family", "In", "p5"),
        needs("gpu-count", "In", "8"),
        needs("karpenter.sh/capacity-type", "In", "spot"),
        needs("topology.kubernetes.io/zone", "In", "a", "b"),
    ]
    fleet = load(changed(KARPENTER, template={"spec": {"requirements": requirements}}))
    labels = fleet.pools[0].spare[0].nodes[0].labels
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert labels.get("topology.kubernetes.io/zone") not in ("a", "b")


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        ([needs("family", "In", "p99")], "name no machine that is known here"),
        (
            [needs("family", "In", "p5"), needs("gpu-count", "Gt", "many")],
            "name no machine that is known here",
        ),
        ([needs("hypervisor", "In", "nitro")], "name no machine that is known here"),
    ],
)
def test_requirements_that_mean_no_known_machine_are_told(load, requirements, told):
    fleet = load(*in_cluster(1), changed(KARPENTER, template={"spec": {"requirements": requirements}}))
    assert any(note.startswith("node pool gpu ") and told in note for note in fleet.notes), fleet.notes


def test_numbers_for_one_zone_count_for_each(load):
    scaling = {"minNodeCount": 1, "maxNodeCount": 2}
    assert load(changed(GKE, autoscaling=scaling)).pools[0].most == 2
    fleet = load(changed(GKE, autoscaling=scaling, nodeLocations=["a", "b", "c"]))
    assert (fleet.pools[0].now, fleet.pools[0].most) == (3, 6)


def test_what_is_not_known_is_named_and_left_out(load):
    nodes = in_cluster(1)
    unknown = changed(GKE, nodeConfig={"machineType": "a9-highgpu-8g"})
    fleet = load(*nodes, unknown, changed(EKS, name="Not A Name"), changed(AKS, maxCount=None))
    assert fleet.pools == ()
    assert [note for note in fleet.notes if "left out" in note] == [
        "node pool gpu is left out: its machine (a9-highgpu-8g) is not known here, and it has no node",
        "node pool Not A Name is left out: no nodes can be called so",
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        {**KARPENTER, "spec": None},
        {**KARPENTER, "spec": {"limits": [1], "template": "x"}},
        changed(
            KARPENTER,
            template={
                "spec": {
                    "requirements": [
                        {"key": [], "operator": "In", "values": 3},
                        {"key": f"{AWS}cpu", "operator": "Gt", "values": ["9" * 5000]},
                        {"key": f"{AWS}cpu", "operator": {}, "values": [None]},
                        7,
                    ]
                }
            },
        ),
        {**CLUSTER_API, "metadata": {"name": 3, "annotations": {f"{NODE_GROUP}-max-size": "9" * 40}}},
        {**EKS, "spec": {"instanceTypes": [None, {}], "scalingConfig": {"maxSize": -4}, "taints": [3]}},
        {**EKSCTL, "nodeGroups": [None, {"name": ["x"], "maxSize": True}]},
        {**AKS, "spec": {"maxCount": 3, "vmSize": "hgx-h100", "nodeTaints": ["", ":", "a"], "nodeLabels": 3}},
    ],
    ids=range(7),
)
def test_a_malformed_object_breaks_nothing(load, manifest):
    load(*in_cluster(1), manifest)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"kubelet": 3, "blockDeviceMappings": "x", "amiSelectorTerms": [3, {"alias": []}]},
        {
            "kubelet": {
                "maxPods": -4,
                "podsPerCore": {},
                "kubeReserved": {"cpu": "-1", "memory": "9" * 4090 + "e1000"},
            }
        },
        {
            "kubelet": {
                "maxPods": True,
                "systemReserved": [1],
                "evictionHard": {"memory.available": []},
            }
        },
        {
            "blockDeviceMappings": [
                None,
                {"rootVolume": True},
                {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "big"}},
            ]
        },
        {"instanceStorePolicy": ["RAID0"], "amiFamily": {}},
    ],
    ids=range(6),
)
def test_a_malformed_ec2nodeclass_breaks_nothing(load, spec):
    fleet = load(of_class(), {**node_class(), "spec": spec}, {**node_class(), "metadata": {"name": []}})
    allocatable = fleet.pools[0].spare[0].nodes[0].allocatable
    assert {key: allocatable[key] for key in ("cpu", "ephemeral-storage", "pods")} == {
        key: PLAIN[key] for key in ("cpu", "ephemeral-storage", "pods")
    }
