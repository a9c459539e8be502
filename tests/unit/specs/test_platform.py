from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog.charts import charts, check_values, value_types
from dra_infra.catalog.driver_gates import check_gates, gates_of
from dra_infra.catalog.platforms import chart_rules, matrix, platforms
from dra_infra.errors import InvalidSpecError
from dra_infra.specs.platform.installations import compile_driver, compile_example_driver, compile_operator
from dra_infra.specs.platform.namespaces import read_definitions
from dra_infra.specs.platform.platform import compile_platform, read_part
from dra_infra.specs.platform.values import SHARED
from dra_infra.target import ClusterTarget

TARGET = ClusterTarget(kubernetes="1.36")
CONSENT = {"gpu_resources_enabled_override": True}
COMPILE = {
    "NVIDIA DRA driver": compile_driver,
    "GPU Operator": compile_operator,
    "DRA example driver": compile_example_driver,
}
LABEL = "nvidia.com/dra-kubelet-plugin"


def found_by(compile_: Any, arguments: dict[str, Any], target: ClusterTarget = TARGET) -> dict[str, str]:
    """Paths and codes of errors and warnings."""
    try:
        made = compile_(arguments, target=target)
    except InvalidSpecError as error:
        return {problem.path: problem.code for problem in error.problems}
    return {problem.path: problem.code for problem in made.warnings}


def of_driver(**arguments: Any) -> dict[str, str]:
    return found_by(compile_driver, CONSENT | arguments)


def of_operator(**arguments: Any) -> dict[str, str]:
    return found_by(compile_operator, arguments)


def of_platform(platform: Any = "kubeadm", *, pools: Any = None, **parts: Any) -> dict[str, str]:
    try:
        made = compile_platform(platform, parts, target=TARGET, gpu_pools=pools)
    except InvalidSpecError as error:
        return {problem.path: problem.code for problem in error.problems}
    return {problem.path: problem.code for problem in made.warnings}


# The driver


def test_gpus_need_a_word_that_the_device_plugin_is_off():
    assert found_by(compile_driver, {}) == {"gpu_resources_enabled_override": "gpu-resources-consent"}
    assert found_by(compile_driver, {"gpus": False}) == {}
    assert found_by(compile_driver, {"values": {"resources": {"gpus": {"enabled": False}}}}) == {}
    written = {"values": {"gpuResourcesEnabledOverride": False}}
    assert found_by(compile_driver, written) == {
        "values.gpuResourcesEnabledOverride": "gpu-resources-consent"
    }
    assert of_driver() == {}


