"""Fields change hands on the first update, and nothing else does."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tools.kubernetes_provider.field_managers import must_force_preview, plan_takeover

OWN = "pulumi-kubernetes-01234567"

field_sets = st.recursive(
    st.just({}), lambda inner: st.dictionaries(st.sampled_from(["f:a", "f:b", "f:c"]), inner, max_size=3)
)


def entry(manager: str, operation: str, fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields, **more}


def live(*entries: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "map", "resourceVersion": "7", "managedFields": list(entries)},
    }


def leaves(fields: dict[str, Any], prefix: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    found = {prefix} if prefix else set()
    return found.union(*(leaves(below, (*prefix, step)) for step, below in fields.items()))


@given(field_sets, field_sets, field_sets)
def test_the_new_owner_has_exactly_the_fields_of_all_it_inherits(
    created: dict[str, Any], applied: dict[str, Any], kubectl: dict[str, Any]
) -> None:
    patch = plan_takeover(
        live(
            entry("pulumi-kubernetes", "Update", created),
            entry(OWN, "Apply", applied),
            entry("kubectl", "Update", kubectl),
        ),
        OWN,
    )

    (united,) = patch[0]["value"]
    assert (united["manager"], united["operation"]) == (OWN, "Apply")
    assert leaves(united["fieldsV1"]) == leaves(created) | leaves(applied) | leaves(kubectl)


def test_other_managers_and_subresources_keep_their_fields() -> None:
    other = entry("other", "Apply", {"f:a": {}})
    status = entry("kubectl", "Update", {"f:status": {}}, subresource="status")

    patch = plan_takeover(live(other, entry("pulumi-kubernetes", "Update", {"f:b": {}}), status), OWN)

    assert patch[0]["value"][1:] == [other, status]


def test_managers_of_kubectl_count_by_the_beginning_of_their_names() -> None:
    applied = entry("kubectl-client-side-apply", "Update", {"f:a": {}})
    server_side = entry("kubectl", "Apply", {"f:b": {}})
    beside = entry("kubectl-edit", "Apply", {"f:c": {}}), entry("my-kubectl", "Update", {"f:d": {}})

    patch = plan_takeover(live(applied, server_side, *beside), OWN)

    united, *others = patch[0]["value"]
    assert leaves(united["fieldsV1"]) == {("f:a",), ("f:b",), ("f:c",)}
    assert others == [beside[1]]


def test_the_takeover_holds_for_the_version_that_was_read_only() -> None:
    patch = plan_takeover(live(entry("pulumi-kubernetes", "Update", {})), OWN)

    assert patch[1] == {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_without_an_inheritance_there_is_nothing_to_do() -> None:
    assert plan_takeover(live(entry(OWN, "Apply", {"f:a": {}}), entry("other", "Update", {})), OWN) == []


def test_a_preview_is_forced_only_while_the_creator_still_owns_fields() -> None:
    assert must_force_preview(live(entry("pulumi-kubernetes", "Update", {})))
    assert must_force_preview(live())
    assert not must_force_preview(live(entry(OWN, "Apply", {}), entry("other", "Update", {})))
