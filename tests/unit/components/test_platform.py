from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.catalog import load_fleet
from dra_infra.catalog.platforms import chart_rules
from dra_infra.components.arguments import DraDriverPart, ExampleDriverPart, GpuOperatorPart
from dra_infra.components.report import judged_at_end
from dra_infra.errors import ProgramError
from dra_infra.program.monitor import Monitor
from dra_infra.program.surroundings import fields_to_plain
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import UNKNOWN, Program
from dra_infra.specs.platform.values import DRIVER_EXTRA, OPERATOR_EXTRA, SHARED

RELEASE, NAMESPACE = "kubernetes:helm.sh/v3:Release", "kubernetes:core/v1:Namespace"
DEFINITION = "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition"
LABEL = "nvidia.com/dra-kubelet-plugin"


class Registered:
    """What a program asked the engine for, by type and name."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], Any] = {}

    def inputs(self, type_: str, name: str) -> dict[str, Any]:
        return fields_to_plain(self.requests[type_, name].object)

    def dependencies(self, type_: str, name: str) -> set[str]:
        """Types and names of what it waits for."""
        return {urn.rpartition("$")[2] for urn in self.requests[type_, name].dependencies}

    def names(self, type_: str) -> set[str]:
        return {name for each, name in self.requests if each == type_}


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Registered:
    seen = Registered()
    register = Monitor.RegisterResource

    def note(self: Monitor, request: Any) -> Any:
        seen.requests[request.type, request.name] = request
        return register(self, request)

    monkeypatch.setattr(Monitor, "RegisterResource", note)
    return seen


def run(body: Any, **config: str) -> Program:
    return synth_function(
        body, config={"dra-infra:kubernetes": "1.36"} | {f"dra-infra:{k}": v for k, v in config.items()}
    )


def codes(program: Program) -> dict[str, tuple[str, str]]:
    return {each.path: (each.code, each.severity) for each in program.problems}


def write_crd(folder: Path, *names: str) -> str:
    folder.mkdir(exist_ok=True)
    for name in names:
        text = f"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: {name}\n"
        (folder / f"{name}.yaml").write_text(text)
    return str(folder)


def test_a_release_is_registered_as_the_vendors_class_registers_it(registered: Registered):
    def body() -> None:
        dra.DraDriver(
            "ours",
            gpu_resources_enabled_override=True,
            version="25.8.1",
            timeout=60,
            atomic=True,
            skip_await=True,
        )
        k8s.helm.v3.Release(
            "theirs",
            chart="nvidia-dra-driver-gpu",
            repository_opts={"repo": "https://helm.ngc.nvidia.com/nvidia"},
            version="25.8.1",
            name="ours",
            namespace="nvidia-dra-driver-gpu",
            create_namespace=False,
            values={"gpuResourcesEnabledOverride": True},
            timeout=60,
            atomic=True,
            skip_await=True,
        )

    assert codes(run(body)) == {}
    assert registered.inputs(RELEASE, "ours") == registered.inputs(RELEASE, "theirs")
    ours, theirs = (registered.requests[RELEASE, name] for name in ("ours", "theirs"))
    assert (ours.version, ours.custom) == (theirs.version, theirs.custom)


def test_the_namespace_is_made_first_and_lets_privileged_pods_in(registered: Registered):
    def body() -> None:
        dra.GpuOperator("op", namespace_labels={"team": "gpu"})
        k8s.core.v1.Namespace("theirs", metadata={"name": "x"})
        dra.ExampleDriver("ex", create_namespace=False)

    program = run(body)
    assert codes(program) == {}
    assert registered.names(NAMESPACE) == {"op", "theirs"}
    metadata = registered.inputs(NAMESPACE, "op")["metadata"]
    assert metadata["name"] == "gpu-operator"
    assert metadata["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert metadata["labels"]["team"] == "gpu"
    assert registered.dependencies(RELEASE, "op") == {f"{NAMESPACE}::op"}
    assert registered.inputs(RELEASE, "op")["version"] == "v26.7.0"


def test_the_version_is_that_of_the_stack_where_none_is_given(registered: Registered):
    run(lambda: dra.DraDriver("dra", gpu_resources_enabled_override=True), driver="25.8")
    assert registered.inputs(RELEASE, "dra")["version"] == "25.8.1"


def test_crds_go_before_the_chart_and_stay_when_it_goes(registered: Registered, tmp_path: Path):
    crds = write_crd(tmp_path / "crds", "computedomains.resource.nvidia.com")
    run(lambda: dra.DraDriver("dra", gpu_resources_enabled_override=True, crds=crds))
    (name,) = registered.names(DEFINITION)
    assert name == "dra-computedomains.resource.nvidia.com"
    assert f"{DEFINITION}::{name}" in registered.dependencies(RELEASE, "dra")
    assert registered.inputs(RELEASE, "dra")["skipCrds"] is True
    assert registered.requests[DEFINITION, name].retainOnDelete is True
    # Helm may have made it before an import; its fields are taken over then.
    annotations = registered.inputs(DEFINITION, name)["metadata"]["annotations"]
    assert annotations == {"pulumi.com/patchForce": "true"}


def test_crds_that_are_not_kept_go_with_the_program(registered: Registered, tmp_path: Path):
    crds = write_crd(tmp_path / "crds", "a.nvidia.com")
    run(lambda: dra.DraDriver("dra", gpu_resources_enabled_override=True, crds=crds, keep_crds=False))
    assert registered.requests[DEFINITION, "dra-a.nvidia.com"].retainOnDelete is False


def test_crds_at_an_address_are_left_to_the_provider(registered: Registered):
    run(
        lambda: dra.DraDriver(
            "dra", gpu_resources_enabled_override=True, crds="https://example.com/crds.yaml"
        )
    )
    assert (
        registered.inputs("kubernetes:yaml/v2:ConfigFile", "dra-crds-0")["file"]
        == "https://example.com/crds.yaml"
    )
    assert registered.inputs(RELEASE, "dra")["skipCrds"] is True


def test_crds_that_are_not_there_or_something_else_are_told(tmp_path: Path):
    (tmp_path / "job.yaml").write_text("apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\n")
    (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
    (tmp_path / "empty").mkdir()

    def body() -> None:
        dra.GpuOperator("a", crds="no-such-folder")
        dra.GpuOperator("b", crds=str(tmp_path / "job.yaml"))
        dra.GpuOperator("c", crds=[str(tmp_path / "latin.yaml")])
        dra.GpuOperator("d", crds=str(tmp_path / "empty"))

    assert {path: code for path, (code, _) in codes(run(body)).items()} == {
        'GpuOperator("a").crds': "file-unreadable",
        'GpuOperator("b").crds': "not-a-crd",
        'GpuOperator("c").crds': "not-utf-8",
        'GpuOperator("d").crds': "file-unreadable",
    }


def test_what_is_wrong_is_told_at_the_argument_and_nothing_is_made(registered: Registered):
    def body() -> None:
        dra.DraDriver("dra", gatez={})  # type: ignore[call-arg]
        dra.ExampleDriver("ex", profile="gpus")  # type: ignore[typeddict-item]
        dra.GpuPlatform("p", platform="akz", operator={"device_plugin": True})  # type: ignore[arg-type]

    assert {path: code for path, (code, severity) in codes(run(body)).items() if severity == "error"} == {
        'DraDriver("dra").gatez': "unknown-argument",
        'DraDriver("dra").gpu_resources_enabled_override': "gpu-resources-consent",
        'ExampleDriver("ex").profile': "unsupported-value",
        'GpuPlatform("p").platform': "unsupported-value",
        'GpuPlatform("p").operator.device_plugin': "device-plugin-beside-dra",
    }
    assert registered.names(RELEASE) == set()
    assert registered.names(NAMESPACE) == set()


def test_warnings_stop_nothing(registered: Registered):
    program = run(lambda: dra.GpuOperator("op", version="26.3.0"))
    assert codes(program) == {'GpuOperator("op").version': ("values-not-known", "warning")}
    assert registered.names(RELEASE) == {"op"}


def test_a_driver_beside_an_operator_follows_it_and_is_installed_after_it(registered: Registered):
    def body() -> None:
        operator = dra.GpuOperator("op", device_plugin=False, eviction_label=LABEL)
        dra.DraDriver("dra", operator=operator)

    assert codes(run(body)) == {}
    assert f"{RELEASE}::op" in registered.dependencies(RELEASE, "dra")
    assert registered.inputs(RELEASE, "dra")["values"] == {
        "gpuResourcesEnabledOverride": True,
        "nvidiaDriverRoot": "/run/nvidia/driver",
        "kubeletPlugin": {"nodeSelector": {LABEL: "true"}},
    }


def test_a_driver_beside_an_operator_is_checked_with_it():
    def body() -> None:
        operator = dra.GpuOperator("op", eviction_label=LABEL)
        dra.DraDriver("dra", operator=operator, nvidia_driver_root="/")

    assert codes(run(body)) == {
        'DraDriver("dra").operator.device_plugin': ("device-plugin-beside-dra", "error"),
        'DraDriver("dra").nvidia_driver_root': ("platform-conflict", "error"),
    }


def test_an_operator_that_is_wrong_makes_no_second_problem_of_its_driver():
    def body() -> None:
        dra.DraDriver("a", operator=dra.GpuOperator("op", mig_strategy="mixd"))  # type: ignore[typeddict-item]
        dra.DraDriver("b", operator="op", gpu_resources_enabled_override=True)  # type: ignore[arg-type]

    assert codes(run(body)) == {
        'GpuOperator("op").mig_strategy': ("unsupported-value", "error"),
        'DraDriver("b").operator': ("wrong-type", "error"),
    }


def test_where_nobody_judges_at_the_end_warnings_are_logged(monkeypatch: pytest.MonkeyPatch):
    logged: list[str] = []
    monkeypatch.setattr(pulumi.log, "warn", lambda text, _resource=None: logged.append(text))

    def body() -> None:
        judged_at_end.set(False)
        dra.GpuOperator("op", version="26.3.0")

    assert codes(run(body)) == {}
    (text,) = logged
    assert "values-not-known" in text


def test_leaves_may_be_outputs(registered: Registered):
    def body() -> None:
        stack = pulumi.StackReference("acme/network/prod")
        dra.DraDriver(
            "dra",
            gpu_resources_enabled_override=True,
            namespace=stack.get_output("namespace"),
            nvidia_driver_root=pulumi.Output.from_input("/opt/nvidia"),
            values={"controller": {"podAnnotations": {"a": stack.get_output("a")}}},
        )

    assert codes(run(body)) == {}
    inputs = registered.inputs(RELEASE, "dra")
    assert inputs["namespace"] == UNKNOWN
    assert inputs["values"]["nvidiaDriverRoot"] == "/opt/nvidia"
    assert inputs["values"]["controller"] == {"podAnnotations": {"a": UNKNOWN}}


def test_what_decides_is_plain():
    def body() -> None:
        gpus: Any = pulumi.Config("dra-infra").require("kubernetes")
        dra.DraDriver("no", gpu_resources_enabled_override=True, gpus=pulumi.Output.from_input(gpus))

    assert codes(run(body)) == {'DraDriver("no").gpus': ("wrong-type", "error")}


def test_a_null_reaches_helm(registered: Registered):
    values = {"controller": {"affinity": None}}
    run(lambda: dra.DraDriver("dra", gpu_resources_enabled_override=True, values=values))
    request = registered.requests[RELEASE, "dra"]
    assert "allowNullValues" not in request.object.fields
    assert list(request.ignoreChanges) == ["allowNullValues"]
    sent = request.object.fields["values"].struct_value
    assert sent.fields["controller"].struct_value.fields["affinity"].WhichOneof("kind") == "null_value"


def test_the_walk_through_of_aks(registered: Registered):
    def body() -> None:
        platform = dra.GpuPlatform(
            "gpus",
            platform="aks",
            operator={
                "version": "25.10.1",
                "toolkit_env": [{"name": "A", "value": "false"}],
                "eviction_label": LABEL,
            },
            driver={"version": "25.8.1", "compute_domains": False},
            gpu_pools={"gpu": {LABEL: "true"}},
        )
        assert set(platform.device_classes) == {"gpu.nvidia.com", "mig.nvidia.com"}
        assert platform.installed["driver"].line == "25.8"
        claim = dra.GpuClaim("shared", device_class=platform.device_classes["gpu.nvidia.com"], namespace="ml")
        assert dra.testing.object_name(claim).startswith("shared-")

    # Of 25.10 no value lets DCGM's exporter read slices; for who knows that, it is no news.
    assert codes(run(body)) == {'GpuPlatform("gpus").operator.version': ("version-matrix", "warning")}
    operator = registered.inputs(RELEASE, "gpus-operator")["values"]
    assert operator["devicePlugin"] == {"enabled": False}
    driver = registered.inputs(RELEASE, "gpus-driver")["values"]
    assert driver["resources"] == {"computeDomains": {"enabled": False}}
    assert driver["nvidiaDriverRoot"] == "/run/nvidia/driver"
    required = driver["controller"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert required["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["system"]
    assert f"{RELEASE}::gpus-operator" in registered.dependencies(RELEASE, "gpus-driver")


def test_the_misspelt_key_of_the_walk_through_is_named():
    values = {"resources-computeDomains": {"enabled": False}}
    program = run(
        lambda: dra.GpuPlatform(
            "gpus",
            platform="aks",
            operator={"eviction_label": LABEL},
            driver={"version": "25.8.1", "values": values},
        )
    )
    (problem,) = program.problems
    assert problem.path == 'GpuPlatform("gpus").driver.values.resources-computeDomains'
    assert problem.code == "unknown-chart-value"
    assert "resources.computeDomains" in problem.hint


def test_crds_of_both_parts_go_before_every_release_and_once(registered: Registered, tmp_path: Path):
    shared, own = "computedomains.resource.nvidia.com", "clusterpolicies.nvidia.com"
    theirs = write_crd(tmp_path / "operator", shared, own)
    ours = write_crd(tmp_path / "driver", shared)
    run(
        lambda: dra.GpuPlatform(
            "p",
            platform="kubeadm",
            operator={"crds": theirs, "eviction_label": LABEL},
            driver={"crds": ours},
        )
    )
    assert registered.names(DEFINITION) == {f"p-operator-{own}", f"p-driver-{shared}"}
    for part in ("operator", "driver"):
        assert {
            f"{DEFINITION}::p-operator-{own}",
            f"{DEFINITION}::p-driver-{shared}",
        } <= registered.dependencies(RELEASE, f"p-{part}")
    assert registered.inputs(RELEASE, "p-operator")["values"]["operator"] == {"upgradeCRD": False}


def test_the_example_driver_alone_makes_a_platform(registered: Registered):
    run(lambda: dra.GpuPlatform("p", platform="kind", driver=None, example={"devices_per_node": 2}))
    assert registered.names(RELEASE) == {"p-example"}


BINDING = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"


def test_on_openshift_charts_that_bind_no_account_have_theirs_bound_before_their_pods(registered: Registered):
    old = {"version": "25.8.0", "gpu_resources_enabled_override": True}

    def body() -> None:
        space = pulumi.Output.from_input("examples")
        dra.GpuPlatform("p", platform="openshift", driver=old, example={"namespace": space})

    run(body)
    assert registered.names(BINDING) == {"p-driver-scc", "p-example-scc"}
    binding = registered.inputs(BINDING, "p-example-scc")
    assert binding["roleRef"]["name"] == "system:openshift:scc:privileged"
    assert binding["metadata"]["namespace"] == "examples"
    (subject,) = binding["subjects"]
    assert (subject["kind"], subject["name"]) == ("Group", "system:serviceaccounts:examples")
    assert f"{BINDING}::p-driver-scc" in registered.dependencies(RELEASE, "p-driver")
    assert f"{NAMESPACE}::p-driver" in registered.dependencies(BINDING, "p-driver-scc")


@pytest.mark.parametrize(
    ("more", "path", "severity"),
    [
        ({"namespace": "default", "allow_default_namespace": True}, "example.namespace", "error"),
        ({"namespace": "kube-system"}, "example.namespace", "error"),
        ({"namespace": "gpus", "create_namespace": False}, "example.create_namespace", "warning"),
    ],
)
def test_on_openshift_accounts_of_others_are_not_made_privileged_in_silence(
    more: dict[str, Any], path: str, severity: str
):
    def found(**arguments: Any) -> list[tuple[str, str, str]]:
        def body() -> None:
            dra.GpuPlatform("p", **{"platform": "openshift", "driver": None, "example": more, **arguments})

        problems = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
        return [(each.code, each.path, each.severity) for each in problems]

    assert found() == [("namespace-refused", f'GpuPlatform("p").{path}', severity)]
    assert found(platform="kind") == []


def test_on_openshift_a_namespace_that_another_part_makes_is_the_platforms_own():
    charts = {
        "driver": {"version": "25.8.0", "gpu_resources_enabled_override": True, "namespace": "gpus"},
        "example": {"namespace": "gpus", "create_namespace": False},
    }
    program = synth_function(lambda: dra.GpuPlatform("p", platform="openshift", **charts))
    assert [each for each in program.problems if each.code == "namespace-refused"] == []


def test_on_openshift_a_chart_that_binds_its_accounts_is_left_alone_and_the_plugin_has_its_own(
    registered: Registered,
):
    new = {"version": "0.4.1", "gpu_resources_enabled_override": True}
    plugin = {"back_end": "sim", "driver": "sim.example.com"}
    run(lambda: dra.GpuPlatform("p", platform="openshift", driver=new, node_plugin=plugin))
    assert registered.names(BINDING) == {"p-node-plugin"}
    run(lambda: dra.GpuPlatform("q", platform="kind", driver=None, node_plugin=plugin, example=True))
    assert registered.names(BINDING) == {"p-node-plugin"}


def test_options_of_pulumi_pass_through(registered: Registered):
    def body() -> None:
        provider = k8s.Provider("cluster", kubeconfig="{}")
        parent = pulumi.ComponentResource("test:index:Parent", "parent")
        dra.GpuPlatform(
            "p",
            platform="kind",
            driver=None,
            example=True,
            opts=pulumi.ResourceOptions(
                parent=parent, providers=[provider], aliases=[pulumi.Alias(name="old")]
            ),
        )

    run(body)
    release = registered.requests[RELEASE, "p-example"]
    assert "::cluster" in release.provider
    assert release.parent.endswith("Parent$dra-infra:index:GpuPlatform::p")
    assert [each.spec.name for each in registered.requests["dra-infra:index:GpuPlatform", "p"].aliases] == [
        "old"
    ]


def test_the_target_of_the_parent_counts():
    def body() -> None:
        target = dra.ClusterTarget(kubernetes="1.35")
        gates = {"DynamicMIG": True}
        dra.DraDriver("dra", gpu_resources_enabled_override=True, gates=gates, target=target)

    assert codes(run(body)) == {'DraDriver("dra").gates.DynamicMIG': ("needs-newer-kubernetes", "error")}


def test_the_arguments_of_components_are_those_of_the_tables():
    driver = {*chart_rules("NVIDIA DRA driver").arguments, *SHARED, *DRIVER_EXTRA}
    assert set(DraDriverPart.__annotations__) == driver
    operator = {*chart_rules("GPU Operator").arguments, *SHARED, *OPERATOR_EXTRA}
    assert set(GpuOperatorPart.__annotations__) == operator
    assert set(ExampleDriverPart.__annotations__) == {*chart_rules("DRA example driver").arguments, *SHARED}


@pytest.mark.parametrize("component", [dra.DraDriver, dra.GpuOperator, dra.ExampleDriver])
def test_every_argument_is_described(component: Any):
    own = {"DraDriver": DraDriverPart, "GpuOperator": GpuOperatorPart, "ExampleDriver": ExampleDriverPart}[
        component.__name__
    ]
    shared = set() if component is dra.DraDriver else set(SHARED) - {"version"}
    described = {line.strip().partition(":")[0] for line in component.__doc__.splitlines()}
    assert set(own.__annotations__) - shared <= described


def test_of_a_platform_with_problems_only_those_are_told():
    def body() -> None:
        wrong = {"values": {"resources-computeDomains": {"enabled": False}}}
        platform = dra.GpuPlatform("p", platform="aks", operator=True, driver=wrong)
        driver = dra.DraDriver("d", version="0.4.1")
        for index, each in enumerate((platform, driver)):
            dra.GpuClaim(f"claim-{index}", device_class=each.device_classes["gpu.nvidia.com"])

    errors = {path: code for path, (code, severity) in codes(run(body)).items() if severity == "error"}
    assert errors == {
        'GpuPlatform("p").driver.values.resources-computeDomains': "unknown-chart-value",
        'DraDriver("d").gpu_resources_enabled_override': "gpu-resources-consent",
    }


def test_a_class_that_nothing_installs_is_told_with_those_that_are():
    def body() -> None:
        platform = dra.GpuPlatform("p", platform="kind", driver=None, example=True)
        dra.GpuClaim("claim", device_class=platform.device_classes["gpu.nvidia.com"])

    with pytest.raises(ProgramError) as failure:
        run(body)

    (problem,) = failure.value.problems
    assert problem.code == "program-raised"
    assert "gpu.nvidia.com is not installed; the classes are gpu.example.com" in problem.message


def test_pools_may_be_the_nodes_of_a_cluster_that_was_printed(tmp_path: Path):
    room = {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": room}
        for name, labels in (("old", {"kubernetes.io/os": "linux"}), ("new", {LABEL: "true"}))
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))

    def body() -> None:
        pools = {each.name: each.labels for each in load_fleet(str(file)).nodes}
        operator = {"version": "26.7.0", "eviction_label": LABEL}
        dra.GpuPlatform("p", platform="aks", operator=operator, driver="0.4.1", gpu_pools=pools)

    assert codes(run(body)) == {'GpuPlatform("p").gpu_pools.old': ("node-labels-missing", "warning")}
