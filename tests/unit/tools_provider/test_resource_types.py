"""Type tokens, IDs and names."""

from __future__ import annotations

import re

import pytest

from tools.kubernetes_provider.checks import Finding, NameSource, complete, find_problems
from tools.kubernetes_provider.resource_types import (
    AUTONAMED,
    UnsupportedTypeError,
    field_manager,
    format_id,
    is_known_without_namespace,
    parse_id,
    parse_token,
    random_name,
)
from tools.kubernetes_provider.values import UNKNOWN, Secret

CLAIM = parse_token("kubernetes:resource.k8s.io/v1:ResourceClaim")
TYPED = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}


def source(*, proposed: str = "", disabled: bool = False) -> NameSource:
    return NameSource(resource="claim", seed=b"seed", proposed=proposed, disabled=disabled)


@pytest.mark.parametrize(
    ("token", "api_version", "kind"),
    [
        ("kubernetes:core/v1:Pod", "v1", "Pod"),
        ("kubernetes:apps/v1:Deployment", "apps/v1", "Deployment"),
        ("kubernetes:resource.k8s.io/v1beta2:DeviceClass", "resource.k8s.io/v1beta2", "DeviceClass"),
        (
            "kubernetes:rbac.authorization.k8s.io/v1:Role",
            "rbac.authorization.k8s.io/v1",
            "Role",
        ),
    ],
)
def test_a_token_names_a_kind(token: str, api_version: str, kind: str) -> None:
    parsed = parse_token(token)

    assert (parsed.api_version, parsed.kind) == (api_version, kind)


@pytest.mark.parametrize(
    "token",
    [
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:helm.sh/v4:Chart",
        "kubernetes:yaml/v2:ConfigGroup",
        "kubernetes:kustomize/v2:Directory",
        "kubernetes:core/v1:NamespacePatch",
        "kubernetes:core/v1:ConfigMapList",
        "aws:s3/bucket:Bucket",
        "kubernetes:core/v1/v2:Pod",
    ],
)
def test_a_token_of_something_else_is_refused_by_name(token: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=re.escape(token)):
        parse_token(token)


@pytest.mark.parametrize("resource_id", ["ml/claim", "class"])
def test_an_id_reads_back(resource_id: str) -> None:
    namespace, name = parse_id(resource_id)

    assert format_id({"metadata": {"namespace": namespace, "name": name}}) == resource_id


def test_random_names_depend_on_the_engines_seed_only() -> None:
    assert random_name("claim", b"1") == random_name("claim", b"1")
    assert random_name("claim", b"1") != random_name("claim", b"2")
    assert re.fullmatch(r"claim-[0-9a-f]{8}", random_name("claim", b""))


@pytest.mark.parametrize(
    ("token", "known"),
    [
        ("kubernetes:core/v1:Namespace", True),
        ("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole", True),
        ("kubernetes:core/v1:ConfigMap", False),
        ("kubernetes:resource.k8s.io/v1:DeviceClass", False),
        ("kubernetes:acme.example/v1:Node", False),
    ],
)
def test_a_few_kinds_are_at_cluster_scope_without_a_server_to_ask(token: str, known: bool) -> None:
    assert is_known_without_namespace(parse_token(token)) is known


def test_a_field_manager_is_the_vendors_prefix_and_eight_digits() -> None:
    assert re.fullmatch(r"pulumi-kubernetes-[0-9a-f]{8}", field_manager("urn:pulumi:a::b::c::d"))


def test_a_name_is_made_up_and_marked() -> None:
    made = complete(TYPED, {}, source(), find_default_namespace=lambda: "")

    assert made["metadata"]["name"].startswith("claim-")
    assert made["metadata"]["annotations"] == {AUTONAMED: "true"}


def test_a_proposed_name_wins() -> None:
    made = complete(TYPED, {}, source(proposed="verbatim"), find_default_namespace=lambda: "")

    assert made["metadata"]["name"] == "verbatim"


def test_an_automatic_name_is_kept() -> None:
    old = {"metadata": {"name": "claim-old", "annotations": {AUTONAMED: "true"}}}

    made = complete(TYPED, old, source(), find_default_namespace=lambda: "")

    assert made["metadata"] == old["metadata"]


def test_a_chosen_name_that_leaves_the_program_is_not_kept() -> None:
    made = complete(TYPED, {"metadata": {"name": "chosen"}}, source(), find_default_namespace=lambda: "")

    assert made["metadata"]["name"].startswith("claim-")


@pytest.mark.parametrize("metadata", [UNKNOWN, {"name": UNKNOWN}, {"name": "chosen"}])
def test_a_name_of_the_program_is_left_alone(metadata: object) -> None:
    inputs = {**TYPED, "metadata": metadata}

    assert complete(inputs, {}, source(), find_default_namespace=lambda: "") == inputs


def test_a_namespace_is_added_where_there_is_none() -> None:
    inputs = {**TYPED, "metadata": {"name": "a"}}

    made = complete(inputs, {}, source(), find_default_namespace=lambda: "default")

    assert made["metadata"] == {"name": "a", "namespace": "default"}


def test_secret_inputs_stay_secret() -> None:
    inputs = {**TYPED, "spec": {"key": Secret("hush")}}

    made = complete(inputs, {}, source(), find_default_namespace=lambda: "default")

    assert made["spec"] == {"key": Secret("hush")}


@pytest.mark.parametrize(
    ("inputs", "path"),
    [
        pytest.param({"kind": "ResourceClaim"}, "apiVersion", id="apiVersion missing"),
        pytest.param({**TYPED, "kind": "Pod"}, "kind", id="kind of another token"),
        pytest.param(
            {**TYPED, "metadata": {"generateName": "a-"}}, "metadata.generateName", id="generated name"
        ),
        pytest.param(
            {**TYPED, "metadata": {"annotations": {"pulumi.com/waitFor": "condition=Ready"}}},
            'metadata.annotations["pulumi.com/waitFor"]',
            id="annotation that is not supported",
        ),
    ],
)
def test_what_cannot_be_honoured_is_a_problem(inputs: dict[str, object], path: str) -> None:
    assert [problem.path for problem in find_problems(CLAIM, inputs, source())] == [path]


def test_a_name_is_required_when_automatic_ones_are_forbidden() -> None:
    assert find_problems(CLAIM, TYPED, source(disabled=True)) == (
        Finding("metadata.name", "is required: pulumi:autonaming is disabled"),
    )