def test_the_key_of_the_walk_through_that_no_chart_knows_is_named_with_the_argument_to_use():
    values = {"resources-computeDomains": {"enabled": False}}
    assert of_driver(version="25.8.1", values=values) == {
        "values.resources-computeDomains": "unknown-chart-value"
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"gates": {"DynamicMIG": True, "MPSSupport": True}}, {"gates.DynamicMIG": "driver-gate-conflict"}),
        ({"gates": {"DynamicMig": True}}, {"gates.DynamicMig": "unknown-driver-gate"}),
        (
            {"values": {"featureGates": {"MPSSuport": True}}},
            {"values.featureGates.MPSSuport": "unknown-driver-gate"},
        ),
        ({"gates": {"MPSSupport": "yes"}}, {"gates.MPSSupport": "wrong-type"}),
        ({"gates": {"DRAListTypeAttributes": True}}, {"gates.DRAListTypeAttributes": "needs-newer-kubernetes"}),
        ({"consumable_shares": "memory"}, {"consumable_shares": "driver-gate-off"}),
        ({"consumable_shares": 0, "gates": {"ConsumableShares": True}}, {"consumable_shares": "unsupported-value"}),
        ({"consumable_shares": "disabled"}, {}),
        ({"consumable_shares": 4, "gates": {"ConsumableShares": True}}, {}),
        ({"version": "0.4.1", "consumable_shares": 4}, {"consumable_shares": "unknown-chart-value"}),
        ({"imex_mode": "hostManaged"}, {"imex_mode": "driver-gate-off"}),
        ({"imex_mode": "hostManagd"}, {"imex_mode": "unsupported-value"}),
        (
            {"values": {"resources": {"computeDomains": {"imex": {"isolation": "channel"}}}}},
            {"values.resources.computeDomains.imex.isolation": "unsupported-value"},
        ),
        ({"webhook": True}, {}),
        ({"webhook": True, "webhook_tls_mode": "secret"}, {"webhook_tls_mode": "chart-template-fails"}),
        ({"webhook": True, "webhook_tls_mode": "secret", "webhook_secret_name": "certs"}, {}),
        ({"webhook": True, "webhook_issuer_type": "issuer"}, {"webhook_issuer_type": "chart-template-fails"}),
        ({"webhook_tls_mode": "certmanager"}, {"webhook_tls_mode": "unsupported-value"}),
        ({"namespace": "default"}, {"namespace": "namespace-refused"}),
        ({"namespace": "default", "allow_default_namespace": True}, {}),
        ({"namespace": "GPU"}, {"namespace": "invalid-name"}),
        (
            {"namespace_labels": {"pod-security.kubernetes.io/enforce": "baseline"}},
            {"namespace_labels": "namespace-refused"},
        ),
        ({"resource_api_version": "resource.k8s.io/v1beta1"}, {"resource_api_version": "version-not-served"}),
        ({"resource_api_version": "v1"}, {"resource_api_version": "unsupported-value"}),
        ({"version": "25.4.0"}, {"version": "unknown-chart-version"}),
        ({"version": "newest"}, {"version": "unknown-chart-version"}),
        ({"version": "0.9.0"}, {"version": "values-not-known"}),
        ({"version": "25.3.2"}, {"version": "version-matrix"}),
        ({"version": "0.4.1", "chart": "nvidia/nvidia-dra-driver-gpu"}, {"chart": "unknown-chart-version"}),
        ({"version": "25.8.1", "chart": "./dra-driver-nvidia-gpu-0.4.1.tgz"}, {"chart": "unknown-chart-version"}),
        ({"values": {"image": {"tag": "v0.4.1"}}}, {"values.image.tag": "version-matrix"}),
        ({"values": {"image": {"repository": "r/k8s-dra-driver-gpu"}}}, {"values.image.repository": "version-matrix"}),
        ({"kernel_driver": "550.90"}, {"kernel_driver": "version-matrix"}),
        ({"kernel_driver": "565.57.01"}, {"kernel_driver": "version-matrix"}),
        ({"kernel_driver": "565.57.01", "compute_domains": False}, {}),
        ({"kernel_driver": "580.95.05"}, {}),
        ({"log_verbosity": [4]}, {"log_verbosity": "wrong-type"}),
        ({"gpus": "yes"}, {"gpus": "wrong-type"}),
        ({"timeout": True}, {"timeout": "wrong-type"}),
        ({"gatez": {}}, {"gatez": "unknown-argument"}),
        (
            {"gpus": True, "values": {"resources": {"gpus": {"enabled": True}}}},
            {"values.resources.gpus.enabled": "value-set-twice"},
        ),
        (
            {"gates": {"MPSSupport": True}, "values": {"featureGates": {"MPSSupport": True}}},
            {"values.featureGates.MPSSupport": "value-set-twice"},
        ),
        ({"values": {"logVerbosity": [4]}}, {"values.logVerbosity": "chart-value-type"}),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_driver(arguments: dict[str, Any], expected: dict[str, str]):
    assert of_driver(**arguments) == expected


def test_a_value_above_an_argument_is_written_twice_too():
    with pytest.raises(InvalidSpecError) as caught:
        compile_driver(CONSENT | {"gpus": True, "values": {"resources": "none"}}, target=TARGET)
    assert {(each.path, each.code) for each in caught.value.problems} == {
        ("values.resources", "value-set-twice"),
        ("values.resources", "chart-value-type"),
    }


