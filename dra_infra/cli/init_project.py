"""The files of a new project."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined

from dra_infra import __version__
from dra_infra.cli.init_fleet import StartingPoint

_PLACES: Final[Mapping[str, str]] = {
    "Pulumi.yaml": "Pulumi.yaml",
    "Pulumi.dev.yaml": "Pulumi.dev.yaml",
    "__main__.py": "__main__.py",
    "requirements.txt": "requirements.txt",
    "tests/test_gpus.py": "test_gpus.py",
    ".gitignore": "gitignore",
    "README.md": "README.md",
}
"""Path in the project, and the template. A leading dot would keep a template out of some archives."""

_CI_PLACES: Final = {"github": ".github/workflows/dra-infra.yml", "gitlab": ".gitlab-ci.yml"}
"""Where each forge looks for it, from the root of the repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProject:
    """What is asked for: all of it checked."""

    name: str
    root: Path
    kubernetes: str
    ci: Literal["github", "gitlab", "none"]
    start: StartingPoint


def files_of(project: NewProject) -> dict[Path, str]:
    """Every file by its whole path; that of the CI is in the root of the git repository that is there already."""
    repository = _repository_of(project.root)
    ci_place = _CI_PLACES.get(project.ci, "")
    major, minor, _ = __version__.split(".")
    values = {
        "name": project.name,
        "kubernetes": project.kubernetes,
        "requirement": _requirement(f">={major}.{minor},<{major}.{int(minor) + 1}"),
        "tag": f"v{__version__}",
        "folder": project.root.relative_to(repository).as_posix(),
        "ci_file": ci_place,
        "request": "merge request" if project.ci == "gitlab" else "pull request",
        **{key: getattr(project.start, key) for key in StartingPoint.__slots__},
        "fleet_is_file": bool(project.start.file),
    }
    templates = _templates()
    files = {
        project.root / place: templates.get_template(f"{template}.j2").render(values)
        for place, template in _PLACES.items()
    }
    if project.start.file:
        files[project.root / project.start.fleet] = project.start.file
    if ci_place:
        files[repository / ci_place] = templates.get_template(f"{project.ci}.yml.j2").render(values)
    return files


def _requirement(versions: str) -> str:
    """What installs this package again; empty where it came from a folder, which other machines do not have."""
    try:
        # Where pip says what it installed (packaging.python.org, direct_url.json); none where an index had it.
        text = metadata.distribution("dra-infra").read_text("direct_url.json")
        if text is None:
            return f"dra-infra{versions}"
        origin = json.loads(text)
        vcs = origin.get("vcs_info")
        # Who may read the repository is not for a file that is committed.
        if not vcs or "@" in origin["url"].partition("://")[2].partition("/")[0]:
            return ""
        return f"dra-infra @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}"
    except (metadata.PackageNotFoundError, ValueError, KeyError):
        return ""


def _repository_of(root: Path) -> Path:
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return folder
    return root


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("dra_infra.cli", "templates/project"),
        undefined=StrictUndefined,
        # Not Jinja's own marks: ${{ }} belongs to GitHub.
        variable_start_string="[[",
        variable_end_string="]]",
        block_start_string="[%",
        block_end_string="%]",
        comment_start_string="[#",
        comment_end_string="#]",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  (Python and YAML; every value goes through `quoted`)
    )
    environment.filters["quoted"] = _quoted
    return environment


def _quoted(text: str) -> str:
    """A text as Python, YAML and JSON all write it."""
    return json.dumps(text)
