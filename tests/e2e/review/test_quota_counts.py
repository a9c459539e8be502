"""What the review counts for quotas, and what the real quota controller and the real API server count."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from dra_infra.kubernetes.apiserver import QuotaKey, Quotas, count_claim, read_hard
from tools.cluster import Api
from tools.cluster.api import PATIENCE, ApiError

pytestmark = pytest.mark.e2e

QUOTA = "v1/ResourceQuota"
CLASS = "quota-counted"
OTHER = "quota-other"
EXTENDED = "example.com/quota-gpu"
KEYS = (
    QuotaKey.CLAIMS,
    f"{CLASS}.deviceclass.resource.k8s.io/devices",
    f"{OTHER}.deviceclass.resource.k8s.io/devices",
    f"requests.{EXTENDED}",
    f"requests.deviceclass.resource.kubernetes.io/{CLASS}",
)
FORMS: dict[str, list[dict[str, Any]]] = {
    "default": [{"name": "a", "exactly": {"deviceClassName": CLASS}}],
    "counts": [
        {"name": "a", "exactly": {"deviceClassName": CLASS, "count": 3}},
        {"name": "b", "exactly": {"deviceClassName": OTHER, "count": 2}},
    ],
    "all": [{"name": "a", "exactly": {"deviceClassName": CLASS, "allocationMode": "All"}}],
    "ladder": [
        {
            "name": "a",
            "firstAvailable": [
                {"name": "x", "deviceClassName": CLASS, "count": 2},
                {"name": "y", "deviceClassName": CLASS, "count": 5},
                {"name": "z", "deviceClassName": OTHER, "count": 1},
            ],
        }
    ],
    "admin": [{"name": "a", "exactly": {"deviceClassName": CLASS, "adminAccess": True}}],
}


@pytest.fixture(scope="module")
def classes(api: Api) -> Iterator[None]:
    """Two classes, of which one has an extended resource name."""
    for name, spec in ((CLASS, {"extendedResourceName": EXTENDED}), (OTHER, {})):
        api.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
    yield
    for name in (CLASS, OTHER):
        api.delete("resource.k8s.io/v1/DeviceClass", name)


_numbers = itertools.count(1)


@pytest.fixture
def namespace(api: Api, classes: None) -> str:
    """A namespace of this test, in which admin access is allowed."""
    name = f"quota-{next(_numbers)}"
    labels = {"resource.kubernetes.io/admin-access": "true"}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    return name


def create_quota(api: Api, namespace: str, hard: dict[str, int], **spec: Any) -> None:
    written = {key: str(limit) for key, limit in hard.items()}
    metadata = {"name": "team", "namespace": namespace}
    api.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": written, **spec}}
    )
    api.wait_until(
        QUOTA, "team", lambda quota: bool(quota.get("status", {}).get("used")), namespace=namespace
    )
    if not spec:
        wait_in_force(api, namespace, hard[KEYS[1]])


def wait_in_force(api: Api, namespace: str, limit: int) -> None:
    """Wait until a claim beyond the quota is refused.

    The server's admission follows quotas by a watch of its own. What is created before it has seen one is counted when the
    controller counts everything anew, five minutes later.
    """
    beyond = [{"name": "a", "exactly": {"deviceClassName": CLASS, "count": limit + 1}}]
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            create_claim(api, namespace, beyond, dry_run=True)
        except ApiError as error:
            if "exceeded quota" in str(error):
                return
            if "status unknown" not in str(error):
                raise
        assert time.monotonic() < deadline
        time.sleep(0.02)


def create_claim(
    api: Api, namespace: str, requests: list[dict[str, Any]], name: str = "c", *, dry_run: bool = False
) -> dict[str, Any]:
    spec = {"devices": {"requests": requests}}
    metadata = {"name": name, "namespace": namespace}
    api.create(
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec},
        dry_run=dry_run,
    )
    return spec


@pytest.mark.parametrize("form", FORMS)
def test_claims_count_what_the_server_counts(api: Api, namespace: str, form: str) -> None:
    create_quota(api, namespace, dict.fromkeys(KEYS, 100))
    spec = create_claim(api, namespace, FORMS[form])
    expected = count_claim(spec, {CLASS: EXTENDED}, bridged=True)
    quota = api.wait_until(
        QUOTA, "team", lambda each: each["status"]["used"][QuotaKey.CLAIMS] == "1", namespace=namespace
    )
    used = {key: int(value) for key, value in quota["status"]["used"].items()}
    assert used == {key: expected[key] for key in KEYS}


def test_a_claim_beyond_the_quota_is_refused(api: Api, namespace: str) -> None:
    create_quota(api, namespace, {KEYS[1]: 4})
    create_claim(api, namespace, FORMS["counts"])
    with pytest.raises(ApiError, match="exceeded quota"):
        create_claim(api, namespace, FORMS["counts"], name="d")


def test_a_quota_with_scopes_bounds_no_claim(api: Api, namespace: str) -> None:
    create_quota(api, namespace, {KEYS[1]: 0}, scopes=["NotTerminating"])
    create_claim(api, namespace, FORMS["counts"])
    quota = api.get(QUOTA, "team", namespace=namespace)
    assert read_hard(quota) == {}
    assert quota["status"]["used"][KEYS[1]] == "0"


def test_claims_count_under_the_implicit_name_of_a_class_without_another_one(
    api: Api, namespace: str
) -> None:
    key = f"requests.deviceclass.resource.kubernetes.io/{OTHER}"
    spec = create_claim(api, namespace, FORMS["counts"])
    # Made after the claim, the quota is counted as a whole before it has a status.
    metadata = {"name": "team", "namespace": namespace}
    hard = {"hard": {key: "4", "pods": "50"}}
    api.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": hard})
    quota = api.wait_until(
        QUOTA, "team", lambda each: bool(each.get("status", {}).get("used")), namespace=namespace
    )
    assert int(quota["status"]["used"][key]) == count_claim(spec, {CLASS: EXTENDED}, bridged=True)[key] == 2


@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_a_quota_on_limits_refuses_the_pods_that_the_server_refuses(api: Api, namespace: str, name: str):
    create_quota(api, namespace, {f"limits.{name}": 4, KEYS[1]: 5})
    quotas = Quotas([api.get(QUOTA, "team", namespace=namespace)])
    refused: list[bool] = []
    for resources in ({}, {"requests": {name: "1"}}, {"limits": {name: "1"}}):
        spec = {
            "containers": [{"name": "main", "image": "registry.example.com/main:1", "resources": resources}]
        }
        metadata = {"name": "p", "namespace": namespace}
        said = ""
        try:
            api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, dry_run=True)
        except ApiError as error:
            said = str(error)
        refused.append(f"must specify limits.{name}" in said)
        assert bool(said) == refused[-1] == bool(quotas.find_unset(namespace, spec)), said
    assert refused == [True, True, False]
