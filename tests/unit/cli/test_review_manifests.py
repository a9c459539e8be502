from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

TEMPLATE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: {name}
  namespace: ml
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu.nvidia.com
          count: {count}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: ml
spec:
  replicas: {replicas}
  selector:
    matchLabels: {{app: {app}}}
  template:
    metadata:
      labels: {{app: {app}}}
    spec:
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: {template}}}]
      containers:
      - name: web
        image: example.invalid/web
        resources: {{claims: [{{name: gpu}}]}}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: train, namespace: ml}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: train, image: {image}}}]
"""


def template(name: str = "gpus", count: int = 1) -> str:
    return TEMPLATE.format(name=name, count=count)


def deployment(replicas: int = 1, app: str = "web", template: str = "gpus") -> str:
    return DEPLOYMENT.format(replicas=replicas, app=app, template=template)


def result_of(answer: Any) -> dict[str, Any]:
    assert answer.code in (0, 1), answer.err
    found: dict[str, Any] = json.loads(answer.out)
    return found


def actions(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["action"], each["object"]["kind"], each["object"]["name"]) for each in result["changes"]]


@pytest.fixture
def manifests(tree):
    tree.write("manifests/gpus.yaml", template())
    tree.write("manifests/more/web.yaml", deployment())
    tree.commit()
    return tree


def test_objects_are_told_apart_by_group_kind_namespace_and_name(manifests, review):
    (manifests.root / "manifests/more/web.yaml").unlink()
    manifests.write("manifests/all.yaml", deployment(replicas=2) + "---\n" + template("new"))
    result = result_of(review("manifests", "--format", "json"))
    assert actions(result) == [
        ("changed", "Deployment", "web"),
        ("created", "ResourceClaimTemplate", "new"),
    ]
    assert result["counts"]["unchanged"] == 1
    assert result["changes"][0]["urn"] == "urn:dra-infra:manifests::manifests::apps/Deployment::ml/web"
    assert result["changes"][0]["place"] == {"file": "manifests/all.yaml", "line": 1, "column": 1}


def test_moving_an_object_to_another_file_is_no_change(manifests, review):
    (manifests.root / "manifests/gpus.yaml").rename(manifests.root / "manifests/renamed.yaml")
    assert "nothing changes" in review("manifests").out


def test_a_problem_is_at_its_line_of_the_working_tree(manifests, review):
    manifests.write("manifests/gpus.yaml", "# moved down\n" + template("gpus2").replace("count", "cuont"))
    result = result_of(review("manifests", "--format", "json"))
    places = {each["code"]: each["place"] for each in result["problems"]}
    assert places["unknown-field"] == {"file": "manifests/gpus.yaml", "line": 14, "column": 11}


def test_places_are_named_as_the_user_named_the_folder(manifests, review):
    manifests.write("manifests/gpus.yaml", template("g").replace("count", "cuont"))
    (found,) = [
        each
        for each in result_of(review(".", "--format", "json", cwd=manifests.root / "manifests"))["problems"]
        if each["code"] == "unknown-field"
    ]
    assert found["place"]["file"] == "gpus.yaml"


def test_one_file_is_reviewed_by_itself(manifests, review):
    manifests.write("manifests/more/web.yaml", deployment(replicas=3))
    manifests.write("manifests/gpus.yaml", template(count=2))
    result = result_of(review("manifests/more/web.yaml", "--format", "json"))
    assert actions(result) == [("changed", "Deployment", "web")]


def test_both_sides_are_placed_on_the_fleet(manifests, review):
    manifests.write("manifests/more/web.yaml", deployment(replicas=17))
    answer = review("manifests", "--fleet", "hgx-h100 x 2", "--format", "json")
    assert answer.code == 1
    assert [each["code"] for each in result_of(answer)["problems"]] == ["no-longer-fits"]


def test_settings_choose_fleet_and_minor(manifests, review):
    arguments = ("-c", "dra-infra:fleet=hgx-h100 x 2", "-c", "dra-infra:kubernetes=1.34")
    assert result_of(review("manifests", *arguments, "--format", "json"))["fleet"]["name"] == "hgx-h100 x 2"


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [
        (JOB.format(image="a"), JOB.format(image="b"), ["field-immutable"]),
        (deployment(app="a"), deployment(app="b"), ["field-immutable"]),
        (deployment(), deployment(replicas=2), []),
        (template(count=1), template(count=2), ["claim-spec-immutable"]),
    ],
)
def test_what_kubectl_cannot_change_is_refused_not_replaced(
    tree, review, before: str, after: str, codes: list[str]
):
    tree.write("manifests/one.yaml", before)
    tree.commit()
    tree.write("manifests/one.yaml", after)
    result = result_of(review("manifests", "--format", "json"))
    assert [each["code"] for each in result["problems"] if "immutable" in each["code"]] == codes
    assert [each["action"] for each in result["changes"]] == ["changed"]


def test_json_and_lists_are_read_too(manifests, review):
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in "ab"]
    manifests.write("manifests/list.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert [name for *_, name in actions(result_of(review("manifests", "--format", "json")))] == ["a", "b"]


def test_an_object_that_is_written_twice_is_told_at_its_second_place(manifests, review):
    manifests.write("manifests/z.yaml", template(count=2))
    result = result_of(review("manifests", "--format", "json"))
    (found,) = [each for each in result["problems"] if each["code"] == "duplicate-object"]
    assert (found["severity"], found["place"]["file"]) == ("warning", "manifests/z.yaml")
    assert "manifests/gpus.yaml:1:1" in found["message"]


def test_objects_whose_names_the_server_makes_are_told_apart_by_order(tree, review):
    unnamed = "apiVersion: v1\nkind: Pod\nmetadata: {generateName: run-}\nspec: {nodeName: %s}\n---\n"
    tree.write("manifests/pods.yaml", unnamed % "a" + unnamed % "b")
    tree.commit()
    tree.write("manifests/pods.yaml", unnamed % "a" + unnamed % "b" + unnamed % "c")
    result = result_of(review("manifests", "--format", "json"))
    assert [each["urn"].rpartition("::")[2] for each in result["changes"]] == ["/run-*3"]


def test_files_that_hold_no_objects_are_named_and_left_out(manifests, review):
    manifests.write("manifests/kustomization.yaml", "resources: [gpus.yaml]\n")
    manifests.write("manifests/k.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
    result = result_of(review("manifests", "--format", "json", "--source", "manifests"))
    left_out = {each["name"]: each["reason"] for each in result["notKnown"]}
    assert "what kustomize builds" in left_out["manifests/k.yaml"]
    assert "no Kubernetes object" in left_out["manifests/kustomization.yaml"]
    assert actions(result) == []


def test_a_kustomization_is_reviewed_as_it_is_built(tree, review, monkeypatch, tmp_path: Path):
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "kubectl").write_text('#!/bin/sh\nwhile read -r line; do echo "$line"; done < built\n')
    (tools / "kubectl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    built = (
        '{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, "data": {{"a": "{}"}}}}\n'
    )
    tree.write("prod/kustomization.yaml", "resources: []\n")
    tree.write("prod/built", built.format("old"))
    tree.commit()
    tree.write("prod/built", built.format("new"))
    result = result_of(review("prod", "--format", "json"))
    assert actions(result) == [("replaced", "ConfigMap", "a")] or actions(result) == [
        ("changed", "ConfigMap", "a")
    ]
    assert result["source"] == "kustomization"


def test_a_folder_that_is_new_is_created_whole(tree, review):
    tree.write("README.md", "nothing yet")
    tree.commit()
    tree.write("manifests/gpus.yaml", template())
    assert actions(result_of(review("manifests", "--format", "json"))) == [
        ("created", "ResourceClaimTemplate", "gpus")
    ]


def test_two_folders_are_compared_without_git(tmp_path, command):
    for folder, count in (("before", 1), ("after", 2)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "gpus.yaml").write_text(template("t" + str(count)))
    answer = command("review", "after", "--base-path", "before", "--format", "json", cwd=tmp_path)
    result = result_of(answer)
    assert actions(result) == [
        ("deleted", "ResourceClaimTemplate", "t1"),
        ("created", "ResourceClaimTemplate", "t2"),
    ]
    assert result["base"] == "before"


CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: c, namespace: ml}}
spec:
  devices:
    requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com}}}}]
    {more}
"""


