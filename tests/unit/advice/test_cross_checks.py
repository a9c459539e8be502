"""Checks of objects against each other that the API server leaves out: pods and claims, rules and drivers, queues and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml

from dra_infra.advice.objects import validate
from dra_infra.errors import Problem
from dra_infra.target import ClusterTarget

API = "resource.k8s.io/v1"
EXPRESSION = "spec.devices.requests[0].exactly.selectors[0].cel.expression"


def found(*objects: Mapping[str, Any], minor: str = "1.37", **target: Any) -> dict[str, list[Problem]]:
    """The problems of objects by code."""
    told: dict[str, list[Problem]] = {}
    for each in validate(objects, ClusterTarget(kubernetes=minor, **target)):
        told.setdefault(each.code, []).append(each)
    return told


def a_claim(
    *names: str, kind: str = "ResourceClaim", of: str = "gpu.nvidia.com", version: str = "v1", **exactly: Any
) -> dict[str, Any]:
    """Claim or template ml/gpus with a request for each name."""
    inner = {"deviceClassName": of, **exactly}
    requests = [
        {"name": each, **(inner if version == "v1beta1" else {"exactly": inner})}
        for each in names or ("gpu",)
    ]
    spec: dict[str, Any] = {"devices": {"requests": requests}}
    if kind == "ResourceClaimTemplate":
        spec = {"spec": spec}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "gpus", "namespace": "ml"},
        "spec": spec,
    }


def a_pod(*containers: Any, template: bool = False, init: Sequence[Any] = ()) -> dict[str, Any]:
    """Pod ml/p with an entry `g` for ml/gpus; a container is what its `resources.claims` are."""
    field = "resourceClaimTemplateName" if template else "resourceClaimName"

    def made(uses: Any, number: int) -> dict[str, Any]:
        return {"name": f"c{number}", "image": "x", **({"resources": {"claims": uses}} if uses else {})}

    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {
            "containers": [made(each, number) for number, each in enumerate(containers)],
            "initContainers": [made(each, number + 8) for number, each in enumerate(init)],
            "resourceClaims": [{"name": "g", field: "gpus"}],
        },
    }


def in_kind(kind: str, pod: Mapping[str, Any]) -> dict[str, Any]:
    """The pod as a workload makes it."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]}
    spec: dict[str, Any] = {"template": template}
    if kind == "CronJob":
        spec = {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}
    group = "apps/v1" if kind in ("Deployment", "StatefulSet", "DaemonSet") else "batch/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "w", "namespace": "ml"}, "spec": spec}


@pytest.mark.parametrize(
    ("pod", "unused"),
    [
        (a_pod(()), True),
        (a_pod((), ()), True),
        (a_pod([{"name": "g"}]), False),
        (a_pod((), [{"name": "g", "request": "gpu"}]), False),
        (a_pod((), init=[[{"name": "g"}]]), False),
    ],
)
def test_a_claim_that_no_container_uses_is_told(pod: dict[str, Any], unused: bool):
    told = found(a_claim(), pod).get("claim-without-container", [])
    assert [each.path for each in told] == (["Pod ml/p.spec.resourceClaims[0]"] if unused else [])
    assert all(each.severity == "warning" for each in told)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"])
def test_workloads_are_held_against_their_claims_like_pods(kind: str):
    unused = in_kind(kind, a_pod((), template=True))
    wrong = in_kind(kind, a_pod([{"name": "g", "request": "none"}], template=True))
    template = a_claim(kind="ResourceClaimTemplate")
    assert "claim-without-container" in found(template, unused)
    assert "unknown-request" in found(template, wrong)


def test_a_network_device_is_for_the_whole_pod():
    dranet = {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": "nic"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]},
    }
    assert "claim-without-container" not in found(dranet, a_claim(of="nic"), a_pod(()))
    assert "claim-without-container" in found(dranet, a_claim(of="gpu.nvidia.com"), a_pod(()))


@pytest.mark.parametrize(
    ("requests", "named", "hint"),
    [
        (("gpu",), "gpus", "write request: gpu, or"),
        (("trainer", "helper"), "trainr", "write request: trainer, or"),
        (("trainer", "helper"), "xyz", "the claim has helper and trainer"),
        (("gpu",), "gpu", ""),
        (("gpu",), "", ""),
    ],
)
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_request_that_the_claim_lacks_is_told(
    requests: tuple[str, ...], named: str, hint: str, kind: str, version: str
):
    use = {"name": "g", **({"request": named} if named else {})}
    pod = a_pod([use], template=kind == "ResourceClaimTemplate")
    told = found(
        a_claim(*requests, kind=kind, version=version), pod, serves=frozenset({"v1", "v1beta1"})
    ).get("unknown-request", [])
    assert [each.path for each in told] == (
        ["Pod ml/p.spec.containers[0].resources.claims[0].request"] if hint else []
    )
    assert all(each.hint.startswith(hint) and each.severity == "warning" for each in told)


