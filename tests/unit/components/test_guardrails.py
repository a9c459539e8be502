from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dra_infra as dra
from dra_infra.advice.policies import PolicySet, ask_policies
from dra_infra.program.synth import synth_function
from dra_infra.specs.requests import NamedClass
from tests.support.components.family import run


def policies(**arguments: Any) -> dict[str, Any]:
    program = synth_function(
        lambda: dra.GpuGuardrails("gpus", **arguments), config={"dra-infra:kubernetes": "1.37"}
    )
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    kind = "ValidatingAdmissionPolicy"
    return {
        each.manifest["metadata"]["name"]: each.manifest["spec"]
        for each in program.objects
        if each.manifest["kind"] == kind
    }


def problems(body: Callable[[], Any]) -> list[tuple[str, str]]:
    found = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
    return [(each.code, each.path) for each in found if each.severity == "error"]


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        ({"classes": {"vision": ["h100"]}}, ["gpus-claims", "gpus-pods", "gpus-templates"]),
        ({"most_devices": 8}, ["gpus-claims", "gpus-templates"]),
        ({"all_devices": False}, ["gpus-claims", "gpus-templates"]),
        ({"admin_access": []}, ["gpus-claims", "gpus-templates"]),
        ({"admin_label": []}, ["gpus-namespaces"]),
        ({"config_drivers": []}, ["gpus-claims", "gpus-templates"]),
        ({"without_device_plugin": ["vision"]}, ["gpus-pods"]),
        ({"host_paths": {"vision": []}}, ["gpus-pods"]),
    ],
)
def test_only_what_is_said_has_a_policy(arguments: dict[str, Any], made: list[str]):
    assert sorted(policies(**arguments)) == made


@pytest.mark.parametrize(
    ("drivers", "told"),
    [
        ([], "'a claim may bring no config of a driver'"),
        (["a.b"], "'a claim may bring configs for these drivers alone: ' + [\"a.b\"].join(', ')"),
    ],
)
def test_the_refusal_of_a_config_names_the_drivers_that_may_have_one(drivers: list[str], told: str):
    for spec in policies(config_drivers=drivers).values():
        assert [each["messageExpression"] for each in spec["validations"]] == [told]


def test_a_policy_of_claims_is_asked_when_they_are_made_alone():
    for spec in policies(most_devices=8).values():
        (rule,) = spec["matchConstraints"]["resourceRules"]
        assert rule["operations"] == ["CREATE"]
        assert spec["matchConstraints"]["matchPolicy"] == "Equivalent"
        assert spec["failurePolicy"] == "Fail"


def test_a_policy_is_there_before_it_is_bound():
    _, seen = run(lambda: dra.GpuGuardrails("gpus", most_devices=8))
    bound = [each for each in seen.requests if each.type.endswith(":ValidatingAdmissionPolicyBinding")]
    assert len(bound) == 2
    for each in bound:
        assert [urn.rpartition("::")[2] for urn in each.dependencies] == [each.name]


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({}, "missing-argument", "classes"),
        ({"classes": {}}, "missing-argument", "classes"),
        ({"classes": ["h100"]}, "wrong-type", "classes"),
        ({"classes": {"Vision": ["h100"]}}, "invalid-name", "classes"),
        ({"classes": {"vision": "h100"}}, "wrong-type", "classes['vision']"),
        ({"classes": {"vision": ["H100"]}}, "invalid-name", "classes['vision'][0]"),
        ({"classes": {"vision": [7]}}, "wrong-type", "classes['vision'][0]"),
        ({"most_devices": "8"}, "wrong-type", "most_devices"),
        ({"most_devices": 0}, "count-below-one", "most_devices"),
        ({"most_devices": 33}, "too-many-devices", "most_devices"),
        ({"all_devices": "no"}, "wrong-type", "all_devices"),
        ({"admin_access": "monitoring"}, "wrong-type", "admin_access"),
        ({"admin_access": ["a.b"]}, "invalid-name", "admin_access[0]"),
        ({"admin_label": ["platform"]}, "invalid-name", "admin_label[0]"),
        ({"config_drivers": ["My driver"]}, "invalid-name", "config_drivers[0]"),
        ({"without_device_plugin": [None]}, "wrong-type", "without_device_plugin[0]"),
        ({"most_devices": 8, "extended_resources": ["a/b"]}, "wrong-type", "extended_resources"),
        ({"most_devices": 8, "extended_resources": {"gpu": "a"}}, "invalid-name", "extended_resources"),
        (
            {"most_devices": 8, "extended_resources": {"a.com/b": "A"}},
            "invalid-name",
            "extended_resources['a.com/b']",
        ),
        (
            {"most_devices": 8, "extended_resources": {"a.com/b": None}},
            "wrong-type",
            "extended_resources['a.com/b']",
        ),
        ({"most_devices": 8, "labels": ["a"]}, "wrong-type", "labels"),
        ({"node_access": ["vision"]}, "missing-argument", "classes"),
        ({"most_devices": 8, "node_access": "vision"}, "wrong-type", "node_access"),
        ({"most_devices": 8, "node_access": ["Vision"]}, "invalid-name", "node_access[0]"),
        ({"host_paths": ["/mnt"]}, "wrong-type", "host_paths"),
        ({"host_paths": {"Vision": ["/mnt"]}}, "invalid-name", "host_paths"),
        ({"host_paths": {"vision": "/mnt"}}, "wrong-type", "host_paths['vision']"),
        ({"host_paths": {"vision": [7]}}, "wrong-type", "host_paths['vision'][0]"),
        ({"host_paths": {"vision": ["mnt"]}}, "invalid-name", "host_paths['vision'][0]"),
        ({"host_paths": {"vision": ["/mnt/"]}}, "invalid-name", "host_paths['vision'][0]"),
        ({"host_paths": {"vision": ["/mnt/../dev"]}}, "invalid-name", "host_paths['vision'][0]"),
        *(
            ({"host_paths": {"vision": [path]}}, "field-not-allowed", "host_paths['vision'][0]")
            for path in ("/", "/dev", "/dev/nvidia0", "/proc/1/root", "/var", "/run/nvidia/driver", "/etc")
        ),
        (
            {"host_paths": {"vision": ["/mnt"]}, "node_access": ["vision"]},
            "field-not-allowed",
            "host_paths['vision']",
        ),
    ],
)
def test_wrong_arguments_are_problems_at_their_place(arguments: dict[str, Any], code: str, path: str):
    assert problems(lambda: dra.GpuGuardrails("gpus", **arguments)) == [
        (code, f'GpuGuardrails("gpus").{path}')
    ]


