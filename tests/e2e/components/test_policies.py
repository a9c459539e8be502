"""Policies asked offline say what the real API servers of all minors say, and in the same words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.advice.policies import Court, PolicySet
from dra_infra.kubernetes.api import POD_CLAIM_NAME
from dra_infra.kubernetes.apiserver.policies import Decision, User
from dra_infra.program.synth import synth_function
from dra_infra.target import ClusterTarget
from tests.e2e.components.policy_cases import (
    CASES,
    DENY,
    LABEL,
    LIMITS,
    SETTINGS,
    SPACES,
    TWO,
    Manifest,
    rules,
    validation,
)
from tests.e2e.components.policy_cases import (
    CLAIMS as ABOUT_CLAIMS,
)
from tests.e2e.components.test_guardrails import (
    ADMIN,
    CLAIMS,
    PODS,
    PROBES,
    claim,
    claims_path,
    guardrails,
    namespace,
    pod,
    refusal,
)
from tests.e2e.components.test_guardrails import flat as flat_requests
from tools.cluster import Api
from tools.cluster.api import PATIENCE
from tools.cluster.api_server import api_server, control_plane

pytestmark = pytest.mark.e2e

DENIED = "is forbidden: "
USER = "bob"
HEADERS = [("Impersonate-User", USER), ("Impersonate-Group", "system:masters")]
"""Nobody is refused for want of rights, and the server knows the user as we are told of him."""
CONTROLLER = [
    ("Impersonate-User", "system:serviceaccount:kube-system:resource-claim-controller"),
    ("Impersonate-Group", "system:serviceaccounts"),
    ("Impersonate-Group", "system:serviceaccounts:kube-system"),
]
"""Who makes claims of templates: NewClient in cmd/kube-controller-manager/app/resource.go."""


class Answer(NamedTuple):
    """What the real server says: the text behind `is forbidden`, whatever else it refuses for, and its warnings."""

    denied: str
    refused: str
    warnings: list[str]


class Server:
    """A real server, asked without storing anything."""

    def __init__(self, api: Api, client: httpx.Client) -> None:
        self.api = api
        self._client = client

    def ask(self, manifest: Mapping[str, Any], headers: list[tuple[str, str]] = HEADERS) -> Answer:
        group, _, version = str(manifest["apiVersion"]).rpartition("/")
        plural = str(manifest["kind"]).lower() + ("es" if str(manifest["kind"]).endswith("s") else "s")
        where = manifest["metadata"].get("namespace")
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        path += f"/namespaces/{where}/{plural}" if where else f"/{plural}"
        response = self._client.post(
            path, json=dict(manifest), params={"dryRun": "All", "fieldValidation": "Strict"}, headers=headers
        )
        warnings = [text.partition('"')[2].removesuffix('"') for text in response.headers.get_list("warning")]
        if not response.is_error:
            return Answer("", "", warnings)
        message = str(response.json().get("message"))
        _, is_denied, text = message.partition(DENIED)
        return Answer(text if "ValidatingAdmissionPolicy" in text and is_denied else "", message, warnings)


@pytest.fixture(scope="module")
def server(minor: str, binaries: Callable[[str], Path]) -> Iterator[Server]:
    """The API server of the minor with the namespaces of all cases."""
    with (
        api_server(minor, binaries=binaries) as plane,
        plane.api() as api,
        plane.connection.client() as client,
    ):
        for name, labels in SPACES.items():
            api.create(
                {
                    **namespace({**labels, ADMIN: "true"}),
                    "metadata": {"name": name, "labels": {**labels, ADMIN: "true"}},
                }
            )
        api.create({**namespace({}), "metadata": {"name": "monitoring", "labels": {ADMIN: "true"}}})
        api.create(SETTINGS)
        api.create(LIMITS)
        yield Server(api, client)


def known_objects() -> list[Manifest]:
    """What an input holds beside the policies."""
    labels = {**SPACES, "monitoring": {}}
    spaces = [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {**each, ADMIN: "true"}},
        }
        for name, each in labels.items()
    ]
    return [*spaces, SETTINGS, LIMITS]


def court_of(minor: str, policies: list[Manifest]) -> Court:
    (release,) = ClusterTarget(kubernetes=minor).releases
    found = PolicySet.gather([*policies, *known_objects()])
    user = User(name=USER, groups=["system:masters"])
    return Court(found, release, serves=frozenset({"v1", "v1beta1", "v1beta2"}), user=user)


def agree(answer: Answer, court: Court, manifest: Manifest) -> list[str]:
    """Hold the real answer about an object against ours, and return the actions that we expected."""
    return compare(answer, [decision for path, decision in court.hear(manifest) if not path])


def compare(answer: Answer, decisions: list[Decision]) -> list[str]:
    """Hold the real answer against our decisions, and return their actions."""
    denials = [each.message for each in decisions if each.action == "deny"]
    if not any(each.action == "undecided" for each in decisions):
        assert answer.denied == (denials[0] if denials else ""), answer
        assert [each.message for each in decisions if each.action == "warn"] == [
            each.replace('\\"', '"') for each in answer.warnings if "ValidatingAdmissionPolicy" in each
        ]
    return [each.action for each in decisions]


# --- Every feature -----------------------------------------------------------------------------------------------


def policies_of(case: str) -> list[Manifest]:
    """The policy and binding of a case, which look at objects with its label alone."""
    name = case.replace(" ", "-")
    written = CASES[case]
    constraints = {**written.spec["matchConstraints"], "objectSelector": {"matchLabels": {LABEL: name}}}
    return bound_policy(name, {**written.spec, "matchConstraints": constraints}, written.binding)


def bound_policy(name: str, spec: Manifest, binding: Manifest) -> list[Manifest]:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }
    return [
        policy,
        {**policy, "kind": "ValidatingAdmissionPolicyBinding", "spec": {"policyName": name, **binding}},
    ]


def labelled(case: str, manifest: Manifest) -> Manifest:
    metadata = manifest["metadata"]
    labels = {**metadata.get("labels", {}), LABEL: case.replace(" ", "-")}
    return {**manifest, "metadata": {**metadata, "labels": labels}}


def is_in_force(server: Server, case: str) -> bool:
    """A policy that is known refuses, or the last one's test does: policies are read in no order, so each is waited for."""
    refused = [each for each, action in CASES[case].objects if action in ("deny", "warn")]
    return not refused or any(
        any((answer.denied, *answer.warnings)) for answer in [server.ask(labelled(case, refused[-1]))]
    )


