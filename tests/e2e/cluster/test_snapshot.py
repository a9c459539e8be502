"""`dra-infra snapshot` of a real cluster, by users with every kind of rights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.answers.reviewing import compare
from dra_infra.catalog import load_snapshot
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.placement.running import Running
from dra_infra.program_objects import Program, ProgramObject
from tests.e2e.cluster.conftest import CLAIM, GPUS, NAMESPACE, PLANTED, Grant, Run, deployment, rule, template
from tools.cluster import Api, ControlPlane
from tools.cluster.api_server import api_server

pytestmark = pytest.mark.e2e

SOON = 60.0
"""Seconds; most of them are for what else runs on this machine."""
KINDS = (
    "v1/Namespace",
    "v1/Node",
    "v1/Pod",
    "apps/v1/ReplicaSet",
    "apps/v1/Deployment",
    "resource.k8s.io/v1/ResourceSlice",
    "resource.k8s.io/v1/DeviceClass",
    CLAIM,
)


def a_program() -> Program:
    manifests = [template("later", 3), deployment("later", replicas=3)]
    objects = tuple(
        ProgramObject(
            urn=f"urn:pulumi:dev::p::kubernetes:{each['apiVersion']}:{each['kind']}::later", manifest=each
        )
        for each in manifests
    )
    return Program(project="p", stack="dev", objects=objects)


def answers(snapshot: Snapshot) -> tuple[Any, Any]:
    """Where a program goes, and what is taken."""
    nobody = Program(project="p", stack="dev")
    program = a_program()
    placement = compare(nobody, program, base_label="main", fleet=snapshot.fleet, snapshot=snapshot).after
    assert placement is not None
    held = Running.of(snapshot, nobody).taken
    assert held.pods is not None
    # Objects that bound or label are pruned in a snapshot; what they come to is in the placement.
    pods = sorted((node, shape.key) for node, shape in held.pods)
    names = sorted((str(each["kind"]), str(each["metadata"]["name"])) for each in held.policies)
    return placement.workloads, (held.devices, held.shares, held.amounts, pods, held.made, names)


def taken(dra_infra: Run, kubeconfig: Path, *more: str) -> str:
    said = dra_infra("snapshot", "--kubeconfig", kubeconfig, "--output", "-", *more)
    assert said.code == 0, said.err
    return said.out


def kinds_of(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in yaml.safe_load_all(text):
        if each:
            name = f"{each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
            found.setdefault(each["kind"], []).append(name)
    return found


def test_a_snapshot_gives_the_placement_that_the_live_objects_give(
    plane: ControlPlane, api: Api, dra_infra: Run
) -> None:
    live = load_snapshot(
        [yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": api.list(kind)}) for kind in KINDS]
    )
    workloads, held = answers(live)
    assert held[0]
    assert [each.verdict for each in workloads] == ["fits"]
    assert answers(load_snapshot([taken(dra_infra, plane.kubeconfig)])) == (workloads, held)


def test_the_right_to_list_is_enough_for_the_same_file(
    plane: ControlPlane, lister: Path, dra_infra: Run, tmp_path: Path
) -> None:
    said = dra_infra("snapshot", "--kubeconfig", lister, "--output", "cluster.yaml")
    assert said.code == 0
    assert "cluster-forbidden" not in said.err
    assert "wrote cluster.yaml" in said.err
    file = tmp_path / "cluster.yaml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["cluster.yaml"]
    assert kinds_of(file.read_text()) == kinds_of(taken(dra_infra, plane.kubeconfig))


def test_no_secret_is_in_the_file(plane: ControlPlane, dra_infra: Run) -> None:
    text = taken(dra_infra, plane.kubeconfig)
    assert PLANTED not in text
    assert not {"Secret", "ConfigMap"} & set(kinds_of(text))
    assert "last-applied" not in text.replace("# ", "")
    assert f"{NAMESPACE}/serve" in kinds_of(text)["Deployment"]


def test_objects_are_in_the_same_order_each_time(plane: ControlPlane, dra_infra: Run) -> None:
    first, second = (kinds_of(taken(dra_infra, plane.kubeconfig)) for _ in range(2))
    assert first == second
    assert first["Pod"] == sorted(first["Pod"])


def test_what_may_not_be_listed_is_said_with_the_rule_and_the_rest_is_there(
    kubeconfig_of: Grant, dra_infra: Run
) -> None:
    kubeconfig = kubeconfig_of(
        rule([""], ["nodes"]), rule(["resource.k8s.io"], ["resourceslices", "deviceclasses"])
    )
    said = dra_infra("snapshot", "--kubeconfig", kubeconfig, "--output", "-")
    assert said.code == 0
    assert set(kinds_of(said.out)) == {"Node", "ResourceSlice", "DeviceClass"}
    assert "pods: pods may not be listed" in said.err
    assert '{apiGroups: [""], resources: ["pods"], verbs: ["list", "watch"]}' in said.err
    assert (
        '{apiGroups: ["resource.k8s.io"], resources: ["resourceclaims"], verbs: ["list", "watch"]}'
        in said.err
    )
    assert "# not seen: pods [cluster-forbidden]" in said.out
    assert load_snapshot([said.out]).fleet.nodes


def test_rights_in_one_namespace_give_what_is_in_it(kubeconfig_of: Grant, dra_infra: Run) -> None:
    kubeconfig = kubeconfig_of(
        rule([""], ["pods"]), rule(["resource.k8s.io"], ["resourceclaims"]), within=NAMESPACE
    )
    said = dra_infra("snapshot", "--kubeconfig", kubeconfig, "--namespace", NAMESPACE, "--output", "-")
    assert said.code == 0
    found = kinds_of(said.out)
    assert set(found) == {"Pod", "ResourceClaim"}
    assert {name.partition("/")[0] for names in found.values() for name in names} == {NAMESPACE}


def test_a_user_without_rights_gets_no_file_and_the_rules_to_grant(
    kubeconfig_of: Grant, dra_infra: Run, tmp_path: Path
) -> None:
    said = dra_infra("snapshot", "--kubeconfig", kubeconfig_of())
    assert said.code == 2
    assert "[cluster-forbidden]" in said.err
    assert "verbs" in said.err
    assert not list(tmp_path.iterdir())


def test_a_wrong_token_is_told(plane: ControlPlane, dra_infra: Run, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(plane.kubeconfig.read_text().replace(plane.token, "wrong-token"))
    said = dra_infra("snapshot", "--kubeconfig", file)
    assert said.code == 2
    assert "[cluster-unauthorized]" in said.err
    assert "wrong-token" not in said.err


def test_a_certificate_of_somebody_else_is_refused(
    plane: ControlPlane, binaries: Any, dra_infra: Run, tmp_path: Path
) -> None:
    with api_server("1.37", binaries=binaries) as other:
        file = tmp_path / "config"
        file.write_text(plane.kubeconfig.read_text().replace(plane.url, other.url))
        said = dra_infra("snapshot", "--kubeconfig", file)
    assert said.code == 2
    assert "[cluster-unreachable]" in said.err
    assert "certificate" in said.err.lower()


@pytest.mark.parametrize(
    "server", ["https://127.0.0.1:9", "https://nowhere.invalid:6443", "https://192.0.2.1:6443"]
)
@pytest.mark.parametrize("command", ["snapshot", "status", "doctor"])
def test_a_kubeconfig_to_nowhere_is_a_clear_problem_soon(
    plane: ControlPlane, dra_infra: Run, tmp_path: Path, server: str, command: str
) -> None:
    file = tmp_path / "config"
    file.write_text(plane.kubeconfig.read_text().replace(plane.url, server))
    # The command gives up after 3 s for each address; without that, the system tries for more than two minutes.
    said = dra_infra(command, "--kubeconfig", file, timeout=SOON)
    assert said.code == 2
    assert "[cluster-unreachable]" in said.err
    assert server in said.err


@pytest.mark.parametrize("minor", ["1.34", "1.36"])
def test_a_server_of_another_minor_is_read_in_what_it_serves(
    binaries: Any, dra_infra: Run, minor: str
) -> None:
    with api_server(minor, binaries=binaries) as plane, plane.api() as api:
        from dra_infra.catalog import load_fleet
        from tools.cluster import create_fleet

        create_fleet(api, load_fleet("hgx-h100", kubernetes=minor).to_manifests())
        said = dra_infra("snapshot", "--kubeconfig", plane.kubeconfig, "--output", "-")
    assert said.code == 0, said.err
    assert "cluster-forbidden" not in said.err
    fleet = load_snapshot([said.out]).fleet
    assert [each.spec.driver for each in fleet.slices if each.spec.driver == GPUS]


def test_a_list_of_many_pages_is_whole(plane: ControlPlane, api: Api, dra_infra: Run) -> None:
    name = "pages"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for index in range(520):
        api.create(
            {
                "apiVersion": "v1",
                "kind": "LimitRange",
                "metadata": {"name": f"limits-{index:03}", "namespace": name},
                "spec": {"limits": []},
            }
        )
    found = kinds_of(taken(dra_infra, plane.kubeconfig, "--namespace", name))["LimitRange"]
    assert found == [f"{name}/limits-{index:03}" for index in range(520)]
    api.delete("v1/Namespace", name)
