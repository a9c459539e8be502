"""`dra-infra migrate --context`: what lives in a cluster is migrated as `kubectl get -o yaml` would print it."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.client.kinds import DEFINITIONS, SNAPSHOT
from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import ProblemsError
from tests.unit.cli.test_migrate import SERVE
from tests.unit.cluster.conftest import Server

GROUPS = {"kueue.x-k8s.io": "v1beta1", "ray.io": "v1", "autoscaling": "v2", "example.com": "v1"}
KINDS = {
    "v1": [("ReplicationController", "replicationcontrollers", True), ("Pod", "pods/status", True)],
    "kueue.x-k8s.io/v1beta1": [("ClusterQueue", "clusterqueues", False), ("Workload", "workloads", True)],
    "ray.io/v1": [("RayCluster", "rayclusters", True), ("RayCluster", "rayclusters/status", True)],
    "autoscaling/v2": [("HorizontalPodAutoscaler", "horizontalpodautoscalers", True)],
}
"""Kinds, by group and version, that the cluster serves beside those of a snapshot."""


@dataclass(frozen=True)
class Done:
    """What a command left."""

    returncode: int
    stdout: str
    stderr: str


def migrate(*arguments: str, stdin: str = "") -> Done:
    result = CliRunner().invoke(app, ["migrate", *arguments], input=stdin)
    if isinstance(result.exception, ProblemsError):
        told = [f"{each.message} [{each.code}] {each.hint}" for each in result.exception.problems]
        return Done(2, result.stdout, "\n".join([result.stderr, *told]))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def template(gpus: int) -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/a:1", "resources": limits}]}
    }


def live(
    kind: str, name: str, spec: dict[str, Any], *, owner: tuple[str, str] | None = None
) -> dict[str, Any]:
    """An object as a server lists it, with what servers write."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "ml",
        "uid": f"uid-{kind}-{name}",
        "resourceVersion": "7",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"deployment.kubernetes.io/revision": "1"},
    }
    if owner:
        metadata["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "controller": True}]
    return {"metadata": metadata, "spec": spec, "status": {"observedGeneration": 1}}


def serving(name: str, gpus: int) -> dict[str, Any]:
    made = template(gpus) | {"metadata": {"labels": {"app": name}}}
    return live("Deployment", name, {"selector": {"matchLabels": {"app": name}}, "template": made})


ESTATE: dict[str, list[dict[str, Any]]] = {
    "apps/v1/deployments": [serving("chat", 1), serving("web", 0)],
    "apps/v1/replicasets": [
        live("ReplicaSet", "chat-1", {"template": template(1)}, owner=("Deployment", "chat"))
    ],
    "v1/pods": [
        live("Pod", "chat-1-a", template(1)["spec"], owner=("ReplicaSet", "chat-1")),
        live("Pod", "odd-0", template(1)["spec"], owner=("Odd", "odd")),
    ],
    "v1/resourcequotas": [live("ResourceQuota", "gpus", {"hard": {"requests.nvidia.com/gpu": "8"}})],
    "ray.io/v1/rayclusters": [
        live("RayCluster", "ray", {"headGroupSpec": {"rayStartParams": {}, "template": template(1)}})
    ],
}
OF_ANOTHER = "Odd odd made it, and is not in the input"


def cluster(
    server: Server, folder: Path, estate: dict[str, list[dict[str, Any]]] = ESTATE
) -> tuple[str, ...]:
    """Have the server hold the estate; returns the options that name it."""
    served = [(kind.path(kind.versions[0]), "") for kind in SNAPSHOT[: SNAPSHOT.index(DEFINITIONS)]]
    for version, kinds in KINDS.items():
        root = "/api/v1" if version == "v1" else f"/apis/{version}"
        found = [{"kind": kind, "name": plural, "namespaced": own} for kind, plural, own in kinds]
        server.says(root, (200, {"resources": found}))
        served += [(f"{root}/{plural}", "") for _, plural, _ in kinds]
    groups = [{"name": name, "preferredVersion": {"version": version}} for name, version in GROUPS.items()]
    server.says("/apis", (200, {"groups": groups}))
    for path, _ in served:
        held = estate.get(path.removeprefix("/apis/").removeprefix("/api/"), [])
        server.says(path, (200, {"metadata": {"resourceVersion": "7"}, "items": held}))
        start, _, plural = path.rpartition("/")
        server.says(f"{start}/namespaces/ml/{plural}", (200, {"metadata": {}, "items": held}))
    config = {
        "current-context": "other",
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": "me"}} for name in ("prod", "other")
        ],
        "clusters": [
            {"name": "prod", "cluster": {"server": server.url}},
            {"name": "other", "cluster": {"server": "http://127.0.0.1:9"}},
        ],
        "users": [{"name": "me", "user": {}}],
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    return "--kubeconfig", "kubeconfig", "--context", "prod"


def listed(estate: dict[str, list[dict[str, Any]]], kinds: dict[str, str]) -> str:
    """What `kubectl get -o json` prints of some kinds, by path."""
    items = [
        {"apiVersion": path.rpartition("/")[0], "kind": kind, **each}
        for path, kind in kinds.items()
        for each in estate[path]
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def objects(done: Done) -> dict[str, dict[str, Any]]:
    """What a report says of each object, but for where it is."""
    found = json.loads(done.stdout)["objects"]
    return {each["name"]: {key: each[key] for key in each.keys() - {"place"}} for each in found}


def test_what_lives_in_a_cluster_is_told_and_written_without_what_servers_write(
    server: Server, tmp_path: Path
):
    where = cluster(server, tmp_path)
    done = migrate(*where, "--whole-gpus", "--output", "new")
    assert done.returncode == 1
    assert "prod: Deployment ml/chat\n" in done.stderr
    assert OF_ANOTHER in done.stderr
    made = list(read_manifests((tmp_path / "new" / "objects.yaml").read_text()))
    assert sorted((each["kind"], each["metadata"]["name"]) for each in made) == [
        ("Deployment", "chat"),
        ("RayCluster", "ray"),
        ("ResourceClaimTemplate", "chat-gpu"),
        ("ResourceClaimTemplate", "ray-gpu"),
        ("ResourceQuota", "gpus"),
    ]
    assert all(set(each["metadata"]) <= {"name", "namespace"} and "status" not in each for each in made)


def test_the_report_is_that_of_what_kubectl_prints(server: Server, tmp_path: Path):
    where = cluster(server, tmp_path)
    kinds = {"apps/v1/deployments": "Deployment", "ray.io/v1/rayclusters": "RayCluster"}
    kinds |= {"v1/resourcequotas": "ResourceQuota", "v1/pods": "Pod", "apps/v1/replicasets": "ReplicaSet"}
    there = migrate(*where, "--whole-gpus", "--json")
    printed = migrate("-", "--whole-gpus", "--json", stdin=listed(ESTATE, kinds))
    # What controllers of the cluster make anew is said there alone.
    assert objects(printed).keys() - objects(there).keys() == {"Pod ml/chat-1-a", "ReplicaSet ml/chat-1"}
    assert objects(printed) | objects(there) == objects(printed)
    assert "Deployment ml/chat" in objects(there)


def test_a_cluster_is_listed_and_no_more_is_asked_of_it(server: Server, tmp_path: Path):
    migrate(*cluster(server, tmp_path), "--whole-gpus", "--namespace", "ml")
    paths = [path for path, _, _ in server.asked]
    assert not server.sent
    assert not [path for path in paths if "secrets" in path or "configmaps" in path or "workloads" in path]
    assert "/apis/ray.io/v1/namespaces/ml/rayclusters" in paths
    assert "/apis/kueue.x-k8s.io/v1beta1/clusterqueues" in paths
    assert not [path for path in paths if path.startswith("/apis/example.com")]
    assert "/api/v1/pods" not in paths


def test_nodes_of_the_cluster_say_how_its_plugin_serves(server: Server, tmp_path: Path):
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        "nvidia.com/mig.strategy": "single",
    }
    node = {
        "metadata": {"name": "n", "labels": labels},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}},
    }
    where = cluster(server, tmp_path, {**ESTATE, "v1/nodes": [node]})
    done = migrate(*where)
    assert "of class mig.nvidia.com" in done.stderr
    (tmp_path / "serve.yaml").write_text(SERVE)
    server.asked.clear()
    beside = migrate("serve.yaml", *where)
    assert beside.returncode == 0
    assert "ResourceClaimTemplate ml/serve-mig" in beside.stderr
    assert "ml/chat" not in beside.stderr
    assert not [path for path, _, _ in server.asked if path in ("/apis", "/api/v1")]


