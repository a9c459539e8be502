"""Errors that a server reports at one path with one code: all of them are told, on every release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.advice.objects import validate
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.kubernetes.apiserver import judge
from dra_infra.target import ClusterTarget

API = "resource.k8s.io/v1"


def a_slice(device: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A slice with one device."""
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    given_spec = {
        "driver": "dra.example.com",
        "nodeName": "n1",
        "pool": pool,
        "devices": [{"name": "d", **device}],
    }
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {**given_spec, **spec},
    }


def a_claim(metadata: dict[str, Any] | None = None, **devices: Any) -> dict[str, Any]:
    """A claim with one request."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ml", **(metadata or {})},
        "spec": {"devices": {"requests": requests, **devices}},
    }


BAD_NAMES = ("numa-1", "socket-2", "a b", "9x")


def _attributes(number: int) -> dict[str, Any]:
    return a_slice({"attributes": {name: {"int": 1} for name in BAD_NAMES[:number]}})


def _capacity(number: int) -> dict[str, Any]:
    return a_slice({"capacity": {name: {"value": "1"} for name in BAD_NAMES[:number]}})


def _label_keys(number: int) -> dict[str, Any]:
    return a_claim({"labels": {f"bad key {at}": "x" for at in range(number)}})


def _label_values(number: int) -> dict[str, Any]:
    return a_claim({"labels": {f"key-{at}": f"not valid {at}!" for at in range(number)}})


def _annotations(number: int) -> dict[str, Any]:
    return a_claim({"annotations": {f"bad key {at}": "x" for at in range(number)}})


KINDS: Sequence[Callable[[int], dict[str, Any]]] = (
    _attributes,
    _capacity,
    _label_keys,
    _label_values,
    _annotations,
)


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
@pytest.mark.parametrize("number", [1, 2, 3, 4])
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_each_bad_key_is_told(make: Callable[[int], dict[str, Any]], number: int, minor: str):
    assert len(validate([make(number)], ClusterTarget(kubernetes=minor))) == number


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_several_releases_tell_each_bad_key_once(make: Callable[[int], dict[str, Any]], number: int):
    found = validate([make(number)], ClusterTarget())
    assert len(found) == number
    assert not any(each.message.startswith("on Kubernetes") for each in found)


@given(
    labels=st.dictionaries(
        st.text("ab -/_.", min_size=1, max_size=5), st.text("ab !_.", max_size=5), max_size=6
    ),
    names=st.lists(st.text("a1-_. ", min_size=1, max_size=4), max_size=5, unique=True),
)
def test_one_release_tells_as_many_errors_as_its_server(labels: dict[str, str], names: list[str]):
    attributes = a_slice({"attributes": {name: {"int": 1} for name in names}})
    for manifest in (a_claim({"labels": labels}), attributes):
        for minor in SUPPORTED_MINORS:
            (release,) = ClusterTarget(kubernetes=minor).releases
            # ErrorList.ToAggregate tells equal messages once.
            errors = {(each.path, each.message) for each in judge(manifest, release).errors}
            told = [
                each
                for each in validate([manifest], ClusterTarget(kubernetes=minor))
                if each.severity == "error"
            ]
            assert len(told) == len(errors)
