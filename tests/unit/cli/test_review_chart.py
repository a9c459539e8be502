from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

# The real helm renders in tests/e2e/review; here a stand-in prints the values that it was given.

HELM = f"""#!{sys.executable}
import json, os, sys
values = json.load(sys.stdin)
chart = open("Chart.yaml").read()
if values.get("fail"):
    print("Error: execution error at (inference/templates/config.yaml:3:4): " + values["fail"], file=sys.stderr)
    sys.exit(1)
data = {{"values": json.dumps(values, sort_keys=True), "vendored": str(os.path.exists("charts/dep.tgz"))}}
manifest = {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "c"}}, "data": data}}
print("---\\n# Source: inference/templates/config.yaml\\n" + json.dumps(manifest))
print("---\\n# Source: inference/templates/class.yaml\\napiVersion: resource.k8s.io/v1\\nkind: DeviceClass")
print("metadata: {{name: " + values.get("class", "good") + "}}\\nspec: {{}}")
"""


@pytest.fixture
def chart(tree, tmp_path, monkeypatch: pytest.MonkeyPatch):
    helm = tmp_path / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text(HELM)
    helm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{helm.parent}{os.pathsep}{os.environ['PATH']}")
    tree.write("charts/inference/Chart.yaml", "apiVersion: v2\nname: inference\nversion: 1.0.0\n")
    tree.write("prod.yaml", "replicas: 2\nimage: {tag: a}\n")
    tree.commit()
    return tree


def review_of(answer):
    assert answer.code in (0, 1), answer.err
    return json.loads(answer.out)


def lines(result) -> list[str]:
    return [line for change in result["changes"] for hunk in change["diff"] for line in hunk["lines"]]


def test_values_are_those_of_each_side(chart, review):
    chart.write("prod.yaml", "replicas: 3\nimage: {tag: a}\n")
    result = review_of(review("charts/inference", "--values", "prod.yaml", "--format", "json"))
    assert result["source"] == "chart"
    changed = [line for line in lines(result) if line[0] in "+-"]
    assert ['"replicas": 2' in line or '"replicas": 3' in line for line in changed] == [True, True]


def test_later_values_win_and_mappings_are_merged(chart, review):
    chart.write("more.yaml", "image: {pull: Always, tag: b}\n")
    chart.commit()
    arguments = ("--values", "prod.yaml", "--values", "more.yaml", "--base-path", "charts/inference")
    chart.write("prod.yaml", "replicas: 4\nimage: {tag: a}\n")
    result = review_of(review("charts/inference", *arguments, "--format", "json"))
    assert lines(result) == []
    chart.write("charts/inference/Chart.yaml", "apiVersion: v2\nname: inference\nversion: 2.0.0\n")
    added = review_of(review("charts/inference", *arguments[:4], "--format", "json"))
    assert any('{"image": {"pull": "Always", "tag": "b"}, "replicas": 4}' in line for line in lines(added))


def test_a_problem_names_its_template(chart, review):
    chart.write("prod.yaml", "class: B_D\n")
    result = review_of(review("charts/inference", "--values", "prod.yaml", "--format", "json"))
    (found,) = [each for each in result["problems"] if each["code"] == "invalid-name"]
    assert found["place"]["file"] == "charts/inference/templates/class.yaml"


def test_values_that_are_new_are_told(chart, review):
    chart.write("new.yaml", "replicas: 1\n")
    result = review_of(review("charts/inference", "--values", "new.yaml", "--format", "json"))
    assert ("values of the base", "new.yaml") in {(each["what"], each["name"]) for each in result["notKnown"]}


@pytest.mark.parametrize("text", [None, "- 1\n", "a: [\n", "a: 1\n---\nb: 2\n", b"\xff\xfe"])
def test_values_that_cannot_be_read_end_with_2(chart, review, text):
    if text is not None:
        chart.write("bad.yaml", text)
    answer = review("charts/inference", "--values", "bad.yaml")
    assert (answer.code, "values-unreadable" in answer.codes) == (2, True)