def test_everything_is_told_at_once():
    arguments = {
        "gates": {"Nonsense": True},
        "namespace": "default",
        "webhook": True,
        "webhook_tls_mode": "secret",
    }
    assert set(found_by(compile_driver, arguments).values()) == {
        "unknown-driver-gate",
        "namespace-refused",
        "chart-template-fails",
        "gpu-resources-consent",
    }


def test_without_a_named_minor_a_gate_of_kubernetes_that_is_off_somewhere_is_a_warning():
    made = compile_driver(CONSENT | {"gates": {"DynamicMIG": True}}, target=ClusterTarget())
    assert [(each.path, each.code) for each in made.warnings] == [
        ("gates.DynamicMIG", "needs-newer-kubernetes")
    ]
    off = found_by(
        compile_driver, CONSENT | {"gates": {"DynamicMIG": True}}, ClusterTarget(kubernetes="1.35")
    )
    assert off == {"gates.DynamicMIG": "needs-newer-kubernetes"}


def test_of_kubernetes_1_34_the_patch_release_counts():
    made = compile_driver(CONSENT, target=ClusterTarget(kubernetes="1.34"))
    assert [(each.path, each.code, each.severity) for each in made.warnings] == [
        ("version", "version-matrix", "warning")
    ]


def test_an_older_chart_with_its_own_name_and_prefix_is_found():
    made = compile_driver(CONSENT | {"version": "v25.8.1"}, target=TARGET)
    assert (made.chart, made.version, made.namespace.name) == (
        "nvidia-dra-driver-gpu",
        "25.8.1",
        "nvidia-dra-driver-gpu",
    )
    newest = compile_driver(CONSENT, target=TARGET)
    assert newest.chart.startswith("oci://")
    assert newest.repository == ""
    assert compile_operator({}, target=TARGET).version == "v26.7.0"


def test_a_mirror_takes_the_place_of_the_publisher_and_a_folder_brings_its_own_version():
    mirrored = compile_driver(CONSENT | {"repository": "oci://mirror.example.com/charts"}, target=TARGET)
    assert mirrored.chart == "oci://mirror.example.com/charts/dra-driver-nvidia-gpu"
    local = compile_driver(CONSENT | {"chart": "./dra-driver-nvidia-gpu"}, target=TARGET)
    assert (local.chart, local.repository, local.version) == ("./dra-driver-nvidia-gpu", "", "")


def test_where_the_chart_asks_for_control_plane_nodes_a_node_selector_takes_its_place():
    selector = {"controller_node_selector": {"kubernetes.azure.com/mode": "system"}}
    old = compile_driver(CONSENT | selector | {"version": "25.8.1"}, target=TARGET).values.tree["controller"]
    terms = old["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    wanted = {"key": "kubernetes.azure.com/mode", "operator": "In", "values": ["system"]}
    assert terms == [{"matchExpressions": [wanted]}]
    new = compile_driver(CONSENT | selector, target=TARGET).values.tree["controller"]
    assert new == {"nodeSelector": {"kubernetes.azure.com/mode": "system"}}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"version": "0.5.0", "upgrade_from": "25.8.1"},
            {"name_override": "chart-upgrade", "crds": "chart-upgrade"},
        ),
        ({"version": "0.5.0", "upgrade_from": "25.8.1", "crds": "crds", "name_override": "nvidia-dra-driver-gpu"}, {}),
        ({"version": "0.5.0", "upgrade_from": "0.4.1"}, {"crds": "chart-upgrade"}),
        ({"version": "0.4.1", "upgrade_from": "0.4.0"}, {}),
        ({"version": "25.12.0", "upgrade_from": "0.4.1"}, {"version": "chart-upgrade"}),
        ({"version": "0.5.0", "upgrade_from": "25.4.0"}, {"upgrade_from": "unknown-chart-version"}),
    ],
)  # fmt: skip
def test_the_way_from_the_version_that_is_installed(arguments: dict[str, Any], expected: dict[str, str]):
    assert of_driver(**arguments) == expected


