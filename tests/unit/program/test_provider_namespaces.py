"""Objects without a namespace go into that of their provider, where their kind has namespaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import simulate
from dra_infra.catalog import load_fleet
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import UNKNOWN

FLEET = "hgx-h100 x 1"
SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
ML = {"kubernetes:namespace": "ml"}


def provider(namespace: Any = "ml") -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=k8s.Provider("ml", namespace=namespace))


def pod(namespace: Any = None, opts: Any = None) -> None:
    metadata = {"name": "p"} | ({} if namespace is None else {"namespace": namespace})
    k8s.core.v1.Pod("p", metadata=metadata, spec=SPEC, opts=opts)


def custom(kind: str, api_version: str = "example.com/v1") -> None:
    k8s.apiextensions.CustomResource("c", api_version=api_version, kind=kind, metadata={"name": "c"})


def define(kind: str, scope: str) -> None:
    names = {"kind": kind, "plural": f"{kind.lower()}s"}
    spec = {"group": "example.com", "names": names, "scope": scope, "versions": []}
    k8s.apiextensions.v1.CustomResourceDefinition("d", metadata={"name": "d"}, spec=spec)


def namespaces(body: Callable[[], Any], config: Mapping[str, str] | None = None) -> dict[str, str]:
    program = synth_function(lambda: body() and None, config=config)
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return {each.ref.kind: each.ref.namespace for each in program.objects}


@pytest.mark.parametrize(
    ("body", "config", "namespace"),
    [
        pytest.param(lambda: pod(opts=provider()), {}, "ml", id="the provider's"),
        pytest.param(pod, ML, "ml", id="the setting of the default provider"),
        pytest.param(lambda: pod(opts=provider("own")), ML, "own", id="the provider's and not the setting"),
        pytest.param(lambda: pod(opts=provider(None)), ML, "", id="a provider does not read the setting"),
        pytest.param(lambda: pod("own", provider()), {}, "own", id="the object's own"),
        pytest.param(lambda: pod("", provider()), {}, "ml", id="an empty one is none"),
        pytest.param(pod, {}, "", id="none"),
        pytest.param(
            lambda: k8s.core.v1.Pod("p", spec=SPEC, opts=provider()), {}, "ml", id="without metadata"
        ),
    ],
)
def test_a_pod_goes_into(body: Callable[[], Any], config: Mapping[str, str], namespace: str):
    assert namespaces(body, config)["Pod"] == namespace


@pytest.mark.parametrize(
    ("body", "namespace"),
    [
        pytest.param(lambda: k8s.core.v1.Namespace("n"), "", id="Namespace"),
        pytest.param(lambda: k8s.resource.v1.DeviceClass("c", spec={}), "", id="DeviceClass"),
        pytest.param(lambda: custom("ClusterQueue", "kueue.x-k8s.io/v1beta1"), "", id="ClusterQueue"),
        pytest.param(lambda: custom("LocalQueue", "kueue.x-k8s.io/v1beta1"), "ml", id="LocalQueue"),
        pytest.param(lambda: custom("Thing"), "ml", id="a kind of unknown scope"),
        pytest.param(lambda: (define("Thing", "Cluster"), custom("Thing")), "", id="a kind defined without"),
        pytest.param(
            lambda: (define("Thing", "Namespaced"), custom("Thing")), "ml", id="a kind defined with"
        ),
    ],
)
def test_the_scope_of_a_kind_decides(body: Callable[[], Any], namespace: str):
    found = namespaces(body, ML)
    found.pop("CustomResourceDefinition", None)
    assert [*found.values()] == [namespace]


def test_a_namespace_that_is_known_later_is_unknown_and_named():
    def body() -> None:
        namespace = pulumi.StackReference("acme/platform/prod").get_output("namespace")
        pod(opts=provider(namespace))

    assert namespaces(body) == {"Pod": UNKNOWN}


def test_a_quota_that_may_be_of_a_namespace_that_is_known_later_is_named():
    def body() -> None:
        hard = {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "0"}
        k8s.core.v1.ResourceQuota("q", metadata={"name": "q", "namespace": "ml"}, spec={"hard": hard})
        namespace = pulumi.StackReference("acme/platform/prod").get_output("namespace")
        claim = dra.GpuClaimTemplate("t", device_class="gpu.nvidia.com", namespace=namespace)
        k8s.core.v1.Pod("p", metadata={"name": "p", "namespace": namespace}, spec=claim.attach(SPEC))

    placement = simulate(Scene.of(synth_function(body), fleet=load_fleet(FLEET))).placement
    assert placement is not None
    assert "Pod [unknown]/p: its namespace is only known after `pulumi up`" in "\n".join(placement.notes)


def test_a_release_goes_there_too():
    def body() -> None:
        k8s.helm.v3.Release("a", chart="charts/a")
        k8s.helm.v3.Release("b", chart="charts/b", namespace="own")

    releases = synth_function(body, config=ML).releases
    assert {each.urn.rpartition("::")[2]: each.namespace for each in releases} == {"a": "ml", "b": "own"}


def test_components_go_there_too_and_pods_find_them():
    def body() -> None:
        opts = provider()
        claim = dra.GpuClaimTemplate(
            "t", device_class="gpu.nvidia.com", count=8, opts=pulumi.ResourceOptions(provider=opts.provider)
        )
        k8s.core.v1.Pod("p", metadata={"name": "p", "namespace": "ml"}, spec=claim.attach(SPEC))
        k8s.core.v1.Pod("q", metadata={"name": "q", "namespace": claim.namespace}, spec=claim.attach(SPEC))

    program = dra.testing.synth(body)
    assert program.problems == ()
    assert program.fits(FLEET, "p")
    assert program.object("Pod", "q", "ml")


def test_a_quota_of_the_providers_namespace_counts():
    def body() -> None:
        hard = {"gpu.nvidia.com.deviceclass.resource.k8s.io/devices": "1"}
        k8s.core.v1.ResourceQuota("q", metadata={"name": "q", "namespace": "ml"}, spec={"hard": hard})
        claim = dra.GpuClaimTemplate("t", device_class="gpu.nvidia.com", count=2)
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec=claim.attach(SPEC))

    program = dra.testing.synth(body, config=ML)
    assert "ResourceQuota ml/q allows 1" in repr(program.fits(FLEET, "p"))


def test_files_of_a_provider_whose_namespace_is_known_later_are_not_expanded():
    def body() -> None:
        namespace = pulumi.StackReference("acme/platform/prod").get_output("namespace")
        text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
        options = pulumi.ResourceOptions(providers=[k8s.Provider("ml", namespace=namespace)])
        k8s.yaml.v2.ConfigGroup("g", yaml=text, opts=options)

    program = synth_function(body)
    assert program.objects == ()
    assert [each.reason for each in program.not_seen if "yaml" in each.what] == [
        "its provider makes the objects: the namespace of its provider is secret or only known later"
    ]
