"""Labels of clouds in the node selectors of pods: which of them say what one nvidia.com/gpu is, and which choose nodes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.catalog.machines import machines, products_by_label
from dra_infra.catalog.records import fleet_kinds
from dra_infra.catalog.vocabulary import product_names
from dra_infra.kubernetes.api import matches_node_selector
from dra_infra.kubernetes.cel import DeviceView, compile_expression
from dra_infra.kubernetes.cel.evaluate import MATCH, NO_MATCH
from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.node_labels import Requirement, read_requirements
from dra_infra.migration.outcomes import Migrated

GKE = "cloud.google.com/gke-"
PARTITION = f"{GKE}gpu-partition-size"
SHARING = f"{GKE}gpu-sharing-strategy"
CLIENTS = f"{GKE}max-shared-clients-per-gpu"
SAID = Settings(plugin=DevicePlugin())
LIMIT = "spec.containers[0].resources.limits[{}]"
KARPENTER = "karpenter.k8s.aws/instance-gpu-"
AUTO_MODE = "eks.amazonaws.com/instance-gpu-"
AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def required(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    found = {"nodeSelectorTerms": [{"matchExpressions": each} for each in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": found}}


def preferred(*expressions: dict[str, Any]) -> dict[str, Any]:
    preference = {"weight": 1, "preference": {"matchExpressions": list(expressions)}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def pod(
    labels: Mapping[str, str] | None = None,
    affinity: Mapping[str, Any] | None = None,
    *,
    resource: str = "nvidia.com/gpu",
) -> dict[str, Any]:
    containers = [
        {"name": "main", "image": "registry.example.com/a:1", "resources": {"limits": {resource: 1}}}
    ]
    spec = {"containers": containers, "nodeSelector": dict(labels or {}), "affinity": affinity or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ml"}, "spec": spec}


def migrated(manifest: Mapping[str, Any], settings: Settings = SAID) -> Migrated:
    (found,) = migrate_objects([manifest], settings)
    return found


def said(found: Migrated) -> dict[str, str]:
    return {each.path: f"{each.code} {each.outcome}" for each in found.remarks}


def request_of(found: Migrated) -> Mapping[str, Any]:
    exactly: Mapping[str, Any] = found.added[0]["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    return exactly


@pytest.mark.parametrize(
    ("labels", "affinity"),
    [
        ({PARTITION: "2g.10gb"}, None),
        (None, required([expression(PARTITION, "In", "2g.10gb")])),
        ({PARTITION: "2g.10gb"}, required([expression(PARTITION, "In", "2g.10gb")])),
    ],
)
def test_a_partition_is_a_mig_device_of_its_profile_and_the_label_goes(labels, affinity):
    found = migrated(pod(labels, affinity))
    assert request_of(found)["deviceClassName"] == "mig.nvidia.com"
    assert '.profile == "2g.10gb"' in request_of(found)["selectors"][0]["cel"]["expression"]
    assert found.manifest is not None
    assert PARTITION not in str(found.manifest)


def test_a_share_may_be_said_in_two_places():
    shared = pod({SHARING: "time-sharing"}, required([expression(CLIENTS, "In", "4")]))
    found = migrated(shared)
    assert said(found)[LIMIT.format("nvidia.com/gpu")] == "replica-to-share changed"
    assert said(found)[f"spec.nodeSelector[{SHARING}]"] == "replica-to-share changed"
    assert said(found)[AFFINITY] == "replica-to-share changed"
    assert "gke" not in str(found.manifest)


def test_a_share_of_a_partition_is_to_decide():
    found = migrated(pod({PARTITION: "1g.5gb", SHARING: "time-sharing", CLIENTS: "3"}))
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "no-shares decide"}


def test_a_share_under_mps_is_to_decide():
    found = migrated(pod({SHARING: "mps", CLIENTS: "4"}))
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "mps-replicas decide"}


@pytest.mark.parametrize(
    ("labels", "affinity"),
    [
        ({SHARING: "time-sharing"}, None),
        ({CLIENTS: "4"}, None),
        ({SHARING: "turns", CLIENTS: "4"}, None),
        ({SHARING: "time-sharing", CLIENTS: "1"}, None),
        ({SHARING: "time-sharing", CLIENTS: "many"}, None),
        ({PARTITION: "half"}, None),
        ({PARTITION: "1g.5gb"}, required([expression(PARTITION, "In", "2g.10gb")])),
        (None, required([expression(PARTITION, "In", "1g.5gb", "2g.10gb")])),
        (None, required([expression(PARTITION, "In")])),
        (None, required([expression(PARTITION, "Exists")])),
        (None, required([expression(PARTITION, "NotIn", "1g.5gb")])),
        (None, required([expression(PARTITION, "In", "1g.5gb")], [expression("zone", "In", "a")])),
        (None, preferred(expression(PARTITION, "In", "1g.5gb"))),
    ],
)
def test_labels_that_leave_it_open_are_to_decide(labels, affinity):
    asked = pod(labels, affinity)
    found = migrated(asked)
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "resource-not-clear decide"}
    assert found.manifest is asked


def test_an_empty_term_leaves_no_label_open():
    found = migrated(pod(None, required([expression(PARTITION, "In", "1g.5gb")], [])))
    assert request_of(found)["deviceClassName"] == "mig.nvidia.com"


def test_nodes_without_a_partition_have_whole_gpus():
    found = migrated(pod(None, required([expression(PARTITION, "DoesNotExist")])))
    assert request_of(found) == {"deviceClassName": "gpu.nvidia.com"}
    assert said(found)[AFFINITY] == "node-label-kept kept"


def test_labels_of_a_share_beside_a_resource_that_is_none_are_to_decide():
    found = migrated(pod({SHARING: "time-sharing", CLIENTS: "4"}, resource="nvidia.com/mig-1g.5gb"))
    assert said(found) == {"spec.nodeSelector": "resource-not-clear decide"}


def test_nothing_is_guessed_where_nobody_said_how_the_plugin_serves():
    found = migrated(pod({PARTITION: "1g.5gb"}), Settings())
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "plugin-not-known decide"}


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ({PARTITION: "1g.5gb"}, "resource-not-clear"),
        ({PARTITION: "half"}, "resource-not-clear"),
        ({SHARING: "time-sharing", CLIENTS: "4"}, "resource-not-clear"),
        ({f"{GKE}accelerator": "nvidia-l4"}, "resource-bridged"),
    ],
)
def test_one_class_does_not_serve_pods_whose_nodes_have_something_else(labels: dict[str, str], code: str):
    (found,) = bridge_classes([pod(labels)], SAID)
    assert [each.code for each in found.remarks] == [code]
    assert bool(found.added) == (code == "resource-bridged")


GFD = "nvidia.com/gpu."
MIG_CONFIG, MIG_STRATEGY = "nvidia.com/mig.config", "nvidia.com/mig.strategy"
SHARED_BY_FOUR = Replicas("time-slicing", 4, renamed=False, one_each=False)
SHARING_GPUS = Settings(plugin=DevicePlugin(replicas={"nvidia.com/gpu": SHARED_BY_FOUR}))
SHARING_PARTS = Settings(
    plugin=DevicePlugin(strategy="mixed", replicas={"nvidia.com/mig-1g.5gb": SHARED_BY_FOUR})
)


@pytest.mark.parametrize(
    "labels",
    [
        {f"{GFD}product": "Tesla-T4-SHARED"},
        {f"{GFD}replicas": "4"},
        {f"{GFD}sharing-strategy": "time-slicing"},
        {f"{GFD}product": "Tesla-T4", f"{GFD}sharing-strategy": "mps"},
    ],
)
def test_a_pod_of_nodes_with_shared_gpus_gets_no_whole_one(labels: dict[str, str]):
    asked = pod(labels)
    found = migrated(asked)
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "resource-not-clear decide"}
    assert found.manifest is asked
    (bridged,) = bridge_classes([asked], SAID)
    assert ([each.code for each in bridged.remarks], bridged.added) == (["resource-not-clear"], ())


@pytest.mark.parametrize(
    ("labels", "affinity"),
    [
        ({f"{GFD}product": "Tesla-T4", f"{GFD}replicas": "1", f"{GFD}sharing-strategy": "none"}, None),
        ({f"{GFD}replicas": "0"}, None),
        (None, required([expression(f"{GFD}product", "NotIn", "Tesla-T4-SHARED")])),
        (None, required([expression(f"{GFD}product", "In", "Tesla-T4-SHARED", "Tesla-T4")])),
        (None, required([expression(f"{GFD}replicas", "Gt", "0")])),
        (None, required([expression(f"{GFD}replicas", "Lt", "2")])),
        ({MIG_CONFIG: "all-disabled", MIG_STRATEGY: "single"}, None),
        ({MIG_CONFIG: "all-balanced"}, None),
        (None, required([expression(MIG_CONFIG, "In", "all-1g.10gb", "all-disabled")])),
        (None, required([expression(MIG_CONFIG, "NotIn", "all-1g.10gb")])),
        (None, preferred(expression(f"{GFD}product", "In", "Tesla-T4-SHARED"))),
    ],
)
def test_nodes_that_may_have_whole_gpus_give_whole_gpus(
    labels: Mapping[str, str] | None, affinity: Mapping[str, Any] | None
):
    assert request_of(migrated(pod(labels, affinity)))["deviceClassName"] == "gpu.nvidia.com"


def test_labels_of_shared_gpus_go_with_the_replica_for_no_node_has_them_then():
    labels = {
        f"{GFD}product": "Tesla-T4-SHARED",
        f"{GFD}replicas": "4",
        f"{GFD}sharing-strategy": "time-slicing",
    }
    found = migrated(pod(labels), SHARING_GPUS)
    assert said(found)[LIMIT.format("nvidia.com/gpu")] == "replica-to-share changed"
    assert said(found)[f"spec.nodeSelector[{GFD}replicas]"] == "replica-to-share changed"
    assert found.manifest is not None
    assert "nodeSelector" not in found.manifest["spec"]
    [selector] = request_of(found)["selectors"]
    assert selector["cel"]["expression"].startswith("(device.allowMultipleAllocations) && ")
    assert '.productName == "Tesla T4"' in selector["cel"]["expression"]


SINGLE = Settings(plugin=DevicePlugin(strategy="single", profiles=("1g.5gb",)))
MIXED = Settings(plugin=DevicePlugin(strategy="mixed"))


@pytest.mark.parametrize(
    ("resource", "settings"),
    [("nvidia.com/gpu", SAID), ("nvidia.com/gpu", SINGLE), ("nvidia.com/mig-1g.5gb", MIXED)],
)
@pytest.mark.parametrize("is_affinity", [False, True])
def test_a_pod_of_nodes_whose_gpus_are_cut_otherwise_is_to_decide(
    resource: str, settings: Settings, is_affinity: bool
):
    chosen = required([expression(MIG_CONFIG, "In", "all-1g.10gb", "all-1g.10gb.me")])
    asked = pod(None, chosen if is_affinity else None, resource=resource)
    asked["spec"]["nodeSelector"] = {} if is_affinity else {MIG_CONFIG: "all-1g.10gb"}
    found = migrated(asked, settings)
    assert said(found) == {"spec.nodeSelector": "resource-not-clear decide"}
    assert found.manifest is asked
    (bridged,) = bridge_classes([asked], settings)
    assert ([each.outcome for each in bridged.remarks], bridged.added) == (["decide"], ())


@pytest.mark.parametrize(
    ("resource", "settings"), [("nvidia.com/gpu", SINGLE), ("nvidia.com/mig-1g.5gb", MIXED)]
)
def test_a_pod_of_nodes_whose_gpus_are_cut_as_it_asks_is_migrated(resource: str, settings: Settings):
    asked = pod({MIG_CONFIG: "all-1g.5gb"}, resource=resource)
    found = migrated(asked, settings)
    assert request_of(found)["deviceClassName"] == "mig.nvidia.com"
    assert said(found)[f"spec.nodeSelector[{MIG_CONFIG}]"] == "node-label-kept kept"
    (bridged,) = bridge_classes([asked], settings)
    assert [each.code for each in bridged.remarks] == ["resource-bridged"]


@pytest.mark.parametrize(
    ("operator", "value", "settings"),
    [("Gt", "1", SAID), ("Gt", "8", SHARING_GPUS), ("Lt", "2", SHARING_GPUS)],
)
def test_a_bound_on_replicas_is_held_to_the_plugin(operator: str, value: str, settings: Settings):
    found = migrated(pod(None, required([expression(f"{GFD}replicas", operator, value)])), settings)
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "resource-not-clear decide"}


def test_a_bound_on_replicas_goes_with_the_replica():
    found = migrated(pod(None, required([expression(f"{GFD}replicas", "Gt", "1")])), SHARING_GPUS)
    assert said(found)[AFFINITY] == "replica-to-share changed"


@pytest.mark.parametrize(
    ("labels", "settings"),
    [
        ({f"{GFD}product": "Tesla-T4"}, SHARING_GPUS),
        ({f"{GFD}replicas": "1"}, SHARING_GPUS),
        ({f"{GFD}sharing-strategy": "none"}, SHARING_GPUS),
        ({f"{GFD}replicas": "8"}, SHARING_GPUS),
        ({f"{GFD}product": "Tesla-T4-SHARED", f"{GFD}sharing-strategy": "mps"}, SHARING_GPUS),
        ({f"{GFD}product": "NVIDIA-A100-SXM4-40GB"}, SINGLE),
        ({MIG_STRATEGY: "mixed"}, SINGLE),
    ],
)
@pytest.mark.parametrize("is_affinity", [False, True])
def test_a_pod_of_nodes_that_serve_it_otherwise_than_the_plugin_is_to_decide(
    labels: dict[str, str], settings: Settings, is_affinity: bool
):
    affinity = required([expression(key, "In", value) for key, value in labels.items()])
    asked = pod(None, affinity) if is_affinity else pod(labels)
    found = migrated(asked, settings)
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "resource-not-clear decide"}
    assert found.manifest is asked
    (bridged,) = bridge_classes([asked], settings)
    assert ([each.outcome for each in bridged.remarks], bridged.added) == (["decide"], ())


@pytest.mark.parametrize(
    "affinity",
    [
        required([expression(f"{GFD}product", "In", "Tesla-T4", "Tesla-T4-SHARED")]),
        required([expression(f"{GFD}product", "NotIn", "Tesla-T4")]),
        required([expression(f"{GFD}product", "In", "Tesla-T4")], [expression("zone", "Exists")]),
        preferred(expression(f"{GFD}product", "In", "Tesla-T4")),
    ],
)
def test_nodes_that_may_share_gpus_give_shares(affinity: Mapping[str, Any]):
    found = migrated(pod(None, affinity), SHARING_GPUS)
    assert said(found)[LIMIT.format("nvidia.com/gpu")] == "replica-to-share changed"


@pytest.mark.parametrize("value", ["${GPU}", "$(GPU)", "{{ .Values.gpu }}", "A-{{ gpu }}-SHARED-B", "%GPU%"])
@pytest.mark.parametrize(
    "key", ["product", "family", "memory", "present", "compute.major", "replicas", "sharing-strategy"]
)
@pytest.mark.parametrize("settings", [SAID, SHARING_GPUS])
def test_a_label_whose_value_is_filled_in_later_stays(value: str, key: str, settings: Settings):
    labels = {f"{GFD}{key}": value}
    affinity = required([expression(f"{GFD}{key}", "In", "Tesla-T4", value)])
    for asked in (pod(labels), pod(None, affinity)):
        found = migrated(asked, settings)
        assert found.manifest is not None
        for field in ("nodeSelector", "affinity"):
            assert found.manifest["spec"].get(field) == asked["spec"].get(field)
        assert "selectors" not in request_of(found) or settings is SHARING_GPUS
        [kept] = [each for each in found.remarks if each.code == "node-label-kept"]
        assert "its value is filled in later" in kept.message


def test_a_partition_that_is_filled_in_later_is_to_decide():
    asked = pod({f"{GKE}accelerator": "nvidia-tesla-a100", PARTITION: "${SIZE}"})
    assert said(migrated(asked)) == {LIMIT.format("nvidia.com/gpu"): "resource-not-clear decide"}


PART = "nvidia.com/mig-3g.40gb"
ON_PARTS = {f"{PART}.product": "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb-SHARED", f"{PART}.memory": "40448"}


def test_labels_of_mig_devices_are_read_where_the_pod_gets_no_others():
    found = migrated(pod({**ON_PARTS, f"{PART}.count": "2"}, resource=PART))
    assert found.manifest is not None
    assert found.manifest["spec"]["nodeSelector"] == {f"{PART}.count": "2"}
    [selector] = (each["cel"]["expression"] for each in request_of(found)["selectors"])
    assert '.profile == "3g.40gb"' in selector
    assert '.productName == "NVIDIA H100 80GB HBM3"' in selector
    assert '.memory.compareTo(quantity("40448Mi")) == 0' in selector


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb"])
def test_labels_of_other_mig_devices_stay(resource: str):
    found = migrated(pod(ON_PARTS, resource=resource))
    assert found.manifest is not None
    assert found.manifest["spec"]["nodeSelector"] == ON_PARTS
    both = pod(ON_PARTS, resource=PART)
    both["spec"]["containers"].append({**both["spec"]["containers"][0], "name": "other"})
    both["spec"]["containers"][1]["resources"] = {"limits": {resource: 1}}
    found = migrated(both)
    assert found.manifest is not None
    assert found.manifest["spec"]["nodeSelector"] == ON_PARTS


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("t4", "Tesla T4"),
        ("v100", "Tesla V100-SXM2-16GB"),
        ("p100", "Tesla P100-PCIE-16GB"),
        ("p4", "Tesla P4"),
    ],
)
def test_a_gpu_that_is_attached_to_machines_of_gke_is_read(name: str, product: str):
    found = migrated(pod({f"{GKE}accelerator": f"nvidia-tesla-{name}"}))
    [selector] = request_of(found)["selectors"]
    assert f'.productName == "{product}"' in selector["cel"]["expression"]
    assert product in product_names()


def test_a_product_says_nothing_of_mig_devices_that_have_a_name():
    asked = pod({f"{GFD}product": "NVIDIA-A100-SXM4-40GB"}, resource="nvidia.com/mig-1g.5gb")
    assert request_of(migrated(asked, SHARING_GPUS))["deviceClassName"] == "mig.nvidia.com"
    part = LIMIT.format("nvidia.com/mig-1g.5gb")
    assert said(migrated(asked, SHARING_PARTS)) == {part: "no-shares decide"}


@pytest.mark.parametrize("key", ["replicas", "sharing-strategy"])
def test_nodes_that_serve_shares_by_another_name_have_no_whole_gpus(key: str):
    renamed = Settings(
        plugin=DevicePlugin(replicas={"nvidia.com/gpu": SHARED_BY_FOUR._replace(renamed=True)})
    )
    labels = {f"{GFD}{key}": "4" if key == "replicas" else "time-slicing"}
    asked = pod(labels)
    found = migrated(asked, renamed)
    assert said(found) == {LIMIT.format("nvidia.com/gpu"): "resource-not-clear decide"}
    assert found.manifest is asked
    shared = migrated(pod(labels, resource="nvidia.com/gpu.shared"), renamed)
    assert said(shared)[LIMIT.format("nvidia.com/gpu.shared")] == "replica-to-share changed"
    assert request_of(migrated(pod(), renamed)) == {"deviceClassName": "gpu.nvidia.com"}


def test_the_strategy_of_a_node_may_be_that_of_its_mig_devices():
    found = migrated(pod({f"{GFD}sharing-strategy": "time-slicing"}), SHARING_PARTS)
    assert request_of(found) == {"deviceClassName": "gpu.nvidia.com"}


@pytest.mark.parametrize(
    "key",
    [
        f"{GKE}accelerator",
        f"{GKE}accelerator-count",
        f"{GKE}gpu-driver-version",
        "k8s.amazonaws.com/accelerator",
        "karpenter.k8s.aws/instance-gpu-count",
        "karpenter.k8s.aws/instance-gpu-manufacturer",
        "eks.amazonaws.com/instance-gpu-name",
        "kubernetes.azure.com/accelerator",
    ],
)
def test_labels_that_choose_nodes_stay_and_are_told(key: str):
    found = migrated(pod({key: "some"}))
    assert said(found)[f"spec.nodeSelector[{key}]"] == "node-label-kept kept"
    assert found.manifest is not None
    assert found.manifest["spec"]["nodeSelector"] == {key: "some"}
    assert "GPU feature discovery" not in str(found.remarks)
    assert "selectors" not in request_of(found)


def test_a_mig_device_by_its_name_is_of_one_of_the_cuts_that_are_selected():
    cuts = expression("nvidia.com/mig.config", "In", "all-1g.10gb", "all-2g.20gb")
    settings = Settings(plugin=DevicePlugin(strategy="mixed"))
    for profile, code, bridged in (
        ("1g.10gb", "resource-to-claim", "resource-bridged"),
        ("3g.40gb", "resource-not-clear", "resource-not-clear"),
    ):
        was = pod(None, required([cuts]))
        was["spec"]["containers"][0]["resources"] = {"limits": {f"nvidia.com/mig-{profile}": 1}}
        [found] = migrate_objects([was], settings)
        [remark] = [each for each in found.remarks if each.code in (code, "resource-not-clear")]
        assert remark.code == code
        assert "--mig-profile" not in remark.hint
        assert [each.code for each in bridge_classes([was], settings)[0].remarks] == [bridged]


NEEDED = "controller-setting-needed lost"
POOL = expression("karpenter.sh/nodepool", "In", "gpu")


@pytest.mark.parametrize(
    ("was", "paths"),
    [
        (pod({"karpenter.sh/capacity-type": "spot"}), ["spec.nodeSelector"]),
        (pod(None, required([POOL])), ["spec.affinity.nodeAffinity"]),
        (pod(None, preferred(POOL)), ["spec.affinity.nodeAffinity"]),
        (pod(None, required([expression("karpenter.sh/nodepool", "DoesNotExist")])), []),
        (pod(None, required([expression("karpenter.sh/nodepool", "NotIn", "gpu")])), []),
        (pod({f"{AUTO_MODE}name": "l4"}), []),
        (pod(), []),
    ],
    ids=["capacity", "required", "preferred", "nodes of others", "other pools", "Auto Mode", "none"],
)
def test_karpenter_is_to_be_told_to_start_machines_for_claims(was: dict[str, Any], paths: list[str]):
    assert [at for at, what in said(migrated(was)).items() if what == NEEDED] == paths


def test_karpenter_starts_no_machine_for_a_daemon_set():
    template = {"spec": pod({f"{KARPENTER}name": "l4"})["spec"]}
    was = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d"},
        "spec": {"template": template},
    }
    assert NEEDED not in said(migrated(was)).values()


@functools.cache
def cloud_machines() -> tuple[tuple[str, Mapping[str, str], DeviceView], ...]:
    """Every machine of a cloud with the labels that it has where an autoscaler made it, and one of its GPUs."""
    found = []
    for name, (cloud, machine) in machines().items():
        fleet = load_fleet(name)
        (device, *_) = fleet.slices[0].spec.devices or ()
        view = DeviceView("gpu.nvidia.com", device.attributes, device.capacity)
        own = cloud.autoscaler.get(machine.like, {})
        of_eks = {key.replace(KARPENTER, AUTO_MODE): value for key, value in own.items()}
        found.append((name, {**fleet.nodes[0].labels, **own, **of_eks}, view))
    return tuple(found)


def chosen_by_label(requirement: Requirement) -> set[str]:
    values = {"values": list(requirement.values)} if requirement.values else {}
    terms = [{"matchExpressions": [{"key": requirement.key, "operator": requirement.operator, **values}]}]
    return {
        name
        for name, labels, _ in cloud_machines()
        if matches_node_selector({"nodeSelectorTerms": terms}, labels, name)
    }


def chosen_by_selector(requirement: Requirement) -> set[str]:
    """The machines of the clouds that have the label, by the selector that stands for the requirement."""
    read = read_requirements([requirement])
    assert read.used == {requirement}
    assert read.selector is not None
    program = compile_expression(read.selector.expression())
    verdicts = {
        name: program.evaluate(view) for name, labels, view in cloud_machines() if requirement.key in labels
    }
    assert set(verdicts.values()) <= {MATCH, NO_MATCH}
    return {name for name, verdict in verdicts.items() if verdict == MATCH}


def products(names: set[str]) -> set[str]:
    return {fleet_kinds()[machines()[name].machine.like].gpu for name in names}


def of_clouds() -> list[Requirement]:
    """Each value of each label of a name, pairs of them, and each bound at, below and above a memory."""
    found = []
    for key in (f"{GKE}accelerator", f"{KARPENTER}name", f"{AUTO_MODE}name"):
        known = sorted(products_by_label()[key])
        found += [Requirement(key, "In", (each,)) for each in known]
        found += [Requirement(key, "In", pair) for pair in itertools.pairwise(known)]
    bounds = sorted(
        {int(each) + by for each in products_by_label()[f"{KARPENTER}memory"] for by in (-1, 0, 1)}
    )
    for operator, some in (("Gt", bounds[1:-2]), ("Lt", bounds[2:-1])):
        found += [
            Requirement(f"{start}memory", operator, (str(each),))
            for each in some
            for start in (KARPENTER, AUTO_MODE)
        ]
    return found


@pytest.mark.parametrize(
    "requirement", of_clouds(), ids=lambda each: f"{each.key}-{each.operator}-{each.values}"
)
def test_the_machines_that_a_label_chose_have_the_gpus_that_its_selector_chooses(requirement: Requirement):
    by_label = chosen_by_label(requirement)
    by_selector = chosen_by_selector(requirement)
    assert by_label <= by_selector
    assert products(by_label) == products(by_selector)
    if not requirement.key.startswith(GKE):
        # GKE's label tells a3-megagpu from a3-highgpu, whose GPUs are the same.
        assert by_label == by_selector


def test_a_memory_of_karpenter_is_not_that_of_the_driver():
    found = migrated(pod(None, required([expression(f"{KARPENTER}memory", "Lt", "22888")])))
    written = request_of(found)["selectors"][0]["cel"]["expression"]
    assert '("23028Mi")) < 0' in written  # an A10G, as its driver says it


@pytest.mark.parametrize(
    "requirement",
    [
        Requirement(f"{KARPENTER}name", "In", ("t4g",)),
        Requirement(f"{KARPENTER}name", "In", ("l4", "t4g")),
        Requirement(f"{KARPENTER}name", "NotIn", ("l4",)),
        Requirement(f"{KARPENTER}name", "Exists"),
        Requirement(f"{KARPENTER}name", "In"),
        Requirement(f"{KARPENTER}name", "Gt", ("1",)),
        Requirement(f"{KARPENTER}memory", "In", ("2861",)),
        # A V100 of P3, and the RTX PRO 4500 of G7, whose driver says another amount.
        Requirement(f"{KARPENTER}memory", "In", ("32768",)),
        Requirement(f"{KARPENTER}memory", "Gt", ("16000",)),
        Requirement(f"{KARPENTER}memory", "Lt", ("300000",)),
        Requirement(f"{KARPENTER}memory", "Gt", ("much",)),
        Requirement(f"{KARPENTER}memory", "Gt"),
        Requirement(f"{GKE}accelerator", "In", ("nvidia-tesla-k80",)),
        # People write it on node groups, for the cluster autoscaler: "true" and "L4" are as good.
        Requirement("k8s.amazonaws.com/accelerator", "In", ("nvidia-tesla-t4",)),
    ],
)
def test_what_the_catalogue_does_not_know_is_no_selector(requirement: Requirement):
    assert read_requirements([requirement]).selector is None
    assert read_requirements([requirement]).used == frozenset()


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        (f"{KARPENTER}memory", SAID),
        (f"{AUTO_MODE}memory", SAID),
        ("nvidia.com/gpu.memory", Settings(plugin=DevicePlugin(strategy="mixed"))),
    ],
)
def test_the_memory_of_a_whole_gpu_is_not_asked_of_its_mig_devices(key: str, settings: Settings):
    large = required([expression(key, "Gt", "45776")])
    found = migrated(pod(None, large, resource="nvidia.com/mig-1g.10gb"), settings)
    assert said(found)[AFFINITY] == "node-label-kept kept"
    assert "memory" not in str(request_of(found))
    assert "memory" in str(request_of(migrated(pod(None, large), settings)))


def test_the_memory_of_mig_devices_is_asked_of_them_where_it_is_the_label():
    single = Settings(plugin=DevicePlugin(strategy="single", profiles=("1g.10gb",)))
    found = migrated(pod({"nvidia.com/gpu.memory": "9728"}), single)
    assert "9728Mi" in str(request_of(found))


def test_a_label_that_became_a_selector_stays_for_the_autoscaler():
    labels = {f"{KARPENTER}name": "l4"}
    found = migrated(pod(labels, required([expression(f"{GKE}accelerator", "In", "nvidia-l4")])))
    assert found.manifest is not None
    assert found.manifest["spec"]["nodeSelector"] == labels
    assert f"{GKE}accelerator" in str(found.manifest["spec"]["affinity"])
    assert said(found)[AFFINITY] == "node-label-to-selector changed"


def test_a_preference_for_machines_of_a_cloud_stays():
    found = migrated(pod(None, preferred(expression(f"{GKE}accelerator", "In", "nvidia-l4"))))
    assert "node-label-kept kept" in said(found).values()


AMD, INTEL = "amd.com/gpu", "gpu.intel.com/xe"


@pytest.mark.parametrize(
    ("resource", "key", "needs"),
    [
        ("nvidia.com/gpu", "nvidia.com/gpu.count", "GPU feature discovery keeps running"),
        (
            "nvidia.com/gpu",
            "nvidia.com/gpu.deploy.device-plugin",
            "the GPU Operator goes on setting it to true",
        ),
        ("nvidia.com/gpu", "nvidia.com/gpu.deploy.dcgm", "the GPU Operator goes on setting it"),
        ("nvidia.com/gpu", "nvidia.com/gpu.present", "the GPU Operator goes on setting it, or who else does"),
        ("nvidia.com/gpu", "nvidia.com/gpu.workload.config", "whoever says what the GPUs of a node are for"),
        ("nvidia.com/gpu", "nvidia.com/mig.config", "whoever partitions the GPUs of a node goes on setting"),
        ("nvidia.com/gpu", "nvidia.com/mig.config.state", "NVIDIA's MIG manager keeps running"),
        ("nvidia.com/gpu", "nvidia.com/mig.strategy", "GPU feature discovery keeps running"),
        ("nvidia.com/gpu", "nvidia.com/device-plugin.config", "whoever chooses the plugin's configuration"),
        ("nvidia.com/gpu", "nvidia.com/dra-kubelet-plugin", "whoever gives nodes to the DRA driver goes on"),
        ("nvidia.com/gpu", "accelerator", "AKS goes on setting it, or who else does"),
        (AMD, "accelerator", "AKS goes on setting it, or who else does"),
        (AMD, "amd.com/gpu.device-id", "AMD's node labeller keeps running"),
        (AMD, "beta.amd.com/gpu.cu-count.304", "AMD's node labeller keeps running"),
        (AMD, "feature.node.kubernetes.io/amd-gpu", "AMD's rules for node feature discovery stay"),
        (AMD, f"{KARPENTER}name", "its cloud goes on setting it"),
        (INTEL, "gpu.intel.com/tiles", "Intel's rules for node feature discovery stay"),
        (INTEL, "intel.feature.node.kubernetes.io/gpu", "Intel's rules for node feature discovery stay"),
        # A label of another vendor chooses nodes as before, and none of these devices.
        (AMD, "nvidia.com/gpu.memory", "GPU feature discovery keeps running"),
        ("nvidia.com/gpu", "amd.com/gpu.cu-count", "AMD's node labeller keeps running"),
        ("habana.ai/gaudi", "gpu.intel.com/device-id.0380-56c0.present", "Intel's rules for node feature"),
    ],
)
def test_a_label_that_says_nothing_of_the_devices_stays_and_the_report_says_what_it_needs(
    resource: str, key: str, needs: str
):
    found = migrated(pod({key: "304", "zone": "a"}, resource=resource))
    (told,) = [each for each in found.remarks if each.code.startswith("node-label")]
    assert (told.path, told.outcome, told.code) == (f"spec.nodeSelector[{key}]", "kept", "node-label-kept")
    assert needs in told.message
    assert found.manifest is not None
    assert found.manifest["spec"]["nodeSelector"] == {key: "304", "zone": "a"}
    assert "304" not in str(found.added)


@pytest.mark.parametrize(
    ("resource", "key", "value"),
    [
        (AMD, "amd.com/gpu.cu-count", "304"),
        (INTEL, "gpu.intel.com/product", "Max_1550"),
    ],
)
def test_an_affinity_for_labels_of_amd_and_intel_becomes_a_selector(resource: str, key: str, value: str):
    found = migrated(pod(None, required([expression(key, "In", value)]), resource=resource))
    assert found.manifest is not None
    assert "affinity" not in found.manifest["spec"]
    assert said(found)[AFFINITY] == "node-label-to-selector changed"
    assert value.replace("_", " ") in request_of(found)["selectors"][0]["cel"]["expression"]


def test_a_pod_with_devices_of_two_vendors_has_selectors_for_those_of_nvidia_alone():
    asked = pod({"nvidia.com/gpu.memory": "81559", "amd.com/gpu.cu-count": "304"})
    asked["spec"]["containers"][0]["resources"]["limits"][AMD] = 1
    found = migrated(asked)
    requests = found.added[0]["spec"]["spec"]["devices"]["requests"]
    by_class = {each["exactly"]["deviceClassName"]: str(each["exactly"]["selectors"]) for each in requests}
    assert ["81559Mi" in by_class[name] for name in ("gpu.nvidia.com", "gpu.amd.com")] == [True, False]
    assert said(found)["spec.nodeSelector[amd.com/gpu.cu-count]"] == "node-label-kept kept"


@pytest.mark.parametrize(
    ("affinity", "is_open"),
    [
        (required([expression(f"{AMD}.compute-memory-partition", "In", "spx_nps1", "dpx_nps2")]), True),
        (required([expression(f"{AMD}.compute-memory-partition", "In", "spx_nps1")]), False),
        (required([expression(f"{AMD}.compute-memory-partition", "NotIn", "cpx_nps4")]), False),
    ],
)
def test_a_node_that_may_have_parts_of_gpus_gives_no_whole_one(affinity: Mapping[str, Any], *, is_open: bool):
    asked = pod(None, affinity, resource=AMD)
    found = migrated(asked)
    assert (found.manifest is asked) == is_open
    assert (said(found).get("spec.nodeSelector") == "other-device-form decide") == is_open