@pytest.mark.parametrize(
    ("path", "rule", "code"),
    [
        ("/apis/apps/v1/deployments", 'resources: ["deployments"]', 2),
        ("/apis/ray.io/v1/rayclusters", 'resources: ["rayclusters"]', 2),
        ("/api/v1/nodes", 'resources: ["nodes"]', 1),
    ],
)
def test_what_may_not_be_listed_is_told_with_the_rule(
    server: Server, tmp_path: Path, path: str, rule: str, code: int
):
    where = cluster(server, tmp_path)
    server.says(path, (403, {"message": "no"}))
    done = migrate(*where, "--whole-gpus", "--to", "components")
    assert done.returncode == code
    assert done.stderr.count("[cluster-forbidden]") == 1
    assert rule in done.stderr
    assert ("no program was written" in done.stderr) == (code == 2)


def test_a_cluster_that_shows_nothing_has_no_answer(server: Server, tmp_path: Path):
    where = cluster(server, tmp_path, {})
    assert "[nothing-checked]" in migrate(*where, "--check").stderr
    space = {"v1/namespaces": [{"metadata": {"name": "ml"}}]}
    done = migrate(*cluster(server, tmp_path, space), "--namespace", "ml", "--check")
    assert (done.returncode, "[nothing-checked]" in done.stderr) == (2, True)
    for path in server.answers:
        if path not in ("/apis", "/api/v1") and "." not in path:
            server.says(path, (403, {"message": "no"}))
    server.answers = {path: each for path, each in server.answers.items() if "." not in path}
    assert "[cluster-forbidden]" in migrate("x.yaml", *where, "--plan").stderr
    server.says("/apis", (500, {"message": "etcd is away"}))
    done = migrate(*where)
    assert (done.returncode, "[cluster-answer]" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "name files, or the cluster that is read by --context NAME"),
        (("--namespace", "ml"), "name files, or the cluster that is read by --context NAME"),
        (("serve.yaml", "--namespace", "ml"), "name the cluster that is read by --context NAME"),
        (("--context", "prod", "--snapshot", "x.yaml"), "a cluster is read; leave --snapshot out"),
        (("--context", "prod", "--fleet", "t4 x 1"), "a cluster is read; leave --fleet out"),
        (("--context", "prod", "--write"), "take --output FOLDER"),
    ],
)
def test_what_does_not_go_with_a_cluster_is_wrong_usage(
    server: Server, tmp_path: Path, arguments: tuple[str, ...], told: str
):
    done = migrate(*arguments)
    assert (done.returncode, told in " ".join(done.stderr.split())) == (2, True)
    assert not server.asked


