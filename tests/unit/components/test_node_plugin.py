from __future__ import annotations

from typing import Any

import pulumi
import pytest

import dra_infra as dra
from dra_infra.components.arguments import NodePluginPart
from dra_infra.errors import ProgramError
from dra_infra.plugin.command.settings import all_settings
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import Program
from dra_infra.specs.node_plugin.checks import _CHECKS, BY_ARGUMENT, IMAGE, OTHERS
from tests.support.components.family import registered, run


def program(**arguments: Any) -> Program:
    given = {"back_end": "sim", **arguments}
    return synth_function(lambda: dra.NodePlugin("plugin", **given), config={"dra-infra:kubernetes": "1.37"})


def manifest(kind: str, **arguments: Any) -> Any:
    (found,) = [each.manifest for each in program(**arguments).objects if each.manifest["kind"] == kind]
    return found


def pod(**arguments: Any) -> Any:
    return manifest("DaemonSet", **arguments)["spec"]["template"]["spec"]


def container(**arguments: Any) -> Any:
    (found,) = pod(**arguments)["containers"]
    return found


def variables(**arguments: Any) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container(**arguments)["env"]}


def problems(body: Any) -> list[tuple[str, str]]:
    try:
        found = synth_function(body).problems
    except ProgramError as error:
        found = error.problems
    return [(each.code, each.path) for each in found if each.severity == "error"]


def test_every_argument_is_checked():
    assert set(NodePluginPart.__annotations__) == set(_CHECKS)


def test_every_setting_of_the_plugin_has_an_argument_or_follows():
    every = {each.name for each in all_settings()}
    # These follow from being a pod of a DaemonSet, whose folders are mounted.
    fixed = {"node_name", "pod_uid", "kubeconfig", "state_folder", "driver_root"}
    assert {*BY_ARGUMENT, *OTHERS, *fixed} == every
    assert set(BY_ARGUMENT.values()) <= set(_CHECKS)


def test_the_container_is_given_variables_that_the_plugin_reads():
    known = {each.variable for each in all_settings()}
    for arguments in ({}, {"back_end": "nvml"}, {"log_level": "debug", "kubelet_root": "/kubelet"}):
        given = set(variables(**arguments))
        assert given <= known
        assert {"NODE_NAME", "POD_UID", "DRA_INFRA_PLUGIN_BACK_END"} <= given


def test_the_image_is_the_one_that_make_image_names():
    assert f"localhost/dra-infra-plugin:{dra.__version__}" == IMAGE
    assert container()["image"] == IMAGE
    assert container()["imagePullPolicy"] == "IfNotPresent"


def test_a_simulated_plugin_may_do_nothing_on_the_node_but_write_its_folders():
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsGroup": 0,
        "runAsUser": 0,
    }
    assert pod()["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    assert "hostNetwork" not in pod()
    assert {each["hostPath"]["path"] for each in pod(fleet="hgx-h100")["volumes"]} == {
        "/var/lib/kubelet/plugins_registry",
        "/var/lib/kubelet/plugins/gpu.nvidia.com",
        "/var/run/cdi",
    }


def test_folders_are_at_the_same_place_inside_since_the_kubelet_is_told_paths():
    arguments = {"kubelet_root": "/var/lib/k0s/kubelet/", "cdi_folder": "/etc/cdi"}
    inside = {each["name"]: each["mountPath"] for each in container(**arguments)["volumeMounts"]}
    outside = {each["name"]: each["hostPath"]["path"] for each in pod(**arguments)["volumes"]}
    assert inside == outside
    assert outside["registry"] == "/var/lib/k0s/kubelet/plugins_registry"
    assert variables(**arguments)["DRA_INFRA_PLUGIN_CDI_FOLDER"] == "/etc/cdi"


def test_only_a_plugin_of_real_gpus_is_privileged_and_sees_the_driver_of_the_node():
    found = container(back_end="nvml", nvidia_driver_root="/run/nvidia/driver")
    assert found["securityContext"]["privileged"] is True
    assert {"name": "driver-root", "mountPath": "/driver-root"}.items() <= found["volumeMounts"][-1].items()
    assert found["volumeMounts"][-1]["readOnly"] is True
    assert not any("emptyDir" in each for each in pod()["volumes"])
    told = variables(back_end="nvml", nvidia_driver_root="/run/nvidia/driver")
    assert told["NVIDIA_DRIVER_ROOT"] == "/driver-root"
    assert told["DRA_INFRA_PLUGIN_DRIVER_ROOT_ON_HOST"] == "/run/nvidia/driver"


@pytest.mark.parametrize("back_end", ["sim", "nvml"])
def test_on_openshift_the_account_may_have_privileged_pods_in_its_namespace_alone(back_end: str):
    binding = manifest("RoleBinding", back_end=back_end, openshift=True, namespace="nodes")
    assert binding["metadata"]["namespace"] == "nodes"
    assert binding["roleRef"]["name"] == "system:openshift:scc:privileged"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "plugin", "namespace": "nodes"}]
    security = container(back_end=back_end, openshift=True)["securityContext"]
    # A privileged container is not confined by SELinux anyway.
    assert security.pop("seLinuxOptions", None) == ({"type": "spc_t"} if back_end == "sim" else None)
    assert security == container(back_end=back_end)["securityContext"]
    assert "RoleBinding" not in {each.manifest["kind"] for each in program(back_end=back_end).objects}