def test_names_cannot_break_out_of_an_expression():
    hostile = 'user:a" || true || "\\\n\''
    (spec,) = policies(admin_label=[hostile]).values()
    (validation,) = spec["validations"]
    assert '"a\\" || true || \\"\\\\\\n\'"' in validation["expression"]


def is_let_in(policy: str, manifest: dict[str, Any], **arguments: Any) -> bool:
    """Asks one policy, whose answers are held against the real servers elsewhere."""
    made = [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": policy},
            "spec": spec,
        }
        for kind, spec in (
            ("ValidatingAdmissionPolicy", policies(**arguments)[policy]),
            (
                "ValidatingAdmissionPolicyBinding",
                {"policyName": policy, "validationActions": ["Deny"]},
            ),
        )
    ]
    target = dra.ClusterTarget(kubernetes="1.37")
    found = [each.code for _, each in ask_policies([manifest], PolicySet.gather(made), target)]
    assert set(found) <= {"policy-denies"}
    return not found


def pods_may_ask(resource: str, namespace: str, **arguments: Any) -> bool:
    container = {"name": "a", "image": "i", "resources": {"limits": {resource: 1}}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"containers": [container]},
    }
    return is_let_in("gpus-pods", pod, **arguments)


NAMED = {
    "classes": {"classes": {"vision": ["h100"]}},
    "without_device_plugin": {"without_device_plugin": ["vision"]},
    "host_paths": {"host_paths": {"vision": []}},
}
"""Arguments that name a namespace."""


def may_run(namespace: str = "vision", *, arguments: dict[str, Any] = NAMED["classes"], **spec: Any) -> bool:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"containers": [{"name": "a", "image": "i"}], **spec},
    }
    return is_let_in("gpus-pods", pod, **arguments)


def mounting(*paths: str) -> list[dict[str, Any]]:
    return [
        {"name": "scratch", "emptyDir": {}},
        *({"name": f"v{number}", "hostPath": {"path": path}} for number, path in enumerate(paths)),
    ]


@pytest.mark.parametrize("arguments", NAMED.values(), ids=NAMED)
def test_pods_of_a_namespace_that_is_named_mount_no_path_of_their_node_and_do_not_choose_it(
    arguments: dict[str, Any],
):
    for path in ("/dev/nvidia0", "/dev", "/", "/dev/char/195:0", "/proc/1/root/dev", "/mnt"):
        assert not may_run(arguments=arguments, volumes=mounting(path))
        assert may_run("elsewhere", arguments=arguments, volumes=mounting(path))
    assert not may_run(arguments=arguments, nodeName="node-7")
    assert may_run("elsewhere", arguments=arguments, nodeName="node-7")
    assert may_run(arguments=arguments)
    assert may_run(arguments=arguments, volumes=mounting())