def test_an_installation_that_keeps_its_name_stays_in_its_namespace():
    made = compile_driver(CONSENT | {"name_override": "nvidia-dra-driver-gpu"}, target=TARGET)
    assert made.namespace.name == "nvidia-dra-driver-gpu"


def test_classes_are_those_of_the_parts_that_are_on():
    def names(**arguments: Any) -> list[str]:
        return [shipped.name for _, shipped in compile_driver(CONSENT | arguments, target=TARGET).classes]

    assert names(compute_domains=False) == ["gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"]
    assert names(compute_domains=False, version="25.8.1") == ["gpu.nvidia.com", "mig.nvidia.com"]
    hosted = names(gpus=False, imex_mode="hostManaged", gates={"HostManagedIMEXDaemon": True})
    assert hosted == ["compute-domain-default-channel.nvidia.com"]


# The operator


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"gpu_cluster": True}, {"gpu_cluster": "chart-template-fails"}),
        ({"gpu_cluster": True, "driver": False}, {}),
        ({"gpu_cluster": True, "nvidia_driver_crd": True}, {}),
        (
            {"gpu_cluster": True, "driver": False, "values": {"clusterPolicy": {"deployCR": True}}},
            {"gpu_cluster": "chart-template-fails"},
        ),
        ({"gpu_cluster": True, "driver": False, "version": "26.3.0"}, {"gpu_cluster": "version-matrix", "version": "values-not-known"}),
        ({"gpu_cluster": True, "driver": False, "version": "26.3.3"}, {"gpu_cluster": "unknown-chart-value"}),
        ({"gates": {"DynamicMIG": True}}, {"gates": "chart-value-unused"}),
        (
            {"gpu_cluster": True, "driver": False, "gates": {"DynamicMIG": True, "MPSSupport": True}},
            {"gates.DynamicMIG": "driver-gate-conflict"},
        ),
        ({"mig_strategy": "mixd"}, {"mig_strategy": "unsupported-value"}),
        ({"cdi": False, "values": {"cdi": {"nriPluginEnabled": True}}}, {"values.cdi.nriPluginEnabled": "chart-template-fails"}),
        ({"values": {"cdi": {"nriPluginEnabled": True}}}, {}),
        ({"values": {"devicePlugin": {"config": {"create": True}}}}, {"values.devicePlugin.config.create": "chart-template-fails"}),
        ({"values": {"cdi": {"default": True}}}, {"values.cdi.default": "unknown-chart-value"}),
        ({"version": "26.3.3", "values": {"cdi": {"default": True}}}, {}),
        ({"device_plugin": "off"}, {"device_plugin": "wrong-type"}),
        ({"dcgm_claims": "on"}, {"dcgm_claims": "wrong-type"}),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_operator(arguments: dict[str, Any], expected: dict[str, str]):
    assert of_operator(**arguments) == expected


def test_a_gpu_cluster_turns_the_cluster_policy_off_and_brings_the_classes_of_its_driver():
    made = compile_operator({"gpu_cluster": True, "driver": False}, target=TARGET)
    assert made.values.tree["clusterPolicy"] == {"deployCR": False}
    assert len(made.classes) == 5
    assert compile_operator({}, target=TARGET).classes == ()


def test_crds_that_are_given_are_upgraded_by_nobody_else():
    made = compile_operator({"crds": "crds"}, target=TARGET)
    assert made.values.tree["operator"] == {"upgradeCRD": False}


# Metrics of DCGM


def exporter_of(arguments: dict[str, Any], target: ClusterTarget = TARGET) -> dict[str, Any] | None:
    """What an operator tells DCGM's exporter, None where that is nothing."""
    tree = compile_operator(arguments, target=target).values.tree
    return tree.get("dcgmExporter")