def test_nvidias_toolkit_has_a_place_for_the_file_that_it_writes_before_it_prints():
    found = container(back_end="nvml")
    assert found["securityContext"]["readOnlyRootFilesystem"] is True
    assert {"name": "tmp", "mountPath": "/tmp"} in found["volumeMounts"]
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}} in pod(back_end="nvml")["volumes"]


def test_an_update_starts_the_new_pod_before_it_stops_the_old_one():
    assert manifest("DaemonSet")["spec"]["updateStrategy"]["rollingUpdate"] == {
        "maxSurge": 1,
        "maxUnavailable": 0,
    }
    fields = {each["name"]: each.get("valueFrom") for each in container()["env"]}
    assert fields["POD_UID"] == {"fieldRef": {"fieldPath": "metadata.uid"}}


def test_with_the_network_of_the_node_there_is_one_pod_at_a_time_and_no_port_is_taken_twice():
    assert manifest("DaemonSet", host_network=True)["spec"]["updateStrategy"]["rollingUpdate"] == {
        "maxSurge": 0,
        "maxUnavailable": 1,
    }
    assert "ports" not in container(host_network=True)


def test_a_label_changes_the_pods_and_never_what_selects_them():
    plain, labelled = (manifest("DaemonSet", **more)["spec"] for more in ({}, {"labels": {"release": "2"}}))
    assert plain["selector"] == labelled["selector"]
    assert labelled["template"]["metadata"]["labels"]["release"] == "2"
    mine = {"app.kubernetes.io/name": "mine"}
    assert manifest("DaemonSet", labels=mine)["spec"] == plain


def test_settings_and_variables_reach_the_container_in_the_order_of_the_program():
    found = variables(
        fleet="hgx-h100", settings={"mig_delay": "2s"}, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    )
    assert found["DRA_INFRA_PLUGIN_FLEET"] == "hgx-h100"
    assert found["DRA_INFRA_PLUGIN_DRIVER"] == "gpu.nvidia.com"
    assert list(found)[-2:] == ["DRA_INFRA_PLUGIN_MIG_DELAY", "KUBERNETES_SERVICE_HOST"]


