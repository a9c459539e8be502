"""What the API server adds to pods before the scheduler sees them."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.apiserver import PodAdmission
from dra_infra.kubernetes.scheduler import pod_requests


def a_range(*limits, name="defaults", namespace="ml"):
    return {
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"limits": list(limits)},
    }


def requests_with(item, resources, kind="containers"):
    spec = {kind: [{"name": "c", "resources": resources}]}
    return pod_requests(PodAdmission([a_range(item)]).admit(spec, "ml"))


@pytest.mark.parametrize(
    ("item", "resources", "cpu"),
    [
        ({"defaultRequest": {"cpu": "1"}}, {}, 1000),
        ({"defaultRequest": {"cpu": "1"}, "default": {"cpu": "2"}}, {}, 1000),
        ({"default": {"cpu": "2"}}, {}, 2000),
        ({"max": {"cpu": "3"}}, {}, 3000),
        ({"min": {"cpu": "4"}}, {}, 4000),
        ({"min": {"cpu": "1"}, "max": {"cpu": "3"}}, {}, 3000),
        ({"defaultRequest": {"cpu": "1"}}, {"limits": {"cpu": "5"}}, 5000),
        ({"default": {"cpu": "2"}}, {"requests": {"cpu": "500m"}}, 500),
        ({"defaultRequest": {"cpu": "1"}, "type": "Pod"}, {}, 0),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_limit_ranges_fill_in_what_containers_do_not_say(item, resources, cpu, kind):
    assert requests_with({"type": "Container", **item}, resources, kind).get("cpu", 0) == cpu


def test_limit_ranges_are_of_one_namespace_and_the_first_by_name_comes_first():
    admission = PodAdmission(
        [
            a_range({"type": "Container", "defaultRequest": {"cpu": "2"}}, name="b"),
            a_range({"type": "Container", "defaultRequest": {"cpu": "1"}}, name="a"),
        ]
    )
    spec = {"containers": [{"name": "c"}]}
    assert pod_requests(admission.admit(spec, "ml"))["cpu"] == 1000
    assert admission.admit(spec, "other") is spec


def test_bounds_are_named():
    admission = PodAdmission(
        [a_range({"type": "Pod", "max": {"cpu": "1"}}), a_range({"type": "Container"}, name="free")]
    )
    assert admission.bounds("ml") == ["defaults"]
    assert admission.bounds("") == []


def test_a_runtime_class_adds_overhead_nodes_and_tolerations():
    runtime = {
        "kind": "RuntimeClass",
        "metadata": {"name": "sandbox"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"sandbox": "yes"}, "tolerations": [{"key": "sandbox"}]},
    }
    admission = PodAdmission([runtime])
    spec = admission.admit(
        {
            "runtimeClassName": "sandbox",
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"key": "gpu"}],
            "containers": [],
        },
        "ml",
    )
    assert pod_requests(spec)["cpu"] == 250
    assert spec["nodeSelector"] == {"zone": "a", "sandbox": "yes"}
    assert [each["key"] for each in spec["tolerations"]] == ["gpu", "sandbox"]
    assert admission.knows_runtime("sandbox")
    other = {"runtimeClassName": "other", "containers": []}
    assert admission.admit(other, "ml") is other