TELLS_OF_DRA = {"enablePodUID": True, "env": [{"name": "KUBERNETES_ENABLE_DRA", "value": "true"}]}


def test_without_a_device_plugin_metrics_name_pods_and_claims():
    assert exporter_of({"device_plugin": False}) == TELLS_OF_DRA
    assert exporter_of({"values": {"devicePlugin": {"enabled": False}}}) == TELLS_OF_DRA
    assert exporter_of({}) is None
    assert exporter_of({"device_plugin": False, "dcgm_claims": False}) is None
    assert exporter_of({"device_plugin": False, "dcgm_exporter": False}) == {"enabled": False}
    # While nodes leave the plugin in groups, a cluster has both.
    assert exporter_of({"dcgm_claims": True}) == TELLS_OF_DRA


def test_a_platform_whose_driver_gives_out_gpus_names_them_in_metrics():
    made = compile_platform("kubeadm", {"operator": {}, "driver": {}}, target=TARGET)
    assert made.parts["operator"].values.tree["dcgmExporter"] == TELLS_OF_DRA
    only_domains = compile_platform("kubeadm", {"operator": {}, "driver": {"gpus": False}}, target=TARGET)
    assert "dcgmExporter" not in only_domains.parts["operator"].values.tree


def test_the_exporter_may_read_slices_by_objects_of_the_chart():
    role, binding = compile_operator({"device_plugin": False}, target=TARGET).values.tree["extraObjects"]
    assert role["rules"] == [
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["get", "list", "watch"]}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == binding["metadata"]["name"]
    (account,) = binding["subjects"]
    assert account["name"] == "nvidia-dcgm-exporter"


def test_a_gpu_cluster_tells_its_exporter_by_itself():
    for arguments in ({"device_plugin": False}, {"dcgm_claims": True}):
        assert exporter_of({"gpu_cluster": True, "driver": False, **arguments}) is None


def test_lists_of_the_user_stay_beside_what_the_exporter_is_told():
    own = {"name": "DCGM_EXPORTER_INTERVAL", "value": "1000"}
    extra = {"kind": "ConfigMap"}
    values = {"dcgmExporter": {"env": [own], "enablePodUID": False}, "extraObjects": [extra]}
    tree = compile_operator({"device_plugin": False, "values": values}, target=TARGET).values.tree
    told = [{"name": "KUBERNETES_ENABLE_DRA", "value": "true"}]
    assert tree["dcgmExporter"] == {"env": [*told, own], "enablePodUID": False}
    assert [each["kind"] for each in tree["extraObjects"]] == [
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
    ]


@pytest.mark.parametrize("version", ["25.10.1", "26.7.0"])
def test_nothing_is_added_to_an_environment_that_tells_the_exporter_of_dra(version: str):
    values = {"dcgmExporter": {"env": [{"name": "KUBERNETES_ENABLE_DRA", "value": "false"}]}}
    made = compile_operator({"version": version, "device_plugin": False, "values": values}, target=TARGET)
    assert made.values.tree == values | {"devicePlugin": {"enabled": False}}
    assert made.warnings == ()


@pytest.mark.parametrize("version", ["25.10.0", "25.10.1", "26.3.2", "26.3.3"])
def test_an_operator_whose_exporter_cannot_be_told_of_dra_is_a_warning(version: str):
    arguments = {"version": version, "device_plugin": False}
    assert of_operator(**arguments) == {"version": "version-matrix"}
    assert exporter_of(arguments) is None
    assert of_operator(**arguments, dcgm_claims=False) == {}
    with pytest.raises(InvalidSpecError):
        exporter_of({"version": version, "dcgm_claims": True})


