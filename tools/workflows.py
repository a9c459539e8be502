"""Lint the workflows of GitHub, ours and those that we tell others to write: ``python -m tools.workflows`` or ``make workflows``.

zizmor looks for holes (a ref that can move, a right too many, an expression in a script), actionlint for what GitHub would refuse or
never run. Neither asks the network.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tools import build, toolsets
from tools.errors import ToolError
from tools.progress import Progress

ROOT: Final = Path(__file__).parent.parent

_FENCE: Final = re.compile(r"^```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED: Final = re.compile(r"# \.github/workflows/([a-z0-9-]+\.yml)\n")
_PLACEHOLDER: Final = "@COMMIT"
_WRITTEN: Final = f"@{'0' * 40}"
"""Stands in for the whole commit that a reader writes there."""

_NO_GO: Final = "actionlint is left out, for it is built with Go, and go is not on PATH; zizmor has run"


def main() -> int:
    """Lint, and say what was looked at; returns the exit status."""
    try:
        with tempfile.TemporaryDirectory(prefix="dra-infra-workflows-") as folder:
            files = [*own(ROOT), *examples(ROOT, Path(folder))]
            linter = actionlint()
            findings = list(lint(files, linter))
    except ToolError as error:
        print(f"make workflows: {error}", file=sys.stderr)
        return 1
    if findings:
        print("\n\n".join(findings))
        return 1
    print(f"{len(files)} workflows and actions, ours and those in documents: no findings")
    if linter is None:
        print(_NO_GO)
    return 0


def own(root: Path) -> list[Path]:
    """The workflows of this repository, and its actions."""
    actions = (root / "action.yml", root / "compile" / "action.yml")
    return [*sorted((root / ".github" / "workflows").glob("*.y*ml")), *actions]


def examples(root: Path, folder: Path) -> list[Path]:
    """Write the workflows that documents show and `dra-infra init` writes below *folder*.

    Args:
        root: The repository.
        folder: Gets `.github/workflows`, since linters tell workflows from other YAML by their place.

    Returns:
        Their paths; each is named after its page, and after the file that its first line names, else after its line there.
    """
    workflows = folder / ".github" / "workflows"
    workflows.mkdir(parents=True)
    found = []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        for line, text in workflows_in(page.read_text(encoding="utf-8")):
            named = _NAMED.match(text)
            path = workflows / f"{page.name}-{named[1] if named else f'line-{line}.yml'}"
            found.append(path if path not in found else path.with_stem(f"{path.stem}-line-{line}"))
            found[-1].write_text(text.replace(_PLACEHOLDER, _WRITTEN), encoding="utf-8")
    return [*found, *_of_init(folder, workflows)]


def workflows_in(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of each workflow in the Markdown of *page*; steps by themselves become one of a single job."""
    for fence in _FENCE.finditer(page):
        try:
            shown: Any = yaml.safe_load(fence["text"])
        except yaml.YAMLError:
            # Whether it is YAML is asked by the tests of the documents.
            continue
        line = page.count("\n", 0, fence.start()) + 1
        # YAML 1.1 reads the key `on` as true.
        if isinstance(shown, dict) and "jobs" in shown and (True in shown or "on" in shown):
            yield line, fence["text"]
        elif isinstance(shown, list) and all(
            isinstance(step, dict) and {"uses", "run"} & set(step) for step in shown
        ):
            steps = "".join(f"      {each}\n" for each in fence["text"].splitlines())
            yield line, f"{_AROUND_STEPS}{steps}"


_AROUND_STEPS: Final = """\
name: steps of a page
on: pull_request
permissions: {}
jobs:
  steps:
    runs-on: ubuntu-latest
    steps:
"""


def _of_init(folder: Path, workflows: Path) -> list[Path]:
    project = folder / "project"
    # By the code of this checkout, whatever is installed.
    main = "from dra_infra.cli.process import main; main()"
    command = [sys.executable, "-c", main, "init", str(project), "--ci", "github"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"dra-infra init failed: {done.stderr or done.stdout}")
    found = []
    for path in sorted((project / ".github" / "workflows").glob("*.yml")):
        found.append(workflows / f"init-{path.name}")
        found[-1].write_text(path.read_text(encoding="utf-8").replace(_PLACEHOLDER, _WRITTEN))
    if not found:
        raise ToolError("dra-infra init writes no workflow below .github/workflows")
    return found


def actionlint() -> Path | None:
    """The built actionlint, built now where it was not; nothing where there is no Go to build it with.

    Raises:
        ToolError: When it cannot be built.
    """
    chosen = [each for each in toolsets.load() if each.name == "actionlint"]
    if not build.has_go():
        try:
            return build.binary("actionlint")
        except ToolError:
            return None
    build.build(chosen, jobs=build.default_jobs(), progress=Progress(sys.stderr))
    return build.binary("actionlint")


def lint(files: Sequence[Path], actionlint: Path | None) -> Iterator[str]:
    """The output of each linter that found something in *files*.

    Raises:
        ToolError: When a linter does not run.
    """
    # Next to this Python: pinned by hash, as everything in the environment is.
    zizmor = Path(sys.executable).parent / "zizmor"
    options = [
        "--offline",
        "--quiet",
        "--no-progress",
        "--strict-collection",
        "--color=never",
        "--config",
        str(ROOT / "zizmor.yml"),
    ]
    yield from _findings([str(zizmor), *options, *map(str, files)])
    if actionlint:
        # An action is no workflow. pyflakes looks at Python in scripts, and there is none.
        workflows = [str(path) for path in files if path.parent.name == "workflows"]
        yield from _findings([str(actionlint), "-no-color", "-pyflakes=", *workflows])


def _findings(command: Sequence[str]) -> Iterator[str]:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("GH_TOKEN", "GITHUB_TOKEN")
    }
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolError(f"{Path(command[0]).name} does not run: {error}", hint="run make venv") from error
    if done.returncode:
        yield (done.stdout + done.stderr).strip() or f"{Path(command[0]).name} ends with {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
