from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import workflows
from tools.errors import ToolError

ROOT = Path(__file__).parents[3]

SOUND = """\
name: sample
on: pull_request
permissions: {}
concurrency: {group: sample, cancel-in-progress: true}
jobs:
  sample:
    runs-on: ubuntu-24.04
    permissions: {contents: read}
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2
        with: {persist-credentials: false}
      - run: echo "hello"
"""

ATTACKS = {
    "excessive-permissions": ("permissions: {contents: read}", "permissions: write-all"),
    "unpinned-uses": ("11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2", "v4"),
    "template-injection": ('"hello"', '"${{ github.event.pull_request.title }}"'),
    "dangerous-triggers": ("on: pull_request", "on: pull_request_target"),
    "artipacked": ("persist-credentials: false", "fetch-depth: 1"),
}


def written(folder: Path, text: str) -> Path:
    path = folder / ".github" / "workflows" / "sample.yml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_a_sound_workflow_has_no_findings(tmp_path: Path):
    assert list(workflows.lint([written(tmp_path, SOUND)], None)) == []


@pytest.mark.parametrize("rule", ATTACKS)
def test_a_hole_in_a_workflow_is_found(rule: str, tmp_path: Path):
    sound, hole = ATTACKS[rule]
    assert sound in SOUND
    (finding,) = workflows.lint([written(tmp_path, SOUND.replace(sound, hole))], None)
    assert f"[{rule}]" in finding


def test_a_file_that_is_no_workflow_is_a_finding(tmp_path: Path):
    (finding,) = workflows.lint([written(tmp_path, "jobs: [\n")], None)
    assert "sample.yml" in finding


def test_what_is_kept_is_not_forgotten_where_its_list_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(workflows, "ROOT", tmp_path)
    (finding,) = workflows.lint([written(tmp_path, SOUND)], None)
    assert "zizmor.yml" in finding


def test_what_a_linter_finds_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = written(tmp_path, SOUND.replace(*ATTACKS["unpinned-uses"]))
    monkeypatch.setattr(workflows, "own", lambda root: [path])
    monkeypatch.setattr(workflows, "examples", lambda root, folder: [])
    monkeypatch.setattr(workflows, "actionlint", lambda: None)
    assert workflows.main() == 1
    assert "[unpinned-uses]" in capsys.readouterr().out


def test_without_go_it_says_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = written(tmp_path, SOUND)
    monkeypatch.setattr(workflows, "own", lambda root: [path])
    monkeypatch.setattr(workflows, "examples", lambda root, folder: [])
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DRA_INFRA_CACHE", str(tmp_path))
    assert workflows.main() == 0
    assert "actionlint is left out" in capsys.readouterr().out


def test_actionlint_sees_workflows_and_no_action(tmp_path: Path):
    linter = tmp_path / "actionlint"
    linter.write_text(f'#!{sys.executable}\nimport sys\nprint("saw", *sys.argv[1:])\nsys.exit(1)\n')
    linter.chmod(0o755)
    path = written(tmp_path, SOUND)
    (finding,) = workflows.lint([path, ROOT / "action.yml"], linter)
    assert finding == f"saw -no-color -pyflakes= {path}"


def test_a_linter_that_does_not_run_is_told(tmp_path: Path):
    with pytest.raises(ToolError, match="actionlint does not run"):
        list(workflows.lint([written(tmp_path, SOUND)], tmp_path / "actionlint"))


def test_workflows_of_pages_and_of_init_are_looked_at(tmp_path: Path):
    found = workflows.examples(ROOT, tmp_path)
    assert "ci.md-review.yml" in {path.name for path in found}
    assert any(path.name.startswith("init-") for path in found)
    assert len(set(found)) == len(found)
    texts = [path.read_text() for path in found]
    assert any("upload-artifact" in text or "pull-requests: write" in text for text in texts)
    assert not any("COMMIT" in text for text in texts)


def test_steps_by_themselves_become_a_workflow():
    page = "# P\n\n```yaml\n- uses: a/b@c\n  with:\n    d: e\n- run: true\n```\n\n```yaml\n- kind: Pod\n```\n\n```yaml\nkind: [\n```\n"
    ((line, text),) = workflows.workflows_in(page)
    assert line == 3
    assert yaml.safe_load(text)["jobs"]["steps"]["steps"] == [
        {"uses": "a/b@c", "with": {"d": "e"}},
        {"run": True},
    ]


def everywhere() -> list[Path]:
    """All that names actions, in this repository or in what it tells others to write."""
    return [
        *workflows.own(ROOT),
        ROOT / "docs" / "ci.md",
        *sorted((ROOT / "dra_infra" / "cli" / "templates" / "project").glob("*.yml.j2")),
    ]


def test_each_action_is_pinned_by_one_commit_with_its_version_beside_it():
    found: dict[str, set[str]] = {}
    for path in everywhere():
        for used in re.findall(r"^ *-? *uses: *(.+)$", path.read_text(), re.MULTILINE):
            if used.startswith(("./", "OWNER/")):
                continue
            action, _, pin = used.partition("@")
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), f"{path.name}: {used}"
            found.setdefault(action, set()).add(pin)
    assert len(found) > 4
    assert {action: pins for action, pins in found.items() if len(pins) > 1} == {}


