"""Runs the shell steps of action.yml as GitHub's runner does: expressions, environment, files, exit codes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TOKEN = "ghs_planted0123456789abcdef"
"""The token of the actions' account at the local forge."""

# Only these contexts are known here; a new one fails the test that meets it.
CONTEXTS = ("inputs", "steps", "github", "runner")
ARTIFACTS = ("actions/upload-artifact", "actions/download-artifact")


@dataclass
class Run:
    """What a run of the action left: `code` is the exit code of the step that ended it."""

    code: int = 0
    failed: str = ""
    log: str = ""
    summary: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)


def clean_environment(**more: str) -> dict[str, str]:
    """Ours without what a CI sets; this Python first on PATH."""
    import sys

    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(
            ("GITHUB_", "CI_", "GITLAB_", "RUNNER_", "DRA_INFRA_", "PYTEST_", "VIRTUAL_ENV")
        )
    }
    python = Path(sys.executable).resolve().parent
    return {**ours, "PATH": f"{python}:/usr/local/bin:/usr/bin:/bin", "PYTHONWARNINGS": "", **more}


def run_action(
    action: Path,
    *,
    workspace: Path,
    temp: Path,
    inputs: Mapping[str, str],
    github: Mapping[str, Any],
    environment: Mapping[str, str],
    skip: tuple[str, ...] = (),
    artifacts: Path | None = None,
) -> Run:
    """Run every step of *action* in *workspace*; artefacts are kept in and taken from the folder *artifacts*."""
    definition = yaml.safe_load((action / "action.yml").read_text())
    values = {name: str(each.get("default", "")) for name, each in definition["inputs"].items()}
    assert set(inputs) <= set(values)
    steps: dict[str, Any] = {}
    contexts = {"inputs": values, "steps": steps, "github": github, "runner": {"temp": str(temp)}}
    values.update({name: evaluate(value, contexts) for name, value in values.items()})
    values.update(inputs)
    run = Run()
    summary = temp / "summary.md"
    summary.write_text("")
    for step in definition["runs"]["steps"]:
        if "if" in step and evaluate(step["if"], contexts) in ("", "false"):
            continue
        if run.code and "always()" not in step.get("if", ""):
            continue
        if "uses" in step:
            run.used.append(step["uses"])
            if artifacts is not None:
                options = {name: evaluate(str(value), contexts) for name, value in step["with"].items()}
                if not hand_over(step["uses"], options, artifacts) and not step.get("continue-on-error"):
                    run.code = run.code or 1
                    run.failed = run.failed or step["name"]
            continue
        if step["name"] in skip:
            continue
        output = temp / "output"
        output.write_text("")
        script = temp / "step.sh"
        script.write_text(step["run"])
        given = {name: evaluate(str(value), contexts) for name, value in step.get("env", {}).items()}
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=workspace,
            env={
                **environment,
                "GITHUB_ACTION_PATH": str(action),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(summary),
                "GITHUB_ENV": str(temp / "env"),
                "RUNNER_TEMP": str(temp),
                **given,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        run.log += f"== {step['name']}\n{result.stdout}"
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        if "id" in step:
            steps[step["id"]] = {"outputs": outputs}
        if result.returncode and not run.code:
            run.code = result.returncode
            run.failed = step["name"]
    run.summary = summary.read_text()
    run.outputs = {
        name: evaluate(each["value"], contexts) for name, each in definition.get("outputs", {}).items()
    }
    return run


def hand_over(uses: str, options: Mapping[str, str], artifacts: Path) -> bool:
    """Do what the two actions for artefacts do; whether there was something to hand over."""
    assert uses.partition("@")[0] in ARTIFACTS
    kept = artifacts / options["name"]
    if uses.startswith(ARTIFACTS[0]):
        kept.mkdir(parents=True, exist_ok=True)
        files = [Path(line.strip()) for line in options["path"].splitlines() if Path(line.strip()).is_file()]
        for file in files:
            shutil.copy(file, kept)
        return bool(files)
    if not kept.is_dir():
        return False
    shutil.copytree(kept, options["path"], dirs_exist_ok=True, symlinks=True)
    return True


def evaluate(text: str, contexts: Mapping[str, Any]) -> str:
    """*text* with its `${{ }}` filled in."""
    return re.sub(
        r"\$\{\{(.*?)\}\}", lambda match: _show(_evaluate(match[1].strip(), contexts)), text, flags=re.DOTALL
    )


def _evaluate(expression: str, contexts: Mapping[str, Any]) -> Any:
    parts = re.split(r"('[^']*')", expression)
    for position in range(0, len(parts), 2):
        code = re.sub(
            r"[a-z_]+(?:\.[a-z_-]+)+", lambda match: repr(_look_up(match[0], contexts)), parts[position]
        )
        parts[position] = code.replace("&&", " and ").replace("||", " or ").replace("always()", "True")
    return eval("".join(parts), {"__builtins__": {}})  # noqa: S307  (expressions of our own file)


def _look_up(name: str, contexts: Mapping[str, Any]) -> Any:
    first, *keys = name.split(".")
    assert first in CONTEXTS, name
    value: Any = contexts[first]
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return value


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
