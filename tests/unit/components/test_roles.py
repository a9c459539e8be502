from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from tests.support.components.family import run

DRIVER = "gpu.acme.example"


def objects(body: Callable[[], Any], kubernetes: str = "1.37") -> dict[tuple[str, str], Any]:
    program = synth_function(body, config={"dra-infra:kubernetes": kubernetes})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return {
        (each.manifest["kind"], each.manifest["metadata"]["name"]): each.manifest for each in program.objects
    }


def problems(body: Callable[[], Any]) -> list[tuple[str, str]]:
    found = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
    return [(each.code, each.path) for each in found if each.severity == "error"]


def test_members_are_users_groups_and_service_accounts():
    subjects = ["user:alice@example.com", "group:oidc:sre", "serviceaccount:ci/runner"]
    made = objects(lambda: dra.GpuRoles("gpus", members={"reader": subjects}))
    group = "rbac.authorization.k8s.io"
    bound = made["ClusterRoleBinding", "gpus-reader"]
    assert bound["subjects"] == [
        {"kind": "User", "apiGroup": group, "name": "alice@example.com"},
        {"kind": "Group", "apiGroup": group, "name": "oidc:sre"},
        {"kind": "ServiceAccount", "name": "runner", "namespace": "ci"},
    ]
    assert bound["roleRef"] == {"apiGroup": group, "kind": "ClusterRole", "name": "gpus-reader"}
    assert [name for kind, name in made if kind == "ClusterRoleBinding"] == ["gpus-reader"]


@pytest.mark.parametrize(
    ("kubernetes", "asked"), [("1.34", False), ("1.35", False), ("1.36", True), ("1.37", True)]
)
def test_a_driver_has_the_verbs_of_its_name_where_servers_ask_for_them(kubernetes: str, asked: bool):
    made = objects(lambda: dra.GpuRoles("gpus", drivers={DRIVER: ["user:plugin"]}), kubernetes)
    rules = made["ClusterRole", f"gpus-driver-{DRIVER}"]["rules"]
    assert [
        each.get("resourceNames") for each in rules if each["resources"] == ["resourceclaims/driver"]
    ] == ([[DRIVER]] if asked else [])


def test_a_driver_that_is_called_like_a_persona_has_a_role_of_its_own():
    made = objects(lambda: dra.GpuRoles("gpus", drivers={"reader": ["user:plugin"]}))
    assert made["ClusterRole", "gpus-reader"] != made["ClusterRole", "gpus-driver-reader"]


def test_a_tenant_binds_its_people_in_its_namespace_and_shows_them_devices():
    def body() -> None:
        roles = dra.GpuRoles("gpus")
        members = {"team-lead": ["user:alice"], "developer": ["group:vision", "user:alice"]}
        dra.GpuTenant("vision", roles=roles, members=members)

    made = objects(body)
    for persona in ("team-lead", "developer"):
        bound = made["RoleBinding", f"vision-{persona}"]
        assert bound["metadata"]["namespace"] == "vision"
        assert bound["roleRef"]["name"] == f"gpus-{persona}"
    seen = made["ClusterRoleBinding", "vision-device-reader"]
    assert [each["name"] for each in seen["subjects"]] == ["alice", "vision"]
    assert seen["roleRef"]["name"] == "gpus-device-reader"


def test_roles_are_made_before_they_are_bound():
    def body() -> None:
        dra.GpuTenant("vision", roles=dra.GpuRoles("gpus"), members={"developer": ["group:vision"]})

    _, seen = run(body)
    (bound,) = [each for each in seen.requests if each.type.endswith(":RoleBinding")]
    kinds = {each.rpartition("::")[0].rpartition(":")[2] for each in bound.dependencies}
    assert {"ClusterRole", "Namespace"} <= kinds


def test_roles_of_another_program_are_named():
    made = objects(lambda: dra.GpuTenant("vision", roles="gpus", members={"developer": ["group:vision"]}))
    assert made["RoleBinding", "vision-developer"]["roleRef"]["name"] == "gpus-developer"


def test_a_tenant_whose_roles_have_problems_tells_only_those():
    def body() -> None:
        dra.GpuTenant("vision", roles=dra.GpuRoles("Gpus"), members={"developer": ["group:vision"]})

    assert problems(body) == [("invalid-name", 'GpuRoles("Gpus").name')]


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({"members": ["group:sre"]}, "wrong-type", "members"),
        ({"members": {"oncall": ["group:sre"]}}, "unsupported-value", "members"),
        ({"members": {"developer": ["group:vision"]}}, "unsupported-value", "members"),
        ({"members": {"on-call": "group:sre"}}, "wrong-type", "members['on-call']"),
        ({"members": {"on-call": [7]}}, "wrong-type", "members['on-call'][0]"),
        *(
            ({"members": {"on-call": [each]}}, "invalid-name", "members['on-call'][0]")
            for each in (
                "sre",
                "group:",
                "team:sre",
                "serviceaccount:ci",
                "serviceaccount:CI/a",
                "serviceaccount:ci/",
            )
        ),
        ({"drivers": [DRIVER]}, "wrong-type", "drivers"),
        ({"drivers": {"My driver": ["user:a"]}}, "invalid-name", "drivers"),
        ({"drivers": {DRIVER: "user:a"}}, "wrong-type", f"drivers['{DRIVER}']"),
    ],
)
def test_wrong_arguments_are_problems_at_their_place(arguments: dict[str, Any], code: str, path: str):
    found = problems(lambda: dra.GpuRoles("gpus", **arguments))
    assert found == [(code, f'GpuRoles("gpus").{path}')]


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({"members": {"developer": ["group:vision"]}}, "missing-argument", "roles"),
        ({"members": {"on-call": ["group:sre"]}, "roles": "gpus"}, "unsupported-value", "members"),
        ({"roles": 7}, "wrong-type", "roles"),
    ],
)
def test_wrong_members_of_a_tenant_are_problems_at_their_place(
    arguments: dict[str, Any], code: str, path: str
):
    found = problems(lambda: dra.GpuTenant("vision", **arguments))
    assert found == [(code, f'GpuTenant("vision").{path}')]