@pytest.fixture(scope="module")
def features(server: Server) -> Server:
    """A server with the policies of all cases in force."""
    for case in CASES:
        for each in policies_of(case):
            server.api.create(each)
    deadline = time.monotonic() + PATIENCE
    for case in CASES:
        while not is_in_force(server, case):
            assert time.monotonic() < deadline, f"the server does not hold to the policy of {case!r}"
    return server


@pytest.mark.parametrize("case", CASES)
def test_every_feature_of_a_policy_is_decided_as_the_server_decides_it(
    case: str, minor: str, features: Server
):
    court = court_of(minor, policies_of(case))
    assert [each.refusals for each in court.policies] == [[]]
    for manifest, expected in CASES[case].objects:
        asked = labelled(case, manifest)
        actions = agree(features.ask(asked), court, asked)
        assert expected in ("", actions[0] if actions else "pass"), asked


def template_of(claim: Manifest) -> Manifest:
    """A template from which a controller makes claims like one."""
    metadata = claim["metadata"]
    inner = {name: metadata[name] for name in ("labels", "annotations") if name in metadata}
    return {
        **claim,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": metadata["namespace"]},
        "spec": {"metadata": inner, "spec": claim["spec"]},
    }


@pytest.mark.parametrize(
    "case", [name for name, each in CASES.items() if each.spec["matchConstraints"] is ABOUT_CLAIMS]
)
def test_claims_of_templates_are_decided_as_those_that_their_controller_makes(
    case: str, minor: str, features: Server
):
    court = court_of(minor, policies_of(case))
    for manifest, _ in CASES[case].objects:
        like = labelled(case, manifest)
        annotations = {**like["metadata"].get("annotations", {}), POD_CLAIM_NAME: "gpu"}
        made = {
            **like,
            "metadata": {**like["metadata"], "generateName": "p-gpu-", "annotations": annotations},
        }
        del made["metadata"]["name"]
        heard = [*court.hear(template_of(like))]
        assert {path for path, _ in heard} <= {"spec.spec"}
        compare(features.ask(made, CONTROLLER), [decision for _, decision in heard])


