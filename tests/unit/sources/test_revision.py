from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.sources.repository import find_repository
from dra_infra.sources.revision import archived


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    infra = tmp_path / "repository" / "infra"
    infra.mkdir(parents=True)
    (infra / "__main__.py").write_text("old")
    (infra.parent / "shared.py").write_text("beside")
    git(infra.parent, "init")
    git(infra.parent, "add", ".")
    git(infra.parent, "commit", "-m", "first")
    (infra / "__main__.py").write_text("new")
    return infra


def code_of(folder: Path, revision: str) -> str:
    with pytest.raises(ProgramError) as error, archived(find_repository(folder), revision):
        pass
    (problem,) = error.value.problems
    return problem.code


def test_the_folder_is_as_it_was_with_what_lies_beside_it(repository: Path):
    with archived(find_repository(repository), "HEAD") as old:
        assert (old.root / "__main__.py").read_text() == "old"
        assert (old.top / "shared.py").read_text() == "beside"
        assert old.left_out == ()
    assert not old.top.exists()
    assert (repository / "__main__.py").read_text() == "new"


@pytest.mark.parametrize("revision", ["nope", "--output=x", "", "HEAD:infra"])
def test_what_is_no_revision_is_told(repository: Path, revision: str):
    assert code_of(repository, revision) == "base-not-found"


def test_a_folder_outside_a_repository_is_told(tmp_path: Path):
    assert code_of(tmp_path, "HEAD") == "no-repository"


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path):
    assert code_of(tmp_path / "absent", "HEAD") == "no-project"


def test_an_archive_is_unpacked_by_pythons_whose_tarfile_has_no_filters(repository: Path):
    """Python 3.11.0 to 3.11.3, and so Debian 12 (3.11.2), lack what 3.11.4 brought."""
    program = (
        "import sys, tarfile\n"
        "if sys.version_info < (3, 12):\n"
        "    del tarfile.data_filter, tarfile.FilterError\n"
        "from pathlib import Path\n"
        "from dra_infra.sources.repository import find_repository\n"
        "from dra_infra.sources.revision import archived\n"
        "with archived(find_repository(Path(sys.argv[1])), 'HEAD') as old:\n"
        "    print((old.root / '__main__.py').read_text())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, repository], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("old\n", "")