def test_an_older_operator_needs_a_newer_exporter_or_the_beta_that_its_own_reads():
    arguments = {"version": "26.3.3", "device_plugin": False}
    newer = {"version": "4.6.0-4.8.3-distroless"}
    assert exporter_of({**arguments, "values": {"dcgmExporter": newer}}) == TELLS_OF_DRA | newer
    # What a digest holds is not known: likely the exporter that the operator brings.
    for image in ("4.5.3-4.8.2-distroless", "sha256:0123"):
        values = {"dcgmExporter": {"version": image}}
        assert of_operator(**arguments, values=values) == {"version": "version-matrix"}
    beta = ClusterTarget(kubernetes="1.36", serves=frozenset({"v1", "v1beta1"}))
    assert exporter_of(arguments, beta) == TELLS_OF_DRA


# The example driver


def test_the_example_driver():
    made = compile_example_driver({"devices_per_node": 4}, target=TARGET)
    assert made.values.tree == {"kubeletPlugin": {"numDevices": 4}}
    assert [shipped.name for _, shipped in made.classes] == ["gpu.example.com"]
    assert found_by(compile_example_driver, {"profile": "gpus"}) == {"profile": "unsupported-value"}
    assert found_by(compile_example_driver, {"version": "0.1.0"})["version"] == "version-matrix"


# All together


def test_what_follows_from_the_platform_and_from_the_operator():
    parts = {"operator": {"version": "26.7.0", "eviction_label": LABEL}, "driver": {"version": "25.8.1"}}
    made = compile_platform("aks", parts, target=TARGET)
    assert made.parts["operator"].values.tree["devicePlugin"] == {"enabled": False}
    driver = made.parts["driver"].values.tree
    assert driver["gpuResourcesEnabledOverride"] is True
    assert driver["nvidiaDriverRoot"] == "/run/nvidia/driver"
    assert driver["kubeletPlugin"] == {"nodeSelector": {LABEL: "true"}}
    assert "affinity" in driver["controller"]
    assert made.node_labels == {LABEL: "true"}
    assert made.warnings == ()
    assert list(made.parts) == ["operator", "driver"]


def test_nodes_that_bring_the_kernel_driver_get_none_from_the_operator():
    made = compile_platform("gke", {"operator": {}, "driver": {}}, target=TARGET)
    assert made.parts["operator"].values.get("driver.enabled") is False
    assert made.parts["driver"].values.tree["kubeletPlugin"] == {
        "priorityClassName": "",
        "tolerations": [{"operator": "Exists"}],
    }
    assert made.node_labels["gke-no-default-nvidia-gpu-device-plugin"] == "true"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            {"operator": {"device_plugin": True, "eviction_label": LABEL}, "driver": {}},
            {"operator.device_plugin": "device-plugin-beside-dra"},
        ),
        ({"operator": {"device_plugin": True, "eviction_label": LABEL}, "driver": {"gpus": False}}, {}),
        (
            {
                "operator": {"values": {"devicePlugin": {"enabled": True}}, "eviction_label": LABEL},
                "driver": {},
            },
            {"operator.values.devicePlugin.enabled": "device-plugin-beside-dra"},
        ),
        (
            {"operator": {"gpu_cluster": True, "driver": False}, "driver": {}},
            {"operator.gpu_cluster": "platform-conflict"},
        ),
        (
            {"operator": {"eviction_label": LABEL}, "driver": {"nvidia_driver_root": "/"}},
            {"driver.nvidia_driver_root": "platform-conflict"},
        ),
        (
            {"operator": {"eviction_label": LABEL, "cdi": False}, "driver": {}},
            {"operator.cdi": "platform-conflict"},
        ),
        (
            {
                "operator": {"eviction_label": LABEL, "mig_config": "all-balanced"},
                "driver": {"gates": {"DynamicMIG": True}},
            },
            {"operator.mig_config": "platform-conflict"},
        ),
        (
            {"operator": {"eviction_label": LABEL}, "driver": {"gates": {"DynamicMIG": True}}},
            {},
        ),
        (
            {"operator": {"eviction_label": LABEL}, "driver": {"gpu_clique_label": True}},
            {"driver.gpu_clique_label": "platform-conflict"},
        ),
        (
            {"operator": {"eviction_label": LABEL, "gpu_feature_discovery": False}, "driver": {}},
            {"operator.gpu_feature_discovery": "platform-conflict"},
        ),
        ({"operator": {}, "driver": {}}, {"operator.eviction_label": "eviction-label"}),
        (
            {"operator": {"eviction_label": LABEL}, "driver": {"plugin_node_selector": {"pool": "a"}}},
            {"driver.plugin_node_selector": "eviction-label"},
        ),
        (
            {"operator": {}, "driver": {"plugin_node_selector": {LABEL: "true"}}},
            {"operator.eviction_label": "eviction-label"},
        ),
        (
            {"operator": {"eviction_label": LABEL, "kernel_driver": "550.90.07"}, "driver": {}},
            {"operator.kernel_driver": "version-matrix"},
        ),
        ({"driver": {}}, {"driver.gpu_resources_enabled_override": "gpu-resources-consent"}),
        ({"driver": None}, {"driver": "missing-argument"}),
    ],
)
def test_what_is_wrong_between_operator_and_driver(parts: dict[str, Any], expected: dict[str, str]):
    assert of_platform(**parts) == expected


