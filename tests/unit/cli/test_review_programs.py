from __future__ import annotations

import html
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

OBJECT = (
    "import pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': '%s'})\n"
)


@pytest.fixture
def project(tree):
    tree.write("Pulumi.yaml", "name: app\nruntime: python\n")
    tree.write("__main__.py", OBJECT % "old")
    tree.commit()
    return tree


@pytest.mark.parametrize(
    ("program", "code", "seconds"),
    [
        ("raise ValueError('boom')\n", "program-raised", "60"),
        ("import sys; sys.exit(0)\n", "program-exited", "60"),
        ("import os; os._exit(0)\n", "program-died", "60"),
        ("while True: pass\n", "program-timeout", "3"),
        ("x = (\n", "program-raised", "60"),
        ("import absent_module\n", "program-raised", "60"),
    ],
)
def test_a_head_that_does_not_run_ends_with_2(project, review, program: str, code: str, seconds: str):
    project.write("__main__.py", program)
    answer = review("--timeout", seconds)
    assert (answer.code, answer.out) == (2, "")
    assert code in answer.codes


def test_a_base_that_lacks_a_module_counts_as_empty_where_the_user_says_so(project, review):
    project.write("__main__.py", "import absent_module\n")
    project.commit()
    project.write("__main__.py", OBJECT % "new")
    answer = review("--format", "json", "--assume-empty-base")
    result = json.loads(answer.out)
    assert [each["action"] for each in result["changes"]] == ["created"]
    (missing,) = [each for each in result["notKnown"] if each["what"] == "base"]
    assert "absent_module" in missing["reason"]


def test_a_program_that_prints_megabytes_is_reviewed(project, review):
    project.write("__main__.py", "for _ in range(300):\n    print('x' * 2**16)\n" + OBJECT % "new")
    answer = review()
    assert answer.code == 0, answer.err
    assert "xxxx" not in answer.out + answer.err


def test_what_a_program_starts_ends_with_it(project, review, tmp_path: Path):
    mark = tmp_path / "child"
    # In a namespace of its own it has another number, so it is known by its command.
    script = f"echo begun > {mark}; sleep 600; : {mark}"
    start = f"import os, subprocess, time\nsubprocess.Popen(['sh', '-c', {script!r}])\n"
    wait = f"while not os.path.exists({str(mark)!r}):\n    time.sleep(0.01)\n"
    project.write("__main__.py", start + wait + OBJECT % "new")
    started = time.monotonic()
    assert review("--allow", f"write:{tmp_path}").code == 0
    assert time.monotonic() - started < 300
    assert mark.read_text() == "begun\n"
    assert not [each for each in Path("/proc").glob("[0-9]*") if is_started_with(each, str(mark))]


def is_started_with(process: Path, text: str) -> bool:
    try:
        return text in (process / "cmdline").read_text(errors="replace")
    except OSError:
        return False


def test_a_program_that_forks_is_answered_once(project, review):
    project.write("__main__.py", "import os\nos.fork()\n" + OBJECT % "new")
    answer = review("--format", "json")
    assert answer.code == 0, answer.err
    assert [each["action"] for each in json.loads(answer.out)["changes"]] in (["changed"], ["replaced"])


def test_what_a_program_writes_beside_itself_is_told_and_the_base_is_left_alone(project, review):
    project.write("__main__.py", "open('written.txt', 'w').write('x')\n" + OBJECT % "old")
    project.commit()
    project.write("__main__.py", "open('written.txt', 'w').write('x')\n" + OBJECT % "new")
    refused = review("--format", "json")
    assert (refused.code, refused.codes) == (2, {"program-raised"})
    assert "--allow write:PATH" in refused.err
    assert not (project.root / "written.txt").exists()
    answer = review("--format", "json", "--allow", "write:.", "--assume-empty-base")
    assert answer.code == 0, answer.err
    (note,) = json.loads(answer.out)["notes"]
    assert "written.txt" in note
    # Python keeps there what it compiled, as with every program.
    left = {each.name for each in project.root.iterdir()} - {"__pycache__"}
    assert left == {".git", "Pulumi.yaml", "__main__.py", "written.txt"}


def test_a_folder_below_the_project_is_the_project(project, review):
    (project.root / "more").mkdir()
    project.write("__main__.py", OBJECT % "new")
    assert "c" in review("more").out


