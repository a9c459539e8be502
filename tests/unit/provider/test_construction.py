"""Components of other languages: the objects, names, outputs and problems that the same program in Python has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pulumi
import pytest
from pydantic.alias_generators import to_camel

import dra_infra as dra
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import is_placeholder
from dra_infra.provider.property_words import in_properties
from tests.support.components.constructing import construct, construct_all, make_in_python
from tests.support.components.family import FAMILY, make, unknown

IN_THE_SCHEMA: dict[str, Any] = {
    "target": {"kubernetes": "1.37"},
    "operator": {},
}
"""Arguments of the family that the schema writes in another way."""


@pytest.mark.parametrize("row", FAMILY)
def test_each_component_registers_what_it_does_in_python(row: str):
    made, arguments = FAMILY[row]
    inputs = {to_camel(key): IN_THE_SCHEMA.get(key, value) for key, value in arguments.items()}

    constructed = construct(made.__name__, inputs)

    in_python, problems = make_in_python(
        lambda: make(row, **({"operator": {}} if "operator" in arguments else {}))
    )
    assert (constructed.problems, problems) == ([], [])
    assert constructed.registered == in_python.registered


def class_in_python() -> None:
    dra.GpuDeviceClass(
        "it",
        select=dra.gpu.product.contains("H100")
        & (dra.gpu.memory >= "79Gi")
        & dra.cel("device.driver == 'a.b'"),
        configs=[dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))],
        driver_gates={"TimeSlicingSettings": True, "MPSSupport": True},
        labels={"team": "ml"},
    )


CLASS = {
    "match": {"memoryAtLeast": "79Gi", "product": "H100"},
    "select": "device.driver == 'a.b'",
    "configs": [{"timeSlicing": {"interval": "Long"}}],
    "driverGates": {"TimeSlicingSettings": True, "MPSSupport": True},
    "labels": {"team": "ml"},
}


def requests_in_python() -> None:
    dra.GpuClaimTemplate(
        "it",
        requests=[
            dra.DeviceRequest(
                "gpu",
                first_available=[
                    dra.Alternative("h100", device_class="h100", count=2),
                    dra.Alternative("any", device_class="gpu.nvidia.com", count="all"),
                ],
            ),
            dra.DeviceRequest(
                "nic",
                device_class="nic.example.com",
                select=dra.attribute("nic.example.com/index") == 1,
                tolerations=[dra.Toleration(key="a.b/c", effect="NoExecute", seconds=30)],
            ),
        ],
        constraints=[
            dra.MatchAttribute("resource.kubernetes.io/pcieRoot", requests=["gpu", "nic"]),
            dra.DistinctAttribute("resource.kubernetes.io/numaNode"),
        ],
        configs=[dra.OpaqueConfig(driver="nic.example.com", parameters={"mtu": 9000}, requests=["nic"])],
        namespace="ml",
        object_name="it-1",
        replace="delete-first",
    )


REQUESTS = {
    "requests": [
        {
            "name": "gpu",
            "firstAvailable": [
                {"name": "h100", "deviceClass": "h100", "count": 2},
                {"name": "any", "deviceClass": "gpu.nvidia.com", "allDevices": True},
            ],
        },
        {
            "name": "nic",
            "deviceClass": "nic.example.com",
            "match": {"attributes": {"nic.example.com/index": 1}},
            "tolerations": [{"key": "a.b/c", "effect": "NoExecute", "seconds": 30}],
        },
    ],
    "constraints": [
        {"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": ["gpu", "nic"]},
        {"distinctAttribute": "resource.kubernetes.io/numaNode"},
    ],
    "configs": [{"opaque": {"driver": "nic.example.com", "parameters": {"mtu": 9000}}, "requests": ["nic"]}],
    "namespace": "ml",
    "objectName": "it-1",
    "replace": "delete-first",
}

SAME: dict[str, tuple[Callable[[], Any], str, Any]] = {
    "a class": (class_in_python, "GpuDeviceClass", CLASS),
    "requests": (requests_in_python, "GpuClaimTemplate", REQUESTS),
    "profiles with counts": (
        lambda: dra.MigPartition("it", profiles={"1g.10gb": 2}, gpu="H100"),
        "MigPartition",
        {"profileCounts": {"1g.10gb": 2}, "gpu": "H100"},
    ),
    "profiles with names": (
        lambda: dra.MigPartition("it", profiles={"train": "3g.40gb", "infer": "1g.10gb"}, same_gpu=True),
        "MigPartition",
        {"namedProfiles": {"train": "3g.40gb", "infer": "1g.10gb"}, "sameGpu": True},
    ),
    "profiles": (
        lambda: dra.MigPartition("it", profiles=["3g.40gb", "1g.10gb"]),
        "MigPartition",
        {"profiles": ["3g.40gb", "1g.10gb"]},
    ),
    "a config of MIG devices": (
        lambda: dra.MigPartition(
            "it",
            profile="1g.10gb",
            configs=[dra.MigDeviceConfig(sharing=dra.Mps(active_thread_percentage=25), requests=["mig"])],
        ),
        "MigPartition",
        {
            "profile": "1g.10gb",
            "configs": [{"mig": {"sharing": {"mps": {"activeThreadPercentage": 25}}}, "requests": ["mig"]}],
        },
    ),
    "a shared GPU": (
        lambda: dra.SharedGpu("it", across="pods", sharing=dra.TimeSlicing(interval="Short")),
        "SharedGpu",
        {"across": "pods", "sharing": {"timeSlicing": {"interval": "Short"}}},
    ),
    "limits by device": (
        lambda: dra.SharedGpu("it", sharing=dra.Mps(per_device_pinned_memory_limit={0: "1Gi"})),
        "SharedGpu",
        {"sharing": {"mps": {"perDevicePinnedMemoryLimit": {"0": "1Gi"}}}},
    ),
    "a queue": (
        lambda: dra.KueueQueue(
            "it",
            resources={"example.com/mig-memory": "640Gi"},
            namespaces=["vision"],
            sources={
                "example.com/mig-memory": dra.CounterSource("memory", device_classes=["mig.nvidia.com"])
            },
        ),
        "KueueQueue",
        {
            "resources": {"example.com/mig-memory": "640Gi"},
            "namespaces": ["vision"],
            "sources": {
                "example.com/mig-memory": {"counter": {"name": "memory", "deviceClasses": ["mig.nvidia.com"]}}
            },
        },
    ),
    "guardrails": (
        lambda: dra.GpuGuardrails("it", classes={"vision": ["h100"]}, all_devices=False, most_devices=8),
        "GpuGuardrails",
        {"classes": {"vision": ["h100"]}, "allDevices": False, "mostDevices": 8},
    ),
    "monitoring": (
        lambda: dra.GpuMonitoring("it", thresholds={"KubeDRAPrepareSlow": 30}, namespace="monitoring"),
        "GpuMonitoring",
        {"thresholds": {"KubeDRAPrepareSlow": 30}, "namespace": "monitoring"},
    ),
    "a platform without the driver": (
        lambda: dra.GpuPlatform(
            "it", platform="kubeadm", driver=None, node_plugin={"back_end": "sim", "metrics_port": 9000}
        ),
        "GpuPlatform",
        {"platform": "kubeadm", "withoutDriver": True, "nodePlugin": {"backEnd": "sim", "metricsPort": 9000}},
    ),
    "a platform": (
        lambda: dra.GpuPlatform(
            "it", platform="aks", driver={"compute_domains": False}, operator={"version": "26.7.0"}
        ),
        "GpuPlatform",
        {"platform": "aks", "driver": {"computeDomains": False}, "operator": {"version": "26.7.0"}},
    ),
}


@pytest.mark.parametrize("case", SAME)
def test_what_the_schema_writes_in_another_way_registers_the_same(case: str):
    body, kind, inputs = SAME[case]

    constructed = construct(kind, inputs)

    in_python, problems = make_in_python(body)
    assert (constructed.problems, problems) == ([], [])
    assert constructed.registered == in_python.registered


def test_a_tenant_hands_out_templates_of_every_kind():
    inputs = {
        "quota": {"h100": 8},
        "podSecurity": {"enforce": "restricted", "enforceVersion": "v1.37"},
        "templates": {
            "trainer": {"claim": {"deviceClass": "h100", "count": 4}},
            "notebook": {"mig": {"profile": "1g.10gb"}},
            "assistant": {"shared": {"across": "containers"}},
            "board": {"nvlink": {"gpus": 4, "on": "hgx-h100"}},
        },
    }

    def in_python() -> None:
        dra.GpuTenant(
            "it",
            quota={"h100": 8},
            pod_security=dra.PodSecurity(enforce="restricted", enforce_version="v1.37"),
            templates={
                "trainer": partial(dra.GpuClaimTemplate, device_class="h100", count=4),
                "notebook": partial(dra.MigPartition, profile="1g.10gb"),
                "assistant": partial(dra.SharedGpu, across="containers"),
                "board": partial(dra.NvlinkGroup, gpus=4, on="hgx-h100"),
            },
        )

    constructed = construct("GpuTenant", inputs)

    assert constructed.registered == make_in_python(in_python)[0].registered
    assert constructed.outputs["templates"]["notebook"] == {
        "objectName": "notebook",
        "podClaim": {"name": "it-notebook", "resourceClaimTemplateName": "notebook"},
        "containerClaim": {"name": "it-notebook"},
    }


def test_outputs_are_what_pods_need():
    constructed = construct(
        "GpuClaimTemplate", {"deviceClass": "gpu.nvidia.com", "namespace": "ml"}, name="trainer"
    )

    name = constructed.outputs["objectName"]
    assert name.startswith("trainer-")
    assert constructed.outputs == {
        "objectName": name,
        "namespace": "ml",
        "podClaim": {"name": "trainer", "resourceClaimTemplateName": name},
        "containerClaim": {"name": "trainer"},
    }


def test_pods_name_a_claim_that_they_share():
    constructed = construct("GpuClaim", {"deviceClass": "gpu.nvidia.com", "objectName": "shared"})

    assert constructed.outputs["podClaim"] == {"name": "it", "resourceClaimName": "shared"}


def test_a_group_of_several_nodes_shows_what_attach_would_add():
    constructed = construct("NvlinkGroup", {"gpus": 72, "on": "gb200-nvl72"})

    outputs = constructed.outputs
    assert outputs["pods"] == 18
    assert outputs["channelPodClaim"] == {
        "name": "it-channel",
        "resourceClaimTemplateName": outputs["channelTemplate"],
    }
    assert outputs["podAffinityTerm"]["labelSelector"]["matchLabels"] == outputs["podLabels"]


def test_a_group_on_one_node_has_no_channel():
    outputs = construct("NvlinkGroup", {"gpus": 4, "on": "hgx-h100"}).outputs

    assert outputs["podLabels"] == {}
    assert (
        not {"channelTemplate", "channelPodClaim", "channelContainerClaim", "podAffinityTerm"}
        & outputs.keys()
    )


def test_classes_of_a_driver_are_outputs_by_name():
    outputs = construct("NodePlugin", {"backEnd": "sim"}).outputs

    assert outputs["deviceClasses"] == {"gpu.example.com": "gpu.example.com"}


WRONG: dict[str, tuple[Callable[[], Any], str, Any, list[str]]] = {
    "a count": (
        lambda: dra.GpuClaimTemplate("it", device_class="x", count=0),
        "GpuClaimTemplate",
        {"deviceClass": "x", "count": 0},
        ["count"],
    ),
    "an alternative's count": (
        lambda: dra.GpuClaim("it", first_available=[dra.Alternative("a", device_class="x", count=0)]),
        "GpuClaim",
        {"firstAvailable": [{"name": "a", "deviceClass": "x", "count": 0}]},
        ["firstAvailable[0].count"],
    ),
    "a selector": (
        lambda: dra.GpuDeviceClass("it", select=dra.cel("device.drivr == 'a'")),
        "GpuDeviceClass",
        {"select": "device.drivr == 'a'"},
        ["select"],
    ),
    "a name": (
        lambda: dra.GpuClaim("it", device_class="x", namespace="ML", object_name="X!"),
        "GpuClaim",
        {"deviceClass": "x", "namespace": "ML", "objectName": "X!"},
        ["namespace", "objectName"],
    ),
    "a label": (
        lambda: dra.GpuDeviceClass("it", labels={"a": "b!"}),
        "GpuDeviceClass",
        {"labels": {"a": "b!"}},
        ['labels["a"]'],
    ),
    "an interval": (
        lambda: dra.GpuDeviceClass("it", configs=[dra.GpuConfig(sharing=dra.TimeSlicing(interval="long"))]),  # type: ignore[arg-type]
        "GpuDeviceClass",
        {"configs": [{"timeSlicing": {"interval": "long"}}]},
        ["configs[0].timeSlicing.interval"],
    ),
    "a sharing of MIG devices": (
        lambda: dra.GpuDeviceClass("it", configs=[dra.MigDeviceConfig(sharing=dra.TimeSlicing())]),  # type: ignore[arg-type]
        "GpuDeviceClass",
        {"configs": [{"mig": {"sharing": {"timeSlicing": {}}}}]},
        ["configs[0].mig.sharing.timeSlicing"],
    ),
    "an attribute": (
        lambda: dra.GpuClaim("it", device_class="x", constraints=[dra.MatchAttribute("x")]),
        "GpuClaim",
        {"deviceClass": "x", "constraints": [{"matchAttribute": "x"}]},
        ["constraints[0].matchAttribute"],
    ),
    "a profile": (
        lambda: dra.MigPartition("it", profiles={"1g.11gb": 1}, gpu="H100"),
        "MigPartition",
        {"profileCounts": {"1g.11gb": 1}, "gpu": "H100"},
        ['profileCounts["1g.11gb"]'],
    ),
    "a template of a tenant": (
        lambda: dra.GpuTenant(
            "it", templates={"a": partial(dra.GpuClaimTemplate, device_class="x", count=99)}
        ),
        "GpuTenant",
        {"templates": {"a": {"claim": {"deviceClass": "x", "count": 99}}}},
        ["templates.a.claim.count"],
    ),
    "a quota": (
        lambda: dra.GpuTenant("it", quota={"h100": -1}),
        "GpuTenant",
        {"quota": {"h100": -1}},
        ['quota["h100"]'],
    ),
    "a gate": (
        lambda: dra.GpuClaim(
            "it", device_class="x", target=dra.ClusterTarget(kubernetes="1.37", gates={"Nothing": True})
        ),
        "GpuClaim",
        {"deviceClass": "x", "target": {"kubernetes": "1.37", "gates": {"Nothing": True}}},
        ['target.gates["Nothing"]'],
    ),
    "a part of a platform": (
        lambda: dra.GpuPlatform("it", platform="aks", driver={"version": "1.0", "gpus": False}),
        "GpuPlatform",
        {"platform": "aks", "driver": {"version": "1.0", "gpus": False}},
        ["driver.version"],
    ),
}
"""The same mistake in Python and in the schema, and the properties that the problems are at."""


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_is_the_problem_that_python_users_see(case: str):
    body, kind, inputs, paths = WRONG[case]
    _, in_python = make_in_python(body)

    constructed = construct(kind, inputs)

    assert [path for path, _ in constructed.problems] == paths
    assert sorted(reason for _, reason in constructed.problems) == sorted(map(reason_of, in_python))


def reason_of(problem: Problem) -> str:
    """Return what the engine shows of a problem behind its path; the hint has the words of properties."""
    return str(replace(problem, hint=in_properties(problem.hint))).removeprefix(problem.where)


MISREAD: dict[str, tuple[str, Any, list[tuple[str, str]]]] = {
    "an unknown property": ("GpuClaim", {"deviceClass": "x", "cuont": 1}, [("cuont", "unknown-argument")]),
    "an unknown field": (
        "GpuClaim",
        {"firstAvailable": [{"name": "a", "deviceClass": "x", "cuont": 1}]},
        [("firstAvailable[0].cuont", "unknown-argument")],
    ),
    "a property that is missing": ("DeviceTaint", {}, [("key", "missing-argument")]),
    "a field that is missing": (
        "GpuClaim",
        {"firstAvailable": [{"name": "a"}]},
        [("firstAvailable[0].deviceClass", "missing-argument")],
    ),
    "two forms of one argument": (
        "GpuClaim",
        {"deviceClass": "x", "count": 1, "allDevices": True},
        [("allDevices", "arguments-exclude")],
    ),
    "two of one": (
        "GpuDeviceClass",
        {"configs": [{"timeSlicing": {}, "mps": {}}]},
        [("configs[0]", "arguments-exclude")],
    ),
    "none of several": (
        "GpuDeviceClass",
        {"configs": [{"requests": ["a"]}]},
        [("configs[0]", "missing-argument")],
    ),
    "a text for an object": (
        "GpuClaim",
        {"deviceClass": "x", "configs": ["Long"]},
        [("configs[0]", "wrong-type")],
    ),
    "an amount": (
        "GpuDeviceClass",
        {"match": {"memoryAtLeast": "fourty"}},
        [("match.memoryAtLeast", "selector-invalid-value")],
    ),
    "an attribute's name": (
        "GpuDeviceClass",
        {"match": {"attributes": {"index": 1}}},
        [('match.attributes["index"]', "selector-invalid-value")],
    ),
    "a number as a selector": ("GpuDeviceClass", {"select": 4}, [("select", "wrong-type")]),
}


@pytest.mark.parametrize("case", MISREAD)
def test_what_only_the_schema_can_get_wrong_is_a_problem_at_its_property(case: str):
    kind, inputs, problems = MISREAD[case]

    assert construct(kind, inputs).codes == problems


def test_each_construct_fails_by_itself():
    made = construct_all(
        {
            "one": ("GpuClaimTemplate", {"deviceClass": "x", "count": 99}),
            "two": ("GpuClaimTemplate", {"deviceClass": "x", "namespace": "ML"}),
            "three": ("GpuClaimTemplate", {"deviceClass": "x"}),
        }
    )

    assert made["one"].codes == [("count", "too-many-devices")]
    assert made["two"].codes == [("namespace", "invalid-name")]
    assert made["three"].problems == []
    assert made["three"].outputs["podClaim"]["name"] == "three"


def output(value: Any, *, secret: bool = False, urn: str = "") -> pulumi.Output[Any]:
    """Return an Output as the engine sends it."""

    async def settled(known: Any) -> Any:
        return known

    resources = {pulumi.resource.DependencyResource(urn)} if urn else set()
    return pulumi.Output(resources, settled(value), settled(True), settled(secret))


URN = "urn:pulumi:test::test::dra-infra:index:GpuDeviceClass::h100"


def test_a_class_of_the_same_program_is_known_and_made_before_the_claim():
    constructed = construct("GpuClaimTemplate", lambda: {"deviceClass": output("h100", urn=URN), "count": 2})

    plain = construct("GpuClaimTemplate", {"deviceClass": "h100", "count": 2})
    assert constructed.registered == plain.registered
    assert URN in constructed.dependencies["kubernetes:resource.k8s.io/v1:ResourceClaimTemplate"]


def test_a_count_that_is_an_output_is_a_count():
    constructed = construct("GpuClaimTemplate", lambda: {"deviceClass": "h100", "count": output(2.0)})

    assert (
        constructed.registered
        == construct("GpuClaimTemplate", {"deviceClass": "h100", "count": 2}).registered
    )


def test_a_count_that_depends_on_a_resource_is_judged_too():
    constructed = construct(
        "GpuClaimTemplate", lambda: {"deviceClass": "h100", "count": output(99.0, urn=URN)}
    )

    assert constructed.codes == [("count", "too-many-devices")]


def test_an_object_that_is_an_output_is_read():
    constructed = construct("GpuDeviceClass", lambda: {"match": output({"product": "H100"}, urn=URN)})

    assert constructed.registered == construct("GpuDeviceClass", {"match": {"product": "H100"}}).registered


def test_a_value_that_the_engine_does_not_know_is_an_output():
    made = construct("GpuClaimTemplate", {"deviceClass": "x", "namespace": pulumi.output.UNKNOWN})

    assert made.problems == []
    assert is_placeholder(made.outputs["namespace"])


def test_a_warning_is_at_its_property():
    made = construct("GpuPlatform", {"platform": "aks", "operator": {}})

    assert made.problems == []
    assert [text.partition(":")[0] for text in made.logged] == ["operator.evictionLabel"]


def test_an_unknown_source_of_a_queue_is_refused():
    made = construct("KueueQueue", lambda: {"namespaces": ["ml"], "quota": {"x": 1}, "sources": unknown()})

    assert made.codes == [("sources", "wrong-type")]


def test_a_class_that_is_not_known_in_a_preview_is_made_with_what_is_known():
    constructed = construct("GpuClaimTemplate", lambda: {"deviceClass": unknown()})

    assert constructed.problems == []
    assert constructed.outputs["podClaim"]["resourceClaimTemplateName"].startswith("[unknown]")


def test_what_decides_the_structure_has_to_be_known():
    constructed = construct("MigPartition", lambda: {"profile": unknown()})

    assert constructed.codes == [("profile", "wrong-type")]
    assert "give a plain value" in constructed.problems[0][1]


def test_a_secret_that_is_refused_is_not_shown():
    constructed = construct(
        "GpuDeviceClass", lambda: {"labels": {"owner": output("planted secret!", secret=True)}}
    )

    assert constructed.codes == [('labels["owner"]', "invalid-label")]
    assert "planted" not in str(constructed.problems)


def test_another_type_is_no_component_of_the_package():
    with pytest.raises(LookupError, match="dra-infra:index:Nothing is no component"):
        construct("Nothing", {})
