"""Whether autoscalers add the nodes that pods need: a table of behaviour that their documentation and sources describe.

No Go judge is asked. Karpenter's module needs a newer Go than the toolset of this project has, and the module of cluster-autoscaler cannot be
had there. Each row names the source that the message must have.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from decimal import Decimal

import pytest
import yaml

from dra_infra.catalog import load_fleet
from dra_infra.catalog.fleet_terms import read_terms
from dra_infra.catalog.fleets import build as build_fleet
from dra_infra.catalog.node_pools import DescribedFleet, PoolOfGroup, price_pools
from dra_infra.errors import FleetError
from dra_infra.placement import scheduling
from dra_infra.placement.growth import find_growth, place_within_limits
from dra_infra.target import ClusterTarget
from tests.support.placing import ask

from . import conftest as build

GPU = 'device.driver == "gpu.nvidia.com"'
H100 = f'{GPU} && device.attributes["gpu.nvidia.com"].productName.contains("H100")'
UUID = f'{GPU} && device.attributes["gpu.nvidia.com"].uuid != "x"'
CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"
GROUP = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
LABEL = "cloud.google.com/gke-nvidia-gpu-dra-driver"


def a_nodepool(node_class="karpenter.k8s.aws", machine="p5.48xlarge"):
    spec = {
        "nodeClassRef": {"group": node_class, "kind": "NodeClass", "name": "gpu"},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]}],
    }
    spec = {"limits": {"nodes": 4}, "template": {"spec": spec}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": spec}


def an_autoscaler(image, *args, **env):
    container = {
        "name": "c",
        "image": image,
        "args": [*args],
        "env": [{"name": k, "value": v} for k, v in env.items()],
    }
    spec = {"template": {"spec": {"containers": [container]}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "scaler"}, "spec": spec}


def karpenter(version, **env):
    return an_autoscaler(f"public.ecr.aws/karpenter/controller:{version}", **env)


def a_nodegroup(least=0):
    scaling = {"minSize": least, "maxSize": 3}
    spec = {"name": "gpu", "instanceTypes": ["p5.48xlarge"], "scalingConfig": scaling}
    return {
        "apiVersion": "eks.services.k8s.aws/v1alpha1",
        "kind": "Nodegroup",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }


def a_gke_pool(least=0, **labels):
    spec = {
        "autoscaling": {"totalMinNodeCount": least, "totalMaxNodeCount": 3},
        "nodeConfig": {"machineType": "a3-highgpu-8g", "labels": labels},
    }
    return {
        "apiVersion": "container.cnrm.cloud.google.com/v1beta1",
        "kind": "ContainerNodePool",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }


def an_aks_pool(least=0):
    spec = {"azureName": "gpu", "vmSize": "Standard_ND96isr_H100_v5", "minCount": least, "maxCount": 3}
    return {
        "apiVersion": "containerservice.azure.com/v1api20240901",
        "kind": "ManagedClustersAgentPool",
        "metadata": {"name": "gpu"},
        "spec": spec,
    }


def a_machine_deployment(least=0, machine="", **capacity):
    annotations = {
        f"{GROUP}-min-size": str(least),
        f"{GROUP}-max-size": "3",
        f"{CAPACITY}labels": "team=research",
    }
    if machine:
        annotations[f"{CAPACITY}labels"] += f",node.kubernetes.io/instance-type={machine}"
    annotations |= {CAPACITY + name.replace("_", "-"): value for name, value in capacity.items()}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "MachineDeployment",
        "metadata": {"name": "gpu", "annotations": annotations},
    }


ANNOTATED = {"dra_driver": "gpu.nvidia.com", "gpu_count": "8", "cpu": "64", "memory": "256Gi"}
IN_1_34 = an_autoscaler(
    "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.3", "--enable-dynamic-resource-allocation=true"
)
POOL = PoolOfGroup(replace(read_terms("hgx-h100")[0], name="a3", count=2), "hgx-h100", 0, None, "")
COUNTS = {"IGNORE_DRA_REQUESTS": "false"}


@pytest.fixture
def ask_about(tmp_path):
    """The question about a pod with a claim on the pools of some objects."""

    def ask_about(*objects, select=GPU, minor="1.36", requests=(), constraints=(), **exactly):
        path = tmp_path / "fleet.yaml"
        path.write_text(yaml.safe_dump_all(copy.deepcopy(objects)))
        template = build.a_template("t", *(requests or [build.a_request(**exactly)]), constraints=constraints)
        pods = build.a_deployment("w", "template:t", replicas=1)
        return ask(
            [build.a_class("gpu", select), template, pods],
            load_fleet(str(path), kubernetes=minor),
            release=ClusterTarget(kubernetes=minor).releases[-1],
        )

    return ask_about


def grow(question):
    return find_growth(question, scheduling.place(question))


DOCUMENTED = {
    "Karpenter on AWS before 1.15 has no templates": (
        [a_nodepool(), karpenter("1.14.1", **COUNTS)],
        {},
        ("does-not-grow", "karpenter-provider-aws#9519", "use Karpenter 1.15 or newer"),
    ),
    "Karpenter on AWS passes over claims as it comes": (
        [a_nodepool(), karpenter("1.15.0")],
        {},
        ("grows-if", "tasks/dra.md", "`settings.enableDRA: true` is in the values of Karpenter's chart"),
    ),
    "Karpenter on AWS of an unknown version": (
        [a_nodepool()],
        {},
        ("grows-if", "tasks/dra.md", "Karpenter on AWS is 1.15 or newer and `settings.enableDRA: true`"),
    ),
    "Karpenter on AWS with the setting": ([a_nodepool(), karpenter("1.15.0", **COUNTS)], {}, ("fits-grown",)),
    "Karpenter on AWS has the product's name in its templates": (
        [a_nodepool(), karpenter("1.15.0", **COUNTS)],
        {"select": H100},
        ("fits-grown",),
    ),
    "Karpenter on AWS has no UUID in its templates": (
        [a_nodepool(), karpenter("1.15.0", **COUNTS)],
        {"select": UUID},
        (
            "does-not-grow",
            "tasks/dra.md",
            "selectors read uuid, which its template of a new node does not have",
        ),
    ),
    "Karpenter on AWS compares PCIe roots": (
        [a_nodepool(), karpenter("1.15.0", **COUNTS)],
        {"constraints": [{"matchAttribute": "gpu.nvidia.com/driverVersion"}]},
        ("fits-grown",),
    ),
    "Karpenter on AWS has no template for each machine": (
        [a_nodepool(machine="hgx-h100"), karpenter("1.15.0", **COUNTS)],
        {},
        ("does-not-grow", "tasks/dra.md", "it has no template for hgx-h100"),
    ),
    "Karpenter on AWS does not understand admin access": (
        [a_nodepool(), karpenter("1.15.0", **COUNTS)],
        {"adminAccess": True},
        ("does-not-grow", "kubernetes-sigs/karpenter#3228", "it does not understand admin access"),
    ),
    "no source says whether Karpenter 1.15 understands firstAvailable": (
        [a_nodepool(), karpenter("1.15.0", **COUNTS)],
        {"requests": [{"name": "r", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}]},
        ("not-decided", "tasks/dra.md", "no source says whether it understands `firstAvailable`"),
    ),
    "Karpenter on Azure": (
        [a_nodepool("karpenter.azure.com")],
        {},
        ("does-not-grow", "karpenter-provider-azure#1783", "the provider does not support claims"),
    ),
    "Karpenter on GCP": (
        [a_nodepool("karpenter.k8s.gcp")],
        {},
        ("does-not-grow", "docs/settings.md at 417f047b", "no template of the devices of a machine"),
    ),
    "Karpenter on Cluster API": (
        [a_nodepool("karpenter.cluster.x-k8s.io")],
        {},
        ("not-decided", "go.mod at 2e0fec7", "no source says whether it adds nodes for pods with claims"),
    ),
    "EKS Auto Mode before 1.36": (
        [a_nodepool("eks.amazonaws.com")],
        {"minor": "1.35"},
        ("does-not-grow", "requires Kubernetes 1.36", "upgrade the cluster"),
    ),
    "a node group of EKS at zero": (
        [a_nodegroup()],
        {},
        ("does-not-grow", "aws_cloud_provider.go", "set the minimum to 1"),
    ),
    "a node group of EKS with a node": ([a_nodegroup(1)], {"count": 8}, ("fits-now",)),
    "a node group of EKS with a node and the old default": (
        [a_nodegroup(1)],
        {"minor": "1.34", "two": True},
        (
            "grows-if",
            "cluster-autoscaler-1.34.0",
            "`--enable-dynamic-resource-allocation=true` is in the flags",
        ),
    ),
    "a node group of EKS with a node from 1.35 on": ([a_nodegroup(1)], {"two": True}, ("fits-grown",)),
    "a pool of AKS at zero": (
        [an_aks_pool()],
        {},
        ("does-not-grow", "azure_scale_set.go", "set the minimum to 1"),
    ),
    "a pool of GKE without the label": (
        [a_gke_pool()],
        {},
        ("grows-if", "set-up-dra", f'`{LABEL}: "true"` is in the labels of the node pool'),
    ),
    "a pool of GKE with the label": ([a_gke_pool(**{LABEL: "true"})], {}, ("fits-grown",)),
    "a pool of GKE with another value of the label": (
        [a_gke_pool(**{LABEL: "false"})],
        {},
        ("grows-if", "set-up-dra", LABEL),
    ),
    "a pool of GKE with a node needs no label": ([a_gke_pool(1)], {"two": True}, ("fits-grown",)),
    "Cluster API before 1.35 with the annotation": (
        [a_machine_deployment(**ANNOTATED), IN_1_34],
        {},
        ("fits-grown",),
    ),
    "annotations of Cluster API do not say which product a machine has": (
        [a_machine_deployment(**ANNOTATED), IN_1_34],
        {"select": H100},
        ("not-decided", "annotations do not say which devices nodes of gpu have, only how many"),
    ),
    "Cluster API has no names of products in its template": (
        [a_machine_deployment(machine="p5.48xlarge", **ANNOTATED), IN_1_34],
        {"select": H100},
        ("does-not-grow", "cloudprovider/clusterapi", "selectors read productName, which its template"),
    ),
    "Cluster API from 1.35 on": (
        [a_machine_deployment(**ANNOTATED)],
        {},
        ("does-not-grow", "kubernetes/autoscaler#10199", "set the minimum to 1"),
    ),
    "Cluster API with the fix, of which no release is known": (
        [a_machine_deployment(**ANNOTATED)],
        {"minor": "1.37"},
        ("not-decided", "kubernetes/autoscaler#10200", "no source says"),
    ),
}
"""Objects, what differs in the claim, and the verdict with the source and a part of the message."""


@pytest.mark.parametrize(("objects", "claim", "expected"), DOCUMENTED.values(), ids=list(DOCUMENTED))
def test_an_autoscaler_does_what_its_source_says(ask_about, objects, claim, expected):
    claim = dict(claim)
    if claim.pop("two", False):
        claim["count"] = 8
        claim["pods"] = 2
    pods = claim.pop("pods", 1)
    question = ask_about(*objects, **claim)
    question.manifests[-1]["spec"]["replicas"] = pods
    found = grow(question)
    verdict, *parts = expected
    assert found.verdict == verdict, str(found)
    assert found.fits == (verdict in ("fits-now", "fits-grown"))
    for part in parts:
        assert part in str(found)
    assert all(each.source in str(each) for each in found.outlooks)


def test_a_review_says_of_a_pool_that_does_not_grow_that_the_pods_do_not_fit(ask_about):
    placed = place_within_limits(ask_about(a_nodegroup()))
    assert [each.verdict for each in placed.workloads] == ["does-not-fit"]
    assert placed.joint.works is None
    assert placed.growth.verdict == "does-not-grow"
    assert not placed.fleet.nodes


def test_of_two_pools_the_one_grows_whose_autoscaler_adds_nodes(ask_about):
    cheap, dear = a_nodegroup(), a_gke_pool(**{LABEL: "true"})
    cheap["spec"]["name"] = "cheap"
    question = ask_about(cheap, dear)
    priced = price_pools(question.fleet, {"cheap": Decimal(1), "gpu": Decimal(9)})
    found = grow(replace(question, fleet=priced))
    assert (found.verdict, found.added, found.added_cost) == ("fits-grown", (0, 1), Decimal(9))
    assert [each.pool for each in found.outlooks] == ["gpu"]


def test_pods_without_claims_get_nodes_of_every_pool(ask_about):
    question = ask_about(a_nodegroup())
    pods = build.a_deployment("plain", replicas=1, requests={"cpu": "1"})
    question = replace(question, manifests=[pods])
    found = grow(question)
    assert (found.verdict, found.added) == ("fits-grown", (1,))


def test_a_pool_of_a_file_without_an_autoscaler_grows_as_the_file_says():
    found = grow(
        ask(
            [
                build.a_class("gpu", GPU),
                build.a_template("t", build.a_request()),
                build.a_deployment("w", "template:t"),
            ],
            build_fleet(DescribedFleet("f", (), [POOL])),
        )
    )
    assert (found.verdict, found.outlooks) == ("fits-grown", ())


def test_a_machine_that_annotations_describe_has_their_amounts_and_devices(ask_about):
    (pool,) = ask_about(a_machine_deployment(**ANNOTATED, ephemeral_disk="100Gi")).fleet.pools
    (node,), (slice_,) = pool.spare[0].nodes, pool.spare[0].slices
    assert dict(node.allocatable) == {
        "pods": "110",
        "cpu": "64",
        "memory": "256Gi",
        "ephemeral-storage": "100Gi",
    }
    assert [each.name for each in slice_.spec.devices] == [f"gpu-{number}" for number in range(8)]
    assert {each.attributes["type"].string for each in slice_.spec.devices} == {"gpu"}
    assert (slice_.spec.node_name, slice_.spec.pool.name) == (node.name, node.name)


@pytest.mark.parametrize(
    "capacity",
    [
        {**ANNOTATED, "gpu_count": "0"},
        {**ANNOTATED, "gpu_count": "129"},
        {**ANNOTATED, "gpu_count": "x"},
        {**ANNOTATED, "dra_driver": "no driver"},
    ],
)
def test_annotations_that_describe_no_devices_are_no_machine(ask_about, capacity):
    fleet = ask_about(a_machine_deployment(**capacity)).fleet
    assert fleet.pools == ()
    assert "node pool gpu is left out" in fleet.notes[0]


@pytest.mark.parametrize(
    ("autoscaler", "labels", "verdict"),
    [
        ("cluster-autoscaler-aws", {}, "does-not-grow"),
        ("cluster-autoscaler-gke", {}, "grows-if"),
        ("cluster-autoscaler-gke", {LABEL: "true"}, "fits-grown"),
        ("karpenter-aws", {}, "grows-if"),
        ({"name": "karpenter-aws", "version": "1.15", "countsClaims": True}, {}, "fits-grown"),
        ({"name": "karpenter-aws", "version": "1.14.1", "countsClaims": True}, {}, "does-not-grow"),
        ({"name": "karpenter-aws", "version": "1.15", "countsClaims": False}, {}, "grows-if"),
    ],
)
def test_a_pool_of_a_file_may_name_its_autoscaler(tmp_path, autoscaler, labels, verdict):
    pool = {"name": "gpu", "nodes": "p5.48xlarge", "max": 3, "autoscaler": autoscaler, "labels": labels}
    (tmp_path / "pools.yaml").write_text(yaml.safe_dump({"pools": [pool]}))
    fleet = load_fleet(str(tmp_path / "pools.yaml"))
    template = build.a_template("t", build.a_request())
    found = grow(ask([build.a_class("gpu", GPU), template, build.a_deployment("w", "template:t")], fleet))
    assert found.verdict == verdict, str(found)


@pytest.mark.parametrize(
    ("autoscaler", "path", "hint"),
    [
        ("karpenter-asw", "autoscaler", "did you mean karpenter-aws?"),
        ("zzz", "autoscaler", "write one of karpenter-aws, "),
        (7, "autoscaler", "write one of"),
        ({"name": "karpenter-aws", "version": "new"}, "autoscaler.version", 'write version: "1.15"'),
        (
            {"name": "karpenter-aws", "countsClaims": "yes"},
            "autoscaler.countsClaims",
            "write countsClaims: true",
        ),
        ({"name": "karpenter-aws", "versoin": "1.15"}, "autoscaler.versoin", "did you mean version?"),
    ],
)
def test_what_is_wrong_with_the_autoscaler_of_a_file_is_told(tmp_path, autoscaler, path, hint):
    pool = {"name": "gpu", "nodes": "p5.48xlarge", "max": 3, "autoscaler": autoscaler}
    (tmp_path / "pools.yaml").write_text(yaml.safe_dump({"pools": [pool]}))
    with pytest.raises(FleetError) as caught:
        load_fleet(str(tmp_path / "pools.yaml"))
    (problem,) = caught.value.problems
    assert problem.path.endswith(f"pools[0].{path}")
    assert problem.code in ("node-pool", "fleet-object")
    assert hint in problem.hint