def test_what_helm_refuses_ends_with_2(chart, review):
    chart.write("prod.yaml", "fail: no room\n")
    answer = review("charts/inference", "--values", "prod.yaml")
    assert (answer.code, "chart-not-rendered" in answer.codes, "no room" in answer.err) == (2, True, True)


def test_a_base_that_helm_refuses_counts_as_empty_where_the_user_says_so(chart, review):
    chart.write("prod.yaml", "fail: no room\n")
    chart.commit()
    chart.write("prod.yaml", "replicas: 1\n")
    assert "base-not-run" in review("charts/inference", "--values", "prod.yaml").codes
    run = ("--values", "prod.yaml", "--format", "json", "--assume-empty-base")
    result = review_of(review("charts/inference", *run))
    assert {each["action"] for each in result["changes"]} == {"created"}
    assert any("counts as empty" in each["reason"] for each in result["notKnown"])


def test_a_chart_that_the_change_adds_to_a_folder_has_an_empty_base(chart, review):
    chart.write("there/README.md", "docs\n")
    chart.commit()
    chart.write("there/Chart.yaml", "apiVersion: v2\nname: there\nversion: 1.0.0\n")
    answer = review("there", "--format", "json")
    assert "base-not-run" not in answer.codes
    assert {each["action"] for each in review_of(answer)["changes"]} == {"created"}


def test_a_chart_whose_file_is_a_link_out_of_the_repository_is_no_empty_base(chart, review, tmp_path):
    (tmp_path / "elsewhere.yaml").write_text("apiVersion: v2\nname: there\nversion: 1.0.0\n")
    (chart.root / "there").mkdir()
    (chart.root / "there/Chart.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    chart.commit()
    (chart.root / "there/Chart.yaml").unlink()
    chart.write("there/Chart.yaml", "apiVersion: v2\nname: there\nversion: 1.0.0\n")
    assert "base-not-run" in review("there").codes


def test_downloaded_dependencies_are_lent_to_a_base_that_locks_the_same(chart, review):
    chart.write(".gitignore", "charts/inference/charts/\n")
    chart.write("charts/inference/Chart.lock", "digest: sha256:1\n")
    chart.commit()
    chart.write("charts/inference/charts/dep.tgz", b"x")
    assert review_of(review("charts/inference", "--format", "json"))["changes"] == []


def test_without_helm_there_is_no_answer(chart, review, monkeypatch: pytest.MonkeyPatch, tmp_path):
    (tmp_path / "bin" / "helm").unlink()
    (tmp_path / "bin" / "git").symlink_to(str(shutil.which("git")))
    # The machine may have a helm of its own.
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    answer = review("charts/inference")
    assert (answer.code, "helm-not-found" in answer.codes) == (2, True)


def test_a_base_whose_dependencies_are_not_there_is_no_answer_beside_a_compiled_head(
    chart, command, tmp_path
):
    chart.write("charts/inference/Chart.lock", "digest: sha256:1\n")
    chart.write("charts/inference/values.yaml", "a: 1\n")
    chart.commit()
    head = tmp_path / "head.json"
    values = ("--values", "prod.yaml")
    assert command("compile", "charts/inference", *values, "--output", str(head), cwd=chart.root).code == 0
    # The stand-in fails as helm does where a dependency is not in charts/.
    chart.write("prod.yaml", "fail: found in Chart.yaml, but missing in charts/ directory\n")
    chart.commit()
    asked = ("review", "charts/inference", *values, "--base", "HEAD", "--head", str(head))
    answer = command(*asked, cwd=chart.root)
    assert (answer.code, answer.codes) == (2, {"chart-not-rendered"})


def test_values_that_are_a_link_out_of_the_repository_are_not_read(chart, command, tmp_path):
    (tmp_path / "config.json").write_text('{"auths": "planted"}')
    (chart.root / "prod.yaml").unlink()
    (chart.root / "prod.yaml").symlink_to(tmp_path / "config.json")
    head = tmp_path / "head.json"
    answer = command(
        *("compile", "charts/inference", "--values", "prod.yaml", "--output", str(head)), cwd=chart.root
    )
    assert (answer.code, answer.codes, "planted" in head.read_text()) == (2, {"values-unreadable"}, False)