def test_a_claim_that_is_not_in_the_input_has_any_request():
    assert "unknown-request" not in found(a_pod([{"name": "g", "request": "none"}]))


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize(
    ("labels", "severity"),
    [(None, "warning"), ({}, "error"), ({"resource.kubernetes.io/admin-access": "true"}, "")],
)
def test_admin_access_depends_on_a_namespace(kind: str, labels: dict[str, str] | None, severity: str):
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": labels or {}}}
    objects = [a_claim(kind=kind, adminAccess=True), *([space] if labels is not None else [])]
    told = found(*objects).get("admin-access-namespace", [])
    assert [each.severity for each in told] == ([severity] if severity else [])


def test_admin_access_behind_a_gate_that_is_off_is_cleared_anyway():
    assert "admin-access-namespace" not in found(
        a_claim(adminAccess=True), minor="1.34", gates={"DRAAdminAccess": False}
    )


def a_rule(selector: Any = None, effect: str = "NoSchedule", version: str = "v1") -> dict[str, Any]:
    """A DeviceTaintRule."""
    spec: dict[str, Any] = {"taint": {"key": "example.com/maintenance", "effect": effect}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        (None, "taint-rule-matches-nothing"),
        ({}, "taint-rule-matches-all"),
        ({"driver": "gpu.nvidia.com"}, ""),
        ({"pool": "n1"}, ""),
        ({"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0"}, ""),
    ],
)
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_rule_says_which_devices_it_is_for(selector: Any, code: str, effect: str):
    told = found(a_rule(selector, effect))
    assert list(told) == ([code] if code else [])
    if code == "taint-rule-matches-all":
        assert ("evicts every pod" in told[code][0].message) == (effect == "NoExecute")


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        ({"driver": "gpu.nvidia.com", "selectors": ["uuid"]}, ""),
        ({"driver": "gpu.nvidia.com", "selectors": ["Uuid"]}, "attribute-not-known"),
        ({"deviceClassName": "gpu.nvidia.com", "selectors": ["Uuid"]}, "attribute-not-known"),
        ({"deviceClassName": "gpu.nvidia.co"}, "class-not-known"),
    ],
)
def test_names_in_the_selectors_of_a_rule_are_those_of_the_driver(selector: dict[str, Any], code: str):
    texts = [f'device.attributes["gpu.nvidia.com"].{each} == "x"' for each in selector.get("selectors", ())]
    if texts:
        selector = {**selector, "selectors": [{"cel": {"expression": each}} for each in texts]}
    rule = a_rule(selector, version="v1alpha3")
    told = found(rule, minor="1.34", serves=frozenset({"v1", "v1alpha3"}), gates={"DRADeviceTaints": True})
    assert code in told if code else not told


@pytest.mark.parametrize("minor", ["1.35", "1.36"])
@pytest.mark.parametrize("field", ["selectors", "deviceClassName"])
def test_a_selector_that_a_rule_no_longer_has_is_replaced_by_names(field: str, minor: str):
    value = [{"cel": {"expression": "true"}}] if field == "selectors" else "gpu.nvidia.com"
    told = found(
        a_rule({field: value}, version="v1alpha3"), minor=minor, serves=frozenset({"v1", "v1alpha3"})
    )
    assert "write driver, pool and device" in told["unknown-field"][0].hint


@pytest.mark.parametrize("version", ["81911", "1", "0", "", None])
@pytest.mark.parametrize(
    "make", [a_claim, a_rule, lambda: a_pod([{"name": "g"}])], ids=["claim", "rule", "pod"]
)
def test_an_object_that_was_exported_cannot_be_created(make: Any, version: str | None):
    manifest = make()
    if version is not None:
        manifest["metadata"]["resourceVersion"] = version
    told = found(manifest).get("exported-object", [])
    assert [each.severity for each in told] == (["error"] if version in ("81911", "1") else [])


@pytest.mark.parametrize("status", [{}, {"allocation": {"devices": {"results": []}}}])
def test_the_status_of_a_claim_is_cleared_when_it_is_created(status: dict[str, Any]):
    assert ("status-cleared" in found({**a_claim(), "status": status})) == bool(status)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("80GB", "80G"),
        ("80gb", "80G"),
        ("80GiB", "80Gi"),
        ("80 Gi", "80Gi"),
        ("80gi", "80Gi"),
        ("80MB", "80M"),
        ("80KB", "80k"),
        ("80B", "80"),
        ("eighty", "such as"),
        ("80Gi", ""),
        ("80G", ""),
        ("1.5Ti", ""),
        ("8e10", ""),
    ],
)
def test_an_amount_that_is_none_fails_on_each_device(written: str, meant: str):
    test = f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{written}")) >= 0'
    told = found(a_claim(selectors=[{"cel": {"expression": test}}])).get("selector-invalid-value", [])
    assert [each.path for each in told] == ([f"ResourceClaim ml/gpus.{EXPRESSION}"] if meant else [])
    assert all(meant in each.hint for each in told)