def test_paths_that_are_allowed_count_as_they_are_written():
    arguments = {"host_paths": {"vision": ["/mnt/a", "/mnt/b"]}, **NAMED["without_device_plugin"]}
    assert may_run(arguments=arguments, volumes=mounting("/mnt/b", "/mnt/a"))
    for path in ("/mnt", "/mnt/a/link", "/mnt/a/", "//mnt/a", "/mnt/ab", "/mnt/A"):
        assert not may_run(arguments=arguments, volumes=mounting("/mnt/a", path))


def test_pods_of_a_namespace_with_access_to_nodes_are_held_to_the_other_rules_alone():
    arguments = {**NAMED["classes"], "node_access": ["vision"]}
    assert may_run(arguments=arguments, volumes=mounting("/"), nodeName="node-7")
    assert not pods_may_ask("deviceclass.resource.kubernetes.io/a100", "vision", **arguments)


def devices_of(count: int | str | None) -> int:
    return 32 if count == "All" else int(count or 1)


COUNTS = st.one_of(st.integers(1, 5), st.just("All"))


@given(
    st.lists(
        st.one_of(st.none(), COUNTS, st.lists(COUNTS, min_size=1, max_size=3)),
        max_size=4,
    ),
    st.one_of(st.integers(1, 12), st.just(32)),
)
def test_the_devices_of_a_claim_are_those_of_all_its_requests(requests: list[Any], most: int):
    """Of a number a request has so many, of None one that is not written, of All those of a node, of a list such alternatives."""

    def leaf(count: int | str | None) -> dict[str, Any]:
        if count == "All":
            return {"deviceClassName": "h100", "allocationMode": "All"}
        return {"deviceClassName": "h100"} | ({} if count is None else {"count": count})

    made = [
        {
            "name": f"r{number}",
            "firstAvailable": [{"name": f"a{which}", **leaf(each)} for which, each in enumerate(counts)],
        }
        if isinstance(counts, list)
        else {"name": f"r{number}", "exactly": leaf(counts)}
        for number, counts in enumerate(requests)
    ]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "vision"},
        "spec": {"devices": {"requests": made} if made else {}},
    }
    devices = sum(
        max(map(devices_of, each)) if isinstance(each, list) else devices_of(each) for each in requests
    )
    assert is_let_in("gpus-claims", claim, most_devices=most) == (devices <= most)


def test_extended_resources_of_classes_are_held_to_the_classes_of_a_namespace():
    arguments = {
        "classes": {"vision": ["h100"], "speech": ["a100"]},
        "extended_resources": {"example.com/h100": dra.class_ref("h100"), "example.com/a100": "a100"},
    }
    assert pods_may_ask("example.com/h100", "vision", **arguments)
    assert not pods_may_ask("example.com/a100", "vision", **arguments)
    assert not pods_may_ask("example.com/h100", "speech", **arguments)
    assert pods_may_ask("example.com/a100", "elsewhere", **arguments)
    assert pods_may_ask("example.com/other", "vision", **arguments)


def test_the_extended_resource_of_a_class_of_the_program_is_known():
    def made() -> dict[str, Any]:
        h100 = dra.GpuDeviceClass(
            "h100", extended_resource_name="example.com/gpu", select=dra.gpu.product.contains("H100")
        )
        return {"classes": {"vision": ["mig.nvidia.com"], "speech": [h100]}}

    program = synth_function(
        lambda: dra.GpuGuardrails("gpus", **made()), config={"dra-infra:kubernetes": "1.37"}
    )
    found = PolicySet.gather(each.manifest for each in program.objects)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "vision"},
        "spec": {
            "containers": [{"name": "a", "image": "i", "resources": {"limits": {"example.com/gpu": 1}}}]
        },
    }
    ((_, problem),) = ask_policies([pod], found, dra.ClusterTarget(kubernetes="1.37"))
    assert problem.code == "policy-denies"


def test_a_name_that_two_classes_have_is_allowed_with_either():
    arguments = {
        "classes": {"vision": ["a"], "speech": ["c"]},
        "extended_resources": {"example.com/gpu": Named("a"), "example.com/other": Named("b")},
    }
    assert pods_may_ask("example.com/gpu", "vision", **arguments)
    assert not pods_may_ask("example.com/gpu", "speech", **arguments)


class Named(NamedClass):
    """A class whose own extended resource is `example.com/gpu`."""

    extended_resource_name = "example.com/gpu"

    def __init__(self, name: str) -> None:
        self.object_name = name
