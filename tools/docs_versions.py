"""Put the site of a version beside those of earlier ones: ``python -m tools.docs_versions 1.2.3`` or ``make docs-version``.

They lie on the branch `gh-pages`, which a forge serves: a folder for each version, `latest` for the newest, and the list that the
header of every page offers. mike writes the commit; nothing is pushed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools import docs_site
from tools.errors import ToolError

BRANCH: Final = "gh-pages"

_VERSION: Final = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")
_COMMITTER: Final = {
    "GIT_COMMITTER_NAME": "dra-infra",
    "GIT_COMMITTER_EMAIL": "dra-infra@users.noreply.example.com",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Add the site that `make docs` has checked; returns the exit status."""
    version = " ".join(sys.argv[1:] if arguments is None else arguments)
    try:
        check(version)
        add(docs_site.environment(), docs_site.FOLDER / "pages", version, docs_site.ROOT)
    except ToolError as error:
        print(f"make docs-version: {error}", file=sys.stderr)
        return 1
    print(f"the branch {BRANCH} has the site of {version}; git push origin {BRANCH} publishes it")
    return 0


def check(version: str) -> None:
    """Refuse what is no version.

    Raises:
        ToolError: When *version* is none.
    """
    if not _VERSION.fullmatch(version):
        raise ToolError(f"{version or 'nothing'} is no version", hint="make docs-version VERSION=1.2.3")


def add(python: Path, pages: Path, version: str, repository: Path) -> None:
    """Commit the site of *version* to the branch; the newest of all is the one that is shown first.

    Args:
        python: Python of an environment with mkdocs and mike.
        pages: Where `docs_site.build` has gathered the pages.
        version: Such as `1.2.3`.
        repository: Whose branch gets the commit.

    Raises:
        ToolError: When *version* is none, or the commit cannot be made.
    """
    check(version)
    # What mends an older version is not the newest.
    names = [version, "latest"] if is_newest(version, repository) else [version]
    same = ["--config-file", str(docs_site.ROOT / "mkdocs.yml"), "--branch", BRANCH, "--ignore-remote-status"]
    for command in (
        ["deploy", *same, "--update-aliases", *names],
        ["set-default", *same, "latest"],
    ):
        done = subprocess.run(
            [str(python.parent / "mike"), *command],
            cwd=repository,
            env={
                **_COMMITTER,
                **os.environ,
                # mike starts the mkdocs that it finds.
                "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]),
                "NO_MKDOCS_2_WARNING": "1",
                docs_site.PAGES_VARIABLE: str(pages),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ToolError(f"mike {command[0]} failed: {(done.stderr or done.stdout).strip()}")


def is_newest(version: str, repository: Path) -> bool:
    """True where the branch has no site of a newer version.

    Raises:
        ToolError: When the list of the sites that are there cannot be read.
    """

    def git(*command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *command], cwd=repository, capture_output=True, text=True, check=False)

    if git("rev-parse", "--verify", "--quiet", f"refs/heads/{BRANCH}").returncode:
        return True
    shown = git("show", f"{BRANCH}:versions.json")
    try:
        listed = [str(each["version"]) for each in json.loads(shown.stdout)]
    except (ValueError, TypeError, KeyError) as error:
        why = shown.stderr.strip() or "it is no list of versions"
        raise ToolError(f"versions.json of the branch {BRANCH} cannot be read: {why}") from error
    return _numbers(version) >= max(map(_numbers, listed), default=())


def _numbers(version: str) -> tuple[int, ...]:
    """The parts of a version, for comparing; none for what is no version, such as the name of a branch."""
    found = _VERSION.fullmatch(version)
    return tuple(map(int, found.groups())) if found else ()


if __name__ == "__main__":
    sys.exit(main())