@pytest.mark.parametrize(
    ("before", "after", "code", "codes"),
    [
        # Servers compare opaque parameters as text, and lists by what is in them.
        ("true", "1", 1, ["claim-spec-immutable"]),
        # Of a file: kubectl, as Pulumi, sends both as 1.
        ("1", "1.0", 0, []),
        ("0", "false", 1, ["claim-spec-immutable"]),
        ("1", "1", 0, []),
        (None, "[]", 0, []),
        ("[]", None, 0, []),
    ],
)
def test_a_claim_may_change_its_spelling_and_not_its_meaning(before, after, code, codes, tmp_path, command):
    for folder, value in (("before", before), ("after", after)):
        more = f"constraints: {value}"
        if value not in (None, "[]"):
            more = f"config: [{{opaque: {{driver: other.example.com, parameters: {{a: {value}}}}}}}]"
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "c.yaml").write_text(CLAIM.format(more="" if value is None else more))
    answer = command("review", "after", "--base-path", "before", "--format", "json", cwd=tmp_path)
    result = json.loads(answer.out)
    assert answer.code == code
    assert [each["code"] for each in result["problems"] if each["severity"] == "error"] == codes
    assert bool(result["changes"]) == ({before, after} not in ({"1"}, {"1", "1.0"}))


def test_manifests_below_a_project_are_read_when_the_user_says_so(manifests, review):
    manifests.write("Pulumi.yaml", "name: app\nruntime: python\n")
    manifests.write("manifests/more/web.yaml", deployment(replicas=2))
    result = result_of(review("manifests", "--source", "manifests", "--format", "json"))
    assert actions(result) == [("changed", "Deployment", "web")]


