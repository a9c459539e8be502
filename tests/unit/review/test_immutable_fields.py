from __future__ import annotations

from typing import Any

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.program_objects import UNKNOWN
from dra_infra.review.replacement import find_immutable_fields
from dra_infra.target import ClusterTarget

# The API server's own verdicts on the same changes are in tests/e2e/review/test_immutable_fields.py.


def manifest(kind: str, **parts: Any) -> dict[str, Any]:
    return {"apiVersion": kind.rpartition("/")[0] or "v1", "kind": kind.rpartition("/")[2], **parts}


@pytest.mark.parametrize(
    ("kind", "before", "after", "fields"),
    [
        ("apps/v1/Deployment", {"spec": {"selector": 1}}, {"spec": {"selector": 2}}, ("spec.selector",)),
        ("apps/v1/Deployment", {"spec": {"template": 1}}, {"spec": {"template": 2}}, ()),
        ("apps/v1/StatefulSet", {"spec": {"serviceName": "a"}}, {"spec": {}}, ("spec.serviceName",)),
        ("batch/v1/Job", {"spec": {"template": 1}}, {"spec": {"template": 2}}, ("spec.template",)),
        ("batch/v1/Job", {"spec": {"parallelism": 1}}, {"spec": {"parallelism": 2}}, ()),
        ("batch/v1/Job", {"spec": {"completions": 3}}, {"spec": {"completions": 5}}, ("spec.completions",)),
        ("batch/v1/Job", {"spec": {}}, {"spec": {"completions": 3}}, ("spec.completions",)),
        ("batch/v1/Job", {"spec": {"completions": 3}}, {"spec": {"parallelism": 3}}, ("spec.completions",)),
        ("batch/v1/Job", {"spec": {}}, {"spec": {"completions": 1}}, ()),
        ("batch/v1/Job", {"spec": {}}, {"spec": {"parallelism": 2}}, ()),
        ("batch/v1/Job", {"spec": {"completions": 3}}, {"spec": {"completions": UNKNOWN}}, ()),
        ("batch/v1/Job", {"spec": {"podFailurePolicy": 1}}, {"spec": {}}, ("spec.podFailurePolicy",)),
        ("batch/v1/Job", {"spec": {"template": 1, "suspend": True}}, {"spec": {"template": 2}}, ()),
        ("v1/ConfigMap", {"data": 1}, {"data": 2}, ()),
        ("v1/ConfigMap", {"data": 1, "immutable": True}, {"data": 2, "immutable": True}, ("data",)),
        ("v1/Secret", {"type": "a"}, {"type": "b"}, ("type",)),
        ("v1/Pod", {"spec": {"nodeName": "a"}}, {"spec": {"nodeName": "b"}}, ("spec.nodeName",)),
        ("v1/Pod", {"spec": {"containers": []}}, {"spec": {"containers": [1]}}, ()),
        ("resource.k8s.io/v1/ResourceClaim", {"spec": 1}, {"spec": 2}, ("spec",)),
        ("resource.k8s.io/v1/DeviceClass", {"spec": 1}, {"spec": 2}, ()),
        ("batch/v1/Job", {"spec": {"template": UNKNOWN}}, {"spec": {"template": 2}}, ()),
        # Servers take an absent list for an empty one.
        ("batch/v1/Job", {"spec": {"template": {}}}, {"spec": {"template": {"tolerations": []}}}, ()),
        ("batch/v1/Job", {"spec": {"template": {"a": {"b": None}}}}, {"spec": {"template": {"a": {}}}}, ()),
        (
            "apps/v1/Deployment",
            {"spec": {"selector": {"matchExpressions": []}}},
            {"spec": {"selector": {}}},
            (),
        ),
        ("v1/Pod", {"spec": {"nodeSelector": {}}}, {"spec": {}}, ()),
        ("v1/Pod", {"spec": {"hostNetwork": False}}, {"spec": {"hostNetwork": 0}}, ("spec.hostNetwork",)),
    ],
)
def test_fields_that_never_change_are_found(
    kind: str, before: dict[str, Any], after: dict[str, Any], fields: tuple[str, ...]
):
    api = kind.removeprefix("v1/") if kind.startswith("v1/") else kind
    assert find_immutable_fields(manifest(api, **before), manifest(api, **after)) == fields


def claim(devices: Any, *, version: str = "v1", kind: str = "ResourceClaim") -> dict[str, Any]:
    spec = {"devices": devices}
    spec = {"spec": spec} if kind == "ResourceClaimTemplate" else spec
    return manifest(f"resource.k8s.io/{version}/{kind}", metadata={"name": "a"}, spec=spec)


ONE = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "c"}}]}
SPELLED_OUT = {
    "requests": [
        {"name": "gpu", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
    ]
}
FLAT = {"requests": [{"name": "gpu", "deviceClassName": "c"}]}
TWO = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "c", "count": 2}}]}


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_an_empty_list_where_there_was_none_changes_no_claim(kind: str):
    assert find_immutable_fields(claim(ONE, kind=kind), claim({**ONE, "constraints": []}, kind=kind)) == ()


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize(("old", "new"), [(True, 1), (1, True), (1, 1.0), (0, False), ([1], [True])])
def test_a_parameter_that_python_takes_for_the_same_is_another_one(kind: str, old: Any, new: Any):
    def configured(value: Any) -> dict[str, Any]:
        opaque = {"driver": "gpu.example.com", "parameters": {"a": {"b": value}}}
        return claim({**ONE, "config": [{"opaque": opaque}]}, kind=kind)

    assert find_immutable_fields(configured(old), configured(new)) == ("spec",)


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_a_default_that_is_written_out_changes_no_claim(kind: str):
    assert find_immutable_fields(claim(ONE, kind=kind), claim(SPELLED_OUT, kind=kind)) == ()
    assert find_immutable_fields(claim(ONE, kind=kind), claim(TWO, kind=kind)) == ("spec",)


