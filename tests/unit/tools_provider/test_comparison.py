"""The answer to Diff: replacement, its order, and namespaces."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2

from tools.kubernetes_provider.comparison import compare
from tools.kubernetes_provider.options import Options
from tools.kubernetes_provider.replacement import REPLACING, replacing_fields
from tools.kubernetes_provider.resource_types import AUTONAMED, GroupVersionKind, parse_token
from tools.kubernetes_provider.values import UNKNOWN

CONFIG_MAP = parse_token("kubernetes:core/v1:ConfigMap")
DIFF = provider_pb2.PropertyDiff


def config_map(data: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "map", "namespace": "ml", **metadata}, "data": {"key": data}}


def difference(
    old: dict[str, Any], new: dict[str, Any], *, kind: GroupVersionKind = CONFIG_MAP, namespaced: bool = True
) -> provider_pb2.DiffResponse:
    return compare(
        kind, old_inputs=old, old_object=old, new_inputs=new, namespaced=namespaced, options=Options()
    )


def test_equal_inputs_are_no_change() -> None:
    response = difference(config_map("a"), config_map("a"))

    assert response.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_a_named_object_is_deleted_before_its_replacement() -> None:
    response = difference(config_map("a"), config_map("b"))

    assert response.deleteBeforeReplace
    assert list(response.replaces) == ["data.key"]
    assert response.detailedDiff["data.key"] == DIFF(kind=DIFF.UPDATE_REPLACE, inputDiff=False)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {AUTONAMED: "true"}}, id="automatic name"),
        pytest.param({"name": "other"}, id="other name"),
        pytest.param({"namespace": "other"}, id="other namespace"),
        pytest.param({"name": UNKNOWN}, id="name not known yet"),
    ],
)
def test_a_replacement_elsewhere_is_created_first(metadata: dict[str, Any]) -> None:
    response = difference(config_map("a"), config_map("b", **metadata))

    assert response.replaces
    assert not response.deleteBeforeReplace


def test_a_change_in_place_never_deletes_first() -> None:
    response = difference(config_map("a"), config_map("a", labels={"new": "1"}))

    assert response.changes == provider_pb2.DiffResponse.DIFF_SOME
    assert not response.deleteBeforeReplace


def test_no_namespace_is_the_default_one() -> None:
    implicit = {"metadata": {"name": "map"}}
    explicit = {"metadata": {"name": "map", "namespace": "default"}}

    assert difference(implicit, explicit).changes == provider_pb2.DiffResponse.DIFF_NONE


def test_cluster_scoped_kinds_have_no_namespace() -> None:
    erroneous = {"metadata": {"name": "class", "namespace": "default"}}
    right = {"metadata": {"name": "class"}}

    response = difference(erroneous, right, namespaced=False)

    assert response.changes == provider_pb2.DiffResponse.DIFF_NONE


def test_texts_of_a_secret_are_compared_as_its_data() -> None:
    before = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"key": "one"}}
    kind = parse_token("kubernetes:core/v1:Secret")

    changed = difference(before, {**before, "stringData": {"key": "two"}}, kind=kind)
    encoded = difference(before, {**before, "stringData": {}, "data": {"key": "b25l"}}, kind=kind)

    assert (list(changed.detailedDiff), list(changed.replaces)) == (["data.key"], ["data.key"])
    assert list(encoded.detailedDiff) == []


def test_only_what_is_gone_is_compared_with_the_old_inputs() -> None:
    response = difference(config_map("a", labels={"gone": "1"}), config_map("a"))

    assert response.detailedDiff["metadata.labels"] == DIFF(kind=DIFF.DELETE, inputDiff=True)


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"])
def test_kinds_of_dynamic_resource_allocation_are_not_on_the_list(kind: str) -> None:
    response = compare(
        parse_token(f"kubernetes:resource.k8s.io/v1:{kind}"),
        old_inputs={"metadata": {"name": "a"}, "spec": {"a": 1}},
        old_object={"metadata": {"name": "a"}},
        new_inputs={"metadata": {"name": "a"}, "spec": {"a": 2}},
        namespaced=True,
        options=Options(),
    )

    assert list(response.replaces) == []
    assert response.detailedDiff["spec.a"].kind == DIFF.UPDATE


def test_claims_of_pods_are_not_on_the_list() -> None:
    assert "spec.resourceClaims" not in REPLACING["v1/Pod"].split()
    assert "spec.containers.*.resources" in REPLACING["v1/Pod"].split()


@pytest.mark.parametrize(("immutable", "mutable", "replaces"), [(False, True, False), (True, True, True)])
def test_an_immutable_config_map_is_replaced_even_where_others_are_not(
    immutable: bool, mutable: bool, replaces: bool
) -> None:
    fields = replacing_fields(
        CONFIG_MAP, immutable=immutable, config_maps_mutable=mutable, secrets_mutable=False
    )

    assert (("data",) in fields) is replaces