def test_ports_are_those_that_are_probed_and_served():
    found = container(metrics_port=9000, health_port=9001)
    assert {each["name"]: each["containerPort"] for each in found["ports"]} == {
        "metrics": 9000,
        "health": 9001,
    }
    assert {
        found[probe]["grpc"]["port"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    } == {9001}
    assert variables(metrics_port=9000)["DRA_INFRA_PLUGIN_METRICS_ADDRESS"] == ":9000"


def test_a_plugin_on_a_busy_node_has_time_to_answer_a_probe():
    probes = [container()[probe] for probe in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert [each["timeoutSeconds"] for each in probes] == [10, 10, 10]


def test_a_pod_is_soon_ready_and_not_soon_unready():
    # An older pod that is unready is deleted before the newer one of a rolling update is ready.
    probe = container()["readinessProbe"]
    assert probe["periodSeconds"] <= 2
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 30


def test_rights_are_the_least():
    assert manifest("ClusterRole")["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["get", "list"]},
        {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices"],
            "verbs": ["list", "watch", "create", "update", "delete"],
        },
    ]


def test_only_binding_conditions_need_claims_to_be_followed_and_written():
    found = manifest("ClusterRole", binding_conditions=True)["rules"]
    assert {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims/status"],
        "verbs": ["patch"],
    } in found
    assert found[-1] == {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims/driver"],
        "resourceNames": ["gpu.example.com"],
        "verbs": ["associated-node:patch"],
    }


def test_the_policy_names_the_account_and_is_there_before_the_pods():
    name = manifest("ServiceAccount", namespace="nodes")["metadata"]
    (condition,) = manifest("ValidatingAdmissionPolicy", namespace="nodes")["spec"]["matchConditions"]
    account = f"system:serviceaccount:{name['namespace']}:{name['name']}"
    assert condition["expression"] == f"request.userInfo.username == '{account}'"
    (pods,) = [each for each in registered("NodePlugin").children if each.type.endswith(":DaemonSet")]
    waits_for = {urn.split("::")[2].rpartition(":")[2] for urn in pods.dependencies}
    assert waits_for == {
        *("ServiceAccount", "ClusterRole", "ClusterRoleBinding"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "NetworkPolicy"),
    }


@pytest.mark.parametrize("conditions", [False, True])
def test_whatever_the_account_may_write_is_held_to_its_node_by_the_policy(conditions: bool):
    rules = manifest("ClusterRole", binding_conditions=conditions)["rules"]
    written = {
        each
        for rule in rules
        for each in rule["resources"]
        if not set(rule["verbs"]) <= {"get", "list", "watch", "associated-node:patch"}
    }
    policy = manifest("ValidatingAdmissionPolicy", binding_conditions=conditions)["spec"]
    held = [each for rule in policy["matchConstraints"]["resourceRules"] for each in rule["resources"]]
    assert set(held) == written
    assert ("resourceclaims/status" in held) == conditions


def test_no_pod_reaches_the_probes_and_only_those_that_are_named_the_metrics():
    open_to_all = manifest("NetworkPolicy", metrics_port=9000)
    selected = manifest("DaemonSet")["spec"]["selector"]["matchLabels"]
    assert open_to_all["metadata"]["namespace"] == "dra-infra-plugin"
    assert open_to_all["spec"] == {
        "podSelector": {"matchLabels": selected},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": 9000}]}],
    }
    (rule,) = manifest("NetworkPolicy", metrics_namespaces=["monitoring"])["spec"]["ingress"]
    named = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["monitoring"]}
    assert rule == {
        "ports": [{"protocol": "TCP", "port": 8080}],
        "from": [{"namespaceSelector": {"matchExpressions": [named]}}],
    }
    # An empty list of peers would be everybody.
    assert manifest("NetworkPolicy", metrics_namespaces=[])["spec"]["ingress"] == []


def test_pods_with_the_network_of_the_node_have_no_policy_that_would_not_hold():
    assert "NetworkPolicy" not in [each.manifest["kind"] for each in program(host_network=True).objects]


def test_claims_of_its_classes_are_made_after_its_pods_and_go_before_them():
    """A pod that has a claim never ends where the driver has gone before it."""

    def body() -> None:
        plugin = dra.NodePlugin("plugin", back_end="sim", fleet="hgx-h100")
        dra.GpuClaimTemplate("one", device_class=plugin.device_classes["gpu.nvidia.com"])

    (template,) = [each for each in run(body)[1].requests if each.type.endswith(":ResourceClaimTemplate")]
    kinds = {urn.split("::")[2].rpartition(":")[2] for urn in template.dependencies}
    assert {"DaemonSet", "DeviceClass"} <= kinds


def test_a_namespace_that_another_part_of_the_program_makes_is_an_output():
    def body() -> None:
        dra.NodePlugin("plugin", back_end="sim", namespace=pulumi.Output.from_input("nodes"))

    made = synth_function(body).objects
    (policy,) = [each.manifest for each in made if each.manifest["kind"] == "ValidatingAdmissionPolicy"]
    assert ":nodes:plugin'" in policy["spec"]["matchConditions"][0]["expression"]


def test_namespaces_that_every_cluster_has_are_not_made():
    kinds = [each.manifest["kind"] for each in program(namespace="kube-system").objects]
    assert "Namespace" not in kinds


@pytest.mark.parametrize(
    ("arguments", "classes"),
    [
        ({}, {"gpu.example.com": "device.driver == 'gpu.example.com'"}),
        ({"driver": "gpu.acme.example"}, {"gpu.acme.example": "device.driver == 'gpu.acme.example'"}),
        ({"classes": False}, {}),
    ],
)
def test_classes_are_those_of_the_driver(arguments: dict[str, Any], classes: dict[str, str]):
    made = [each.manifest for each in program(**arguments).objects if each.manifest["kind"] == "DeviceClass"]
    assert {
        each["metadata"]["name"]: each["spec"]["selectors"][0]["cel"]["expression"] for each in made
    } == classes


def test_claims_through_a_class_of_the_plugin_wait_for_it():
    def body() -> None:
        plugin = dra.NodePlugin("plugin", back_end="sim", fleet="hgx-h100")
        dra.GpuClaim("claim", device_class=plugin.device_classes["gpu.nvidia.com"], namespace="ml")
        with pytest.raises(KeyError, match="is not installed; the classes are"):
            plugin.device_classes["gpu.example.com"]

    made = synth_function(body)
    assert [str(each) for each in made.problems] == []
    (claim,) = [each.manifest for each in made.objects if each.manifest["kind"] == "ResourceClaim"]
    assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.nvidia.com"


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({"back_end": "nvlm"}, "unsupported-value", "back_end"),
        ({"fleet": "hgx-h100, a100-80gb"}, "fleet-count", "fleet"),
        ({"fleet": 3}, "wrong-type", "fleet"),
        ({"back_end": "nvml", "binding_conditions": True}, "field-not-allowed", "binding_conditions"),
        ({"nvidia_driver_root": "/"}, "field-not-allowed", "nvidia_driver_root"),
        ({"driver": "d" * 64}, "invalid-name", "driver"),
        ({"object_name": "n" * 64}, "invalid-name", "object_name"),
        ({"kubelet_root": "var/lib/kubelet"}, "unsupported-value", "kubelet_root"),
        ({"cdi_folder": "/var/../etc"}, "unsupported-value", "cdi_folder"),
        ({"metrics_port": 0}, "unsupported-value", "metrics_port"),
        ({"metrics_namespaces": "monitoring"}, "wrong-type", "metrics_namespaces"),
        ({"metrics_namespaces": ["ml", "Team A"]}, "invalid-name", "metrics_namespaces[1]"),
        ({"metrics_port": 9000, "health_port": 9000}, "value-set-twice", "health_port"),
        ({"settings": {"logLevel": "debug"}}, "unknown-argument", "settings['logLevel']"),
        ({"settings": {"state_folder": "/tmp"}}, "unknown-argument", "settings['state_folder']"),
        ({"settings": {"log-format": "text"}}, "wrong-type", "settings"),
        ({"settings": {"log_level": "debug"}}, "value-set-twice", "settings['log_level']"),
        (
            {"env": {"DRA_INFRA_PLUGIN_FLEET": "l4"}},
            "value-set-twice",
            "env['DRA_INFRA_PLUGIN_FLEET']",
        ),
        ({"tolerations": [{"key": object()}]}, "wrong-type", "tolerations['key']"),
        ({"image": ""}, "wrong-type", "image"),
        ({"image": "registry.example/plugin@sha256:12ab"}, "unsupported-value", "image"),
        ({"image": f"registry.example/plugin@sha256:{'A' * 64}"}, "unsupported-value", "image"),
        ({"image": f"registry.example/plugin@sha256:{'a' * 64}@x"}, "unsupported-value", "image"),
        ({"image": "@sha256:" + "a" * 64}, "unsupported-value", "image"),
    ],
)
def test_what_is_wrong_is_told_at_its_argument(arguments: dict[str, Any], code: str, path: str):
    found = problems(lambda: dra.NodePlugin("plugin", **{"back_end": "sim", **arguments}))
    assert found == [(code, f'NodePlugin("plugin").{path}')]