def test_names_that_look_like_parts_of_a_urn_stay_apart(tree, review):
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '%s', namespace: '%s'}\n---\n"
    tree.write("manifests/a.yaml", config_map % ("c", "a::b") + config_map % ("b::c", "a"))
    tree.commit()
    tree.write("manifests/a.yaml", config_map % ("c", "a::b"))
    assert len(result_of(review("manifests", "--format", "json"))["changes"]) == 1


SNAPSHOT = """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "8", memory: 32Gi, pods: "10"}}
"""


def test_a_snapshot_is_the_fleet(manifests, review):
    manifests.write("cluster.yaml", SNAPSHOT)
    manifests.write("manifests/more/web.yaml", deployment(replicas=2))
    result = result_of(review("manifests", "--snapshot", "cluster.yaml", "--format", "json"))
    assert (result["fleet"]["name"], result["fleet"]["nodes"]) == ("the snapshot", 1)


def test_a_snapshot_without_nodes_places_nothing_and_says_so(manifests, review):
    manifests.write("cluster.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    result = result_of(review("manifests", "--snapshot", "cluster.yaml", "--format", "json"))
    assert result["fleet"] is None
    assert "nodes" in {each["name"] for each in result["notKnown"] if each["what"] == "snapshot"}


def test_manifests_inside_a_project_are_reviewed_for_the_minor_that_is_named(manifests, review):
    manifests.write("Pulumi.yaml", "name: infra\nruntime: python\n")
    manifests.write("__main__.py", "")
    rule = "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: r}\n"
    rule += "spec: {deviceSelector: {driver: gpu.nvidia.com}, taint: {key: a/b, effect: NoSchedule}}\n"
    manifests.write("manifests/rule.yaml", rule)
    old = result_of(review("manifests", "--format", "json"))
    assert "unknown-version" in {each["code"] for each in old["problems"]}
    new = result_of(review("manifests", "-k", "1.37", "--format", "json"))
    assert (new["problems"], actions(new)) == ([], [("created", "DeviceTaintRule", "r")])
    assert review("manifests", "-k", "1.99").code == 2