def jobs(name: str) -> dict[str, dict[str, Any]]:
    return yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"]


def writes(job: dict[str, Any]) -> bool:
    return "write" in job["permissions"].values()


def steps_of(job: dict[str, Any]) -> str:
    return yaml.safe_dump(job.get("steps", []))


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_rights_are_given_job_by_job(path: Path):
    text = yaml.safe_load(path.read_text())
    assert text["permissions"] == {}
    assert all("permissions" in job for job in text["jobs"].values())


def test_nothing_that_pull_requests_run_may_write_or_sees_a_secret():
    assert not any(writes(job) for job in jobs("ci.yml").values())
    assert "secrets." not in (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "secrets" not in yaml.safe_dump(jobs("release.yml")["ci"])


def test_jobs_that_may_publish_run_nothing_of_the_repository():
    publishing = {name: job for name, job in jobs("release.yml").items() if writes(job)}
    assert set(publishing) == {"sign", "image", "publish", "publish-docs", "publish-index"}
    for name, job in publishing.items():
        assert "actions/checkout" not in steps_of(job), name
        assert not re.search(r"\bmake\b|\bpython|\bpip\b|\buv\b|\.ci/", steps_of(job)), name
        assert job["environment"] in ("release", "index"), name


def test_nothing_is_published_before_all_of_ci_has_passed():
    release = jobs("release.yml")

    def before(name: str) -> set[str]:
        needs = release[name].get("needs", [])
        direct = {needs} if isinstance(needs, str) else set(needs)
        return direct | {each for name in direct for each in before(name)}

    assert release["ci"]["uses"].endswith("/ci.yml")
    for name, job in release.items():
        if writes(job):
            assert {"ci", "build"} <= before(name), name


def uses(job: dict[str, Any], action: str) -> list[dict[str, Any]]:
    return [step for step in job.get("steps", []) if step.get("uses", "").startswith(f"{action}@")]


def test_what_is_published_is_what_the_jobs_before_left_and_nothing_else_of_that_name():
    release = jobs("release.yml")
    left = {
        f"${{{{ needs.{name}.outputs.{output} }}}}": name
        for name, job in release.items()
        for output, value in job.get("outputs", {}).items()
        if any(
            value == f"${{{{ steps.{step['id']}.outputs.artifact-id }}}}"
            for step in uses(job, "actions/upload-artifact")
        )
    }
    assert set(left.values()) == {"build", "docs", "sign"}
    taken = 0
    for name, job in release.items():
        for step in uses(job, "actions/download-artifact"):
            asked = step["with"]
            assert set(asked) == {"artifact-ids", "merge-multiple", "path"}, name
            assert left[asked["artifact-ids"]] in job["needs"], name
            taken += 1
    assert taken == 6


@pytest.mark.parametrize("name", ["ci.yml", "release.yml"])
def test_jobs_that_build_an_image_have_the_lists_of_packages_of_the_day(name: str):
    building = 0
    for job in jobs(name).values():
        commands = "\n".join(step.get("run", "") for step in job.get("steps", []))
        if built := re.search(r"make release-check|\.ci/run", commands):
            assert "sudo apt-get update" in commands[: built.start()]
            building += 1
    assert building


def test_the_image_is_pushed_as_it_was_built_or_not_at_all():
    (push,) = [step["run"] for step in jobs("release.yml")["image"]["steps"] if step.get("id") == "push"]
    (copy,) = [line for line in push.splitlines() if "skopeo copy" in line]
    assert "--preserve-digests --digestfile digest" in copy


FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_forms_for_issues_are_what_the_forge_reads(path: Path):
    form = yaml.safe_load(path.read_text())
    assert set(form) <= {"name", "description", "title", "labels", "body"}
    asked = [each for each in form["body"] if each["type"] != "markdown"]
    assert asked
    assert {each["type"] for each in asked} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({each["id"] for each in asked}) == len(asked)
    assert all(each["attributes"]["label"] for each in asked)


def test_problems_of_security_are_led_elsewhere():
    # Forms alone would want the problem itself, which SECURITY.md asks to leave out where nothing else is offered.
    assert "open an issue which says only that" in (ROOT / "SECURITY.md").read_text()
    assert yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text()) == {
        "blank_issues_enabled": True
    }
    assert "Report a vulnerability" in (ROOT / ".github" / "ISSUE_TEMPLATE" / "problem.yml").read_text()
    assert "Report a vulnerability" in (ROOT / "SECURITY.md").read_text()


def test_owners_are_named_as_the_readme_names_them():
    lines = (ROOT / ".github" / "CODEOWNERS").read_text().splitlines()
    assert [line.split() for line in lines if line and not line.startswith("#")] == [
        ["*", "@OWNER/maintainers"]
    ]
