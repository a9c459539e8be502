"""What wheel and sdist hold: the tracked files that belong there, and nothing else."""

from __future__ import annotations

import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from tools.errors import ToolError
from tools.release.artefacts import digest, hatch

_METADATA: Final = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
_COMMANDS: Final = ("dra-infra", "kubectl-dra_infra", "kubectl_complete-dra_infra")
_NEEDED: Final = ("dra_infra/py.typed", "dra_infra/__init__.py", "dra_infra/plugin/command/main.py")
"""Files that a wheel must have in any case: where git named no files, a wheel without any would match."""


def check_wheel(wheel: Path, tracked: Collection[str]) -> str:
    """Compare *wheel* with the files of `dra_infra` that git tracks; returns what it holds, in words.

    Raises:
        ToolError: When something is missing, or has no business there.
    """
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    release = "-".join(wheel.name.split("-")[:2])
    code = {name for name in tracked if name.startswith("dra_infra/")}
    commands = {f"{release}.data/scripts/{name}" for name in _COMMANDS}
    _compare(
        wheel, names, {*code, *_NEEDED, *commands, *(f"{release}.dist-info/{name}" for name in _METADATA)}
    )
    return f"{len(code)} files of dra_infra, its commands, the licence, and its metadata"


def check_sdist(sdist: Path, tracked: Collection[str], project: str) -> str:
    """Compare *sdist* with the tracked files that *project*, the text of pyproject.toml, lets in; returns what it holds, in words.

    Raises:
        ToolError: When something is missing, or has no business there.
    """
    included = tomllib.loads(project)["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    wanted = {
        name
        for name in tracked
        if any(f"/{name}" == each or f"/{name}".startswith(f"{each}/") for each in included)
    }
    top = sdist.name.removesuffix(".tar.gz")
    with tarfile.open(sdist) as opened:
        names = {each.name.removeprefix(f"{top}/") for each in opened if not each.isdir()}
    _compare(sdist, names, {*wanted, *_NEEDED, "PKG-INFO", "pyproject.toml", ".gitignore"})
    return f"{len(wanted)} files: code, documents and examples"


def check_wheel_of_sdist(sdist: Path, wheel: Path) -> None:
    """Build the wheel from *sdist*, as an index or a distribution does.

    Raises:
        ToolError: When it is another one than *wheel*.
    """
    with tempfile.TemporaryDirectory(prefix="dra-infra-sdist-") as folder:
        place = Path(folder)
        built = Path(folder) / "built"
        built.mkdir()
        with tarfile.open(sdist) as opened:
            opened.extractall(place, filter="data")
        again = hatch("wheel", place / sdist.name.removesuffix(".tar.gz"), built)
        if digest(again) != digest(wheel):
            raise ToolError(f"{sdist.name} builds another wheel than {wheel.name}")


def _compare(path: Path, names: Collection[str], wanted: Collection[str]) -> None:
    found, expected = set(names), set(wanted)
    if found != expected:
        lines = [
            *_told("has, and should not", found - expected),
            *_told("lacks", expected - found),
        ]
        raise ToolError(f"{path.name} " + "; ".join(lines), hint="see [tool.hatch.build] in pyproject.toml")


def _told(what: str, names: Iterable[str]) -> list[str]:
    listed = sorted(names)
    more = f" and {len(listed) - 5} more" if len(listed) > 5 else ""
    return [f"{what} {', '.join(listed[:5])}{more}"] if listed else []