@pytest.mark.parametrize(
    ("written", "meant"), [("9.0", "9.0.0"), ("v9.0.0", "9.0.0"), ("nine", "such as"), ("9.0.0", "")]
)
def test_a_version_that_is_none_fails_on_each_device(written: str, meant: str):
    test = f'device.attributes["gpu.nvidia.com"].cudaComputeCapability.compareTo(semver("{written}")) >= 0'
    told = found(a_claim(selectors=[{"cel": {"expression": test}}])).get("selector-invalid-value", [])
    assert len(told) == bool(meant)
    assert all(meant in each.hint for each in told)


@pytest.mark.parametrize("name", ["memory", "gpu.nvidia.com/memory"])
def test_a_capacity_is_requested_by_the_name_that_slices_have(name: str):
    told = found(a_claim(capacity={"requests": {name: "40Gi"}})).get("capacity-name-prefixed", [])
    assert [each.hint for each in told] == (["write memory: 40Gi"] if "/" in name else [])


@pytest.mark.parametrize("name", ["cpu", "cpu.example.com/cpu"])
def test_a_driver_that_keeps_its_domain_in_a_name_is_asked_with_it(name: str):
    claim = a_claim(of="cpu.example.com", capacity={"requests": {name: "1"}})
    told = found(claim).get("capacity-name-prefixed", [])
    assert [each.hint for each in told] == ([] if "/" in name else ["write cpu.example.com/cpu: 1"])


def kueue(mapped: Mapping[str, list[str]], *, in_map: bool) -> dict[str, Any]:
    """Kueue's Configuration, as an object or in a ConfigMap."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "resources": {
            "deviceClassMappings": [{"name": name, "deviceClassNames": each} for name, each in mapped.items()]
        },
    }
    if not in_map:
        return configuration
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": yaml.safe_dump(configuration)},
    }


def queued(resource: str, amount: int) -> list[dict[str, Any]]:
    """A Job of one pod with one GPU, in a queue with an amount of a resource."""
    job = in_kind("Job", a_pod([{"name": "g"}], template=True))
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    kueue_api = "kueue.x-k8s.io/v1beta2"
    flavors = [{"name": "f", "resources": [{"name": resource, "nominalQuota": amount}]}]
    return [
        a_claim(kind="ResourceClaimTemplate"),
        job,
        {
            "apiVersion": kueue_api,
            "kind": "LocalQueue",
            "metadata": {"name": "q", "namespace": "ml"},
            "spec": {"clusterQueue": "c"},
        },
        {
            "apiVersion": kueue_api,
            "kind": "ClusterQueue",
            "metadata": {"name": "c"},
            "spec": {"resourceGroups": [{"coveredResources": [resource], "flavors": flavors}]},
        },
    ]


@pytest.mark.parametrize(
    ("amounts", "code"),
    [([0, 4], ""), ([4, 0], ""), ([0, 0], "queue-too-small"), ([0] * 17, "")],
    ids=["the second admits", "the first admits", "none admits", "too many to try"],
)
def test_of_several_queues_of_one_name_any_that_admits_is_enough(amounts: list[int], code: str):
    objects = queued("whole", amounts[0])
    queues = [queued("whole", amount)[-1] for amount in amounts[1:]]
    reported = found(*objects, *queues, kueue({"whole": ["gpu.nvidia.com"]}, in_map=True))
    assert {each for each in reported if each.startswith("queue-")} == ({code} if code else set())


@pytest.mark.parametrize("in_map", [False, True])
@pytest.mark.parametrize(
    ("mapped", "resource", "amount", "code"),
    [
        ({"whole": ["gpu.nvidia.com"]}, "whole", 1, ""),
        ({"whole": ["gpu.nvidia.com"]}, "whole", 0, "queue-too-small"),
        ({"whole": ["gpu.nvidia.com"]}, "other", 4, "queue-lacks-resource"),
        ({"whole": ["mig.nvidia.com"]}, "whole", 4, "kueue-refuses"),
        ({}, "whole", 4, "kueue-refuses"),
    ],
)
def test_kueue_counts_a_class_as_its_configuration_says(
    mapped: dict[str, list[str]], resource: str, amount: int, code: str, in_map: bool
):
    told = found(*queued(resource, amount), kueue(mapped, in_map=in_map))
    codes = {each for each in told if each.startswith(("queue-", "kueue-"))}
    assert codes == ({code} if code else set())


@pytest.mark.parametrize(("value", "is_told"), [("a", True), ("7", False)])
@pytest.mark.parametrize("is_per_device", [False, True])
def test_a_slice_that_the_allocator_cannot_parse_is_told(value: str, is_told: bool, is_per_device: bool):
    requirement = {"key": "rack", "operator": "Gt", "values": [value]}
    selector = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}
    device = {"name": "d0", **(selector if is_per_device else {})}
    spec = {"perDeviceNodeSelection": True} if is_per_device else selector
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    told = found(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {"driver": "nic.example.com", "pool": pool, "devices": [device], **spec},
        }
    )
    path = f"ResourceSlice s.spec.{'devices[0].' if is_per_device else ''}nodeSelector"
    assert {code: [(each.path, each.severity) for each in problems] for code, problems in told.items()} == (
        {"slice-not-parsed": [(path, "warning")]} if is_told else {}
    )