def test_a_project_above_the_repository_is_not_ours(project, command):
    inner = project.root / "inner"
    inner.mkdir()
    project.git("init", str(inner))
    (inner / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    answer = command("review", "--base-path", "/dev/null", "--format", "json", cwd=inner)
    assert json.loads(answer.out)["source"] == "manifests"


def test_a_side_reads_what_lies_above_its_folder_in_its_repository(tree, command):
    above = "import pathlib, sys\nsys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))\nimport shared\n"
    for side in ("base", "head"):
        tree.write(f"{side}/apps/infra/Pulumi.yaml", "name: app\nruntime: python\n")
        tree.write(f"{side}/apps/infra/__main__.py", above + OBJECT % "old")
        tree.write(f"{side}/shared.py", "")
    paths = ("head/apps/infra", "--base-path", "base/apps/infra")
    answer = command("review", *paths, "--format", "json", cwd=tree.root)
    found = json.loads(answer.out)
    assert (answer.code, found["changes"], found["notKnown"]) == (0, [], [])


@pytest.mark.parametrize("program", [OBJECT % "new", "raise ValueError('boom')\n"], ids=["a review", "none"])
def test_reports_are_written_through_no_link(project, review, tmp_path: Path, program: str):
    victim = tmp_path / "bashrc"
    victim.write_text("mine")
    project.write("__main__.py", program)
    for name in ("review.md", ".review.md.partial", ".review.html.partial", "review.html"):
        (project.root / name).symlink_to(victim)
    review("--markdown", "review.md", "--html", "review.html")
    assert victim.read_text() == "mine"
    assert not (project.root / "review.md").is_symlink()
    assert "dra-infra review app/dev" in (project.root / "review.md").read_text()


def test_a_link_out_of_the_repository_is_no_program_of_it(project, command, tmp_path: Path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    (other / "__main__.py").write_text(OBJECT % "of another repository")
    (project.root / "out").symlink_to(other)
    for arguments in (("review", "out", "--base", "HEAD"), ("compile", "out")):
        answer = command(*arguments, cwd=project.root)
        assert (answer.code, answer.codes) == (2, {"no-repository"})


@pytest.fixture
def failed_base(project):
    """A project whose base fails and whose head adds an object."""
    project.write("__main__.py", "import absent_module\n")
    project.commit()
    project.write("__main__.py", OBJECT % "new")
    return project


@pytest.mark.parametrize("form", ["text", "markdown", "json", "html", "sarif", "junit"])
@pytest.mark.parametrize("brief", [(), ("--brief",)])
def test_a_base_that_did_not_run_closes_the_gate_in_every_form(failed_base, review, form, brief):
    answer = review("--format", form, *brief)
    assert answer.code == 1
    assert "base-not-run" in answer.out
    assert "absent_module" in html.unescape(answer.out)
    assert "✓" not in answer.out


def test_nothing_is_called_created_against_a_base_that_did_not_run(failed_base, review):
    answer = review("--brief")
    assert answer.out.startswith("? not decided: the base did not run")
    assert "no problems" not in answer.out
    assert "counts as empty" not in review().out
    assert "changes not known" in answer.out
    assert "created" not in answer.out
    result = json.loads(review("--format", "json").out)
    assert (result["grade"], result["failed"], result["changes"]) == ("undecided", False, [])


def test_a_user_may_say_that_a_base_that_did_not_run_was_empty(failed_base, review):
    answer = review("--brief", "--assume-empty-base")
    assert answer.code == 0
    assert "created ConfigMap" in answer.out


def test_a_program_that_the_head_adds_has_an_empty_base(project, review):
    (project.root / "Pulumi.yaml").rename(project.root / "moved.yaml")
    project.commit()
    (project.root / "moved.yaml").rename(project.root / "Pulumi.yaml")
    answer = review("--brief")
    assert answer.code == 0
    assert "created" in answer.out


EXPANDED = """\
import pulumi_kubernetes as k8s
k8s.helm.v4.Chart('c', chart='./chart', values={'size': 1})
k8s.kustomize.v2.Directory('d', directory='overlay')
"""


@pytest.fixture
def expanded(project):
    """A project whose chart and kustomization grow from 1 to 64, with the tools that make their objects."""
    tools = [shutil.which(name) for name in ("helm", "kubectl")]
    if None in tools:
        pytest.skip("needs helm and kubectl on PATH")
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {size: %s}\n"
    project.write("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n")
    project.write("chart/templates/one.yaml", settings % ("of-chart", '"{{ .Values.size }}"'))
    project.write("overlay/kustomization.yaml", "resources: [one.yaml]\n")
    project.write("overlay/one.yaml", settings % ("of-overlay", '"1"'))
    project.write("__main__.py", EXPANDED)
    project.commit()
    project.write("overlay/one.yaml", settings % ("of-overlay", '"64"'))
    project.write("__main__.py", EXPANDED.replace("1", "64"))
    return [f"--allow=read:{Path(tool).resolve()}" for tool in tools if tool]


def test_a_change_in_a_local_chart_or_kustomization_is_reviewed(expanded, review):
    answer = review("--brief", *expanded)
    assert "2 replaced, 0 unchanged" in answer.out
    assert "ConfigMap default/of-chart" in answer.out
    assert "ConfigMap default/of-overlay" in answer.out


@pytest.mark.usefixtures("expanded")
@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_what_no_tool_could_expand_never_counts_as_unchanged(review, monkeypatch, tmp_path: Path, form):
    (tmp_path / "git").symlink_to(Path(str(shutil.which("git"))).resolve())
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = review("--format", form, "--brief")
    assert "nothing changes" not in answer.out
    assert "No object differs" not in answer.out
    assert "o change is known, not expanded: " in answer.out


@pytest.mark.parametrize("folder", [".", "infra"])
def test_code_scanning_gets_files_from_the_top_of_the_repository(tree, review, folder: str):
    tree.write("infra/Pulumi.yaml", "name: app\nruntime: python\n")
    tree.write("infra/__main__.py", "")
    tree.commit()
    shared = (
        "import dra_infra as dra\ndef make(name):\n    dra.GpuClaim(name, device_class='h100', count=99)\n"
    )
    tree.write("packages/acme.py", shared)
    program = "import sys\nfrom pathlib import Path\nsys.path.insert(0, str(Path(__file__).parents[1] / 'packages'))\n"
    program += "import acme\nacme.make('a')\nimport dra_infra as dra\ndra.GpuClaim('b', device_class='h100', count=98)\n"
    tree.write("infra/__main__.py", program)
    path = "infra" if folder == "." else "."
    log = json.loads(review(path, "--format", "sarif", cwd=tree.root / folder).out)
    places = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]
    assert [each["artifactLocation"]["uri"] for each in places] == ["packages/acme.py", "infra/__main__.py"]


def test_code_scanning_gets_manifests_from_the_top_of_the_repository(tree, review):
    tree.write("apps/a/README.md", "")
    tree.commit()
    claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: A_B}\nspec: {}\n"
    tree.write("apps/a/claim.yaml", claim)
    log = json.loads(review("a", "--format", "sarif", cwd=tree.root / "apps").out)
    (place, *_) = [each["locations"][0]["physicalLocation"] for each in log["runs"][0]["results"]]
    assert place["artifactLocation"]["uri"] == "apps/a/claim.yaml"


@pytest.mark.parametrize("command_name", ["review", "validate"])
@pytest.mark.parametrize("start", ["..", ".", "apps", "apps/a", "../other"])
def test_code_scanning_gets_the_same_places_from_wherever_the_command_runs(
    tree: Any, command: Any, command_name: str, start: str
):
    claim = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: A_B}\nspec: {}\n"
    tree.write("README.md", "")
    tree.commit()
    tree.write("apps/a/claim.yaml", claim)
    folder = tree.root / start
    folder.mkdir(exist_ok=True)
    path = os.path.relpath(tree.root / "apps/a", folder)
    base = ["--base", "HEAD"] if command_name == "review" else []
    answer = command(command_name, path, *base, "--format", "sarif", cwd=folder)
    places = [
        each["locations"][0]["physicalLocation"] for each in json.loads(answer.out)["runs"][0]["results"]
    ]
    assert places
    assert {each["artifactLocation"]["uri"] for each in places} == {"apps/a/claim.yaml"}