def test_a_claim_in_another_version_of_the_api_is_the_same_claim():
    assert find_immutable_fields(claim(FLAT, version="v1beta1"), claim(ONE)) == ()
    assert find_immutable_fields(claim(FLAT, version="v1beta1"), claim(TWO)) == ("spec",)


def test_a_field_that_the_server_drops_changes_no_claim():
    gated = {"requests": [{"name": "gpu", "exactly": {**ONE["requests"][0]["exactly"], "adminAccess": True}}]}
    without = ClusterTarget(kubernetes="1.34", gates={"DRAAdminAccess": False}).releases
    assert find_immutable_fields(claim(ONE), claim(gated), without) == ()
    assert find_immutable_fields(claim(ONE), claim(gated)) == ("spec",)


def test_a_claim_with_a_value_that_is_not_known_counts_as_it_is_written():
    unknown = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "c", "count": UNKNOWN}}]}
    assert find_immutable_fields(claim(ONE), claim(unknown)) == ("spec",)
    assert find_immutable_fields(claim(unknown), claim(unknown)) == ()


def test_driver_pool_and_node_of_a_slice_never_change():
    def published(driver: str, pool: str, node: str) -> dict[str, Any]:
        where = {"name": pool, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "pool": where, "nodeName": node, "devices": [{"name": "gpu-0"}]}
        return manifest("resource.k8s.io/v1/ResourceSlice", metadata={"name": "a"}, spec=spec)

    before = published("gpu.example.com", "a", "a")
    assert find_immutable_fields(before, published("other.example.com", "b", "b")) == (
        "spec.pool.name",
        "spec.driver",
        "spec.nodeName",
    )
    assert find_immutable_fields(before, before) == ()


@pytest.mark.parametrize(("number", "fields"), [(5, ()), (4, ("spec.completions",))])
def test_completions_of_an_indexed_job_change_together_with_parallelism_only(
    number: int, fields: tuple[str, ...]
):
    before = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    after = {**before, "completions": 5, "parallelism": number}
    job = "batch/v1/Job"
    assert find_immutable_fields(manifest(job, spec=before), manifest(job, spec=after)) == fields


POD: dict[str, Any] = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}
NODES: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
APART: dict[str, Any] = {"requiredDuringSchedulingIgnoredDuringExecution": []}
RESOURCES = [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}]


def suspended(spec: dict[str, Any] = POD, **metadata: Any) -> dict[str, Any]:
    return manifest("batch/v1/Job", spec={"suspend": True, "template": {"metadata": metadata, "spec": spec}})


@pytest.mark.parametrize(
    ("after", "since"),
    [
        ({**POD, "nodeSelector": {"a": "b"}}, "1.34"),
        ({**POD, "tolerations": [{"operator": "Exists"}]}, "1.34"),
        ({**POD, "schedulingGates": [{"name": "a"}]}, "1.34"),
        ({**POD, "affinity": {"nodeAffinity": NODES}}, "1.34"),
        ({**POD, "containers": RESOURCES}, "1.36"),
        ({**POD, "affinity": {"nodeAffinity": NODES, "podAntiAffinity": APART}}, ""),
        ({**POD, "containers": [{"name": "c", "image": "i:2"}]}, ""),
        ({**POD, "containers": [{**RESOURCES[0], "name": "d"}]}, ""),
        ({**POD, "containers": [*RESOURCES, *RESOURCES]}, ""),
        ({**POD, "resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, ""),
        ({**POD, "priorityClassName": "a"}, ""),
    ],
)
def test_of_the_template_of_a_suspended_job_only_some_parts_change(after: dict[str, Any], since: str):
    for minor in SUPPORTED_MINORS:
        releases = ClusterTarget(kubernetes=minor).releases
        for sides in ((POD, after), (after, POD)):
            found = find_immutable_fields(*map(suspended, sides), releases)
            assert found == (() if since and minor >= since else ("spec.template",)), minor


@pytest.mark.parametrize("name", ["labels", "annotations"])
def test_labels_and_annotations_of_a_suspended_job_change(name: str):
    assert find_immutable_fields(suspended(), suspended(**{name: {"a": "b"}})) == ()


def test_the_template_of_a_job_that_is_suspended_by_the_change_stays():
    running = manifest("batch/v1/Job", spec={"template": {"spec": POD}})
    assert find_immutable_fields(running, suspended({**POD, "nodeSelector": {"a": "b"}})) == (
        "spec.template",
    )


def test_a_gate_decides_about_the_resources_of_a_suspended_job():
    for is_on in (True, False):
        gates = {"MutablePodResourcesForSuspendedJobs": is_on}
        releases = ClusterTarget(kubernetes="1.36", gates=gates).releases
        found = find_immutable_fields(suspended(), suspended({**POD, "containers": RESOURCES}), releases)
        assert found == (() if is_on else ("spec.template",))