def t4_nodes() -> list[dict[str, Any]]:
    """Two nodes with four T4 each, which the plugin gives out."""
    status = {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "4"}}
    labels = {
        "nvidia.com/gpu.product": "Tesla-T4",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/gpu.memory": "15360",
    }
    return [{"metadata": {"name": f"n{at}", "labels": labels}, "status": status} for at in range(2)]


@pytest.mark.parametrize("is_live", [True, False])
def test_a_plan_knows_the_disruption_budgets_of_a_cluster_and_of_its_snapshot(
    server: Server, tmp_path: Path, is_live: bool
):
    budget = live(
        "PodDisruptionBudget", "chat", {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "chat"}}}
    )
    estate = {
        "v1/nodes": t4_nodes(),
        "apps/v1/deployments": ESTATE["apps/v1/deployments"],
        "policy/v1/poddisruptionbudgets": [budget],
    }
    where = cluster(server, tmp_path, estate)
    if not is_live:
        (tmp_path / "chat.json").write_text(listed(estate, {"apps/v1/deployments": "Deployment"}))
        assert CliRunner().invoke(app, ["snapshot", *where, "-o", "cluster.yaml"]).exit_code == 0
        where = ("chat.json", "--snapshot", "cluster.yaml")
    done = migrate(*where, "--whole-gpus", "--kubernetes", "1.37", "--plan")
    assert "PodDisruptionBudget ml/chat allows no eviction, and guards up to 1 pod" in done.stderr
    assert done.returncode == 1