@pytest.mark.parametrize(
    ("image", "told"),
    [
        ("registry.example/plugin:1.0", True),
        ("registry.example/plugin", True),
        (f"registry.example/plugin@sha256:{'0a' * 32}", False),
        (f"registry.example:5000/plugin:1.0@sha256:{'0a' * 32}", False),
        (f"registry.example/plugin@sha512:{'0a' * 64}", False),
        (IMAGE, False),
        (pulumi.Output.from_input("registry.example/plugin:1.0"), False),
    ],
)
def test_an_image_that_its_registry_can_change_is_a_warning(image: Any, told: bool):
    made = program(image=image)
    found = [(each.code, each.path, each.severity) for each in made.problems]
    assert found == ([("image-not-pinned", 'NodePlugin("plugin").image', "warning")] if told else [])
    assert any(each.manifest["kind"] == "DaemonSet" for each in made.objects)


class TestOnAPlatform:
    def test_a_warning_about_the_plugin_is_told_at_its_argument_and_stops_nothing(self):
        def body() -> None:
            plugin = {"back_end": "sim", "image": "registry.example/plugin:1.0"}
            dra.GpuPlatform("gpus", platform="kind", driver=None, node_plugin=plugin)  # type: ignore[arg-type]

        made = synth_function(body)
        found = [(each.code, each.path, each.severity) for each in made.problems]
        assert found == [("image-not-pinned", 'GpuPlatform("gpus").node_plugin.image', "warning")]
        assert any(each.manifest["kind"] == "DaemonSet" for each in made.objects)

    def test_it_stands_beside_a_chart_of_another_driver(self):
        def body() -> None:
            driver = {"gpu_resources_enabled_override": True}
            platform = dra.GpuPlatform("gpus", platform="kind", driver=driver, node_plugin="sim")  # type: ignore[arg-type]
            assert {"gpu.nvidia.com", "gpu.example.com"} <= set(platform.device_classes)

        made = synth_function(body)
        assert [str(each) for each in made.problems if each.severity == "error"] == []
        names = {
            each.manifest["metadata"]["name"] for each in made.objects if each.manifest["kind"] == "DaemonSet"
        }
        assert names == {"gpus-node-plugin"}

    @pytest.mark.parametrize(
        ("arguments", "code", "path"),
        [
            (
                {"driver": {"gpu_resources_enabled_override": True}, "node_plugin": "nvml"},
                "platform-conflict",
                "node_plugin",
            ),
            (
                {
                    "driver": {"gpu_resources_enabled_override": True},
                    "node_plugin": {"back_end": "sim", "fleet": "hgx-h100"},
                },
                "platform-conflict",
                "node_plugin",
            ),
            (
                {
                    "driver": None,
                    "example": True,
                    "node_plugin": {"back_end": "sim", "driver": "gpu.example.com"},
                },
                "platform-conflict",
                "node_plugin.driver",
            ),
            (
                {
                    "driver": None,
                    "operator": {"device_plugin": True},
                    "node_plugin": {"back_end": "nvml", "nvidia_driver_root": "/run/nvidia/driver/"},
                },
                "device-plugin-beside-dra",
                "operator.device_plugin",
            ),
            (
                {"driver": None, "operator": {"device_plugin": False}, "node_plugin": "nvml"},
                "platform-conflict",
                "node_plugin.nvidia_driver_root",
            ),
            ({"driver": None, "node_plugin": "smi"}, "unsupported-value", "node_plugin.back_end"),
            ({"driver": None, "node_plugin": 3}, "wrong-type", "node_plugin"),
            (
                {"driver": None, "node_plugin": {"back_end": "sim", "flet": "l4"}},
                "unknown-argument",
                "node_plugin.flet",
            ),
        ],
    )
    def test_what_does_not_go_together_is_told(self, arguments: dict[str, Any], code: str, path: str):
        found = problems(lambda: dra.GpuPlatform("gpus", platform="kubeadm", **arguments))
        assert found == [(code, f'GpuPlatform("gpus").{path}')]

    def test_a_driver_that_the_platform_has_elsewhere_is_told_unless_the_user_says_where(self):
        def found(node_plugin: Any) -> list[tuple[str, str]]:
            return problems(
                lambda: dra.GpuPlatform("gpus", platform="gke", driver=None, node_plugin=node_plugin)
            )

        path = 'GpuPlatform("gpus").node_plugin.nvidia_driver_root'
        assert found("nvml") == [("platform-conflict", path)]
        assert found({"back_end": "nvml", "nvidia_driver_root": "/opt/nvidia"}) == []
        assert found("sim") == []

    def test_a_namespace_that_a_chart_brings_is_made_once(self):
        def body() -> None:
            plugin = {"back_end": "sim", "namespace": "gpus"}
            dra.GpuPlatform(
                "gpus",
                platform="kind",
                driver=None,
                example={"namespace": "gpus", "driver_name": "fake.example.com"},
                node_plugin=plugin,  # type: ignore[arg-type]
            )

        made = synth_function(body)
        assert [str(each) for each in made.problems if each.severity == "error"] == []
        assert len([each for each in made.objects if each.manifest["kind"] == "Namespace"]) == 1
