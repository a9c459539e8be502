"""The roles of personas on the real API servers, each tried as the person: what a role says may be done, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from tests.support.components.rights import DRA, MAY, ROWS, Asked, attributes_of
from tools.cluster import Api, ApiError
from tools.cluster.api import PATIENCE

pytestmark = pytest.mark.e2e

DRIVER = "gpu.acme.example"
GROUPS = {
    "platform-admin": "platform",
    "on-call": "sre",
    "reader": "ci",
    "driver": "acme",
    "team-lead": "vision-leads",
    "developer": "vision",
}
NAMESPACES = {"own": "vision", "other": "speech", "cluster": ""}


def company() -> None:
    """The roles, bound to a group each, and two tenants."""
    bound = {persona: [f"group:{GROUPS[persona]}"] for persona in ("platform-admin", "on-call", "reader")}
    roles = dra.GpuRoles("gpus", members=bound, drivers={DRIVER: [f"group:{GROUPS['driver']}"]})
    members = {persona: [f"group:{GROUPS[persona]}"] for persona in ("team-lead", "developer")}
    dra.GpuTenant("vision", quota={"h100": 1}, roles=roles, members=members)
    dra.GpuTenant("speech", roles=roles)


@pytest.fixture(scope="module")
def api(minor: str, server: Api) -> Api:
    """A server that has the objects of the company."""
    program = synth_function(company, config={"dra-infra:kubernetes": minor})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    manifests = [each.manifest for each in program.objects]
    for manifest in sorted(manifests, key=lambda each: each["kind"] != "Namespace"):
        server.create(manifest)
    return server


def may(api: Api, asked: Asked) -> bool:
    """The answer of the server's authorizer to a member of the persona's group."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {
            "user": "somebody",
            "groups": [GROUPS[asked.persona]],
            "resourceAttributes": attributes_of(asked, NAMESPACES),
        },
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
    return bool(answer["status"]["allowed"])


def as_member(persona: str) -> dict[str, str]:
    """The headers by which an administrator acts as a member of the persona's group."""
    return {"Impersonate-User": "somebody", "Impersonate-Group": GROUPS[persona]}


METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


def gets(api: Api, asked: Asked) -> bool:
    """What becomes of a request as a member of the persona's group for an object that is not there: refused, or looked for."""
    resource, _, sub = asked.resource.partition("/")
    namespace = NAMESPACES[asked.place]
    is_of_all = asked.verb in ("list", "watch") or (asked.verb == "create" and not sub)
    steps = [
        f"apis/{asked.group}/v1" if asked.group else "api/v1",
        *(["namespaces", namespace] if namespace else []),
    ]
    path = "/".join([*steps, resource, *([] if is_of_all else ["nobody"]), *([sub] if sub else [])])
    # A watch from a version that is none ends at once; nothing that is written is stored.
    params = {"watch": "true", "resourceVersion": "none"} if asked.verb == "watch" else {"limit": "1"}
    kind = "merge-patch+json" if asked.verb == "patch" else "json"
    is_written = asked.verb in METHODS
    response = api._client.request(
        METHODS.get(asked.verb, "GET"),
        f"/{path}",
        params={"dryRun": "All"} if is_written else params,
        content="{}" if is_written else None,
        headers={**as_member(asked.persona), "Content-Type": f"application/{kind}"},
    )
    refusal = f'User "somebody" cannot {asked.verb} resource "{asked.resource}"'
    assert response.status_code != 403 or "cannot" in response.text
    return not (response.status_code == 403 and refusal in response.json()["message"])


def create_as(api: Api, persona: str, path: str, manifest: Mapping[str, Any]) -> int:
    """The status of an attempt to make an object, which is not stored."""
    try:
        api.request("POST", path, json=dict(manifest), params={"dryRun": "All"}, headers=as_member(persona))
    except ApiError as error:
        return error.status
    return 201


def test_each_persona_may_do_what_the_table_says_and_nothing_else(api: Api):
    wrong = [each for each in ROWS if may(api, each) != each.is_expected]
    assert wrong == []
    assert sum(each.is_expected for each in ROWS) > 100


def test_each_persona_gets_by_its_own_requests_what_the_table_says_and_nothing_else(api: Api):
    # A list of a subresource is no request that anybody can make.
    asked = [each for each in ROWS if "/" not in each.resource or each.verb not in ("list", "watch")]
    wrong = [each for each in asked if gets(api, each) != each.is_expected]
    assert wrong == []
    assert len(asked) > 1000
    assert api.list("resource.k8s.io/v1/ResourceClaim") == []


def test_every_role_of_the_catalogue_is_in_the_table(api: Api):
    roles = {each["metadata"]["name"] for each in api.list("rbac.authorization.k8s.io/v1/ClusterRole")}
    ours = {
        name.removeprefix("gpus-").partition(f"-{DRIVER}")[0] for name in roles if name.startswith("gpus-")
    }
    # What everybody in a tenant is besides.
    assert ours == {*MAY, "device-reader"}


def test_a_driver_may_change_its_own_devices_in_a_status_where_servers_ask_by_name(api: Api, minor: str):
    def allowed(driver: str) -> bool:
        attributes = {
            "verb": "associated-node:patch",
            "group": DRA,
            "resource": "resourceclaims",
            "subresource": "driver",
            "name": driver,
            "namespace": "vision",
        }
        spec = {"user": "somebody", "groups": [GROUPS["driver"]], "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
        return bool(answer["status"]["allowed"])

    assert allowed(DRIVER) == (minor in ("1.36", "1.37"))
    assert not allowed("gpu.other.example")


def test_people_who_act_get_what_their_role_says(api: Api):
    claim = {
        "apiVersion": f"{DRA}/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "mine"},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "other"}}]}},
    }
    claims = f"/apis/{DRA}/v1/namespaces/{{}}/resourceclaims"
    assert create_as(api, "team-lead", claims.format("vision"), claim) == 201
    assert create_as(api, "team-lead", claims.format("speech"), claim) == 403
    assert create_as(api, "developer", claims.format("vision"), claim) == 403


def test_nobody_of_a_team_can_give_their_namespace_admin_access(api: Api):
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    for persona in ("team-lead", "developer", "on-call", "reader", "driver"):
        headers = {**as_member(persona), "Content-Type": "application/merge-patch+json"}
        with pytest.raises(ApiError) as refused:
            api.request("PATCH", "/api/v1/namespaces/vision", json=label, headers=headers)
        assert refused.value.status == 403


def test_what_passes_the_quota_of_a_tenant_is_refused_by_the_server(api: Api):
    requests = [{"name": "a", "exactly": {"deviceClassName": "h100", "count": 2}}]
    claim = {
        "apiVersion": f"{DRA}/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "two", "namespace": "vision"},
        "spec": {"devices": {"requests": requests}},
    }
    # Nothing counts the quota on a server by itself, so its status is what the controller would have written.
    hard = api.get("v1/ResourceQuota", "vision", namespace="vision")["spec"]["hard"]
    used = {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}
    api.patch("v1/ResourceQuota", "vision", used, namespace="vision", subresource="status")
    path = f"/apis/{DRA}/v1/namespaces/vision/resourceclaims"
    # The server reads quotas from a cache, which follows.
    deadline = time.monotonic() + PATIENCE
    while create_as(api, "team-lead", path, claim) == 201:
        assert time.monotonic() < deadline, "the server lets pass what the quota does not"
    with pytest.raises(ApiError, match="exceeded quota: vision, requested: h100") as refused:
        api.request("POST", path, json=claim, headers=as_member("team-lead"))
    assert refused.value.status == 403