def test_the_real_controller_is_refused_the_claim_as_we_tell_at_the_template(
    minor: str, binaries: Callable[[str], Path]
):
    case = "no message"
    like = labelled(case, {**TWO, "metadata": {"name": "c", "namespace": "default"}})
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "containers": [{"name": "a", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
    }
    with control_plane(minor, binaries=binaries) as plane, plane.api() as api:
        for each in policies_of(case):
            api.create(each)
        deadline = time.monotonic() + PATIENCE
        while not refusal(api, claims_path("v1", "default"), like):
            assert time.monotonic() < deadline, "the server does not hold to the policy"
        api.create(template_of(like))
        api.create(pod)
        events = api.wait_for(
            "v1/Event",
            lambda found: any(each["reason"] == "FailedResourceClaimCreation" for each in found),
            namespace="default",
        )
    ((path, decision),) = court_of(minor, policies_of(case)).hear(template_of(like))
    assert (path, decision.action) == ("spec.spec", "deny")
    assert any(decision.message in each["message"] for each in events)


def test_labels_that_a_workload_does_not_have_are_refused_there_and_here(minor: str, features: Server):
    spec = {
        "matchConstraints": rules("deployments", group="apps"),
        "validations": [validation("has(object.metadata.labels)", "no labels")],
    }
    policies = bound_policy("labels", spec, DENY)
    for each in policies:
        features.api.create(each)
    container = {"name": "a", "image": "i"}
    workload: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "plain"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    }
    deadline = time.monotonic() + PATIENCE
    while not (answer := features.ask(workload)).denied:
        assert time.monotonic() < deadline, "the server does not hold to the policy"
    assert agree(answer, court_of(minor, policies), workload) == ["deny"]


BROKEN = {
    "expression": (
        {"validations": [{"expression": "object.spec.devices.size() +"}]},
        "spec.validations[0].expression",
    ),
    "dyn": ({"validations": [{"expression": "object.spec.devices"}]}, "spec.validations[0].expression"),
    "bind": ({"validations": [{"expression": "cel.bind(a, 1, a == 1)"}]}, "spec.validations[0].expression"),
    "field": ({"validations": [{"expression": "request.object == null"}]}, "spec.validations[0].expression"),
    "params": ({"validations": [{"expression": "params == null"}]}, "spec.validations[0].expression"),
    "message": (
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        "spec.validations[0].messageExpression",
    ),
    "authorizer in a message": (
        {
            "validations": [
                {
                    "expression": "true",
                    "messageExpression": "string(authorizer.path('/').check('get').allowed())",
                }
            ]
        },
        "spec.validations[0].messageExpression",
    ),
    "variable": (
        {"variables": [{"name": "a", "expression": "variables.b"}], "validations": [{"expression": "true"}]},
        "spec.variables[0].expression",
    ),
    "condition": (
        {"matchConditions": [{"name": "a", "expression": "'x'"}], "validations": [{"expression": "true"}]},
        "spec.matchConditions[0].expression",
    ),
    "nothing": ({}, "spec.validations"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_policy_that_does_not_compile_is_refused_in_the_servers_words(
    case: str, minor: str, server: Server
):
    spec, path = BROKEN[case]
    written = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "broken"},
        "spec": {**CASES["no message"].spec, "validations": [], **spec},
    }
    group = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    told = refusal(server.api, group, written)
    (policy,) = court_of(minor, [written]).policies
    assert policy.refusals, told
    assert policy.refusals[0][0] == path
    for where, text in policy.refusals:
        assert where in told
        assert text in told


# --- The guardrails ----------------------------------------------------------------------------------------------


def guardrail_policies(minor: str) -> list[Manifest]:
    program = synth_function(guardrails, config={"dra-infra:kubernetes": minor})
    return [dict(each.manifest) for each in program.objects]


@pytest.fixture(scope="module")
def guarded(minor: str, features: Server) -> Server:
    """The same server with guardrails as well, which see every object."""
    for each in guardrail_policies(minor):
        features.api.create(each)
    deadline = time.monotonic() + PATIENCE
    while not all(refusal(features.api, path, made) for path, made in PROBES):
        assert time.monotonic() < deadline, "the server does not hold to the policies"
    return features


@pytest.fixture(scope="module")
def court(minor: str) -> Court:
    """The guardrails as we ask them."""
    return court_of(minor, guardrail_policies(minor))


def placed(manifest: Manifest, where: str) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": where}}


def of_kind(kind: str, version: str, devices: Manifest) -> Manifest:
    if version == "v1beta1" and "requests" in devices:
        devices = {**devices, "requests": flat_requests(devices["requests"])}
    spec: Manifest = {"devices": devices}
    return claim(version, {"spec": spec} if kind == "ResourceClaimTemplate" else spec) | {"kind": kind}


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("case", CLAIMS)
def test_guardrails_of_claims_are_decided_as_the_server_decides_them(
    case: str, kind: str, version: str, guarded: Server, court: Court
):
    where, requests, configs, expected = CLAIMS[case]
    devices = {name: each for name, each in (("requests", requests), ("config", configs)) if each}
    manifest = placed(of_kind(kind, version, devices), where)
    # Whoever asks for all devices also asks for too many, and the server tells of the first alone.
    actions = agree(guarded.ask(manifest), court, manifest)
    assert actions == (["deny"] * (2 if "allocationMode" in expected else 1) if expected else [])


