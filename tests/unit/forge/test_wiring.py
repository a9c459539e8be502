"""The action, the GitLab template and docs/ci.md say the same, and none lets an input become a command."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from dra_infra.cli.app import app
from dra_infra.codes import CODES

ROOT = Path(__file__).parents[3]
DOCS = (ROOT / "docs" / "ci.md").read_text()
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
TEMPLATE: dict[str, Any] = yaml.safe_load((ROOT / "ci" / "gitlab" / "review.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
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
    scripts = [step["run"] for step in STEPS if "run" in step]
    assert len(scripts) == 5
    assert not any("${{" in script for script in scripts)


def test_every_script_says_its_shell():
    assert {step["shell"] for step in STEPS if "run" in step} == {"bash"}


def test_actions_of_others_are_pinned_by_commit():
    uses = [each for each in (*uses_of(STEPS), *uses_of(SNIPPETS)) if not each.startswith("OWNER/")]
    assert sorted({each.partition("@")[0] for each in uses}) == [
        "actions/checkout",
        "actions/upload-artifact",
    ]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each) for each in uses)


def test_only_the_steps_that_need_it_have_the_token():
    with_token = [step["name"] for step in STEPS if "inputs.token" in str(step.get("env"))]
    assert with_token == ["Find the base", "Comment"]


def test_every_input_is_used_and_documented_with_its_default():
    said = table("| Input | Default | |")
    assert list(said) == list(ACTION["inputs"])
    steps = str(STEPS)
    assert [name for name in ACTION["inputs"] if f"inputs.{name} " not in steps] == []
    for name, each in ACTION["inputs"].items():
        if each["default"] and "${{" not in each["default"]:
            assert said[name] == f"`{each['default']}`"


def test_every_output_is_documented():
    assert set(table("| Output | |")) == set(ACTION["outputs"])


def test_every_variable_of_the_template_is_read_and_documented():
    scripts = "".join((ROOT / "ci" / name).read_text() for name in ("install.sh", "base.sh", "review.sh"))
    for name in TEMPLATE["dra-infra review"]["variables"]:
        assert f"${name}" in "".join(TEMPLATE["dra-infra review"]["script"]) or f"${{{name}" in scripts
        assert name in DOCS or f"`_{name.removeprefix('DRA_INFRA_')}`" in DOCS


def test_every_snippet_gives_inputs_and_variables_that_exist():
    assert len(SNIPPETS) == 4
    steps = [step for snippet in SNIPPETS for step in find_steps(snippet)]
    given = [step.get("with", {}) for step in steps if step.get("uses", "").startswith("OWNER/dra-infra@")]
    assert len(given) == 3
    assert all(set(each) <= set(ACTION["inputs"]) for each in given)
    job = SNIPPETS[3]["dra-infra review"]
    assert set(job["variables"]) <= set(TEMPLATE["dra-infra review"]["variables"])
    assert (ROOT / SNIPPETS[3]["include"][0]["file"].lstrip("/")).is_file()


def find_steps(snippet: Any) -> list[dict[str, Any]]:
    if isinstance(snippet, list):
        return snippet
    return [step for job in snippet.get("jobs", {}).values() for step in job["steps"]]


def test_the_workflow_asks_for_the_least():
    assert SNIPPETS[1]["permissions"] == {"contents": "read", "pull-requests": "write"}


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
    "option", ["--base", "--markdown", "--html", "--fleet", "--snapshot", "--stack", "--fail-on"]
)
def test_every_option_that_the_script_writes_exists(option: str):
    assert f'"{option}=' in (ROOT / "ci" / "review.sh").read_text()
    assert option in options_of("review")


def test_every_code_has_a_row():
    codes = {code for code in CODES if code.startswith(("forge-", "comment-"))} | {"base-not-found"}
    rows = DOCS.partition("## Troubleshooting")[2]
    assert set(re.findall(r"^\| \[?`([a-z-]+)`", rows, re.MULTILINE)) == codes
