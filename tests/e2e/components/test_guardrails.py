"""The policies of GpuGuardrails on the real API servers: what must pass, and what must not, in every version and shape."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from tools.cluster import Api, ApiError
from tools.cluster.api import PATIENCE

pytestmark = pytest.mark.e2e

ADMIN = "resource.kubernetes.io/admin-access"
Request = dict[str, Any]


def guardrails() -> None:
    """Every rule at once."""
    dra.GpuGuardrails(
        "gpus",
        classes={"vision": ["h100", dra.class_ref("mig.nvidia.com")]},
        most_devices=8,
        all_devices=False,
        admin_access=["monitoring"],
        admin_label=["group:platform", "user:alice", "serviceaccount:ci/runner"],
        config_drivers=["gpu.example.com"],
        without_device_plugin=["vision"],
        extended_resources={"example.com/h100": "h100", "example.com/a100": dra.class_ref("a100")},
    )


def leaf(name: str = "h100", **more: Any) -> Request:
    return {"deviceClassName": name, **more}


def exactly(**fields: Any) -> list[Request]:
    return [{"name": "a", "exactly": leaf(**fields)}]


def ladder(*leaves: Request) -> list[Request]:
    return [{"name": "a", "firstAvailable": [{"name": f"l{n}", **each} for n, each in enumerate(leaves)]}]


def config(driver: str) -> list[dict[str, Any]]:
    return [{"opaque": {"driver": driver, "parameters": {"kind": "X"}}}]


CLAIMS: dict[str, tuple[str, list[Request], list[dict[str, Any]], str]] = {
    # Namespace, requests, configs, and a part of the refusal; empty where it must pass.
    "an allowed class": ("vision", exactly(), [], ""),
    "the other allowed class": ("vision", exactly(name="mig.nvidia.com", count=8), [], ""),
    "another class": ("vision", exactly(name="a100"), [], "may use the device classes h100, mig.nvidia.com"),
    "another class in a namespace without a list": ("speech", exactly(name="a100"), [], ""),
    "another class behind an allowed one": (
        "vision",
        [*exactly(), {"name": "b", "exactly": leaf("a100")}],
        [],
        "may use the device classes",
    ),
    "another class as the last alternative": (
        "vision",
        ladder(leaf(), leaf("a100")),
        [],
        "may use the device classes",
    ),
    "allowed alternatives": ("vision", ladder(leaf(count=8), leaf("mig.nvidia.com")), [], ""),
    "no request": ("vision", [], [], ""),
    "too many": ("speech", exactly(count=9), [], "at most 8 devices"),
    "too many in several requests": (
        "speech",
        [*exactly(count=8), {"name": "b", "exactly": leaf()}],
        [],
        "a claim may ask for at most 8 devices",
    ),
    "too many with the largest alternative": (
        "speech",
        [
            *exactly(count=4),
            {"name": "b", "firstAvailable": [{"name": "l", **leaf(count=5)}, {"name": "m", **leaf()}]},
        ],
        [],
        "a claim may ask for at most 8 devices",
    ),
    "just enough in several requests": (
        "speech",
        [
            *exactly(count=4),
            {"name": "b", "firstAvailable": [{"name": "l", **leaf(count=4)}, {"name": "m", **leaf()}]},
        ],
        [],
        "",
    ),
    "too many as an alternative": ("speech", ladder(leaf(count=2), leaf(count=9)), [], "at most 8 devices"),
    "all": ("speech", exactly(allocationMode="All"), [], "allocationMode All is not allowed"),
    "all as an alternative": ("speech", ladder(leaf(), leaf(allocationMode="All")), [], "allocationMode All"),
    "admin access": ("speech", exactly(adminAccess=True), [], "admin access to devices is not allowed"),
    "admin access of the second request": (
        "speech",
        [*exactly(), {"name": "b", "exactly": leaf(adminAccess=True)}],
        [],
        "admin access to devices is not allowed",
    ),
    "admin access where it is allowed": ("monitoring", exactly(adminAccess=True), [], ""),
    "no admin access in so many words": ("speech", exactly(adminAccess=False), [], ""),
    "a config of the allowed driver": ("speech", exactly(), config("gpu.example.com"), ""),
    "a config of another driver": (
        "speech",
        exactly(),
        config("gpu.nvidia.com"),
        "configs for these drivers alone",
    ),
}
PODS: dict[str, tuple[str, str, str, str]] = {
    "a device of the plugin": ("vision", "containers", "nvidia.com/gpu", "devices are had by claims"),
    "a device of the plugin for an init container": (
        "vision",
        "initContainers",
        "nvidia.com/mig-1g.10gb",
        "by claims",
    ),
    "a device of the plugin elsewhere": ("speech", "containers", "nvidia.com/gpu", ""),
    "an allowed class as a resource": ("vision", "containers", "deviceclass.resource.kubernetes.io/h100", ""),
    "another class as a resource": (
        "vision",
        "containers",
        "deviceclass.resource.kubernetes.io/a100",
        "a device class that the namespace may not use",
    ),
    "another class as a resource of an init container": (
        "vision",
        "initContainers",
        "deviceclass.resource.kubernetes.io/a100",
        "a device class that the namespace may not use",
    ),
    "another class as a resource elsewhere": (
        "speech",
        "containers",
        "deviceclass.resource.kubernetes.io/a100",
        "",
    ),
    "the extended resource of an allowed class": ("vision", "containers", "example.com/h100", ""),
    "the extended resource of another class": (
        "vision",
        "containers",
        "example.com/a100",
        "a device class that the namespace may not use",
    ),
    "the extended resource of another class for an init container": (
        "vision",
        "initContainers",
        "example.com/a100",
        "a device class that the namespace may not use",
    ),
    "the extended resource of another class elsewhere": ("speech", "containers", "example.com/a100", ""),
    "an extended resource of no class": ("vision", "containers", "example.com/fpga", ""),
    "processors": ("vision", "containers", "cpu", ""),
}


@pytest.fixture(scope="module")
def api(minor: str, server: Api) -> Api:
    """A server that holds everybody to the guardrails."""
    for name in ("vision", "speech", "monitoring"):
        # The label is there everywhere, so that only the policy decides.
        server.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {ADMIN: "true"}}}
        )
    program = synth_function(guardrails, config={"dra-infra:kubernetes": minor})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    for each in program.objects:
        server.create(each.manifest)
    # A policy holds once the server has read it; the last one made is refused by, and so are those before it.
    deadline = time.monotonic() + PATIENCE
    while not all(
        (refusal(server, path, made) for path, made in PROBES),
    ):
        assert time.monotonic() < deadline, "the server does not hold to the policies"
    return server


def refusal(
    api: Api, path: str, manifest: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> str:
    """The refusal of an object that is not stored; empty where it is taken."""
    try:
        api.request("POST", path, json=dict(manifest), params={"dryRun": "All"}, headers=headers)
    except ApiError as error:
        return str(error)
    return ""


def claim(version: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": spec,
    }


def claims_path(version: str, namespace: str, plural: str = "resourceclaims") -> str:
    return f"/apis/resource.k8s.io/{version}/namespaces/{namespace}/{plural}"


def pod(kind: str, resource: str, amounts: str = "limits") -> dict[str, Any]:
    asking = {
        "name": "asking",
        "image": "i",
        "resources": {amounts: {resource: "1"}, "limits": {resource: "1"}},
    }
    plain = {"name": "plain", "image": "i"}
    spec = {"containers": [plain], kind: [asking] if kind == "initContainers" else [plain, asking]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def namespace(labels: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new", "labels": dict(labels)}}


TOO_MANY = {"devices": {"requests": exactly(count=9)}}
PROBES = [
    (claims_path("v1", "speech"), claim("v1", TOO_MANY)),
    (
        claims_path("v1", "speech", "resourceclaimtemplates"),
        {**claim("v1", {"spec": TOO_MANY}), "kind": "ResourceClaimTemplate"},
    ),
    ("/api/v1/namespaces/vision/pods", pod("containers", "nvidia.com/gpu")),
    ("/api/v1/namespaces", namespace({ADMIN: "true"})),
]
"""One object for each policy that it refuses."""


def flat(requests: list[Request]) -> list[Request]:
    """Requests as v1beta1 has them, where what is asked for exactly stands in the request itself."""
    return [{"name": each["name"], **each["exactly"]} if "exactly" in each else each for each in requests]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("case", CLAIMS)
def test_claims_pass_or_not_in_every_version_and_as_templates(case: str, kind: str, version: str, api: Api):
    where, requests, configs, expected = CLAIMS[case]
    devices: dict[str, Any] = (
        {"requests": flat(requests) if version == "v1beta1" else requests} if requests else {}
    )
    if configs:
        devices["config"] = configs
    spec: dict[str, Any] = {"devices": devices}
    manifest = claim(version, {"spec": spec} if kind == "ResourceClaimTemplate" else spec) | {"kind": kind}
    found = refusal(api, claims_path(version, where, f"{kind.lower()}s"), manifest)
    assert expected in found if expected else found == ""


@pytest.mark.parametrize("amounts", ["limits", "requests"])
@pytest.mark.parametrize("case", PODS)
def test_pods_pass_or_not(case: str, amounts: str, api: Api):
    where, kind, resource, expected = PODS[case]
    found = refusal(api, f"/api/v1/namespaces/{where}/pods", pod(kind, resource, amounts))
    assert expected in found if expected else found == ""


@pytest.mark.parametrize(
    ("user", "groups", "labels", "passes"),
    [
        ("alice", [], {ADMIN: "true"}, True),
        ("bob", ["platform"], {ADMIN: "true"}, True),
        ("system:serviceaccount:ci:runner", [], {ADMIN: "true"}, True),
        ("bob", [], {ADMIN: "true"}, False),
        ("runner", [], {ADMIN: "false"}, False),
        ("bob", [], {"team": "x"}, True),
        ("bob", [], {}, True),
    ],
)
def test_the_label_for_admin_access_is_set_by_those_who_are_named_alone(
    user: str, groups: list[str], labels: dict[str, str], passes: bool, api: Api
):
    # In this group nobody is refused for want of rights; the policy alone decides.
    headers = [
        ("Impersonate-User", user),
        *(("Impersonate-Group", each) for each in (*groups, "system:masters")),
    ]
    found = refusal(api, "/api/v1/namespaces", namespace(labels), headers)
    assert (found == "") is passes
    assert passes or f"user {user} may not change the label {ADMIN}" in found


@pytest.mark.parametrize("path", ["", "/status", "/finalize"])
def test_the_label_is_not_taken_away_or_given_by_an_update_of_others_either(path: str, api: Api):
    """The subresources keep the labels that are sent to them, so they are tried too."""
    headers = {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"}

    def put(label: str | None, team: str) -> None:
        there = api.request("GET", "/api/v1/namespaces/speech")
        labels = {**there["metadata"]["labels"], ADMIN: label, "team": team}
        there["metadata"]["labels"] = {key: value for key, value in labels.items() if value is not None}
        api.request("PUT", f"/api/v1/namespaces/speech{path}", json=there, headers=headers)

    for label in (None, "false"):
        with pytest.raises(ApiError, match="may not change the label"):
            put(label, "y")
    put("true", f"x{path.strip('/')}")
    assert api.request("GET", "/api/v1/namespaces/speech")["metadata"]["labels"]["team"].startswith("x")