def test_a_plan_of_some_namespaces_does_not_know_the_pods_of_the_others(server: Server, tmp_path: Path):
    estate = {"v1/nodes": t4_nodes(), "apps/v1/deployments": ESTATE["apps/v1/deployments"]}
    where = (*cluster(server, tmp_path, estate), "--whole-gpus", "--kubernetes", "1.37", "--plan")
    some = migrate(*where, "--namespace", "ml")
    assert "not decided whether it works\n  only pods of ml were read: what others have" in some.stderr
    assert some.returncode == 1
    assert migrate(*where).returncode == 0


def test_every_form_takes_a_cluster(server: Server, tmp_path: Path):
    estate = {"v1/nodes": t4_nodes(), "apps/v1/deployments": ESTATE["apps/v1/deployments"]}
    where = (*cluster(server, tmp_path, estate), "--whole-gpus", "--kubernetes", "1.37")
    planned = migrate(*where, "--plan")
    assert "leaves the plugin" in planned.stderr
    assert "Deployment ml/chat" in planned.stderr
    bridged = migrate(*where, "--to", "bridge", "--driver", "25.8", "--output", "bridge")
    assert bridged.returncode == 0
    made = list(read_manifests((tmp_path / "bridge" / "objects.yaml").read_text()))
    assert [each["kind"] for each in made] == ["DeviceClass"]
    assert migrate(*where, "--check").returncode == 1
    diff = migrate(*where, "--diff").stdout
    assert "-            nvidia.com/gpu: '1'\n" in diff
    assert "uid" not in diff
    program = migrate(*where, "--to", "components")
    assert program.returncode == 0
    assert "GpuClaimTemplate(" in program.stdout
    assert program.stdout.count("import_=") == 1
    assert "1 object that controllers or charts made, or without devices, is not in it\n" in program.stderr


def test_what_charts_made_stays_with_their_releases(server: Server, tmp_path: Path):
    of_helm = {"annotations": {"meta.helm.sh/release-name": "driver"}}
    held = [
        {"metadata": {"name": each, "uid": each, **(of_helm if each == "a" else {})}, "spec": {}}
        for each in "ab"
    ]
    where = cluster(server, tmp_path, {"resource.k8s.io/v1/deviceclasses": held})
    program = migrate(*where, "--to", "components").stdout
    assert ('import_="b"' in program, 'import_="a"' in program) == (True, False)


def test_kinds_of_a_users_own_are_read_from_a_cluster(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(KINDS, "example.com/v1", [("TrainingRun", "trainingruns", True)])
    claims = {"spec": {**template(0)["spec"], "resourceClaims": [{"name": "gpu"}]}}
    made = {"run": template(1), "claims": claims, "idle": template(0)}
    runs = [live("TrainingRun", name, {"template": each}) for name, each in made.items()]
    runs += [live("TrainingRun", "made", {"template": template(1)}, owner=("Sweep", "sweep"))]
    named = cluster(server, tmp_path, {"example.com/v1/trainingruns": runs})
    kinds = {
        "kinds": [{"kind": "TrainingRun", "group": "example.com", "parts": [{"template": "spec.template"}]}]
    }
    Path("kinds.yaml").write_text(json.dumps(kinds))
    done = migrate(*named, "--whole-gpus", "--kinds", "kinds.yaml", "--json")
    told = {
        each["name"]: [more["code"] for more in each["remarks"]]
        for each in json.loads(done.stdout)["objects"]
    }
    assert "resource-to-claim" in told["TrainingRun ml/run"]
    assert told["TrainingRun ml/made"] == ["owned-object"]
    program = migrate(*named, "--whole-gpus", "--kinds", "kinds.yaml", "--to", "components").stdout
    imported = [each for each in ("run", "made", "claims", "idle") if f'import_="ml/{each}"' in program]
    assert imported == ["run", "claims"]


def test_a_silent_server_is_given_up_after_the_time_of_the_option(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        arguments = cluster(Server(url=f"http://127.0.0.1:{silent.getsockname()[1]}"), tmp_path)
        done = migrate(*arguments, "--request-timeout", "0.1")
    assert done.returncode == 2
    # A busy machine may notice the end of the time for the whole answer first.
    words = ("(read timeout=0.1)", "an answer is not complete after 0.2 s")
    assert any(f"{each} [cluster-unreachable]" in done.stderr for each in words)
