from __future__ import annotations

from typing import Any

import pytest

from dra_infra.program_objects import UNKNOWN
from dra_infra.review.changes import find_immutable_fields

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
        ("batch/v1/Job", {"spec": {"template": 1, "suspend": True}}, {"spec": {"template": 2}}, ()),
        ("v1/ConfigMap", {"data": 1}, {"data": 2}, ()),
        ("v1/ConfigMap", {"data": 1, "immutable": True}, {"data": 2, "immutable": True}, ("data",)),
        ("v1/Secret", {"type": "a"}, {"type": "b"}, ("type",)),
        ("v1/Pod", {"spec": {"nodeName": "a"}}, {"spec": {"nodeName": "b"}}, ("spec.nodeName",)),
        ("v1/Pod", {"spec": {"containers": []}}, {"spec": {"containers": [1]}}, ()),
        ("resource.k8s.io/v1/ResourceClaim", {"spec": 1}, {"spec": 2}, ("spec",)),
        ("resource.k8s.io/v1/DeviceClass", {"spec": 1}, {"spec": 2}, ()),
        ("batch/v1/Job", {"spec": {"template": UNKNOWN}}, {"spec": {"template": 2}}, ()),
    ],
)
def test_fields_that_never_change_are_found(
    kind: str, before: dict[str, Any], after: dict[str, Any], fields: tuple[str, ...]
):
    api = kind.removeprefix("v1/") if kind.startswith("v1/") else kind
    assert find_immutable_fields(manifest(api, **before), manifest(api, **after)) == fields
