"""The metadata inside a claim template: what counts as set."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.kubernetes.apiserver import judge
from dra_infra.target import ClusterTarget


def errors_of(metadata, minor):
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"metadata": metadata, "spec": {"devices": {"requests": [request]}}},
    }
    verdict = judge(template, ClusterTarget(kubernetes=minor).releases[0])
    return [(error.path, error.rule) for error in verdict.errors]


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("finalizers", [], "finalizers"),
        ("finalizers", ["a.example.com/b"], "finalizers"),
        ("ownerReferences", [], "ownerReferences"),
        ("managedFields", [], "managedFields"),
        ("deletionGracePeriodSeconds", 0, "deletionGracePeriodSeconds"),
        ("deletionGracePeriodSeconds", 30, "deletionGracePeriodSeconds"),
        ("creationTimestamp", "2026-01-02T03:04:05Z", "creationTimestamp"),
        ("name", "a", "name"),
        ("namespace", "a", "namespace"),
        ("uid", "a", "uID"),
        ("generation", 1, "generation"),
    ],
)
def test_a_field_that_is_set_is_refused_even_with_nothing_in_it(field, value, name, minor):
    assert errors_of({field: value}, minor) == [(f"spec.metadata.{name}", "template.metadata")]


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
@pytest.mark.parametrize(
    "metadata",
    [
        {"finalizers": None, "ownerReferences": None, "managedFields": None},
        {"deletionGracePeriodSeconds": None, "creationTimestamp": None},
        {"name": "", "generateName": "", "namespace": "", "uid": "", "resourceVersion": "", "selfLink": ""},
        {"generation": 0},
        {"labels": {}, "annotations": {}},
    ],
)
def test_what_go_cannot_tell_from_an_absent_field_is_accepted(metadata, minor):
    assert errors_of(metadata, minor) == []