@pytest.mark.parametrize("amounts", ["limits", "requests"])
@pytest.mark.parametrize("case", PODS)
def test_guardrails_of_pods_are_decided_as_the_server_decides_them(
    case: str, amounts: str, guarded: Server, court: Court
):
    where, kind, resource, expected = PODS[case]
    manifest = placed(pod(kind, resource, amounts), where)
    actions = agree(guarded.ask(manifest), court, manifest)
    assert actions == (["deny"] if expected else [])


@pytest.mark.parametrize("labels", [{ADMIN: "true"}, {ADMIN: "false"}, {"team": "x"}, {}])
def test_guardrails_of_namespaces_are_decided_as_the_server_decides_them(
    labels: dict[str, str], guarded: Server, court: Court
):
    manifest = namespace(labels)
    assert agree(guarded.ask(manifest), court, manifest) == (["deny"] if ADMIN in labels else [])


CLASSES = st.sampled_from(["h100", "mig.nvidia.com", "a100", "Not a name"])
LEAVES = st.fixed_dictionaries(
    {"deviceClassName": CLASSES},
    optional={
        "count": st.sampled_from([0, 1, 8, 9, 32, -1]),
        "allocationMode": st.sampled_from(["ExactCount", "All", "Other", ""]),
        "selectors": st.sampled_from([[], [{"cel": {"expression": "true"}}], [{"cel": {"expression": "1"}}]]),
        "tolerations": st.sampled_from([[], [{"operator": "Exists"}], [{"key": "a"}]]),
    },
)
EXACT = st.builds(
    lambda leaf, admin: {**leaf, **({} if admin is None else {"adminAccess": admin})},
    LEAVES,
    st.sampled_from([None, None, True, False]),
)
ALTERNATIVES = st.lists(LEAVES, max_size=3).map(
    lambda leaves: [{"name": f"l{number}", **each} for number, each in enumerate(leaves)]
)
REQUESTS = st.lists(
    st.one_of(
        EXACT.map(lambda leaf: {"exactly": leaf}), ALTERNATIVES.map(lambda found: {"firstAvailable": found})
    ),
    max_size=3,
).map(lambda found: [{"name": f"r{number}", **each} for number, each in enumerate(found)])
CONFIGS = st.lists(
    st.sampled_from(["gpu.example.com", "gpu.nvidia.com", "Not a driver"]).map(
        lambda driver: {"opaque": {"driver": driver, "parameters": {"kind": "X"}}}
    ),
    max_size=2,
)
WHERE = st.sampled_from(["vision", "speech", "monitoring"])
KEYS = st.sampled_from(
    [
        "nvidia.com/gpu",
        "deviceclass.resource.kubernetes.io/h100",
        "deviceclass.resource.kubernetes.io/a100",
        "cpu",
        "nvidia.com",
    ]
)
AMOUNTS = st.dictionaries(KEYS, st.sampled_from(["1", "2", 1, "1000m", "x"]), max_size=2)
CONTAINERS = st.lists(
    st.fixed_dictionaries({}, optional={"limits": AMOUNTS, "requests": AMOUNTS}), min_size=1, max_size=2
)


@settings(max_examples=150, database=None, deadline=None, derandomize=True)
@given(
    requests=REQUESTS,
    configs=CONFIGS,
    where=WHERE,
    kind=st.sampled_from(["ResourceClaim", "ResourceClaimTemplate"]),
    version=st.sampled_from(["v1", "v1beta1", "v1beta2"]),
)
def test_guardrails_of_made_up_claims_are_decided_as_the_server_decides_them(
    requests: list[Manifest],
    configs: list[Manifest],
    where: str,
    kind: str,
    version: str,
    guarded: Server,
    court: Court,
):
    manifest = placed(of_kind(kind, version, {"requests": requests, "config": configs}), where)
    assert "undecided" not in agree(guarded.ask(manifest), court, manifest)


@settings(max_examples=150, database=None, deadline=None, derandomize=True)
@given(containers=CONTAINERS, init=st.lists(CONTAINERS, max_size=1), where=WHERE)
def test_guardrails_of_made_up_pods_are_decided_as_the_server_decides_them(
    containers: list[Manifest], init: list[list[Manifest]], where: str, guarded: Server, court: Court
):
    def made(found: list[Manifest], prefix: str) -> list[Manifest]:
        return [{"name": f"{prefix}{n}", "image": "i", "resources": each} for n, each in enumerate(found)]

    spec: Manifest = {"containers": made(containers, "c")}
    if init:
        spec["initContainers"] = made(init[0], "i")
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": where},
        "spec": spec,
    }
    answer = guarded.ask(manifest)
    if answer.refused and not answer.denied:
        # Rules of pods themselves are the server's, which asks no policy about what breaks them.
        return
    assert "undecided" not in agree(answer, court, manifest)