def test_an_eviction_label_on_one_side_is_an_error_and_on_none_a_warning():
    made = compile_platform("kubeadm", {"operator": {}, "driver": {}}, target=TARGET)
    assert [(each.code, each.severity) for each in made.warnings] == [("eviction-label", "warning")]


def test_pools_without_the_labels_are_told():
    parts = {"operator": {"eviction_label": LABEL}, "driver": {}}
    pools = {"a100": {LABEL: "true"}, "h100": {}}
    assert of_platform(pools=pools, **parts) == {"gpu_pools.h100": "node-labels-missing"}
    assert of_platform("gke", pools={"l4": {}}, operator={}, driver={}) == {
        "gpu_pools.l4": "node-labels-missing"
    }
    assert of_platform(pools=["a100"], **parts) == {"gpu_pools": "wrong-type"}


def test_a_misspelt_platform_gets_the_nearest_name():
    with pytest.raises(InvalidSpecError) as caught:
        compile_platform("akz", {"driver": CONSENT}, target=TARGET)
    (problem,) = caught.value.problems
    assert (problem.path, problem.code) == ("platform", "unsupported-value")
    assert 'did you mean "aks"?' in problem.hint
    assert of_platform(None, driver=CONSENT) == {"platform": "missing-argument"}


def test_parts_that_share_a_namespace_make_it_once():
    made = compile_platform(
        "kubeadm", {"operator": {"namespace": "gpu"}, "driver": {"namespace": "gpu"}}, target=TARGET
    )
    assert [each.namespace.labels is not None for each in made.parts.values()] == [True, False]


@pytest.mark.parametrize(
    ("value", "arguments"),
    [(None, None), (False, None), (True, {}), ("0.5.0", {"version": "0.5.0"}), ({"gpus": False, "version": None}, {"gpus": False})],
)  # fmt: skip
def test_a_part_is_a_version_a_mapping_or_nothing(value: object, arguments: object):
    assert read_part("driver", value) == (arguments, [])


def test_a_part_that_is_something_else_is_told():
    assert [each.code for each in read_part("driver", 3)[1]] == ["wrong-type"]


def test_only_crds_are_taken_for_crds():
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n"
    found, problems = read_definitions(crd + "---\nkind: Job\napiVersion: batch/v1\n", file="x.yaml")
    assert [each["metadata"]["name"] for each in found] == ["a.b"]
    assert [(each.path, each.code) for each in problems] == [("crds", "not-a-crd")]
    assert [each.code for each in read_definitions("a: [", file="x.yaml")[1]] == ["yaml-syntax"]


# Data


