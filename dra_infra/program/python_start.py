"""Which folders a Python process imports modules from, and who chose them.

Python runs code before the first line of ours: `sitecustomize.py` of `PYTHONPATH`, lines of `.pth` files, and every module
that is named like one of the standard library and lies in front of it. In the checkout of a pull request all of these are
a stranger's. So the processes that confine a program and judge its answer start without them, and import from folders that
we name. What the user's environment adds is added behind the confinement, for the program alone.
"""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.program.current_modules import compiled_anew

FLAGS: Final = ("-s", "-P", "-S")
"""No folder of the user's, no current folder, and none of what `site` reads. With variables from `for_start` it is `-I -S`."""

_DECIDE_ORDER: Final = "PYTHONHASHSEED"
"""A number that counts only where Python starts: it decides the order of sets, and so what some programs make."""

_PACKAGE: Final = Path(__file__).resolve().parents[1]


def for_start(environment: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Split an environment into what a process starts with, and Python's own variables, which wait for the confinement."""
    late = {
        name: value
        for name, value in environment.items()
        if name.startswith("PYTHON") and name != _DECIDE_ORDER
    }
    return {name: value for name, value in environment.items() if name not in late}, late


def trusted_path(inside: Path) -> list[str]:
    """Return the folders of this process that a judging process imports from.

    Those are the standard library and what is installed beside this package, not what `PYTHONPATH` names, nor what lies
    in a repository that is reviewed.

    Args:
        inside: The repository.
    """
    named = set() if sys.flags.ignore_environment else {os.path.realpath(each) for each in python_path()}
    return [
        entry
        for entry in sys.path
        if entry and (_is_own(entry) or not (os.path.realpath(entry) in named or lies_in(entry, inside)))
    ]


def python_path() -> list[str]:
    """Return the folders that `PYTHONPATH` names, as Python reads it: an empty entry is the current folder."""
    written = os.environ.get("PYTHONPATH", "")
    return [os.path.abspath(each) for each in written.split(os.pathsep)] if written else []  # noqa: PTH100


def added_folders() -> Iterator[Path]:
    """Yield the folders that `add_users_modules` will add, without running a line of any file."""
    yield from map(Path, python_path())
    for entry in sys.path:
        folder = Path(entry)
        for file in sorted(folder.glob("*.pth")) if folder.is_dir() else ():
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                # A line that begins with `import` is code, and one with `#` a comment (the documentation of `site`).
                if line.strip() and not line.startswith(("#", "import ", "import\t")):
                    yield folder / line.rstrip()


def add_for_own_program() -> None:
    """Add what the command `dra-infra` started without, before a program of the user's own runs in this process."""
    if sys.flags.no_site:
        add_users_modules()


def add_users_modules() -> None:
    """Add the modules that the user's environment has, as Python does when it starts: `PYTHONPATH`, `.pth`, `sitecustomize`.

    This runs files of the repository, so it is called behind the confinement, or for a program of the user's own.
    """
    sys.path[:0] = [each for each in python_path() if each not in sys.path]
    with compiled_anew():
        site.main()


def check_start(inside: Path) -> None:
    """Check that this process, which nothing confines, could take no code from the repository that it reviews.

    The installed command starts Python so that only `PATH` and `LD_...` variables can lead there. Others may have started
    Python with the current folder or `PYTHONPATH` on the module path.

    Args:
        inside: The repository.

    Raises:
        ProgramError: `started-from-repository`, for each way at once.
    """
    problems: dict[str, Problem] = {}
    for name, folder, hint in (*_sources_of_system(inside), *_sources_of_python()):
        if folder not in problems and lies_in(folder, inside) and not _is_own(folder):
            message = (
                f"{folder} is in the repository that is reviewed: its code runs before anything is confined"
            )
            problems[folder] = Problem(path=name, code="started-from-repository", message=message, hint=hint)
    if problems:
        raise ProgramError(problems.values())


def _sources_of_system(inside: Path) -> Iterator[tuple[str, str, str]]:
    """Yield what the linker and the shell take code from: the user's name for it, the folder, and what to write instead."""
    hint = "take what is empty, relative or in the checkout out of {}; `--allow all` confines nothing"
    # What is relative counts from the folder of the process that is started: git, helm and kubectl run in the repository.
    for name in ("LD_LIBRARY_PATH", "PATH"):
        written = os.environ.get(name, "")
        for entry in (
            re.split("[:;]" if name == "LD_LIBRARY_PATH" else os.pathsep, written) if written else ()
        ):
            # Absolute folders of PATH are the user's choice, such as that of an environment that lies in the checkout.
            if name != "PATH" or not os.path.isabs(entry):  # noqa: PTH117
                yield name, os.path.join(inside, entry), hint.format(name)  # noqa: PTH118
    for name in ("LD_PRELOAD", "LD_AUDIT"):
        # A library without a slash is looked for where the system has libraries (ld.so(8)).
        for entry in re.split("[: ]", os.environ.get(name, "")):
            if "/" in entry:
                yield name, os.path.join(inside, entry), hint.format(name)  # noqa: PTH118


def _sources_of_python() -> Iterator[tuple[str, str, str]]:
    """Yield the same for Python."""
    hint = "start it as the installed command `dra-infra`, or as `python -E -P -m dra_infra`; `--allow all` confines nothing"
    if not sys.flags.ignore_environment:
        yield from (("PYTHONPATH", each, hint) for each in python_path())
        for name in ("PYTHONHOME", "PYTHONPYCACHEPREFIX"):
            if written := os.environ.get(name, ""):
                yield name, os.path.abspath(written.partition(os.pathsep)[0]), hint  # noqa: PTH100
    yield from (("the module path", os.path.abspath(each), hint) for each in sys.path)  # noqa: PTH100
    files = (getattr(each, "__file__", None) for each in [*sys.modules.values()])
    for folder in sorted({os.path.dirname(each) for each in files if isinstance(each, str)}):  # noqa: PTH120
        yield "modules that are loaded", os.path.abspath(folder), hint  # noqa: PTH100


def lies_in(path: str, inside: Path) -> bool:
    """Return whether *path* is a file or folder of the repository, by its name or by where links lead."""
    top = os.path.realpath(inside)
    names = (os.path.realpath(path), os.path.abspath(path))  # noqa: PTH100  (without following links)
    return any(Path(each).is_relative_to(top) for each in names)


def _is_own(folder: str) -> bool:
    """Whether *folder* is one of this installation, which may lie in the repository: an environment, or our own checkout."""
    real = Path(os.path.realpath(folder))
    installed = (os.path.dirname(os.__file__), str(_PACKAGE), *site.getsitepackages())  # noqa: PTH120
    return real == _PACKAGE.parent or any(real.is_relative_to(os.path.realpath(each)) for each in installed)
