"""The action, the GitLab template and docs/ci.md say the same, and none lets an input become a command."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from dra_infra.cli.app import app
from dra_infra.codes import CODES
from dra_infra.output.secret_names import is_secret_name

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "ci.md").read_text()
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "gitlab" / "review.yml").read_text())
COMPILE: dict[str, Any] = yaml.safe_load((ROOT / "compile" / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
ALL_STEPS: list[dict[str, Any]] = [*STEPS, *COMPILE["runs"]["steps"]]
SNIPPETS = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)]
COMMANDS = re.findall(r"^\$ dra-infra (.*)$", DOCS, re.MULTILINE)


def table(head: str) -> dict[str, str]:
    """First cell → the rest, of the table of docs/ci.md with that head; backticks left out."""
    rows = DOCS.partition(head)[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {name.strip("`"): rest[0] for names, *rest in cells for name in names.split(", ")}


def options_of(command: str) -> set[str]:
    found = app.get_command(click.Context(app), command)
    assert found is not None, command
    return {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}


def uses_of(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["uses"]] if "uses" in node else []
        return own + [each for value in node.values() for each in uses_of(value)]
    return [each for value in node for each in uses_of(value)] if isinstance(node, list) else []


def test_no_script_has_an_expression_in_it():
    scripts = [step["run"] for step in ALL_STEPS if "run" in step]
    assert len(scripts) == 10
    assert not any("${{" in script for script in scripts)


def test_every_script_says_its_shell():
    assert {step["shell"] for step in ALL_STEPS if "run" in step} == {"bash"}


def test_actions_of_others_are_pinned_by_commit():
    uses = [each for each in (*uses_of(ALL_STEPS), *uses_of(SNIPPETS)) if not each.startswith("OWNER/")]
    assert sorted({each.partition("@")[0] for each in uses}) == [
        "actions/checkout",
        "actions/download-artifact",
        "actions/upload-artifact",
    ]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each) for each in uses)


def test_only_the_steps_that_need_it_have_the_token():
    with_token = [step["name"] for step in ALL_STEPS if "inputs.token" in str(step.get("env"))]
    assert with_token == [
        "Find the pull request",
        "Check out the base, and nothing of the pull request",
        "Find the base",
        "Comment",
        "Show the verdict",
    ]
    assert "token" not in COMPILE["inputs"]


@pytest.mark.parametrize(
    ("action", "head"), [(ACTION, "| Input | Default | |"), (COMPILE, "| Input of `compile` | Default | |")]
)
def test_every_input_is_used_and_documented_with_its_default(action: dict[str, Any], head: str):
    said = table(head)
    assert list(said) == list(action["inputs"])
    steps = str(action["runs"]["steps"])
    assert [name for name in action["inputs"] if f"inputs.{name} " not in steps] == []
    for name, each in action["inputs"].items():
        if each["default"] and "${{" not in each["default"]:
            assert said[name] == f"`{each['default']}`"


def test_every_output_is_documented():
    assert set(table("| Output | |")) == set(ACTION["outputs"])


def test_every_variable_of_the_template_is_read_and_documented():
    scripts = "".join(file.read_text() for file in sorted((ROOT / "ci").glob("*.sh")))
    lines = "".join((ROOT / "ci" / "gitlab" / "review.yml").read_text().partition("before_script")[2])
    for name in TEMPLATE[".dra-infra"]["variables"]:
        assert f"${name}" in lines or f"${{{name}" in scripts
        assert name in DOCS or f"`_{name.removeprefix('DRA_INFRA_')}`" in DOCS


def test_every_snippet_gives_inputs_and_variables_that_exist():
    assert len(SNIPPETS) == 6
    steps = [step for snippet in SNIPPETS for step in find_steps(snippet)]
    for uses, action, count in (("OWNER/dra-infra@", ACTION, 4), ("OWNER/dra-infra/compile@", COMPILE, 1)):
        given = [step.get("with", {}) for step in steps if step.get("uses", "").startswith(uses)]
        assert len(given) == count
        assert all(set(each) <= set(action["inputs"]) for each in given)
    job = SNIPPETS[4][".dra-infra"]
    assert set(job["variables"]) <= set(TEMPLATE[".dra-infra"]["variables"])
    assert (ROOT / SNIPPETS[4]["include"][0]["file"].lstrip("/")).is_file()
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    named = {hook["id"] for repository in SNIPPETS[5]["repos"] for hook in repository["hooks"]}
    assert named <= {hook["id"] for hook in hooks}


def find_steps(snippet: Any) -> list[dict[str, Any]]:
    if isinstance(snippet, list):
        return snippet
    return [step for job in snippet.get("jobs", {}).values() for step in job["steps"]]


def test_the_workflows_ask_for_the_least():
    assert SNIPPETS[0]["permissions"] == SNIPPETS[2]["permissions"] == {}
    assert SNIPPETS[0]["jobs"]["compile"]["permissions"] == {"contents": "read"}
    writes = {"contents": "read", "pull-requests": "write"}
    assert SNIPPETS[0]["jobs"]["review"]["permissions"] == writes
    afterwards = {"actions": "read", "statuses": "write", **writes}
    assert SNIPPETS[2]["jobs"]["review"]["permissions"] == afterwards


def test_the_job_with_the_token_runs_where_the_first_one_failed():
    # GitHub counts a required check that was skipped as passed.
    written = ROOT / "dra_infra" / "cli" / "templates" / "project" / "github.yml.j2"
    for text in (DOCS, written.read_text()):
        _, _, job = text.partition("    needs: compile\n")
        assert "    if: ${{ !cancelled() }}\n" in job.partition("runs-on")[0]
    assert SNIPPETS[0]["jobs"]["review"]["if"] == "${{ !cancelled() }}"
    (take,) = (step for step in STEPS if step["name"] == "Take the head")
    # The review then says that there is none, and fails.
    assert take["continue-on-error"] is True


def test_the_verdict_of_each_stack_has_a_name_of_its_own():
    (show,) = (step for step in STEPS if step["name"] == "Show the verdict")
    command = 'DRA_INFRA_PATH=infra DRA_INFRA_TARGET=main; {}echo "{}"'
    context = re.search(r'"--context=(.*)"', show["run"])
    assert context is not None
    said = [
        subprocess.run(
            ["bash", "-c", command.format(stack, context[1])], capture_output=True, text=True, check=True
        ).stdout.strip()
        for stack in ("DRA_INFRA_STACK=; ", "DRA_INFRA_STACK=prod; ")
    ]
    assert said == ["dra-infra review infra into main", "dra-infra review infra prod into main"]


def test_the_scripts_take_away_what_is_known_to_be_secret():
    text = (ROOT / "ci" / "review.sh").read_text()
    (line,) = (each for each in text.splitlines() if each.strip().startswith("*TOKEN*"))
    names = [each.strip("* ") for each in line.partition(")")[0].split("|")]
    assert len(names) >= 10
    assert [name for name in names if not is_secret_name(f"A_{name}_1")] == []
    script = text.partition("shopt -s nocasematch")[2].partition("fi\n")[0]
    environment = {"PATH": os.environ["PATH"], "my_api_key": "s", "Db_Password": "s", "PLAIN": "p"}
    command = ["bash", "-c", f"shopt -s nocasematch{script}\nenv"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "PLAIN=p" in done.stdout
    assert not any(name in done.stdout for name in ("my_api_key", "Db_Password"))
    # The bash of macOS is 3.2.
    assert not [
        file.name for file in (ROOT / "ci").glob("*.sh") if re.search(r"\$\{\w+(\^|,)", file.read_text())
    ]


def test_packages_of_a_stranger_are_installed_without_the_token_of_the_job():
    script = TEMPLATE["dra-infra compile"]["script"]
    (unset,) = (number for number, line in enumerate(script) if line.startswith("unset CI_JOB_TOKEN "))
    assert "requirements.sh" in script[unset + 1]


def test_the_job_with_the_token_checks_out_nothing():
    for snippet in (SNIPPETS[0], SNIPPETS[2]):
        assert [step["uses"] for step in snippet["jobs"]["review"]["steps"]] == ["OWNER/dra-infra@COMMIT"]
    assert TEMPLATE["dra-infra review"]["variables"]["GIT_STRATEGY"] == "none"
    assert "GITLAB_TOKEN" not in str(TEMPLATE["dra-infra compile"]) + str(TEMPLATE[".dra-infra"])
    assert TEMPLATE["dra-infra review"]["environment"]["name"] in DOCS


def test_every_option_in_the_docs_exists():
    for command in COMMANDS:
        name = command.split()[0]
        assert set(re.findall(r"--[a-z-]+", command)) <= options_of(name), command
    assert set(table("| Option of `dra-infra comment` |")) <= options_of("comment")
    assert {"--dry-run", "--json", "--timeout", "--account"} <= options_of("comment")


def test_the_engine_is_asked_only_where_an_input_says_so():
    script = (ROOT / "ci" / "review.sh").read_text()
    assert "[[ ${DRA_INFRA_ENGINE:-false} != true ]] || arguments+=(--engine)" in script
    assert ACTION["inputs"]["engine"]["default"] == "false"
    assert "--engine" in options_of("review")


@pytest.mark.parametrize(
    "option",
    [
        "--base",
        "--head",
        "--head-commit",
        "--output",
        "--fleet",
        "--snapshot",
        "--stack",
        "--fail-on",
    ],
)
def test_every_option_that_the_script_writes_exists(option: str):
    assert f'"{option}=' in (ROOT / "ci" / "review.sh").read_text()
    assert option in options_of("review")


def test_every_code_has_a_row():
    codes = {code for code in CODES if code.startswith(("forge-", "comment-", "compiled-"))}
    codes |= {"base-not-found", "pull-request-not-found"}
    rows = DOCS.partition("## Troubleshooting")[2]
    assert set(re.findall(r"^\| \[?`([a-z-]+)`", rows, re.MULTILINE)) == codes