def test_profiles_and_rules_speak_of_arguments_and_values_that_exist():
    for platform in platforms().values():
        assert set(platform.operator) <= set(chart_rules("GPU Operator").arguments)
        assert set(platform.driver) <= set(chart_rules("NVIDIA DRA driver").arguments)
        assert set(platform.example) <= set(chart_rules("DRA example driver").arguments)
    for product in COMPILE:
        known = {
            path
            for name, chart in charts().items()
            if chart.product == product
            for version in chart.versions
            for path in value_types(name, version)
        }
        rules = chart_rules(product)  # type: ignore[arg-type]
        named = {
            *rules.defaults,
            *rules.choices,
            *(path for each in rules.rules for path in (*each.when, *each.unless)),
        }
        assert named <= known
    assert set(matrix().driver.images) <= set(charts())


def test_every_value_that_an_argument_writes_is_known_to_a_version():
    for product in COMPILE:
        table = chart_rules(product).arguments  # type: ignore[arg-type]
        known = {
            path
            for name, chart in charts().items()
            if chart.product == product
            for version in chart.versions
            for path in value_types(name, version)
        }
        assert {path for paths in table.values() for path in paths} <= known
        assert not set(table) & set(SHARED)


VERSIONS = [
    (chart.product, name, version)
    for name, chart in charts().items()
    for version, each in chart.versions.items()
    if each.keys
]
WRITES = {"string": "x", "bool": True, "int": 2, "list": [], "map": {"a": "b"}}


@given(st.data())
def test_values_of_right_arguments_are_never_refused_by_the_chart(data: st.DataObject):
    product, name, version = data.draw(st.sampled_from(VERSIONS))
    table = chart_rules(product).arguments
    types = value_types(name, version)
    choices = chart_rules(product).choices
    arguments: dict[str, Any] = {"version": version}
    for argument in data.draw(st.sets(st.sampled_from(sorted(table)))):
        paths = table[argument]
        if argument == "gates":
            if any(path in types for path in paths) and product == "NVIDIA DRA driver":
                line = charts()[name].versions[version].line
                picked = data.draw(
                    st.dictionaries(
                        st.sampled_from(sorted(gates_of(line)) or ["-"]), st.booleans(), max_size=3
                    )
                )
                if not any(each.severity == "error" for each in check_gates(line, picked)):
                    arguments[argument] = picked
            continue
        path = paths[0]
        if all(each in types for each in paths):
            value: Any = WRITES[types[path].split("|")[-1 if "map" in types[path] else 0]]
            if argument == "eviction_label":
                value = "x"
            arguments[argument] = data.draw(st.sampled_from(choices[path])) if path in choices else value
    target = ClusterTarget(kubernetes="1.37", serves=frozenset({"v1", "v1beta1", "v1beta2"}))
    values: Any = found_or_values(COMPILE[product], arguments, target)
    if isinstance(values, set):
        refused = {
            "unknown-chart-value",
            "chart-value-type",
            "wrong-type",
            "unknown-argument",
            "value-set-twice",
        }
        assert not refused & values
    else:
        assert check_values(name, version, values) == []


def found_or_values(compile_: Any, arguments: dict[str, Any], target: ClusterTarget) -> Any:
    """The codes of what is wrong, else the values."""
    try:
        return compile_(arguments, target=target).values.tree
    except InvalidSpecError as error:
        return {problem.code for problem in error.problems}


def test_on_openshift_the_operator_is_from_elsewhere_and_the_driver_finds_what_it_installs():
    consent = {"gpu_resources_enabled_override": True}
    made = compile_platform("openshift", {"driver": consent}, target=TARGET)
    assert made.parts["driver"].values.get("nvidiaDriverRoot") == "/run/nvidia/driver"
    assert of_platform("openshift", driver={}) == {
        "driver.gpu_resources_enabled_override": "gpu-resources-consent"
    }
    assert of_platform("openshift", driver=consent, operator={})["operator"] == "platform-conflict"
    assert "operator" not in of_platform("kubeadm", driver={}, operator={})
