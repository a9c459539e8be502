"""`dra-infra explain` of a real cluster: what the real scheduler leaves waiting, and what it then does with the edit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.cluster.conftest import CLAIM, GPUS, NAMESPACE, PLANTED, Grant, Run, deployment, rule, template
from tools.cluster import Api, ControlPlane

pytestmark = pytest.mark.e2e


def test_a_pod_that_the_scheduler_leaves_waiting_is_explained_in_devices(
    api: Api, lister: Path, dra_infra: Run
) -> None:
    said = dra_infra(
        "explain", "deployment/large", "--namespace", NAMESPACE, "--kubeconfig", lister, "--json"
    )
    assert said.code == 1, said.err
    assert PLANTED not in said.out
    found = json.loads(said.out)
    assert found["subject"].startswith(f"Pod {NAMESPACE}/large-")
    (words,) = [each for each in found["causes"] if each["code"] == "scheduler-says"]
    assert "0/2 nodes are available" in words["message"]
    answer = found["answer"]
    (tree,) = answer["requests"]
    taken = sum(
        len(claim["status"]["allocation"]["devices"]["results"])
        for claim in api.list(CLAIM, namespace=NAMESPACE)
        if claim.get("status", {}).get("allocation")
    )
    assert (tree["candidates"], tree["left"], tree["deviceClass"]) == (16, 16 - taken, GPUS)
    (used,) = [each for each in tree["steps"] if each["removed"]]
    assert (used["rule"], used["removed"]) == ("in-use", taken)
    assert all(f"(Pod {NAMESPACE}/serve-" in each for each in used["holders"])
    assert "the best node" in answer["proof"]
    assert answer["suggestions"][0]["kind"] == "fewer-devices"


def test_the_scheduler_does_what_the_edit_promises(api: Api, plane: ControlPlane, dra_infra: Run) -> None:
    said = dra_infra(
        "explain", "deployment/large", "-n", NAMESPACE, "--kubeconfig", plane.kubeconfig, "--json"
    )
    suggestion = json.loads(said.out)["answer"]["suggestions"][0]
    count = int(suggestion["line"].removeprefix("count: "))
    api.create(template("edited", count))
    api.create(deployment("edited"))
    try:
        api.wait_for(
            "v1/Pod",
            lambda pods: any(
                pod["metadata"]["name"].startswith("edited-") and pod["spec"].get("nodeName") for pod in pods
            ),
            namespace=NAMESPACE,
        )
        (pod,) = [
            each
            for each in api.list("v1/Pod", namespace=NAMESPACE)
            if each["metadata"]["name"].startswith("edited-")
        ]
        again = dra_infra(
            "explain", f"pod/{pod['metadata']['name']}", "-n", NAMESPACE, "--kubeconfig", plane.kubeconfig
        )
        assert again.code == 0, again.out
        assert pod["spec"]["nodeName"] in again.out
    finally:
        api.delete("apps/v1/Deployment", "edited", namespace=NAMESPACE)
        api.delete("resource.k8s.io/v1/ResourceClaimTemplate", "edited", namespace=NAMESPACE)
        api.wait_for(
            CLAIM,
            lambda claims: not any("edited" in each["metadata"]["name"] for each in claims),
            namespace=NAMESPACE,
        )


def test_rights_in_one_namespace_are_enough_for_what_is_there(kubeconfig_of: Grant, dra_infra: Run) -> None:
    own = kubeconfig_of(
        rule([""], ["pods", "events"]),
        rule(["resource.k8s.io"], ["resourceclaims", "resourceclaimtemplates"]),
        rule(["apps"], ["deployments", "replicasets"]),
        within=NAMESPACE,
    )
    said = dra_infra("explain", "deployment/large", "-n", NAMESPACE, "--kubeconfig", own)
    assert "[cluster-forbidden]" in said.err
    assert "0/2 nodes are available" in said.out
    assert said.code == 1


def test_without_rights_on_nodes_devices_are_explained_all_the_same(
    kubeconfig_of: Grant, dra_infra: Run
) -> None:
    blind = kubeconfig_of(
        rule([""], ["pods", "events"]),
        rule(
            ["resource.k8s.io"],
            ["resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"],
        ),
        rule(["apps"], ["deployments", "replicasets"]),
    )
    said = dra_infra("explain", "deployment/large", "-n", NAMESPACE, "--kubeconfig", blind, "--json")
    assert said.code == 1
    assert "nodes may not be seen" in said.err
    (tree,) = json.loads(said.out)["answer"]["requests"]
    assert tree["candidates"] == 16


def test_a_name_that_is_not_there_is_told(lister: Path, dra_infra: Run) -> None:
    said = dra_infra("explain", "pod/nobody", "--kubeconfig", lister)
    assert said.code == 2
    assert "[subject-not-known]" in said.err


def test_a_snapshot_gives_the_same_answer_as_the_cluster(
    plane: ControlPlane, dra_infra: Run, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    assert dra_infra("snapshot", "--kubeconfig", plane.kubeconfig, "--output", file).code == 0
    live = dra_infra(
        "explain", "deployment/large", "-n", NAMESPACE, "--kubeconfig", plane.kubeconfig, "--json"
    )
    from_file = dra_infra("explain", "deployment/large", "-n", NAMESPACE, "--snapshot", file, "--json")
    assert json.loads(from_file.out)["answer"] == json.loads(live.out)["answer"]
